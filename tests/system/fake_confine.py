"""
What a unit takes from its processes, in the stand-in for systemd
(fake_systemd.py): folders that they may not write or see, system calls and
address families that they may not use, privileges that they do not get. A
service that needs one of them fails there as it would under systemd.
"""

import ctypes
import errno
import os
import shutil
import socket
import subprocess

from fake_units import StepError, UnitError

# What systemd.exec(5) calls it when folders could not be arranged.
EXIT_NAMESPACE = 226
CLONE_NEWNS = 0x00020000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 32, 4096, 1 << 14, \
    1 << 18
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 24, 38
ACT_ALLOW, ACT_ERRNO, ACT_KILL = 0x7fff0000, 0x00050000, 0x80000000
CMP_EQ, UNKNOWN_CALL = 4, -1
FAMILIES = 46
READ_ONLY = {"no": (), "yes": ("/usr", "/boot"),
             "full": ("/usr", "/boot", "/etc"), "strict": ("/",)}
# Of the kernel and the machine: even "strict" leaves them.
API = ("/dev", "/proc", "/sys")
SETS = {}  # system calls by the name of their set


def libc():
    return ctypes.CDLL(None, use_errno=True)


def call(result, what):
    if result < 0:
        raise OSError(ctypes.get_errno(), what)


def below(path, folders):
    return any(path == folder or path.startswith(folder + "/")
               for folder in folders)


def mount(source, target, kind, flags, data=None):
    call(libc().mount(*(text and text.encode() for text in (
        source, target, kind)), ctypes.c_ulong(flags),
        data and data.encode()), target)


def mounted():
    """The mount points that can be seen."""
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        return [line.split()[4].encode().decode("unicode_escape")
                for line in f]


class Folders:
    """ProtectSystem=, ReadWritePaths=, ProtectHome= and PrivateTmp=."""

    def __init__(self, unit):
        level = unit.one("ProtectSystem", "no")
        home = unit.one("ProtectHome", "no")
        if level not in READ_ONLY or home not in ("no", "yes"):
            raise UnitError("%s: ProtectSystem=%s, ProtectHome=%s are not "
                            "known here" % (unit.name, level, home))
        self.name = unit.name
        self.read_only = READ_ONLY[level]
        self.writable = unit.words("ReadWritePaths") + [
            os.path.join(top, word) for key, top in (
                ("RuntimeDirectory", "/run"), ("StateDirectory", "/var/lib"))
            for word in unit.words(key)]
        self.hidden = ["/home", "/root", "/run/user"] if home == "yes" else []
        self.private = ["/tmp", "/var/tmp"] if unit.truth("PrivateTmp") else []

    def arrange(self):
        if not self.read_only and not self.hidden and not self.private:
            return
        try:
            call(libc().unshare(CLONE_NEWNS), "unshare")
            mount(None, "/", None, MS_REC | MS_PRIVATE)
            self.protect()
            for path, mode in [(p, "0000") for p in self.hidden] + [
                    (p, "1777") for p in self.private]:
                if os.path.isdir(path):
                    mount("none", path, "tmpfs", 0, "mode=" + mode)
        except OSError as error:
            raise StepError("%s: Failed to set up mount namespacing: %s" % (
                self.name, error), EXIT_NAMESPACE) from None

    def protect(self):
        keep = []
        for path in self.writable:
            if path.startswith("-") and not os.path.exists(path[1:]):
                continue
            keep.append(os.path.realpath(path.lstrip("-")))
            mount(keep[-1], keep[-1], None, MS_BIND)
        for path in self.read_only:
            if path != "/" and os.path.isdir(path):
                mount(path, path, None, MS_BIND | MS_REC)
        for path in mounted():
            if (path == "/" == "".join(self.read_only)) or (
                    below(path, [p.rstrip("/") for p in self.read_only]) and
                    not below(path, keep + list(API))):
                mount(None, path, None, MS_REMOUNT | MS_BIND | MS_RDONLY)


def sets():
    """Those that systemd has, by name, with the sets in them resolved."""
    if not SETS and shutil.which("systemd-analyze"):
        name, found = None, {}
        text = subprocess.run(
            ["systemd-analyze", "--no-pager", "syscall-filter"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            check=True).stdout.decode()
        for line in text.splitlines():
            word = line.strip()
            if line.startswith("@"):
                name, found[word] = word, set()
            elif line.startswith("#"):  # what no set has
                name = None
            elif name and word and not word.startswith("#"):
                found[name].add(word)
        for name in found:
            SETS[name] = expand(name, found)
    return SETS


def expand(word, known):
    if not word.startswith("@"):
        return {word}
    if word not in known:
        raise UnitError("no set of system calls %s" % word)
    return set().union(*(expand(inner, known) for inner in known[word]))


class Calls:
    """SystemCallFilter=, ProtectClock= and RestrictAddressFamilies=."""

    def __init__(self, unit):
        self.allowed, self.denied = None, set()
        self.families = unit.words("RestrictAddressFamilies")
        self.action = ACT_KILL
        number = unit.one("SystemCallErrorNumber")
        if number:
            self.action = ACT_ERRNO | getattr(errno, number)
        if not unit.all("SystemCallFilter") and not unit.truth("ProtectClock"):
            return
        if not sets():
            raise UnitError("%s: SystemCallFilter= needs systemd-analyze" %
                            unit.name)
        for value in unit.all("SystemCallFilter"):
            self.take(value)
        if unit.truth("ProtectClock"):
            self.denied |= sets()["@clock"]

    def take(self, value):
        words = value.lstrip("~").split()
        calls = set().union(*(expand(word, sets()) for word in words))
        less = value.startswith("~")
        if self.allowed is None and not less:
            self.allowed = set(sets()["@default"])
        if self.allowed is None:
            self.denied |= calls
        elif less:
            self.allowed -= calls
        else:
            self.allowed |= calls

    def forbid(self, program):
        """The rest of what this process does has to be in the filter."""
        if self.allowed is None and not self.denied and not self.families:
            return
        lib = ctypes.CDLL("libseccomp.so.2", use_errno=True)
        lib.seccomp_init.restype = ctypes.c_void_p
        ctx = filter_of(lib, ACT_ALLOW)
        for name in self.denied:
            rule(lib, ctx, ACT_ERRNO | errno.EPERM, name)
        if self.families:
            known = {int(getattr(socket, word)) for word in self.families}
            for family in set(range(FAMILIES)) - known:
                rule(lib, ctx, ACT_ERRNO | errno.EAFNOSUPPORT, "socket",
                     family)
        filters = [ctx]
        if self.allowed is not None:
            filters.append(filter_of(lib, self.action))
            # A sanitizer stops the other threads when it looks for leaks.
            more = {"ptrace"} if is_sanitized(program) else set()
            for name in self.allowed | more:
                rule(lib, filters[-1], ACT_ALLOW, name)
        for ctx in filters:
            call(lib.seccomp_load(ctx), "seccomp_load")


def is_sanitized(program):
    if program is None:
        return False  # as will be told
    with open(program, "rb") as f:
        return b"__asan_init" in f.read()


def filter_of(lib, action):
    return ctypes.c_void_p(lib.seccomp_init(ctypes.c_uint32(action)))


class Compare(ctypes.Structure):
    _fields_ = [("arg", ctypes.c_uint), ("op", ctypes.c_int),
                ("a", ctypes.c_uint64), ("b", ctypes.c_uint64)]


def rule(lib, ctx, action, name, first=None):
    """Of a system call, with that first argument if there is one."""
    number = lib.seccomp_syscall_resolve_name(name.encode())
    if number == UNKNOWN_CALL:
        return  # another architecture's
    compare = Compare(0, CMP_EQ, first or 0, 0)
    lib.seccomp_rule_add_array(
        ctx, ctypes.c_uint32(action), number, 0 if first is None else 1,
        ctypes.byref(compare))


class Confinement:
    """Read before the process is made, done in it."""

    def __init__(self, unit):
        self.folders, self.calls = Folders(unit), Calls(unit)
        self.no_new = unit.truth("NoNewPrivileges")
        self.bounded = "CapabilityBoundingSet" in unit.values
        if unit.words("CapabilityBoundingSet") or \
                unit.words("AmbientCapabilities"):
            raise UnitError("%s: no capabilities are given here" % unit.name)

    def before_user(self):
        self.folders.arrange()
        number = 0
        while self.bounded and libc().prctl(PR_CAPBSET_DROP, number, 0, 0,
                                            0) == 0:
            number += 1

    def last(self, program):
        if self.no_new:
            call(libc().prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl")
        self.calls.forbid(program)
