"""
Load on an agent that is ended, started or told of another configuration
meanwhile: processes that check all the time (hammer.c, pipeline.py), every
check with a key of its own, and what they and the ledger of rl-sandbox must
agree on. The rules of such an agent:

    one     one token of one:{key}: allowed
    never   two tokens of never:{key}, whose limit is one: denied
"""

import collections
import os
import socket
import subprocess
import sys
import time

import harness
import peer
from harness import check, poll, same

HAMMER = harness.program("RLA_HAMMER", "tests/system/hammer")
PIPELINE = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                        "pipeline.py")

WINDOW_MS = 3600000
LIMITS = {"one": 1000, "never": 1}
RULES = ("one", "one", "one", "never")

ZONE = "sandbox.example.com"
DEADLINE_MS = 30000
# Server answers are held back for 15 to 35 ms: most checks are in flight.
SLOW = ("--delay", "15", "--jitter", "20")
# H = 6 s: what a restart interrupts goes on after it.
PATIENT = {"unit_ms": 2000, "completion_delivery": False}

Decision = collections.namedtuple(
    "Decision", "key rule outcome permit source reason server began elapsed")


def rules(limits=None, tenant="main"):
    limits = limits or LIMITS
    return {name: {"tenant": tenant, "resources": [
        {"bucket": name + ":{key}", "window_ms": WINDOW_MS,
         "limit": limits[name], "tokens": 1 if name == "one" else 2}]}
            for name in LIMITS}


def bucket(rule, key, limit=None):
    """Its id, as the ledger writes it."""
    return peer.bucket_id(("%s:%s" % (rule, key)).encode(), WINDOW_MS,
                          limit or LIMITS[rule]).hex()


def now_us():
    return time.monotonic_ns() // 1000


class Load(harness.Process):
    """A process that checks until finish()."""

    def __init__(self, lab, kind, path, width, deadline_ms, names=RULES,
                 prefix=()):
        name = lab.name(kind)
        argv = list(prefix)
        argv += {"hammer": [HAMMER], "async": [HAMMER, "-a"],
                 "pipeline": [sys.executable, PIPELINE]}[kind]
        super().__init__(lab, name, argv + [path, name, str(width),
                                            str(deadline_ms)] + list(names),
                         stdin=subprocess.PIPE)
        self.deadline_us = deadline_ms * 1000
        self.seen = []
        self.rest = ""
        self.at = 0

    def decisions(self):
        """All so far, in the order in which they were made."""
        with open(self.out_path, encoding="ascii") as f:
            f.seek(self.at)
            more = f.read()
            self.at = f.tell()
        lines = (self.rest + more).split("\n")
        self.rest = lines.pop()
        for line in lines:
            words = line.split(" ")
            self.seen.append(Decision(
                *words[:3], words[3] == "1", *words[4:7], int(words[7]),
                int(words[8])))
        return self.seen

    def finish(self):
        """No more checks; those in flight end."""
        self.child.stdin.close()
        same(self.wait(), 0, self.name, self.err())
        found = self.decisions()
        same(self.rest, "")
        keys = {d.key for d in found}
        same(len(keys), len(found), self.name, "decided one of them twice")
        for d in found:
            sound(d)
            check(d.elapsed < self.deadline_us + 1e6 * harness.PATIENCE, d)
        return found


def sound(d):
    """The decision is one that may be made of its rule."""
    check(d.outcome != "cancelled", d)
    if d.outcome == "failed":
        check(d.source == "policy", d)
        return
    same((d.outcome, d.permit, d.source, d.reason),
         ("allowed", True, "server", "ok") if d.rule == "one" else
         ("denied", False, "server", "resource"), d)


def wait_for_more(loads, count):
    """Until that many checks are decided, of each of the loads."""
    want = {load.name: len(load.decisions()) + count for load in loads}

    def there():
        for load in loads:
            check(load.running(), load.name, "ended:", load.err())
        return all(len(load.decisions()) >= want[load.name]
                   for load in loads)
    poll("%d more decisions of each" % count, there)


class Ledger:
    """What the servers of a sandbox say that they did."""

    def __init__(self, sandbox):
        self.consumed = collections.Counter()  # by server and bucket
        self.sources = collections.defaultdict(set)  # of an operation
        self.duplicates = 0
        decided = set()
        for e in sandbox.events():
            if e.get("event") not in ("request", "duplicate"):
                continue
            what = (e["server_id"], e["unique_id"])
            self.sources[e["unique_id"]].add((e["server_id"], e["from"]))
            if e["event"] == "duplicate":
                self.duplicates += 1
                check(what in decided, "remembered, but not decided:", e)
                continue
            check(what not in decided, "an operation decided twice:", e)
            decided.add(what)
            for c in e["consumed"]:
                self.consumed[e["server_id"], c["bucket"]] += c["tokens"]

    def resumed(self):
        """Operations that two agents sent to one server."""
        return [op for op, sources in self.sources.items()
                if len({server for server, _ in sources}) < len(sources)]

    def agrees(self, decisions, limits=(None,)):
        """No check took more than it asked for, on any server, what was
        allowed was taken, and what says that it was not sent was not. limits:
        those that rule one has had."""
        owner = {bucket(d.rule, d.key, limit): d
                 for d in decisions if d.rule == "one" for limit in limits}
        by_key = collections.Counter()
        for (server, name), tokens in self.consumed.items():
            if name in owner:
                by_key[server, owner[name].key] += tokens
        for what, tokens in by_key.items():
            same(tokens, 1, "consumed of", what)
        takers = {key for _, key in by_key}
        for d in decisions:
            if d.outcome == "allowed":
                same(by_key[d.server, d.key], 1, "consumed for", d)
            elif d.reason not in ("interrupted", "timeout"):
                check(d.key not in takers, "consumed, says", d)


class World:
    """Servers, an agent on one of several configurations, and load."""

    def __init__(self, lab, *args):
        self.lab = lab
        # An unversioned key without a limit: any policy fits.
        self.key = lab.keygen("main", fmt=0, dedup_ms=0)
        self.sandbox = lab.sandbox(self.key, *args, cluster=2, zone=ZONE)
        self.paths = {}  # of configurations
        self.loads = []
        self.agent = None

    def text(self, name, policy, limit=None, nameserver=None, **more):
        limits = dict(LIMITS, one=limit or LIMITS["one"])
        dns = {"name": ZONE,
               "nameservers": [nameserver or self.sandbox.dns]}
        self.paths[name] = self.lab.config(self.lab.document(
            {"main": {"key": {"file": self.key}, "policy": policy,
                      "dns": dns}},
            rules(limits), log={"level": "info"}, **more), name + ".json")

    def start(self, name):
        """Not ready yet; all write one log."""
        self.agent = harness.Agent(
            self.lab, "agent", [harness.AGENT, "-c", self.paths[name]],
            self.lab.socket_path())

    def listening(self):
        """Until it lets somebody in."""
        def there():
            check(self.agent.running(), self.agent.err())
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
                return s.connect_ex(self.agent.socket) == 0
        poll("the listener", there)

    def begin(self, deadline_ms=DEADLINE_MS, short_ms=None):
        """Threads of two processes on the shim, and a pipelining client."""
        for kind, width, ms in (("hammer", 8, deadline_ms),
                                ("hammer", 8, short_ms or deadline_ms),
                                ("pipeline", 16, deadline_ms)):
            self.loads.append(Load(self.lab, kind, self.agent.socket, width,
                                   ms))
        wait_for_more(self.loads, 10)

    def more(self, count):
        wait_for_more(self.loads, count)

    def finish(self):
        """All decisions; the ledger."""
        decisions = [d for one in self.loads for d in one.finish()]
        same(self.agent.stop(), 0, self.agent.err())
        self.sandbox.stop()
        return decisions, Ledger(self.sandbox)
