#!/usr/bin/env python3
"""
Several listeners of one agent: who may connect to which (mode, group, uids and
gids, supplementary groups too), what each offers (rules, trackers, ad-hoc),
and that what an application is called in bucket names comes from the kernel
and the socket. Nothing depends on the pid, which across pid namespaces is 0.
"""

import errno
import grp
import json
import os
import signal
import socket
import stat
import struct
import subprocess
import sys

import harness
import wire
from harness import check, poll, same
from overload_peers import Peer, needs_root
from wire import Client

ZONE = "sandbox.example.com"
ALICE, BOB, CAROL = 40011, 40012, 40013
GROUP, TEAM = 40021, 40022


def scarce(*buckets):
    """Two tokens of each, in a year: a test sees no refill."""
    return {"tenant": "main",
            "resources": [{"bucket": bucket, "window_ms": 4294967295,
                           "limit": 2} for bucket in buckets]}


TRACKER = {"ttl_ms": 60000, "max_samples": 100, "buffer_size": 32,
           "min_samples": 1}
TRACKERS = {"db": TRACKER, "db-slow": TRACKER, "web": TRACKER}
RULES = {
    "shared": scarce("shared"),
    "by-uid": scarce("uid:{uid}"),
    "by-gid": scarce("gid:{gid}"),
    "by-listener": scarce("listener:{listener}"),
    "by-all": scarce("{listener}/{uid}/{gid}/{key}"),
    "shop-buy": scarce("buy:{key}"),
    "shop-look": scarce("look:{key}"),
    "guarded": {"tenant": "main",
                "guards": [{"tracker": "db", "below_ms": 100}]},
}


def bring_up(lab, listeners, policy=None, **more):
    """The agent and a sandbox of one server; all may enter their folders."""
    os.chmod(lab.path, 0o711)
    key = lab.keygen("main", fmt=0, dedup_ms=0)
    sandbox = lab.sandbox(key, cluster=1, zone=ZONE)
    document = lab.document(
        {"main": {"key": {"file": key}, "policy": policy or harness.POLICY,
                  "dns": {"name": ZONE, "nameservers": [sandbox.dns]}}},
        RULES, TRACKERS, listeners=listeners, **more)
    return sandbox, lab.agent(document)


def listener(lab, name, **more):
    return dict({"path": lab.socket_path(name), "mode": "0666"}, **more)


class Answer:
    """A DECISION or REPORTED with its text."""

    def __init__(self, outcome, reason, permit, limit, text):
        self.outcome, self.reason, self.permit = outcome, reason, permit
        self.limit, self.text = limit, text


def strings(payload, at, count):
    for _ in range(count):
        length, = struct.unpack_from("<H", payload, at)
        yield payload[at + 2:at + 2 + length].decode()
        at += 2 + length


def decide(client, frame):
    client.send(frame)
    kind, ident, payload = client.receive()
    same(kind, wire.DECISION)
    d = wire.Decision(ident, payload)
    return Answer(d.outcome, d.reason, d.permit, *strings(payload, 28, 2))


def report(client, tracker):
    client.send(wire.frame(wire.REPORT, 5, struct.pack("<II", 500, 0) +
                           wire.string("") + wire.string(tracker) +
                           wire.string("")))
    kind, _, payload = client.receive()
    same(kind, wire.REPORTED)
    return wire.REASONS[payload[0]], payload[1], *strings(payload, 4, 1)


def refused(client, frame, text):
    """Failed (unauthorised), which never permits, and why."""
    d = decide(client, frame)
    same((d.outcome, d.reason, d.permit), ("failed", "unauthorised", False))
    check(text in d.text, d.text)


# What other users do.

def knock(tell, told, path):
    """How a connection ends: an errno's name, ERROR or WELCOME."""
    del told
    tell(knocked(path))


def knocked(path):
    try:
        client = Client(path, greet=False)
    except OSError as error:
        return errno.errorcode[error.errno]
    try:
        client.send(wire.hello())
    except (BrokenPipeError, ConnectionResetError):
        pass
    kind, _, payload = client.receive()
    client.close()
    if kind == wire.ERROR:
        return wire.ERRORS[struct.unpack_from("<H", payload)[0]]
    same(kind, wire.WELCOME)
    return "welcome"


def ask(tell, told, path, rule, count, key=None):
    """Outcome and limit of so many checks of a rule."""
    del told
    client = Client(path)
    found = []
    for n in range(count):
        d = decide(client, wire.check(n + 2, rule, key))
        found.append([d.outcome, d.limit])
    client.close()
    tell(found)


def run(tell, told, argv, env):
    """What a program of the build prints, as another user runs it."""
    del told
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, env=env, cwd="/",
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=harness.PATIENCE, check=False)
    tell([done.returncode, done.stdout.decode(), done.stderr.decode()])


def knocks(lab, path, uid, gid=None, groups=()):
    peer = Peer(lab, uid, knock, path, gid=gid, groups=groups)
    answer = peer.hear()
    peer.close()
    return answer


def asks(lab, path, rule, count, uid, gid=None, key=None):
    peer = Peer(lab, uid, ask, path, rule, count, key, gid=gid)
    answers = peer.hear()
    peer.close()
    return answers


# Who may connect.

def test_files(lab):
    """each socket has its mode and its group; the kernel keeps others out"""
    needs_root()
    group, team = a_group()
    _, agent = bring_up(lab, {
        "all": listener(lab, "all"),
        "own": listener(lab, "own", mode="0600"),
        "team": listener(lab, "team", mode="0660", group=group)})
    for name, mode, gid in (("all", 0o666, os.getgid()),
                            ("own", 0o600, os.getgid()),
                            ("team", 0o660, team)):
        st = os.lstat(lab.socket_path(name))
        same((stat.S_ISSOCK(st.st_mode), stat.S_IMODE(st.st_mode),
              st.st_gid), (True, mode, gid), name)
    for name, uid, gid, groups, answer in (
            ("all", ALICE, None, (), "welcome"),
            ("own", ALICE, None, (), "EACCES"),
            ("team", ALICE, None, (), "EACCES"),
            ("team", ALICE, team, (), "welcome"),
            ("team", ALICE, None, (team,), "welcome")):
        same(knocks(lab, lab.socket_path(name), uid, gid, groups), answer,
             name, gid, groups)
    # Whom the kernel keeps out, the agent never sees.
    same(agent.counters()["connections_refused"], 0)
    control = os.path.join(os.path.dirname(agent.socket), "control.sock")
    same(stat.S_IMODE(os.lstat(control).st_mode), 0o600)
    same(knocks(lab, control, ALICE), "EACCES")
    same(knocked(control), "welcome")


def a_group():
    """The name and gid of a group that is not ours."""
    for group in grp.getgrall():
        if group.gr_gid not in (os.getgid(), 0):
            return group.gr_name, group.gr_gid
    raise harness.Skip("there is no group but ours")


def test_users(lab):
    """uids and gids: any of them lets in, supplementary groups count"""
    needs_root()
    _, agent = bring_up(lab, {
        "any": listener(lab, "any"),
        "alice": listener(lab, "alice", uids=[ALICE]),
        "team": listener(lab, "team", gids=[TEAM]),
        "both": listener(lab, "both", uids=[ALICE, BOB], gids=[TEAM])})
    refusals = 0
    for name, uid, gid, groups, answer in (
            ("any", CAROL, None, (), "welcome"),
            ("alice", ALICE, None, (), "welcome"),
            ("alice", BOB, None, (), "unauthorised"),
            # A group of that number is no user of that number.
            ("alice", BOB, ALICE, (ALICE,), "unauthorised"),
            ("team", ALICE, None, (), "unauthorised"),
            ("team", ALICE, TEAM, (), "welcome"),
            ("team", ALICE, GROUP, (1, 2, 3, TEAM), "welcome"),
            # The first of many more groups than are usual.
            ("team", BOB, GROUP, tuple(range(41000, 41200)) + (TEAM,),
             "welcome"),
            ("team", BOB, GROUP, tuple(range(41000, 41200)),
             "unauthorised"),
            ("team", TEAM, GROUP, (), "unauthorised"),
            ("both", BOB, None, (), "welcome"),
            ("both", CAROL, None, (TEAM,), "welcome"),
            ("both", CAROL, None, (), "unauthorised"),
            # Root is a user like another.
            ("alice", 0, 0, (), "unauthorised"),
            ("team", 0, TEAM, (), "welcome")):
        same(knocks(lab, lab.socket_path(name), uid, gid, groups), answer,
             name, uid, gid, len(groups))
        refusals += answer == "unauthorised"
    counters = agent.counters()
    same(counters["connections_refused"], refusals)
    same(counters["checks"], 0)


def test_refused_shim(lab):
    """the shim makes of it Failed (unauthorised), which never permits"""
    needs_root()
    _, agent = bring_up(lab, {
        "any": listener(lab, "any"),
        "alice": listener(lab, "alice", uids=[ALICE]),
        "own": listener(lab, "own", mode="0600")})
    # An open failure policy is rlctl's default.
    for name in ("alice", "own"):
        argv = [harness.CTL, "--socket", lab.socket_path(name), "check",
                "shared", "--json"]
        status, out, err = Peer(lab, BOB, run, argv, lab.env()).hear()
        d = json.loads(out)
        same((status, d["outcome"], d["reason"], d["permit"], d["source"]),
             (harness.FAILED, "failed", "unauthorised", False, "policy"),
             name, err)
        check(d["elapsed_us"] < 30e6, d)
        status, out, _ = Peer(lab, BOB, run, argv[:-1] + ["--permit"],
                              lab.env()).hear()
        same(status, 1, out)
    # A client of librlshim that is refused by uid: we are not Alice.
    client = harness.Process(
        lab, "refused", [harness.SHIMCLIENT, "calls",
                         lab.socket_path("alice"), "5000", "open"],
        stdin=subprocess.PIPE)
    client.child.stdin.write(b"check shared\n")
    client.child.stdin.flush()
    d = json.loads(client.line())
    same((d["outcome"], d["reason"], d["permit"]),
         ("failed", "unauthorised", False))
    client.child.stdin.close()
    client.child.stdin = None
    same(client.wait(), 0)
    same(agent.counters()["checks"], 0)


# What is offered.

def test_offers(lab):
    """rules, trackers and ad-hoc checks by listener; refusals are counted"""
    sandbox, agent = bring_up(lab, {
        "all": listener(lab, "all"),
        "shop": listener(lab, "shop", rules=["shop-*", "sh?red"],
                         trackers=["db*"], adhoc=False),
        "look": listener(lab, "look", rules=["shop-[!b]*"], trackers=["db"],
                         adhoc=True),
        "none": listener(lab, "none", rules=[], trackers=[], adhoc=False)})
    offers = {
        "all": ({"shared", "shop-buy", "shop-look", "guarded"},
                {"db", "db-slow", "web"}, True),
        "shop": ({"shared", "shop-buy", "shop-look"}, {"db", "db-slow"},
                 False),
        "look": ({"shop-look"}, {"db"}, True),
        "none": (set(), set(), False)}
    number = failed = reports = refusals = 0
    for name, (rules, trackers, adhoc) in offers.items():
        client = Client(lab.socket_path(name))
        for rule in ("shared", "shop-buy", "shop-look", "guarded"):
            number += 1
            # The tracker db has seen slow work by then.
            frame = wire.check(number, rule, "key%d" % number)
            if rule in rules:
                d = decide(client, frame)
                check(d.outcome in ("allowed", "denied"), name, rule, d.text)
            else:
                refused(client, frame, "does not offer the rule")
                failed += 1
        # What a listener does not offer, it does not tell of either.
        d = decide(client, wire.check(900, "no-such-rule", "k"))
        if rules and name == "all":
            same(d.reason, "unknown-rule")
        else:
            same(d.reason, "unauthorised", name)
            failed += 1
        frame = wire.adhoc(901, [(1000, 5, 1, "own:" + name)])
        if adhoc:
            same(decide(client, frame).outcome, "allowed", name)
        else:
            refused(client, frame, "ad-hoc")
            failed += 1
        for tracker in ("db", "db-slow", "web"):
            reason, sent, text = report(client, tracker)
            if tracker in trackers:
                same((reason, sent), ("ok", 1), name, tracker, text)
                reports += 1
            else:
                same((reason, sent), ("unauthorised", 0), name, tracker)
                check("does not offer the tracker" in text, text)
                refusals += 1
        client.close()
    counters = agent.counters()
    same((counters["failed_unauthorised"], counters["failed_unknown_rule"]),
         (failed, 1))
    same((counters["reports"], counters["reports_refused"]),
         (reports, refusals))
    poll("the reports", lambda: len(sandbox.events("report")) == reports)
    # The control socket takes neither.
    control = Client(os.path.join(os.path.dirname(agent.socket),
                                  "control.sock"))
    refused(control, wire.check(2, "shared"), "control socket")
    refused(control, wire.adhoc(3, [(1000, 5, 1, "b")]), "control socket")
    same(report(control, "db")[0], "unauthorised")
    control.close()
    same(len(sandbox.events("report")), reports)


def test_caps(lab):
    """each listener has caps of its own, announced and kept"""
    sandbox, agent = bring_up(lab, {
        "wide": listener(lab, "wide"),
        "few": listener(lab, "few", max_connections=2, max_inflight=3)},
        {"unit_ms": 10000})
    sandbox.command("delay 0 60000")
    wide = Client(lab.socket_path("wide"))
    for name, most in (("wide", 16384), ("few", 3)):
        client = Client(lab.socket_path(name), greet=False)
        client.send(wire.hello())
        kind, _, payload = client.receive()
        same((kind, struct.unpack_from("<I", payload, 8)[0]),
             (wire.WELCOME, most))
        client.close()
    poll("their end", lambda: sum(
        row["connections"] for row in agent.status()["listeners"]) == 2)
    few = [Client(lab.socket_path("few")) for _ in range(2)]
    same(knocked(lab.socket_path("few")), "busy")
    for count, client in ((2, few[0]), (3, few[1]), (5, wide)):
        client.send(b"".join(wire.check(n, "shop-buy", "k")
                             for n in range(2, 4)))
        poll("those in flight", lambda most=count: agent.inflight() == most)
    # The fourth on the one was too many; the other has room.
    d = few[1].decision()
    same((d.id, d.outcome, d.reason), (3, "failed", "overloaded"))
    same({row["name"]: row["inflight"]
          for row in agent.status()["listeners"]},
         {"wide": 2, "few": 3, "control": 0})
    for client in few + [wide]:
        client.close()


# Sockets of the dead and the living.

def test_stale(lab):
    """the sockets of a killed agent are taken over; those of a live one not"""
    listeners = {"one": listener(lab, "one"), "two": listener(lab, "two")}
    _, agent = bring_up(lab, listeners)
    paths = [lab.socket_path(name) for name in listeners]
    with open(os.path.join(lab.path, "config2.json"), encoding="utf-8") as f:
        document = json.load(f)
    check(document["listeners"] == listeners, document)
    inodes = [os.lstat(path).st_ino for path in paths]
    second = lab.agent(document, ready=False)
    same(second.wait(), 1)
    check("in use" in second.err() and paths[0] in second.err(),
          second.err())
    same([os.lstat(path).st_ino for path in paths], inodes)
    same([knocked(path) for path in paths], ["welcome"] * 2)
    # Only the other one is shared: nothing of this one is taken either.
    third = dict(document, listeners={
        "new": listener(lab, "new"), "two": listeners["two"]})
    third = lab.agent(third, ready=False)
    same(third.wait(), 1)
    check(paths[1] in third.err(), third.err())
    check(not os.path.exists(lab.socket_path("new")))
    same([knocked(path) for path in paths], ["welcome"] * 2)

    agent.kill()
    same([stat.S_ISSOCK(os.lstat(path).st_mode) for path in paths],
         [True] * 2)
    same([knocked(path) for path in paths], ["ECONNREFUSED"] * 2)
    fresh = lab.agent(document)
    same([knocked(path) for path in paths], ["welcome"] * 2)
    same(fresh.check("shared")["outcome"], "allowed")
    same(fresh.stop(), 0)
    same([os.path.exists(path) for path in paths], [False] * 2)


def test_stopped_is_alive(lab):
    """an agent that only stands still keeps its sockets"""
    _, agent = bring_up(lab, {"one": listener(lab, "one")})
    with open(os.path.join(lab.path, "config2.json"), encoding="utf-8") as f:
        document = json.load(f)
    agent.signal(signal.SIGSTOP)
    second = lab.agent(document, ready=False)
    same(second.wait(), 1)
    check("in use" in second.err(), second.err())
    agent.signal(signal.SIGCONT)
    same(knocked(lab.socket_path("one")), "welcome")


# Another pid namespace.

# Accepts once at the path of its argument and tells who that is.
WHO = """
import json, socket, struct, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen(1)
print("ready", flush=True)
c = s.accept()[0]
print(json.dumps(struct.unpack("3i", c.getsockopt(
    socket.SOL_SOCKET, socket.SO_PEERCRED, 12))), flush=True)
"""


def unshared():
    """The command that begins a child in a pid namespace of its own."""
    argv = ["unshare", "--pid", "--fork", "--kill-child"]
    if os.getuid() != 0:
        argv[1:1] = ["--user", "--map-current-user"]
    try:
        done = subprocess.run(argv + ["true"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, check=False,
                              timeout=harness.PATIENCE)
    except FileNotFoundError:
        done = None
    if done is None or done.returncode != 0:
        raise harness.Skip("no pid namespace of our own to be had")
    return argv


def test_pid_namespace(lab):
    """an agent that sees no pid of its clients serves them by uid and gid"""
    argv = unshared()
    who = harness.Process(lab, "who", argv + [
        sys.executable, "-c", WHO, os.path.join(lab.path, "who.sock")])
    who.line()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        s.connect(os.path.join(lab.path, "who.sock"))
        same(json.loads(who.line(1)), [0, os.getuid(), os.getgid()],
             "what the kernel tells in there of a process out here")
    same(who.wait(), 0)

    key = lab.keygen("main")
    sandbox = lab.sandbox(key, cluster=1, zone=ZONE)
    path = lab.config(lab.document(
        {"main": {"key": {"file": key}, "policy": harness.POLICY,
                  "dns": {"name": ZONE, "nameservers": [sandbox.dns]}}},
        RULES, TRACKERS, listeners={
            "mine": listener(lab, "mine", uids=[os.getuid()]),
            "group": listener(lab, "group", gids=[os.getgid()]),
            "theirs": listener(lab, "theirs", uids=[os.getuid() + 1])}))
    # The agent is in there and we are not: it sees pid 0 of us.
    agent = harness.Agent(lab, "inside", argv + [harness.AGENT, "-c", path],
                          lab.socket_path("mine"))
    try:
        agent.ready()
        # A client of another namespace that has no pid in the agent's.
        d = json.loads(subprocess.run(
            argv + [harness.CTL, "--socket", lab.socket_path("mine"),
                    "check", "shared", "--json"], env=lab.env(),
            stdout=subprocess.PIPE, check=True,
            timeout=harness.PATIENCE).stdout)
        same((d["outcome"], d["permit"]), ("allowed", True))
        for name in ("mine", "group"):
            d = lab.ctl("--socket", lab.socket_path(name), "check", "by-uid",
                        "--json").json()
            same((d["outcome"], d["permit"]), ("allowed", True))
        d = lab.ctl("--socket", lab.socket_path("mine"), "check", "by-uid",
                    "--json", expect=1).json()
        same(d["limit"], "uid:%d" % os.getuid())
        d = lab.ctl("--socket", lab.socket_path("theirs"), "check", "by-uid",
                    "--json", expect=2).json()
        same((d["reason"], d["permit"]), ("unauthorised", False))
        same(agent.counters()["denied"], 1)
    finally:
        # unshare takes no notice of SIGTERM: its child is told by the
        # control socket.
        if agent.running():
            lab.ctl("--socket", os.path.join(
                os.path.dirname(agent.socket), "control.sock"), "quit",
                    expect=None)
    same(agent.wait(), 0)


# Names that nobody can forge.

def consumed(sandbox):
    """How many tokens of each bucket id were consumed."""
    tokens = {}
    for event in sandbox.events("request"):
        for c in event["consumed"]:
            tokens[c["bucket"]] = tokens.get(c["bucket"], 0) + c["tokens"]
    return sorted(tokens.values())


def test_names(lab):
    """{uid}, {gid} and {listener} have buckets of their own"""
    needs_root()
    sandbox, agent = bring_up(lab, {"one": listener(lab, "one"),
                                    "two": listener(lab, "two")})
    one, two = lab.socket_path("one"), lab.socket_path("two")
    # Two tokens each: the third check is refused, by that very bucket.
    for rule, cases in (
            ("by-uid", ((one, ALICE, 0, "uid:%d" % ALICE),
                        (two, BOB, 0, "uid:%d" % BOB),
                        (one, 0, 0, "uid:0"))),
            ("by-gid", ((one, ALICE, GROUP, "gid:%d" % GROUP),
                        (one, ALICE, TEAM, "gid:%d" % TEAM))),
            ("by-listener", ((one, ALICE, GROUP, "listener:one"),
                             (two, ALICE, GROUP, "listener:two"))),
            ("by-all", ((one, ALICE, GROUP, "one/%d/%d/k" % (ALICE, GROUP)),
                        (two, ALICE, GROUP, "two/%d/%d/k" % (ALICE, GROUP)),
                        (two, BOB, GROUP, "two/%d/%d/k" % (BOB, GROUP)),
                        (two, BOB, TEAM, "two/%d/%d/k" % (BOB, TEAM))))):
        before = len(consumed(sandbox))
        for path, uid, gid, bucket in cases:
            same(asks(lab, path, rule, 3, uid, gid, "k"),
                 [["allowed", ""]] * 2 + [["denied", bucket]], rule)
        same(len(consumed(sandbox)), before + len(cases))
    same(consumed(sandbox), [2] * 11)
    # The same user by another way finds its bucket empty, the same.
    same(asks(lab, two, "by-uid", 1, ALICE, TEAM),
         [["denied", "uid:%d" % ALICE]])
    same(asks(lab, two, "by-gid", 1, BOB, GROUP),
         [["denied", "gid:%d" % GROUP]])
    same(asks(lab, one, "by-listener", 1, CAROL),
         [["denied", "listener:one"]])
    # Braces in a key are no placeholders, and a key names nobody else.
    same(asks(lab, one, "shop-buy", 3, CAROL, key="{uid}"),
         [["allowed", ""]] * 2 + [["denied", "buy:{uid}"]])
    same(consumed(sandbox), [2] * 12)
    same(agent.counters()["denied"], 15)


if __name__ == "__main__":
    harness.run([value for name, value in list(globals().items())
                 if name.startswith("test_")])
