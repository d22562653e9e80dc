#!/usr/bin/env python3
"""
The machine of a test's own, and its stand-in for systemd: what other tests
rely on there. What is done there stays there, and units are obeyed as systemd
252 obeys them, or refused.
"""

import os
import sys

import harness
from harness import check, poll, same
from overlay import Machine, inside

# A service that does what its clients tell it, a line each, over the first
# descriptor that it was passed: "notify TEXT", "exit N", "ignore"; what it was
# given it prints when it begins.
SERVICE = r'''
import os, signal, socket, sys
def notify(text):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.connect(os.environ["NOTIFY_SOCKET"])
        sock.send(text.encode())
fds = int(os.environ.get("LISTEN_FDS", "0"))
assert not fds or os.environ["LISTEN_PID"] == str(os.getpid())
error = os.fstat(2)
print("fds", fds, os.environ.get("LISTEN_FDNAMES", ""), "stream",
      os.environ["JOURNAL_STREAM"] == "%d:%d" % (error.st_dev, error.st_ino),
      flush=True)
print("<4>a warning", file=sys.stderr, flush=True)
if "ready" in sys.argv:
    notify("READY=1\nSTATUS=at work")
listener = socket.socket(fileno=3)
listener.setblocking(True)
while True:
    client, _ = listener.accept()
    with client, client.makefile("rw") as lines:
        words = lines.readline().split(" ", 1)
        lines.write("%d\n" % os.getpid())
        lines.flush()
        if words[0] == "notify":
            notify(words[1].strip().replace("|", "\n"))
        elif words[0] == "exit":
            os._exit(int(words[1]))
        elif words[0] == "ignore\n":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
'''
UNIT = """[Unit]
Description=A test
StartLimitIntervalSec=0
[Service]
Type=notify
ExecStart=%s -u /srv/service.py ready
ExecReload=/bin/sh -c 'echo again $MAINPID; test -e /srv/good'
Restart=on-failure
RestartSec=50ms
RestartPreventExitStatus=78
[Install]
WantedBy=multi-user.target
""" % sys.executable
SOCKETS = """[Socket]
ListenStream=/run/test.sock
FileDescriptorName=first
SocketMode=0640
SocketGroup=daemon
%s[Install]
WantedBy=sockets.target
"""
TELL = r'''
import socket, sys
with socket.socket(socket.AF_UNIX) as sock:
    sock.connect("/run/test.sock")
    with sock.makefile("rw") as lines:
        lines.write(sys.argv[1] + "\n")
        lines.flush()
        print(lines.readline().strip())
'''


def start(lab, unit=UNIT, **more):
    machine = Machine(lab)
    machine.write("/srv/service.py", SERVICE)
    machine.write("/srv/tell.py", TELL)
    machine.write("/etc/systemd/system/test.service", unit)
    machine.write("/etc/systemd/system/test.socket", SOCKETS % "")
    for name, text in more.items():
        machine.write("/etc/systemd/system/test.service.d/%s.conf" % name,
                      text)
    return machine


def tell(machine, text):
    """The service does it; its pid."""
    return int(machine.run("%s /srv/tell.py '%s'" % (sys.executable,
                                                     text)).out)


def test_nothing_is_left(lab):
    """what is written, made and started there is seen nowhere else"""
    machine = Machine(lab)
    machine.run("echo x >/etc/rl-overlay; useradd -m rl-overlay; "
                "mkdir /opt/rl-overlay; rm /etc/hostname; "
                "setsid sleep 1000 >/dev/null 2>&1 &")
    machine.run("test -e /dev/null && ! ls /dev/[shv]d* 2>/dev/null; "
                "! { echo 1 >/proc/sys/kernel/panic; } 2>/dev/null")
    machine.run("test -w /home/rl-overlay", user="rl-overlay")
    machine.run("test -w /etc/passwd", user="rl-overlay", expect=1)
    same(machine.run("cd /sys/class/net 2>/dev/null || ip -br a").out.split()
         [0], "lo")
    pids = [int(pid) for pid in os.listdir(machine.path("/proc"))
            if pid.isdigit()]
    check(1 in pids and len(pids) < 10, pids)
    machine.close()
    for path in ("/etc/rl-overlay", "/opt/rl-overlay", "/home/rl-overlay"):
        check(not os.path.exists(path), path)
    with open("/etc/passwd", encoding="utf-8") as f:
        check("rl-overlay" not in f.read())
    same(os.listdir(machine.folder), [])
    check(not os.path.exists("/proc/%d" % machine.pid))
    with open("/proc/mounts", encoding="utf-8") as f:
        check(machine.folder not in f.read())


def test_a_page(lab):
    """its shell blocks are one script, which ends at what fails"""
    machine = Machine(lab)
    page = os.path.join(lab.path, "page.md")
    text = "A\n```sh\nx=1; cd /srv\n```\n```json\nfalse\n```\n" \
        "```sh\nsleep 1000 &\n" \
        "systemctl is-enabled nothing || echo $x $PWD\n```\n"
    with open(page, "w", encoding="utf-8") as f:
        f.write(text)
    out = machine.run_page(page, [("x=1", "x=2")], ["---- block 1 ----\n"])
    check(out.endswith("2 /srv\n"), out)
    for changed, pairs, want in (
            (text.replace("||", "&&"), [], ["block"]),
            (text, [("x=3", "")], []), (text, [], ["3 /srv"])):
        with open(page, "w", encoding="utf-8") as f:
            f.write(changed)
        try:
            machine.run_page(page, pairs, want)
        except harness.Failure:
            continue
        raise harness.Failure("the page did not fail")


def test_a_service_and_its_socket(lab):
    """held across restarts and an end, passed by name, watched"""
    machine = start(lab)
    machine.run("systemctl enable --now test.socket")
    machine.run("systemctl is-enabled test.socket")
    same(machine.run("systemctl is-enabled test || :").out, "disabled\n")
    same(machine.state("test"), "inactive")
    same(machine.run("stat -c '%a %G' /run/test.sock").out, "640 daemon\n")
    first = tell(machine, "hello")
    same(first, int(machine.show("test", "MainPID")))
    same(machine.state("test"), "active")
    out = machine.journal("test")
    check("fds 1 first stream True" in out, out)
    check("a warning" in machine.journal("test", "-p warning"))
    check("fds" not in machine.journal("test", "-p warning"))
    status = machine.run("systemctl status test").out
    for text in 'Status: "at work"', "TriggeredBy: ● test.socket", "running":
        check(text in status, text, status)
    machine.run("systemctl restart test")
    check(tell(machine, "hello") != first)
    check("activated by" in machine.run("systemctl stop test").err)
    same(machine.run("systemctl status test", expect=3).err, "")
    tell(machine, "hello")
    same(machine.state("test"), "active")
    machine.run("systemctl stop test.socket test")
    machine.run("systemctl start test.socket; systemctl start test")
    machine.run("systemctl stop test.socket")
    machine.run("systemctl start test.socket", expect=1)
    check("already active" in machine.journal("test.socket"))


def test_two_sockets(lab):
    """enabled, started and stopped together, passed in one order"""
    machine = start(lab)
    path = "/etc/systemd/system/test.socket"
    machine.write(path, SOCKETS % "" + "Also=test-second.socket\n")
    machine.write(path.replace(".s", "-second.s"), "[Unit]\nPartOf="
                  "test.socket\n[Socket]\nListenStream=/run/second.sock\n"
                  "FileDescriptorName=second\nService=test.service\n"
                  "RemoveOnStop=yes\n[Install]\nWantedBy=test.socket\n")
    machine.run("systemctl enable --now test.socket; systemctl start test")
    # By the names of the units.
    check("fds 2 second:first" in machine.journal("test"))
    machine.run("systemctl is-active test-second.socket")
    machine.run("systemctl stop test test.socket")
    same(machine.state("test-second.socket"), "inactive")
    machine.run("test -e /run/test.sock -a ! -e /run/second.sock")
    machine.run("systemctl disable test.socket; systemctl start test.socket")
    same(machine.state("test-second.socket"), "inactive")


def test_a_service_that_ends(lab):
    """is started again, unless it is told or its exit status says no"""
    machine = start(lab)
    machine.run("systemctl start test.socket test")
    pid = tell(machine, "exit 3")
    poll("a new one", lambda: tell(machine, "hello") != pid)
    same(machine.show("test", "NRestarts"), "1")
    machine.run("systemctl kill -s KILL test")
    poll("the second", lambda: machine.show("test", "NRestarts") == "2")
    machine.until("test", "active")
    tell(machine, "exit 78")
    machine.until("test", "failed")
    out = machine.journal("test")
    for text in ("status=3/n/a", "code=killed, status=9/KILL",
                 "status=78/CONFIG", "Failed with result 'exit-code'"):
        check(text in out, text, out)


def test_what_a_service_says(lab):
    """by its main process; it is waited for, reloaded, let time"""
    machine = start(lab, more="[Service]\nTimeoutStartSec=300ms\n"
                    "TimeoutStopSec=300ms\nNotifyAccess=main\n")
    machine.run("systemctl start test.socket test")
    tell(machine, "notify STATUS=other")
    poll("its status", lambda: machine.show("test", "StatusText") == "other")
    tell(machine, "notify RELOADING=1")
    machine.until("test", "reloading")
    tell(machine, "notify READY=1")
    machine.until("test", "active")
    # One reload that fails changes nothing; one that does not, neither.
    result = machine.run("systemctl reload test", expect=1)
    check("Job for test.service failed" in result.err, result)
    machine.write("/srv/good", "")
    machine.run("systemctl reload test")
    check("again " + machine.show("test", "MainPID") in
          machine.journal("test"))
    # Deaf to SIGTERM, it is killed.
    tell(machine, "ignore")
    machine.run("systemctl stop test")
    check("State 'stop-sigterm' timed out" in machine.journal("test"))
    same(machine.show("test", "Result"), "timeout")
    # One that never says READY has failed.
    machine.write("/etc/systemd/system/test.service.d/z.conf",
                  "[Service]\nExecStart=\nExecStart=/bin/sleep 1000\n"
                  "Restart=no\n")
    machine.run("systemctl start test", expect=1)
    check("start operation timed out" in machine.journal("test"))
    same(machine.run("ps ax | grep -c '[s]leep 1000' || :").out, "0\n")


def test_a_watchdog(lab):
    """ends one that is silent, or stopped, and one more comes"""
    machine = start(lab, more="[Service]\nWatchdogSec=400ms\n")
    machine.run("systemctl start test.socket test")
    poll("a second", lambda: machine.show("test", "NRestarts") == "1")
    out = machine.journal("test")
    check("Watchdog timeout (limit 400ms)!" in out, out)
    check("Failed with result 'watchdog'" in out, out)
    pid = machine.show("test", "MainPID")
    machine.run("systemctl kill -s STOP --kill-whom=main test", expect=None)
    poll("a third", lambda: machine.show("test", "MainPID") not in (pid, "0"))
    # As long as it says so, it stays.
    machine.run("systemctl stop test; rm -r /etc/systemd/system/*.d; "
                "systemctl start test")
    pid = tell(machine, "notify WATCHDOG=1")
    same(tell(machine, "hello"), pid)


def test_what_a_service_is_given(lab):
    """user, groups, limits, environment, credentials, directories"""
    machine = start(lab, UNIT.replace("Type=notify", "Type=oneshot").replace(
        "%s -u /srv/service.py ready" % sys.executable, "/srv/show $A ${A}"),
        more="[Service]\nUser=daemon\nSupplementaryGroups=www-data\n"
        "UMask=0027\nLimitNOFILE=77\nEnvironment=A='b  c' \"D=e\"\n"
        "EnvironmentFile=-/srv/none\nEnvironmentFile=/srv/env\n"
        "LoadCredential=k:/srv/key\nStateDirectory=test\nNoNewPrivileges=yes\n"
        "Restart=no\nRemainAfterExit=yes\n")
    machine.write("/srv/key", "secret\n", 0o600)
    machine.write("/srv/env", "# a comment\nF=g h\n")
    machine.write("/srv/show", "#!/bin/sh\necho \"$# $3|$D|$F|$USER\"\n"
                  "id -un; id -Gn; umask; ulimit -n; pwd\n"
                  "cat $CREDENTIALS_DIRECTORY/k; cat /srv/key\n"
                  "stat -c %U:%a $CREDENTIALS_DIRECTORY/k $STATE_DIRECTORY\n"
                  "exit 0\n", 0o755)
    machine.run("systemctl start test")
    same([line for line in machine.journal("test").splitlines()
          if "test.service" not in line],
         ["3 b  c|e|g h|daemon", "daemon", "daemon www-data", "0027", "77",
          "/", "secret", "cat: /srv/key: Permission denied", "daemon:400",
          "daemon:755"])
    machine.run("systemctl stop test; rm /srv/key; systemctl start test",
                expect=1)
    check("Failed to set up credentials" in machine.journal("test"))
    check(not os.path.exists(machine.path("/run/credentials/test.service")))


# What a confined service tries, a line each: "NAME yes" or an errno's name.
TRY = r'''
import ctypes, errno, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def clock():
    if libc.adjtimex(ctypes.create_string_buffer(1024)) < 0:
        raise OSError(ctypes.get_errno(), "")
def write(path):
    return lambda: open(path, "w").close()
for name, what in (
        ("etc", write("/etc/x")), ("usr", write("/usr/x")),
        ("run", write("/run/x")), ("kept", write("/run/kept/x")),
        ("state", write("/var/lib/test/x")), ("tmp", write("/tmp/x")),
        ("ours", lambda: os.stat("/tmp/ours")),
        ("root", lambda: os.listdir("/root/")), ("clock", clock),
        ("chown", lambda: os.chown("/run/kept/x", -1, -1)),
        ("inet", lambda: socket.socket(socket.AF_INET).close()),
        ("netlink", lambda: socket.socket(
            socket.AF_NETLINK, socket.SOCK_RAW).close())):
    try:
        what()
        print(name, "yes", flush=True)
    except OSError as error:
        print(name, errno.errorcode[error.errno], flush=True)
with open("/proc/self/status") as f:
    print(*[line.split()[1] for line in f if line.split(":")[0] in (
        "CapBnd", "NoNewPrivs")])
'''
CONFINED = """[Service]
ProtectSystem=strict
ReadWritePaths=-/run/kept -/run/none
StateDirectory=test
ProtectHome=yes
PrivateTmp=yes
ProtectClock=yes
NoNewPrivileges=yes
CapabilityBoundingSet=
RestrictAddressFamilies=AF_UNIX AF_INET
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
SystemCallErrorNumber=EPERM
"""


def tried(machine):
    """What came of each try, by its name."""
    machine.run("systemctl start test")
    lines = [line.split() for line in machine.journal("test").splitlines()
             if ".service" not in line and "<" not in line]
    return {words[0]: words[1] for words in lines}


def test_what_a_service_may_not(lab):
    """folders, system calls and privileges that it has only unconfined"""
    unit = UNIT.replace("Type=notify", "Type=oneshot").replace(
        "/srv/service.py ready", "/srv/try.py")
    machine = start(lab, unit)
    machine.write("/srv/try.py", TRY)
    machine.write("/tmp/ours", "")
    machine.run("mkdir /run/kept /var/lib/test")
    free = tried(machine)
    same([name for name, came in free.items() if came not in ("yes", "0")], [])
    confined, hidden = CONFINED, "EACCES"
    if inside(sys.executable, "/root") or \
            inside(sys.executable, "/home"):
        confined, hidden = CONFINED.replace("ProtectHome=yes\n", ""), "yes"
    machine.write("/etc/systemd/system/test.service.d/c.conf", confined)
    machine.run("rm /tmp/x /run/kept/x; systemctl daemon-reload")
    want = dict.fromkeys(("kept", "state", "tmp", "inet"), "yes")
    want.update(dict.fromkeys(("etc", "usr", "run"), "EROFS"))
    want.update(ours="ENOENT", root=hidden, clock="EPERM", chown="EPERM",
                netlink="EAFNOSUPPORT")
    want["0" * 16] = "1"
    got = tried(machine)
    same({name: got[name] for name in want}, want)
    machine.run("test ! -e /tmp/x -a -e /run/kept/x")
    # What it cannot do is told.
    machine.write("/etc/systemd/system/test.service.d/c.conf",
                  "[Service]\nReadWritePaths=/run/none\nProtectSystem=strict\n")
    machine.run("systemctl daemon-reload; systemctl start test", expect=1)
    check("status=226" in machine.journal("test"), machine.journal("test"))


def test_a_condition(lab):
    """that is not met: nothing is started, and nothing failed"""
    unit = UNIT.replace("[Service]", "ConditionPathExists=/srv/x\n"
                        "Requires=test.socket\n[Service]")
    machine = start(lab, unit)
    machine.run("systemctl enable --now test")
    same(machine.state("test"), "inactive")
    check("unmet condition check (ConditionPathExists=/srv/x)" in
          machine.journal("test"))
    machine.write("/srv/x", "")
    machine.run("systemctl start test")
    same([machine.state("test"), machine.state("test.socket")],
         ["active", "active"])
    machine.run("systemctl disable --now test")
    same(machine.state("test"), "inactive")


def test_what_is_not_known(lab):
    """is refused, with the name of the setting; a drop-in waits its turn"""
    machine = start(lab)
    for section, line in (("Service", "ProtectSystm=strict"),
                          ("Service", "Type=notify-reload"),
                          ("Service", "RootDirectory=/srv"),
                          ("Unit", "Type=notify"), ("Socket", "A=b")):
        machine.write("/etc/systemd/system/test.service.d/x.conf",
                      "[%s]\n%s\n" % (section, line))
        result = machine.run("systemctl start test", expect=1)
        key = line.split("=")[0] if section != "Socket" else "[Socket]"
        check(key in result.err + machine.journal("test"), result)
    machine.write("/etc/systemd/system/test.service.d/x.conf", "")
    machine.run("systemctl start test.socket test")
    machine.write("/etc/systemd/system/test.service.d/x.conf",
                  "[Unit]\nDescription=Another\n")
    check("Another" not in machine.run("systemctl status test").out)
    machine.run("systemctl daemon-reload")
    check("Another" in machine.run("systemctl status test").out)
    check("could not be found" in machine.run("systemctl start none",
                                              expect=5).err)
    machine.run("systemctl frobnicate test", expect=1)


def test_a_daemon_that_forks(lab):
    """is known by its PIDFile"""
    machine = start(lab, "[Service]\nType=forking\nPIDFile=/run/d.pid\n"
                    "ExecStart=/srv/daemon\n")
    machine.write("/srv/daemon", "#!/bin/sh\nsetsid sleep 1000 &\n"
                  "echo $! >/run/d.pid\n", 0o755)
    machine.run("systemctl start test")
    same(machine.show("test", "MainPID") + "\n", machine.read("/run/d.pid"))
    machine.run("systemctl stop test")
    same(machine.run("ps ax | grep -c '[s]leep 1000' || :").out, "0\n")
    same(machine.show("test", "Result"), "success")


if __name__ == "__main__":
    harness.run([value for name, value in list(globals().items())
                 if name.startswith("test_")])
