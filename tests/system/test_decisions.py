#!/usr/bin/env python3
"""
Every outcome, through the whole product: rl-sandbox with DNS, rl-agent,
rlctl.
"""

import json
import os
import signal
import subprocess

import harness
from harness import CANCELLED, HORIZON, PREFERENCE, check, poll, same

TRACKERS = {"backend": {"ttl_ms": 60000, "max_samples": 100,
                        "buffer_size": 32, "min_samples": 3}}
# An hour's window: nothing that matters is refilled while a test runs.
RULES = {
    "demo": {"resources": [{"bucket": "demo:{key}", "window_ms": 3600000,
                            "limit": 1000}]},
    "small": {"resources": [
        {"bucket": "wide:{key}", "window_ms": 3600000, "limit": 1000},
        {"bucket": "small:{key}", "window_ms": 3600000, "limit": 2}]},
    "guarded": {"label": "guarded",
                "resources": [{"bucket": "guarded", "window_ms": 3600000,
                               "limit": 1000}],
                "guards": [{"tracker": "backend", "below_ms": 100}]},
    "closed": {"resources": [{"bucket": "closed", "window_ms": 3600000,
                              "limit": 1000}],
               "on_failure": "closed"},
}
ZONE = "sandbox.example.com"


def tenant(key, sandbox, policy=None, **more):
    return dict({"key": {"file": key}, "policy": policy or harness.POLICY,
                 "dns": {"name": sandbox.zone,
                         "nameservers": [sandbox.dns]}}, **more)


def rules(name="main"):
    return {rule: dict(text, tenant=name) for rule, text in RULES.items()}


def bring_up(lab, policy=None, cluster=3, listen="127.0.0.1:0", fmt=1,
             dedup_ms=harness.DEDUP_MS, args=(), **more):
    key = lab.keygen("main", fmt=fmt, dedup_ms=dedup_ms)
    sandbox = lab.sandbox(key, *args, cluster=cluster, listen=listen,
                          zone=ZONE)
    agent = lab.agent(lab.document(
        {"main": tenant(key, sandbox, policy, **more)}, rules(), TRACKERS))
    return sandbox, agent


def requests(sandbox):
    return sandbox.events("request")


def test_allowed(lab):
    """Allowed: the oldest decides, and all three have consumed once"""
    sandbox, agent = bring_up(lab)
    d = agent.check("demo", "--key", "a")
    same((d["outcome"], d["permit"], d["source"], d["reason"],
          d["server_id"], d["round"]),
         ("allowed", True, "server", "ok", sandbox.ids()[0], 0))
    events = poll("a request at every server",
                  lambda: requests(sandbox) if len(requests(sandbox)) == 3
                  else None)
    same({e["server_id"] for e in events}, set(sandbox.ids()))
    same(len({e["unique_id"] for e in events}), 1)
    same([c["tokens"] for e in events for c in e["consumed"]], [1, 1, 1])
    text = agent.ctl("check", "demo", "--key", "a").out
    check(text.startswith("Allowed"), text)


def test_adhoc(lab):
    """an ad-hoc check and its tokens"""
    sandbox, agent = bring_up(lab, cluster=1)
    adhoc = ("--bucket", "b", "--window", "3600000", "--limit", "10",
             "--tokens", "4")
    same([agent.check(*adhoc)["outcome"] for _ in range(3)],
         ["allowed", "allowed", "denied"])
    same(sum(c["tokens"] for e in requests(sandbox) for c in e["consumed"]),
         8)


def test_denied_resource(lab):
    """Denied by a resource: the limit has its name, the work may not go on"""
    sandbox, agent = bring_up(lab)
    for _ in range(2):
        same(agent.check("small", "--key", "k")["outcome"], "allowed")
    d = agent.check("small", "--key", "k", "--detail")
    same((d["outcome"], d["permit"], d["source"], d["reason"], d["limit"],
          d["server_id"]),
         ("denied", False, "server", "resource", "small:k",
          sandbox.ids()[0]))
    # One token comes back in half an hour.
    check(0 < d["retry_after_ms"] <= 1800000, d)
    same([(r["bucket"], r["tokens"], r["deficit"] > 0)
          for r in d["resources"]],
         [("wide:k", 1, False), ("small:k", 1, True)])
    agent.check("small", "--key", "k", "--permit", expect=1)
    text = agent.ctl("check", "small", "--key", "k", expect=1).out
    check(text.startswith("Denied") and "limit=small:k" in text, text)
    same(agent.check("small", "--key", "other")["outcome"], "allowed")
    # All or nothing: the refused checks took nothing of the wide bucket.
    d = agent.check("small", "--key", "k", "--detail")
    same([r["actual_rate"] for r in d["resources"]], [2, 2])


def test_denied_guard(lab):
    """Denied by a guard: reports change the decision"""
    sandbox, agent = bring_up(lab)
    d = agent.check("guarded", "--detail")
    same(d["outcome"], "allowed")
    same([(g["tracker"], g["current_ms"]) for g in d["guards"]],
         [("backend", 0)], "too few samples are no latency")
    for _ in range(20):
        agent.ctl("report", "backend", "5000")
    poll("20 reports at all three",
         lambda: len(sandbox.events("report")) == 60)
    d = agent.check("guarded", "--detail")
    same((d["outcome"], d["permit"], d["source"], d["reason"], d["limit"],
          d["retry_after_ms"]),
         ("denied", False, "server", "guard", "backend", None))
    check(d["guards"][0]["current_ms"] >= 100, d)
    same(d["guards"][0]["passed"], False)
    same(agent.counters("main")["reports_sent"], 60)


def test_oldest_dead(lab):
    """the oldest is dead: the next oldest decides, after P(0)"""
    sandbox, agent = bring_up(lab)
    sandbox.command("stop 0")
    d = agent.check("demo", "--key", "a")
    same((d["outcome"], d["server_id"], d["round"]),
         ("allowed", sandbox.ids()[1], 0))
    check(d["elapsed_us"] >= 1e6 * PREFERENCE, d)
    sandbox.command("start 0")
    d = agent.check("demo", "--key", "a")
    same((d["outcome"], d["server_id"]), ("allowed", sandbox.ids()[0]))


def test_the_log_of_a_dead_server(lab):
    """the log tells when one server falls silent and when it is back, once"""
    sandbox, agent = bring_up(lab, harness.SHORT)
    oldest = sandbox.ids()[0]

    def lines(answers):
        agent.check("demo", "--key", "a")
        return [line for line in agent.err().split("\n") if
                " server tenant=\"main\" server=%s answers=%s" % (
                    oldest, answers) in line]
    sandbox.command("stop 0")
    line, = poll("the line of its silence", lambda: lines("no"))
    check("suspect_after is 0" in line and "see rlctl servers" in line, line)
    sandbox.command("start 0")
    poll("the line of its return", lambda: lines("yes"))
    same((len(lines("no")), len(lines("yes"))), (1, 1))


def test_lost_datagrams(lab):
    """servers that lose half of what they get: the replay saves the check"""
    sandbox, agent = bring_up(lab, args=("--drop", "0.5", "--seed", "1"))
    for n in range(6):
        d = agent.check("demo", "--key", str(n))
        # 1 in 64 of all checks loses both rounds everywhere.
        check(d["outcome"] == "allowed" or d["reason"] == "timeout", d)
    same(sum(c["duplicate"] for c in sandbox.counters()),
         len(sandbox.events("duplicate")))
    for e in requests(sandbox):
        same(sum(c["tokens"] for c in e["consumed"]), 1)
    seen = [(e["server_id"], e["unique_id"]) for e in requests(sandbox)]
    same(len(seen), len(set(seen)), "one request, one consumption")


def test_all_dead(lab):
    """all are dead: Failed (timeout) at H, permit by the failure policy"""
    sandbox, agent = bring_up(lab, harness.SHORT, on_failure="closed")
    horizon_us = 3e3 * harness.SHORT["unit_ms"]
    for n in range(3):
        sandbox.command("stop %d" % n)
    adhoc = ("--bucket", "b", "--window", "1000", "--limit", "10")
    for args, permit in ((("demo", "--key", "a"), True),
                         (("closed",), False), (adhoc, False)):
        d = agent.check(*args)
        same((d["outcome"], d["permit"], d["source"], d["reason"]),
             ("failed", permit, "policy", "timeout"), args)
        check(d["elapsed_us"] >= horizon_us, args, d)
        agent.check(*args, "--permit", expect=0 if permit else 1)
    text = agent.ctl("check", "closed", expect=2).out
    check(text.startswith("Failed"), text)
    counters = agent.counters()
    same((counters["failed_timeout"], counters["permitted"]), (7, 2))
    # No send at or after H: two rounds to three servers each, no more.
    same(agent.counters("main")["requests_sent"], 7 * 6)


def test_servers_that_move(lab):
    """silence asks DNS again, long before its TTL is over"""
    ttl = ("--dns-ttl", "3600")
    sandbox, agent = bring_up(lab, harness.SHORT, args=ttl)
    same(agent.check("demo", "--key", "a")["outcome"], "allowed")
    sandbox.kill()
    moved = lab.sandbox(os.path.join(lab.path, "main.key"), "--dns",
                        sandbox.dns, "--zone", ZONE, *ttl)
    check(moved.ids() != sandbox.ids())
    d = poll("a server that answers", lambda: [
        d for d in [agent.check("demo", "--key", "a")]
        if d["outcome"] == "allowed"])[0]
    check(d["server_id"] in moved.ids(), d)
    check(agent.tenant("main")["discovery"]["forced"] > 0)
    check("silence" in agent.err(), agent.err())


def test_membership_change(lab):
    """a server that leaves still decides what it was asked, and no more"""
    sandbox, agent = bring_up(lab, {"unit_ms": 30000}, fmt=0, dedup_ms=0,
                              args=("--dns-ttl", "1"))
    oldest, second = sandbox.ids()[:2]
    for n in (1, 2):
        sandbox.command("stop %d" % n)
    sandbox.command("delay 0 4000")
    ctl = lab.spawn_ctl("--socket", agent.socket, "check", "demo", "--key",
                        "a", "--json")
    poll("the check in flight", lambda: agent.inflight() == 1)
    sandbox.command("withdraw 0")
    poll("its departure", lambda: oldest not in [
        s["server_id"] for s in agent.ctl("servers", "--json").json()[
            "servers"]])
    check(ctl.running(), "it left too late for this test")
    same(ctl.wait(), 0, ctl.out(), ctl.err())
    same(json.loads(ctl.out())["server_id"], oldest)
    for n in (1, 2):
        sandbox.command("start %d" % n)
    received = sandbox.counters()[0]["received"]
    same(agent.check("demo", "--key", "a")["server_id"], second)
    same(sandbox.counters()[0]["received"], received, "it was asked again")


def test_never_answered(lab):
    """a wrong key looks like silence; log and decision say what to look at"""
    key = lab.keygen("right")
    wrong = lab.keygen("wrong")
    sandbox = lab.sandbox(key, zone=ZONE)
    agent = lab.agent(lab.document(
        {"main": tenant(wrong, sandbox, harness.SHORT)}, rules(), TRACKERS))
    d = agent.check("demo", "--key", "a")
    same(d["reason"], "timeout")
    check("key" in d["text"] and "clock" in d["text"], d)
    check("key or clock?" in agent.err(), agent.err())
    for server in agent.ctl("servers", "--json").json()["servers"]:
        same((server["answered"], server["last_answer_ms"]), (0, None))
        check(server["sent"] > 0, server)


def test_caller_deadline(lab):
    """a caller's deadline before H ends the check there"""
    sandbox, agent = bring_up(lab)
    for n in range(3):
        sandbox.command("stop %d" % n)
    d = agent.check("closed", "--timeout", "200")
    same((d["outcome"], d["reason"], d["permit"]),
         ("failed", "timeout", False))
    # What is left of the 200 ms when the agent gets it.
    check(1.5e5 <= d["elapsed_us"] < 1e6 * HORIZON, d)


def test_cancel(lab):
    """Cancelled: an interrupted rlctl, and one that is killed"""
    # An unversioned key may ask for H = 180 s: silence lasts.
    sandbox, agent = bring_up(lab, {"unit_ms": 60000}, fmt=0, dedup_ms=0)
    for n in range(3):
        sandbox.command("delay %d 60000" % n)

    def in_flight(*args):
        ctl = lab.spawn_ctl("--socket", agent.socket, "check", "demo",
                            "--key", "a", *args)
        poll("the check in flight", lambda: agent.inflight() == 1)
        return ctl

    ctl = in_flight("--json")
    ctl.signal(signal.SIGINT)
    same(ctl.wait(), CANCELLED, ctl.err())
    d = json.loads(ctl.out())
    harness.check_decision(d)
    same((d["outcome"], d["permit"]), ("cancelled", False))
    poll("nothing in flight", lambda: agent.inflight() == 0)
    same(agent.counters()["cancelled"], 1)

    ctl = in_flight("--permit")
    ctl.signal(signal.SIGINT)
    same(ctl.wait(), 1, "a cancelled check never permits")
    check(ctl.out().startswith("Cancelled"), ctl.out())

    ctl = in_flight()
    ctl.kill()
    poll("nothing in flight", lambda: agent.inflight() == 0)
    same(agent.counters()["cancelled"], 3)
    same(agent.counters()["failed"], 0)


class Mute:
    """An rlctl that nobody listens to: its standard output is a full pipe."""
    def __init__(self, lab, *args):
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        try:
            while True:
                os.write(writer, b"x" * 4096)
        except BlockingIOError:
            os.set_blocking(writer, True)
        self.ends = (reader, writer)
        self.child = subprocess.Popen([harness.CTL] + list(args),
                                      env=lab.env(), stdout=writer)
        lab.closers.append(self.close)

    def end(self):
        self.child.send_signal(signal.SIGINT)
        return self.child.wait(harness.PATIENCE)

    def close(self):
        self.child.kill()
        self.child.wait()
        for end in self.ends:
            os.close(end)


def test_signals_without_a_call(lab):
    """SIGINT ends an rlctl that has its decision, and cannot tell it"""
    sandbox, agent = bring_up(lab, {"unit_ms": 60000}, fmt=0, dedup_ms=0)
    args = ("--socket", agent.socket, "check", "demo", "--key", "a")

    def decided(outcome):
        """And rlctl has hung up: this status has the one connection."""
        status = agent.status()
        return (status["counters"][outcome] == 1 and
                status["listeners"][0]["connections"] == 1)

    ctl = Mute(lab, *args)
    poll("allowed", lambda: decided("allowed"))
    same(ctl.child.poll(), None)
    same(ctl.end(), -signal.SIGINT)
    # The first one cancels, the second one ends.
    for n in range(3):
        sandbox.command("delay %d 60000" % n)
    ctl = Mute(lab, *args)
    poll("the check in flight", lambda: agent.inflight() == 1)
    ctl.child.send_signal(signal.SIGINT)
    poll("cancelled", lambda: decided("cancelled"))
    same(ctl.child.poll(), None)
    same(ctl.end(), -signal.SIGINT)


def test_wrong_key(lab):
    """a wrong key looks like silence, and disturbs no other tenant"""
    key = lab.keygen("main")
    wrong = lab.keygen("wrong")  # the same key id, another secret
    unknown = lab.keygen("unknown", key_id=8)
    sandbox = lab.sandbox(key, zone=ZONE)
    text = {name: dict(RULES["demo"], tenant=name)
            for name in ("main", "wrong", "unknown")}
    agent = lab.agent(lab.document({
        "main": tenant(key, sandbox),
        "wrong": tenant(wrong, sandbox),
        "unknown": tenant(unknown, sandbox)}, text))
    ctls = [lab.spawn_ctl("--socket", agent.socket, "check", name, "--key",
                          "a", "--json") for name in ("wrong", "unknown")]
    poll("both in flight", lambda: agent.inflight() == 2)
    same(agent.check("main", "--key", "a")["outcome"], "allowed")
    for ctl in ctls:
        same(ctl.wait(), harness.FAILED, ctl.err())
        d = json.loads(ctl.out())
        same((d["outcome"], d["reason"], d["source"], d["permit"]),
             ("failed", "timeout", "policy", True))
        check(d["elapsed_us"] >= 1e6 * HORIZON, d)
    counters = sandbox.counters()
    check(all(c["auth"] and c["unknown-key"] for c in counters), counters)
    same(agent.counters("wrong")["answers"], 0)
    same(agent.counters("main")["timeouts"], 0)


def test_ipv6(lab):
    """servers that have IPv6 addresses only"""
    if not harness.ipv6_works():
        raise harness.Skip("no IPv6 on the loopback")
    sandbox, agent = bring_up(lab, listen="[::1]:0")
    same(agent.check("demo", "--key", "a")["outcome"], "allowed")
    servers = agent.ctl("servers", "--json").json()["servers"]
    check(all(a.startswith("[::1]:") for s in servers
              for a in s["addresses"]), servers)
    same([s["server_id"] for s in servers], sandbox.ids())


def test_every_key(lab):
    """each type and format of key against the sandbox"""
    for number, (auth, fmt) in enumerate((
            ("aes", 1), ("aes", 0), ("cookie", 1), ("cookie", 0),
            ("none", 1))):
        name = "%s%d" % (auth, fmt)
        key = lab.keygen(name, auth=auth, fmt=fmt, key_id=100 + number)
        sandbox = lab.sandbox(key, zone=ZONE)
        document = lab.document({"main": tenant(key, sandbox)}, rules(),
                                TRACKERS)
        agent = lab.agent(document)
        same(agent.check("guarded")["outcome"], "allowed", name)
        state = agent.tenant("main")
        same((state["auth"], state["profile"], state["key_id"]),
             (auth, "v1" if fmt == 0 else "v2", str(100 + number)), name)
        same(agent.stop(), 0, name)


def test_membership(lab):
    """a member that DNS withdraws is asked no more; a new one is"""
    key = lab.keygen("main")
    sandbox = lab.sandbox(key, "--dns-ttl", "1", zone=ZONE)
    dns = {"name": ZONE, "nameservers": [sandbox.dns], "refresh_ms": 1000,
           "forced_min_ms": 100}
    agent = lab.agent(lab.document(
        {"main": tenant(key, sandbox, dns=dns)}, rules(), TRACKERS))
    same(agent.tenant("main")["servers"], 3)
    sandbox.command("withdraw 0")
    poll("two members", lambda: agent.tenant("main")["servers"] == 2)
    d = agent.check("demo", "--key", "a")
    same((d["outcome"], d["server_id"]), ("allowed", sandbox.ids()[1]))
    sandbox.command("publish 0")
    poll("three members", lambda: agent.tenant("main")["servers"] == 3)
    d = agent.check("demo", "--key", "a")
    same((d["outcome"], d["server_id"]), ("allowed", sandbox.ids()[0]))


if __name__ == "__main__":
    harness.run([value for name, value in list(globals().items())
                 if name.startswith("test_")])
