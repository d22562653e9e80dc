#!/usr/bin/env python3
"""
rlctl policy: what the configured policies mean in time, as text and as JSON,
and the estimate, against what is known without a simulation; then policies
that rl-agent -t refuses.
"""

import copy
import json
import os
import re
import socket
import subprocess

import harness
from fake_agent import POLICY, FakeAgent
from harness import USAGE, check, poll, same

HERE = [{"id": str(i), "address": "127.0.0.1:9"} for i in (11, 12, 13)]
# B: 2, 6, 10 and P: 0, 2, 4 units of 5 ms; no final interval.
GROWING = {"unit_ms": 5, "replay_count": 2,
           "replay_gap": {"exponential": {"initial": 2, "factor": 3,
                                          "max": 10}},
           "preference": {"linear": {"initial": 0, "step": 2, "max": 5}},
           "final_receive_units": 0, "final_preference_units": 0,
           "completion_delivery": False, "suspect_after": 4}


def bring_up(lab):
    """The defaults with three servers, another policy with one."""
    limited = lab.keygen("limited", fmt=1, key_id=1, dedup_ms=300)
    endless = lab.keygen("endless", fmt=0, key_id=2, dedup_ms=0)
    return lab.agent(lab.document({
        "main": {"key": {"file": limited}, "servers": HERE},
        "growing": {"key": {"file": endless}, "policy": GROWING,
                    "servers": HERE[:1]}}))


def ask(agent, *args):
    return agent.ctl("policy", *args, "--json").json()["tenants"]


def estimate(agent, tenant, rtt, loss):
    found, = ask(agent, tenant, "--rtt", str(rtt), "--loss", str(loss))
    return found["estimate"]


def test_text(lab):
    """what an operator reads, line by line"""
    agent = bring_up(lab)
    growing, main = agent.ctl("policy", "--rtt", "2.5", "--loss",
                              "0").out.split("\n\n")
    lines = main.split("\n")
    check(re.fullmatch(
        "    request datagrams per decision: (4.0|3.9)[0-9], of them "
        "(1.0|0.9)[0-9] completion delivery", lines.pop(11)), main)
    same(lines, [
        "tenant main: 3 servers known",
        "  round 0: send at 0 ms, prefer the oldest until 20 ms, "
        "next round at 20 ms",
        "  round 1: send at 20 ms, prefer the oldest until 40 ms, "
        "final receive at 40 ms",
        "  final receive: from 40 ms, take the first answer, "
        "give up at 60 ms",
        "  horizon: 60 ms, for which servers are asked to remember its "
        "requests",
        "  key: format 1, deduplication limit 300 ms, 240 ms above the "
        "horizon",
        "  completion delivery: on",
        "  adaptive preference: off",
        "  estimate: 20000 simulated operations, --rtt 2.5 --loss 0 "
        "--servers 3",
        "    decided: 100.000 %",
        "    latency of the decided: mean 2.5 ms, p99 2.5 ms",
        "    decided by the oldest: 100.000 %",
        "    decided in round 0: 100.000 %, round 1: 0.000 %, final receive: "
        "0.000 %",
        ""])
    same(growing.split("\n"), [
        "tenant growing: 1 server known",
        "  round 0: send at 0 ms, take the first answer, "
        "next round at 10 ms",
        "  round 1: send at 10 ms, prefer the oldest until 20 ms, "
        "next round at 40 ms",
        "  round 2: send at 40 ms, prefer the oldest until 60 ms, "
        "give up at 90 ms",
        "  final receive: none",
        "  horizon: 90 ms, for which servers are asked to remember its "
        "requests",
        "  key: format unversioned, no deduplication limit",
        "  completion delivery: off",
        "  adaptive preference: on, after 4 misses in a row; not part of "
        "the estimate",
        "  estimate: 20000 simulated operations, --rtt 2.5 --loss 0 "
        "--servers 1",
        "    decided: 100.000 %",
        "    latency of the decided: mean 2.5 ms, p99 2.5 ms",
        "    request datagrams per decision: 1.00, of them 0.00 completion "
        "delivery",
        "    decided by the oldest: 100.000 %",
        "    decided in round 0: 100.000 %, round 1: 0.000 %, round 2: "
        "0.000 %"])


def test_document(lab):
    """every field; one tenant when one is asked for; the control socket"""
    agent = bring_up(lab)
    growing, main = ask(agent)
    same((growing["name"], main["name"]), ("growing", "main"))
    same(growing["policy"], GROWING)
    same(growing["rounds"], [
        {"round": 0, "start_ms": 0, "prefer_until_ms": 0, "end_ms": 10},
        {"round": 1, "start_ms": 10, "prefer_until_ms": 20, "end_ms": 40},
        {"round": 2, "start_ms": 40, "prefer_until_ms": 60, "end_ms": 90}])
    same((growing["final"], growing["servers"], growing["horizon_ms"],
          growing["dedup_limit_ms"], growing["key_format"]),
         (None, 1, 90, None, "unversioned"))
    same((main["final"], main["servers"], main["dedup_limit_ms"],
          main["key_format"]),
         ({"start_ms": 40, "prefer_until_ms": 40, "end_ms": 60}, 3, 300, "1"))
    same((main["estimate"]["rtt_ms"], main["estimate"]["loss"]), (1, 0.01))
    same(ask(agent, "main"), [main])
    control = os.path.join(os.path.dirname(agent.socket), "control.sock")
    same(lab.ctl("--socket", control, "--json", "policy").json()["tenants"],
         [growing, main])


def test_estimate(lab):
    """nothing lost, all lost, and in between what a formula says"""
    agent = bring_up(lab)
    sure = estimate(agent, "main", 1.25, 0)
    same((sure["decided"], sure["decided_share"], sure["oldest_share"],
          sure["mean_us"], sure["p99_us"], sure["round_shares"]),
         (20000, 1, 1, 1250, 1250, [1, 0, 0]))
    # The oldest answers first, second or last: one is missing on average.
    check(abs(sure["requests_per_decision"] - 4) < 0.05, sure)
    check(abs(sure["requests_per_decision"] - 3 -
              sure["deliveries_per_decision"]) < 1e-9, sure)
    none = estimate(agent, "main", 1, 1)
    same((none["decided"], none["decided_share"], none["mean_us"],
          none["p99_us"], none["requests_per_decision"],
          none["deliveries_per_decision"], none["oldest_share"],
          none["round_shares"]), (0, 0) + (None,) * 6)
    check("decided: 0.000 %" in agent.ctl("policy", "main", "--loss", "1").out)
    # One server, three rounds, both ways: 1 - (1 - 0.49)^3 and so on.
    some = estimate(agent, "growing", 1, 0.3)
    fail = 1 - 0.7 ** 2
    decided = 1 - fail ** 3
    check(abs(some["decided_share"] - decided) < 0.015, some)
    for k, share in enumerate(some["round_shares"]):
        check(abs(share - (1 - fail) * fail ** k / decided) < 0.02, some)
    check(abs(some["requests_per_decision"] - 1 / (1 - fail)) < 0.05, some)
    # An answer past the horizon is none.
    same(estimate(agent, "growing", 90.001, 0)["decided"], 0)
    same(estimate(agent, "growing", 90, 0)["decided"], 20000)
    same(estimate(agent, "growing", 0, 0)["mean_us"], 0)
    # As many servers as it is told, not as it knows.
    one, = ask(agent, "main", "--servers", "1", "--loss", "0")
    same((one["servers"], one["estimate"]["servers"]), (3, 1))
    same(one["estimate"]["requests_per_decision"], 1)
    same(estimate(agent, "main", 1, "1e-2"), estimate(agent, "main", 1, 0.01))


def test_no_server(lab):
    """no estimate without a server: none, and not known yet"""
    key = lab.keygen("main")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent, \
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as closed:
        silent.bind(("127.0.0.1", 0))
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        closed.close()

        def tenant(port):
            return {"key": {"file": key}, "dns": {
                "name": "none.example", "timeout_ms": 60000,
                "nameservers": ["127.0.0.1:%d" % port]}}
        agent = lab.agent(lab.document({
            "none": tenant(port),
            "unknown": tenant(silent.getsockname()[1])}), ready=False)
        agent.ctl("policy", "--timeout", "30000")
        poll("a tenant without servers",
             lambda: ask(agent, "none")[0]["servers"] == 0)
        same([(t["servers"], t["estimate"]) for t in ask(agent)],
             [(0, None), (None, None)])
        text = agent.ctl("policy").out
        check("tenant none: 0 servers known\n" in text, text)
        check("tenant unknown: no server known yet\n" in text, text)
        same(text.count(
            "  estimate: none, for no server is known; give --servers N\n"), 2)
        # What is to be deployed can be asked for before it is.
        some = ask(agent, "unknown", "--servers", "3")[0]
        same((some["servers"], some["estimate"]["servers"]), (None, 3))
        check(some["estimate"]["decided"] > 0, some)
        text = agent.ctl("policy", "none", "--servers", "64").out
        check("tenant none: 0 servers known\n" in text, text)
        check("--loss 0.01 --servers 64\n" in text, text)


def test_usage(lab):
    """64 and one line for what is no command line, 1 for no such tenant"""
    agent = bring_up(lab)
    for args in (("main", "growing"), ("--loss", "1.0001"), ("--loss", "nan"),
                 ("--loss", "inf"), ("--loss", "-0.1"), ("--loss", "-0"),
                 ("--loss", "+1"), ("--loss", "0x1"), ("--loss", ""),
                 ("--loss", "."), ("--loss", "0.5%"), ("--loss", "1e-3x"),
                 ("--loss", " 1"), ("--loss", "0,5"), ("--loss",),
                 ("--rtt", "-1"), ("--rtt", "1ms"), ("--rtt", "3600001"),
                 ("--rtt", "1e999"), ("--rtt", "NAN"), ("--rtt",),
                 ("--servers", "0"), ("--servers", "65"), ("--servers", "x"),
                 ("--servers",), ("--timeout", "0"), ("--bogus",)):
        result = agent.ctl("policy", *args, expect=USAGE)
        same(result.out, "", result)
        if len(args) == 2 and args[0] != "main":
            check(args[0] in result.err, result)
            check('"%s"' % args[1] in result.err, result)
    result = agent.ctl("policy", "--loss", "100", expect=USAGE)
    same(result.err, 'rlctl: --loss: must be a number in 0..1 (1 % is 0.01), '
         'not "100"\n')
    for args in (("nosuch",), ("nosuch", "--json"), ("",)):
        result = agent.ctl("policy", *args, expect=1)
        same((result.out, result.err),
             ("", 'rlctl: policy: the agent has no tenant "%s"\n' % args[0]))
    result = lab.ctl("--socket", lab.socket_path("nowhere"), "policy",
                     "--timeout", "1", expect=1)
    check(result.err.startswith("rlctl: policy: no agent at "), result)


def spoiled(good):
    """One tenant's document with one thing wrong, and how it is called."""
    changes = (
        ("policy",), ("policy", "unit_ms"), ("policy", "replay_gap"),
        ("policy", "preference"), ("policy", "suspect_after"),
        ("servers",), ("dedup_limit_ms",), ("key_format",),
        ("policy", "completion_delivery"))
    for path in changes:
        for value in (77, "x", None, [], {"fixed": 3}):
            bad = copy.deepcopy(good)
            at = bad
            for part in path[:-1]:
                at = at[part]
            if at[path[-1]] == value or (path, value) in (
                    (("dedup_limit_ms",), 77), (("key_format",), "x"),
                    (("servers",), None),
                    (("policy", "suspect_after"), 77),
                    (("policy", "unit_ms"), 77),
                    (("policy", "replay_gap"), {"fixed": 3})):
                continue
            at[path[-1]] = value
            yield "%s = %r" % (path, value), bad
    for path in changes:
        bad = copy.deepcopy(good)
        at = bad
        for part in path[:-1]:
            at = at[part]
        del at[path[-1]]
        yield "no %s" % (path,), bad


def test_another_agent(lab):
    """a document that is not understood is refused, not explained"""
    agent = bring_up(lab)
    good = ask(agent, "growing")[0]
    del good["estimate"]
    bad = list(spoiled(good))
    check(len(bad) > 45, len(bad))
    texts = [json.dumps({"tenants": [t]}) for _, t in bad]
    odd = ["nonsense", "[]", "{}", '{"tenants":[]}', '{"tenants":{}}']
    bare = {name: value for name, value in good.items()
            if name not in ("rounds", "final", "horizon_ms")}
    fake = FakeAgent(lab, POLICY, texts + odd + [json.dumps({"tenants": [bare]})])
    for what, _ in bad:
        result = lab.ctl("--socket", fake.path, "policy", expect=1)
        same((result.out, result.err),
             ("", 'rlctl: policy: the agent\'s answer for tenant "growing" '
              "is not understood; is it of another version?\n"), what)
    for text in odd:
        result = lab.ctl("--socket", fake.path, "policy", expect=1)
        same((result.out, result.err.count("\n")), ("", 1), text)
    # Deadlines follow from the policy.
    same(lab.ctl("--socket", fake.path, "policy").out,
         agent.ctl("policy", "growing").out)


def test_refused_policies(lab):
    """rl-agent -t: one line with the place, and 78"""
    key = lab.keygen("main", dedup_ms=300)
    for policy, where in (
            ({"unit_ms": 101}, ": its horizon of 303 ms is over the key's "
             "deduplication limit of 300 ms"),
            ({"replay_count": 2, "preference": {"linear": {
                "initial": 0, "step": 1, "max": 2}}},
             ".preference: must not be longer than the replay_gap of the "
             "same round: in round 2 it is 2 units, but the gap is 1"),
            ({"preference": "first-round", "final_preference_units": 1},
             ".final_preference_units: must be 0 with the first-round "
             "preference: it is 1"),
            ({"replay_gap": {"exponential": {"initial": 3, "factor": 2,
                                             "max": 2}}},
             ".replay_gap.exponential.max: must be at least initial: it is 2, "
             "but initial is 3"),
            ({"unit_ms": 4294967295},
             ": its horizon of more than 4294967295 ms is over the key's "
             "deduplication limit of 300 ms")):
        path = lab.config(lab.document({"main": {
            "key": {"file": key}, "policy": policy, "servers": HERE}}))
        done = subprocess.run(
            [harness.AGENT, "-t", "-c", path], env=lab.env(), check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, timeout=harness.PATIENCE)
        text = (done.stdout + done.stderr).decode()
        same(done.returncode, 78, text)
        same(text.count("\n"), 1, text)
        check("%s: tenants.main.policy%s\n" % (path, where) in text, text)


if __name__ == "__main__":
    harness.run([value for name, value in list(globals().items())
                 if name.startswith("test_")])
