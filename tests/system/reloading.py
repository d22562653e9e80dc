"""
What the tests of reloading share: an agent whose configuration changes, the
frames that its clients read then, and load that must not notice.
"""

import copy
import json
import os
import struct

import harness
import load
import wire
from harness import check, poll, same

ZONE = "sandbox.example.com"
# H = 6 s: no load of this machine makes a check fail.
PATIENT = {"unit_ms": 2000, "completion_delivery": False}
STEADY = {"unit_ms": 3000, "completion_delivery": False}
# H = 16 s, asked again each half second: in flight until the servers hear.
STUBBORN = {"unit_ms": 500, "replay_count": 30, "completion_delivery": False}
DEADLINE_MS = 30000
SLOW = ("--delay", "5", "--jitter", "10")


def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def replace(path, text):
    """As an editor does: a new file in the place of the old one."""
    write(path + ".tmp", text)
    os.chmod(path + ".tmp", 0o600)
    os.rename(path + ".tmp", path)


class World:
    """A sandbox, and an agent whose configuration changes."""

    def __init__(self, lab, *args, keys=None, cluster=2, path=None, **more):
        self.lab = lab
        self.keys = keys or [lab.keygen("main", fmt=0, dedup_ms=0)]
        self.sandbox = lab.sandbox(self.keys, *args, cluster=cluster,
                                   zone=ZONE)
        self.document = self.base(**more)
        self.path = path or os.path.join(lab.path, "agent.json")
        self.put(self.document)
        self.agent = lab.agent(self.path)

    def tenant(self, policy=None, key=None, nameserver=None):
        return {"key": {"file": key or self.keys[0]},
                "policy": policy or PATIENT,
                "dns": {"name": ZONE,
                        "nameservers": [nameserver or self.sandbox.dns]}}

    def base(self, tenants=None, rules=None, **more):
        return self.lab.document(tenants or {"main": self.tenant()},
                                 rules or load.rules(), **more)

    def put(self, document):
        replace(self.path, json.dumps(document))

    def edited(self, **more):
        """The first configuration, with some parts of it replaced."""
        return dict(copy.deepcopy(self.document), **more)

    def with_rule(self, name):
        """A rule by which a configuration is told from the others."""
        rules = load.rules()
        rules[name] = copy.deepcopy(rules["one"])
        return self.edited(rules=rules)

    def generation(self):
        return self.agent.status()["generation"]

    def reach(self, generation):
        """It is in force, sooner or later, and nothing was wrong with it. Not
        after reload(): the watch may have seen the same file before that."""
        poll("generation %d" % generation,
             lambda: self.generation() >= generation)
        status = self.agent.status()
        same((status["generation"], status["reload"]["error"]),
             (generation, None), status["reload"])

    def reload(self, document=None, expect=0):
        """By rlctl; the line that it complains with."""
        if document is not None:
            self.put(document)
        result = self.agent.ctl("reload", expect=expect)
        if expect:
            same(result.err.count("\n"), 1, result)
        else:
            # The rule "never" is remarked upon, and rightly so.
            check(result.err == "" or result.err.endswith(
                "every check will be denied\n"), result)
        return result.err

    def knows(self, rule):
        d = self.agent.check(rule, "--key", "k")
        check(d["reason"] in ("ok", "unknown-rule"), d)
        return d["reason"] == "ok"

    def error(self):
        return self.agent.status()["reload"]["error"]

    def load(self, *kinds, socket_path=None):
        loads = [load.Load(self.lab, kind, socket_path or self.agent.socket,
                           width, DEADLINE_MS)
                 for kind, width in kinds or (("hammer", 6), ("hammer", 6),
                                              ("pipeline", 16))]
        load.wait_for_more(loads, 10)
        return loads

    def hold(self, deaf=True):
        """No server hears, or all do again."""
        for n in range(len(self.sandbox.ids())):
            self.sandbox.command("drop %d %d" % (n, deaf))

    def in_flight(self, client, *rules):
        """Checks that wait until hold(False), with ids from 100."""
        self.hold()
        before = self.agent.inflight()
        for n, rule in enumerate(rules):
            client.send(wire.check(100 + n, rule, "k", detail=True))
        poll("the checks in flight",
             lambda: self.agent.inflight() == before + len(rules))


def done(client, ident):
    """The name of the reason of a DONE, and its text."""
    kind, got, payload = client.receive()
    same((hex(kind), got), (hex(wire.DONE), ident), payload)
    return wire.REASONS[struct.unpack_from("<H", payload)[0]], \
        payload[6:].decode()


def welcome(world, client):
    """Reads on until the WELCOME of what is in force; its hash. The watch may
    have been first with the same file, and caused one more."""
    want = world.generation()
    generation = 0
    while generation != want:
        kind, ident, payload = client.receive()
        same((hex(kind), ident), (hex(wire.WELCOME), 0), payload)
        check(generation < want, generation, want)
        generation, = struct.unpack_from("<Q", payload, 32)
    return payload[16:32].hex()


def go_away(client):
    """The id of the last request that was accepted."""
    kind, ident, payload = client.receive()
    same((hex(kind), ident), (hex(wire.GO_AWAY), 0), payload)
    return struct.unpack_from("<Q", payload)[0]


def ended(client):
    try:
        frame = client.receive()
    except wire.Closed:
        client.close()
        return
    raise harness.Failure("a frame where the end should be: %r" % (frame,))


def limit_of(payload):
    length, = struct.unpack_from("<H", payload, 28)
    return payload[30:30 + length].decode()


def answered(world, client):
    """The two checks of in_flight(client, "one", "never") end as usual."""
    world.hold(False)
    found = {}
    for _ in range(2):
        kind, ident, payload = client.receive()
        same(hex(kind), hex(wire.DECISION), payload)
        found[ident] = (wire.OUTCOMES[payload[0]], limit_of(payload))
    same(found, {100: ("allowed", ""), 101: ("denied", "never:k")})


def sockets_of(process):
    """The connections of a child, which has not closed one meanwhile."""
    folder = "/proc/%d/fd" % process.pid
    links = [os.readlink(os.path.join(folder, fd))
             for fd in os.listdir(folder)]
    return {link for link in links if link.startswith("socket:")}


def under_load(world, loads):
    """It has not noticed anything."""
    before = {one.name: sockets_of(one) for one in loads}

    def end(limits=(None,)):
        after = {one.name: sockets_of(one) for one in loads}
        decisions = [d for one in loads for d in one.finish()]
        same(after, before, "connections were lost")
        for d in decisions:
            check(d.outcome != "failed", d)
        for one in loads:
            if one.name.startswith("pipeline"):
                same(one.err().strip(), "1", "its connections")
        poll("the end of the setups before",
             lambda: world.agent.status()["reload"]["ending"] == 0)
        same(world.agent.stop(), 0, world.agent.err())
        world.sandbox.stop()
        ledger = load.Ledger(world.sandbox)
        ledger.agrees(decisions, limits)
        same(ledger.resumed(), [], "sent by two tenants")
        return decisions
    return end
