#!/usr/bin/env python3
"""
The socket of the agent under load and under attack: malformed frames end
their own connection with the right ERROR and touch no other, slow and deaf
clients hold nobody up, caps answer at once, and a thousand checks at a time
are all decided, with a ledger that agrees.
"""

import os
import random
import socket
import struct
import uuid

import harness
import wire
from harness import check, poll, same
from wire import Client

ZONE = "sandbox.example.com"
LIMIT = 400
RULES = {
    "demo": {"tenant": "main",
             "resources": [{"bucket": "demo:{key}", "window_ms": 3600000,
                            "limit": 100000}]},
    # 400 in a year: a test sees no refill.
    "scarce": {"tenant": "main",
               "resources": [{"bucket": "scarce:{key}",
                              "window_ms": 4294967295, "limit": LIMIT}]},
}
# H = 30 s: a crowd on a slow machine is decided by a server all the same.
SLOW = {"unit_ms": 10000}


def bring_up(lab, policy=None, cluster=1, **more):
    key = lab.keygen("main", fmt=0, dedup_ms=0)
    sandbox = lab.sandbox(key, cluster=cluster, zone=ZONE)
    agent = lab.agent(lab.document({"main": {
        "key": {"file": key}, "policy": policy or harness.POLICY,
        "dns": {"name": ZONE, "nameservers": [sandbox.dns]}}}, RULES, **more))
    return sandbox, agent


def fresh(agent, what="demo"):
    """Another client is served as ever."""
    client = Client(agent.socket)
    client.ping()
    client.send(wire.check(7, what, "fresh"))
    same(client.decision().outcome, "allowed")
    client.close()


# What is wrong, and which ERROR it is.

def malformed_frames():
    good = wire.check(5, "demo", "k")
    tail = good[16:]
    yield "length below the head", "malformed", wire.frame(
        wire.PING, 5, length=15)
    yield "length zero", "malformed", wire.frame(wire.PING, 5, length=0)
    yield "length over the maximum", "malformed", wire.frame(
        wire.PING, 5, length=wire.MAX_FRAME + 1)
    yield "length of 4 GiB", "malformed", wire.frame(
        wire.PING, 5, length=0xFFFFFFFF)
    yield "type 0", "type", wire.frame(0, 5)
    yield "unknown type", "type", wire.frame(0x7777, 5)
    yield "an agent's type", "type", wire.frame(wire.DECISION, 5, tail)
    yield "an agent's delay", "type", wire.frame(wire.DELAY, 5, bytes(14))
    yield "a second HELLO", "greeting", wire.hello()
    yield "a check cut short", "malformed", wire.frame(
        wire.CHECK, 5, tail[:-1])
    yield "a check of no bytes", "malformed", wire.frame(wire.CHECK, 5)
    yield "a check and a byte", "malformed", wire.frame(
        wire.CHECK, 5, tail + b"\0")
    yield "a rule that ends outside", "malformed", wire.frame(
        wire.CHECK, 5, wire.base() + struct.pack("<H", 65535) + b"demo")
    yield "a rule of 256 bytes", "malformed", wire.check(5, "r" * 256)
    yield "a key of 256 bytes", "malformed", wire.check(5, "demo", "k" * 256)
    yield "a ping of 65 bytes", "malformed", wire.frame(
        wire.PING, 5, bytes(65))
    yield "a status with a payload", "malformed", wire.frame(
        wire.STATUS, 5, b"x")
    yield "a cancel with a payload", "malformed", wire.frame(
        wire.CANCEL, 5, b"x")
    yield "a quit with a payload", "malformed", wire.frame(wire.QUIT, 5, b"x")
    yield "a wait of three bytes", "malformed", wire.frame(
        wire.WAIT, 5, b"abc")
    yield "limiters with a payload", "malformed", wire.frame(
        wire.LIMITERS, 5, b"x")
    for name, asked in (
            ("an acquire", wire.acquire(5, "mail", "k")),
            ("a try-acquire", wire.try_acquire(5, "mail", 0, "k")),
            ("an error-begin", wire.error_begin(5, "smtp", "k")),
            ("an error-success", wire.error_success(5, "smtp", "k")),
            ("a set-rate", wire.set_rate(5, "mail", 10**12))):
        kind, = struct.unpack_from("<H", asked, 4)
        yield name + " cut short", "malformed", wire.frame(
            kind, 5, asked[16:-1])
        yield name + " and a byte", "malformed", wire.frame(
            kind, 5, asked[16:] + b"\0")
    yield "a limiter of 256 bytes", "malformed", wire.acquire(5, "l" * 256)
    yield "a report cut short", "malformed", wire.frame(
        wire.REPORT, 5, struct.pack("<II", 5, 0) + wire.string(""))
    yield "more guards than may be", "malformed", wire.frame(
        wire.ADHOC, 5, wire.base() + wire.string("") + wire.string("") +
        struct.pack("<HH", 32, 0))
    yield "more resources than there are", "malformed", wire.frame(
        wire.ADHOC, 5, wire.base() + wire.string("") + wire.string("") +
        struct.pack("<HH", 0, 40))
    yield "a label of 257 bytes", "malformed", wire.adhoc(
        5, [(1000, 5, 1, "b")], label="l" * 257)


def test_malformed(lab):
    """each malformed frame: its ERROR, and the others go on"""
    _, agent = bring_up(lab)
    witness = Client(agent.socket)
    bad = 0
    for what, error, frame in malformed_frames():
        client = Client(agent.socket)
        client.send(frame)
        same(client.error(), error, what)
        client.close()
        witness.ping()
        bad += 1
    witness.send(wire.check(5, "demo", "k"))
    same(witness.decision().outcome, "allowed")
    witness.close()
    same(agent.counters()["frames_bad"], bad)
    fresh(agent)


def test_greeting(lab):
    """what comes instead of a HELLO"""
    _, agent = bring_up(lab)
    for what, error, first in (
            ("a check first", "greeting", wire.check(5, "demo", "k")),
            ("a ping first", "greeting", wire.frame(wire.PING, 5)),
            ("another magic", "malformed", wire.hello(magic=0x41414141)),
            ("later versions", "version", wire.hello(low=2, high=9)),
            ("no versions", "version", wire.hello(low=0, high=0)),
            ("a HELLO cut short", "malformed",
             wire.frame(wire.HELLO, 1, b"RLI")),
            ("HTTP", "malformed", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")):
        client = Client(agent.socket, greet=False)
        client.send(first)
        same(client.error(), error, what)
        client.close()
    client = Client(agent.socket, greet=False)
    client.send(wire.hello(low=1, high=9))
    same(client.receive()[0], wire.WELCOME)
    client.close()
    fresh(agent)


def limiter_values(client):
    for what, frame, reason in (
            ("permits 0", wire.acquire(5, "mail", permits=0), "validation"),
            ("a million and one", wire.acquire(5, "mail", permits=1000001),
             "validation"),
            ("permits 2^32-1", wire.try_acquire(
                5, "mail", 0, permits=0xFFFFFFFF), "validation"),
            ("a wait over a year", wire.try_acquire(
                5, "mail", wire.YEAR_US + 1), "validation"),
            ("a wait of 2^64-1", wire.try_acquire(5, "mail", 2**64 - 1),
             "validation"),
            ("no such limiter", wire.acquire(5, "m\0"), "unknown-rule"),
            ("no limiter's name", wire.try_acquire(5, "", 0),
             "unknown-rule"),
            ("no such control", wire.error_begin(5, "mail"),
             "unknown-rule")):
        client.send(frame)
        d = client.delay()
        same((d.reason, d.wait_us), (reason, 0), what)
        check(d.text, what)
    client.send(wire.error_success(5, "mail"))
    same(client.done()[0], "unknown-rule")
    client.send(wire.set_rate(5, "mail", 10**12))
    same(client.done()[0], "unauthorised")


def test_values(lab):
    """frames in good form that ask for nonsense are answered, not closed"""
    sandbox, agent = bring_up(lab, limiters={
        "mail": {"permits_per_second": 1}})
    client = Client(agent.socket)
    cases = (
        ("tokens 0", wire.check(5, "demo", "k", tokens=0), "validation"),
        ("tokens 65536", wire.check(5, "demo", "k", tokens=65536),
         "validation"),
        ("tokens 2^32-1", wire.check(5, "demo", "k", tokens=0xFFFFFFFF),
         "validation"),
        ("no such rule", wire.check(5, "x\0y", "k"), "unknown-rule"),
        ("no key", wire.check(5, "demo"), "validation"),
        ("ad-hoc tokens 0", wire.adhoc(5, [(1000, 5, 0, "b")]),
         "validation"),
        ("window 0", wire.adhoc(5, [(0, 5, 1, "b")]), "validation"),
        ("limit 0", wire.adhoc(5, [(1000, 0, 1, "b")]), "validation"),
        ("no name", wire.adhoc(5, [(1000, 5, 1, "")]), "validation"),
        ("no tenant", wire.adhoc(5, [(1000, 5, 1, "b")], tenant="x"),
         "validation"),
        ("no UUID", wire.check(5, "demo", "k", operation=b"\xff" * 16),
         "validation"),
    )
    for what, frame, reason in cases:
        client.send(frame)
        d = client.decision()
        same((d.outcome, d.reason, d.permit), ("failed", reason, False), what)
    limiter_values(client)
    client.send(wire.adhoc(5))
    d = client.decision()
    same((d.outcome, d.permit), ("allowed", True), "nothing was asked for")
    same([c["received"] for c in sandbox.counters()], [0])
    # A key of NUL bytes is a key, and a label may begin with one.
    client.send(wire.check(5, "demo", "\0\0"))
    same(client.decision().outcome, "allowed")
    client.send(wire.adhoc(5, [(1000, 5, 1, "\0b")], label="\0l"))
    same(client.decision().outcome, "allowed")
    client.close()


def acquires(client):
    """A permit takes 1000 s; who comes next pays for it."""
    for key in (None, "", "\0k"):
        client.send(wire.acquire(5, "mail", key))
        d = client.delay()
        same((d.id, d.reason, d.wait_us), (5, "ok", 0), key)
        client.send(wire.try_acquire(6, "mail", 1000000, key))
        d = client.delay()
        same((d.id, d.reason), (6, "resource"), key)
        check(990000000 < d.wait_us <= 1000000000, d)
    client.send(wire.acquire(7, "mail", permits=1000000))
    d = client.delay()
    same(d.reason, "ok")
    check(990000000 < d.wait_us <= 1000000000, d)
    # That was 31 years' worth.
    client.send(wire.acquire(8, "mail"))
    d = client.delay()
    same((d.reason, d.wait_us), ("overloaded", 0))


def begins(client):
    """One is free, then delays of 60 and 120 s queue."""
    for least, most in ((0, 0), (30, 60), (150, 180)):
        client.send(wire.error_begin(9, "smtp"))
        d = client.delay()
        same((d.id, d.reason), (9, "ok"))
        check(least <= d.wait_us / 1000000 <= most, d)
    client.send(wire.error_success(10, "smtp"))
    same(client.done(), ("ok", ""))


def rates(client, control):
    """Only the control socket sets them, and it does nothing else."""
    for limiter, rate, reason in (
            ("mail", 10**9 - 1, "validation"),
            ("mail", 10**18 + 1, "validation"),
            ("smtp", 10**12, "unknown-rule"),
            ("mail", 10**18, "ok")):
        control.send(wire.set_rate(5, limiter, rate))
        same(control.done()[0], reason, limiter, rate)
    client.send(wire.acquire(11, "mail", "fresh", permits=1000000))
    same(client.delay().wait_us, 0)
    client.send(wire.try_acquire(12, "mail", 10000000, "fresh"))
    d = client.delay()
    same(d.reason, "ok")
    check(d.wait_us <= 1000000, d)
    for frame in (wire.acquire(5, "mail"), wire.try_acquire(5, "mail", 0),
                  wire.error_begin(5, "smtp")):
        control.send(frame)
        d = control.delay()
        same((d.reason, d.wait_us), ("unauthorised", 0))
    control.send(wire.error_success(5, "smtp"))
    same(control.done()[0], "unauthorised")


def test_limiters(lab):
    """what is asked of limiters and error controls, byte for byte"""
    _, agent = bring_up(lab, limiters={"mail": {"permits_per_second": 0.001}},
                        error_controls={"smtp": {
                            "burst": 1, "min_delay_ms": 60000,
                            "max_delay_ms": 3600000}})
    client = Client(agent.socket)
    control = Client(os.path.join(os.path.dirname(agent.socket),
                                  "control.sock"))
    acquires(client)
    begins(client)
    rates(client, control)
    for asking in (client, control):
        asking.send(wire.limiters(13))
        shown = str(asking.document())
        check("mail" in shown and "smtp" in shown, shown)
        asking.close()


def test_same_id(lab):
    """a request id that is in flight is refused; CANCEL of none is not"""
    sandbox, agent = bring_up(lab, SLOW)
    sandbox.command("delay 0 60000")
    client = Client(agent.socket)
    client.send(wire.frame(wire.CANCEL, 1234))
    client.ping()
    client.send(wire.check(5, "demo", "k"))
    poll("the check in flight", lambda: agent.inflight() == 1)
    client.send(wire.frame(wire.CANCEL, 5))
    same(client.decision().outcome, "cancelled")
    client.send(wire.check(5, "demo", "k") + wire.check(5, "demo", "k"))
    same(client.error(), "id")
    client.close()
    poll("the end of both", lambda: agent.inflight() == 0)
    # A closed connection cancels what was in flight on it.
    same(agent.counters()["cancelled"], 2)


def test_noise(lab):
    """random bytes and mutated frames from many connections"""
    _, agent = bring_up(
        lab, limiters={"mail": {"permits_per_second": 1}},
        error_controls={"smtp": {}})
    seed = int(os.environ.get("TEST_SEED") or random.SystemRandom().getrandbits(
        32))
    harness.say(["TEST_SEED=%d" % seed])
    rng = random.Random(seed)
    witness = Client(agent.socket)
    seeds = [wire.check(5, "demo", "k"), wire.hello(),
             wire.adhoc(6, [(1000, 5, 1, "b")] * 3,
                        [(1000, 10, 4, 2, 80, "g")] * 3),
             wire.frame(wire.PING, 7, b"x" * 64), wire.frame(wire.STATUS, 8),
             wire.acquire(9, "mail", "k"), wire.try_acquire(10, "mail", 1),
             wire.error_begin(11, "smtp"), wire.error_success(12, "smtp", "k"),
             wire.set_rate(13, "mail", 10**12)]
    for _ in range(300):
        client = Client(agent.socket, greet=rng.random() < 0.8)
        data = bytearray(b"".join(rng.choice(seeds)
                                  for _ in range(rng.randint(1, 4))))
        for _ in range(rng.randint(1, 8)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        try:
            client.send(bytes(data[:rng.randint(1, len(data))]))
        except (BrokenPipeError, ConnectionResetError):
            pass
        client.close()
    witness.ping()
    witness.close()
    fresh(agent)
    poll("no connection but ours",
         lambda: agent.status()["listeners"][0]["connections"] == 1)


# Slow, deaf and greedy clients.

def test_slow(lab):
    """frames in single bytes are fine; one that never ends is ERROR (slow)"""
    _, agent = bring_up(lab)
    stalled = Client(agent.socket)
    stalled.send(wire.check(5, "demo", "k")[:20])
    client = Client(agent.socket)
    for byte in wire.check(5, "demo", "k"):
        client.send(bytes([byte]))
    same(client.decision().outcome, "allowed")
    client.close()
    fresh(agent)
    same(stalled.error(), "slow")
    stalled.close()


def test_deaf(lab):
    """a client that never reads is no longer read from, and costs no other"""
    _, agent = bring_up(lab)
    deaf = Client(agent.socket)
    deaf.sock.settimeout(1)
    sent = 0
    ping = wire.frame(wire.STATUS, 9) * 64
    try:
        while sent < 64 * 1024 * 1024:
            sent += deaf.sock.send(ping)
    except TimeoutError:
        pass
    except (BrokenPipeError, ConnectionResetError):
        pass  # it may be closed instead
    check(sent < 64 * 1024 * 1024, "took", sent, "bytes and more")
    fresh(agent)
    with open("/proc/%d/status" % agent.pid, encoding="ascii") as f:
        text = f.read()
    # Not readable for others' processes; ours it is.
    rss = [line for line in text.split("\n") if line.startswith("VmRSS")]
    harness.say(["the agent's " + line for line in rss])
    deaf.close()
    fresh(agent)


def test_caps(lab):
    """what is over a cap is Failed (overloaded) or ERROR (busy) at once"""
    listeners = {"main": {"path": lab.socket_path(), "mode": "0600",
                          "max_inflight": 3, "max_connections": 4}}
    sandbox, agent = bring_up(lab, SLOW, listeners=listeners)
    sandbox.command("delay 0 60000")
    client = Client(agent.socket)
    client.send(b"".join(wire.check(n, "demo", "k") for n in range(2, 7)))
    for ident in (5, 6):
        d = client.decision()
        same((d.id, d.outcome, d.reason, d.permit),
             (ident, "failed", "overloaded", True))
    others = [Client(agent.socket) for _ in range(3)]
    refused = Client(agent.socket, greet=False)
    same(refused.error(), "busy")
    refused.close()
    for other in others:
        other.ping()
        other.close()
    client.close()
    poll("nothing in flight", lambda: lab.ctl(
        "--socket", os.path.join(os.path.dirname(agent.socket),
                                 "control.sock"),
        "status", "--json").json()["inflight"] == 0)
    sandbox.command("delay 0 0")
    fresh(agent)


# A thousand at once.

def ledger(sandbox, operations):
    """{(server_id, unique_id): decision}, and what each server consumed."""
    decisions, consumed = {}, {}
    for event in sandbox.events("request"):
        key = (event["server_id"], event["unique_id"])
        check(key not in decisions, "decided twice:", key)
        decisions[key] = event["decision"]
        consumed[key[0]] = consumed.get(key[0], 0) + sum(
            c["tokens"] for c in event["consumed"])
        same(sum(c["tokens"] for c in event["consumed"]),
             1 if event["decision"] == "allowed" else 0, event)
        check(event["unique_id"] in operations, event)
    return decisions, consumed


def test_thousand_frames(lab):
    """1,000 checks in flight at once over 200 connections"""
    sandbox, agent = bring_up(lab, SLOW, cluster=3)
    for n in range(3):
        sandbox.command("delay %d 1000" % n)
    clients = [Client(agent.socket) for _ in range(200)]
    operations = {}
    for index, client in enumerate(clients):
        frames = b""
        for ident in range(2, 7):
            operation = uuid.uuid4()
            operations[operation.hex] = (index, ident)
            frames += wire.check(ident, "scarce", "crowd",
                                 operation=operation.bytes)
        client.send(frames)
    most = 0

    def seen():
        nonlocal most
        most = max(most, agent.inflight())
        return most == 1000

    # The servers hold each answer for a second.
    poll("1,000 in flight", seen)
    answers = {}
    for index, client in enumerate(clients):
        for _ in range(5):
            d = client.decision()
            check((index, d.id) not in answers, "answered twice")
            answers[index, d.id] = d
        client.close()
    same(len(answers), 1000)
    outcomes = [d.outcome for d in answers.values()]
    same((outcomes.count("allowed"), outcomes.count("denied")),
         (LIMIT, 1000 - LIMIT))
    decisions, consumed = ledger(sandbox, operations)
    for operation, where in operations.items():
        d = answers[where]
        same(decisions[d.server_id, operation], d.outcome, d)
    oldest = sandbox.ids()[0]
    if {d.server_id for d in answers.values()} == {oldest}:
        same(consumed[oldest], outcomes.count("allowed"))
    for server in consumed:
        check(consumed[server] <= LIMIT, server, consumed[server])
    same(agent.counters()["checks"], 1000)
    same(agent.inflight(), 0)


def test_thousand_calls(lab):
    """1,000 checks of 200 concurrent clients of the shim"""
    sandbox, agent = bring_up(lab, SLOW)
    (sums,) = lab.shimclient("flood", agent.socket, "scarce", "200", "5")
    harness.say([sums])
    same((sums["allowed"], sums["denied"], sums["failed"], sums["cancelled"],
          sums["wrong"]), (LIMIT, 1000 - LIMIT, 0, 0, 0))
    events = sandbox.events("request")
    same(len({e["unique_id"] for e in events}), 1000)
    same(sum(c["tokens"] for e in events for c in e["consumed"]), LIMIT)
    same(agent.counters()["allowed"], LIMIT)


def test_stale_socket(lab):
    """a socket that a killed agent left behind does not stop the next one"""
    key = lab.keygen("main")
    sandbox = lab.sandbox(key, zone=ZONE)
    text = lab.document({"main": {
        "key": {"file": key}, "policy": harness.POLICY,
        "dns": {"name": ZONE, "nameservers": [sandbox.dns]}}}, RULES)
    agent = lab.agent(text)
    agent.kill()
    check(os.path.exists(agent.socket), "SIGKILL leaves it")
    agent = lab.agent(text)
    fresh(agent)
    agent.kill()
    # But what is not a socket is not ours to remove.
    os.unlink(agent.socket)
    with open(agent.socket, "w", encoding="ascii") as f:
        f.write("precious")
    agent = lab.agent(text, ready=False)
    same(agent.wait(), 1)
    with open(agent.socket, encoding="ascii") as f:
        same(f.read(), "precious")


def test_listens_where_told(lab):
    """a live socket of another program is left alone"""
    key = lab.keygen("main")
    os.mkdir(os.path.dirname(lab.socket_path()))
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        other.bind(lab.socket_path())
        other.listen(5)
        text = lab.document({"main": {
            "key": {"file": key}, "policy": harness.POLICY,
            "servers": [{"id": "1", "address": "127.0.0.1:9"}]}}, RULES)
        agent = lab.agent(text, ready=False)
        same(agent.wait(), 1)
        check("in use" in agent.err(), agent.err())
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
            caller.connect(lab.socket_path())


if __name__ == "__main__":
    harness.run([value for name, value in list(globals().items())
                 if name.startswith("test_")])
