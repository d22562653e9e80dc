#!/usr/bin/env python3
"""
Another configuration while the agent runs: every way to tell it, what is bad
and changes nothing, and reloads that meet each other, a drain, or a lack of
descriptors.
"""

import copy
import json
import os
import re
import resource
import signal
import socket
import time

import harness
import wire
from harness import check, poll, same
from reloading import (PATIENT, STEADY, STUBBORN, ZONE, World, answered, done,
                       go_away, replace, under_load, write)


# Ways to tell it.

def test_ways(lab):
    """a signal, rlctl, and the file itself, written or replaced"""
    world = World(lab)
    same(world.generation(), 1)
    # Asked to, it loads what has not changed, too.
    world.reload()
    world.reach(2)
    world.agent.signal(signal.SIGHUP)
    world.reach(3)
    same(world.agent.status()["reload"]["watching"], True)

    def in_place(rule):
        text = json.dumps(world.with_rule(rule))
        write(world.path, text)

    def renamed(rule):
        world.put(world.with_rule(rule))

    def removed_first(rule):
        os.unlink(world.path)
        write(world.path, json.dumps(world.with_rule(rule)))

    for n, change in enumerate((renamed, in_place, renamed, in_place,
                                removed_first, renamed)):
        rule, before = "rule%d" % n, "rule%d" % (n - 1)
        same(world.knows(rule), False)
        generation = world.generation()
        change(rule)
        poll("the rule", lambda rule=rule: world.knows(rule))
        same((world.knows(before), world.generation(), world.error()),
             (False, generation + 1, None))
    # The same text is no change.
    generation = world.generation()
    world.put(world.with_rule("rule5"))
    world.put(world.with_rule("last"))
    poll("the rule", lambda: world.knows("last"))
    same(world.generation(), generation + 1)


def publish(folder, number, files):
    """As the kubelet does: ..data leads to another folder at once."""
    version = "..version%d" % number
    os.mkdir(os.path.join(folder, version))
    for name, text in files.items():
        write(os.path.join(folder, version, name), text)
        os.chmod(os.path.join(folder, version, name), 0o600)
    os.symlink(version, os.path.join(folder, "..data_tmp"))
    os.rename(os.path.join(folder, "..data_tmp"),
              os.path.join(folder, "..data"))
    for name in files:
        link = os.path.join(folder, name)
        if not os.path.islink(link):
            os.symlink(os.path.join("..data", name), link)
    if number > 1:
        old = os.path.join(folder, "..version%d" % (number - 1))
        for name in os.listdir(old):
            os.unlink(os.path.join(old, name))
        os.rmdir(old)


def test_kubernetes(lab):
    """a ConfigMap and a Secret, whose folders are swapped by a link"""
    folder, secret = (os.path.join(lab.path, name)
                      for name in ("config", "secret"))
    os.mkdir(folder)
    os.mkdir(secret)
    texts = []
    keys = [lab.keygen("key%d" % n, key_id=n, fmt=0, dedup_ms=0)
            for n in (7, 8)]
    for key in keys:
        with open(key, encoding="ascii") as f:
            texts.append(f.read())
    link = os.path.join(secret, "main.key")

    class Mapped(World):
        count = 0

        def put(self, document):
            self.count += 1
            publish(folder, self.count, {"agent.json": json.dumps(document)})

        def tenant(self, policy=None, key=None, nameserver=None):
            return super().tenant(policy, link, nameserver)

    publish(secret, 1, {"main.key": texts[0]})
    world = Mapped(lab, keys=keys, path=os.path.join(folder, "agent.json"))
    for n in range(1, 6):
        generation = world.generation()
        rule = "rule%d" % n
        world.put(world.with_rule(rule))
        poll("the rule", lambda rule=rule: world.knows(rule))
        publish(secret, n + 1, {"main.key": texts[n % 2]})
        world.reach(generation + 2)
        same(world.agent.tenant("main")["key_id"], str(7 + n % 2))
        check(world.knows(rule))


def test_environment(lab):
    """without a file there is nothing to load again, and it says so"""
    if os.path.exists("/etc/rl-agent/rl-agent.json"):
        raise harness.Skip("this machine has a configuration")
    key = lab.keygen("main")
    sandbox = lab.sandbox(key, zone=ZONE)
    with open(key, encoding="ascii") as f:
        env = {"RATELIMITLY_AUTH_KEY": f.read().strip(),
               "RATELIMITLY_TENANT": ZONE,
               "RATELIMITLY_NAMESERVERS": sandbox.dns,
               "RL_AGENT_SOCKET": lab.socket_path()}
    agent = harness.Agent(lab, "agent", [harness.AGENT],
                          lab.socket_path(), env).ready()
    result = agent.ctl("reload", expect=1)
    check("environment" in result.err and result.err.count("\n") == 1,
          result)
    agent.signal(signal.SIGHUP)
    poll("the second failure",
         lambda: agent.status()["reload"]["failures"] == 2)
    same(agent.status()["generation"], 1)
    same(agent.stop(), 0)


def test_refused(lab):
    """only the control socket takes a reload"""
    world = World(lab)
    client = wire.Client(world.agent.socket)
    client.send(wire.frame(wire.RELOAD, 5))
    same(done(client, 5)[0], "unauthorised")
    client.ping()
    client.close()
    same(world.generation(), 1)


# What is not good.

def test_bad(lab):
    """a bad file changes nothing, and shows; a good one clears it"""
    world = World(lab)
    agent = world.agent
    limit = copy.deepcopy(world.document)
    limit["rules"]["one"]["resources"][0]["limit"] = -5
    nobody = copy.deepcopy(world.document)
    nobody["rules"]["one"]["tenant"] = "nobody"
    typo = world.edited(ruels={})
    keyless = copy.deepcopy(world.document)
    keyless["tenants"]["main"]["key"] = {
        "file": os.path.join(lab.path, "no.key")}
    cases = (("{", ""), ("", ""), (json.dumps(world.document)[:-9], ""),
             (json.dumps(limit), "rules.one.resources[0].limit"),
             (json.dumps(nobody), "rules.one.tenant"),
             (json.dumps(typo), "ruels"),
             (json.dumps(keyless), "tenants.main.key"))
    for n, (text, where) in enumerate(cases):
        replace(world.path, text)
        line = world.reload(expect=1)
        check(world.path in line and where in line, line)
        status = agent.status()["reload"]
        check(status["error"] and status["error"] in line, status, line)
        same((world.generation(), status["failures"] > n), (1, True))
        check(world.knows("one"))
    # By the watch alone, and back to the very text that is in force.
    world.put(world.document)
    poll("no error", lambda: world.error() is None)
    same(world.generation(), 1)
    for n, (text, where) in enumerate(cases):
        replace(world.path, text)
        error = poll("an error", world.error)
        check(world.path in error and where in error, error)
        rule = "rule%d" % n
        world.put(world.with_rule(rule))
        world.reach(2 + n)
        check(world.knows(rule))
    # A file that is gone, and comes back.
    generation = world.generation()
    os.unlink(world.path)
    poll("an error", world.error)
    check(world.knows("one"))
    world.put(world.document)
    world.reach(generation + 1)
    # A key that is not one; no word of it is told. Then it is one again.
    with open(world.keys[0], encoding="ascii") as f:
        key = f.read()
    replace(world.keys[0], key[:-3] + "qq\n")
    poll("an error", world.error)
    check(world.knows("one"))
    replace(world.keys[0], key)
    poll("no error", lambda: world.error() is None)
    same(world.generation(), generation + 1)


def picture(world):
    """What a load that fails must not change."""
    status = world.agent.status()
    files = []
    folder = os.path.dirname(world.agent.socket)
    for name in sorted(os.listdir(folder)):
        st = os.lstat(os.path.join(folder, name))
        files.append((name, st.st_mode, st.st_ino, st.st_uid, st.st_gid))
    return (status["generation"], status["config_hash"],
            [(row["name"], row["path"]) for row in status["listeners"]],
            [t["name"] for t in status["tenants"]],
            [f for f in files if not f[0].endswith(".lock")])


def test_bad_late(lab):
    """what is found out when all else is done changes nothing either"""
    world = World(lab)
    agent = world.agent
    folder = os.path.dirname(agent.socket)
    write(os.path.join(folder, "file"), "no socket")
    other = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    other.bind(os.path.join(folder, "other.sock"))
    other.listen(1)
    lab.closers.append(other.close)
    before = picture(world)
    client = wire.Client(agent.socket)

    def path(name):
        return {"path": os.path.join(folder, name), "mode": "0600"}

    main = dict(world.document["listeners"]["main"], mode="0666")
    bad = {
        "a regular file": path("file"),
        "a folder": {"path": folder},
        "another server": path("other.sock"),
        "no such group": dict(path("group.sock"), group="no-such-group"),
        "a folder that cannot be": {"path": "/proc/no/agent.sock"},
        "too long": {"path": os.path.join(folder, "s" * 200)},
    }
    for what, listener in bad.items():
        # Good ones before and after it, and a mode that changes.
        listeners = {"main": main, "a": path("a.sock"), "k": listener,
                     "z": path("z.sock")}
        line = world.reload(world.edited(
            listeners=listeners, rules=world.with_rule("new")["rules"],
            tenants={"main": world.tenant(STEADY),
                     "more": world.tenant()}), expect=1)
        check(world.path in line or listener["path"] in line, what, line)
        # The watch has it loaded once more: soon, and for good.
        poll("what there was before " + what,
             lambda: picture(world) == before, 20)
        check(world.error() in line, what, world.error(), line)
        same((world.knows("one"), world.knows("new")), (True, False))
    # Nobody has heard of them, and the control socket still works.
    client.ping()
    client.close()
    world.reload(world.with_rule("new"))
    check(world.knows("new"))


def reloads_logged(agent):
    return re.findall(r"(?m)^.*: reload (.*)$", agent.err())


def test_descriptors(lab):
    """with any number of descriptors it is wholly in force, or not at all"""
    world = World(lab)
    agent = world.agent
    path = world.lab.socket_path("more")
    # Without DNS, whose want of a socket would only be waited out.
    known = {"key": {"file": world.keys[0]}, "policy": PATIENT,
             "servers": [{"id": s["server_id"], "address": s["addresses"][0]}
                         for s in world.sandbox.servers]}
    more = world.with_rule("new")
    more["tenants"]["more"] = known
    more["listeners"]["more"] = {"path": path, "mode": "0600"}
    documents = [world.document, more]
    now = 0
    _, hard = resource.prlimit(agent.pid, resource.RLIMIT_NOFILE)
    count = 12
    failures = successes = 0
    while successes < 4:
        wanted = 1 - now
        generation = world.generation()
        seen = len(reloads_logged(agent))
        resource.prlimit(agent.pid, resource.RLIMIT_NOFILE, (count, hard))
        world.put(documents[wanted])
        agent.signal(signal.SIGHUP)
        lines = poll("a word of it",
                     lambda seen=seen: reloads_logged(agent)[seen:])
        resource.prlimit(agent.pid, resource.RLIMIT_NOFILE, (hard, hard))
        if "error=" in lines[0]:
            failures += 1
            # It may be tried again by now: one or the other, never a mix.
            check(count < 1000, lines)
            count += 1
        else:
            successes += 1
            check(world.generation() > generation)
        status = poll("a status without an error", lambda: (
            agent.status() if world.error() is None else
            world.reload() and None))
        now = len(status["tenants"]) - 1
        same((len(status["listeners"]), os.path.exists(path),
              world.knows("new")), (2 + now, now == 1, now == 1), status)
    check(failures > 0, "there were always enough")


# Reloads that meet.

def test_many(lab):
    """a tight loop of them, and several that ask at once"""
    world = World(lab)
    agent = world.agent
    loads = world.load(("hammer", 4), ("pipeline", 8))
    end = under_load(world, loads)
    for n in range(300):
        agent.signal(signal.SIGHUP)
        if n % 10 == 0:
            world.put(world.with_rule("rule%d" % n))
    world.put(world.with_rule("last"))
    agent.signal(signal.SIGHUP)
    poll("the last one", lambda: world.knows("last"))
    same(world.error(), None)
    for document, status in ((world.document, 0), ({}, 1),
                             (world.with_rule("x"), 0)):
        world.put(document)
        ctls = [lab.spawn_ctl("--socket", agent.socket, "reload")
                for _ in range(8)]
        same([ctl.wait() for ctl in ctls], [status] * 8,
             [ctl.err() for ctl in ctls])
        same({ctl.err().count("\n") for ctl in ctls}, {1},
             "an error, or what is remarked upon")
    same((world.knows("x"), world.knows("last")), (True, False))
    client = wire.Client(os.path.join(os.path.dirname(agent.socket),
                                      "control.sock"))
    client.send(b"".join(wire.frame(wire.RELOAD, n) for n in range(2, 7)))
    answers = {}
    while len(answers) < 5:
        kind, ident, payload = client.receive()
        if kind == wire.WELCOME:
            continue
        same(hex(kind), hex(wire.DONE))
        check(ident not in answers, "answered twice:", ident)
        answers[ident] = payload[:2]
    same(answers, {n: b"\0\0" for n in range(2, 7)})
    client.close()
    end()


def silent(lab):
    """A nameserver that never answers."""
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("127.0.0.1", 0))
    lab.closers.append(s.close)
    return "127.0.0.1:%d" % s.getsockname()[1]


def test_waits_for_servers(lab):
    """a tenant that finds no server holds nobody up, and a reload not long"""
    world = World(lab)
    agent = world.agent
    more = world.with_rule("new")
    more["tenants"]["deaf"] = world.tenant(nameserver=silent(lab))
    world.put(more)
    begin = time.monotonic()
    waiting = lab.spawn_ctl("--socket", agent.socket, "reload")
    # In the meantime the configuration before it is in force.
    for _ in range(5):
        same((world.knows("one"), world.generation()), (True, 1))
    same(waiting.wait(), 0, waiting.err())
    check(time.monotonic() - begin >= 4, "it did not wait")
    world.reach(2)
    same((agent.status()["ready"], world.knows("new")), (False, True))
    # One that comes while another waits replaces it; both are answered.
    other = world.with_rule("other")
    other["tenants"]["mute"] = world.tenant(nameserver=silent(lab))
    world.put(other)
    waiting = lab.spawn_ctl("--socket", agent.socket, "reload")
    load_started = time.monotonic()
    while time.monotonic() < load_started + 0.5:
        same((world.knows("new"), world.knows("other")), (True, False))
    world.reload(world.with_rule("last"))
    same(waiting.wait(), 0, waiting.err())
    same((world.knows("last"), world.knows("other")), (True, False))
    same(agent.status()["ready"], True)


def test_drain(lab):
    """a drain ends reloads, those that wait and those that come"""
    for by in ("signal", "rlctl"):
        world = World(lab)
        agent = world.agent
        world.document = world.base(tenants={"main": world.tenant(STUBBORN)})
        world.reload(world.document)
        client = wire.Client(agent.socket)
        control = wire.Client(os.path.join(os.path.dirname(agent.socket),
                                           "control.sock"))
        world.in_flight(client, "one", "never")
        more = world.with_rule("new")
        more["tenants"]["deaf"] = world.tenant(nameserver=silent(lab))
        world.put(more)
        begin = time.monotonic()
        waiting = lab.spawn_ctl("--socket", agent.socket, "reload")
        poll("the reload to wait", lambda: [
            row["connections"] for row in agent.status()["listeners"]
            if row["name"] == "control"][0] >= 2)
        if by == "signal":
            agent.signal(signal.SIGTERM)
            drains = None
        else:
            drains = lab.spawn_ctl("--socket", agent.socket, "drain")
        same(go_away(client), 101)
        same(waiting.wait(), 1, waiting.err())
        check("draining" in waiting.err(), waiting.err())
        control.send(wire.frame(wire.RELOAD, 50))
        same(done(control, 50)[0], "draining")
        agent.signal(signal.SIGHUP)
        world.put(world.document)
        replace(world.path, "{")
        if by == "signal":
            # Past the time when what waits would be in force.
            poll("six seconds", lambda begin=begin:
                 time.monotonic() - begin > 6)
        check(agent.running(), agent.err())
        same(os.path.exists(agent.socket), False)
        answered(world, client)
        same(agent.wait(), 0, agent.err())
        if drains:
            same(drains.wait(), 0, drains.err())
        client.close()
        control.close()
        world.sandbox.stop()


def test_quit(lab):
    """quit while a reload waits"""
    world = World(lab)
    more = world.base()
    more["tenants"]["deaf"] = world.tenant(nameserver=silent(lab))
    world.put(more)
    waiting = lab.spawn_ctl("--socket", world.agent.socket, "reload")
    poll("the reload to wait", lambda: [
        row["connections"] for row in world.agent.status()["listeners"]
        if row["name"] == "control"][0] >= 1)
    world.agent.ctl("quit")
    same((world.agent.wait(), waiting.wait()), (0, 1), waiting.err())


if __name__ == "__main__":
    harness.run([value for name, value in list(globals().items())
                 if name.startswith("test_")])
