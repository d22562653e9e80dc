#!/usr/bin/env python3
"""
An agent whose nameserver misbehaves in every way that hostile_dns.py knows:
it serves stale, decides all the while, says what is wrong, grows nothing, and
asks no more often than its pace allows.
"""

import os
import time

import harness
import hostile_dns
from harness import check, poll, same
from nameservers import free_port

ZONE = "hostile.example.com"
RULES = {"demo": {"tenant": "main", "resources": [
    {"bucket": "demo:{key}", "window_ms": 3600000, "limit": 1000000}]}}
TIMEOUT_MS = 200
FORCED_MS = 100
# What one round may cost in datagrams and connections, as daemon/io/dns.h has
# it for one nameserver and two tries: SRV, and A and AAAA of three servers.
QUERY_COST = 2 * (1 * (2 + 2) + 8)
ROUND_COST = 7 * QUERY_COST
MAX_ACTIVE = 32


def bring_up(lab, ready=True, behaviour=None, servers=3, ttl=0,
             policy=harness.POLICY, **dns):
    """A sandbox, a hostile nameserver for it, and an agent that asks that."""
    key = lab.keygen("main")
    sandbox = lab.sandbox(key, cluster=servers)
    hostile = hostile_dns.Hostile(ZONE, sandbox.servers, ttl)
    lab.closers.append(hostile.close)
    if behaviour:
        hostile.behave(behaviour)
    dns = dict({"name": ZONE,
                "nameservers": [hostile.endpoint()],
                "timeout_ms": TIMEOUT_MS, "forced_min_ms": FORCED_MS}, **dns)
    agent = lab.agent(lab.document({"main": {
        "key": {"file": key}, "policy": policy, "dns": dns}}, RULES),
        ready=ready)
    if not ready:
        poll("the agent to listen", lambda: agent.ctl(
            "status", expect=None).status == 0)
    return sandbox, hostile, agent


def discovery(agent):
    return agent.tenant("main")["discovery"]


def doublings(pauses):
    """How many pauses that double begin within so many of the first one."""
    n = 1
    while pauses >= 2 ** (n - 1):
        pauses -= 2 ** (n - 1)
        n += 1
    return n


class Watch:
    """Counts what a phase costs, from where the agent was well."""

    def __init__(self, hostile, agent, behaviour):
        self.hostile, self.agent = hostile, agent
        self.before = discovery(agent)
        self.begin = time.monotonic()
        self.asked = hostile.behave(behaviour)

    def await_failure(self, error=""):
        """Until a round has failed like this; a busy machine may time out."""
        return poll("a round to fail: " + error, lambda: (
            lambda now: now["failures"] > self.before["failures"] and
            error in now["error"] and now)(discovery(self.agent)))

    def await_rounds(self, count):
        return poll("rounds that are well", lambda: (
            lambda now: now["refreshes"] > self.before["refreshes"] + count and
            now["error"] == "" and now)(discovery(self.agent)))

    def within_pace(self, failing):
        """No more rounds than the pace allows, and no more in a round."""
        # The counter first: it may only fall behind.
        asked = self.hostile.count() - self.asked
        now = discovery(self.agent)
        rounds = now["refreshes"] - self.before["refreshes"]
        pauses = (time.monotonic() - self.begin) * 1000 / FORCED_MS
        allowed = 2 + (doublings(pauses) if failing else pauses)
        check(rounds <= allowed, rounds, "rounds, allowed", allowed)
        check(asked <= (rounds + 1) * ROUND_COST, asked, "questions in",
              rounds, "rounds")
        # What was under way before belongs to the phase before.
        sent = now["dns"]["queries"] - self.before["dns"]["queries"]
        check(asked <= sent + MAX_ACTIVE, asked, "questions, counted", sent)


def recover(hostile, agent):
    hostile.behave(hostile_dns.honest)
    rounds = discovery(agent)["refreshes"]
    poll("the agent to be well again", lambda: (
        lambda now: now["error"] == "" and now["refreshes"] > rounds)(
            discovery(agent)))


def decides(agent):
    d = agent.check("demo", "--key", "k")
    same(d["outcome"], "allowed", d)
    same(d["source"], "server", d)
    return d


def descriptors(agent):
    return len(os.listdir("/proc/%d/fd" % agent.pid))


def resident_mb(agent):
    with open("/proc/%d/status" % agent.pid, encoding="ascii") as f:
        for line in f:
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) // 1024
    raise harness.Failure("no VmRSS")


SILENCE = ": no answer in %d ms" % TIMEOUT_MS

# Behaviour, what the error holds, the resolver's counter that tells.
FAILING = [
    (hostile_dns.silent, SILENCE, "timeouts"),
    (hostile_dns.servfail, ": SERVFAIL", "failures"),
    (hostile_dns.wrong_id, SILENCE, "malformed"),
    (hostile_dns.wrong_question, SILENCE, "malformed"),
    (hostile_dns.wrong_case, SILENCE, "malformed"),
    (hostile_dns.truncated_twice, ": malformed answer",
     "tcp"),
    (hostile_dns.pointer_loop, ": malformed answer",
     "malformed"),
    (hostile_dns.short_srv, ": malformed answer",
     "malformed"),
    (hostile_dns.repeated_tsig, ": malformed answer",
     "malformed"),
    (hostile_dns.huge_junk, ": malformed answer", "tcp"),
    (hostile_dns.drip, SILENCE, "tcp"),
    (hostile_dns.tcp_half, SILENCE, "tcp"),
    (hostile_dns.late(TIMEOUT_MS * 3 / 1000), SILENCE,
     "timeouts"),
    (hostile_dns.cname_loop, "CNAME records without an end", "answers"),
    (hostile_dns.cname_loop_inside, ": malformed answer",
     "malformed"),
    (hostile_dns.cname_chain, "CNAME records without an end",
     "answers"),
    (hostile_dns.unusable, "server.%s: no s-ID label" % ZONE, "answers"),
]


def test_serves_stale(lab):
    """every failure: the known servers decide, DNS is asked at its pace"""
    _, hostile, agent = bring_up(lab)
    decides(agent)
    base, memory = descriptors(agent), resident_mb(agent)
    for behaviour, error, counter in FAILING:
        watch = Watch(hostile, agent, behaviour)
        name = behaviour.__name__
        now = watch.await_failure(error)
        check(now["dns"][counter] > watch.before["dns"][counter], name, now)
        same(now["state"], "ready", name)
        decides(agent)
        same(agent.tenant("main")["servers"], 3, name)
        watch.within_pace(failing=True)
        recover(hostile, agent)
        same(discovery(agent)["changes"], 1, name)
    poll("the descriptors to be given back",
         lambda: descriptors(agent) <= base)
    check(resident_mb(agent) <= memory + 64, "it grew from", memory, "MB")


# These are odd, but say the truth somewhere.
BEARABLE = [
    hostile_dns.folded_case,  # not believed, and asked again in small ones
    hostile_dns.truncated,
    hostile_dns.huge_true,
    hostile_dns.contradicting,
    hostile_dns.foreign_glue,
    hostile_dns.glue,
    hostile_dns.duplicates,
]


def test_bears_oddities(lab):
    """an answer that is odd but true brings the same servers, and no others"""
    _, hostile, agent = bring_up(lab)
    for behaviour in BEARABLE:
        watch = Watch(hostile, agent, behaviour)
        # Of the two, the second round began under this behaviour.
        watch.await_rounds(2)
        decides(agent)
        watch.within_pace(failing=False)
        recover(hostile, agent)
        same(discovery(agent)["changes"], 1, behaviour.__name__)
        same(agent.tenant("main")["servers"], 3)


def test_glue_is_enough(lab):
    """a nameserver that answers nothing but SRV, with the addresses beside"""
    _, hostile, agent = bring_up(lab, behaviour=hostile_dns.glue)
    same(agent.tenant("main")["servers"], 3)
    decides(agent)
    hostile.behave(hostile_dns.silent)


def test_require_ad(lab):
    """AD is insisted on, for addresses too, and glue does not count"""
    sandbox, hostile, agent = bring_up(lab, ready=False, require_ad=True)
    watch = Watch(hostile, agent, hostile_dns.honest)
    now = watch.await_failure("answer without the AD flag")
    check(now["dns"]["malformed"] > 0, now)
    d = agent.check("demo", "--key", "k")
    same((d["outcome"], d["reason"]), ("failed", "discovery"), d)

    def authentic(dns, query):
        check(query.flags & hostile_dns.AD, "AD was not asked for")
        lie = hostile_dns.address("127.0.0.66")[1]
        message = query.reply(
            dns.found(query), [] if dns.found(query) else [dns.soa()],
            [hostile_dns.rr(target, hostile_dns.A, 60, lie)
             for target, kind in dns.records if kind == hostile_dns.A]
            if query.kind == hostile_dns.SRV else [], flags=hostile_dns.AD)
        return hostile_dns.out(query, message)
    hostile.behave(authentic)
    agent.ready()
    decides(agent)
    same(discovery(agent)["changes"], 1)

    def srv_only(dns, query):
        if query.kind == hostile_dns.SRV:
            return authentic(dns, query)
        return hostile_dns.honest(dns, query)
    hostile.behave(srv_only)
    poll("the addresses to be missing", lambda: discovery(agent)[
        "error"].startswith("no SRV target has an address: "))
    decides(agent)
    same(agent.tenant("main")["servers"], len(sandbox.servers))


def test_nxdomain_storm(lab):
    """NXDOMAIN removes members when it is said twice; many at once are one"""
    _, hostile, agent = bring_up(lab)
    spare = []

    def once(dns, query):
        """A storm for the first round, then silence."""
        if len(spare) >= 2 or query.kind != hostile_dns.SRV:
            return []
        spare.append(query)  # in mixed letters, and again in small ones
        return hostile_dns.nxdomain_storm(dns, query)
    watch = Watch(hostile, agent, once)
    poll("the storm", lambda: len(spare) >= 2)
    now = watch.await_failure()
    poll("silence after it", lambda: discovery(agent)["error"].endswith(
        SILENCE))
    same(now["changes"], 1)
    decides(agent)
    watch.within_pace(failing=True)

    recover(hostile, agent)
    watch = Watch(hostile, agent, hostile_dns.nxdomain_storm)
    poll("the members to be gone", lambda: agent.tenant("main")[
        "servers"] == 0)
    now = discovery(agent)
    check(now["failures"] >= watch.before["failures"] + 2, now)
    check("NXDOMAIN: DNS says that there is no server" in now["error"], now)
    d = agent.check("demo", "--key", "k")
    same((d["outcome"], d["reason"]), ("failed", "discovery"), d)
    watch.within_pace(failing=True)
    recover(hostile, agent)
    same(agent.tenant("main")["servers"], 3)
    decides(agent)


def test_many_records(lab):
    """more than 32 servers, by TCP: all of them are asked"""
    sandbox, hostile, agent = bring_up(lab, servers=40,
                                       behaviour=hostile_dns.truncated)
    same(agent.tenant("main")["servers"], 40)
    check(hostile.by_tcp > 0, "nobody asked by TCP")
    same(decides(agent)["server_id"], sandbox.ids()[0])


def test_failover(lab):
    """a dead, a refusing and a silent nameserver before the good one"""
    mute = hostile_dns.Hostile(ZONE, [])
    lab.closers.append(mute.close)
    mute.behave(hostile_dns.silent)
    refusing = hostile_dns.Hostile(ZONE, [])
    lab.closers.append(refusing.close)
    refusing.behave(hostile_dns.servfail)
    key = lab.keygen("main")
    sandbox = lab.sandbox(key, cluster=2, zone=ZONE)
    agent = lab.agent(lab.document({"main": {
        "key": {"file": key}, "policy": harness.POLICY, "dns": {
            "name": ZONE, "timeout_ms": TIMEOUT_MS, "nameservers": [
                "127.0.0.1:%d" % free_port(), refusing.endpoint(),
                mute.endpoint(), sandbox.dns]}}}, RULES))
    same(agent.tenant("main")["servers"], 2)
    decides(agent)
    # SRV, A and AAAA of two: nobody is asked twice before the good one.
    same((mute.count(), refusing.count()), (5, 5))


def outage(lab, requests, **dns):
    """Requests while DNS is dead; how often it was asked, and the rounds."""
    _, hostile, agent = bring_up(lab, ready=False, **dict(
        {"behaviour": hostile_dns.silent}, **dns))
    poll("the first round to fail",
         lambda: discovery(agent)["failures"] > 0)
    begin = time.monotonic()
    before, asked = discovery(agent)["refreshes"], hostile.count()
    for i in range(requests):
        d = agent.check("demo", "--key", str(i))
        same((d["outcome"], d["reason"], d["permit"]),
             ("failed", "discovery", True), d)
        check(d["elapsed_us"] < 1000000, "it waited for DNS:", d)
    asked = hostile.count() - asked
    rounds = discovery(agent)["refreshes"] - before
    return asked, rounds, (time.monotonic() - begin) * 1000


def test_five_requests(lab):
    """five requests in an outage: no more questions than without them"""
    asked, rounds, ms = outage(lab, 5, forced_min_ms=1000)
    # One nameserver, asked twice in a round; one round may be under way.
    check(asked <= 2 * (rounds + 1), asked, rounds)
    check(rounds <= doublings(ms / 1000), rounds, "rounds in", ms)
    check(asked <= 2 * (1 + doublings(ms / 1000)), asked, "in", ms)


def test_many_requests(lab):
    """a hundred requests with the least pause of a millisecond back off too"""
    asked, rounds, ms = outage(lab, 100, forced_min_ms=1, timeout_ms=50,
                               behaviour=hostile_dns.servfail)
    check(asked <= 2 * (rounds + 1), asked, rounds)
    check(rounds <= 1 + doublings(ms), rounds, "rounds in", ms)


def test_silent_servers(lab):
    """servers that are dead while DNS is well: forced rounds back off"""
    sandbox, hostile, agent = bring_up(lab, ttl=3600, forced_min_ms=1,
                                       policy={"unit_ms": 10})
    for i in range(3):
        sandbox.command("stop %d" % i)
    before, asked = discovery(agent), hostile.count()
    begin = time.monotonic()
    for i in range(40):
        same(agent.check("demo", "--key", str(i))["reason"], "timeout")
    ms = (time.monotonic() - begin) * 1000
    now = discovery(agent)
    rounds = now["refreshes"] - before["refreshes"]
    check(now["forced"] >= 5, "hardly anybody asked DNS", now)
    check(rounds <= 7 + doublings(ms), rounds, "rounds in", ms)
    check(hostile.count() - asked <= (rounds + 1) * 10, "too many questions")


if __name__ == "__main__":
    harness.run([value for name, value in list(globals().items())
                 if name.startswith("test_")])
