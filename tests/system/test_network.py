#!/usr/bin/env python3
"""
The agent on networks that refuse, lose, delay and overflow: what loopback
cannot show. Each test has network namespaces of its own (netlab.py), the agent
in one, the servers in another.
"""

import os
import signal
import socket
import sys

import harness
import netlab
from harness import Process, check, poll, same

AGENT4, SERVER4 = "10.77.1.1", "10.77.1.2"
AGENT6, SERVER6 = "fd77:1::1", "fd77:1::2"
RULES = {
    "demo": {"resources": [{"bucket": "demo", "window_ms": 3600000,
                            "limit": 1000000}]},
    # Over 900 bytes, and its answer too.
    "large": {"resources": [
        {"bucket": "large%d" % n, "window_ms": 3600000, "limit": 1000000}
        for n in range(26)]},
}


class Bed:
    """An agent and its servers, each in a namespace, joined by a wire."""

    def __init__(self, lab, cluster=2, listen=(SERVER4,), args=(), net=None):
        self.lab, self.net = lab, net or joined(lab)
        self.key = lab.keygen("main")
        more = [word for address in listen[1:]
                for word in ("--listen", wire(address, 0))]
        with self.net.inside("server"):
            self.sandbox = lab.sandbox(self.key, *more, *args,
                                       cluster=cluster,
                                       listen=wire(listen[0], 0))
        self.addresses = {
            str(s["server_id"]): list(s["addresses"])
            for s in self.sandbox.servers}
        self.ids = self.sandbox.ids()
        self.agent = None

    def move(self, index, *hosts):
        """The agent is told other addresses of a server than it has."""
        at = self.addresses[self.ids[index]]
        port = int(at[0].rsplit(":", 1)[1])
        self.addresses[self.ids[index]] = [wire(h, port) for h in hosts]

    def start(self, policy=None, **more):
        servers = [{"id": i, "address": a} for i in self.ids
                   for a in self.addresses[i]]
        rules = {name: dict(rule, tenant="main", on_failure="closed")
                 for name, rule in RULES.items()}
        tenant = dict({"key": {"file": self.key}, "servers": servers,
                       "policy": policy or harness.POLICY}, **more)
        with self.net.inside("agent"):
            self.agent = self.lab.agent(
                self.lab.document({"main": tenant}, rules))
        return self.agent

    def udp(self, name, family=4):
        return self.agent.tenant("main")["udp%d" % family][name]

    def counter(self, name):
        return self.agent.counters("main")[name]


def wire(host, port):
    return "[%s]:%d" % (host, port) if ":" in host else "%s:%d" % (host, port)


def joined(lab):
    net = netlab.Net(lab, "agent", "server")
    net.link("agent", [AGENT4 + "/24", AGENT6 + "/64"],
             "server", [SERVER4 + "/24", SERVER6 + "/64"])
    return net


def allowed_by(d, *servers):
    same((d["outcome"], d["source"]), ("allowed", "server"), d)
    check(d["server_id"] in servers, d, servers)
    return d


def nothing_sent(bed):
    """A decision at once, for want of any way to send."""
    before = bed.counter("not_sent")
    d = bed.agent.check("demo")
    same((d["outcome"], d["permit"], d["source"], d["reason"]),
         ("failed", False, "policy", "transport"), d)
    same(bed.counter("not_sent"), before + 1)


# ICMP.


def test_closed_port(lab):
    """the port of the oldest is closed: told by ICMP, the next decides"""
    bed = Bed(lab)
    agent = bed.start()
    bed.sandbox.command("stop 0")
    for n in range(5):
        allowed_by(agent.check("demo"), bed.ids[1])
        poll("refusals", lambda n=n: bed.udp("refused") > n)
    same((bed.udp("send_errors"), bed.udp("receive_errors")), (0, 0))
    bed.sandbox.command("start 0")
    allowed_by(agent.check("demo"), bed.ids[0])


def test_closed_ports(lab):
    """every port is closed: Failed, and Allowed again once they are open"""
    bed = Bed(lab)
    agent = bed.start()
    for server in 0, 1:
        bed.sandbox.command("stop %d" % server)
    d = agent.check("demo")
    same((d["outcome"], d["permit"], d["source"]),
         ("failed", False, "policy"), d)
    check(d["reason"] in ("timeout", "transport"), d)
    poll("refusals of both", lambda: bed.udp("refused") >= 2)
    for server in 0, 1:
        bed.sandbox.command("start %d" % server)
    allowed_by(agent.check("demo"), bed.ids[0])


def test_closed_port_of_ipv6(lab):
    """the same over IPv6"""
    bed = Bed(lab, listen=(SERVER6,))
    agent = bed.start()
    bed.sandbox.command("stop 0")
    allowed_by(agent.check("demo"), bed.ids[1])
    poll("a refusal", lambda: bed.udp("refused", 6) >= 1)
    same(bed.udp("send_errors", 6), 0)


def test_host_unreachable(lab):
    """nobody has the address of the oldest: host unreachable"""
    bed = Bed(lab)
    bed.net.sysctl("agent", "ipv4.neigh.server.retrans_time_ms", 50)
    bed.move(0, "10.77.1.99")
    agent = bed.start()
    for _ in range(2):
        allowed_by(agent.check("demo"), bed.ids[1])
    poll("a refusal", lambda: bed.udp("refused") >= 1)
    same(bed.counter("not_sent"), 0)


# The routing table.


def test_routes_that_refuse(lab):
    """unreachable, prohibit and blackhole: the one server left decides"""
    bed = Bed(lab, cluster=4)
    for index, kind in enumerate(("unreachable", "prohibit", "blackhole")):
        host = "10.77.9.%d" % (index + 1)
        bed.net.ip("agent", "route", "add", kind, host + "/32")
        bed.move(index, host)
    agent = bed.start()
    for n in range(1, 4):
        allowed_by(agent.check("demo"), bed.ids[3])
        check(bed.udp("send_errors") >= 3 * n, bed.udp("send_errors"))
    same((bed.udp("refused"), bed.counter("not_sent")), (0, 0))
    # And nothing is left.
    bed.net.ip("agent", "route", "add", "prohibit", SERVER4 + "/32")
    nothing_sent(bed)
    bed.net.ip("agent", "route", "delete", "prohibit", SERVER4 + "/32")
    allowed_by(agent.check("demo"), bed.ids[3])


def test_interface_down(lab):
    """no network: Failed at once, and Allowed when it is back"""
    bed = Bed(lab)
    agent = bed.start()
    allowed_by(agent.check("demo"), bed.ids[0])
    bed.net.ip("agent", "link", "set", "server", "down")
    for _ in range(3):
        nothing_sent(bed)
    bed.net.up("agent", "server")
    allowed_by(agent.check("demo"), bed.ids[0])
    check(bed.udp("send_errors") >= 6, bed.udp("send_errors"))


# Families.


def test_no_ipv6(lab):
    """IPv6 is turned off: servers that have both are reached over IPv4"""
    net = joined(lab)
    net.sysctl("agent", "ipv6.conf.all.disable_ipv6", 1)
    bed = Bed(lab, listen=(SERVER4, SERVER6), net=net)
    for index in 0, 1:
        bed.addresses[bed.ids[index]].sort(reverse=True)  # IPv6 first
        check(bed.addresses[bed.ids[index]][0].startswith("["))
    agent = bed.start()
    for _ in range(3):
        same(allowed_by(agent.check("demo"), bed.ids[0])["round"], 0)
    check(bed.udp("send_errors", 6) >= 2, agent.status())
    check(bed.udp("sent", 4) >= 6, agent.status())


def test_one_family_has_no_route(lab):
    """a route refuses one family: the other decides, in the first round"""
    bed = Bed(lab, listen=(SERVER4, SERVER6))
    agent = bed.start()
    for option, address in ("-4", SERVER4), ("-6", SERVER6):
        for kind in "unreachable", "prohibit", "blackhole":
            bed.net.ip("agent", option, "route", "add", kind, address)
            for _ in range(2):
                same(allowed_by(agent.check("demo"), bed.ids[0])["round"], 0)
            bed.net.ip("agent", option, "route", "delete", kind, address)
    check(bed.udp("sent", 4) > 0 and bed.udp("sent", 6) > 0, agent.status())


def test_one_family_is_silent(lab):
    """one family is lost without a word: a replay goes over the other"""
    bed = Bed(lab, listen=(SERVER4, SERVER6))
    agent = bed.start()
    for option, host in ("-4", AGENT4), ("-6", AGENT6):
        # Where the agent's routing table does not tell.
        bed.net.ip("server", option, "route", "add", "blackhole", host)
        for _ in range(3):
            allowed_by(agent.check("demo"), *bed.ids)
        bed.net.ip("server", option, "route", "delete", "blackhole", host)


# Queues.


def test_tiny_queue(lab):
    """a device whose queue is full: what waits for it is sent in time"""
    bed = Bed(lab, cluster=1)
    agent = bed.start(policy={"unit_ms": 600})
    bed.net.tc("agent", "qdisc", "add", "dev", "server", "root", "tbf",
               "rate", "400kbit", "burst", "1600", "limit", "2000")
    clients = [Process(lab, "flood%d" % n,
                       [harness.SHIMCLIENT, "flood", agent.socket, "demo",
                        "40", "2"]) for n in range(2)]
    for client in clients:
        same(client.wait(), 0, client.err())
    tenant = agent.tenant("main")
    same(tenant["counters"]["selected"], 160, tenant)
    check(tenant["udp4"]["send_blocked"] > 0, tenant)
    same((tenant["udp4"]["send_errors"], tenant["counters"]["not_sent"]),
         (0, 0), tenant)
    allowed_by(agent.check("demo"), bed.ids[0])


def test_one_full_device(lab):
    """a device that takes nothing holds up nobody on another one"""
    net = joined(lab)
    net.add("other")
    net.link("agent", ["10.77.2.1/24"], "other", ["10.77.2.2/24"])
    bed = Bed(lab, net=net)
    bed.move(0, "10.77.2.2")
    agent = bed.start()
    # Its only token is spent by the first datagram, and takes hours to grow.
    net.tc("agent", "qdisc", "add", "dev", "other", "root", "tbf", "rate",
           "8bit", "burst", "200", "limit", "200")
    for _ in range(4):
        same(allowed_by(agent.check("demo"), bed.ids[1])["round"], 0)
    tenant = agent.tenant("main")
    check(tenant["udp4"]["send_blocked"] > 0, tenant)
    same(tenant["udp4"]["send_errors"], 0, tenant)


def test_small_mtu(lab):
    """the path takes less than a request: ICMP tells, the replay fits"""
    net = netlab.Net(lab, "agent", "router", "server")
    net.link("agent", [AGENT4 + "/24"], "router", ["10.77.1.254/24"])
    net.link("router", ["10.77.3.1/24"], "server", ["10.77.3.2/24"], mtu=576)
    net.sysctl("router", "ipv4.ip_forward", 1)
    net.ip("agent", "route", "add", "default", "via", "10.77.1.254")
    net.ip("server", "route", "add", "default", "via", "10.77.3.1")
    bed = Bed(lab, cluster=1, listen=("10.77.3.2",), net=net)
    agent = bed.start()
    same(allowed_by(agent.check("large"), bed.ids[0])["round"], 1)
    same((bed.udp("refused"), bed.udp("send_errors")), (1, 0))
    # The path is known now; and a device of our own tells no one.
    same(allowed_by(agent.check("large"), bed.ids[0])["round"], 0)
    net.ip("agent", "link", "set", "router", "mtu", "300")
    net.ip("router", "link", "set", "agent", "mtu", "300")
    same(allowed_by(agent.check("large"), bed.ids[0])["round"], 0)
    same((bed.udp("refused"), bed.udp("send_errors")), (1, 0))


# Floods.

FLOOD = """
import os, socket, sys
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
out.connect((sys.argv[1], int(sys.argv[2])))
junk = os.urandom(int(sys.argv[3]))
print("begun", flush=True)
while True:
    try:
        out.send(junk)
    except OSError:
        pass
"""


def only_port(bed):
    ports = bed.net.udp_sockets("agent", bed.agent)
    same(len(ports), 1, ports)
    return next(iter(ports))


def flood(bed, name, size):
    with bed.net.inside("server"):
        process = Process(bed.lab, name, [
            sys.executable, "-c", FLOOD, AGENT4, str(only_port(bed)),
            str(size)])
    process.line()
    return process


def test_full_receive_buffer(lab):
    """a stopped agent's buffer overflows: counted, and it goes on"""
    bed = Bed(lab)
    agent = bed.start()
    allowed_by(agent.check("demo"), bed.ids[0])
    port = only_port(bed)
    same(bed.udp("receive_dropped"), 0)
    agent.signal(signal.SIGSTOP)
    late = lab.spawn_ctl("--socket", agent.socket, "check", "demo", "--json")
    junk = os.urandom(1000)
    with bed.net.inside("server"), socket.socket(
            socket.AF_INET, socket.SOCK_DGRAM) as out:
        while bed.net.udp_sockets("agent", agent)[port] < 1000:
            for _ in range(1000):
                out.sendto(junk, (AGENT4, port))
    agent.signal(signal.SIGCONT)
    same(late.wait(), harness.ALLOWED, late.out(), late.err())
    allowed_by(agent.check("demo"), bed.ids[0])
    check(bed.udp("receive_dropped") >= 1000, agent.status())
    poll("all that was queued", lambda: bed.counter("invalid_malformed") ==
         bed.udp("received") - bed.counter("answers") -
         bed.counter("answers_late") - bed.counter("answers_duplicate"))


def test_flood(lab):
    """a flood of junk starves neither the socket nor the servers"""
    bed = Bed(lab, cluster=1)
    agent = bed.start()
    floods = [flood(bed, "flood%d" % n, size)
              for n, size in enumerate((1, 100))]
    for _ in range(30):
        allowed_by(agent.check("demo"), bed.ids[0])
    before = bed.counter("invalid_malformed")
    poll("more of the flood",
         lambda: bed.counter("invalid_malformed") > before)
    for process in floods:
        check(process.running(), process.err())
        process.kill()
    allowed_by(agent.check("demo"), bed.ids[0])


# Source ports.


def sources(bed):
    return [e["from"] for e in bed.sandbox.events("request")]


def test_new_ports(lab):
    """servers that ask for another port with each answer get one"""
    bed = Bed(lab, cluster=1, args=("--rebind", "1"))
    agent = bed.start()
    for n in range(1, 6):
        allowed_by(agent.check("demo"), bed.ids[0])
        poll("another port", lambda n=n:
             agent.tenant("main")["transport"]["rebinds"] >= n)
    seen = sources(bed)
    check(len(set(seen)) == len(seen) == 5, seen)
    # What the closed ports have counted is not lost.
    same((bed.udp("sent"), bed.udp("received")), (5, 5))


def test_no_new_port(lab):
    """no other port is left: the old one goes on, and is tried again"""
    bed = Bed(lab, cluster=1, args=("--rebind", "1"))
    agent = bed.start()

    def transport():
        return agent.tenant("main")["transport"]

    only = transport()["port4"]
    with bed.net.inside("agent"), open(
            "/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as f:
        before = f.read()
    bed.net.sysctl("agent", "ipv4.ip_local_port_range", "%d %d" % (only, only))
    for _ in range(3):
        allowed_by(agent.check("demo"), bed.ids[0])
    # Three at once, and one after the pause.
    poll("failures", lambda: transport()["rebind_failures"] >= 4)
    allowed_by(agent.check("demo"), bed.ids[0])
    same((transport()["state"], transport()["port4"], transport()["rebinds"]),
         ("RebindPending", only, 0))
    check(transport()["rebind_error"], transport())
    seen = sources(bed)
    same(set(seen), {wire(AGENT4, only)})
    bed.net.sysctl("agent", "ipv4.ip_local_port_range", before)
    poll("another port", lambda: transport()["rebinds"] >= 1)
    same((transport()["state"], transport()["rebind_error"]), ("Ready", None))
    allowed_by(agent.check("demo"), bed.ids[0])
    check(sources(bed)[-1] != seen[0], sources(bed))


if __name__ == "__main__":
    netlab.enter()
    harness.run([value for name, value in list(globals().items())
                 if name.startswith("test_")])
