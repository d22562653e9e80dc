"""
NSD and Unbound as ordinary processes of a laboratory: on a loopback port, with
a configuration of their own, no privileges, no control channel. The programs
are named by RLA_NSD, RLA_UNBOUND, RLA_LDNS_KEYGEN and RLA_LDNS_SIGNZONE, or
found in PATH and the sbin folders. One that is missing skips the test, unless
RLA_REQUIRE_DNS_SERVERS is set.
"""

import os
import signal
import socket
import struct
import subprocess

from harness import PATIENCE, Failure, Process, check, find_program, poll, same

STARTS = 8  # a port may be taken between our look and the server's


def find(name):
    """The path of a program; a Skip or a Failure when there is none."""
    return find_program(name, "RLA_REQUIRE_DNS_SERVERS")


def free_port():
    """A loopback port that UDP and TCP have free just now."""
    for _ in range(64):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp, \
                socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tcp:
            udp.bind(("127.0.0.1", 0))
            try:
                tcp.bind(udp.getsockname())
            except OSError:
                continue
            return udp.getsockname()[1]
    raise Failure("no port is free for UDP and TCP")


def answers(port, name):
    """Does a nameserver answer there, whatever it says?"""
    question = b"".join(bytes([len(part)]) + part.encode()
                        for part in name.split(".")) + b"\0"
    query = struct.pack(">HHHHHH", 7, 0, 1, 0, 0, 0) + question + \
        struct.pack(">HH", 6, 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.settimeout(1)
        udp.connect(("127.0.0.1", port))
        try:
            udp.send(query)
            return udp.recv(4096)[:2] == query[:2]
        except OSError:
            return False


def working_in(folder):
    """The processes whose working folder is this one or below it."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            where = os.readlink("/proc/%s/cwd" % pid)
        except OSError:
            continue  # it has ended, or is nobody's business of ours
        if (where + "/").startswith(folder + "/"):
            found.append(int(pid))
    return found


def unfinished():
    """Our children, adopted ones too, that have not ended to the last."""
    task = "/proc/%d/task/%d/children" % (os.getpid(), os.getpid())
    with open(task, encoding="ascii") as f:
        pids = f.read().split()
    return [pid for pid in pids if state(pid) != "Z"]


def state(pid):
    try:
        with open("/proc/%s/stat" % pid, encoding="ascii") as f:
            return f.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "Z"


class Nameserver:
    """What NSD and Unbound have in common. zone is one that it answers for."""

    def __init__(self, lab, zone, program):
        self.lab, self.zone = lab, zone
        self.program = program
        self.name = lab.name(type(self).__name__.lower())
        self.folder = os.path.join(lab.path, self.name)
        os.mkdir(self.folder)
        self.process = None
        self.port = None
        lab.closers.append(self.close)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        fresh = path + ".fresh"
        with open(fresh, "w", encoding="ascii") as f:
            f.write(text)
        os.rename(fresh, path)
        return path

    def endpoint(self):
        return "127.0.0.1:%d" % self.port

    def start(self, port=None):
        for _ in range(STARTS):
            self.port = port or free_port()
            config = self.write("server.conf", self.config())
            self.process = Process(self.lab, self.name, self.argv(config))
            poll("%s to answer or to end" % self.name, lambda:
                 not self.process.running() or answers(self.port, self.zone))
            if self.process.running():
                return self
        raise Failure("%s does not start: %s" % (
            self.name, self.process.out() + self.process.err()))

    def stop(self):
        """It is gone, and so is what it forked: its port is free."""
        self.process.stop()
        poll("%s to be silent" % self.name,
             lambda: not answers(self.port, self.zone))

    def close(self):
        """Ended before; what it forked, at any depth, may take longer."""
        poll("what %s forked to end" % self.name,
             lambda: not working_in(self.lab.path) and not unfinished())

    def config(self):
        raise NotImplementedError

    def argv(self, config):
        raise NotImplementedError


class Nsd(Nameserver):
    """Authoritative only. zones: {name: text of the zone file}."""

    def __init__(self, lab, zones):
        super().__init__(lab, sorted(zones)[0], find("nsd"))
        self.zones = sorted(zones)
        for name, text in zones.items():
            self.write(name + ".zone", text)
        self.start()

    def config(self):
        lines = ["server:", ' ip-address: 127.0.0.1@%d' % self.port,
                 ' username: ""', ' chroot: ""', ' database: ""',
                 ' zonesdir: "%s"' % self.folder,
                 ' pidfile: "%s/nsd.pid"' % self.folder,
                 ' xfrdfile: "%s/xfrd.state"' % self.folder,
                 ' zonelistfile: "%s/zone.list"' % self.folder,
                 ' xfrdir: "%s"' % self.folder,
                 " server-count: 1", " reuseport: no",
                 "remote-control:", " control-enable: no"]
        for zone in self.zones:
            lines += ["zone:", ' name: "%s"' % zone,
                      ' zonefile: "%s.zone"' % zone]
        return "\n".join(lines) + "\n"

    def argv(self, config):
        return [self.program, "-d", "-c", config]

    def load(self, zone, text):
        """Another content for a zone; the serial has to be a later one."""
        self.write(zone + ".zone", text)
        self.process.signal(signal.SIGHUP)


class Unbound(Nameserver):
    """Recursive. stubs: {zone: endpoint of who is authoritative for it}."""

    def __init__(self, lab, stubs, anchor=None, more=()):
        super().__init__(lab, sorted(stubs)[0], find("unbound"))
        self.stubs, self.anchor, self.more = stubs, anchor, list(more)
        self.start()

    def config(self):
        lines = ["server:", " interface: 127.0.0.1", " port: %d" % self.port,
                 ' username: ""', ' chroot: ""', ' pidfile: ""',
                 ' directory: "%s"' % self.folder, " use-syslog: no",
                 ' logfile: ""', " do-daemonize: no", " num-threads: 1",
                 " do-not-query-localhost: no", " do-ip6: no",
                 " access-control: 127.0.0.0/8 allow",
                 ' module-config: "%siterator"' % (
                     "validator " if self.anchor else ""),
                 " trust-anchor-signaling: no", " root-key-sentinel: no"]
        if self.anchor:
            lines.append(' trust-anchor: "%s"' % self.anchor)
        lines += [" " + line for line in self.more]
        lines += ["remote-control:", " control-enable: no"]
        for zone, endpoint in self.stubs.items():
            lines += ["stub-zone:", ' name: "%s"' % zone,
                      " stub-addr: %s" % endpoint.replace(":", "@")]
        return "\n".join(lines) + "\n"

    def argv(self, config):
        return [self.program, "-d", "-p", "-c", config]


def zone_text(zone, lines, ttl=1, serial=1):
    """A zone file; the lines are records relative to the zone."""
    return "\n".join(
        ["$ORIGIN %s." % zone, "$TTL %d" % ttl,
         "@ SOA ns admin %d 3600 600 86400 %d" % (serial, ttl),
         "@ NS ns", "ns A 127.0.0.1"] + list(lines)) + "\n"


def srv_lines(servers, zone=None):
    """Of the servers of a sandbox: SRV records, and addresses by target."""
    lines = []
    for server in servers:
        target = "s-%s" % server["server_id"]
        for i, address in enumerate(server["addresses"]):
            host, port = address.rsplit(":", 1)
            host = host.strip("[]")
            if i == 0:
                lines.append("_ratelimitly._udp SRV 0 0 %s %s" % (
                    port, target + ("." + zone + "." if zone else "")))
            if not zone:
                lines.append("%s %s %s" % (
                    target, "AAAA" if ":" in host else "A", host))
    return lines


def sign(lab, zone, text):
    """The signed text of a zone, and its key as a trust anchor."""
    keygen, signzone = find("ldns-keygen"), find("ldns-signzone")
    folder = os.path.join(lab.path, lab.name("keys"))
    os.mkdir(folder)
    path = os.path.join(folder, "zone")
    with open(path, "w", encoding="ascii") as f:
        f.write(text)

    def run(*argv):
        done = subprocess.run(argv, cwd=folder, timeout=PATIENCE, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        same(done.returncode, 0, argv, done.stderr)
        return done.stdout.decode().strip()

    key = run(keygen, "-a", "ECDSAP256SHA256", "-k", zone)
    run(signzone, "-f", path + ".signed", path, key)
    with open(path + ".signed", encoding="ascii") as f:
        signed = f.read()
    with open(os.path.join(folder, key + ".key"), encoding="ascii") as f:
        anchor = f.read().split(";")[0].strip().replace("\t", " ")
    return signed, anchor
