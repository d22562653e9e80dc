#!/usr/bin/env python3
"""
rlctl bench against the agent and the sandbox: what it counts is what the agent
counts; its bounds, its interruption, its errors; and that the manual's words
on its document are true.
"""

import os
import re
import signal
import socket
import subprocess

import harness
import wire
from fake_agent import OpenAgent, decision
from harness import USAGE, check, poll, same

LIMIT = 20
WIDE = ("bench", "wide", "--key", "k")
PERCENTILES = ["min", "p50", "p90", "p99", "p99_9", "max"]


def bring_up(lab, policy=None, faults=(), **more):
    # An unversioned key without a limit: any policy fits.
    key = lab.keygen("main", fmt=0, dedup_ms=0)
    sandbox = lab.sandbox(key, *faults, zone="rl.test", cluster=1)
    tenant = {"key": {"file": key}, "policy": policy or harness.POLICY,
              "dns": {"name": sandbox.zone, "nameservers": [sandbox.dns]}}
    document = lab.document({"main": tenant}, {
        "wide": {"resources": [{"bucket": "wide:{key}", "window_ms": 1000,
                                "limit": 1000000000}]},
        "narrow": {"resources": [{"bucket": "narrow:{key}",
                                  "window_ms": 86400000, "limit": LIMIT}]}},
        log={"level": "info"}, **more)
    return sandbox, lab.agent(document)


def bench(agent, *args):
    """Its document, whose figures fit together."""
    answer = agent.ctl("bench", *args, "--json").json()
    for part in ("outcomes", "sources", "reasons"):
        same(sum(answer[part].values()), answer["checks"], part, answer)
    times = [answer["latency_us"][name] for name in PERCENTILES]
    same(times, sorted(times), answer)
    check(0 < times[0] and times[-1] <= answer["elapsed_us"], answer)
    rate = answer["checks"] * 1e6 / answer["elapsed_us"]
    check(abs(answer["per_second"] - rate) <= 0.1, answer)
    same([answer[name] for name in ("asked", "error", "first_failure")],
         [answer["checks"], None, None])
    return answer


def counters(agent, name):
    for rule in agent.ctl("rules", "--json").json()["rules"]:
        if rule["name"] == name:
            return rule["counters"]
    raise harness.Failure("no rule " + name)


def test_counts(lab):
    """are the agent's, without those of the warm-up"""
    _, agent = bring_up(lab)
    for args, checks, warmup in (
            (("--checks", "500"), 500, 0),
            (("--checks", "20000", "--window", "1000"), 20000, 0),
            (("--checks", "5000", "--connections", "100", "--warmup", "300",
              "--key", "k{n}", "--keys", "1000", "--order", "random"),
             5000, 300)):
        before = counters(agent, "wide")
        answer = bench(agent, "wide", "--key", "k", *args)
        after = counters(agent, "wide")
        same(answer["checks"], checks, args)
        same((answer["warmup"], answer["interrupted"]), (warmup, False))
        same(answer["permitted"] + warmup,
             after["permitted"] - before["permitted"], args)
        for name, number in answer["outcomes"].items():
            same(number + (warmup if name == "allowed" else 0),
                 after[name] - before[name], name, args)
    same(agent.inflight(), 0)


def test_keys_and_tokens(lab):
    """each key has its own tokens, and a check takes as many as are told"""
    _, agent = bring_up(lab)
    answer = bench(agent, "narrow", "--key", "a{n}", "--keys", "10",
                   "--checks", "300", "--window", "7")
    same((answer["outcomes"]["allowed"], answer["outcomes"]["denied"]),
         (10 * LIMIT, 300 - 10 * LIMIT), answer)
    same(answer["reasons"], {"ok": 200, "resource": 100})
    answer = bench(agent, "narrow", "--key", "b{n}", "--keys", "10",
                   "--checks", "300", "--tokens", "5")
    same(answer["outcomes"]["allowed"], 10 * LIMIT // 5, answer)
    # Their names are those that any other client has.
    same(agent.check("narrow", "--key", "a9")["outcome"], "denied")
    same(agent.check("narrow", "--key", "a10")["outcome"], "allowed")


def test_duration(lab):
    """asks for so long, or until the number is reached"""
    _, agent = bring_up(lab)
    answer = bench(agent, "wide", "--key", "k", "--duration", "200ms")
    check(answer["elapsed_us"] >= 190000, answer)
    answer = bench(agent, *WIDE[1:], "--duration", "60m", "--checks", "10")
    same(answer["checks"], 10)


def test_rate(lab):
    """so many a second"""
    _, agent = bring_up(lab)
    answer = bench(agent, *WIDE[1:], "--rate", "2000", "--duration", "500ms",
                   "--connections", "3", "--window", "400", "--warmup", "9")
    same([answer[name] for name in ("checks", "unasked", "rate")],
         [1000, 0, 2000])
    check(500000 <= answer["elapsed_us"], answer)
    check(0 < answer["rate_kept"] <= 2000, answer)


def test_rate_late(lab):
    """what waits for room counts as late: 50 pairs of 20 ms, due in 100 ms"""
    _, agent = bring_up(lab, faults=("--delay", "20"))
    args = (*WIDE[1:], "--checks", "100", "--window", "2")
    closed, late = bench(agent, *args), bench(agent, *args, "--rate", "1000")
    same((late["checks"], late["unasked"]), (100, 0))
    check(late["latency_us"]["p50"] >= 430000, late)
    check(late["latency_us"]["p99"] >= 860000, late)
    check(closed["latency_us"]["p50"] < late["latency_us"]["p50"], closed)


def test_rate_beyond(lab):
    """what had no room is told, and the time keeps its bound"""
    _, agent = bring_up(lab)
    answer = bench(agent, "wide", "--key", "k", "--rate", "10000000",
                   "--duration", "200ms", "--window", "50")
    same(answer["asked"] + answer["unasked"], 2000000)
    check(answer["unasked"] > 0 < answer["asked"], answer)
    result = agent.ctl(*WIDE, "--rate", "10000000", "--duration", "100ms")
    check(re.search(
        r"\nrate        10000000 per second, [0-9]+\.[0-9] kept; had no room "
        r"until the end [0-9]+\nin flight   at most 1 on 1 connection\n",
        result.out), result)
    result = agent.ctl(*WIDE, "--rate", "1000", "--checks", "20", "--window",
                       "20")
    check(re.search(r"\nrate        1000 per second, [0-9]+\.[0-9] kept\n",
                    result.out), result)


def test_text(lab):
    """lines for people"""
    _, agent = bring_up(lab)
    result = agent.ctl(*WIDE, "--checks", "100", "--connections", "2",
                       "--window", "3")
    check(re.fullmatch(
        "checks      100 in [0-9.]+ s, [0-9]+ per second\n"
        "in flight   6 on 2 connections\n"
        "outcomes    allowed 100, denied 0, failed 0, cancelled 0; "
        "permitted 100\n"
        "decided by  server 100, empty 0, policy 0, local 0, shadow 0\n"
        "latency ms  min [0-9.]+, p50 [0-9.]+, p90 [0-9.]+, p99 [0-9.]+, "
        "p99.9 [0-9.]+, max [0-9.]+\n", result.out), result)


def test_refused(lab):
    """what can never succeed is not asked for long, and is an error"""
    _, agent = bring_up(lab)
    for args, most, up in ((), 1, ", given up"), (
            ("--warmup", "5", "--checks", "1"), 1, ""), (
                ("--connections", "3", "--window", "900"), 2700, ", given up"):
        result = agent.ctl("bench", "no\033here", *args, expect=1)
        count = int(re.match(
            r"checks      ([0-9]+) in [0-9.]+ s%s, [0-9].*\nreasons     "
            r"unknown-rule \1\n" % up, result.out, re.S).group(1))
        check(1 <= count <= most and (most == 1 or count >= 100), result)
        same(result.err, 'rlctl: bench: %d check%s: unknown rule "no?here"\n' %
             (count, " failed" if most == 1 else "s failed, the first"))


def interrupt(lab, agent, number, *args, ready):
    """The document of a bench without end that this signal ends."""
    ctl = lab.spawn_ctl("--socket", agent.socket, *WIDE, "--duration",
                        "10080m", "--json", *args)
    poll("the load", ready)
    ctl.signal(number)
    same((ctl.wait(), ctl.err()), (0, ""))
    answer = harness.Result([], 0, ctl.out(), "").json()
    check(answer["interrupted"], answer)
    poll("none in flight", lambda: agent.inflight() == 0)
    return answer


def test_interrupted(lab):
    """what was measured until then is printed"""
    _, agent = bring_up(lab)
    for number in (signal.SIGINT, signal.SIGTERM):
        before = counters(agent, "wide")["allowed"]
        answer = interrupt(
            lab, agent, number, "--connections", "3", "--window", "10", ready=
            lambda at=before: counters(agent, "wide")["allowed"] > at + 1000)
        check(answer["outcomes"]["allowed"] > 900, answer)
        check(answer["latency_us"]["p50"] > 0, answer)


def test_interrupted_unanswered(lab):
    """a window is in flight as a whole, and a signal waits for none of it"""
    sandbox, agent = bring_up(lab, policy={"unit_ms": 60000})
    sandbox.command("delay 0 60000")
    for args in ((), ("--warmup", "2000")):
        answer = interrupt(lab, agent, signal.SIGINT, "--window", "1000",
                           *args, ready=lambda: agent.inflight() == 1000)
        same(answer["checks"], 0)
        same(set(answer["latency_us"].values()), {None})
    same(counters(agent, "wide")["cancelled"], 2000)


def test_the_agent_ends(lab):
    """what there was, one line and 1, as when it refuses or says nothing"""
    _, agent = bring_up(lab, limits={"max_connections_per_uid": 5})
    result = agent.ctl("bench", "wide", "--connections", "6", expect=1)
    check(re.search(r"\(its limits are max_connections.* with 5 of ",
                    result.err), result)
    ctl = lab.spawn_ctl("--socket", agent.socket, *WIDE, "--duration", "10m",
                        "--window", "100")
    poll("the load", lambda: counters(agent, "wide")["allowed"] > 100)
    same(agent.stop(), 0)
    same((ctl.wait(), ctl.err().count("\n")), (1, 1))
    check(ctl.err().startswith("rlctl: bench: the agent ends"), ctl.err())
    words = re.match("checks      ([0-9]+) in [0-9.]+ s, ended by an error, .*"
                     "\nlatency ms  min ", ctl.out(), re.S)
    check(words and int(words.group(1)) > 100, ctl.out())
    same(agent.ctl("bench", "wide", expect=1).err, "rlctl: bench: %s: No such "
         "file or directory\n" % agent.socket)
    fake = OpenAgent(lab, {})
    for args, asked in ((), 1), (("--rate", "20", "--window", "2"), 2), (
            ("--warmup", "1"), 0):
        result = lab.ctl("--socket", fake.path, "bench", "r", "--timeout",
                         "200", "--json", *args, expect=1)
        error = "no answer of the agent for 200 ms"
        same(result.err, "rlctl: bench: %s\n" % error)
        answer = result.json()
        same([answer[name] for name in ("error", "interrupted", "asked",
                                        "checks")], [error, False, asked, 0])
        same(set(answer["latency_us"].values()), {None})


def test_nothing_decided(lab):
    """is an error by itself, and one line with another"""
    fake = OpenAgent(lab, {})
    for count, text, line in (
            (2, "too\033late", "2 checks failed, the first: too?late"),
            (1, "", "no answer of the agent for 200 ms; 1 check failed: "
             "timeout")):
        fake.requests.clear()
        answer = decision("failed", True, "policy", "timeout", text=text)
        fake.answers[wire.CHECK] = lambda _, to=answer, most=count: (
            to if len(fake.requests) < most else None)
        result = lab.ctl("--socket", fake.path, *WIDE, "--json", "--checks",
                         "2", "--timeout", "200", expect=1)
        same(result.err, "rlctl: bench: %s\n" % line)
        same(result.json()["first_failure"], text or "timeout")


def test_nobody_accepts(lab):
    """neither a time nor a signal that ends the wait is a riddle"""
    path = os.path.join(lab.path, "full.sock")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(0)
    first = socket.socket(socket.AF_UNIX)
    first.connect(path)  # the only place there is
    result = lab.ctl("--socket", path, *WIDE, "--timeout", "200", expect=1)
    same((result.out, result.err),
         ("", "rlctl: bench: %s: accepts no connection for 200 ms\n" % path))
    ctl = lab.spawn_ctl("--socket", path, "bench", "r")

    def waits():
        with open("/proc/%d/status" % ctl.pid, encoding="ascii") as f:
            status = f.read()
        caught = int(re.search(r"\nSigCgt:\s*(\w+)\n", status).group(1), 16)
        return "State:\tS" in status and caught >> signal.SIGINT - 1 & 1
    poll("the wait", waits)
    ctl.signal(signal.SIGINT)
    same((ctl.wait(), ctl.out(), ctl.err()),
         (1, "", "rlctl: bench: interrupted\n"))
    first.close()
    listener.close()


def test_what_is_asked(lab):
    """the options reach the agent, and all sources are counted"""
    answers = [decision(), decision("denied", True, "shadow", "resource"),
               decision("failed", True, "local", "timeout"),
               decision("failed", False, "policy", "validation"),
               decision("allowed", True, "empty")]
    fake = OpenAgent(lab, {})
    fake.answers[wire.CHECK] = lambda _: answers[len(fake.requests) % 5]
    result = lab.ctl(
        "--socket", fake.path, "--json", "bench", "r", "--key", "<{n}>",
        "--keys", "11", "--tokens", "7", "--deadline", "1234", "--checks",
        "20")
    same(result.err, "rlctl: bench: 8 checks failed, the first: timeout\n")
    answer = result.json()
    asked = fake.asked(wire.CHECK)
    same(len(asked), 20)
    for number, payload in enumerate(asked):
        same(payload[16:40], bytes(24))  # the hash and the age
        same(payload[40:52], bytes.fromhex("d20400000200000007000000"))
        same(payload[52:], wire.string("r") +
             wire.string("<%02d>" % (number % 11)))
    same(len({payload[:16] for payload in asked}), 20)
    same([answer[name] for name in ("key", "keys", "tokens", "deadline_ms",
                                    "permitted", "first_failure")],
         ["<{n}>", 11, 7, 1234, 16, "timeout"])
    same(answer["outcomes"],
         {"allowed": 8, "denied": 4, "failed": 8, "cancelled": 0})
    same(answer["sources"],
         {"server": 4, "empty": 4, "policy": 4, "local": 4, "shadow": 4})
    same(answer["reasons"], {"ok": 8, "resource": 4, "timeout": 4,
                             "validation": 4})
    # No key is another thing than an empty one.
    lab.ctl("--socket", fake.path, "bench", "r", "--checks", "1")
    same(fake.asked(wire.CHECK)[-1][44:48], bytes(4))


def test_usage(lab):
    """64 and one line, before anybody is asked"""
    numbers = [row.split() for row in (
        "--keys 0 1..1000000000", "--window 65537 1..65536",
        "--connections 10001 1..10000", "--tokens 65536 1..65535",
        "--rate 10000001 1..10000000", "--deadline 0 1..4294967295",
        "--checks 0 1..1000000000000", "--warmup x 0..1000000000000",
        "--timeout 0 1..4294967295")]
    time = ("--duration: must be a whole number of ms, s or m such as 500ms, "
            '10s or 2m, up to 10080m, not "%s"')
    for args, words in (
            ((), "bench: name a rule"),
            (("a", "b"), 'bench: unexpected argument "b"'),
            (("r", "--keys", "2"),
             "bench: --key must contain {n} when --keys is more than 1"),
            (("r", "--order", "up"),
             '--order: must be sequential or random, not "up"'),
            (("r", "--rate", "1", "--duration", "999ms"),
             "bench: at this rate no check is due in that time"),
            *((("r", option, text), '%s: must be a number in %s, not "%s"' % (
                option, bounds, text)) for option, text, bounds in numbers),
            (("r", "--permit"), "bench: unrecognized option '--permit'"),
            *((("r", "--duration", text), time % text) for text in (
                "", "10", "s", "0s", "-1s", "1.5s", "1h", "10 s", "10081m",
                "18446744073709551617ms"))):
        result = lab.ctl("--socket", os.path.join(lab.path, "none"), "bench",
                         *args, expect=USAGE)
        same((result.out, result.err), ("", "rlctl: %s\n" % words), args)
    check(lab.ctl("bench", "--help").out.startswith("Usage: rlctl"))


def test_full(lab):
    """a result that cannot be written is no success"""
    fake = OpenAgent(lab, {wire.CHECK: decision()})
    with open("/dev/full", "wb") as full:
        result = subprocess.run(
            [harness.CTL, "--socket", fake.path, *WIDE, "--checks", "1"],
            stdout=full, stderr=subprocess.PIPE, env=lab.env(),
            timeout=harness.PATIENCE, check=False)
    same(result.returncode, 1)
    check(re.match(b"rlctl: bench: cannot write.*\n$", result.stderr), result)


def fields(document):
    """The names in it, in its order; reasons are named as they occur."""
    for name, value in document.items():
        yield name
        if isinstance(value, dict) and name != "reasons":
            yield from fields(value)


def test_the_manual(lab):
    """rlctl(1) has the fields of the document and the options of --help"""
    fake = OpenAgent(lab, {wire.CHECK: decision()})
    document = lab.ctl("--socket", fake.path, "bench", "r", "--checks", "1",
                       "--json").json()
    path = os.path.join(os.environ.get("srcdir", "."), "man/rlctl.1")
    with open(path, encoding="utf-8") as f:
        page = f.read()
    section = page.split(".Sh BENCH\n")[1].split("\n.Sh ")[0]
    same(re.findall(r"^\.It Sy (\w+)$", section, re.M),
         list(fields(document)))
    usage = lab.ctl("--help").out.split("  bench RULE")[1].split("  key ")[0]
    options = sorted(re.findall(r"--(\w+)", usage))
    synopsis = page.split(".Cm bench Ar rule\n")[1].split("\n.Nm")[0]
    same(sorted(re.findall(r"Fl -(\w+)", synopsis)), options)
    item = page.split(".It Cm bench Ar rule\n")[1].split(".It Cm ")[0]
    same(sorted(re.findall(r"^\.It Fl -(\w+)", item, re.M)),
         [name for name in options if name != "timeout"])


if __name__ == "__main__":
    harness.run([value for name, value in list(globals().items())
                 if name.startswith("test_")])
