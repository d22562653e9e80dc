#!/usr/bin/env python3
"""
What rl-agent tells a service manager (manager.py hears it): when applications
are let in, each reload and what became of it, whether a decision is possible,
its end, and that its loop turns.
"""

import os
import signal
import socket
import time

import harness
import manager
from harness import check, poll, same

ZONE = "sandbox.example.com"
RULES = {"one": {"tenant": "main", "resources": [
    {"bucket": "one:{key}", "window_ms": 1000, "limit": 1000}]}}
STATES = ("READY", "RELOADING", "STOPPING")
READY, RELOADING, STOPPING = (state + "=1" for state in STATES)
POSSIBLE = "STATUS=A decision is possible"


def document_of(lab, key, nameserver, policy=None):
    return lab.document(
        {"main": {"key": {"file": key}, "policy": policy or harness.POLICY,
                  "dns": {"name": ZONE, "nameservers": [nameserver],
                          "timeout_ms": 200}}}, RULES)


def bring_up(lab, policy=None):
    """A sandbox, a configuration and a manager that hears."""
    key = lab.keygen("main", fmt=0, dedup_ms=0)
    sandbox = lab.sandbox(key, cluster=1, zone=ZONE)
    m = manager.Manager(lab)
    m.notify(os.path.join(lab.path, "notify"))
    return document_of(lab, key, sandbox.dns, policy), m


def mute(lab):
    """A nameserver that says nothing."""
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("127.0.0.1", 0))
    lab.closers.append(s.close)
    return "127.0.0.1:%d" % s.getsockname()[1]


def lets_in(path):
    with socket.socket(socket.AF_UNIX) as s:
        return s.connect_ex(path) == 0


def message_with(m, line):
    found = [message for message in m.heard() if line in message]
    same(len(found), 1, line, m.messages)
    return found[0]


def test_life(lab):
    """ready when it lets in, then its end, each told once"""
    document, m = bring_up(lab, {"unit_ms": 2000})
    path = lab.config(document)
    for address in (None, "@rl-agent-test-%d" % os.getpid()):
        if address:
            m.notified.close()
            m.notify(address)
        m.messages = []
        agent = m.start(path, ready=False)
        m.wait_for(READY)
        check(lets_in(lab.socket_path()), "READY=1 came too early")
        m.wait_for(POSSIBLE)
        agent.ready()
        same(m.lines(*STATES), [READY])
        same(agent.stop(), 0, agent.err())
        last = m.heard()[-1]
        same(m.lines(*STATES), [READY, STOPPING])
        same([line.split("=")[0] for line in last],
             ["STOPPING", "EXTEND_TIMEOUT_USEC", "STATUS"], last)
        # H = 6 s: a drain may take as long.
        check(int(last[1].split("=")[1]) >= 6000000, last)
        same(m.lines("WATCHDOG"), [])


def test_ends(lab):
    """by drain, and by quit"""
    document, m = bring_up(lab)
    path = lab.config(document)
    for command in ("drain", "quit"):
        m.messages = []
        agent = m.start(path)
        agent.ctl(command)
        same(agent.wait(), 0)
        same(m.lines(*STATES), [READY, STOPPING], command)
        same(m.heard()[-1][-1], "STATUS=Ending")
    # What cannot start is never ready.
    m.messages = []
    with open(lab.socket_path(), "w", encoding="ascii"):
        pass
    agent = m.start(path, ready=False)
    same(agent.wait(), 1)
    same(m.lines(*STATES), [])


def test_reload(lab):
    """each reload begins and ends, well or not, and status tells"""
    document, m = bring_up(lab)
    path = lab.config(document)
    agent = m.start(path)
    m.wait_for(READY)
    want = [READY]

    def reloaded(status):
        want.extend([RELOADING, READY])
        poll("%s in %s" % (want, m.messages[-3:]),
             lambda: m.lines(*STATES) == want)
        m.wait_for(status)

    before = time.monotonic_ns() // 1000
    agent.ctl("reload")
    reloaded(POSSIBLE + "; the last reload made generation 2")
    message = message_with(m, RELOADING)
    same(len(message), 2, message)
    key, value = message[1].split("=")
    same(key, "MONOTONIC_USEC")
    check(before <= int(value) <= time.monotonic_ns() // 1000, message)
    # A signal does the same.
    agent.signal(signal.SIGHUP)
    reloaded(POSSIBLE + "; the last reload made generation 3")
    # And a change of the file.
    document["rules"]["two"] = RULES["one"]
    lab.config(document)
    reloaded(POSSIBLE + "; the last reload made generation 4")
    # A mistake is told, with its place.
    document["rules"]["two"] = dict(RULES["one"], tenant="nobody")
    lab.config(document)
    agent.ctl("reload", expect=1)
    reloaded(POSSIBLE + "; the last reload failed: %s: rules.two.tenant: "
             % path)
    del document["rules"]["two"]
    lab.config(document)
    agent.ctl("reload")
    reloaded(POSSIBLE + "; the last reload made generation 5")
    same(agent.stop(), 0)
    same(m.lines(*STATES), want + [STOPPING])


def test_not_possible(lab):
    """status says why no decision is possible, and when one is"""
    document, m = bring_up(lab)
    nameserver = document["tenants"]["main"]["dns"]["nameservers"]
    # What DNS says is known later than applications are let in.
    document["tenants"]["main"]["dns"].update(nameservers=[mute(lab)],
                                              timeout_ms=1500)
    path = lab.config(document)
    agent = m.start(path, ready=False)
    # They are let in all the same: their checks fail at once.
    m.wait_for(READY)
    check(lets_in(lab.socket_path()), "READY=1 came too early")
    why = "STATUS=No decision is possible: tenant main: SRV _ratelimitly._udp."
    m.wait_for(why + ZONE)
    same([line for line in m.lines("STATUS") if POSSIBLE in line], [])
    document["tenants"]["main"]["dns"]["nameservers"] = nameserver
    lab.config(document)
    agent.ctl("reload")
    m.wait_for(POSSIBLE)
    # And back.
    document["tenants"]["main"]["dns"].update(
        name="other.example.com", nameservers=[mute(lab)])
    lab.config(document)
    agent.ctl("reload")
    m.wait_for(why + "other.example.com")
    same(agent.stop(), 0)


def test_paced(lab):
    """status that changes all the time is told less often, but at last"""
    document, m = bring_up(lab)
    agent = m.start(lab.config(document))
    m.wait_for(POSSIBLE)
    for n in range(30):
        agent.ctl("reload")
        m.wait_for(READY, n + 2)
    m.wait_for(POSSIBLE + "; the last reload made generation 31")
    told = len(m.lines("STATUS"))
    # Five, and then after 1, 2, 4 ... seconds; were this to take a minute.
    check(told <= 5 + 7, told, m.lines("STATUS"))
    same(m.lines(*STATES), [READY] + 30 * [RELOADING, READY])
    same(agent.stop(), 0)


def state_of(pid):
    with open("/proc/%d/stat" % pid, encoding="ascii") as f:
        return f.read().rsplit(")", 1)[1].split()[0]


def test_watchdog(lab):
    """signs of life, not from a loop that stands still"""
    document, m = bring_up(lab)
    path = lab.config(document)
    m.env["WATCHDOG_USEC"] = "100000"
    agent = m.start(path)
    m.wait_for("WATCHDOG=1", 5)
    agent.signal(signal.SIGSTOP)
    poll("its standstill", lambda: state_of(agent.pid) == "T")
    seen = len(m.lines("WATCHDOG"))
    time.sleep(1)  # ten intervals; whatever is late here proves nothing
    same(len(m.lines("WATCHDOG")), seen)
    agent.signal(signal.SIGCONT)
    m.wait_for("WATCHDOG=1", seen + 5)
    same(agent.stop(), 0)
    # Each on its own, so that nothing else can keep it back.
    same({len(message) for message in m.heard() if "WATCHDOG=1" in message},
         {1})
    # What is meant for another process.
    m.messages = []
    agent = m.start(path, argv=[
        "/usr/bin/env", "WATCHDOG_PID=1", harness.AGENT, "-c", path])
    m.wait_for(READY)
    same(agent.stop(), 0)
    same(m.lines("WATCHDOG"), [])


def test_busy_manager(lab):
    """a full queue delays what is told, and nothing else"""
    document, m = bring_up(lab)
    path = lab.config(document)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.setblocking(False)
        count = 0
        try:
            while True:
                s.sendto(b"X=1", m.env["NOTIFY_SOCKET"])
                count += 1
        except BlockingIOError:
            pass
        agent = m.start(path)
        same(agent.check("one", "--key", "k")["outcome"], "allowed")
        agent.ctl("reload")
        agent.ctl("reload")
        same(agent.status()["generation"], 3)
        m.wait_for("X=1", count)
    m.wait_for(READY)
    m.wait_for(POSSIBLE + "; the last reload made generation 3")
    same(m.lines(*STATES)[-1], READY)
    same(agent.stop(), 0)
    same(m.lines(*STATES)[-1], STOPPING)


def test_no_manager(lab):
    """one that is gone, or has no address, changes nothing"""
    document, m = bring_up(lab)
    path = lab.config(document)
    m.notified.close()
    m.notified = None
    env = {"WATCHDOG_USEC": "20000"}
    agent = m.start(path, env=env)
    same(agent.check("one", "--key", "k")["outcome"], "allowed")
    agent.ctl("reload")
    same(agent.stop(), 0)
    check(" notify " not in agent.err(), agent.err())
    for address in ("notify", "vsock:2:1234", "/" + "x" * 107):
        agent = m.start(path, env={"NOTIFY_SOCKET": address})
        same(agent.check("one", "--key", "k")["outcome"], "allowed")
        same(agent.stop(), 0)
        line, = [line for line in agent.err().splitlines()
                 if ": notify " in line]
        check("NOTIFY_SOCKET" in line and address[:100] in line, line)


if __name__ == "__main__":
    harness.run([value for name, value in list(globals().items())
                 if name.startswith("test_")])
