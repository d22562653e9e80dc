"""
A machine of a test's own: this one's root under an overlay in memory, in
mount, pid, network and host name spaces of its own, with a stand-in for systemd
as process 1. What is installed, written and started there is gone with it: its
process 1 is killed at the end, and with it all processes and mounts.

    machine = Machine(lab)
    machine.install()                     # make install of the build
    machine.run("systemctl start rl-agent")
    machine.run("rlctl check checkout", user="alice", expect=1)

Needs root, overlayfs and name spaces: else the test is skipped, or fails with
RLA_REQUIRE_NETNS=1.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys

import fake_journal
import harness
from documents import GUARD, script_of, shell_blocks
from harness import Failure, Process, Skip, check, poll, same

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.dirname(harness.AGENT)
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# $1 is where to build it, $2 the interpreter, $3 process 1; the others are
# folders that have to be seen as they are even if this machine has them in
# a file system that is not its root's, or in /tmp.
SETUP = r"""
set -eu
umask 022
ulimit -c 0
work=$1 python=$2 manager=$3
shift 3
mount -t tmpfs -o mode=755 none "$work"
layers=0
lay() {
	layers=$((layers + 1))
	mkdir -p "$work/upper$layers" "$work/work$layers" "$work/root$1"
	mount -t overlay -o "lowerdir=$1,upperdir=$work/upper$layers" \
	    -o "workdir=$work/work$layers" none "$work/root$1"
}
lay /
root=$work/root
mount -t tmpfs -o mode=755 none "$root/run"
mount -t tmpfs -o mode=1777 none "$root/tmp"
mkdir -p "$root/run/lock"
# No disk of this machine, and nothing by which its kernel is told what to do.
mount -t tmpfs -o mode=755 none "$root/dev"
for device in full null random tty urandom zero; do
	[ -e "/dev/$device" ] || continue
	: >"$root/dev/$device"
	mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir -m 1777 "$root/dev/shm"
mkdir "$root/dev/pts"
mount -t devpts -o newinstance,ptmxmode=0666 none "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
for n in 0:stdin 1:stdout 2:stderr; do
	ln -s "/proc/self/fd/${n%:*}" "$root/dev/${n#*:}"
done
mount -t proc none "$root/proc"
for knob in sys sysrq-trigger; do
	[ -e "$root/proc/$knob" ] || continue
	mount --bind "$root/proc/$knob" "$root/proc/$knob"
	mount -o remount,bind,ro "$root/proc/$knob"
done
ip link set lo up
hostname machine
for folder; do
	lay "$folder"
done
for tool in systemctl journalctl; do
	rm -f "$root/usr/bin/$tool" "$root/bin/$tool"
	printf '#!/bin/sh\nexec "%s" -B "%s/fake_systemctl.py" %s "$@"\n' \
	    "$python" "${manager%/*}" $tool >"$root/usr/bin/$tool"
	chmod 755 "$root/usr/bin/$tool"
done
echo 'nameserver 127.0.0.1' >"$root/etc/resolv.conf.new"
mv -f "$root/etc/resolv.conf.new" "$root/etc/resolv.conf"
# Packages start their services, which an image of a container may forbid, and
# need no index of manuals.
rm -f "$root/usr/sbin/policy-rc.d" "$root/var/lib/man-db/auto-update"
# Nothing of an agent that this machine has.
rm -rf "$root/etc/rl-agent" "$root"/etc/systemd/system/rl-agent*
echo mounted
exec chroot "$root" "$python" -B "$manager"
"""

# The Debian packages of a build that there is: what debhelper would do to
# configure and compile is skipped. $1: source; $2: build; $3: where they go.
PACKAGES = r"""
skip=$(mktemp -d)
for step in dh_autoreconf dh_update_autotools_config dh_auto_configure \
    dh_auto_build dh_auto_test dh_dwz; do
	printf '#!/bin/sh\n' >"$skip/$step"
done
cat >"$skip/dh_auto_install" <<'END'
#!/bin/sh
set -eu
destdir=$PWD/debian/tmp
while [ $# -gt 0 ] && [ "$1" != -- ]; do
	shift
done
[ $# = 0 ] || shift
cd "$RLA_BUILD"
# Made for another prefix.
for unit in "$RLA_SOURCE"/systemd/*.in; do
	rm -f "systemd/$(basename "$unit" .in)"
done
make -s install DESTDIR="$destdir" prefix=/usr \
    libdir=/usr/lib/"$(dpkg-architecture -qDEB_HOST_MULTIARCH)" \
    mandir=/usr/share/man sysconfdir=/etc \
    systemdsystemunitdir=/lib/systemd/system "$@"
END
chmod 755 "$skip"/*
export PATH=$skip:$PATH RLA_SOURCE=$1 RLA_BUILD=$2
export DEB_BUILD_OPTIONS='nocheck noautodbgsym'
cd "$1"
debian/rules binary >/tmp/packages.log 2>&1 || {
	tail -n 30 /tmp/packages.log >&2
	exit 1
}
mkdir -p "$3"
rm -rf ../librlshim-dev_*.deb "$skip"
mv ../*.deb "$3"
"""


def environment():
    """What a login of root would have."""
    env = {"PATH": PATH, "HOME": "/root", "LANG": "C.UTF-8", "USER": "root",
           "LOGNAME": "root", "SHELL": "/bin/bash",
           "DEBIAN_FRONTEND": "noninteractive"}
    env.update((key, value) for key, value in os.environ.items()
               if key in ("ASAN_OPTIONS", "UBSAN_OPTIONS"))
    return env


def need_tool(name):
    """Skips the test without it; RLA_REQUIRE_TOOLS=1 makes it fail."""
    if shutil.which(name, path=PATH) is None:
        required = os.environ.get("RLA_REQUIRE_TOOLS") == "1"
        raise (Failure if required else Skip)("there is no " + name)


class Inside(Process):
    """A child of ours there, which ends with the machine at the latest."""

    def stop(self):
        if self.child.stdin:
            self.child.stdin.close()
        return self.kill()


class Machine:
    def __init__(self, lab):
        self.lab, self.pid = lab, None
        self.folder = os.path.join(lab.path, lab.name("machine"))
        os.mkdir(self.folder)
        # It is the last process to be ended, but what it wrote is wanted.
        lab.closers.append(self.close)
        try:
            self.begin()
        except OSError as error:
            self.without(error)

    def begin(self):
        if os.geteuid() != 0:
            self.without("this is not root")
        self.init = subprocess.Popen(
            ["unshare", "--mount", "--pid", "--net", "--uts", "--fork",
             "--kill-child", "sh", "-c", SETUP, "sh", self.folder,
             sys.executable, os.path.join(HERE, "fake_systemd.py"),
             SOURCE] + ([BUILD] if not inside(BUILD, SOURCE) else []),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=open(self.log(), "wb"), env=environment())
        lines = [self.init.stdout.readline().decode() for _ in range(2)]
        if lines[0] != "mounted\n":
            self.init.wait()
            with open(self.log(), encoding="utf-8") as f:
                self.without(" ".join(f.read().split()))
        same(lines[1], "running\n", self.log())
        with open("/proc/%d/task/%d/children" % (self.init.pid, self.init.pid),
                  encoding="ascii") as f:
            self.pid = int(f.read())

    def without(self, why):
        text = "no machine of one's own: %s" % why
        raise (Failure if os.environ.get("RLA_REQUIRE_NETNS") else Skip)(text)

    def log(self):
        return self.folder + ".err"

    # Files.

    def path(self, inside_it):
        """A file of the machine as it is called from outside."""
        return "/proc/%d/root%s" % (self.pid, inside_it)

    def read(self, path):
        with open(self.path(path), encoding="utf-8") as f:
            return f.read()

    def write(self, path, text, mode=0o644):
        os.makedirs(os.path.dirname(self.path(path)), exist_ok=True)
        with open(self.path(path), "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(self.path(path), mode)

    # Commands.

    def argv(self, *argv, user=None, groups=()):
        """What runs it there, as root or as a user with these groups too."""
        become = []
        if user:
            become = ["setpriv", "--reuid", user, "--regid", user]
            become += ["--groups", ",".join(groups)] if groups else [
                "--init-groups"]
        return ["nsenter", "--target", str(self.pid), "--mount", "--pid",
                "--net", "--uts", "--root", "--wd"] + become + list(argv)

    def run(self, script, *, user=None, expect=0, timeout=harness.PATIENCE):
        """A line or more for bash; a harness.Result."""
        argv = self.argv("bash", "-c", "set -eu\n" + script, user=user)
        try:
            done = subprocess.run(
                argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, env=environment(), timeout=timeout,
                check=False)
        except subprocess.TimeoutExpired:
            raise Failure("does not end: %s" % script) from None
        result = harness.Result([script], done.returncode,
                                done.stdout.decode(errors="replace"),
                                done.stderr.decode(errors="replace"))
        with open(os.path.join(self.lab.path, "machine.log"), "a",
                  encoding="utf-8") as f:
            f.write("$ %s\n%s%s(%d)\n" % (script, result.out, result.err,
                                          result.status))
        if expect is not None:
            same(result.status, expect, result)
        return result

    def spawn(self, *argv, stdin=None, **become):
        """A process there that goes on meanwhile."""
        return Inside(self.lab, self.lab.name("inside"),
                      self.argv(*argv, **become), environment(), stdin)

    def install(self, **variables):
        """make install of the build that is tested, as its prefix says."""
        words = ["make", "-s", "-C", BUILD, "install"]
        words += ["%s=%s" % item for item in variables.items()]
        self.run(" ".join(shlex.quote(word) for word in words) +
                 " >/tmp/install.log 2>&1 || { tail /tmp/install.log >&2; "
                 "exit 1; }\nldconfig", timeout=3 * harness.PATIENCE)

    def make_packages(self, folder):
        """The Debian packages of the build that is tested, without
        librlshim-dev, whose .pc knows another prefix, into a folder there."""
        if shutil.which("dpkg") is None:
            raise Skip("this is no Debian")
        for tool in "dh", "dpkg-architecture":
            need_tool(tool)
        self.write("/tmp/packages.sh", "set -eu\n" + PACKAGES)
        self.run(" ".join(map(shlex.quote, (
            "sh", "/tmp/packages.sh", SOURCE, BUILD, folder))),
                 timeout=3 * harness.PATIENCE)

    def run_page(self, name, replace=(), want=()):
        """The ```sh blocks of a document, in order, by root in its home; what
        they printed. replace: pairs of texts; want: what has to be printed."""
        script = script_of(shell_blocks(name), replace)
        self.write("/root/page.sh", GUARD + script)
        done = subprocess.run(
            self.argv("bash", "-c", "cd /root && exec bash page.sh"),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, env=environment(),
            timeout=3 * harness.PATIENCE, check=False)
        out = done.stdout.decode(errors="replace")
        with open(os.path.join(self.lab.path, "page.log"), "w",
                  encoding="utf-8") as f:
            f.write(out)
        same(done.returncode, 0, out)
        for text in want:
            check(text in out, "no", text, "in", out)
        return out

    # Services.

    def state(self, unit):
        return self.run("systemctl is-active %s || :" % unit).out.strip()

    def show(self, unit, key):
        return self.run("systemctl show --value -p %s %s" % (
            key, unit)).out.strip()

    def journal(self, unit, *options):
        return self.run("journalctl -u %s -o cat %s" % (
            unit, " ".join(options))).out

    def until(self, unit, state):
        poll("%s to be %s" % (unit, state),
             lambda: self.state(unit) == state)

    # The end.

    def close(self):
        if self.pid is not None and self.init.poll() is None:
            self.keep()
            os.kill(self.pid, 9)
        if hasattr(self, "init"):
            self.init.stdout.close()
            poll("the machine to be gone", self.gone)

    def gone(self):
        """Not before those are reaped that became ours (harness.adopt()) when
        what had put them in there was ended."""
        known = [process.pid for process in self.lab.processes]
        with open("/proc/self/task/%d/children" % os.getpid(),
                  encoding="ascii") as f:
            for pid in map(int, f.read().split()):
                if pid not in known + [self.init.pid]:
                    os.waitpid(pid, os.WNOHANG)
        return self.init.poll() is not None

    def keep(self):
        """What its services wrote is searched for secrets, and shown."""
        folder = self.path(fake_journal.FOLDER)
        for name in os.listdir(folder):
            with open(os.path.join(folder, name), encoding="utf-8") as f:
                entries = [json.loads(line) for line in f]
            with open(os.path.join(self.lab.path, name + ".log"), "w",
                      encoding="utf-8") as f:
                f.writelines(fake_journal.shown(entry) + "\n"
                             for entry in entries)


def inside(path, folder):
    return os.path.realpath(path).startswith(os.path.realpath(folder) + "/")
