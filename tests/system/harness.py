"""
What the system tests share: a laboratory of one temporary folder, processes
that are ended by their own pid, bounded waiting on states, rlctl, and TAP on
standard output. At the end of every test no child may be left, and no secret
of any key may stand in anything that was written (logs, answers, events).

The programs are those of the build folder that it runs in, or named by the
environment: RLA_AGENT, RLA_CTL, RLA_SANDBOX, RLA_SHIMCLIENT, RLA_EXAMPLE.
RLA_KEEP=1 keeps the folders.
"""

import base64
import ctypes
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

import peer

def program(variable, path):
    """A program of the build: told, or seen from the build folder."""
    return os.path.abspath(os.environ.get(variable, path))


AGENT = program("RLA_AGENT", "rl-agent")
CTL = program("RLA_CTL", "rlctl")
SANDBOX = program("RLA_SANDBOX", "rl-sandbox")
SHIMCLIENT = program("RLA_SHIMCLIENT", "tests/system/shimclient")
EXAMPLE = program("RLA_EXAMPLE", "client-shim/example")

# Generous: a wait ends when its state is there; this only ends a hang.
PATIENCE = 60
PAUSE = 0.01

ALLOWED, DENIED, FAILED, CANCELLED, USAGE = 0, 1, 2, 3, 64

# A schedule that a loaded machine keeps: H = 1.5 s, P(0) = 0.5 s.
POLICY = {"unit_ms": 500}
HORIZON = 1.5
PREFERENCE = 0.5
DEDUP_MS = 2000

# A schedule for silence that the test waits out: H = 300 ms.
SHORT = {"unit_ms": 100}


class Failure(AssertionError):
    pass


class Skip(Exception):
    """This machine cannot do it; the text says why."""


def check(condition, *context):
    if not condition:
        raise Failure(" ".join(str(c) for c in context) or "does not hold")


def find_program(name, require):
    """The path that RLA_NAME tells, or one in PATH or the sbin folders. Without
    any a Skip, or a Failure when the environment has the variable require."""
    variable = "RLA_" + name.upper().replace("-", "_")
    told = os.environ.get(variable)
    if told:
        check(os.access(told, os.X_OK), variable, "names no program:", told)
        return told
    found = shutil.which(name, path=os.pathsep.join(
        [os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"]))
    if found:
        return found
    if os.environ.get(require):
        raise Failure("no %s, and %s is set" % (name, require))
    raise Skip("no %s here" % name)


def same(got, want, *context):
    check(got == want, *context, "got %r, want %r" % (got, want))


def poll(what, state, timeout=PATIENCE):
    """Until state() is true; what it returned."""
    end = time.monotonic() + timeout
    while True:
        value = state()
        if value:
            return value
        check(time.monotonic() < end, "waited in vain for", what)
        time.sleep(PAUSE)


class Process:
    """A child with its output in files of the laboratory."""

    def __init__(self, lab, name, argv, env=None, stdin=None, fds=()):
        self.name = name
        self.stopped = False
        self.out_path = os.path.join(lab.path, name + ".out")
        self.err_path = os.path.join(lab.path, name + ".err")
        with open(self.out_path, "ab") as out, open(self.err_path, "ab") as err:
            self.child = subprocess.Popen(
                argv, stdin=stdin or subprocess.DEVNULL, stdout=out,
                stderr=err, env=lab.env(env), cwd=lab.path, pass_fds=fds)
        lab.processes.append(self)

    @property
    def pid(self):
        return self.child.pid

    def out(self):
        with open(self.out_path, encoding="utf-8") as f:
            return f.read()

    def err(self):
        with open(self.err_path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def running(self):
        return self.child.poll() is None

    def line(self, index=0):
        """A line of its standard output, as soon as it is whole."""
        def there():
            lines = self.out().split("\n")
            if len(lines) > index + 1:
                return lines[index]
            check(self.running(), self.name, "ended with",
                  self.child.returncode, self.err())
            return None
        return poll("line %d of %s" % (index, self.name), there)

    def wait(self, timeout=PATIENCE):
        try:
            return self.child.wait(timeout)
        except subprocess.TimeoutExpired:
            raise Failure("%s does not end" % self.name) from None

    def signal(self, number):
        if number in (signal.SIGSTOP, signal.SIGCONT):
            self.stopped = number == signal.SIGSTOP
        self.child.send_signal(number)

    def stop(self):
        """Ends it as a supervisor would; its exit status."""
        if self.running():
            # Only then: SIGCONT takes back any SIGSTOP that is pending, that
            # of a leak checker's own, too, which attaches at the very end.
            if self.stopped:
                self.signal(signal.SIGCONT)
            self.signal(signal.SIGTERM)
        return self.wait()

    def kill(self):
        if self.running():
            self.child.kill()
        return self.wait()


class Sandbox(Process):
    def __init__(self, lab, name, argv):
        super().__init__(lab, name, argv, stdin=subprocess.PIPE)
        self.first = json.loads(self.line())
        self.dns = self.first.get("dns")
        self.zone = self.first.get("zone")
        self.servers = self.first["servers"]
        self.answers = 0
        self.events_path = os.path.join(lab.path, name + ".events")

    def ids(self):
        """The server ids, oldest first, as decimal strings."""
        return [str(s["server_id"]) for s in self.servers]

    def command(self, text):
        """A line to its standard input; the JSON line that answers it."""
        self.child.stdin.write((text + "\n").encode())
        self.child.stdin.flush()
        self.answers += 1
        answer = json.loads(self.line(self.answers))
        check(answer["ok"], self.name, text, answer)
        return answer

    def counters(self):
        """Per server, by name."""
        return self.command("counters")["counters"]

    def events(self, event=None):
        if not os.path.exists(self.events_path):
            return []
        with open(self.events_path, encoding="utf-8") as f:
            lines = f.read().split("\n")[:-1]
        found = [json.loads(line) for line in lines]
        return [e for e in found if event is None or e.get("event") == event]


# A line of the agent's log, as rl-agent(8) draws it.
LOG_VALUE = r'(?:[^\s"\\=]+|"(?:[^"\\\x00-\x1f\x7f]|\\["\\]|\\x[0-9a-f]{2})*")'
LOG_LINE = re.compile(
    r"(?:rl-agent: |<[3467]>)(error|warning|info|debug): ([a-z-]+)"
    r"((?: [a-z_]+=%s)+)" % LOG_VALUE)
LOG_FIELD = re.compile(r" ([a-z_]+)=(%s)" % LOG_VALUE)
LOG_PRIORITY = {"error": "<3>", "warning": "<4>", "info": "<6>",
                "debug": "<7>"}


def log_value(text):
    """What was in a field; bytes that are not UTF-8 as surrogates."""
    if not text.startswith('"'):
        return text
    raw = re.sub(rb'\\(?:x([0-9a-f]{2})|(.))', lambda m: m[2] or
                 bytes([int(m[1], 16)]), text[1:-1].encode())
    return raw.decode("utf-8", "surrogateescape")


def log_line(line):
    """(level, event, fields) of a line of the log; None when it is none."""
    match = LOG_LINE.fullmatch(line)
    if match is None:
        return None
    level, event, rest = match.groups()
    if line.startswith("<"):
        same(line[:3], LOG_PRIORITY[level], line)
    fields = LOG_FIELD.findall(rest)
    same(len({name for name, _ in fields}), len(fields), line)
    return level, event, {name: log_value(text) for name, text in fields}


class Result:
    """What a run of rlctl gave."""

    def __init__(self, argv, status, out, err):
        self.argv, self.status, self.out, self.err = argv, status, out, err

    def json(self):
        try:
            return json.loads(self.out)
        except ValueError:
            raise Failure("no JSON: %r" % self) from None

    def __repr__(self):
        return "%s: exit %s, %r, %r" % (
            " ".join(self.argv), self.status, self.out, self.err)


class Agent(Process):
    def __init__(self, lab, name, argv, sock, env=None, fds=()):
        super().__init__(lab, name, argv, env, fds=fds)
        self.lab, self.socket = lab, sock

    def ctl(self, *args, expect=0, **options):
        return self.lab.ctl("--socket", self.socket, *args, expect=expect,
                            **options)

    def ready(self):
        def is_ready():
            check(self.running(), self.name, "ended with",
                  self.child.returncode, self.err())
            return self.ctl("wait", "--timeout", "1000",
                            expect=None).status == 0
        poll("%s to be ready" % self.name, is_ready)
        return self

    def check(self, *args, expect=None, **options):
        """rlctl check --json; the decision, whose outcome fits the exit."""
        result = self.ctl("check", *args, "--json", expect=expect, **options)
        decision = result.json()
        check_decision(decision)
        if "--permit" in args:
            same(result.status, 0 if decision["permit"] else 1, result)
        else:
            same(result.status, {"allowed": ALLOWED, "denied": DENIED,
                                 "failed": FAILED,
                                 "cancelled": CANCELLED}[decision["outcome"]],
                 result)
        return decision

    def status(self):
        return self.ctl("status", "--json").json()

    def tenant(self, name):
        """One tenant's part of the status."""
        for tenant in self.status()["tenants"]:
            if tenant["name"] == name:
                return tenant
        raise Failure("no tenant %s in the status" % name)

    def counters(self, tenant=None):
        status = self.tenant(tenant) if tenant else self.status()
        return status["counters"]

    def inflight(self):
        return self.status()["inflight"]

    def events(self, event=None):
        """Of its log: (level, event, fields)."""
        read = [log_line(line) for line in self.err().split("\n")]
        return [e for e in read if e and event in (None, e[1])]


OUTCOMES = ("allowed", "denied", "failed", "cancelled")
SOURCES = ("server", "empty", "policy", "local", "shadow")
REASONS = ("ok", "resource", "guard", "resource+guard", "validation",
           "unknown-rule", "unauthorised", "discovery", "transport",
           "timeout", "overloaded", "draining", "interrupted", "unavailable",
           "cancelled")


def check_decision(d):
    """The fields that every decision has, and what ties them together."""
    for field in ("outcome", "permit", "source", "reason", "limit",
                  "retry_after_ms", "server_id", "round", "elapsed_us"):
        check(field in d, "no", field, "in", d)
    check(d["outcome"] in OUTCOMES, d)
    check(d["source"] in SOURCES, d)
    check(d["reason"] in REASONS, d)
    check(isinstance(d["permit"], bool), d)
    check(isinstance(d["elapsed_us"], int), d)
    if d["outcome"] == "allowed":
        check(d["permit"] and d["reason"] == "ok", d)
        check(d["source"] in ("server", "empty"), d)
    elif d["outcome"] == "denied":
        check(d["reason"] in ("resource", "guard", "resource+guard"), d)
        check(d["limit"], d)
        check(d["permit"] == (d["source"] == "shadow"), d)
    elif d["outcome"] == "cancelled":
        check(not d["permit"] and d["reason"] == "cancelled", d)
    else:
        check(d["source"] in ("policy", "local", "shadow"), d)
        check(d["permit"] or d["source"] != "shadow", d)
        if d["reason"] in ("validation", "unknown-rule", "unauthorised"):
            check(not d["permit"], d)
    if d["outcome"] in ("allowed", "denied") and d["source"] != "empty":
        check(re.fullmatch("[0-9]+", d["server_id"]), d)
        check(isinstance(d["round"], int), d)
    else:
        same((d["server_id"], d["round"]), (None, None), d)
    if d["outcome"] != "denied":
        same(d["limit"], None, d)
        refused = (d["source"], d["permit"]) in (("local", False),
                                                 ("shadow", True))
        check(d["retry_after_ms"] is None or refused, d)


class Lab:
    """One test's folder, keys and processes."""

    def __init__(self, name):
        self.path = tempfile.mkdtemp(prefix="rla-%s-" % name[:20])
        self.processes = []
        self.closers = []
        self.secrets = {}  # description to list of texts
        self.count = 0

    # Keys.

    def know(self, path):
        """Remembers what of a key file may be seen nowhere."""
        with open(path, encoding="ascii") as f:
            text = f.read().strip()
        key = peer.Key.parse(text)
        if key.secret:
            data = text[text.rindex("1") + 1:]
            # Bech32 characters that hold nothing but the secret.
            start = (9 if key.fmt == 1 else 8) * 8 // 5 + 1
            self.secrets[path] = [
                data[start:start + 50], data[start:start + 50].upper(),
                key.secret.hex(), key.secret.hex().upper(),
                base64.b64encode(key.secret).decode()[:40]]
        return key

    def keygen(self, name, auth="aes", key_id=7, fmt=1, dedup_ms=DEDUP_MS):
        """A key made by rl-sandbox; the path of its file."""
        path = os.path.join(self.path, name + ".key")
        argv = [SANDBOX, "keygen", "--auth", auth, "--key-id", str(key_id),
                "--format", str(fmt), "--dedup-max", str(dedup_ms)]
        done = subprocess.run(argv, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env=self.env(),
                              timeout=PATIENCE, check=False)
        same(done.returncode, 0, argv, done.stderr)
        return self.keyfile(name, done.stdout.decode().strip(), path)

    def keyfile(self, name, text, path=None):
        path = path or os.path.join(self.path, name + ".key")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w",
                  encoding="ascii") as f:
            f.write(text + "\n")
        self.know(path)
        return path

    # Processes.

    def env(self, more=None):
        env = {k: v for k, v in os.environ.items()
               if not k.startswith(("RATELIMITLY_", "RL_AGENT_", "LISTEN_",
                                    "WATCHDOG_", "NOTIFY_"))}
        env.update(more or {})
        return env

    def name(self, kind):
        self.count += 1
        return "%s%d" % (kind, self.count)

    def sandbox(self, keys, *args, cluster=3, listen="127.0.0.1:0", zone=None):
        """rl-sandbox; with zone it serves DNS for it too."""
        name = self.name("sandbox")
        argv = [SANDBOX]
        for key in [keys] if isinstance(keys, str) else keys:
            argv += ["--key-file", key]
        argv += ["--stdin", "--listen", listen, "--cluster", str(cluster),
                 "--events",
                 os.path.join(self.path, name + ".events")]
        if zone:
            argv += ["--dns", "127.0.0.1:0", "--zone", zone]
        return Sandbox(self, name, argv + list(args))

    def config(self, document, name="agent.json"):
        path = os.path.join(self.path, name)
        with open(path, "w", encoding="utf-8") as f:
            json.dump(document, f, indent=1)
        return path

    def socket_path(self, name="agent"):
        return os.path.join(self.path, name, "agent.sock")

    def document(self, tenants, rules=None, trackers=None, listeners=None,
                 **more):
        """A configuration with one listener in a folder of its own."""
        document = {
            "tenants": tenants, "rules": rules or {},
            "trackers": trackers or {},
            "listeners": listeners or {
                "main": {"path": self.socket_path(), "mode": "0600"}},
            "log": {"level": "debug"}}
        document.update(more)
        return document

    def agent(self, document, ready=True):
        """rl-agent on a configuration (a document or a path)."""
        if isinstance(document, dict):
            path = self.config(document, self.name("config") + ".json")
        else:
            path = document
            with open(path, encoding="utf-8") as f:
                document = json.load(f)
        sock = next(iter(document["listeners"].values()))["path"]
        agent = Agent(self, self.name("agent"), [AGENT, "-c", path], sock)
        return agent.ready() if ready else agent

    def ctl(self, *args, expect=0, env=None, timeout=PATIENCE):
        """rlctl; its output joins what is searched for secrets."""
        argv = [CTL] + list(args)
        try:
            done = subprocess.run(
                argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, env=self.env(env), timeout=timeout,
                cwd=self.path, check=False)
        except subprocess.TimeoutExpired:
            raise Failure("%s does not end" % " ".join(argv)) from None
        result = Result(argv, done.returncode, done.stdout.decode(),
                        done.stderr.decode())
        with open(os.path.join(self.path, "rlctl.log"), "a",
                  encoding="utf-8") as f:
            f.write("%r\n" % result)
        if expect is not None:
            same(result.status, expect, result)
        if result.status == USAGE:
            same(len(result.err.strip().split("\n")), 1, result)
        return result

    def spawn_ctl(self, *args, env=None):
        """rlctl that goes on meanwhile."""
        return Process(self, self.name("rlctl"), [CTL] + list(args), env)

    def shimclient(self, *args, env=None):
        """The client on the shared library; its JSON lines."""
        client = Process(self, self.name("shimclient"),
                         [SHIMCLIENT] + list(args), env)
        same(client.wait(), 0, "shimclient", args, client.out(), client.err())
        return [json.loads(line) for line in client.out().splitlines()]

    # The end.

    def close(self):
        trouble = []
        for process in reversed(self.processes):
            try:
                if process.running():
                    process.stop()
            except Failure as failure:
                trouble.append(str(failure))
                process.kill()
            if process.child.stdin:
                process.child.stdin.close()
        for closer in reversed(self.closers):
            closer()
        trouble += leftover_children()
        trouble += self.sanitizer_reports()
        trouble += self.seen_secrets()
        trouble += self.unreadable_lines()
        return trouble

    def files(self):
        for folder, _, names in os.walk(self.path):
            for name in names:
                path = os.path.join(folder, name)
                if os.path.isfile(path) and path not in self.secrets and \
                        not path.endswith(".key"):
                    with open(path, "rb") as f:
                        yield path, f.read()

    def seen_secrets(self):
        found = []
        for path, content in self.files():
            for key, texts in self.secrets.items():
                if any(text.encode() in content for text in texts):
                    found.append("the secret of %s stands in %s" % (key, path))
        return found

    def unreadable_lines(self):
        """Lines of a log that cannot be read back."""
        begins = re.compile(r"(?:rl-agent: |<\d>)(?:error|warning|info|debug):")
        return ["a line of %s cannot be read back: %r" % (path, line)
                for path, content in self.files() if path.endswith(".err")
                for line in content.decode(errors="replace").split("\n")
                if begins.match(line) and log_line(line) is None]

    def sanitizer_reports(self):
        return ["a sanitizer's report in %s:\n%s" % (
            path, content.decode(errors="replace")[:4000])
            for path, content in self.files()
            if b"Sanitizer" in content or b"runtime error:" in content]

    def tail(self):
        """The ends of all logs, for a failed test."""
        lines = []
        for path, content in sorted(self.files()):
            if path.endswith((".err", ".out", ".log")) and content:
                lines.append("--- " + path)
                lines += [line[:600] for line in
                          content.decode(errors="replace").split("\n")[-25:]]
        return lines

    def remove(self):
        shutil.rmtree(self.path)


def leftover_children():
    """Children and adopted grandchildren that are still there; ends them."""
    left = []
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return left
        if pid:
            continue  # it had ended, and nobody had asked
        task = "/proc/%d/task/%d/children" % (os.getpid(), os.getpid())
        with open(task, encoding="ascii") as f:
            pids = [int(p) for p in f.read().split()]
        for pid in pids:
            left.append("child %d was left" % pid)
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def adopt():
    """Orphans of our children become ours, so that none goes unseen."""
    pr_set_child_subreaper = 36
    ctypes.CDLL(None).prctl(pr_set_child_subreaper, 1, 0, 0, 0)


def hear():
    """Whoever started us in the background, or under nohup, may have had these
    ignored; what we start would ignore them, too."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for signo in (signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(signo, signal.SIG_DFL)


def say(lines):
    for line in lines:
        for part in str(line).split("\n"):
            print("#", part)
    sys.stdout.flush()


def run(tests):
    """Runs tests, functions of one Lab, as a TAP program. Arguments choose."""
    chosen = [t for t in tests if len(sys.argv) < 2 or t.__name__ in
              sys.argv[1:]]
    keep = os.environ.get("RLA_KEEP")
    adopt()
    hear()
    print("1..%d" % len(chosen))
    bad = 0
    for number, test in enumerate(chosen, 1):
        begin = time.monotonic()
        lab = Lab(test.__name__)
        trouble = []
        skipped = ""
        try:
            test(lab)
        except Skip as skip:
            skipped = " # SKIP %s" % skip
        except Exception:  # pylint: disable=broad-except
            trouble = [traceback.format_exc()]
        trouble += lab.close()
        title = (test.__doc__ or test.__name__).strip().split("\n")[0]
        if trouble:
            bad += 1
            say(trouble + lab.tail())
        print("%s %d - %s: %s%s" % ("not ok" if trouble else "ok", number,
                                    test.__name__, title, skipped))
        say(["%.2f s" % (time.monotonic() - begin)])
        if keep:
            say([lab.path])
        else:
            lab.remove()
    sys.exit(1 if bad else 0)


def ipv6_works():
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as s:
            s.bind(("::1", 0))
        return True
    except OSError:
        return False
