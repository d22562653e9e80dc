#!/usr/bin/env python3
"""
rl-agent under a service manager (manager.py speaks its protocols): sockets
that are passed, told apart by name or path, left alone, and kept over reloads
and restarts.
"""

import json
import os
import socket
import stat

import harness
import load
import manager
from harness import check, poll, same

ZONE = "sandbox.example.com"
RULES = {"one": {"tenant": "main", "resources": [
    {"bucket": "one:{key}", "window_ms": 1000, "limit": 1000}]}}


def listeners(lab, *names):
    return {name: {"path": lab.socket_path(
        "agent" if name == "main" else name), "mode": "0600"}
        for name in names}


def bring_up(lab, *names, **more):
    """A sandbox, a configuration with these listeners, and a manager."""
    key = lab.keygen("main")
    sandbox = lab.sandbox(key, cluster=1, zone=ZONE)
    document = lab.document(
        {"main": {"key": {"file": key}, "policy": harness.POLICY,
                  "dns": {"name": ZONE, "nameservers": [sandbox.dns]}}},
        RULES, listeners=listeners(lab, *(names or ("main",))), **more)
    return document, manager.Manager(lab)


def control_path(lab):
    return os.path.join(os.path.dirname(lab.socket_path()), "control.sock")


def asked(lab, path):
    """What a check over that socket gives."""
    d = lab.ctl("--socket", path, "check", "one", "--key", "k", "--json",
                expect=None).json()
    harness.check_decision(d)
    return d["outcome"]


def rows(agent):
    return {row["name"]: row["activated"]
            for row in agent.status()["listeners"]}


def connects(path):
    with socket.socket(socket.AF_UNIX) as s:
        return s.connect_ex(path) == 0


# Sockets.

def test_by_name(lab):
    """passed in any order, served, and left as they were"""
    document, m = bring_up(lab, "main", "other", "own")
    m.listen("control", control_path(lab), 0o600)
    m.listen("other", lab.socket_path("other"), 0o640)
    m.listen("main", lab.socket_path(), 0o600)
    before = {held.path: os.lstat(held.path) for held in m.held}
    agent = m.start(lab.config(document))
    same(rows(agent), {"main": True, "other": True, "own": False,
                       "control": True})
    for name in ("agent", "other", "own"):
        same(asked(lab, lab.socket_path(name)), "allowed", name)
    # A mode that is not the configured one is told.
    line, = [line for line in agent.err().split("\n")
             if ": activation " in line]
    check("listener=other" in line and "mode=0640" in line and
          "configured=0600" in line, line)
    # The listener that it made itself has a lock beside it, the others none.
    for held in m.held:
        check(not os.path.exists(held.path + ".lock"), held.path)
    check(os.path.exists(lab.socket_path("own") + ".lock"))
    agent.ctl("reload")
    same(agent.stop(), 0, agent.err())
    for held in m.held:
        after = os.lstat(held.path)
        same((after.st_ino, after.st_mode, after.st_gid),
             (before[held.path].st_ino, before[held.path].st_mode,
              before[held.path].st_gid), held.path)
        check(connects(held.path), held.path)
    check(not os.path.exists(lab.socket_path("own")))
    # Once: the reload has changed nothing of it.
    same(agent.err().count("activation"), 1, agent.err())


def test_by_path(lab):
    """the name that systemd gives by default, or none, stands for any"""
    document, m = bring_up(lab, "main", "other")
    m.listen("rl-agent.socket", lab.socket_path("other"))
    m.listen("", control_path(lab))
    path = lab.config(document)
    for names in (None, "some-other.socket:unknown"):
        agent = m.start(path, env=names and {"LISTEN_FDNAMES": names})
        same(rows(agent), {"main": False, "other": True, "control": True})
        same(asked(lab, lab.socket_path("other")), "allowed")
        same(agent.stop(), 0)
    # By another name of the folder, too.
    os.symlink(os.path.dirname(lab.socket_path("other")),
               os.path.join(lab.path, "link"))
    document["listeners"]["other"]["path"] = lab.socket_path("link")
    for name in ("rl-agent.socket", "other"):
        m.held[0].name = name
        agent = m.start(lab.config(document))
        same(rows(agent), {"main": False, "other": True, "control": True})
        same(agent.stop(), 0)
    same([connects(held.path) for held in m.held], [True] * 2)


def test_in_vain(lab):
    """what does not fit the configuration is one clear line, and exit 1"""
    document, m = bring_up(lab, "main")
    path = lab.config(document)
    main, elsewhere = lab.socket_path(), lab.socket_path("elsewhere")
    cases = (
        # Name, path, kind; what the line holds.
        ("man", main, {}, ("listeners.main.path", "called", "man", main)),
        ("man", elsewhere, {}, ("man", elsewhere, "name")),
        ("main", elsewhere, {}, ("listeners.main.path", main, elsewhere)),
        ("control", elsewhere, {}, ("control.path", control_path(lab),
                                    elsewhere)),
        ("x.socket", elsewhere, {}, ("x.socket", elsewhere, "path")),
        ("gateway.front", elsewhere, {}, ("gateway.front", elsewhere)),
        ("main", main, {"kind": socket.SOCK_DGRAM},
         ("descriptor 3", "main", "not a stream")),
        ("main", main, {"deaf": True},
         ("descriptor 3", "main", "does not listen")))
    for name, where, more, parts in cases:
        m.listen(name, where, **more)
        agent = m.start(path, ready=False)
        same(agent.wait(), 1, name, where)
        line, = agent.err().splitlines()
        for part in parts:
            check(part in line, part, "is not in", line)
        check(stat.S_ISSOCK(os.lstat(where).st_mode))
        if where == elsewhere:
            check(not os.path.exists(main), name)
        m.drop()
    # No socket of a kind that can have a path.
    with socket.socket(socket.AF_INET) as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        m.hold("main", s, main)
        agent = m.start(path, ready=False)
        same(agent.wait(), 1)
        check("not a Unix socket" in agent.err(), agent.err())
        m.drop()
    # Fewer than are said to be there.
    m.listen("main", main)
    for env, part in (({"LISTEN_FDS": "2", "LISTEN_FDNAMES": "main:control"},
                       "descriptor 4"),
                      ({"LISTEN_FDNAMES": "main:control"}, "FDNAMES"),
                      ({"LISTEN_FDS": "many"}, "many")):
        agent = m.start(path, ready=False, env=env)
        same(agent.wait(), 1)
        line, = agent.err().splitlines()
        check(part in line, line)
    # They matter for a start only.
    agent = m.start(path, ready=False, held=m.held,
                    argv=[harness.AGENT, "-t", "-c", path])
    same(agent.wait(), 0, agent.err())
    check(connects(main))


def test_of_another_process(lab):
    """what is meant for another process is left alone"""
    document, m = bring_up(lab)
    env = {"LISTEN_FDS": "1", "LISTEN_FDNAMES": "main",
           "LISTEN_PID": str(os.getpid())}
    agent = harness.Agent(lab, "agent",
                          [harness.AGENT, "-c", lab.config(document)],
                          lab.socket_path(), env).ready()
    same(rows(agent), {"main": False, "control": False})
    same(agent.stop(), 0)
    same(m.held, [])


def test_before_the_start(lab):
    """a check that comes while no agent runs is answered by the next one"""
    document, m = bring_up(lab)
    m.listen("main", lab.socket_path())
    path = lab.config(document)
    for _ in range(3):
        waiting = lab.spawn_ctl("--socket", lab.socket_path(), "check", "one",
                                "--key", "k", "--json", "--timeout", "50000")
        poll("the connection", m.held[0].waited_for)
        agent = m.start(path)
        same(waiting.wait(), 0, waiting.out(), waiting.err())
        same(json.loads(waiting.out())["outcome"], "allowed")
        same(agent.stop(), 0)


# Another check as soon as the last one is allowed.
SHELL = """
while [ -e go ]; do
    "$0" --socket "$1" check one --key shell --timeout 50000 || exit
done
"""


def test_restart(lab):
    """ended by SIGTERM 40 times under load, with its sockets: none is lost"""
    document, m = bring_up(lab)
    document["rules"] = load.rules()
    m.listen("main", lab.socket_path())
    m.listen("control", control_path(lab))
    path = lab.config(dict(document, log={"level": "info"}))
    agent = m.start(path)
    inode = os.lstat(lab.socket_path()).st_ino
    with open(os.path.join(lab.path, "go"), "w", encoding="ascii"):
        pass
    loads = [load.Load(lab, kind, lab.socket_path(), width, 50000)
             for kind, width in (("hammer", 8), ("pipeline", 16),
                                 ("hammer", 4))]
    shell = harness.Process(lab, "shell", ["sh", "-c", SHELL, harness.CTL,
                                           lab.socket_path()])
    refused = 0
    for n in range(40):
        load.wait_for_more(loads, 5 if n % 4 else 1)
        same(agent.stop(), 0, agent.err())
        # Nobody is there, and still nobody is refused.
        refused += not connects(lab.socket_path())
        agent = m.start(path, ready=False)
    load.wait_for_more(loads, 5)
    os.unlink(os.path.join(lab.path, "go"))
    same(shell.wait(), 0, shell.out(), shell.err())
    check(shell.out().count("Allowed") >= 3, shell.out())
    decisions = [d for one in loads for d in one.finish()]
    same(agent.stop(), 0, agent.err())
    same(refused, 0)
    same(os.lstat(lab.socket_path()).st_ino, inode)
    lost = [d for d in decisions if d.outcome not in ("allowed", "denied")]
    print("# %d decisions over 40 restarts, %d lost" % (len(decisions),
                                                       len(lost)))
    same(lost, [])
    check(len(decisions) > 40 * 3 * 3, "there was no load")


def test_reload(lab):
    """a listener leaves and comes back: its socket is kept meanwhile"""
    document, m = bring_up(lab, "main", "other")
    m.listen("main", lab.socket_path())
    m.listen("other", lab.socket_path("other"))
    path = lab.config(document)
    agent = m.start(path)
    other = document["listeners"].pop("other")
    for _ in range(3):
        lab.config(document)
        agent.ctl("reload")
        same(sorted(rows(agent)), ["control", "main"])
        # It waits for somebody to come back.
        waiting = lab.spawn_ctl("--socket", other["path"], "check", "one",
                                "--key", "k", "--timeout", "50000")
        poll("the connection", m.held[1].waited_for)
        same(asked(lab, lab.socket_path()), "allowed")
        check(waiting.running())
        lab.config(dict(document, listeners=dict(document["listeners"],
                                                 other=other)))
        agent.ctl("reload")
        same(rows(agent), {"main": True, "other": True, "control": False})
        same(waiting.wait(), 0, waiting.out(), waiting.err())
        check(os.path.exists(other["path"]))
    # What would not start is not loaded either.
    for wrong, parts in (
            ({"main": {"path": lab.socket_path("moved")}},
             ("listeners.main.path", lab.socket_path("moved"),
              lab.socket_path())),
            ({"renamed": {"path": lab.socket_path()}},
             ("listeners.renamed.path", '"main"', '"renamed"'))):
        lab.config(dict(document, listeners=wrong))
        result = agent.ctl("reload", expect=1)
        for part in parts:
            check(part in result.err, part, result)
        same(asked(lab, lab.socket_path()), "allowed")
    check(not os.path.exists(lab.socket_path("moved")))
    same(agent.stop(), 0)
    same([connects(held.path) for held in m.held], [True] * 2)


def asks_http(family, address):
    """The status line of a check over HTTP."""
    with socket.socket(family) as s:
        s.settimeout(harness.PATIENCE)
        s.connect(address)
        s.sendall(b"GET /check/one?key=k HTTP/1.1\r\nHost: a\r\n"
                  b"Connection: close\r\n\r\n")
        answer = b""
        while b"\r\n" not in answer:
            more = s.recv(4096)
            check(more, answer)
            answer += more
    return answer.split(b"\r\n")[0].decode()


def test_gateway(lab):
    """gateways take theirs, with a path and of TCP"""
    document, m = bring_up(lab, "main")
    tcp = socket.create_server(("127.0.0.1", 0))
    where = "127.0.0.1:%d" % tcp.getsockname()[1]
    path = os.path.join(lab.path, "http.sock")
    m.hold("gateway.back", tcp, where)
    m.listen("gateway.front", path)
    document["gateway"] = {"front": {"listen": "unix:" + path,
                                     "mode": "0600"},
                           "back": {"listen": where}}
    for name in ("gateway.back", "rl-agent-http.socket"):
        m.held[0].name = name
        agent = m.start(lab.config(document))
        same(asks_http(socket.AF_UNIX, path), "HTTP/1.1 200 OK")
        same(asks_http(socket.AF_INET, tcp.getsockname()), "HTTP/1.1 200 OK")
        check(" activation " not in agent.err(), agent.err())
        same(agent.stop(), 0)
        check(connects(path))
    # A reload takes one out, and brings it back.
    agent = m.start(lab.config(document))
    back = document["gateway"].pop("back")
    for gateway in ({}, {"back": back}):
        lab.config(dict(document, gateway=dict(document["gateway"],
                                               **gateway)))
        agent.ctl("reload")
    same(asks_http(socket.AF_INET, tcp.getsockname()), "HTTP/1.1 200 OK")
    same(agent.stop(), 0)
    # Another place than the configuration's.
    document["gateway"]["front"] = {"listen": where}
    agent = m.start(lab.config(document), ready=False)
    same(agent.wait(), 1)
    line, = agent.err().splitlines()
    for part in ("gateway.front.listen", where, path):
        check(part in line, part, line)


if __name__ == "__main__":
    harness.run([value for name, value in list(globals().items())
                 if name.startswith("test_")])
