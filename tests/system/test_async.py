#!/usr/bin/env python3
"""
The asynchronous form of the shim, end to end: the examples with poll and with
libevent ask for many keys at once, from an agent that answers, is not there
yet, restarts meanwhile, dies, or is asked to forget it. Each check comes to
exactly one decision, and the sandbox's ledger shows what was consumed. And
guarded work, by a program on the shim.
"""

import copy
import json
import os
import re
import signal
import subprocess

import harness
from harness import check, poll, same

EXAMPLES = [os.path.join(os.path.dirname(harness.EXAMPLE), name)
            for name in ("example_poll", "example_event")]
LINE = re.compile(r"([^ ]+): ([a-z]+), permit ([01]) by ([a-z]+), "
                  r"reason ([a-z+-]+)(: .*)?")
RULES = {"demo": {"tenant": "main", "resources": [
    {"bucket": "demo:{key}", "window_ms": 3600000, "limit": 1}]}}
KEYS = ["k%d" % i for i in range(200)]

# Of the 1.5 s that a check has: time enough for all of them to be in flight.
DELAY_MS = 1000


def bring_up(lab, *faults, **tenant):
    """One server that is known without DNS, and a configuration for it."""
    key = lab.keygen("main")
    sandbox = lab.sandbox(key, *faults, cluster=1)
    servers = [{"id": s["server_id"], "address": s["addresses"][0]}
               for s in sandbox.servers]
    document = lab.document({"main": dict({
        "key": {"file": key}, "policy": harness.POLICY, "servers": servers},
        **tenant)}, copy.deepcopy(RULES))
    return sandbox, document


class Example(harness.Process):
    """One of the examples, asking for keys."""

    def __init__(self, lab, program, keys=KEYS):
        super().__init__(lab, lab.name(os.path.basename(program)),
                         [program, "demo"] + list(keys),
                         {"RL_AGENT_SOCKET": lab.socket_path()})
        self.keys = keys

    def decisions(self, status=None):
        """By key, when it has ended: one for each, and never two."""
        code = self.wait()
        found = {}
        for line in self.out().splitlines():
            match = LINE.fullmatch(line)
            check(match, "not a decision:", line)
            key, outcome, permit, source, reason, _ = match.groups()
            check(key not in found, key, "is decided twice")
            found[key] = (outcome, permit == "1", source, reason)
        same(sorted(found), sorted(self.keys))
        permitted = all(d[1] for d in found.values())
        same(code, 0 if permitted else 1, self.err())
        if status is not None:
            same(code, status)
        return found


ALLOWED = ("allowed", True, "server", "ok")


def each_consumed_once(sandbox, count):
    """The ledger: so many operations, and none that consumed twice."""
    spent = {}
    for e in sandbox.events("request"):
        spent.setdefault(e["unique_id"], []).extend(e.get("consumed", []))
    same(len(spent), count)
    for operation, buckets in spent.items():
        check(len(buckets) <= 1, operation, buckets)


def inflight(agent, count):
    poll("%d checks in flight" % count, lambda: agent.inflight() == count)


def test_all_at_once(lab):
    """many keys at once: each is allowed, and denied the second time"""
    sandbox, document = bring_up(lab)
    lab.agent(document)
    for number, program in enumerate(EXAMPLES):
        keys = ["%d-%s" % (number, key) for key in KEYS]
        for decision in Example(lab, program, keys).decisions(0).values():
            same(decision, ALLOWED)
        for decision in Example(lab, program, keys).decisions(1).values():
            same(decision, ("denied", False, "server", "resource"))
    each_consumed_once(sandbox, 4 * len(KEYS))


def test_agent_comes_later(lab):
    """asked before there is an agent, they are decided when there is one"""
    _, document = bring_up(lab)
    asking = [Example(lab, program, ["%s-%d" % (key, number)
                                     for key in KEYS[:20]])
              for number, program in enumerate(EXAMPLES)]
    lab.agent(document, ready=False)
    for example in asking:
        for decision in example.decisions().values():
            # An agent that knows no server yet may say so.
            check(decision[0] in ("allowed", "failed"), decision)
            check(decision[3] in ("ok", "discovery", "transport", "timeout"),
                  decision)


def test_restart(lab):
    """a restart in the middle loses none: the old agent answers its own"""
    for number, program in enumerate(EXAMPLES):
        sub = harness.Lab("restart%d" % number)
        try:
            restart(sub, program)
        finally:
            trouble = sub.close()
            sub.remove()
        same(trouble, [])


def restart(lab, program):
    sandbox, document = bring_up(lab)
    old = lab.agent(document)
    sandbox.command("delay 0 %d" % DELAY_MS)
    example = Example(lab, program)
    inflight(old, len(KEYS))
    old.signal(signal.SIGTERM)
    poll("the old agent to give up its socket",
         lambda: not os.path.exists(old.socket))
    more = Example(lab, program, ["late-" + key for key in KEYS])
    lab.agent(document, ready=False)
    for decision in example.decisions(0).values():
        same(decision, ALLOWED)
    same(old.wait(), 0)
    for decision in more.decisions(0).values():
        same(decision, ALLOWED)
    each_consumed_once(sandbox, 2 * len(KEYS))


def test_killed(lab):
    """an agent that dies in the middle: they are resumed, and consume once"""
    for number, program in enumerate(EXAMPLES):
        sub = harness.Lab("killed%d" % number)
        try:
            killed(sub, program)
        finally:
            trouble = sub.close()
            sub.remove()
        same(trouble, [])


def killed(lab, program):
    sandbox, document = bring_up(lab)
    old = lab.agent(document)
    sandbox.command("drop 0 1")
    example = Example(lab, program)
    inflight(old, len(KEYS))
    sandbox.command("drop 0 0")
    old.kill()
    lab.agent(document, ready=False)
    decisions = example.decisions().values()
    check(ALLOWED in decisions, decisions)
    for decision in decisions:
        check(decision == ALLOWED or
              (decision[0], decision[3]) in (("failed", "interrupted"),
                                             ("failed", "timeout")), decision)
    each_consumed_once(sandbox, len(KEYS))


def test_cancel(lab):
    """an interrupt cancels what is in flight, here and in the agent"""
    sandbox, document = bring_up(lab)
    agent = lab.agent(document)
    sandbox.command("drop 0 1")
    for program in EXAMPLES:
        before = agent.counters()["cancelled"]
        example = Example(lab, program)
        inflight(agent, len(KEYS))
        example.signal(signal.SIGINT)
        for decision in example.decisions(1).values():
            same(decision, ("cancelled", False, "policy", "cancelled"))
        inflight(agent, 0)
        same(agent.counters()["cancelled"] - before, len(KEYS))


def test_reload(lab):
    """a new configuration in the middle is nothing to what is in flight"""
    sandbox, document = bring_up(lab)
    path = lab.config(document)
    agent = lab.agent(path)
    sandbox.command("delay 0 %d" % DELAY_MS)
    asking = [Example(lab, program, ["%d-%s" % (number, key) for key in KEYS])
              for number, program in enumerate(EXAMPLES)]
    inflight(agent, 2 * len(KEYS))
    document["rules"]["demo"]["resources"][0]["limit"] = 2
    lab.config(document)
    agent.ctl("reload")
    for example in asking:
        for decision in example.decisions(0).values():
            same(decision, ALLOWED)
    each_consumed_once(sandbox, 2 * len(KEYS))


def test_work(lab):
    """guarded work is reported once, and only when it was permitted"""
    sandbox, document = bring_up(lab)
    document["trackers"] = {"t:{key}": {
        "ttl_ms": 60000, "max_samples": 100, "buffer_size": 32,
        "min_samples": 3}}
    document["rules"]["demo"]["guards"] = [
        {"tracker": "t:{key}", "below_ms": 60000}]
    agent = lab.agent(document)
    done = subprocess.run(
        [harness.SHIMCLIENT, "calls", agent.socket, "10000"],
        input=b"work demo k\nwork demo k\nwork nope\nexplain demo k\n"
              b"explain nope\n",
        stdout=subprocess.PIPE, env=lab.env(), timeout=harness.PATIENCE,
        check=True)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    same([(d["outcome"], report["status"])
          for d, report in zip(lines[0:6:2], lines[1:6:2])],
         [("allowed", 0), ("denied", 0), ("failed", 0)])
    same([line["status"] for line in lines[6:]], [0, -6])
    same(lines[6]["document"]["guards"][0]["name"], "t:k")
    same(agent.counters()["reports"], 1)
    poll("the report", lambda: len(sandbox.events("report")) == 1)


def test_no_agent(lab):
    """without any agent they all fail open, in time"""
    for example in [Example(lab, program) for program in EXAMPLES]:
        for decision in example.decisions(0).values():
            same(decision, ("failed", True, "policy", "unavailable"))


if __name__ == "__main__":
    harness.run([test_all_at_once, test_agent_comes_later, test_restart,
                 test_killed, test_cancel, test_reload, test_work,
                 test_no_agent])
