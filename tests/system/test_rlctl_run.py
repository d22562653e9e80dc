#!/usr/bin/env python3
"""
rlctl run: when the command runs, what it inherits, what becomes of signals
and of its exit status, and that its latency is reported once or not at all.
Most of it against an agent that says what the test wants.
"""

import json
import os
import pty
import signal
import struct
import subprocess
import sys
import time

import harness
import wire
from fake_agent import OpenAgent, decision, reported
from harness import CANCELLED, DENIED, FAILED, USAGE, check, poll, same

YES = {wire.CHECK: decision(server=7), wire.REPORT_RULE: reported()}

# Says in a file that it runs, and each signal that it gets; exits by the
# second argument's, and by the number in the third.
LISTENER = """
import os, signal, sys
path, last, status = sys.argv[1], sys.argv[2], int(sys.argv[3])
def say(word):
    with open(path, "a") as f:
        f.write(word + "\\n")
def on(number, _):
    name = signal.Signals(number).name
    say(name)
    if name == last:
        os._exit(status)
for name in ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2"):
    signal.signal(getattr(signal, name), on)
say("runs")
while True:
    signal.pause()
"""

# Becomes the rest of its arguments, with signals that are odd or as usual.
DISPOSE = """
import os, signal, sys
odd = sys.argv[1] == "odd"
for name in ("SIGHUP", "SIGINT", "SIGCHLD", "SIGQUIT", "SIGTERM"):
    signal.signal(getattr(signal, name), signal.SIG_DFL)
for name in ("SIGHUP", "SIGINT", "SIGCHLD") if odd else ():
    signal.signal(getattr(signal, name), signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_SETMASK, {signal.SIGUSR2} if odd else ())
os.execvp(sys.argv[2], sys.argv[2:])
"""

# The same in a session of its own, whose terminal is its standard input.
SESSION = """
import fcntl, os, signal, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
for name in ("SIGINT", "SIGQUIT"):
    signal.signal(getattr(signal, name), signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])
"""


def reports(fake):
    """(latency, rule, key) of each; key None: none was given."""
    found = []
    for payload in fake.asked(wire.REPORT_RULE):
        latency, options, length = struct.unpack_from("<IIH", payload)
        rule, rest = payload[10:10 + length], payload[10 + length:]
        same(len(rest), 2 + struct.unpack_from("<H", rest)[0])
        found.append((latency, rule.decode(),
                      rest[2:].decode() if options & 2 else None))
    return found


def run(lab, fake, *args, expect=0, **options):
    return lab.ctl("--socket", fake.path, "run", *args, expect=expect,
                   **options)


def lines(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding="ascii") as f:
        return f.read().split()


def test_the_exit_status(lab):
    """the command's, 128 and its signal, 126 and 127, as in a shell"""
    fake = OpenAgent(lab, YES)
    plain = os.path.join(lab.path, "plain")
    with open(plain, "w", encoding="ascii") as f:
        f.write("exit 9\n")
    for command, status in (
            (("true",), 0), (("false",), 1), (("sh", "-c", "exit 64"), 64),
            (("sh", "-c", "exit 127"), 127), (("sh", "-c", "exit 255"), 255),
            (("sh", "-c", "kill -KILL $$"), 128 + signal.SIGKILL),
            (("sh", "-c", "kill -TERM $$"), 128 + signal.SIGTERM)):
        result = run(lab, fake, "r", "--", *command, expect=status)
        same((result.out, result.err), ("", ""), command)
    same(len(reports(fake)), 7)
    for command, status in (("no-such-command", 127), ("", 127),
                            ("/no/such/file", 127), (plain, 126),
                            (lab.path, 126)):
        result = run(lab, fake, "r", "--", command, expect=status)
        check(result.err.startswith("rlctl: run: %s: " % command), result)
        same((result.out, result.err.count("\n")), ("", 1), result)
    same(len(reports(fake)), 7, "what did not run is not reported")
    os.chmod(plain, 0o700)
    run(lab, fake, "r", "--", plain, expect=9)


def test_one_report(lab):
    """one report after the end, with no less than the command's time"""
    fake = OpenAgent(lab, YES)
    seen = []

    def on_check(payload):
        seen.append(payload)
        return decision(server=7)
    fake.answers = {**YES, wire.CHECK: on_check}
    begin = time.monotonic()
    run(lab, fake, "slow", "--key", "k1", "--tokens", "3", "--timeout",
        "30000", "--", "sleep", "0.3")
    most = 1e3 * (time.monotonic() - begin) + 1
    (latency, rule, key), = reports(fake)
    same((rule, key), ("slow", "k1"))
    check(300 <= latency <= most, latency, most)
    deadline, options, tokens = struct.unpack_from("<III", seen[0], 40)
    same((options & 2, tokens), (2, 3))
    check(0 < deadline <= 30000, deadline)
    run(lab, fake, "slow", "--", "true")
    same([r[1:] for r in reports(fake)], [("slow", "k1"), ("slow", None)])


def test_no_connection_meanwhile(lab):
    """while the command runs rlctl holds no connection of the agent"""
    fake = OpenAgent(lab, YES)
    go = os.path.join(lab.path, "go")
    os.mkfifo(go)
    ctl = lab.spawn_ctl("--socket", fake.path, "run", "r", "--", "cat", go)
    poll("the check", lambda: fake.asked(wire.CHECK))
    poll("no connection", lambda: not fake.connections)
    same(reports(fake), [])
    with open(go, "w", encoding="ascii") as f:
        f.write("done\n")
    same((ctl.wait(), ctl.out(), ctl.err()), (0, "done\n", ""))
    same(len(reports(fake)), 1)


def test_what_is_not_permitted(lab):
    """exit by outcome, the decision on standard error, and no report"""
    witness = os.path.join(lab.path, "witness")
    fake = OpenAgent(lab, {})
    for answer, status, word in (
            (decision("denied", False, reason="resource", limit="b\x1b[2J",
                      server=7), DENIED, "limit=b?[2J"),
            (decision("failed", False, "policy", "timeout"), FAILED,
             "reason=timeout"),
            (decision("failed", False, "policy", "unknown-rule",
                      text="no rule \"r\""), FAILED, "(no rule \"r\")"),
            (decision("cancelled", False, "policy", "cancelled"), CANCELLED,
             "reason=cancelled")):
        fake.answers = {wire.CHECK: answer}
        result = run(lab, fake, "r", "--", "touch", witness, expect=status)
        same((result.out, result.err.count("\n")), ("", 1), result)
        check(result.err.startswith(wire.OUTCOMES[status].capitalize() +
                                    ": permit=no "), result)
        check(word in result.err, result)
        result = run(lab, fake, "r", "--json", "--", "touch", witness,
                     expect=status)
        d = json.loads(result.err)
        same((result.out, d["outcome"], d["permit"]),
             ("", wire.OUTCOMES[status], False))
    same(fake.asked(wire.REPORT_RULE), [])
    check(not os.path.exists(witness), "it ran")


def test_what_nobody_allowed(lab):
    """permitted all the same: it runs, is reported, and it is told"""
    fake = OpenAgent(lab, YES)
    for number, (answer, words) in enumerate((
            (decision("denied", True, "shadow", "resource", limit="b",
                      server=7),
             ("Denied, but the rule only watches: permit=yes source=shadow ",
              " limit=b ")),
            (decision("failed", True, "policy", "timeout"),
             ("Failed: permit=yes source=policy ",)),
            (decision("failed", True, "local", "timeout"),
             ("Failed: permit=yes source=local ",)))):
        fake.answers = {**YES, wire.CHECK: answer}
        result = run(lab, fake, "r", "--", "sh", "-c", "echo out; exit 5",
                     expect=5)
        same((result.out, result.err.count("\n")), ("out\n", 1))
        check(result.err.startswith(words[0]), result)
        check(all(word in result.err for word in words), result)
        same(len(reports(fake)), number + 1)
    fake.answers[wire.CHECK] = decision("allowed", True, "empty")
    same(run(lab, fake, "r", "--", "true").err, "")


def test_no_agent(lab):
    """without an agent --on-failure permits or not, and nothing is reported"""
    path = os.path.join(lab.path, "none.sock")
    args = ("--socket", path, "run", "r", "--timeout", "100")
    result = lab.ctl(*args, "--", "sh", "-c", "exit 5", expect=5)
    check("reason=unavailable" in result.err, result)
    same(result.err.count("\n"), 1, "not a word on a report", result)
    same(lab.ctl(*args, "--on-failure", "open", "--", "echo", "x").out, "x\n")
    result = lab.ctl(*args, "--on-failure", "closed", "--", "echo", "x",
                     expect=FAILED)
    same(result.out, "")
    check(result.err.startswith("Failed: permit=no "), result)


def test_a_report_that_fails(lab):
    """one line, soon, and the exit status is the command's"""
    fake = OpenAgent(lab, YES)
    fake.answers = {wire.CHECK: decision(server=7),
                    wire.REPORT_RULE: reported("unauthorised", "not\x1bhere")}
    result = run(lab, fake, "r", "--", "sh", "-c", "exit 5", expect=5)
    same(result.err,
         "rlctl: run: no report: unauthorised: not?here\n")
    # Its default deadline is ten minutes: that is not waited for.
    def last_words(_payload):
        fake.leave()
        return YES[wire.CHECK]
    for answers in ({**YES, wire.REPORT_RULE: None},
                    {wire.CHECK: last_words}):
        fake.answers = answers
        result = run(lab, fake, "r", "--", "sh", "-c", "exit 5", expect=5)
        check(result.err.startswith("rlctl: run: no report: "), result)
        same(result.err.count("\n"), 1, result)
    same(len(reports(fake)), 2)


def test_what_it_passes(lab):
    """standard input, output and error, arguments, and a sea of options"""
    fake = OpenAgent(lab, YES)
    done = subprocess.run(
        [harness.CTL, "--socket", fake.path, "run", "r", "--", "sh", "-c",
         'cat; echo "$@" >&2', "sh", "--json", "--", "-x"],
        input=b"a\0b\n", stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=lab.env(), timeout=harness.PATIENCE, check=False)
    same((done.returncode, done.stdout, done.stderr),
         (0, b"a\0b\n", b"--json -- -x\n"))


def test_what_it_inherits(lab):
    """the command has the signals and descriptors that it had without rlctl"""
    fake = OpenAgent(lab, YES)
    command = ["sh", "-c", "grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status; "
               "ls /proc/self/fd"]

    for how in ("odd", "usual"):
        got, want = [subprocess.run(
            [sys.executable, "-c", DISPOSE, how] + argv, env=lab.env(),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, timeout=harness.PATIENCE,
            check=True).stdout.decode()
            for argv in ([harness.CTL, "--socket", fake.path, "run", "r",
                          "--"] + command, command)]
        same(got, want, how)
        check("SigIgn" in want and "0\n1\n2\n" in want, want)
    status = subprocess.run(
        [sys.executable, "-c", DISPOSE, "odd", harness.CTL, "--socket",
         fake.path, "run", "r", "--", "sh", "-c", "exit 5"],
        env=lab.env(), timeout=harness.PATIENCE, check=False).returncode
    same(status, 5, "without SIGCHLD")


def state(pid):
    """T: stopped."""
    with open("/proc/%d/stat" % pid, encoding="ascii") as f:
        return f.read().rsplit(")", 1)[1].split()[0]


class Listening:
    """A command that tells which signals reach it."""

    def __init__(self, lab, last, status=0):
        self.path = os.path.join(lab.path, lab.name("signals"))
        self.argv = [sys.executable, "-c", LISTENER, self.path, last,
                     str(status)]

    def heard(self, count):
        return poll("%d lines of %s" % (count, self.path), lambda: (
            lines(self.path) if len(lines(self.path)) >= count else None))


def test_signals_reach_the_command(lab):
    """what is sent to rlctl goes on, rlctl waits, and then it reports"""
    fake = OpenAgent(lab, YES)
    command = Listening(lab, "SIGTERM", 5)
    ctl = lab.spawn_ctl("--socket", fake.path, "run", "r", "--",
                        *command.argv)
    command.heard(1)
    want = ["runs"]
    for name in ("SIGHUP", "SIGINT", "SIGINT", "SIGQUIT", "SIGUSR1",
                 "SIGUSR2"):
        ctl.signal(getattr(signal, name))
        want.append(name)
        same(command.heard(len(want)), want)
        check(ctl.running(), name, "ended rlctl")
    same(reports(fake), [])
    ctl.signal(signal.SIGTERM)
    same((ctl.wait(), ctl.err()), (5, ""))
    same(lines(command.path), want + ["SIGTERM"])
    same(len(reports(fake)), 1)


def test_signals_end_the_command(lab):
    """a command that SIGTERM ends: 143, with its report"""
    fake = OpenAgent(lab, YES)
    command = ("sh", "-c", "echo $$; exec sleep 1000")
    ctl = lab.spawn_ctl("--socket", fake.path, "run", "r", "--", *command)
    ctl.line()
    ctl.signal(signal.SIGTERM)
    same((ctl.wait(), ctl.err()), (128 + signal.SIGTERM, ""))
    same(len(reports(fake)), 1)


def test_the_keys_of_a_terminal(lab):
    """^C and ^\\ reach the command once each: rlctl does not double them"""
    fake = OpenAgent(lab, YES)
    command = Listening(lab, "SIGUSR1", 6)
    master, slave = pty.openpty()

    ctl = subprocess.Popen(
        [sys.executable, "-c", SESSION, harness.CTL, "--socket", fake.path,
         "run", "r", "--"] + command.argv, stdin=slave, stdout=slave,
        stderr=slave, env=lab.env())
    os.close(slave)
    lab.closers.append(lambda: (ctl.kill(), ctl.wait(), os.close(master)))
    command.heard(1)
    for number, key in enumerate((b"\x03", b"\x03", b"\x1c"), 2):
        # rlctl gets it after the command has: no two of them become one.
        ctl.send_signal(signal.SIGSTOP)
        poll("rlctl to stop", lambda: state(ctl.pid) == "T")
        os.write(master, key)
        command.heard(number)
        ctl.send_signal(signal.SIGCONT)
    # Had rlctl passed one on, it would have come before this one.
    ctl.send_signal(signal.SIGUSR1)
    same(ctl.wait(harness.PATIENCE), 6)
    same(lines(command.path),
         ["runs", "SIGINT", "SIGINT", "SIGQUIT", "SIGUSR1"])
    same(len(reports(fake)), 1)


def test_interrupted_check(lab):
    """SIGINT or SIGTERM while it is checked: Cancelled, 3, and no command"""
    witness = os.path.join(lab.path, "witness")
    fake = OpenAgent(lab, {
        wire.CANCEL: decision("cancelled", False, "policy", "cancelled")})
    for number, name in enumerate(("SIGINT", "SIGTERM"), 1):
        ctl = lab.spawn_ctl("--socket", fake.path, "run", "r", "--", "touch",
                            witness)
        poll("the check", lambda n=number: len(fake.asked(wire.CHECK)) == n)
        ctl.signal(getattr(signal, name))
        same((ctl.wait(), ctl.out()), (CANCELLED, ""), ctl.err())
        check(ctl.err().startswith("Cancelled: permit=no "), ctl.err())
        same(len(fake.asked(wire.CANCEL)), number)
    check(not os.path.exists(witness), "it ran")
    same(reports(fake), [])


def test_interrupted_too_late(lab):
    """SIGINT that crosses a permit: the command does not begin"""
    witness = os.path.join(lab.path, "witness")
    # The decision was made before the cancel came.
    fake = OpenAgent(lab, {wire.CANCEL: decision(server=7),
                           wire.REPORT_RULE: reported()})
    ctl = lab.spawn_ctl("--socket", fake.path, "run", "r", "--", "touch",
                        witness)
    poll("the check", lambda: fake.asked(wire.CHECK))
    ctl.signal(signal.SIGINT)
    same((ctl.wait(), ctl.out(), ctl.err()),
         (CANCELLED, "",
          "rlctl: run: interrupted before the command began\n"))
    check(not os.path.exists(witness), "it ran")
    same(reports(fake), [])


def test_usage(lab):
    """64 and one line, before anybody is asked"""
    for args, words in (
            ((), "run: name a rule"),
            (("--", "true"), "run: name a rule"),
            (("r",), "run: name a command after --"),
            (("r", "--"), "run: name a command after --"),
            (("r", "true"), 'run: unexpected argument "true"; the command '
             "comes after --"),
            (("r", "true", "--", "true"), 'run: unexpected argument "true"; '
             "the command comes after --"),
            (("r", "--tokens", "0", "--", "true"),
             '--tokens: must be a number in 1..65535, not "0"'),
            (("r", "--timeout", "x", "--", "true"),
             '--timeout: must be a number in 1..4294967295, not "x"'),
            (("r", "--on-failure", "maybe", "--", "true"),
             '--on-failure: must be open or closed, not "maybe"'),
            (("r", "--detail", "--", "true"),
             "run: unrecognized option '--detail'")):
        result = lab.ctl("--socket", os.path.join(lab.path, "none"), "run",
                         *args, expect=USAGE)
        same((result.out, result.err), ("", "rlctl: %s\n" % words), args)
    result = lab.ctl("--socket", os.path.join(lab.path, "none"), "run",
                     "r" * 256, "--", "true", expect=FAILED)
    check("reason=validation" in result.err, result)


def test_with_an_agent(lab):
    """three servers get one sample of each run that was permitted"""
    key = lab.keygen("main")
    sandbox = lab.sandbox(key, zone="rl.test")
    agent = lab.agent(lab.document(
        {"main": {"key": {"file": key}, "policy": harness.POLICY,
                  "dns": {"name": sandbox.zone,
                          "nameservers": [sandbox.dns]}}},
        {"work": {"resources": [{"bucket": "work:{key}",
                                 "window_ms": 3600000, "limit": 2}],
                  "guards": [{"tracker": "work:{key}",
                              "below_ms": 100000}]}},
        {"work:{key}": {"ttl_ms": 60000}}))

    def samples():
        return [(e["server_id"], s["tracker"], s["ms"])
                for e in sandbox.events("report") for s in e["samples"]]
    agent.ctl("run", "work", "--key", "a", "--", "sleep", "0.2")
    first = poll("three samples", lambda: (
        samples() if len(samples()) >= 3 else None))
    same({server for server, _, _ in first}, set(sandbox.ids()))
    tracker, = {tracker for _, tracker, _ in first}
    check(all(ms >= 200 for _, _, ms in first), first)
    explained = agent.ctl("explain", "work", "--key", "a", "--json").json()
    same((explained["guards"][0]["name"], explained["guards"][0]["id"]),
         ("work:a", tracker))
    agent.ctl("run", "work", "--key", "a", "--", "no-such", expect=127)
    result = agent.ctl("run", "work", "--key", "a", "--", "echo", "x",
                       expect=DENIED)
    check("limit=work:a" in result.err and not result.out, result)
    agent.ctl("run", "work", "--key", "b", "--", "sh", "-c", "exit 5",
              expect=5)
    poll("three more", lambda: len(samples()) >= 6)
    same(len(samples()), 6)
    rule, = agent.ctl("rules", "--json").json()["rules"]
    same([rule["counters"][name] for name in
          ("checks", "allowed", "denied", "reports")], [4, 3, 1, 2])


if __name__ == "__main__":
    harness.run([value for name, value in list(globals().items())
                 if name.startswith("test_")])
