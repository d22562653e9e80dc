#!/usr/bin/env python3
"""
What an operator sees of a tenant that does not work: rlctl servers tells a
wrong key, a stopped server, a clock that is off, dead DNS and more apart, as
far as the wire allows, in its codes and in its words. Each test brings about
one cause and asks as an operator would.
"""

import json
import os
import re
import shlex
import signal
import struct
import subprocess

import harness
import peer
from fake_agent import SERVERS, FakeAgent
from harness import check, poll, same

RULES = {
    "plain": {"resources": [
        {"bucket": "plain", "window_ms": 1000, "limit": 100000}]},
    "guarded": {"resources": [
        {"bucket": "guarded", "window_ms": 1000, "limit": 100000}],
        "guards": [{"tracker": "backend", "below_ms": 100}]}}
TRACKERS = {"backend": {"ttl_ms": 60000, "max_samples": 100,
                        "buffer_size": 32, "min_samples": 3}}

COLUMNS = ("tenant", "#", "server", "address", "state", "sent",
           "answered", "missed", "p50/p99 ms", "last", "refused", "clock")


def document(lab, key, sandbox=None, **tenant):
    tenant = dict({"key": {"file": key}, "policy": harness.SHORT}, **tenant)
    if sandbox:
        tenant["servers"] = [
            {"id": s["server_id"], "address": s["addresses"][0]}
            for s in sandbox.servers]
    return lab.document({"main": tenant}, RULES, TRACKERS)


def servers(agent):
    return agent.ctl("servers", "--json").json()


def reachable(agent):
    """It opens its socket only when it has waited for DNS a while."""
    poll("the socket",
         lambda: agent.ctl("servers", expect=None).status == 0)


def tenant_of(shown):
    same(len(shown["tenants"]), 1, shown)
    return shown["tenants"][0]


def codes(shown):
    return [s["diagnosis"] for s in shown["servers"]]


def wait_for(agent, tenant, *each, rule="plain"):
    """Checks until the diagnoses are these; the document."""
    last = {}

    def there():
        if rule:
            agent.check(rule)
        last.update(servers(agent))
        return tenant_of(last)["diagnosis"] == tenant and (
            not each or codes(last) == list(each))
    try:
        poll("the diagnosis %s %s" % (tenant, each), there)
    except harness.Failure as failure:
        raise harness.Failure("%s\n%r" % (failure, last)) from None
    return last


def text(agent, *words):
    """rlctl servers, for people: these words are in it, whatever the lines."""
    out = agent.ctl("servers").out
    flat = " ".join(out.split())
    for word in words:
        check(word in flat, "no", word, "in", out)
    return out


def table(out):
    """The rows of the table, by column."""
    lines = out.split("\n\n")[0].split("\n")
    starts = []
    for title in COLUMNS:
        check(title in lines[0], "no column", title, "in", lines[0])
        starts.append(lines[0].index(title))
    same(starts, sorted(starts), lines[0])
    return [re.split(r" {1,2}(?! )", re.sub(r" +", "  ", line.strip()))
            for line in lines[1:] if not line.startswith("*")]


def test_all_is_well(lab):
    """three servers that answer: every number is there, and no complaint"""
    key = lab.keygen("main")
    sandbox = lab.sandbox(key)
    agent = lab.agent(document(lab, key, sandbox))
    shown = servers(agent)
    same(codes(shown), ["unasked"] * 3)
    same(tenant_of(shown)["diagnosis"], "unasked")
    same(tenant_of(shown)["ever_answered"], False)
    def measured():
        shown = wait_for(agent, "ok", "ok", "ok", "ok")
        return shown if all(s["rtt_p50_us"] for s in shown["servers"]) else None
    shown = poll("a round trip of each", measured)
    for server in shown["servers"]:
        same(server["ever_answered"], True, server)
        same(server["suspected"], False, server)
        same(server["refused_error"], None, server)
        check(server["rtt_p50_us"] <= server["rtt_p90_us"] <=
              server["rtt_p99_us"], server)
        check(0 < server["rtt_p50_us"], server)
        check(server["answered"] > 0 and server["unanswered"] == 0, server)
    tenant = tenant_of(shown)
    same(tenant["discovery"], "static")
    same(tenant["dns_error"], None)
    same(tenant["clock"]["stepped_ms"], 0)
    check(tenant["clock"]["synchronised"] in (True, False, None), tenant)
    out = text(agent, "main: ok,")
    check(all(len(line) <= 120 for line in out.split("\n")), out)
    rows = table(out)
    same([row[2] for row in rows], sandbox.ids(), out)
    same([row[4] for row in rows], ["ok"] * 3, out)


def test_a_wrong_key(lab):
    """the servers are silent from the start, and nothing is refused"""
    right = lab.keygen("right")
    wrong = lab.keygen("wrong")  # of the same tenant
    sandbox = lab.sandbox(right)
    agent = lab.agent(document(lab, wrong, sandbox))
    shown = wait_for(agent, "never-answered", *["never-answered"] * 3)
    for server in shown["servers"]:
        check(server["sent"] > 0 and server["unanswered"] > 0, server)
        same((server["ever_answered"], server["last_answer_ms"],
              server["refused"], server["rtt_p50_us"], server["clock_ms"]),
             (False, None, 0, None, None), server)
    same(tenant_of(shown)["ever_answered"], False)
    same(tenant_of(shown)["clock"]["stepped_ms"], None)
    out = text(
        agent, "never-answered", "a wrong key (key id 7, aes), a clock that is "
        "off, or nothing gets there or back", "no ICMP refusal has come",
        "the kernel; next: rlctl key show FILE, timedatectl")
    check(all(len(line) < 80 for line in out.split("\n\n")[1].split("\n")),
          out)
    same(agent.ctl("status", "--json").json()["tenants"][0]["diagnosis"],
         "never-answered")
    failed = agent.check("plain")["text"]
    check(failed.endswith("; see rlctl servers"), failed)
    check(all(c["auth"] > 0 for c in sandbox.counters()), "another reason")


def test_a_stopped_server(lab):
    """a closed port is refused by ICMP, while others answer; all closed, too"""
    key = lab.keygen("main")
    sandbox = lab.sandbox(key)
    agent = lab.agent(document(lab, key, sandbox))
    wait_for(agent, "ok", "ok", "ok", "ok")
    sandbox.command("stop 0")
    shown = wait_for(agent, "partial", "refused", "ok", "ok")
    server = shown["servers"][0]
    check(server["refused"] > 0 and server["ever_answered"], server)
    same(server["refused_error"], "Connection refused")
    check(server["last_refused_ms"] is not None, server)
    text(agent, "Connection refused", "main: partial", "2 ok, 1 refused",
         "the oldest does not: each decision waits 100 ms for it; see "
         "suspect_after in rl-agent.json(5)")
    sandbox.command("stop 1")
    sandbox.command("stop 2")
    shown = wait_for(agent, "refused", *["refused"] * 3)
    out = text(agent, "main: refused, nothing listens at any server's "
               "address, says ICMP (3 refused)")
    check("Connection refused" not in out, "each server, too", out)
    for i in range(3):
        sandbox.command("start %d" % i)
    shown = wait_for(agent, "ok", "ok", "ok", "ok")
    check(shown["servers"][0]["refused"] > 0, "refusals are forgotten", shown)


def test_servers_that_hang(lab):
    """servers that answered before and are silent now, without a refusal"""
    key = lab.keygen("main")
    sandbox = lab.sandbox(key)
    agent = lab.agent(document(lab, key, sandbox))
    wait_for(agent, "ok", "ok", "ok", "ok")
    sandbox.command("drop 0 1")
    shown = wait_for(agent, "partial", "silent", "ok", "ok")
    check(shown["servers"][0]["missed_rounds"] > 0, shown)
    text(agent, "in a row without its answer",
         "other servers answer the same requests, so this agent's key and "
         "clock are good for them: it is stopped, its own clock is off, it no "
         "longer has the key, or nothing gets there or back")
    sandbox.signal(signal.SIGSTOP)
    shown = wait_for(agent, "silent", *["silent"] * 3)
    same(tenant_of(shown)["clock"]["stepped_ms"], 0)
    same([s["refused"] for s in shown["servers"]], [0] * 3)
    text(agent, "main: silent, no server answers any more",
         "the clock was not set since", "no ICMP refusal has come")
    sandbox.signal(signal.SIGCONT)
    wait_for(agent, "partial", "silent", "ok", "ok")


def test_a_suspected_server(lab):
    """with suspect_after it is marked, in the table too, until it answers"""
    key = lab.keygen("main")
    sandbox = lab.sandbox(key)
    agent = lab.agent(document(lab, key, sandbox, policy=dict(
        harness.SHORT, suspect_after=1)))
    wait_for(agent, "ok", "ok", "ok", "ok")
    sandbox.command("drop 0 1")
    shown = wait_for(agent, "partial", "silent", "ok", "ok")
    same([s["suspected"] for s in shown["servers"]], [True, False, False])
    out = text(agent, "* suspected: not waited for",
               "; the oldest is suspected: not waited for")
    check("each decision waits" not in out, out)
    same([row[4] for row in table(out)], ["silent*", "ok", "ok"], out)
    sandbox.command("drop 0 0")
    shown = wait_for(agent, "ok", "ok", "ok", "ok")
    same([s["suspected"] for s in shown["servers"]], [False] * 3)
    check("suspected" not in agent.ctl("servers").out, "the star stays")


def test_slow_servers(lab):
    """answers that come after the horizon: nothing is wrong but their speed"""
    key = lab.keygen("main")
    sandbox = lab.sandbox(key)
    for delay in (65, 80, 300, 700):
        for i in range(3):
            sandbox.command("delay %d %d" % (i, delay))
        agent = lab.agent(document(lab, key, sandbox, policy={"unit_ms": 20}))
        for rule in ("plain", None, None):
            shown = wait_for(agent, "slow", *["slow"] * 3, rule=rule)
        for server in shown["servers"]:
            check(server["overdue"] > 0, server)
        out = " ".join(text(
            agent, "main: slow, servers answer after the horizon of 60 ms",
            "raise the policy's unit_ms; see rlctl policy --rtt").split())
        took, = re.findall(r"\(about (\d+) ms\)", out)
        check(delay <= int(took), delay, out)
        check("--rtt %s;" % took in out, out)
        if "are good" in out:  # both copies are answered, the first counts
            check(all(s["overdue"] < s["answered"] for s in shown["servers"]),
                  shown)
        # Past 160 ms nobody knows what it was the answer to.
        check("the key and the clock are good" in out or delay > 100 or
              int(took) > 160, delay, out)
        if delay > 160:
            same([s["answered"] for s in shown["servers"]], [0] * 3, shown)
            check("the operations were forgotten by then" in out, out)
            check("are good" not in out, out)
        agent.stop()


def test_servers_with_other_ids(lab):
    """something does come back, then, and it is said what"""
    key = lab.keygen("main")
    sandbox = lab.sandbox(key, "--wrong-id", "1")
    agent = lab.agent(document(lab, key, sandbox))
    wait_for(agent, "never-answered", *["never-answered"] * 3)
    out = text(agent, "or servers with other ids: ",
               " datagrams came back from servers that were not asked",
               "ignored: server ")
    check("nothing gets there" not in " ".join(out.split()), out)
    for i in range(1, 3):
        sandbox.command("wrong-id %d 0" % i)
    wait_for(agent, "partial", "never-answered", "ok", "ok")
    text(agent, "it does not have the key, or it has another id: ")


def test_clocks_that_differ(lab):
    """the servers' own stamps tell by how much, while they still answer"""
    key = lab.keygen("main")
    sandbox = lab.sandbox(key, "--clock-offset", "20000",
                          "--clock-tolerance", "30000")
    agent = lab.agent(document(lab, key, sandbox))
    shown = wait_for(agent, "clock-off", *["clock-off"] * 3)
    for server in shown["servers"]:
        check(20000 - 1 - server["clock_within_ms"] <= server["clock_ms"]
              <= 20000 + 1, server)
    check(15000 < tenant_of(shown)["clock"]["offset_ms"] < 25000, shown)
    text(agent, "+20.0s", "3 of 3 servers are ahead of this one")
    # One server of three: it is that one's clock.
    sandbox.command("clock-offset 0 0")
    sandbox.command("clock-offset 1 0")
    shown = wait_for(agent, "ok", "ok", "ok", "clock-off")
    text(agent, "its clock is ahead of this one by 20 s",
         "every server answers (2 ok, 1 clock-off)")
    sandbox.command("clock-offset 2 60000")
    wait_for(agent, "partial", "ok", "ok", "silent")
    text(agent, "its clock was ahead by 20 s when it last answered")


def test_a_clock_past_the_tolerance(lab):
    """then nobody answers, and the wire does not tell it from a wrong key"""
    key = lab.keygen("main")
    sandbox = lab.sandbox(key, "--clock-offset", "-60000")
    agent = lab.agent(document(lab, key, sandbox))
    wait_for(agent, "never-answered", *["never-answered"] * 3)
    text(agent, "a clock that is off, or nothing gets there")
    check(all(c["stale"] > 0 for c in sandbox.counters()), "another reason")


class ShiftedClock:
    """A wall clock for a program, which the test may set."""

    def __init__(self, lab):
        self.path = os.path.join(lab.path, "shift")
        self.set(0)
        source = os.path.join(os.environ.get("srcdir", "."), "tests",
                              "system", "shiftclock.c")
        library = os.path.join(lab.path, "shiftclock.so")
        argv = shlex.split(os.environ.get("CC") or "cc") + [
            "-shared", "-fPIC", "-o", library, source]
        done = subprocess.run(argv, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        same(done.returncode, 0, argv, done.stdout)
        asan = os.environ.get("ASAN_OPTIONS", "")
        self.env = {"LD_PRELOAD": library, "SHIFTCLOCK": self.path,
                    "ASAN_OPTIONS": asan + ":verify_asan_link_order=0"}

    def set(self, ms):
        """In place: the program has mapped it."""
        with open(os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o600),
                  "wb") as f:
            f.write(struct.pack("=q", ms))


def test_a_clock_that_is_set(lab):
    """silence since the wall clock was set, forward and back, with numbers"""
    key = lab.keygen("main")
    sandbox = lab.sandbox(key)
    clock = ShiftedClock(lab)
    path = lab.config(document(lab, key, sandbox))
    agent = harness.Agent(lab, "agent", [harness.AGENT, "-c", path],
                          lab.socket_path(), clock.env).ready()
    wait_for(agent, "ok", "ok", "ok", "ok")
    for shift, word in ((3600000, "forward by 60 min"),
                        (-7200000, "back by 2 h")):
        clock.set(shift)
        shown = wait_for(agent, "clock-stepped", *["silent"] * 3)
        stepped = tenant_of(shown)["clock"]["stepped_ms"]
        check(abs(stepped - shift) < 100, stepped, shift)
        out = text(agent, "the clock of this host was set " + word)
        check("in a row" not in out, "each server, too", out)
        clock.set(0)
        shown = wait_for(agent, "ok", "ok", "ok", "ok")
        same(tenant_of(shown)["clock"]["stepped_ms"], 0)


def test_dead_dns(lab):
    """no server is known, and it says what failed and since when"""
    key = lab.keygen("main")
    dns = peer.Dns()
    closed = dns.endpoint()
    dns.close()
    agent = lab.agent(document(lab, key, dns={
        "name": "gone.test", "nameservers": [closed], "timeout_ms": 200}),
                      ready=False)
    reachable(agent)
    shown = wait_for(agent, "dns", rule=None)
    same(shown["servers"], [])
    tenant = tenant_of(shown)
    same(tenant["discovery"], "unavailable")
    check(tenant["dns_error"] and tenant["dns_failing_ms"] >= 0, tenant)
    text(agent, "main: dns, no server is known: DNS has failed for",
         tenant["dns_error"], "dns: failing, see above")


def test_dns_that_dies_later(lab):
    """the servers that are known go on to be used, and the failure shows"""
    key = lab.keygen("main")
    sandbox = lab.sandbox(key)
    dns = peer.Dns(ttl=0)
    lab.closers.append(dns.close)
    dns.serve("old.test", [Known(s) for s in sandbox.servers])
    agent = lab.agent(document(lab, key, dns={
        "name": "old.test", "nameservers": [dns.endpoint()],
        "timeout_ms": 200, "forced_min_ms": 200}))
    wait_for(agent, "ok", "ok", "ok", "ok")
    dns.close()
    shown = wait_for(agent, "dns-stale", "ok", "ok", "ok")
    same(tenant_of(shown)["discovery"], "ready")
    text(agent, "main: dns-stale", "the known ones stay in use",
         "dns: failing, see above")
    sandbox.signal(signal.SIGSTOP)
    wait_for(agent, "silent", *["silent"] * 3)
    text(agent, "so the servers may have moved")


class Known:
    """A server of the sandbox as peer.Dns knows them."""

    def __init__(self, server):
        self.server_id = int(server["server_id"])
        host, port = server["addresses"][0].rsplit(":", 1)
        self.address = (host, int(port))


def test_a_wrong_profile(lab):
    """requests without guards are answered, those with guards never are"""
    key = lab.keygen("main")  # format 1, which goes with v2
    sandbox = lab.sandbox(key)
    agent = lab.agent(document(lab, key, sandbox, profile="v1"))
    agent.check("guarded")
    wait_for(agent, "never-answered", *["never-answered"] * 3, rule=None)
    odd = "; v1 is configured, the key's format says v2"
    text(agent, "all operations had guards, so it may also be a wrong profile" +
         odd)
    wait_for(agent, "profile", rule="plain")
    text(agent, "main: profile, operations without guards are answered", odd)
    agent.check("guarded")
    wait_for(agent, "profile", *["silent"] * 3, rule=None)
    agent.stop()
    # Plain ones first: perhaps silence has begun with the guards.
    agent = lab.agent(document(lab, key, sandbox, profile="v1"))
    agent.check("plain")
    wait_for(agent, "silent", *["silent"] * 3, rule="guarded")
    text(agent, "; only operations with guards went unanswered (",
         "), none with guards was ever answered: perhaps the profile" + odd)


def test_answers_that_are_invalid(lab):
    """what comes back and is ignored is counted, by class"""
    key = lab.keygen("main")
    sandbox = lab.sandbox(key, "--corrupt", "1")
    agent = lab.agent(document(lab, key, sandbox))
    shown = wait_for(agent, "invalid")
    counts = [sum(s["invalid_" + why] for why in
                  ("auth", "malformed", "content", "source"))
              for s in shown["servers"]]
    check(max(counts) > 0, shown)
    check(sum(n for name, n in tenant_of(shown).items()
              if name.startswith("invalid_")) >= sum(counts), shown)
    text(agent, "main: invalid", "in its name ignored", "ignored: ")


def test_no_control_character_reaches_the_terminal(lab):
    """what DNS, an agent and a configuration say cannot steer it"""
    key = lab.keygen("main")
    dns = peer.Dns()
    closed = dns.endpoint()
    dns.close()
    tenant = {"key": {"file": key}, "dns": {
        "name": "gone.test", "nameservers": [closed], "timeout_ms": 200}}
    name = "m\u00e4in\u009b31m"
    agent = lab.agent(lab.document({name: tenant}), ready=False)
    reachable(agent)
    for what in ("servers", "status"):
        out = agent.ctl(what).out
        check("m\u00e4in?31m" in out, out)
        check(not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", out), repr(out))


def row(**fields):
    """A server of the document with the longest fields that agents have."""
    return dict({
        "tenant": "main", "server_id": "9223372036854775807", "rank": 0,
        "addresses": ["203.113.213.210:29292"], "diagnosis": "never-answered",
        "diagnosis_text": "x", "suspected": True, "sent": 99999,
        "answered": 99999, "missed_rounds": 9999999, "rtt_p50_us": 12345,
        "rtt_p99_us": 98765, "last_answer_ms": 99000, "refused": 10000000,
        "clock_ms": -20000}, **fields)


def test_what_the_table_makes_of_any_document(lab):
    """long ids fit 120 columns, no cut is hidden, no control is printed"""
    v6 = "[2001:db8:1111:2222:3333:4444:5555:6666]:65535"
    texts = [json.dumps({"servers": rows, "tenants": []}) for rows in (
        [row(), row(rank=1), row(rank=2)],
        [row(server_id="18446744073709551615", tenant="\u00e9" * 127,
             addresses=[v6, "127.0.0.1:1"])],
        [row(tenant="a\x1b[2Jb\x9bc", server_id="\r\n", diagnosis="\x07",
             addresses=["\x1b]0;x"])],
        [row(tenant="t" * 300, server_id="7" * 255)],
        [{}, {"addresses": [1]}],
        [row(clock_ms=-1), row(clock_ms=-49), row(clock_ms=-50),
         row(clock_ms=0)])]
    fake = FakeAgent(lab, SERVERS, texts)
    wide, long, rude, cut, empty, clocks = [
        lab.ctl("--socket", fake.path, "servers").out for _ in texts]
    same([line.split()[-1] for line in clocks.split("\n")[1:5]],
         ["+0.0s", "+0.0s", "-0.1s", "+0.0s"], clocks)
    for line in wide.split("\n"):
        check(len(line) <= 120, len(line), wide)
    same(wide.count("9223372036854775807  203.113.213.210:29292") +
         wide.count("9223372036854775807 203.113.213.210:29292"), 3, wide)
    for word in ("18446744073709551615", v6 + " +1", "\u00e9" * 127):
        check(word in long, word, long)
    check(not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", rude), repr(rude))
    check("a?[2Jb?c" in rude, repr(rude))
    check("t" * 252 + "... " in cut and "7" * 255 in cut, cut)
    same([line.split() for line in empty.split("\n")[1:3]],
         [["-"] * len(COLUMNS)] * 2)


if __name__ == "__main__":
    harness.run([value for name, value in list(globals().items())
                 if name.startswith("test_")])
