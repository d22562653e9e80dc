#!/usr/bin/env python3
"""
rlctl top: rates of what an agent counts, with everything that can come between
two documents; and its screen, on a terminal of the test's own that keeps to
the few sequences that are allowed.
"""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unicodedata

import fake_agent
import harness
import wire
from harness import CTL, check, poll, same

SERVERS, TOP = 0x42, 0x48
ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l"
LEAVE = "\x1b[?7h\x1b[?25h\x1b[?1049l"
COUNTERS = ("checks", "allowed", "denied", "failed", "cancelled",
            "would_deny")


class Terminal:
    """A pseudo terminal with a program on it, and what it shows."""

    def __init__(self, lab, argv, rows=24, columns=80):
        self.master, self.slave = pty.openpty()
        self.resize(rows, columns, tell=False)
        self.before = termios.tcgetattr(self.slave)
        self.raw = ""
        self.rest = b""
        self.child = subprocess.Popen(
            argv, stdin=self.slave, stdout=self.slave, stderr=self.slave,
            env=lab.env({"TERM": "xterm"}), preexec_fn=self.own)
        lab.closers.append(self.close)

    def own(self):
        """In the child: the terminal is that of its session."""
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def resize(self, rows, columns, tell=True):
        self.rows, self.columns = rows, columns
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ,
                    struct.pack("HHHH", rows, columns, 0, 0))
        if tell:
            self.child.send_signal(signal.SIGWINCH)

    def type(self, text):
        os.write(self.master, text.encode())

    def read(self):
        """Takes what has come; all of it so far."""
        while select.select([self.master], [], [], 0)[0]:
            self.rest += os.read(self.master, 65536)
        # A character may have come in part.
        for cut in range(4):
            end = len(self.rest) - cut
            try:
                self.raw += self.rest[:end].decode()
                self.rest = self.rest[end:]
                return self.raw
            except UnicodeDecodeError:
                pass
        raise harness.Failure("no UTF-8: %r" % self.rest)

    def screen(self):
        """The lines of the last whole screen; nothing else may have come."""
        raw = self.read().split(ENTER)[-1].split(LEAVE)[0]
        frames = raw.split("\x1b[H\x1b[K")
        # The last one may have come in part: who waits looks again.
        lines = []
        for line in frames[-1].split("\r\r\n"):
            for allowed in ("\x1b[K", "\x1b[J", "\x1b[1m", "\x1b[m"):
                line = line.replace(allowed, "")
            lines.append(line)
        return lines

    def shows(self, *texts):
        """Waits until the screen has these."""
        def there():
            check(self.child.poll() is None, "ended", self.child.returncode,
                  self.read())
            screen = "\n".join(self.screen())
            return all(text in screen for text in texts) and screen
        return poll("a screen with %s" % (texts,), there)

    def turns(self, fake):
        """Waits until it has drawn two screens."""
        asked = fake.asked()
        poll("two screens", lambda: self.read() and fake.asked() > asked + 2)

    def fits(self):
        """The screen keeps to its columns and rows, and to what is text."""
        lines = self.screen()
        check(len(lines) <= self.rows + 1, len(lines), lines)
        for line in lines:
            check(wide(line) <= self.columns, wide(line), line)
            harmless(line)

    def ended(self, status):
        """It ends so, and the terminal is as it was."""
        same(self.child.wait(harness.PATIENCE), status, self.read())
        raw = self.read()
        check(raw.startswith(ENTER), raw)
        check(raw.rstrip().endswith(LEAVE), raw)
        same(termios.tcgetattr(self.slave), self.before)

    def close(self):
        if self.child.poll() is None:
            self.child.kill()
            self.child.wait()
        os.close(self.master)
        os.close(self.slave)


def wide(text):
    """Columns of a text."""
    return sum(0 if unicodedata.combining(c) else
               2 if unicodedata.east_asian_width(c) in "WF" else 1
               for c in text)


def harmless(text):
    """No control, and nothing that hides or turns around, is in it."""
    for c in text:
        check(unicodedata.category(c) not in ("Cc", "Cf", "Zl", "Zp", "Cs"),
              "%x in %r" % (ord(c), text))


class Scripted:
    """An agent that counts what the test says."""

    def __init__(self, lab, rules=("r",), servers=("7",)):
        self.lab = lab
        self.began = time.monotonic()
        self.counters = dict.fromkeys(COUNTERS, 0)
        self.rules = {name: dict.fromkeys(COUNTERS, 0) for name in rules}
        self.servers = {ident: {} for ident in servers}
        self.more = {}
        self.keys = {"rules": []}
        self.limiters = {"limiters": [], "error_controls": [], "rules": []}
        answers = {
            wire.PING: lambda payload: (wire.PONG, payload),
            wire.STATUS: self.say(self.status),
            wire.RULES: self.say(self.rules_document),
            SERVERS: self.say(self.servers_document),
            wire.LIMITERS: self.say(lambda: self.limiters),
        }
        self.agent = fake_agent.OpenAgent(lab, answers, "agent.sock")
        self.control = fake_agent.OpenAgent(
            lab, {TOP: self.say(lambda: self.keys)}, "control.sock")
        self.socket = self.agent.path

    @staticmethod
    def say(document):
        return lambda payload: fake_agent.document(
            json.dumps(document(), ensure_ascii=False))

    def status(self):
        status = {
            "version": "9.9", "ready": True, "draining": False,
            "uptime_ms": int((time.monotonic() - self.began) * 1000),
            "generation": 1, "inflight": 3, "reload": {"error": None},
            "counters": dict(self.counters, source_shadow=self.counters[
                "would_deny"])}
        status.update(self.more)
        return status

    def rules_document(self):
        return {"rules": [
            {"name": name, "tenant": "t", "mode": "enforce",
             "counters": counters} for name, counters in self.rules.items()]}

    def servers_document(self):
        return {"servers": [dict(
            {"tenant": "t", "server_id": ident, "diagnosis": "ok",
             "addresses": ["127.0.0.1:9"], "suspected": False, "sent": 0,
             "answered": 0, "selected": 0, "missed_rounds": 0, "overdue": 0,
             "rtt_p50_us": 250, "rtt_p99_us": 12345}, **more)
            for ident, more in self.servers.items()], "tenants": []}

    def restart(self):
        self.began = time.monotonic()
        self.counters = dict.fromkeys(COUNTERS, 0)
        self.rules = {name: dict.fromkeys(COUNTERS, 0) for name in self.rules}

    def asked(self):
        """How many samples were taken whole."""
        return len(self.agent.asked(wire.LIMITERS))

    def top(self, *args):
        return self.lab.spawn_ctl("--socket", self.socket, "top", *args)

    def terminal(self, *args, **shape):
        return Terminal(self.lab, [CTL, "--socket", self.socket, "top",
                                   *args], **shape)


def lines_of(process):
    return [json.loads(line) for line in process.out().split("\n")[:-1]]


def next_line(process):
    """The next whole line of its JSON."""
    have = len(lines_of(process))
    return json.loads(process.line(have))


def total(lines, field, of=lambda line: line):
    return sum(of(line)[field] * line["interval_ms"] / 1000 for line in lines)


def close(got, want):
    check(abs(got - want) <= 0.01 * want + 0.01, got, "is not", want)


def test_rates_of_a_real_agent(lab):
    """All that happens is counted once, in one of the intervals."""
    key = lab.keygen("main")
    sandbox = lab.sandbox(key)
    servers = [{"id": str(s["server_id"]), "address": s["addresses"][0]}
               for s in sandbox.servers]
    agent = lab.agent(lab.document(
        {"main": {"key": {"file": key}, "servers": servers,
                  "policy": harness.POLICY}},
        rules={"shop": {"resources": [{"bucket": "s:{key}", "limit": 2,
                                       "window_ms": 600000}]},
               "idle": {"resources": [{"bucket": "i", "limit": 1}]},
               "watch": {"mode": "shadow", "resources": [
                   {"bucket": "w", "limit": 1, "window_ms": 600000}]}},
        limiters={"mail": {"permits_per_second": 1000}},
        metrics={"top_denied_keys": 5}))
    top = lab.spawn_ctl("--socket", agent.socket, "top", "--json",
                        "--interval", "100")
    next_line(top)
    for _ in range(7):
        agent.check("shop", "--key", "eu")
    for _ in range(3):
        agent.check("shop", "--key", "\x1b[2J")
    for _ in range(3):
        agent.check("watch")
    agent.ctl("acquire", "mail")
    begin = len(lines_of(top))
    poll("all of it", lambda: len(lines_of(top)) > begin + 1)
    lines = lines_of(top)
    same(top.stop(), -signal.SIGTERM, top.err())
    close(total(lines, "decisions_per_second"), 13)
    close(total(lines, "allowed_per_second"), 5)
    close(total(lines, "denied_per_second"), 8)
    close(total(lines, "failed_per_second"), 0)
    close(total(lines, "would_deny_per_second"), 2)

    def rule(name):
        return lambda line: [r for r in line["rules"] if r["name"] == name][0]
    close(total(lines, "checks_per_second", rule("shop")), 10)
    close(total(lines, "denied_per_second", rule("shop")), 6)
    close(total(lines, "checks_per_second", rule("idle")), 0)
    close(total(lines, "would_deny_per_second", rule("watch")), 2)
    close(total(lines, "granted_per_second", lambda l: l["limiters"][0]), 1)
    for line in lines:
        same((line["error"], line["restarted"], line["ready"]),
             (None, False, True))
        same([s["server_id"] for s in line["servers"]], sandbox.ids())
        shares = [s["selected_share"] for s in line["servers"]]
        check(shares == [None] * 3 or abs(sum(shares) - 1) < 1e-4, shares)
    same(lines[-1]["denied_keys"], [
        {"rule": "shop", "key": "eu", "denied": 5, "error": 0},
        {"rule": "shop", "key": "\x1b[2J", "denied": 1, "error": 0}])


def test_text_for_a_file(lab):
    """Without a terminal: whole lines, no sequences, so many times."""
    fake = Scripted(lab, rules=["rule-%03d" % i for i in range(60)])
    done = lab.ctl("--socket", fake.socket, "top", "-b", "--interval", "100",
                   "--count", "2")
    check("\x1b" not in done.out and "\r" not in done.out, done)
    same(len(re.findall("^rl-agent 9.9: ready, up 00:00:", done.out, re.M)), 2)
    same(len(re.findall("^rule-", done.out, re.M)), 120, done)
    check("0.25/12.3" in done.out, done)
    check("missed/s" in done.out and "127.0.0.1:9" in done.out, done)
    done = lab.ctl("--socket", fake.socket, "top", "--once", "--interval",
                   "100")
    same(done.out.count("rl-agent"), 1, done)
    same(len(done.out.split("\n")), 68, done)


# What of an entry is counted, and the rate that it makes.
SERVER_RATES = {"sent": "sent", "answered": "answered",
                "missed_rounds": "missed", "overdue": "late"}
LIMITER_RATES = {"granted": "granted", "waits": "waits", "refused": "refused"}
CONTROL_RATES = {"begins": "granted", "delays": "waits"}


def test_each_count_has_its_rate(lab):
    """Of a server, of limiters of each kind and of an error control."""
    fake = Scripted(lab)
    fake.servers = {"7": dict.fromkeys(SERVER_RATES, 0)}
    names = {"limiters": LIMITER_RATES, "error_controls": CONTROL_RATES,
             "rules": LIMITER_RATES}
    counters = {kind: dict.fromkeys(rates, 0)
                for kind, rates in names.items()}
    fake.limiters = {kind: [{"name": kind, "keys": 1, "counters": counts}]
                     for kind, counts in counters.items()}
    top = fake.top("--json", "--interval", "100")
    next_line(top)
    n = 0
    for counts in [fake.servers["7"]] + list(counters.values()):
        for name in counts:
            n += 1
            counts[name] = n * 10
    asked = fake.asked()
    poll("two samples", lambda: fake.asked() > asked + 2)
    have = len(lines_of(top))
    poll("their line", lambda: len(lines_of(top)) > have)
    lines = lines_of(top)
    for counted, rate in SERVER_RATES.items():
        close(total(lines, rate + "_per_second", lambda l: l["servers"][0]),
              fake.servers["7"][counted])
    for kind, counts in counters.items():
        for counted, rate in names[kind].items():
            close(total(lines, rate + "_per_second", lambda l, kind=kind: [
                x for x in l["limiters"] if x["name"] == kind][0]),
                  counts[counted])


def test_counts_that_begin_again(lab):
    """Of a rule that is another one; of an agent that is; and by its clock."""
    fake = Scripted(lab, rules=("one", "two"))
    fake.rules["one"]["checks"] = 1000
    top = fake.top("--json", "--interval", "200")
    line = next_line(top)
    same(line["rules"][0]["checks_per_second"], 0)
    fake.rules["one"]["checks"] = 30  # the rule went and came back
    fake.rules["two"]["checks"] = 50
    asked = fake.asked()
    poll("a sample", lambda: fake.asked() > asked + 1)
    lines = lines_of(top)
    by_name = {name: sum(r["checks_per_second"] * l["interval_ms"] / 1000
                         for l in lines for r in l["rules"]
                         if r["name"] == name) for name in ("one", "two")}
    close(by_name["one"], 30)
    close(by_name["two"], 50)
    # Its clock stands still or is slow: another one, wherever it stands.
    fake.began = time.monotonic() - 100
    asked = fake.asked()
    poll("a sample", lambda: fake.asked() > asked + 1)
    poll("its line", lambda: len(lines_of(top)) > len(lines) + 1)
    same([l for l in lines_of(top) if l["restarted"]], [])
    fake.restart()
    fake.rules["two"]["checks"] = 5000
    again = poll("another agent", lambda: [
        l for l in lines_of(top) if l["restarted"]])
    same(again[0]["interval_ms"], None)
    same(again[0]["decisions_per_second"], None)
    same(again[0]["rules"][0]["checks_per_second"], None)
    asked = fake.asked()
    poll("a sample", lambda: fake.asked() > asked + 1)
    fake.began += 0.15  # it started again, and has been up for long
    poll("yet another", lambda: len(
        [l for l in lines_of(top) if l["restarted"]]) == 2)
    top.stop()


def test_the_order_of_rules(lab):
    fake = Scripted(lab, rules=("a", "b", "c"))
    counts = {"a": (10, 1, 9), "b": (30, 2, 2), "c": (20, 3, 1)}
    for name, (checks, denied, failed) in counts.items():
        fake.rules[name].update(checks=checks, denied=denied, failed=failed)
    for order, want in (("checks", "bca"), ("denied", "cba"),
                        ("failed", "abc"), ("name", "abc")):
        line = lab.ctl("--socket", fake.socket, "top", "--once", "--json",
                       "--interval", "100", "--sort", order).json()
        same("".join(r["name"] for r in line["rules"]), want, order)
    fake.keys = {"rules": [
        {"rule": "a", "denied": 9, "keys": [
            {"key": "k1", "denied": 5, "error": 2},
            {"key": "k2", "denied": 1, "error": 0}]},
        {"rule": "b", "denied": 3, "keys": [
            {"key": "k3", "denied": 3, "error": 0}]}]}
    done = lab.ctl("--socket", fake.socket, "top", "--once", "--interval",
                   "100")
    same(re.findall("^ +[0-9].*k[0-9]$", done.out, re.M), [
        "        5        -2     55.6% a    k1",
        "        3              100.0% b    k3",
        "        1               11.1% a    k2"])


HOSTILE = ["\x1b[2J\x1b[H", "\x9b31m", "a\x00b", "\r\n\t\x08\x7f", "\u202eabc",
           "\u2066x\u2069", "\u200b\u200d\ufeff", "\u2028\u2029", "\x1b]0;t\x07",
           "e\u0301" + "\u0301" * 300, "\U000e0041", "\u65e5" * 85,
           "\u00e9" * 127, "\\x1b[0m", "\u0301first", "\ufe0f", "\u00e9" * 30]


def test_names_that_steer_nothing(lab):
    """Whoever chose rules, keys and messages: they are text, and one line."""
    fake = Scripted(lab, rules=[n for n in HOSTILE if "\x00" not in n],
                    servers=[n for n in HOSTILE if "\x00" not in n])
    fake.keys = {"rules": [{"rule": n, "denied": 1, "keys": [
        {"key": n, "denied": 1, "error": 0}]} for n in HOSTILE]}
    fake.limiters["limiters"] = [{"name": n} for n in HOSTILE]
    fake.more = {"version": "\x1b[5m", "reload": {"error": "\x1b[6m\nline"}}
    done = lab.ctl("--socket", fake.socket, "top", "--once", "--interval",
                   "100")
    for line in done.out.split("\n"):
        harmless(line)
    rows = re.findall("^.* 0.00(?: +-){4} +0$", done.out, re.M)
    same((len(rows), len({wide(row) for row in rows})), (16, 1), rows)
    check("e\u0301?" in done.out, "an accent stays")
    check(re.search("^\u00e9{30} ", done.out, re.M), "a name that fits is whole")
    check("\u65e5" * 20 in done.out, "wide characters stay")
    same(len(re.findall("\\?\\[2J\\?\\[H", done.out)), 5, done.out)
    json_line = lab.ctl("--socket", fake.socket, "top", "--once", "--json",
                        "--interval", "100")
    check(json_line.out.isascii(), json_line.out)
    same({k["key"] for k in json_line.json()["denied_keys"]}, set(HOSTILE))
    terminal = fake.terminal("--interval", "100", rows=100, columns=70)
    terminal.shows("decisions/s", "key", "\\x1b[0m")
    terminal.fits()
    for columns in (69, 41, 40, 39, 20, 3, 1):
        terminal.resize(100, columns)
        terminal.turns(fake)
        terminal.fits()
    terminal.type("q")
    terminal.ended(0)


def test_a_screen_of_any_size(lab):
    """Every list has a part of few rows, and says how much is left out."""
    fake = Scripted(lab, rules=["rule-%02d" % i for i in range(40)],
                    servers=[str(100 + i) for i in range(5)])
    fake.keys = {"rules": [{"rule": "rule-00", "denied": 30, "keys": [
        {"key": "key-%02d" % i, "denied": 1, "error": 0}
        for i in range(30)]}]}
    terminal = fake.terminal("--interval", "100", rows=24, columns=80)
    text = terminal.shows("in flight 3", "rule-00", "104", "key-00")
    terminal.fits()
    same(len(re.findall(r"^\.\.\. [0-9]+ more", text, re.M)), 2, text)
    shown = len(re.findall("^rule-", text, re.M))
    check("... %d more" % (40 - shown) in text, text)
    terminal.resize(200, 100)
    text = terminal.shows("rule-39", "key-29", "address")
    same(len(re.findall("more", text)), 0, text)
    terminal.fits()
    for rows in (30, 12, 9, 5, 2, 1):
        terminal.resize(rows, 60)
        terminal.turns(fake)
        terminal.shows("rl-agent 9.9")
        terminal.fits()
    terminal.type("xyzQ")
    terminal.ended(0)


def test_the_terminal_is_as_it_was(lab):
    """After q, Ctrl-C, each signal that ends it, and the last screen."""
    fake = Scripted(lab)
    for how, status in (("q", 0), ("\x03", 0), ("\x1c", -signal.SIGQUIT),
                        (signal.SIGTERM, -signal.SIGTERM),
                        (signal.SIGHUP, -signal.SIGHUP), (None, 0)):
        terminal = fake.terminal("--interval", "100",
                                 "--count", "2" if how is None else "0")
        if isinstance(how, str):
            terminal.shows("in flight 3")
            check(not termios.tcgetattr(terminal.slave)[3] & termios.ECHO)
            terminal.type(how)
        elif how:
            terminal.shows("in flight 3")
            terminal.child.send_signal(how)
        terminal.ended(status)


def test_a_terminal_that_takes_nothing(lab):
    """Who is stuck in a write ends all the same, and leaves the terminal."""
    fake = Scripted(lab, rules=["rule-%03d" % i for i in range(90)])
    for signo, status in ((signal.SIGINT, 0), (signal.SIGTERM,
                                               -signal.SIGTERM)):
        terminal = fake.terminal("--interval", "100", rows=200, columns=200)
        last = []

        def stuck():
            last.append(fake.asked())
            return len(last) > 60 and last[-1] == last[-60] >= 1
        poll("a full terminal", stuck)
        terminal.child.send_signal(signo)
        same(terminal.child.wait(harness.PATIENCE), status)
        check(terminal.read().endswith(LEAVE))
        same(termios.tcgetattr(terminal.slave), terminal.before)


def test_a_stop_and_going_on(lab):
    """Ctrl-Z gives the terminal back until it goes on."""
    fake = Scripted(lab)
    script = 'set -m; "$@"; stty -a; echo STOPPED; read line; fg; echo OVER'
    terminal = Terminal(lab, ["bash", "-c", script, "bash", CTL, "--socket",
                              fake.socket, "top", "--interval", "100"])
    terminal.shows("in flight 3")
    terminal.type("\x1a")
    poll("the shell", lambda: "STOPPED" in terminal.read())
    raw = terminal.read()
    check(LEAVE in raw.split("STOPPED")[0], raw)
    shown = raw.split(LEAVE)[1]
    check(" echo " in shown and " icanon " in shown, shown)
    terminal.type("go\n")
    poll("another screen", lambda: terminal.read().count(ENTER) == 2)
    poll("all of it", lambda: "in flight 3" in
         terminal.read().split(ENTER)[2])
    terminal.type("q")
    same(terminal.child.wait(harness.PATIENCE), 0, terminal.read())
    check("OVER" in terminal.read().split(LEAVE)[2], terminal.read())
    same(termios.tcgetattr(terminal.slave), terminal.before)


def real(lab):
    key = lab.keygen("main")
    sandbox = lab.sandbox(key, cluster=1)
    return lab.document({"main": {"key": {"file": key}, "servers": [
        {"id": str(s["server_id"]), "address": s["addresses"][0]}
        for s in sandbox.servers]}}, rules={"shop": {}})


def test_it_outlives_the_agent(lab):
    """It says that there is none, and later that there is another one."""
    document = real(lab)
    agent = lab.agent(document)
    terminal = Terminal(lab, [CTL, "--socket", agent.socket, "top",
                              "--interval", "100"])
    lines = lab.spawn_ctl("--socket", agent.socket, "top", "--json",
                          "--interval", "100")
    terminal.shows("rl-agent", "shop")
    next_line(lines)
    agent.kill()
    terminal.shows("no agent at", agent.socket[:40])
    gone = poll("its line", lambda: [
        l for l in lines_of(lines) if l["error"]])[0]
    same(list(gone), ["error"])
    again = lab.agent(document)
    again.check("shop")
    terminal.shows("rl-agent", "(it started again meanwhile)", "shop")
    terminal.fits()
    poll("its line", lambda: [l for l in lines_of(lines)
                              if l.get("restarted")])
    terminal.type("q")
    terminal.ended(0)
    lines.stop()


def test_without_the_control_socket(lab):
    """All but the keys is there, and the reason why they are not."""
    agent = lab.agent(real(lab))
    nowhere = os.path.join(lab.path, "nowhere.sock")
    done = lab.ctl("--socket", agent.socket, "--control", nowhere, "top",
                   "--once", "--interval", "100")
    check("no denied keys: " in done.out and "shop" in done.out, done)
    line = lab.ctl("--socket", agent.socket, "--control", nowhere, "top",
                   "--once", "--json", "--interval", "100").json()
    same((line["error"], line["denied_keys"]), (None, None))
    check(line["denied_keys_error"], line)
    # The application socket is no way around.
    line = lab.ctl("--socket", agent.socket, "--control", agent.socket, "top",
                   "--once", "--json", "--interval", "100").json()
    same(line["denied_keys"], None)
    check("only on the control socket" in line["denied_keys_error"], line)


def test_what_is_wrong_from_the_start(lab):
    """One line and no screen."""
    nowhere = os.path.join(lab.path, "nowhere.sock")
    done = lab.ctl("--socket", nowhere, "top", "--once", expect=1)
    check(done.err.startswith("rlctl: top: ") and done.out == "", done)
    for bad in (["--interval", "99"], ["--interval", "3600001"],
                ["--count", "-1"], ["--sort", "size"], ["more"],
                ["--nosuch"], ["--timeout", "0"]):
        done = lab.ctl("top", *bad, expect=harness.USAGE)
        check(done.err.startswith("rlctl: top: ") or
              done.err.startswith("rlctl: " + bad[0]), done)
    terminal = Terminal(lab, [CTL, "--socket", nowhere, "top"])
    same(terminal.child.wait(harness.PATIENCE), 1)
    check("\x1b" not in terminal.read(), terminal.read())


def test_documents_of_anything(lab):
    """Whatever an agent says, it is no crash."""
    fake = Scripted(lab)
    for what in ([], {"rules": 7}, {"rules": [1, None, [], "x", {}]},
                 {"rules": [{"name": 5, "counters": []}]},
                 {"servers": [{}, 5, {"addresses": "x"}]},
                 {"limiters": {}, "rules": [0], "error_controls": [{}]},
                 {"rules": [{"rule": 1, "keys": [{}, 1]}, {"keys": 2}, 3]}):
        text = json.dumps(what)
        for kind in (wire.STATUS, wire.RULES, SERVERS, wire.LIMITERS):
            whole = fake.agent.answers[kind]
            fake.agent.answers[kind] = fake_agent.document(text)
            status = 0 if isinstance(what, dict) else 1
            lab.ctl("--socket", fake.socket, "top", "--once", "--interval",
                    "100", expect=status)
            lab.ctl("--socket", fake.socket, "top", "--once", "--interval",
                    "100", "--json", expect=status)
            fake.agent.answers[kind] = whole
        fake.keys = what
        lab.ctl("--socket", fake.socket, "top", "--once", "--interval", "100")
        lab.ctl("--socket", fake.socket, "top", "--once", "--interval", "100",
                "--json")


if __name__ == "__main__":
    harness.run([
        test_rates_of_a_real_agent,
        test_text_for_a_file,
        test_each_count_has_its_rate,
        test_counts_that_begin_again,
        test_the_order_of_rules,
        test_names_that_steer_nothing,
        test_a_screen_of_any_size,
        test_the_terminal_is_as_it_was,
        test_a_terminal_that_takes_nothing,
        test_a_stop_and_going_on,
        test_it_outlives_the_agent,
        test_without_the_control_socket,
        test_what_is_wrong_from_the_start,
        test_documents_of_anything,
    ])
