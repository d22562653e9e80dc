#!/usr/bin/env python3
"""
Servers and networks that misbehave, end to end: each fault of rl-sandbox on
one or all of three servers. Decisions come out as the r-client specification
says, what is invalid is counted as what it is and changes nothing else, and
the ledger shows that no server was made to consume an operation twice.
"""

import os
import struct
import uuid

import harness
import wire
from harness import check, poll, same

RULES = {"demo": {
    "tenant": "main",
    "resources": [{"bucket": name + ":{key}", "window_ms": 3600000,
                   "limit": 100000} for name in ("one", "two")],
    "guards": [{"tracker": "backend", "below_ms": 100}]}}
TRACKERS = {"backend": {"ttl_ms": 60000, "max_samples": 100,
                        "buffer_size": 32, "min_samples": 3}}
CHECKS = 150

# Each server is asked once and for all, so that datagrams can be counted.
# P(0) = 0.5 s.
ONCE = {"unit_ms": 500, "completion_delivery": False}
P0_US = 500000

# Which counters of the agent a damage of the sandbox may raise.
DAMAGES = {
    "bit": {"invalid_malformed", "invalid_auth", "invalid_operation",
            "invalid_server", "invalid_content"},
    "cut": {"invalid_malformed", "invalid_auth"},
    "tail": {"invalid_auth"}, "auth": {"invalid_auth"},
    "operation": {"invalid_operation"},
    "type": {"invalid_malformed"}, "size": {"invalid_malformed"},
    "count": {"invalid_malformed", "invalid_content"},
    "empty": {"invalid_content"}, "block": {"invalid_content"},
    "id": {"invalid_content"}, "order": {"invalid_content"},
}


def bring_up(lab, *faults, policy=None, auth="aes", **tenant):
    """Three servers that are known without DNS, and an agent."""
    key = lab.keygen("main-" + auth, auth=auth)
    sandbox = lab.sandbox(key, *faults)
    agent = lab.agent(lab.document({"main": dict({
        "key": {"file": key}, "policy": policy or harness.POLICY,
        "servers": [{"id": s["server_id"], "address": s["addresses"][0]}
                    for s in sandbox.servers]}, **tenant)}, RULES, TRACKERS))
    return sandbox, agent


class Checks(wire.Client):
    """Checks on one connection, all at once."""

    def __init__(self, agent, count, timeout_ms=0):
        super().__init__(agent.socket)
        self.operations = {n + 10: uuid.uuid4() for n in range(count)}
        self.send(b"".join(
            wire.check(ident, "demo", "k%d" % ident, operation=op.bytes,
                       deadline_ms=timeout_ms)
            for ident, op in self.operations.items()))

    def decisions(self):
        """One for each, by the operation's id as the ledger writes it."""
        found = {}
        for _ in self.operations:
            kind, ident, payload = self.receive()
            same(kind, wire.DECISION)
            name = self.operations[ident].hex
            check(name not in found, "decided twice:", name)
            found[name] = decode(payload)
        return found

    def finish(self):
        """Nothing more has come, a second decision least of all."""
        self.ping()
        self.close()


def decode(payload):
    level, = struct.unpack_from("<H", payload, 4)
    server, elapsed = struct.unpack_from("<QQ", payload, 12)
    return {"outcome": wire.OUTCOMES[payload[0]], "permit": payload[1] == 1,
            "reason": wire.REASONS[payload[3]], "round": level,
            "server_id": str(server), "elapsed_us": elapsed}


def decide(agent, count=CHECKS):
    client = Checks(agent, count)
    found = client.decisions()
    client.finish()
    return found


def all_decided_by(decisions, server_id, least_us=0, level=0):
    for d in decisions.values():
        same((d["outcome"], d["server_id"], d["round"]),
             ("allowed", server_id, level), d)
        check(d["elapsed_us"] >= least_us, d)


def consumed_once(sandbox, operations, servers=3):
    """By every server once, the tokens of the rule; and nothing else."""
    def there():
        return len(sandbox.events("request")) >= servers * len(operations)
    poll("the requests at %d servers" % servers, there)
    seen = set()
    for e in sandbox.events("request"):
        what = (e["server_id"], e["unique_id"])
        check(what not in seen, "consumed twice:", e)
        seen.add(what)
        same([c["tokens"] for c in e["consumed"]], [1, 1], e)
    same({unique for _, unique in seen}, set(operations))
    same(len(seen), servers * len(operations))


def changed(agent, before):
    """The counters of the tenant that went up, and by how much."""
    return {name: value - before[name]
            for name, value in agent.counters("main").items()
            if value != before[name]}


def settled(agent, expected):
    """The counters once they are so, or what they were instead."""
    def there():
        return all(counters().get(name, 0) == value
                   for name, value in expected.items())

    def counters():
        return {name: value for name, value in
                agent.counters("main").items() if value}
    try:
        poll("counters", there)
    except harness.Failure:
        pass
    same(counters(), expected)


def servers(agent):
    return agent.ctl("servers", "--json").json()["servers"]


def invalid(counters):
    return {name: value for name, value in counters.items()
            if name.startswith("invalid_")}


def told(sandbox, fault):
    """What the ledger says of a fault, answer by answer."""
    return [e["faults"][fault] for e in sandbox.events()
            if fault in e.get("faults", {})]


# Corruption.

def fits_damage(got, kinds):
    """Each damaged answer raised one counter, and one that fits it."""
    same(sum(got.values()), len(kinds), got)
    for name in set(got) | {n for names in DAMAGES.values() for n in names}:
        least = sum(1 for kind in kinds if DAMAGES[kind] == {name})
        most = sum(1 for kind in kinds if name in DAMAGES[kind])
        check(least <= got.get(name, 0) <= most, name, got, sorted(kinds))


def corrupt_oldest(lab, auth):
    # An invalid answer is not asked for another source port either.
    sandbox, agent = bring_up(lab, "--server", "0", "--corrupt", "1",
                              "--rebind", "1", policy=ONCE, auth=auth)
    before = agent.counters("main")
    decisions = decide(agent)
    all_decided_by(decisions, sandbox.ids()[1], P0_US)
    consumed_once(sandbox, decisions)
    kinds = told(sandbox, "corrupt")
    # Every kind that such an answer can suffer was tried.
    same(set(kinds), set(DAMAGES) - ({"tail"} if auth != "aes" else set()))
    poll("all answers", lambda: sum(
        n for name, n in changed(agent, before).items()
        if name.startswith(("invalid_", "answers"))) == 3 * CHECKS)
    got = changed(agent, before)
    fits_damage(invalid(got), kinds)
    got = {name: n for name, n in got.items() if name not in invalid(got)}
    same(got, {"operations": CHECKS, "selected": CHECKS,
               "requests_sent": 3 * CHECKS, "answers": 2 * CHECKS})
    same([(s["answered"], s["selected"]) for s in servers(agent)],
         [(0, 0), (CHECKS, CHECKS), (CHECKS, 0)])
    same([(c["corrupted"], c["allowed"], c["answered"])
          for c in sandbox.counters()],
         [(CHECKS, CHECKS, CHECKS)] + [(0, CHECKS, CHECKS)] * 2)


def test_corrupt_oldest_aes(lab):
    """corrupt answers of the oldest, AES: the next oldest decides at P(0)"""
    corrupt_oldest(lab, "aes")


def test_corrupt_oldest_cookie(lab):
    """the same with a cookie"""
    corrupt_oldest(lab, "cookie")


def test_corrupt_oldest_none(lab):
    """the same without a secret"""
    corrupt_oldest(lab, "none")


def test_corrupt_all(lab):
    """corrupt answers of all three: Failed (timeout) at H, after replays"""
    sandbox, agent = bring_up(lab, "--corrupt", "1",
                              policy=harness.SHORT, on_failure="closed")
    decisions = decide(agent)
    for d in decisions.values():
        same((d["outcome"], d["reason"]), ("failed", "timeout"), d)
        check(d["elapsed_us"] >= 3e3 * harness.SHORT["unit_ms"], d)
    consumed_once(sandbox, decisions)
    counters = agent.counters("main")
    same([counters[name] for name in (
        "timeouts", "selected", "answers", "requests_sent", "replays_sent",
        "deliveries_sent")], [CHECKS, 0, 0, 6 * CHECKS, 3 * CHECKS, 0])
    poll("all damaged answers", lambda: sum(invalid(agent.counters(
        "main")).values()) == 6 * CHECKS)
    same([s["answered"] for s in servers(agent)], [0, 0, 0])


def test_some_corrupt(lab):
    """half of all answers corrupt: whole ones decide, and the older ones"""
    sandbox, agent = bring_up(lab, "--seed", "5", "--corrupt", "0.5",
                              policy=dict(ONCE, replay_count=0))
    decisions = decide(agent)
    consumed_once(sandbox, decisions)
    whole = {}
    for e in sandbox.events("request"):
        if "faults" not in e:
            whole.setdefault(e["unique_id"], []).append(int(e["server_id"]))
    for operation, d in decisions.items():
        if operation not in whole:
            same((d["outcome"], d["reason"]), ("failed", "timeout"), d)
            continue
        same((d["outcome"], d["server_id"]),
             ("allowed", str(min(whole[operation]))), d)
        if d["server_id"] != sandbox.ids()[0]:
            check(d["elapsed_us"] >= P0_US, d)
    check(0 < len(whole) < CHECKS, len(whole))


# Wrong ids.

def test_wrong_id_oldest(lab):
    """another server id from the oldest: not a member, so not an answer"""
    sandbox, agent = bring_up(lab, "--server", "0", "--wrong-id", "1",
                              policy=ONCE)
    decisions = decide(agent)
    all_decided_by(decisions, sandbox.ids()[1], P0_US)
    consumed_once(sandbox, decisions)
    settled(agent, {"operations": CHECKS, "selected": CHECKS,
                    "requests_sent": 3 * CHECKS, "answers": 2 * CHECKS,
                    "invalid_server": CHECKS})
    ids = told(sandbox, "wrong_id")
    same(len(ids), CHECKS)
    oldest = int(sandbox.ids()[0])
    for wrong in ids:
        # As old as the oldest: only the whole number tells it apart.
        same(int(wrong) >> 23, oldest >> 23)
        check(wrong not in sandbox.ids(), wrong)
    same([c["wrong-id"] for c in sandbox.counters()], [CHECKS, 0, 0])
    same([s["answered"] for s in servers(agent)], [0, CHECKS, CHECKS])


def test_wrong_id_all(lab):
    """another server id from all: Failed (timeout)"""
    sandbox, agent = bring_up(lab, "--wrong-id", "1", policy=harness.SHORT)
    decisions = decide(agent)
    same({(d["outcome"], d["reason"]) for d in decisions.values()},
         {("failed", "timeout")})
    consumed_once(sandbox, decisions)
    settled(agent, {"operations": CHECKS, "timeouts": CHECKS,
                    "requests_sent": 6 * CHECKS, "replays_sent": 3 * CHECKS,
                    "invalid_server": 6 * CHECKS})


# Duplicates.

def test_duplicate_oldest(lab):
    """the oldest answers twice: one decision, the second is a duplicate"""
    sandbox, agent = bring_up(
        lab, "--server", "0", "--duplicate", "1", "--server", "1", "--delay",
        "300", "--server", "2", "--delay", "300", policy=ONCE)
    client = Checks(agent, CHECKS)
    decisions = client.decisions()
    all_decided_by(decisions, sandbox.ids()[0])
    settled(agent, {"operations": CHECKS, "selected": CHECKS,
                    "requests_sent": 3 * CHECKS, "answers": CHECKS,
                    "answers_duplicate": CHECKS, "answers_late": 2 * CHECKS})
    client.finish()
    consumed_once(sandbox, decisions)
    same([(c["sent-twice"], c["answered"], c["duplicate"])
          for c in sandbox.counters()],
         [(CHECKS, 2 * CHECKS, 0)] + [(0, CHECKS, 0)] * 2)


def test_duplicate_next(lab):
    """a younger one answers twice before the oldest does: it still waits"""
    sandbox, agent = bring_up(
        lab, "--server", "0", "--delay", "100", "--server", "1",
        "--duplicate", "1", "--server", "2", "--drop", "1", policy=ONCE)
    client = Checks(agent, CHECKS)
    decisions = client.decisions()
    all_decided_by(decisions, sandbox.ids()[0], 99000)
    settled(agent, {"operations": CHECKS, "selected": CHECKS,
                    "requests_sent": 3 * CHECKS, "answers": 2 * CHECKS,
                    "answers_duplicate": CHECKS})
    client.finish()
    consumed_once(sandbox, decisions, servers=2)
    same(agent.counters()["allowed"], CHECKS)


def test_duplicate_all(lab):
    """every answer twice, in any order: one decision each"""
    sandbox, agent = bring_up(lab, "--duplicate", "1", "--jitter", "100",
                              policy=ONCE)
    client = Checks(agent, CHECKS)
    decisions = client.decisions()
    all_decided_by(decisions, sandbox.ids()[0])
    consumed_once(sandbox, decisions)
    # Nobody waits for a fourth answer: what follows is of no operation.
    poll("six answers to each", lambda: sum(
        agent.counters("main")[name] for name in (
            "answers", "answers_late", "answers_duplicate",
            "invalid_operation")) == 6 * CHECKS)
    client.finish()
    counters = agent.counters("main")
    same((counters["selected"], agent.counters()["allowed"]),
         (CHECKS, CHECKS))
    check(counters["answers_duplicate"] > 0, counters)


# Loss.

def test_drop_oldest(lab):
    """the oldest hears nothing: the next one decides, always after P(0)"""
    sandbox, agent = bring_up(lab, "--server", "0", "--drop", "1",
                              policy={"unit_ms": 300})
    count = 4  # one after the other: no suspicion without suspect_after
    for n in range(count):
        d = agent.check("demo", "--key", "k%d" % n)
        same((d["outcome"], d["server_id"], d["round"]),
             ("allowed", sandbox.ids()[1], 0), d)
        check(d["elapsed_us"] >= 300000, d)
    settled(agent, {"operations": count, "selected": count,
                    "requests_sent": 4 * count, "deliveries_sent": count,
                    "answers": 2 * count})
    poll("all datagrams at the servers", lambda: [
        (c["dropped"], c["request"]) for c in sandbox.counters()] == [
            (2 * count, 0), (0, count), (0, count)])


def test_drop_all(lab):
    """all hear nothing: Failed (timeout), each was asked twice"""
    sandbox, agent = bring_up(lab, "--drop", "1", policy=harness.SHORT)
    decisions = decide(agent)
    for d in decisions.values():
        same((d["outcome"], d["reason"], d["permit"]),
             ("failed", "timeout", True), d)
        check(d["elapsed_us"] >= 3e3 * harness.SHORT["unit_ms"], d)
    settled(agent, {"operations": CHECKS, "timeouts": CHECKS,
                    "requests_sent": 6 * CHECKS, "replays_sent": 3 * CHECKS})
    poll("all datagrams at the servers", lambda: [
        c["dropped"] for c in sandbox.counters()] == [2 * CHECKS] * 3)
    same(sandbox.events("request"), [])


# Delay.

def test_late_oldest(lab):
    """the oldest answers after P(0): too late to decide, and counted so"""
    sandbox, agent = bring_up(lab, "--server", "0", "--delay", "900",
                              policy=ONCE)
    client = Checks(agent, CHECKS)
    decisions = client.decisions()
    all_decided_by(decisions, sandbox.ids()[1], P0_US)
    settled(agent, {"operations": CHECKS, "selected": CHECKS,
                    "requests_sent": 3 * CHECKS, "answers": 2 * CHECKS,
                    "answers_late": CHECKS})
    client.finish()
    consumed_once(sandbox, decisions)
    same([(s["answered"], s["selected"]) for s in servers(agent)],
         [(CHECKS, 0), (CHECKS, CHECKS), (CHECKS, 0)])


def test_next_round(lab):
    """all answer after the first round: it is decided in the second"""
    sandbox, agent = bring_up(lab, "--delay", "700", policy=harness.POLICY)
    decisions = decide(agent)
    all_decided_by(decisions, sandbox.ids()[0], 699000, level=1)
    consumed_once(sandbox, decisions)
    same(agent.counters("main")["replays_sent"], 3 * CHECKS)


def test_past_the_horizon(lab):
    """all answer after H: Failed (timeout), but they are known to be alive"""
    sandbox, agent = bring_up(lab, "--delay", "500", policy=harness.SHORT)
    client = Checks(agent, CHECKS)
    decisions = client.decisions()
    same({(d["outcome"], d["reason"]) for d in decisions.values()},
         {("failed", "timeout")})
    poll("all answers", lambda: sum(agent.counters("main")[name] for name in (
        "answers_late", "answers_duplicate", "invalid_operation")) ==
         6 * CHECKS)
    client.finish()
    consumed_once(sandbox, decisions)
    counters = agent.counters("main")
    same((counters["timeouts"], counters["selected"], counters["answers"]),
         (CHECKS, 0, 0))
    check(all(s["last_answer_ms"] is not None for s in servers(agent)),
          servers(agent))


def test_reordering(lab):
    """answers that overtake each other: the oldest decides all the same"""
    sandbox, agent = bring_up(lab, "--jitter", "200", policy=ONCE)
    decisions = decide(agent)
    all_decided_by(decisions, sandbox.ids()[0])
    consumed_once(sandbox, decisions)
    delays = told(sandbox, "delay_ms")
    check(len(set(delays)) > 20 and max(delays) <= 200, delays)
    poll("all answers", lambda: sum(agent.counters("main")[name] for name in (
        "answers", "answers_late")) == 3 * CHECKS)


# Clocks.

def in_step(clock_ms):
    """Behind by its way at the most; a stamp that is ours tells nothing."""
    return clock_ms is None or -5000 < clock_ms <= 1


def test_clock(lab):
    """a server's clock that is off is seen, and one far off is silent"""
    sandbox, agent = bring_up(
        lab, "--server", "0", "--clock-offset", "-90000", "--server", "1",
        "--clock-offset", "20000", policy=ONCE)
    d = agent.check("demo", "--key", "k")
    same((d["outcome"], d["server_id"]), ("allowed", sandbox.ids()[1]), d)
    check(d["elapsed_us"] >= P0_US, d)
    same([(c["stale"], c["request"]) for c in sandbox.counters()],
         [(1, 0), (0, 1), (0, 1)])
    clocks = [s["clock_ms"] for s in servers(agent)]
    same(clocks[0], None)
    check(15000 < clocks[1] <= 20001, clocks)
    check(in_step(clocks[2]), clocks)
    # Back in time, it answers and decides again.
    sandbox.command("clock-offset 0 0")
    same(agent.check("demo", "--key", "k")["server_id"], sandbox.ids()[0])
    check(in_step(servers(agent)[0]["clock_ms"]), servers(agent))


# Everything at once.

def per_operation(sandbox):
    """By operation and server: each datagram that came, in its order."""
    found = {}
    for e in sandbox.events():
        if "unique_id" in e:
            found.setdefault(e["unique_id"], {}).setdefault(
                e["server_id"], []).append(e)
    return found


def whole_answer(events, number):
    """Was the answer to this datagram one that a client takes?"""
    if number >= len(events) or events[number]["event"] == "ignored":
        return False
    faults = events[number].get("faults", {})
    return "corrupt" not in faults and "wrong_id" not in faults


def fits_ledger(d, events, ids):
    """The decision is the one that follows from what the servers did."""
    rounds = 2
    for level in range(rounds):
        able = [i for i in ids if whole_answer(events.get(i, []), level)]
        if able:
            same((d["outcome"], d["round"], d["server_id"]),
                 ("allowed", level, able[0]), d, events)
            return
    same((d["outcome"], d["reason"]), ("failed", "timeout"), d, events)


def test_mixture(lab):
    """all faults of all servers at once, hundreds of checks in flight"""
    # The jitter is far below P(0) = 0.6 s: it is the ledger that decides.
    sandbox, agent = bring_up(
        lab, "--seed", "11", "--drop", "0.15", "--delay", "1", "--jitter",
        "40", "--duplicate", "0.2", "--corrupt", "0.2", "--wrong-id", "0.1",
        "--rebind", "0.05", policy={"unit_ms": 600})
    total = 0
    for _ in range(2):
        clients = [Checks(agent, 60) for _ in range(4)]
        decisions = {}
        for client in clients:
            decisions.update(client.decisions())
        total += len(decisions)
        poll("nothing in flight", lambda: agent.inflight() == 0)
        for client in clients:
            client.finish()
        ledger = per_operation(sandbox)
        for operation, d in decisions.items():
            fits_ledger(d, ledger[operation], sandbox.ids())
    seen = [(e["server_id"], e["unique_id"])
            for e in sandbox.events("request")]
    same(len(seen), len(set(seen)), "one request, one consumption")
    same(total, 480)
    counters = agent.counters()
    same((counters["checks"], counters["allowed"] + counters["failed"]),
         (480, 480))
    check(counters["allowed"] > 440, counters)
    # Every fault has struck, and every class of invalid answers come.
    for name in ("dropped", "sent-twice", "corrupted", "wrong-id",
                 "rebind-asked"):
        check(all(c[name] > 0 for c in sandbox.counters()), name)
    counters = agent.counters("main")
    for name in ("malformed", "auth", "operation", "server", "content"):
        check(counters["invalid_" + name] > 0, name, counters)


def test_flood(lab):
    """many clients, faulty servers: every call of the shim has its answer"""
    sandbox, agent = bring_up(
        lab, "--seed", "12", "--drop", "0.05", "--jitter", "20",
        "--duplicate", "0.2", "--corrupt", "0.1", "--wrong-id", "0.05",
        policy={"unit_ms": 200})
    tally, = lab.shimclient("flood", agent.socket, "demo", "16", "30")
    same(tally["wrong"], 0, tally)
    same(tally["allowed"] + tally["failed"], 480, tally)
    check(tally["allowed"] > 440, tally)
    seen = [(e["server_id"], e["unique_id"])
            for e in sandbox.events("request")]
    same(len(seen), len(set(seen)), "one request, one consumption")
    same(len({unique for _, unique in seen}), 480)
    same(agent.counters()["checks"], 480)


# Another source port.

def source_ports(sandbox):
    return {e["from"] for e in sandbox.events("request")}


def descriptors(agent):
    return len(os.listdir("/proc/%d/fd" % agent.pid))


def test_rebind(lab):
    """every answer asks for another source port: no check notices"""
    sandbox, agent = bring_up(lab, "--rebind", "1")
    before = descriptors(agent)
    tally, = lab.shimclient("flood", agent.socket, "demo", "8", "100")
    same((tally["allowed"], tally["wrong"]), (800, 0), tally)
    check(len(source_ports(sandbox)) > 2, source_ports(sandbox))
    state = agent.tenant("main")
    check(state["transport"]["rebinds"] >= len(source_ports(sandbox)) - 1,
          state)
    counters = state["counters"]
    same([counters[name] for name in (
        "selected", "timeouts", "not_sent", "replays_sent", "send_errors")],
         [800, 0, 0, 0, 0])
    check(counters["rebind_asked"] >= 800, counters)
    # The ports before are closed when nobody needs them.
    poll("the old ports to go", lambda: agent.tenant("main")["transport"][
        "old_ports"] == 0 and descriptors(agent) <= before)


def test_rebind_now_and_then(lab):
    """one server asks now and then: no answer is lost to the old port"""
    sandbox, agent = bring_up(
        lab, "--seed", "13", "--jitter", "50", "--server", "1", "--rebind",
        "0.1", policy=ONCE)
    operations = {}
    for _ in range(4):
        operations.update(decide(agent, 100))
    all_decided_by(operations, sandbox.ids()[0])
    consumed_once(sandbox, operations)
    poll("all answers", lambda: sum(agent.counters("main")[name] for name in (
        "answers", "answers_late")) == 1200)
    state = agent.tenant("main")
    check(state["transport"]["rebinds"] > 0, state)
    check(len(source_ports(sandbox)) > 1, source_ports(sandbox))
    asked = sandbox.counters()[1]["rebind-asked"]
    check(0 < asked < 400, asked)
    same(state["counters"]["rebind_asked"], asked)
    same(invalid(state["counters"]), {name: 0 for name in invalid(
        state["counters"])})


# Adaptive preference.

def test_suspect(lab):
    """suspect_after 3: the fourth check does not wait for a dead oldest"""
    sandbox, agent = bring_up(lab, "--server", "0", "--drop", "1",
                              policy={"unit_ms": 600, "suspect_after": 3})
    oldest, second = sandbox.ids()[:2]
    wait_us = 600000

    def suspects_after_three():
        for n in range(3):
            d = agent.check("demo", "--key", "k%d" % n)
            same((d["outcome"], d["server_id"], d["round"]),
                 ("allowed", second, 0), d)
            check(d["elapsed_us"] >= wait_us, d)
        for n in range(4):
            d = agent.check("demo", "--key", "k%d" % n)
            same((d["outcome"], d["server_id"], d["round"]),
                 ("allowed", second, 0), d)
            check(d["elapsed_us"] < wait_us / 2, d)

    suspects_after_three()
    # It is asked all the same, so that it can come back.
    poll("a request and a delivery of each check",
         lambda: sandbox.counters()[0]["dropped"] == 14)
    check("suspected=yes" in agent.err())
    check("suspected=no" not in agent.err())
    sandbox.command("drop 0 0")
    same(agent.check("demo", "--key", "k")["outcome"], "allowed")
    poll("the suspicion to be cleared",
         lambda: "suspected=no" in agent.err())
    for n in range(2):
        same(agent.check("demo", "--key", "k%d" % n)["server_id"], oldest)
    # It takes three misses again.
    sandbox.command("drop 0 1")
    suspects_after_three()


if __name__ == "__main__":
    harness.run([value for name, value in list(globals().items())
                 if name.startswith("test_")])
