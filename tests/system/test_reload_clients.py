#!/usr/bin/env python3
"""
What clients notice of another configuration: nothing where they may stay, and
no check is lost under load or while keys change; GO_AWAY, after their answers,
where they may not.
"""

import grp
import json
import os
import signal
import socket
import stat
import struct
import subprocess

import harness
import load
import wire
from harness import check, poll, same
from reloading import (SLOW, STEADY, STUBBORN, World, answered, ended, go_away,
                       replace, under_load, welcome)


# Load.

def test_under_load(lab):
    """50 reloads under load: no connection is lost, and no check"""
    world = World(lab, *SLOW)
    agent = world.agent
    extra = os.path.join(os.path.dirname(agent.socket), "extra.sock")
    rules = load.rules(dict(load.LIMITS, one=999))
    rules["two"] = dict(rules["one"], tenant="second")
    main = world.document["listeners"]["main"]
    other = world.edited(
        rules=rules, log={"level": "info"},
        tenants={"main": world.tenant(STEADY), "second": world.tenant()},
        listeners={"main": dict(main, max_connections=100, mode="0660"),
                   "extra": {"path": extra, "mode": "0600"}})
    documents = (world.document, other)
    loads = world.load()
    end = under_load(world, loads)
    for n in range(1, 51):
        if n % 3 == 0:
            world.reload(documents[n % 2])
        else:
            # By whichever comes first, the watch too.
            world.put(documents[n % 2])
            if n % 3 == 1:
                agent.signal(signal.SIGHUP)
            poll("the listeners", lambda n=n: len(
                agent.status()["listeners"]) == 2 + n % 2)
        load.wait_for_more(loads, 2)
        same((stat.S_IMODE(os.stat(agent.socket).st_mode),
              os.path.exists(extra)),
             ((0o600, False), (0o660, True))[n % 2])
        if n % 10 == 5:
            d = lab.ctl("--socket", extra, "check", "two", "--key", "none",
                        "--json").json()
            same(d["outcome"], "allowed")
    check(world.generation() >= 51, world.generation())
    same(agent.status()["reload"]["failures"], 0)
    decisions = end((None, 999, 999))
    check(len(decisions) > 500, "there was no load")


def test_key_rotation(lab):
    """keys that replace each other under load: no check fails"""
    keys = [lab.keygen("key%d" % n, key_id=n, fmt=0, dedup_ms=0)
            for n in (7, 8)]
    texts = []
    for path in keys:
        with open(path, encoding="ascii") as f:
            texts.append(f.read())
    path = os.path.join(lab.path, "current.key")
    replace(path, texts[0])

    class Rotating(World):
        def tenant(self, policy=None, key=None, nameserver=None):
            return super().tenant(policy, path, nameserver)

    world = Rotating(lab, *SLOW, keys=keys)
    loads = world.load()
    end = under_load(world, loads)
    for n in range(1, 9):
        replace(path, texts[n % 2])
        if n % 2:
            world.reload()
        poll("the key", lambda n=n: world.agent.tenant(
            "main")["key_id"] == str(7 + n % 2))
        load.wait_for_more(loads, 3)
    end()
    events = world.sandbox.events()
    same([e for e in events if e.get("event") == "ignored"], [])
    same({e["key_id"] for e in events if e.get("event") == "request"},
         {"7", "8"})


# What is in flight.

def test_in_flight(lab):
    """a check ends as it began, whatever is in force by then"""
    world = World(lab)
    world.document = world.base(tenants={"main": world.tenant(STUBBORN)})
    changes = (
        {"rules": {}},
        {"rules": load.rules({"one": 5, "never": 99})},
        {"tenants": {"main": world.tenant(STEADY)}},
        {"tenants": {"other": world.tenant()},
         "rules": load.rules(tenant="other")},
        {"log": {"level": "error"}},
    )
    hashes = set()
    for change in changes:
        world.reload(world.document)
        client = wire.Client(world.agent.socket)
        world.in_flight(client, "one", "never")
        world.reload(world.edited(**change))
        config_hash = welcome(world, client)
        status = world.agent.status()
        same((config_hash, status["inflight"]), (status["config_hash"], 2))
        hashes.add(config_hash)
        answered(world, client)
        client.ping()
        client.close()
    # What is logged does not make a resend another operation.
    world.reload(world.document)
    check(world.agent.status()["config_hash"] in hashes)
    same(len(hashes), len(changes))
    buckets = {c["bucket"] for e in world.sandbox.events("request")
               for c in e["consumed"]}
    same(buckets, {load.bucket("one", "k")}, "of the limit that it began by")


def test_resend(lab):
    """sent again after a reload: resumed, if it is the same operation"""
    world = World(lab)
    world.document = world.base(tenants={"main": world.tenant(STUBBORN)})
    world.reload(world.document)
    for limit, outcome, reason in ((1000, "allowed", "ok"),
                                   (999, "failed", "interrupted")):
        world.reload(world.document)
        status = world.agent.status()
        first = wire.Client(world.agent.socket)
        operation = os.urandom(6) + b"\x4a\xbc\x8a" + os.urandom(7)
        world.hold()
        first.send(wire.check(9, "one", "k%d" % limit, operation=operation))
        poll("the check in flight", lambda: world.agent.inflight() == 1)
        world.reload(world.edited(
            rules=load.rules(dict(load.LIMITS, one=limit)),
            log={"level": "info"}))
        first.close()
        second = wire.Client(world.agent.socket)
        second.send(wire.frame(wire.CHECK, 9, struct.pack(
            "<16s16sQIII", operation, bytes.fromhex(status["config_hash"]),
            100000, 30000, 2, 1) + wire.string("one") +
            wire.string("k%d" % limit)))
        if outcome == "allowed":
            second.ping()
            world.hold(False)
        d = second.decision()
        same((d.outcome, d.reason), (outcome, reason), d)
        second.close()
    taken = [(e["server_id"], c["bucket"])
             for e in world.sandbox.events("request") for c in e["consumed"]]
    same(len(taken), len(set(taken)), "consumed twice")


# Listeners.

def test_listeners(lab):
    """listeners come and go; those that stay notice nothing"""
    world = World(lab)
    agent = world.agent
    extra = lab.socket_path("extra")
    main = world.document["listeners"]["main"]

    def listeners(**more):
        return world.edited(
            tenants={"main": world.tenant(STUBBORN)},
            listeners=dict({"main": main}, **more))

    def ask(path, *args):
        d = lab.ctl("--socket", path, "check", "one", "--key", "a", "--json",
                    "--timeout", "300", *args, expect=None).json()
        return d["outcome"], d["reason"], d["permit"]

    stays = wire.Client(agent.socket)
    inode = os.stat(agent.socket).st_ino
    world.reload(listeners())
    welcome(world, stays)
    same(ask(extra), ("failed", "unavailable", True))
    for name in ("extra", "again"):
        world.reload(listeners(**{name: {"path": extra, "mode": "0600"}}))
        welcome(world, stays)
        same(ask(extra, "--timeout", "9000"), ("allowed", "ok", True))
        goes = wire.Client(extra)
        idle = wire.Client(extra)
        half = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        half.connect(extra)
        poll("the three connections", lambda: [
            row["connections"] for row in agent.status()["listeners"]
            if row["path"] == extra] == [3])
        world.in_flight(goes, "one", "never")
        world.reload(listeners())
        welcome(world, stays)
        same(os.path.exists(extra), False)
        same(go_away(goes), 101)
        same(go_away(idle), 0)
        ended(idle)
        # What comes after the last word is not begun.
        goes.send(wire.check(200, "one", "k"))
        same(agent.inflight(), 2)
        answered(world, goes)
        ended(goes)
        half.close()
        same(ask(extra), ("failed", "unavailable", True))
    # Another name, or another path, of what is otherwise the same.
    document = listeners()
    document["listeners"] = {"renamed": main}
    world.reload(document)
    welcome(world, stays)
    same([row["name"] for row in agent.status()["listeners"]],
         ["renamed", "control"])
    same(os.stat(agent.socket).st_ino, inode)
    stays.ping()
    stays.close()


def some_group():
    """A group other than our own that a file may be given to."""
    if os.geteuid() == 0:
        groups = [g.gr_gid for g in grp.getgrall()]
    else:
        groups = os.getgroups()
    for gid in groups:
        if gid != os.getegid():
            try:
                return grp.getgrgid(gid).gr_name
            except KeyError:
                pass
    return None


def test_modes(lab):
    """mode and group of a socket that stays"""
    world = World(lab)
    path = world.agent.socket
    control = os.path.join(os.path.dirname(path), "control.sock")
    inodes = [os.stat(p).st_ino for p in (path, control)]
    group = some_group()
    client = wire.Client(path)

    def reload(mode, gid_name, control_mode):
        world.reload(world.edited(
            listeners={"main": {"path": path, "mode": mode,
                                "group": gid_name}},
            control={"mode": control_mode}))
        welcome(world, client)
        now, at = os.stat(path), os.stat(control)
        same([now.st_ino, at.st_ino], inodes)
        return (oct(stat.S_IMODE(now.st_mode)), now.st_gid,
                oct(stat.S_IMODE(at.st_mode)))

    own = os.stat(path).st_gid
    same(reload("0666", None, "0600"), ("0o666", own, "0o600"))
    same(reload("0600", None, "0660"), ("0o600", own, "0o660"))
    if group:
        gid = grp.getgrnam(group).gr_gid
        same(reload("0660", group, "0600"), ("0o660", gid, "0o600"))
        same(reload("0640", group, "0600"), ("0o640", gid, "0o600"))
        same(reload("0640", None, "0600"), ("0o640", own, "0o600"))
    client.ping()
    client.close()


def test_turned_away(lab):
    """who may not use a listener any more hears so, after its answers"""
    world = World(lab)
    agent = world.agent
    main = dict(world.document["listeners"]["main"], mode="0666")
    policy = {"main": world.tenant(STUBBORN)}
    good = world.edited(listeners={"main": main}, tenants=policy)
    me, other = os.getuid(), os.getuid() + 1
    for no, yes in (({"uids": [other]}, {"uids": [other, me]}),
                    ({"gids": [os.getgid() + 4711]}, {"uids": [me]})):
        world.reload(good)
        calls = subprocess.Popen(
            [harness.SHIMCLIENT, "calls", agent.socket, "20000"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=lab.env())

        def call(calls=calls):
            calls.stdin.write(b"check one a\n")
            calls.stdin.flush()
            d = json.loads(calls.stdout.readline())
            return d["outcome"], d["reason"], d["permit"]

        client = wire.Client(agent.socket)
        same(call(), ("allowed", "ok", True))
        world.in_flight(client, "one", "never")
        control = os.path.join(os.path.dirname(agent.socket), "control.sock")
        world.put(dict(good, listeners={"main": dict(main, **no)}))
        lab.ctl("--socket", control, "reload")
        same(go_away(client), 101)
        answered(world, client)
        ended(client)
        same(call(), ("failed", "unauthorised", False))
        refused = wire.Client(agent.socket, greet=False)
        same(refused.error(), "unauthorised")
        refused.close()
        world.put(dict(good, listeners={"main": dict(main, **yes)}))
        lab.ctl("--socket", control, "reload")
        same(call(), ("allowed", "ok", True))
        # What a listener offers changes on a connection that stays, too.
        world.reload(dict(good, listeners={"main": dict(main, rules=["n*"])}))
        same(call(), ("failed", "unauthorised", False))
        calls.stdin.close()
        same(calls.wait(harness.PATIENCE), 0)
        calls.stdout.close()


if __name__ == "__main__":
    harness.run([value for name, value in list(globals().items())
                 if name.startswith("test_")])
