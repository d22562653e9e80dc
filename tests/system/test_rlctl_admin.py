#!/usr/bin/env python3
"""
What rlctl rules, explain, ping, reload and drain print and exit with, against
an agent that says what the test wants; and that whatever an agent says, no
control character reaches the terminal.
"""

import copy
import json
import os
import re
import struct
import time

import harness
import wire
from fake_agent import OpenAgent, decision, document, done
from harness import DENIED, USAGE, check, poll, same

POLICY_TYPE = 0x43
RULE = {
    "name": "checkout", "tenant": "main", "label": "shop", "mode": "enforce",
    "on_failure": "open", "offered": True,
    "resources": [{"bucket": "checkout:{key}", "window_ms": 1000,
                   "limit": 100, "tokens": 2}],
    "guards": [{"tracker": "inventory", "below_ms": 80}],
    "counters": {"checks": 11, "allowed": 12, "denied": 13, "failed": 14,
                 "cancelled": 15, "permitted": 16, "would_deny": 17,
                 "local": 19, "reports": 18}}
EXPLAINED = {
    "rule": "checkout", "tenant": "main", "key_id": "7", "profile": "v2",
    "label": "shop", "mode": "enforce", "on_failure": "closed",
    "offered": True, "error": None,
    "resources": [{"bucket": "checkout:{key}", "name": "checkout:eu",
                   "id": "00112233", "window_ms": 1000, "limit": 100,
                   "tokens": 6}],
    "guards": [{"tracker": "inventory", "name": "inventory",
                "id": "44556677", "ttl_ms": 10000, "max_samples": 101,
                "buffer_size": 32, "min_samples": 5, "below_ms": 80}],
    "datagram_bytes": 181, "datagram_max": 1201, "servers": 3,
    "dedup_ttl_ms": 61, "default_deadline_ms": 1061,
    "policy": {"unit_ms": 20, "replay_count": 1, "replay_gap": {"fixed": 1},
               "preference": {"fixed": 1}, "final_receive_units": 1,
               "final_preference_units": 0, "completion_delivery": True,
               "suspect_after": 0}}
# What must not come out: escape, C1 in UTF-8, newline, delete.
RUDE = "a\x1b[2Jb\u009b2Jc\nd\x7f"
POLITE = "a?[2Jb?2Jc?d?"


def rules_document(*rules):
    return document(json.dumps({"generation": 1, "config_hash": "0" * 32,
                                "rules": rules}))


def ctl(lab, fake, *args, expect=0):
    return lab.ctl("--socket", fake.path, *args, expect=expect)


def harmless(result, lines=None):
    """Text of whole lines that steers no terminal."""
    for text in (result.out, result.err):
        check(not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", text), result)
    if lines is not None:
        same(result.out.count("\n"), lines, result.out)
    return result.out


def test_rules_as_text(lab):
    """a table of what came of the checks, and under it what each asks for"""
    watched = dict(RULE, name="w" * 255, tenant="\u00e9" * 127,
                   label="", mode="shadow", offered=False, guards=[],
                   on_failure={"local": {"permits_per_second": 10,
                                         "max_burst_seconds": 1.5}})
    huge = dict(RULE, name="huge", offered=None, resources=[],
                on_failure="closed",
                counters={name: 2 ** 63 - 1 for name in RULE["counters"]})
    fake = OpenAgent(lab, {wire.RULES: rules_document(RULE, watched, huge)})
    text = harmless(ctl(lab, fake, "rules"))
    head, one, two, three, empty, *rest = text.split("\n")
    same(head.split(), ["rule", "tenant", "mode", "offered", "checks",
                        "allowed", "denied", "would-deny", "failed",
                        "local", "cancelled", "permitted", "reports"])
    same(one.split(), ["checkout", "main", "enforce", "yes", "11", "12", "13",
                       "17", "14", "19", "15", "16", "18"])
    same(two.split()[:4],
         ["w" * 21 + "...", "\u00e9" * 21 + "...", "shadow", "no"])
    same(three.split()[3], "-")
    same(empty, "")
    same({len(line) for line in (head, one, two, three)}, {len(one)})
    for line in (head, one, two, three):
        check(len(line) < 250, line)
    same(rest, ["checkout: on failure open, label shop",
                "  bucket checkout:{key}: 2 of 100 tokens in 1000 ms",
                "  tracker inventory: below 80 ms",
                "w" * 255 + ": on failure local, 10 permits per second and "
                "bursts of 1.5 s",
                "  bucket checkout:{key}: 2 of 100 tokens in 1000 ms",
                "huge: on failure closed, label shop",
                "  tracker inventory: below 80 ms", ""])
    fake.answers[wire.RULES] = rules_document()
    same(ctl(lab, fake, "rules").out, "no rule is configured\n")


def test_rules_as_json(lab):
    """the agent's document as it is, with what a later agent adds"""
    more = dict(RULE, later=[{"x": 2 ** 63 - 1, "y": 0.1}])
    fake = OpenAgent(lab, {wire.RULES: rules_document(more)})
    for args in (("--json", "rules"), ("rules", "--json")):
        result = ctl(lab, fake, *args)
        same(result.out.count("\n"), 1)
        same(list(result.json()), ["generation", "config_hash", "rules"])
        same(result.json()["rules"], [more])
    same(fake.asked(wire.RULES), [b"", b""])


def explain_request(payload):
    options, tokens, length = struct.unpack_from("<IIH", payload)
    rule, rest = payload[10:10 + length], payload[10 + length:]
    return options, tokens, rule.decode(), rest[2:].decode()


def test_explain_as_text(lab):
    """everything that would be sent, in lines"""
    fake = OpenAgent(lab, {wire.EXPLAIN: document(json.dumps(EXPLAINED))})
    text = harmless(ctl(lab, fake, "explain", "checkout", "--key", "eu",
                        "--tokens", "3"))
    same([explain_request(p) for p in fake.asked(wire.EXPLAIN)],
         [(2, 3, "checkout", "eu")])
    same(text, """rule checkout
  tenant: main, key id 7, profile v2
  mode: enforce, on failure: closed
  label: shop
  offered here: yes
  bucket checkout:{key}: 6 of 100 tokens in 1000 ms
    name: checkout:eu
    id: 00112233
  tracker inventory: below 80 ms, ttl 10000 ms, samples at least 5 and at most 101, buffer 32
    name: inventory
    id: 44556677
  datagram: 181 of at most 1201 bytes, to each of the servers known: 3
  remembered by servers for: 61 ms
  a check waits by default at most: 1061 ms
  policy:
    unit_ms: 20
    replay_count: 1
    replay_gap:
      fixed: 1
    preference:
      fixed: 1
    final_receive_units: 1
    final_preference_units: 0
    completion_delivery: yes
    suspect_after: 0
""")
    result = ctl(lab, fake, "explain", "checkout", "--json")
    same(result.json(), EXPLAINED)
    same(list(result.json()), list(EXPLAINED))
    same(explain_request(fake.asked(wire.EXPLAIN)[1]), (0, 1, "checkout", ""))


def test_explain_what_would_fail(lab):
    """exit 0, and why it would fail"""
    failing = copy.deepcopy(EXPLAINED)
    failing.update(
        label="", offered=False, datagram_bytes=None, servers=None,
        error={"reason": "validation",
               "text": "bucket \"checkout:{key}\": no key"})
    failing["resources"][0].update(name=None, id=None)
    fake = OpenAgent(lab, {wire.EXPLAIN: document(json.dumps(failing))})
    text = ctl(lab, fake, "explain", "checkout").out
    same(text.split("\n")[0], "rule checkout: a check would fail, validation: "
         "bucket \"checkout:{key}\": no key")
    check("label" not in text, text)
    for line in ("  offered here: no", "    name: -", "    id: -",
                 "  datagram: - of at most 1201 bytes, to each of the servers "
                 "known: -"):
        check(line + "\n" in text, line, text)
    same(ctl(lab, fake, "explain", "checkout", "--json").json(), failing)


def test_explain_no_such_rule(lab):
    """exit 1 and the agent's line"""
    fake = OpenAgent(lab, {wire.EXPLAIN: done(
        "unknown-rule", "no rule \"checkuot\" here")})
    result = ctl(lab, fake, "explain", "checkuot", expect=1)
    same((result.out, result.err), (
        "", "rlctl: explain: unknown-rule: no rule \"checkuot\" here\n"))


def test_ping(lab):
    """the round trip; exit 1 when nobody answers"""
    fake = OpenAgent(lab, {wire.PING: lambda payload: (wire.PONG, payload)})
    text = ctl(lab, fake, "ping").out
    check(re.fullmatch(r"answered in \d+\.\d{3} ms\n", text), text)
    result = ctl(lab, fake, "ping", "--json").json()
    same(list(result), ["round_trip_us"])
    check(isinstance(result["round_trip_us"], int), result)
    fake.answers = {}
    result = ctl(lab, fake, "ping", "--timeout", "50", expect=1)
    same(result.err.count("\n"), 1, result)


def control(lab, answers):
    """A control socket where rlctl looks for it; and where it must not ask."""
    wrong = OpenAgent(lab, {}, name="agent.sock")
    return OpenAgent(lab, {wire.PING: lambda payload: (wire.PONG, payload),
                           **answers},
                     name="control.sock", default_ms=100), wrong


def test_reload(lab):
    """silent when it is in force; else the agent's one line"""
    fake, wrong = control(lab, {wire.RELOAD: done()})
    result = ctl(lab, wrong, "reload")
    same((result.out, result.err), ("", ""))
    fake.answers[wire.RELOAD] = done(
        "validation", "/etc/x.json: rules.a.mode: must be enforce or shadow")
    result = ctl(lab, wrong, "reload", expect=1)
    same((result.out, result.err), (
        "", "rlctl: reload: validation: /etc/x.json: rules.a.mode: must be "
        "enforce or shadow\n"))
    fake.answers[wire.RELOAD] = done("draining")
    same(ctl(lab, wrong, "reload", expect=1).err, "rlctl: reload: draining\n")
    same((len(fake.asked(wire.RELOAD)), wrong.requests), (3, []))


def test_patience(lab):
    """reload and drain outlast the agent's default deadline of 100 ms"""
    def late(_payload):
        time.sleep(0.4)
        return done()
    _, wrong = control(lab, {wire.RELOAD: late, wire.DRAIN: late})
    for what in ("reload", "drain"):
        begin = time.monotonic()
        result = ctl(lab, wrong, what)
        same((result.out, result.err), ("", ""), what)
        check(time.monotonic() - begin >= 0.4, what)


def test_drain_waits(lab):
    """until it is done; SIGINT ends the wait alone; --timeout bounds it"""
    fake, wrong = control(lab, {})
    waiting = lab.spawn_ctl("--socket", wrong.path, "drain")
    poll("the drain", lambda: fake.asked(wire.DRAIN))
    check(waiting.running(), waiting.err())
    waiting.signal(harness.signal.SIGINT)
    same((waiting.wait(), waiting.out(), waiting.err()),
         (1, "", "rlctl: drain: interrupted\n"))
    for what in ("drain", "reload"):
        result = ctl(lab, wrong, what, "--timeout", "50", expect=1)
        same(result.err,
             "rlctl: %s: no answer from the agent in time\n" % what)


def test_nobody_there(lab):
    """one line and 1, and not after ten minutes"""
    path = os.path.join(lab.path, "none.sock")
    soon = ("--timeout", "50")
    for args in (("ping",) + soon, ("rules",) + soon,
                 ("explain", "r") + soon, ("reload",), ("drain",)):
        result = lab.ctl("--socket", path, *args, expect=1)
        check(result.err.startswith("rlctl: %s: no agent at " % args[0]),
              result)
        same((result.out, result.err.count("\n")), ("", 1), result)


def test_usage(lab):
    """64 and one line, before anybody is asked"""
    for args, words in (
            (("rules", "x"), 'rules: unexpected argument "x"'),
            (("rules", "--key", "x"), "rules: unrecognized option '--key'"),
            (("explain",), "explain: name a rule"),
            (("explain", "--json"), "explain: name a rule"),
            (("explain", "a", "b"), 'explain: unexpected argument "b"'),
            (("explain", "a", "--tokens", "65536"),
             '--tokens: must be a number in 1..65535, not "65536"'),
            (("explain", "a", "--tenant", "b"),
             "explain: unrecognized option '--tenant'"),
            (("ping", "x"), 'ping: unexpected argument "x"'),
            (("ping", "--timeout", "0"),
             '--timeout: must be a number in 1..4294967295, not "0"'),
            (("reload", "x"), 'reload: unexpected argument "x"'),
            (("reload", "--json"), "reload: unrecognized option '--json'"),
            (("drain", "x"), 'drain: unexpected argument "x"'),
            (("drain", "--timeout"),
             "drain: option '--timeout' requires an argument")):
        result = lab.ctl("--socket", os.path.join(lab.path, "none"), *args,
                         expect=USAGE)
        same((result.out, result.err), ("", "rlctl: %s\n" % words), args)
        check(lab.ctl(args[0], "--help").out.startswith("Usage: rlctl"))


def test_shadow(lab):
    """a check that only its mode permitted: Denied, but, and exit 1"""
    fake = OpenAgent(lab, {wire.CHECK: decision(
        "denied", True, "shadow", "resource", limit="b", server=7)})
    result = ctl(lab, fake, "check", "r", expect=DENIED)
    check(result.out.startswith(
        "Denied, but the rule only watches: permit=yes source=shadow "
        "reason=resource limit=b "), result)
    ctl(lab, fake, "check", "r", "--permit", expect=0)
    fake.answers[wire.CHECK] = decision(
        "denied", False, "server", "resource", limit="b", server=7)
    check(ctl(lab, fake, "check", "r", expect=DENIED).out.startswith(
        "Denied: permit=no source=server "))


def rude(value):
    """The same document with rude texts and names."""
    if isinstance(value, dict):
        return {name: rude(item) for name, item in value.items()}
    if isinstance(value, list):
        return [rude(item) for item in value]
    return RUDE if isinstance(value, str) else value


def test_nothing_steers_the_terminal(lab):
    """texts, names of entries, errors: what could steer it becomes ?"""
    policy = {"name": RUDE, "servers": 3, "key_format": RUDE,
              "dedup_limit_ms": None, "policy": EXPLAINED["policy"]}
    explained = dict(rude(EXPLAINED),
                     error={"reason": RUDE, "text": RUDE},
                     policy={RUDE: {RUDE: RUDE}, "list": [RUDE]})
    fake = OpenAgent(lab, {
        wire.STATUS: document(json.dumps(
            {RUDE: 1, "b": {RUDE: None, "c": {RUDE: True}},
             "d" + RUDE: [], "e": [{RUDE: RUDE}], "f": 0.5})),
        wire.RULES: rules_document(rude(RULE)),
        wire.EXPLAIN: document(json.dumps(explained)),
        POLICY_TYPE: document(json.dumps({"tenants": [policy]}))})
    same(harmless(ctl(lab, fake, "status")).replace(POLITE, "X"),
         "X: 1\nb:\n  X: -\n  c:\n    X: yes\ndX: none\ne:\n  X: X\nf: 0.5\n")
    harmless(ctl(lab, fake, "rules"), 6)
    check(POLITE in harmless(ctl(lab, fake, "explain", "r")))
    text = harmless(ctl(lab, fake, "policy"))
    check(text.startswith("tenant %s: 3 servers known\n" % POLITE), text)
    check("key: format %s, " % POLITE in text, text)
    fake.answers[POLICY_TYPE] = document(json.dumps(
        {"tenants": [{"name": RUDE}]}))
    result = ctl(lab, fake, "policy", expect=1)
    harmless(result)
    check('"%s"' % POLITE in result.err, result)
    fake.answers[wire.RULES] = done("overloaded", RUDE)
    result = ctl(lab, fake, "rules", expect=1)
    harmless(result)
    same(result.err, "rlctl: rules: overloaded: %s\n" % POLITE)


if __name__ == "__main__":
    harness.run([value for name, value in list(globals().items())
                 if name.startswith("test_")])
