#!/usr/bin/env python3
"""
Discovery against real nameservers: NSD, which answers for its zones and looks
no further, Unbound, which does, and the sandbox's own responder; and checks in
flight while the members change.
"""

import os
import shutil
import subprocess
import threading
import time

import harness
from harness import Skip, check, poll, same
from nameservers import Nsd, Unbound, free_port, sign, srv_lines, zone_text

ZONE = "rl.example.com"
OTHER = "elsewhere.example.net"
RULES = {"demo": {"tenant": "main", "resources": [
    {"bucket": "demo:{key}", "window_ms": 3600000, "limit": 1000000}]}}


def document(lab, key, nameservers, policy=None, **dns):
    dns = dict({"name": ZONE, "nameservers": nameservers,
                "forced_min_ms": 100}, **dns)
    return lab.document({"main": {
        "key": {"file": key}, "policy": policy or harness.POLICY,
        "dns": dns}}, RULES)


def discovery(agent):
    return agent.tenant("main")["discovery"]


def await_servers(agent, count):
    poll("%d servers" % count,
         lambda: agent.tenant("main")["servers"] == count)


def await_error(agent, text):
    return poll("the error " + repr(text), lambda: (
        lambda now: text in now["error"] and now)(discovery(agent)))


def decides(agent, server_id=None):
    d = agent.check("demo", "--key", "k")
    same((d["outcome"], d["source"]), ("allowed", "server"), d)
    check(server_id in (None, d["server_id"]), "want", server_id, d)


def test_nsd(lab):
    """NSD: found with the glue it gives, followed as the zone changes"""
    key = lab.keygen("main")
    sandbox = lab.sandbox(key, cluster=3)
    nsd = Nsd(lab, {ZONE: zone_text(ZONE, srv_lines(sandbox.servers))})
    agent = lab.agent(document(lab, key, [nsd.endpoint()]))
    same(agent.tenant("main")["servers"], 3)
    decides(agent, sandbox.ids()[0])
    # One question for SRV with all A records beside; no AAAA, asked twice.
    now = discovery(agent)
    check(now["dns"]["queries"] <= now["refreshes"] * 7, now)
    same((now["failures"], now["dns"]["malformed"]), (0, 0), now)

    nsd.load(ZONE, zone_text(ZONE, srv_lines(sandbox.servers[1:]), serial=2))
    await_servers(agent, 2)
    decides(agent, sandbox.ids()[1])
    # No such record at all: believed when it is said twice.
    nsd.load(ZONE, zone_text(ZONE, ["x A 127.0.0.1"], serial=3))
    await_servers(agent, 0)
    now = await_error(agent, "NXDOMAIN")
    check(now["failures"] >= 2, now)
    same(agent.check("demo", "--key", "k")["reason"], "discovery")
    # "There is no such service", and then there is one.
    nsd.load(ZONE, zone_text(ZONE, ["_ratelimitly._udp SRV 0 0 0 ."],
                             serial=4))
    await_error(agent, "no such service")
    nsd.load(ZONE, zone_text(ZONE, srv_lines(sandbox.servers), serial=5))
    await_servers(agent, 3)
    decides(agent, sandbox.ids()[0])
    # A nameserver that is gone takes nobody along.
    nsd.stop()
    now = await_error(agent, ": Connection refused")
    same(now["state"], "ready")
    decides(agent, sandbox.ids()[0])


def test_nsd_aliases(lab):
    """NSD: aliases that lead from zone to zone, for SRV and for targets"""
    key = lab.keygen("main")
    sandbox = lab.sandbox(key, cluster=2)
    targets = ["s-" + server_id for server_id in sandbox.ids()]
    ports = [s["addresses"][0].rsplit(":", 1)[1] for s in sandbox.servers]
    elsewhere = ["srv SRV 0 0 %s %s.%s." % (port, target, ZONE)
                 for port, target in zip(ports, targets)] + \
        ["host 7 A 127.0.0.1", "back 60 CNAME loop.%s." % ZONE]
    lines = ["_ratelimitly._udp 60 CNAME srv.%s." % OTHER,
             "%s 60 CNAME mid" % targets[0], "mid 60 CNAME host.%s." % OTHER,
             "%s 60 A 127.0.0.1" % targets[1],
             "loop 60 CNAME back.%s." % OTHER]
    nsd = Nsd(lab, {ZONE: zone_text(ZONE, lines, ttl=60),
                    OTHER: zone_text(OTHER, elsewhere, ttl=60)})
    agent = lab.agent(document(lab, key, [nsd.endpoint()]))
    same(agent.tenant("main")["servers"], 2)
    decides(agent, sandbox.ids()[0])
    now = discovery(agent)
    same(now["missing_addresses"], 0, now)
    # The least TTL of the whole chain: 7 seconds of the last address.
    check(0 < now["next_refresh_ms"] <= 7700, now)

    # A circle through two zones is a target without addresses, and no more.
    nsd.load(ZONE, zone_text(ZONE, lines[:1] + [
        "%s 60 CNAME loop" % targets[0]] + lines[3:], ttl=60, serial=2))
    poll("the address to be missing", lambda: discovery(agent)[
        "missing_addresses"] > 0)
    same(agent.tenant("main")["servers"], 2)
    decides(agent, sandbox.ids()[0])


def test_nsd_many(lab):
    """NSD: more servers than a datagram holds, by TCP"""
    key = lab.keygen("main")
    sandbox = lab.sandbox(key, cluster=48)
    nsd = Nsd(lab, {ZONE: zone_text(ZONE, srv_lines(sandbox.servers))})
    agent = lab.agent(document(lab, key, [nsd.endpoint()]))
    same(agent.tenant("main")["servers"], 48)
    check(discovery(agent)["dns"]["tcp"] > 0, discovery(agent))
    decides(agent, sandbox.ids()[0])


def test_unbound(lab):
    """Unbound in front of NSD: an outage behind it, and its end"""
    key = lab.keygen("main")
    sandbox = lab.sandbox(key, cluster=3)
    nsd = Nsd(lab, {ZONE: zone_text(ZONE, srv_lines(sandbox.servers))})
    unbound = Unbound(lab, {ZONE: nsd.endpoint()},
                      more=("infra-host-ttl: 1", "infra-cache-max-rtt: 1000"))
    agent = lab.agent(document(lab, key, [unbound.endpoint()]))
    same(agent.tenant("main")["servers"], 3)
    decides(agent, sandbox.ids()[0])
    port = nsd.port
    nsd.stop()
    now = await_error(agent, ": SERVFAIL")
    same((now["state"], now["changes"]), ("ready", 1), now)
    decides(agent, sandbox.ids()[0])
    nsd.write(ZONE + ".zone", zone_text(
        ZONE, srv_lines(sandbox.servers[1:]), serial=2))
    nsd.start(port)
    await_servers(agent, 2)
    decides(agent, sandbox.ids()[1])


def test_unbound_aliases(lab):
    """Unbound: it follows aliases itself, and the agent takes its word"""
    key = lab.keygen("main")
    sandbox = lab.sandbox(key, cluster=1)
    port = sandbox.servers[0]["addresses"][0].rsplit(":", 1)[1]
    target = "s-" + sandbox.ids()[0]
    nsd = Nsd(lab, {
        ZONE: zone_text(ZONE, ["_ratelimitly._udp CNAME srv.%s." % OTHER,
                               "%s CNAME host.%s." % (target, OTHER)]),
        OTHER: zone_text(OTHER, ["srv SRV 0 0 %s %s.%s." % (
            port, target, ZONE), "host A 127.0.0.1"])})
    unbound = Unbound(lab, {ZONE: nsd.endpoint(), OTHER: nsd.endpoint()})
    agent = lab.agent(document(lab, key, [unbound.endpoint()]))
    decides(agent, sandbox.ids()[0])
    same(discovery(agent)["failures"], 0)


def test_require_ad(lab):
    """require_ad: a signed zone by a validating Unbound, and nothing less"""
    key = lab.keygen("main")
    sandbox = lab.sandbox(key, cluster=2)
    plain = zone_text(ZONE, srv_lines(sandbox.servers))
    signed, anchor = sign(lab, ZONE, plain)
    nsd = Nsd(lab, {ZONE: signed})
    lax = Unbound(lab, {ZONE: nsd.endpoint()})
    strict = Unbound(lab, {ZONE: nsd.endpoint()}, anchor=anchor)
    # Who does not validate, and NSD itself, never set the bit.
    for nameserver in lax, nsd:
        agent = lab.agent(document(lab, key, [nameserver.endpoint()],
                                   require_ad=True), ready=False)
        poll("the agent to listen", lambda: agent.ctl(
            "status", expect=None).status == 0)
        now = await_error(agent, "answer without the AD flag")
        same(now["state"], "unavailable", now)
        same(agent.check("demo", "--key", "k")["reason"], "discovery")
        agent.stop()
    agent = lab.agent(document(lab, key, [strict.endpoint()],
                               require_ad=True))
    same(agent.tenant("main")["servers"], 2)
    decides(agent, sandbox.ids()[0])
    same(discovery(agent)["dns"]["malformed"], 0)
    # Signatures that are gone are a failure: the known servers stay.
    nsd.load(ZONE, zone_text(ZONE, srv_lines(sandbox.servers[1:]), serial=2))
    now = await_error(agent, ": SERVFAIL")
    same((now["state"], now["changes"]), ("ready", 1), now)
    decides(agent, sandbox.ids()[0])


def test_sandbox_responder(lab):
    """the sandbox: two families, TCP, and members that come and go"""
    if not harness.ipv6_works():
        raise Skip("no IPv6 loopback")
    key = lab.keygen("main")
    sandbox = lab.sandbox(key, "--listen", "[::1]:0", "--dns-ttl", "1",
                          cluster=40, zone=ZONE)
    agent = lab.agent(document(lab, key, [sandbox.dns]))
    same(agent.tenant("main")["servers"], 40)
    check(discovery(agent)["dns"]["tcp"] > 0, discovery(agent))
    decides(agent, sandbox.ids()[0])
    for i in range(40):
        sandbox.command("withdraw %d" % i)
    await_servers(agent, 0)
    same(agent.check("demo", "--key", "k")["reason"], "discovery")
    sandbox.command("publish 7")
    await_servers(agent, 1)
    decides(agent, sandbox.ids()[7])


def test_resolv_conf(lab):
    """resolv.conf: a new nameserver in it ends an outage before the retry"""
    key = lab.keygen("main")
    sandbox = lab.sandbox(key, cluster=2, zone=ZONE)
    conf = os.path.join(lab.path, "resolv.conf")

    def write(port):
        # In place, since a file that is mounted cannot be replaced.
        with open(conf, "w", encoding="ascii") as f:
            f.write("# a test\nnameserver [127.0.0.1]:%s\n" % port)
    write(free_port())
    mounted = ["unshare", "--mount", "sh", "-c",
               'mount --bind "$0" /etc/resolv.conf && exec "$@"', conf]
    if not shutil.which("unshare") or not os.path.exists("/etc/resolv.conf") \
            or subprocess.run(mounted + ["true"], check=False,
                              stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL).returncode:
        raise Skip("no mount namespace of our own here")
    text = document(lab, key, [], forced_min_ms=1000)
    path = lab.config(text)
    sock = lab.socket_path()
    agent = harness.Agent(lab, lab.name("agent"),
                          mounted + [harness.AGENT, "-c", path], sock)
    poll("the agent to listen", lambda: agent.ctl(
        "status", expect=None).status == 0)
    # Until the pause is long: what the agent does then is not the retry.
    now = poll("a long pause", lambda: (
        lambda now: (now["next_refresh_ms"] or 0) > 6000 and now)(
            discovery(agent)))
    due = time.monotonic() + now["next_refresh_ms"] / 1000
    write(sandbox.dns.rsplit(":", 1)[1])
    poll("the nameserver to be noticed",
         lambda: discovery(agent)["refreshes"] > now["refreshes"])
    check(time.monotonic() < due, "that was the retry")
    agent.ready()
    decides(agent, sandbox.ids()[0])


# What is in flight.

# Four rounds of a second, an answer after three and a half: the members change
# between the first transmission and the last one.
SLOW = {"unit_ms": 1000, "replay_count": 3, "replay_gap": {"fixed": 1},
        "preference": {"fixed": 1}, "final_receive_units": 2,
        "completion_delivery": False}
DELAY_MS = 3500


class Checks:
    """Checks of different keys, each in a thread of its own."""

    def __init__(self, agent, count):
        self.agent, self.decisions, self.threads = agent, [], []
        for i in range(count):
            thread = threading.Thread(target=self.one, args=(i,))
            thread.start()
            self.threads.append(thread)

    def one(self, i):
        self.decisions.append(self.agent.check("demo", "--key", str(i)))

    def join(self):
        for thread in self.threads:
            thread.join(harness.PATIENCE)
        same(len(self.decisions), len(self.threads))
        return self.decisions


def asked(sandbox):
    """Per operation: which servers it reached, each how often, and when."""
    operations = {}
    for event in sandbox.events():
        if event.get("event") in ("request", "duplicate"):
            servers = operations.setdefault(event["unique_id"], {})
            servers.setdefault(event["server"], []).append(event["t_ms"])
    return operations


def test_change_in_flight(lab):
    """an operation keeps the members it began with, in all its rounds"""
    key = lab.keygen("main", fmt=0, dedup_ms=0)
    sandbox = lab.sandbox(key, "--dns-ttl", "1", "--delay", str(DELAY_MS),
                          cluster=3, zone=ZONE)
    agent = lab.agent(document(lab, key, [sandbox.dns], policy=SLOW))
    await_servers(agent, 3)
    waves, known, moments = [], set(), []
    members = {0, 1, 2}
    # Withdrawn while they are under way, then another, then both back.
    for command, i in (("withdraw", 2), ("withdraw", 0), ("publish", 2),
                       ("publish", 0), (None, None)):
        checks = Checks(agent, 8)
        poll("eight operations in flight", lambda: len(
            set(asked(sandbox)) - known) == 8 and all(
                set(asked(sandbox)[op]) == members
                for op in set(asked(sandbox)) - known))
        mine = set(asked(sandbox)) - known
        known |= mine
        waves.append((checks, mine, set(members)))
        if command is None:
            break
        check(agent.inflight() >= 8, "they are decided already")
        sandbox.command("%s %d" % (command, i))
        members = members - {i} if command == "withdraw" else members | {i}
        await_servers(agent, len(members))
        moments.append(max(event["t_ms"] for event in sandbox.events()))
    for checks, _, _ in waves:
        for d in checks.join():
            same((d["outcome"], d["source"]), ("allowed", "server"), d)
    operations = asked(sandbox)
    later = 0
    for number, (_, mine, snapshot) in enumerate(waves):
        for op in mine:
            # Each round went to all that it began with, and to no other.
            same(set(operations[op]), snapshot, number, operations[op])
            rounds = {len(times) for times in operations[op].values()}
            same(len(rounds), 1, "not all in each round", operations[op])
            check(max(rounds) >= 3, "hardly a replay", operations[op])
            if number < len(moments):
                later += any(t > moments[number]
                             for times in operations[op].values()
                             for t in times)
    check(later >= 8, "the changes came after the last replay", later)
    same(len(operations), sum(len(mine) for _, mine, _ in waves))
    counters = agent.counters("main")
    same((counters["timeouts"], counters["no_server"]), (0, 0), counters)


if __name__ == "__main__":
    harness.run([value for name, value in list(globals().items())
                 if name.startswith("test_")])
