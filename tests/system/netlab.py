"""
Networks for the system tests: named network namespaces joined by veth pairs,
made with ip(8) and tc(8) of iproute2. The test process first enters a mount
and a network namespace of its own (and a user namespace, unless it is root),
so that nothing of it can be seen from outside or outlive it.

Programs go into a namespace by being started inside it:

    with net.inside("agent"):
        agent = lab.agent(...)

rlctl needs none: sockets with a path are in no network.

Without the right to make namespaces the tests are skipped;
RLA_REQUIRE_NETNS=1 makes that a failure.
"""

import contextlib
import ctypes
import os
import subprocess

from harness import PATIENCE, Failure, Skip, poll, same

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
MS_REC, MS_PRIVATE = 0x4000, 0x40000

LIBC = ctypes.CDLL(None, use_errno=True)
# What keeps this machine from it, or None; entered by enter().
OBSTACLE = ["enter() was not called"]


def call(name, *args):
    if getattr(LIBC, name)(*args) != 0:
        error = ctypes.get_errno()
        raise OSError(error, "%s: %s" % (name, os.strerror(error)))


def write(path, text):
    with open(path, "w", encoding="ascii") as f:
        f.write(text)


def unshare():
    """As we are, or as root of a new user namespace."""
    uid, gid = os.getuid(), os.getgid()
    try:
        call("unshare", CLONE_NEWNS | CLONE_NEWNET)
    except PermissionError:
        call("unshare", CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET)
        write("/proc/self/setgroups", "deny")
        write("/proc/self/uid_map", "0 %d 1" % uid)
        write("/proc/self/gid_map", "0 %d 1" % gid)


def run(*argv):
    done = subprocess.run(argv, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=PATIENCE, check=False)
    same(done.returncode, 0, " ".join(argv), done.stdout.decode())
    return done.stdout.decode()


def enter():
    """Once, before any thread; what it cannot do is told by every Net."""
    try:
        unshare()
        call("mount", b"none", b"/", None, MS_REC | MS_PRIVATE, None)
        # ip keeps its names there.
        call("mount", b"none", b"/run", b"tmpfs", 0, None)
        for tool in "ip", "tc":
            run(tool, "-V")
        run("ip", "netns", "add", "probe")
        run("ip", "link", "add", "name", "here", "type", "veth", "peer",
            "name", "there", "netns", "probe")
        run("ip", "netns", "delete", "probe")
        OBSTACLE[0] = None
    except (OSError, Failure) as error:
        OBSTACLE[0] = "no network namespaces: %s" % " ".join(
            str(error).split())


class Net:
    """The namespaces of one test; gone with it."""

    def __init__(self, lab, *names):
        if OBSTACLE[0] and os.environ.get("RLA_REQUIRE_NETNS"):
            raise Failure(OBSTACLE[0])
        if OBSTACLE[0]:
            raise Skip(OBSTACLE[0])
        self.names = []
        lab.closers.append(self.close)
        for name in names:
            self.add(name)

    def add(self, name):
        run("ip", "netns", "add", name)
        self.names.append(name)
        self.ip(name, "link", "set", "lo", "up")
        # Every refusal is wanted, not one a second.
        self.sysctl(name, "ipv4.icmp_ratelimit", 0)
        self.sysctl(name, "ipv6.icmp.ratelimit", 0)

    def close(self):
        for name in self.names:
            run("ip", "netns", "delete", name)

    def ip(self, name, *args):
        return run("ip", "-n", name, *args)

    def tc(self, name, *args):
        return run("tc", "-n", name, *args)

    @contextlib.contextmanager
    def inside(self, name):
        """This process, and what it starts meanwhile, in a namespace."""
        back = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        there = os.open("/run/netns/" + name, os.O_RDONLY | os.O_CLOEXEC)
        try:
            call("setns", there, CLONE_NEWNET)
            yield
        finally:
            call("setns", back, CLONE_NEWNET)
            os.close(there)
            os.close(back)

    def sysctl(self, name, variable, value):
        """net.VARIABLE; an interface's name may stand for a word of it."""
        path = "/proc/sys/net/" + variable.replace(".", "/")
        with self.inside(name):
            try:
                write(path, str(value))
            except OSError as error:
                raise Skip("cannot set %s: %s" % (path, error)) from None

    def link(self, a, a_addresses, b, b_addresses, mtu=1500):
        """Joins two; the ends are called after the other's name."""
        run("ip", "-n", a, "link", "add", "name", b, "mtu", str(mtu), "type",
            "veth", "peer", "name", a, "mtu", str(mtu), "netns", b)
        for here, there, addresses in (a, b, a_addresses), (b, a, b_addresses):
            for address in addresses:
                self.ip(here, "address", "add", address, "dev", there,
                        *(["nodad"] if ":" in address else []))
            self.ip(here, "link", "set", there, "up")
        self.up(a, b)

    def up(self, a, b):
        """The end that is in a; and until both are in use."""
        self.ip(a, "link", "set", b, "up")
        for here, there in (a, b), (b, a):
            # Before that the first neighbour solicitation is lost.
            poll("%s to %s" % (here, there), lambda here=here, there=there:
                 "state UP" in self.ip(here, "link", "show", there))

    def udp_sockets(self, name, process):
        """Port to drops, of the IPv4 sockets of a process."""
        inodes = set()
        folder = "/proc/%d/fd" % process.pid
        for fd in os.listdir(folder):
            with contextlib.suppress(OSError):
                inodes.add(os.readlink(os.path.join(folder, fd)))
        found = {}
        with self.inside(name), open("/proc/self/net/udp",
                                     encoding="ascii") as f:
            for line in f.read().splitlines()[1:]:
                words = line.split()
                if "socket:[%s]" % words[9] in inodes:
                    found[int(words[1].split(":")[1], 16)] = int(words[-1])
        return found
