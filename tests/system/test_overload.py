#!/usr/bin/env python3
"""
Greed: one user asks for as much as it can, reads nothing, stalls, or takes
every connection, and the others go on. What is over a cap is answered at once
and costs no datagram. Latencies are printed, beside those of the same run
without the greed; a machine is too various to assert them.
"""

import json
import os
import resource
import time

import exposition
import harness
import wire
from harness import check, poll, same
from overload_peers import (Peer, deaf, greedy, idle, needs_root, polite,
                            sandbox_without_events)
from wire import Client

ZONE = "sandbox.example.com"
GREEDY, POLITE = 40001, 40002
AT_ONCE = 20000
PLENTY = 1000000000
RULES = {
    "demo": {"tenant": "main",
             "resources": [{"bucket": "demo:{key}", "window_ms": 3600000,
                            "limit": PLENTY}]},
    # Whose detailed answers are long.
    "long": {"tenant": "main",
             "resources": [{"bucket": "long:%d:%s" % (n, "x" * 200),
                            "window_ms": 3600000, "limit": PLENTY}
                           for n in range(2)]},
}
# H = 30 s: what is answered within seconds, no timeout has answered.
SLOW = {"unit_ms": 10000}
# H = 30 s, too, but a lost datagram or server costs no more than a second.
PATIENT = {"unit_ms": 500, "final_receive_units": 59}
SECONDS = 10
MINUTES = 300


def bring_up(lab, policy=None, cluster=1, listeners=None, **more):
    """With listeners that every user may connect to."""
    os.chmod(lab.path, 0o711)
    key = lab.keygen("main", fmt=0, dedup_ms=0)
    sandbox = sandbox_without_events(lab, key, cluster, ZONE)
    document = lab.document(
        {"main": {"key": {"file": key}, "policy": policy or harness.POLICY,
                  "dns": {"name": ZONE, "nameservers": [sandbox.dns]}}},
        RULES, listeners=listeners or {"main": listener(lab)}, **more)
    document["log"] = {"level": "info"}
    return sandbox, lab.agent(document)


def listener(lab, name="agent", **more):
    return dict({"path": lab.socket_path(name), "mode": "0666"}, **more)


def control(lab, agent, *args, **options):
    """rlctl on the control socket."""
    path = os.path.join(os.path.dirname(agent.socket), "control.sock")
    return lab.ctl("--socket", path, *args, **options)


def control_status(lab, agent, *args):
    return control(lab, agent, "status", "--json", *args,
                   timeout=MINUTES).json()


def cpu_seconds(pid):
    with open("/proc/%d/stat" % pid, encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(lab, agent, count=500):
    """What a polite user meets: each of its checks is a server's."""
    got = Peer(lab, POLITE, polite, agent.socket, "demo", count).hear()
    same(got["reasons"], {"ok": count})
    return got


def compare(what, quiet, loud):
    harness.say(["%s: p50 %.0f us, p99 %.0f us, longest %.0f us; alone p50 "
                 "%.0f, p99 %.0f, longest %.0f; ratio of p50 %.1f, of p99 "
                 "%.1f" % (what, loud["p50"], loud["p99"], loud["max"],
                           quiet["p50"], quiet["p99"], quiet["max"],
                           loud["p50"] / quiet["p50"],
                           loud["p99"] / quiet["p99"])])


def say_datagrams(agent):
    tenant = agent.tenant("main")
    counters, udp = tenant["counters"], tenant["udp4"]
    harness.say(["%d operations, %d requests sent, %d of them replays; %d "
                 "answers read, %d dropped by the kernel, buffer full" % (
                     counters["operations"], counters["requests_sent"],
                     counters["replays_sent"], udp["received"],
                     udp["receive_dropped"])])


# One asks for all there is.

def under_greed(lab, connections):
    _, agent = bring_up(lab, cluster=3)
    quiet = measure(lab, agent)
    glutton = Peer(lab, GREEDY, greedy, agent.socket, "demo", AT_ONCE,
                   connections)
    same(glutton.hear(), "ready")
    poll("the crowd", lambda: agent.counters()["checks"] > 2000)
    loud = measure(lab, agent)
    compare("%d at once over %d" % (AT_ONCE, connections), quiet, loud)
    end = glutton.stop()
    harness.say(["the greedy one: %r" % end["reasons"]])
    say_datagrams(agent)
    check(set(end["reasons"]) <= {"ok", "overloaded", "timeout"}, end)
    # Each of its checks was answered, and the agent has forgotten it.
    poll("nothing in flight", lambda: agent.inflight() == 0)
    counters = agent.counters()
    same(counters["checks"], 1000 + sum(end["reasons"].values()))
    same(counters["cancelled"], 0)
    poll("no connection but ours", lambda: agent.status()["listeners"][0][
        "connections"] == 1)
    measure(lab, agent, 10)


def test_greedy_connection(lab):
    """20,000 checks at once on one connection: another user's are decided"""
    needs_root()
    under_greed(lab, 1)


def test_greedy_user(lab):
    """the same over as many connections as a user may have"""
    needs_root()
    under_greed(lab, 500)


def test_late_comer(lab):
    """who comes when another has had all of it for a while is decided, too"""
    needs_root()
    _, agent = bring_up(lab, PATIENT, cluster=3)
    glutton = Peer(lab, GREEDY, greedy, agent.socket, "demo", AT_ONCE, 500)
    same(glutton.hear(), "ready")
    poll("the crowd", lambda: crowd_size(lab, agent) > 2 * AT_ONCE, MINUTES)

    # What is under way then, and in the servers' queues, is before the first,
    # and may fill the listener: the glutton had it alone.
    def decided():
        first = Peer(lab, POLITE, polite, agent.socket, "demo", 20).hear(
            MINUTES)
        harness.say(["its first checks: %r" % first])
        check(set(first["reasons"]) <= {"ok", "timeout", "overloaded"}, first)
        return set(first["reasons"]) == {"ok"}
    poll("it to be decided", decided, MINUTES)
    before = crowd_size(lab, agent)
    count = 200
    loud = Peer(lab, POLITE, polite, agent.socket, "demo", count).hear(MINUTES)
    same(loud["reasons"], {"ok": count})
    # Were there no turns, each would wait behind all that is in flight.
    behind = (crowd_size(lab, agent) - before) / count
    harness.say(["each of its checks saw %d others begin" % behind])
    check(behind < AT_ONCE / 10, behind)
    glutton.close()
    poll("nothing in flight", lambda: control_status(
        lab, agent, "--timeout", "60000")["inflight"] == 0, MINUTES)
    compare("later", measure(lab, agent), loud)


def crowd_size(lab, agent):
    """Checks so far, asked for with as much patience as the rest."""
    return control_status(
        lab, agent, "--timeout", "60000")["counters"]["checks"]


def test_deaf(lab):
    """who never reads is no longer read from, and in the end closed"""
    needs_root()
    sandbox, agent = bring_up(lab)
    quiet = measure(lab, agent)
    mute = Peer(lab, GREEDY, deaf, agent.socket, "demo", AT_ONCE)
    same(mute.hear(), "ready")
    same(mute.hear(), "blocked")  # for a second nothing more was taken
    burnt = cpu_seconds(agent.pid)
    same(mute.hear(), "blocked")
    burnt = cpu_seconds(agent.pid) - burnt
    check(burnt < 0.5, "it spins:", burnt, "of a second")
    before = agent.counters()["checks"]
    loud = measure(lab, agent)
    compare("beside a deaf one", quiet, loud)
    same(agent.counters()["checks"], before + 500, "it is read from")
    same(agent.counters()["connections_unread"], 0)
    taken = mute.stop()
    check(taken["blocked"] and not taken["closed"], taken)
    harness.say(["it sent %d bytes" % taken["sent"]])
    poll("its end", lambda: agent.status()["listeners"][0][
        "connections"] == 1)


def test_deaf_for_good(lab):
    """answers that nobody reads grow to a bound: then it is closed"""
    needs_root()
    sandbox, agent = bring_up(lab, SLOW)
    # All of them are in flight before the first answer comes.
    sandbox.command("delay 0 2000")
    mute = Peer(lab, GREEDY, deaf, agent.socket, "long", AT_ONCE, True)
    same(mute.hear(), "ready")
    poll("its end", lambda: agent.counters()["connections_unread"] == 1)
    sandbox.command("delay 0 0")
    poll("nothing in flight", lambda: agent.inflight() == 0)
    end = mute.stop()
    while end == "blocked":
        end = mute.hear()
    check(end["closed"], end)
    # Its checks have been given up, and were not answered to nobody.
    check(agent.counters()["cancelled"] > 0, agent.counters())
    measure(lab, agent, 10)


def test_slow(lab):
    """started frames end their own connections, and no other"""
    needs_root()
    _, agent = bring_up(lab)
    quiet = measure(lab, agent)
    begin = time.monotonic()
    stalled = [Client(agent.socket) for _ in range(30)]
    for n, client in enumerate(stalled):
        client.send(wire.check(5, "demo", "k")[:n + 1])
    loud = measure(lab, agent)
    compare("beside 30 that stall", quiet, loud)
    for client in stalled:
        same(client.error(), "slow")
        client.close()
    check(time.monotonic() - begin >= 5, "too soon")
    counters = agent.counters()
    same((counters["frames_slow"], counters["frames_bad"],
          counters["checks"]), (30, 0, 1000))
    measure(lab, agent, 10)


# Caps.

def crowd(client, first, count):
    client.send(b"".join(wire.check(first + n, "demo", "k")
                         for n in range(count)))


def overloaded(client, count):
    """Refused, by the policy of its rule, with a text."""
    for _ in range(count):
        kind, _, payload = client.receive()
        same(kind, wire.DECISION)
        d = wire.Decision(0, payload)
        same((d.outcome, d.reason, d.permit), ("failed", "overloaded", True))
        check(b"in flight" in payload, payload)


def at_cap(lab, cap, where="limits"):
    """
    Fills to the cap and goes over it; what is over is answered at once and
    asks no server. Returns what it all runs on, and the full client.
    """
    listeners = {"main": listener(lab), "other": listener(lab, "other")}
    limits = {}
    if where == "limits":
        limits[cap] = 20
    else:
        listeners["main"][cap] = 20
    sandbox, agent = bring_up(lab, SLOW, listeners=listeners, limits=limits)
    sandbox.command("delay 0 60000")
    full = Client(agent.socket)
    begin = time.monotonic()
    crowd(full, 2, 20)
    poll("the cap", lambda: agent.inflight() == 20)
    received = poll("its datagrams", lambda: [
        c for c in sandbox.counters() if c["received"] == 20])
    crowd(full, 100, 50)
    overloaded(full, 50)
    check(time.monotonic() - begin < SECONDS, "not at once")
    same((agent.inflight(), agent.counters()["failed_overloaded"]), (20, 50))
    same(agent.tenant("main")["counters"]["requests_sent"], 20)
    same(sandbox.counters(), received)
    return sandbox, agent, full


def freed(sandbox, agent, full):
    """What is in flight ends: there is room again, as much as before."""
    for n in range(20):
        full.send(wire.frame(wire.CANCEL, 2 + n))
    for _ in range(20):
        same(full.decision().outcome, "cancelled")
    same(agent.inflight(), 0)
    sandbox.command("delay 0 0")
    crowd(full, 200, 20)
    same({full.decision().outcome for _ in range(20)}, {"allowed"})
    full.close()


def test_cap_of_all(lab):
    """limits.max_inflight: on every listener, for every user"""
    needs_root()
    sandbox, agent, full = at_cap(lab, "max_inflight")
    got = Peer(lab, POLITE, polite, agent.socket, "demo", 5).hear()
    same(got["reasons"], {"overloaded": 5})
    other = Client(lab.socket_path("other"))
    crowd(other, 2, 1)
    overloaded(other, 1)
    other.close()
    freed(sandbox, agent, full)
    measure(lab, agent, 5)


def test_cap_of_user(lab):
    """limits.max_inflight_per_uid: on every listener, for that user alone"""
    needs_root()
    sandbox, agent, full = at_cap(lab, "max_inflight_per_uid")
    for path in (agent.socket, lab.socket_path("other")):
        other = Client(path)
        crowd(other, 2, 1)
        overloaded(other, 1)
        other.close()
    received = sandbox.counters()[0]["received"]
    friend = Peer(lab, POLITE, idle, agent.socket, "demo", 1, 20)
    same(friend.hear(), ["welcome"])
    poll("another's checks", lambda: agent.inflight() == 40)
    poll("their datagrams",
         lambda: sandbox.counters()[0]["received"] == received + 20)
    # A status and a wait are no checks: they are answered as ever.
    same(control_status(lab, agent)["inflight"], 40)
    agent.ctl("wait", "--timeout", "1000")
    friend.stop()
    poll("their end", lambda: agent.inflight() == 20)
    freed(sandbox, agent, full)


def test_cap_of_listener(lab):
    """max_inflight of a listener: for every user, there alone"""
    needs_root()
    sandbox, agent, full = at_cap(lab, "max_inflight", "listener")
    got = Peer(lab, POLITE, polite, agent.socket, "demo", 5).hear()
    same(got["reasons"], {"overloaded": 5})
    other = Client(lab.socket_path("other"))
    crowd(other, 2, 30)
    poll("the other's checks", lambda: agent.inflight() == 50)
    other.close()
    poll("their end", lambda: agent.inflight() == 20)
    freed(sandbox, agent, full)


# Connections.

def test_connections(lab):
    """over max_connections is ERROR (busy); ended ones make room"""
    needs_root()
    _, agent = bring_up(lab, listeners={
        "main": listener(lab, max_connections=20),
        "other": listener(lab, "other")})
    crowd_of_one = Peer(lab, GREEDY, idle, agent.socket, "demo", 30)
    same(sorted(crowd_of_one.hear()), ["busy"] * 10 + ["welcome"] * 20)
    # The listener is full for everybody; the other one is not.
    refused = Client(agent.socket, greet=False)
    same(refused.error(), "busy")
    refused.close()
    other = Client(lab.socket_path("other"))
    other.ping()
    other.close()
    counters = control_status(lab, agent)["counters"]
    same(counters["connections_refused"], 11)
    crowd_of_one.stop()
    poll("room", lambda: control_status(lab, agent)["listeners"][0][
        "connections"] == 0)
    measure(lab, agent, 5)


def test_connections_of_user(lab):
    """over max_connections_per_uid is ERROR (busy), for that user alone"""
    needs_root()
    _, agent = bring_up(
        lab, limits={"max_connections_per_uid": 20},
        listeners={"main": listener(lab), "other": listener(lab, "other")})
    crowd_of_one = Peer(lab, GREEDY, idle, agent.socket, "demo", 30)
    same(sorted(crowd_of_one.hear()), ["busy"] * 10 + ["welcome"] * 20)
    # On whatever listener.
    more = Peer(lab, GREEDY, idle, lab.socket_path("other"), "demo", 2)
    same(more.hear(), ["busy", "busy"])
    more.stop()
    measure(lab, agent, 5)
    # Our own uid at its cap: the control socket takes us all the same.
    own = [Client(agent.socket) for _ in range(20)]
    refused = Client(agent.socket, greet=False)
    same(refused.error(), "busy")
    refused.close()
    status = control_status(lab, agent)
    same(status["listeners"][0]["connections"], 40)
    same(status["counters"]["connections_refused"], 13)
    for client in own:
        client.ping()
        client.close()
    crowd_of_one.stop()
    poll("room", lambda: control_status(lab, agent)["listeners"][0][
        "connections"] == 0)
    fresh = Peer(lab, GREEDY, idle, agent.socket, "demo", 20)
    same(fresh.hear(), ["welcome"] * 20)
    fresh.stop()


def test_descriptors(lab):
    """every descriptor is used up: the control socket answers, all recovers"""
    needs_root()
    _, agent = bring_up(lab)
    resource.prlimit(agent.pid, resource.RLIMIT_NOFILE, (64, 64))
    hoard = Peer(lab, GREEDY, idle, agent.socket, "demo", 70)
    answers = hoard.hear()
    check(answers.count("busy") > 6 and answers.count("welcome") > 20 and
          len(answers) == 70, answers)
    # Who may not connect is told so, and the operator is served.
    refused = Client(agent.socket, greet=False)
    same(refused.error(), "busy")
    refused.close()
    for _ in range(5):
        status = control_status(lab, agent)
    same(status["listeners"][0]["connections"], answers.count("welcome"))
    # More that are refused and do not go: those have the kept ones.
    more = Peer(lab, GREEDY, idle, agent.socket, "demo", 30)
    same(more.hear(), ["busy"] * 30)
    begin = time.monotonic()
    control(lab, agent, "status")
    harness.say(["the operator waited %.2f s" % (time.monotonic() - begin)])
    more.stop()
    hoard.stop()
    poll("room", lambda: control_status(lab, agent)["listeners"][0][
        "connections"] == 0)
    measure(lab, agent, 50)


def test_no_descriptor_at_all(lab):
    """accept() that fails pauses, and goes on when there is one again"""
    _, agent = bring_up(lab)
    old = Client(agent.socket)

    def listener():
        old.send(wire.frame(wire.STATUS, 7))
        text = b""
        while True:
            kind, _, payload = old.receive()
            same(kind, wire.DOCUMENT)
            text += payload
            if text.endswith(b"}") and text.count(b"{") == text.count(b"}"):
                break
        return json.loads(text)["listeners"][0]

    def pauses():
        return listener()["accept_pauses"]

    # Those who came before are gone, and so are their descriptors.
    poll("the others to be gone", lambda: listener()["connections"] == 1)
    listener()
    used = {int(fd) for fd in os.listdir("/proc/%d/fd" % agent.pid)}
    free = min(set(range(len(used) + 1)) - used)
    before = resource.prlimit(agent.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(agent.pid, resource.RLIMIT_NOFILE, (free, before[1]))
    waiting = Client(agent.socket, greet=False)
    waiting.send(wire.hello() + wire.check(5, "demo", "k"))

    burnt, begin = cpu_seconds(agent.pid), time.monotonic()
    poll("five pauses", lambda: pauses() >= 5)
    took = time.monotonic() - begin
    old.send(wire.frame(wire.METRICS, 8))
    check(exposition.value(
        exposition.parse(old.text()), "rl_agent_listener_accept_pauses_total",
        kind="application") >= 5)
    check(took >= 0.35, "five pauses of 100 ms took", took)
    burnt = cpu_seconds(agent.pid) - burnt
    check(burnt < took / 2, "it spins:", burnt, "of", took, "seconds")
    old.ping()
    resource.prlimit(agent.pid, resource.RLIMIT_NOFILE, before)
    same(waiting.receive()[0], wire.WELCOME)
    same(waiting.decision().outcome, "allowed")
    waiting.close()
    old.close()


if __name__ == "__main__":
    harness.run([value for name, value in list(globals().items())
                 if name.startswith("test_")])
