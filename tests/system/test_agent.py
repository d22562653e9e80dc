#!/usr/bin/env python3
"""
The life of the agent, and every command of rlctl: starting without a file,
-t, waiting, quitting, draining, restarts between and during calls, refusals,
keys, exit codes and fields.
"""

import json
import os
import signal
import socket
import stat
import subprocess

import harness
import peer
from harness import ALLOWED, FAILED, USAGE, check, poll, same

ZONE = "sandbox.example.com"
RULES = {
    "demo": {"tenant": "main",
             "resources": [{"bucket": "demo:{key}", "window_ms": 3600000,
                            "limit": 1000}]},
    "pair": {"tenant": "main",
             "resources": [{"bucket": "pair", "window_ms": 3600000,
                            "limit": 100000, "tokens": 2}]},
}
TRACKERS = {name: {"ttl_ms": 60000, "max_samples": 100, "buffer_size": 32,
                   "min_samples": 3} for name in ("backend", "backend:{key}")}
# H = 180 s, for what has to be in flight while something else happens.
PATIENT = {"unit_ms": 60000}


def document(lab, key, sandbox, policy=None, **more):
    dns = {"name": ZONE, "nameservers": [sandbox.dns]}
    tenant = {"key": {"file": key}, "policy": policy or harness.POLICY,
              "dns": dns}
    return lab.document({"main": tenant}, RULES, TRACKERS, **more)


def bring_up(lab, policy=None, cluster=1, **more):
    # An unversioned key without a limit: any policy fits.
    key = lab.keygen("main", fmt=0, dedup_ms=0)
    sandbox = lab.sandbox(key, cluster=cluster, zone=ZONE)
    text = document(lab, key, sandbox, policy, **more)
    return sandbox, text, lab.agent(text)


def listener(lab, name="main", **more):
    return {name: dict({"path": lab.socket_path(), "mode": "0600"}, **more)}


def delayed_check(lab, agent, sandbox, *args):
    """A check that is in flight for as long as nobody ends it."""
    for n in range(len(sandbox.ids())):
        sandbox.command("delay %d 60000" % n)
    ctl = lab.spawn_ctl("--socket", agent.socket, "check", "demo", "--key",
                        "a", "--json", *args)
    poll("the check in flight", lambda: agent.inflight() == 1)
    return ctl


class Calls(harness.Process):
    """One client of the shim in a process of its own."""

    def __init__(self, lab, agent_socket, timeout_ms=60000, failure="open"):
        super().__init__(lab, lab.name("calls"), [
            harness.SHIMCLIENT, "calls", agent_socket, str(timeout_ms),
            failure], stdin=subprocess.PIPE)
        self.count = 0

    def begin(self, text):
        self.child.stdin.write((text + "\n").encode())
        self.child.stdin.flush()

    def end(self):
        self.count += 1
        return json.loads(self.line(self.count - 1))

    def call(self, text):
        self.begin(text)
        return self.end()

    def finish(self):
        self.child.stdin.close()
        same(self.wait(), 0, self.err())


# Starting.

def test_environment(lab):
    """without a file: one tenant from the environment, ad-hoc requests"""
    if os.path.exists("/etc/rl-agent/rl-agent.json"):
        raise harness.Skip("this machine has a configuration")
    key = lab.keygen("main")
    sandbox = lab.sandbox(key, zone=ZONE)
    with open(key, encoding="ascii") as f:
        text = f.read().strip()
    sock = lab.socket_path()
    env = {"RATELIMITLY_AUTH_KEY": text, "RATELIMITLY_TENANT": ZONE,
           "RATELIMITLY_NAMESERVERS": "%s, %s" % (sandbox.dns, sandbox.dns),
           "RL_AGENT_SOCKET": sock}
    done = subprocess.run([harness.AGENT, "-t"], env=lab.env(env),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=harness.PATIENCE, check=False)
    same((done.returncode, done.stdout), (0, b"environment: ok\n"),
         done.stderr)
    agent = harness.Agent(lab, "agent", [harness.AGENT], sock, env).ready()
    adhoc = ("check", "--bucket", "b", "--window", "1000", "--limit", "1000")
    # The default horizon is 60 ms, which a busy machine may miss.
    poll("Allowed", lambda: agent.ctl(*adhoc, expect=None).status == ALLOWED)
    # rlctl finds the same socket by the same variable.
    lab.ctl("wait", env={"RL_AGENT_SOCKET": sock})
    same(lab.ctl("status", "--json", env={"RL_AGENT_SOCKET": sock})
         .json()["config"], "environment")
    d = agent.check("demo")
    same((d["reason"], d["permit"]), ("unknown-rule", False))
    # A wrong variable is an error of the configuration, and named.
    for name, value in (("RATELIMITLY_AUTH_KEY", text[:-1]),
                        ("RATELIMITLY_NAMESERVERS", "resolver.example")):
        done = subprocess.run(
            [harness.AGENT, "-t"], env=lab.env(dict(env, **{name: value})),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            timeout=harness.PATIENCE, check=False)
        with open(os.path.join(lab.path, "wrong.log"), "ab") as f:
            f.write(done.stderr)
        same(done.returncode, 78, name, done.stderr)
        check(name.encode() in done.stderr, name, done.stderr)


def agent_test(lab, path, *args):
    """rl-agent -t: its exit status and its one line."""
    done = subprocess.run([harness.AGENT, "-t", "-c", path] + list(args),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=lab.env(), timeout=harness.PATIENCE,
                          check=False)
    with open(os.path.join(lab.path, "t.log"), "ab") as f:
        f.write(done.stdout + done.stderr)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def edited(document_, path, value):
    """A copy with a value at a path of keys; None deletes."""
    copy = json.loads(json.dumps(document_))
    at = copy
    for step in path[:-1]:
        at = at[step]
    if value is None:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return copy


def test_config_test(lab):
    """-t: 0 and "ok", or 78 and one line that names file and place"""
    key = lab.keygen("main")
    good = lab.document(
        {"main": {"key": {"file": key}, "policy": harness.POLICY}}, RULES,
        TRACKERS)
    path = lab.config(good, "good.json")
    same(agent_test(lab, path), (0, "%s: ok\n" % path, ""))
    forced = lab.config(edited(good, ("tenants", "main", "profile"), "v1"),
                        "forced.json")
    same(agent_test(lab, forced), (
        0, "%s: ok\n" % forced,
        "rl-agent: warning: config text=\"%s: tenants.main.profile: v1, but "
        "the key's format goes with v2: guards and reports will be ignored if "
        "that is wrong\"\n" % forced))
    empty = os.path.join(lab.path, "empty.json")
    with open(empty, "w", encoding="ascii") as f:
        f.write("\n")
    same(agent_test(lab, empty), (78, "", "rl-agent: %s: is empty\n" % empty))
    secret = lab.keyfile(
        "management", peer.bech32_encode("rl-aes", b"\1" * 60))
    with open(secret, "w", encoding="ascii") as f:
        f.write(peer.bech32_encode("rl-secret", b"\1" * 60) + "\n")
    lab.secrets[secret] = [peer.bech32_encode("rl-secret", b"\1" * 60)[20:60]]
    tenant = ("tenants", "main")
    cases = (
        (tenant + ("policy", "unit_ms"), 1000, "tenants.main.policy"),
        (tenant + ("policy", "unit_ms"), 0, "tenants.main.policy.unit_ms"),
        (tenant + ("policy", "unit"), 5, "tenants.main.policy.unit"),
        (tenant + ("policy",), {"preference": {"fixed": 2}},
         "tenants.main.policy"),
        (tenant + ("key",), {"file": "/nonexistent"}, "tenants.main.key"),
        (tenant + ("key",), {"file": secret}, "tenants.main.key"),
        (tenant + ("key",), {"env": "RLA_NOT_SET"}, "tenants.main.key"),
        (tenant + ("key",), None, "tenants.main"),
        (tenant + ("servers",), [{"id": "x", "address": "127.0.0.1:1"}],
         "tenants.main.servers[0].id"),
        (tenant + ("servers",), [{"id": "1", "address": "127.0.0.1"}],
         "tenants.main.servers[0].address"),
        (("rules", "demo", "tenant"), "nobody", "rules.demo.tenant"),
        (("rules", "demo", "resources", 0, "limit"), 0,
         "rules.demo.resources[0].limit"),
        (("rules", "demo", "resources", 0, "limit"), 5000000000,
         "rules.demo.resources[0].limit"),
        (("rules", "demo", "resources", 0, "tokens"), 65536,
         "rules.demo.resources[0].tokens"),
        (("rules", "demo", "guards"), [{"tracker": "none", "below_ms": 1}],
         "rules.demo.guards[0].tracker"),
        (("rules", "demo", "on_failure"), "maybe", "rules.demo.on_failure"),
        (("listeners", "main", "mode"), "0999", "listeners.main.mode"),
        (("surprise",), 1, "surprise"),
    )
    for number, (place, value, named) in enumerate(cases):
        path = lab.config(edited(good, place, value), "bad%d.json" % number)
        status, out, err = agent_test(lab, path)
        same((status, out), (78, ""), named, err)
        same(err.count("\n"), 1, err)
        check(path in err and named in err, named, "in", err)
    with open(path, "w", encoding="ascii") as f:
        f.write('{"tenants": {},\n "tenants": {}}')
    status, _, err = agent_test(lab, path)
    check(status == 78 and path + ":2:" in err, err)
    same(agent_test(lab, "/nonexistent.json")[0], 78)
    # The same words when it would really start.
    agent = harness.Agent(lab, "bad", [harness.AGENT, "-c", path], "")
    same(agent.wait(), 78)
    check(agent.err().startswith("rl-agent: " + path), agent.err())
    same(agent_test(lab, path, "surplus")[0], 64)


def test_version(lab):
    """-V and --help say something and end well"""
    for argv in ([harness.AGENT, "-V"], [harness.AGENT, "-h"],
                 [harness.CTL, "-V"], [harness.CTL, "--help"],
                 [harness.SANDBOX, "-V"], [harness.SANDBOX, "--help"]):
        done = subprocess.run(argv, stdout=subprocess.PIPE, env=lab.env(),
                              timeout=harness.PATIENCE, check=False)
        same(done.returncode, 0, argv)
        check(done.stdout, argv)


def test_second_agent(lab):
    """a second agent on the same socket does not start, the first goes on"""
    _, text, agent = bring_up(lab)
    path = lab.config(text, "second.json")
    second = harness.Agent(lab, "second", [harness.AGENT, "-c", path],
                           agent.socket)
    same(second.wait(), 1, second.err())
    check(agent.socket in second.err(), second.err())
    same(agent.check("demo", "--key", "a")["outcome"], "allowed")


# Waiting, draining, quitting.

def test_wait(lab):
    """wait: 0 once a decision is possible, else 1 after its time"""
    key = lab.keygen("main")
    dns = peer.Dns()
    lab.closers.append(dns.close)
    server = peer.Server(lab.know(key), 5)
    lab.closers.append(server.close)
    agent = lab.agent(lab.document({"main": {
        "key": {"file": key}, "policy": harness.POLICY,
        "dns": {"name": ZONE, "nameservers": [dns.endpoint()],
                "forced_min_ms": 100}}}, RULES, TRACKERS), ready=False)
    poll("an agent that answers",
         lambda: agent.ctl("status", expect=None).status == 0)
    result = agent.ctl("wait", "--timeout", "100", expect=1)
    check(result.err.startswith("rlctl: wait"), result)
    # Nobody is known: that is told at once, not after H.
    d = agent.check("demo", "--key", "a")
    same((d["outcome"], d["reason"], d["source"], d["permit"]),
         ("failed", "discovery", "policy", True))
    check(d["elapsed_us"] < 1e6 * harness.PREFERENCE, d)
    status = agent.status()
    same((status["ready"], status["tenants"][0]["servers"]), (False, 0))
    same(agent.ctl("servers", "--json").json()["servers"], [])
    result = agent.ctl("report", "backend", "5", expect=1)
    waiting = lab.spawn_ctl("--socket", agent.socket, "wait", "--timeout",
                            "60000")
    dns.serve(ZONE, [server])
    same(waiting.wait(), 0, waiting.err())
    check(agent.status()["ready"], "ready")
    # And without an agent.
    agent.stop()
    lab.ctl("--socket", agent.socket, "wait", "--timeout", "100", expect=1)


def test_drain(lab):
    """SIGTERM: what is in flight is decided, new callers are turned away"""
    sandbox, _, agent = bring_up(lab, harness.POLICY)
    sandbox.command("delay 0 300")
    ctl = lab.spawn_ctl("--socket", agent.socket, "check", "demo", "--key",
                        "a", "--json")
    poll("the check in flight", lambda: agent.inflight() == 1)
    agent.signal(signal.SIGTERM)
    same(agent.wait(), 0, agent.err())
    same(ctl.wait(), ALLOWED, ctl.err())
    same(json.loads(ctl.out())["source"], "server")
    check(not os.path.exists(agent.socket), "the socket is gone")


def test_quit(lab):
    """quit: on the control socket alone; what is in flight is Cancelled"""
    sandbox, _, agent = bring_up(lab, PATIENT)
    control = os.path.join(os.path.dirname(agent.socket), "control.sock")
    same(stat.S_IMODE(os.stat(control).st_mode), 0o600)
    same(stat.S_IMODE(os.stat(agent.socket).st_mode), 0o600)
    refused = lab.ctl("--control", agent.socket, "quit", expect=1)
    check("quit" in refused.err, refused)
    check(agent.running(), "still there")
    # The control socket tells all, but decides nothing.
    lab.ctl("--socket", control, "status")
    d = lab.ctl("--socket", control, "check", "demo", "--key", "a", "--json",
                expect=FAILED).json()
    same((d["reason"], d["permit"]), ("unauthorised", False))
    ctl = delayed_check(lab, agent, sandbox)
    agent.ctl("quit")
    same(agent.wait(), 0, agent.err())
    same(ctl.wait(), harness.CANCELLED, ctl.err())
    same(json.loads(ctl.out())["permit"], False)
    check(not os.path.exists(agent.socket), "the socket is gone")
    agent.ctl("quit", "--timeout", "100", expect=1)


# Restarts. The servers are configured: an agent that has just begun to ask DNS
# knows none yet, and says so at once.

def test_no_agent(lab):
    """no agent: Failed (unavailable), permit by the caller's option"""
    sock = lab.socket_path()
    for failure, permit in (("open", True), ("closed", False)):
        result = lab.ctl("--socket", sock, "check", "demo", "--timeout",
                         "100", "--on-failure", failure, "--json",
                         expect=FAILED)
        d = result.json()
        harness.check_decision(d)
        same((d["reason"], d["source"], d["permit"]),
             ("unavailable", "policy", permit))
        check(d["elapsed_us"] >= 5e4, "it tried until the deadline", d)


def test_restart_between(lab):
    """an agent that ended and came back between two calls of one client"""
    sandbox, text, agent = bring_up(lab)
    calls = Calls(lab, agent.socket)
    same(calls.call("check demo a")["outcome"], "allowed")
    for end in (agent.stop, agent.kill):
        end()
        agent = lab.agent(text)
        same(calls.call("check demo a")["outcome"], "allowed")
        agent.kill()
        # While it is away the call waits; it is decided when it is back.
        calls.begin("check demo a")
        agent = lab.agent(text)
        same(calls.end()["outcome"], "allowed")
    calls.finish()
    same(len(sandbox.events("request")), 5, "each check once")
    same(sandbox.events("duplicate"), [])


def test_restart_during(lab):
    """an agent killed during a call: resumed, and never consumed twice"""
    sandbox, text, agent = bring_up(lab, PATIENT)
    sandbox.command("delay 0 1000")
    calls = Calls(lab, agent.socket)
    calls.begin("check demo a")
    poll("the request at the server", lambda: sandbox.events("request"))
    agent.kill()
    agent = lab.agent(text)
    d = calls.end()
    same((d["outcome"], d["source"]), ("allowed", "server"))
    events = sandbox.events("request") + sandbox.events("duplicate")
    same(len({e["unique_id"] for e in events}), 1)
    same([len(sandbox.events(e)) for e in ("request", "duplicate")], [1, 1])
    # Under another configuration nobody may resume it.
    calls.begin("check demo b")
    poll("the request at the server",
         lambda: len(sandbox.events("request")) == 2)
    agent.kill()
    other = edited(text, ("rules", "demo", "resources", 0, "limit"), 999)
    agent = lab.agent(other)
    d = calls.end()
    same((d["outcome"], d["reason"], d["permit"]),
         ("failed", "interrupted", True))
    # A later call is none of its business.
    same(calls.call("check demo b")["outcome"], "allowed")
    calls.finish()


def test_drain_during(lab):
    """an agent that drains during a call answers it; the next one moves on"""
    sandbox, text, agent = bring_up(lab)
    calls = Calls(lab, agent.socket)
    same(calls.call("ping")["status"], 0)
    sandbox.command("delay 0 300")
    calls.begin("check demo a")
    poll("the request at the server", lambda: sandbox.events("request"))
    agent.stop()
    same(calls.end()["outcome"], "allowed")
    lab.agent(text)
    same(calls.call("check demo a")["outcome"], "allowed")
    calls.finish()
    same(len(sandbox.events("request")), 2)


def test_fork(lab):
    """a child that goes on with the parent's client harms neither"""
    sandbox, _, agent = bring_up(lab)
    calls = Calls(lab, agent.socket)
    same(calls.call("check demo a")["outcome"], "allowed")
    calls.begin("fork demo a")
    same([calls.end()["outcome"] for _ in range(2)], ["allowed"] * 2)
    same(calls.call("check demo a")["outcome"], "allowed")
    calls.finish()
    same(len({e["unique_id"] for e in sandbox.events("request")}), 4)


def test_shim(lab):
    """the other calls of the shim"""
    sandbox, _, agent = bring_up(lab, PATIENT)
    calls = Calls(lab, agent.socket)
    same([calls.call(c)["status"] for c in ("ping", "wait")], [0, 0])
    same(calls.call("report backend 12")["status"], 0)
    same(calls.call("report backend:{key} 12 eu")["status"], 0)
    same(calls.call("report backend:{key} 12")["status"], -6)
    answer = calls.call("report nothing 12")
    same(answer["status"], -6)
    check("nothing" in answer["text"], answer)
    same(calls.call("query status")["document"]["ready"], True)
    same(len(calls.call("query servers")["document"]["servers"]), 1)
    same(calls.call("control quit")["status"], -6)
    d = calls.call("adhoc b 1000 10 3")
    same((d["outcome"], d["status"]), ("allowed", 0))
    d = calls.call("adhoc b 1000 10 65536")
    same((d["status"], d["reason"], d["permit"]), (-1, "validation", False))
    sandbox.command("delay 0 60000")
    d = calls.call("interrupt demo a")
    same((d["outcome"], d["permit"]), ("cancelled", False))
    sandbox.command("delay 0 0")
    same(calls.call("check demo c")["outcome"], "allowed")
    calls.finish()
    poll("both reports", lambda: len(sandbox.events("report")) == 2)
    done = subprocess.run([harness.EXAMPLE, "demo", "x"],
                          env=lab.env({"RL_AGENT_SOCKET": agent.socket}),
                          stdout=subprocess.PIPE, timeout=harness.PATIENCE,
                          check=False)
    same(done.returncode, 0, done.stdout)
    check(done.stdout.startswith(b"allowed, permit 1 by server"),
          done.stdout)


# Who may ask for what.

def test_bad_input(lab):
    """what cannot be asked is Failed, never permits, and is never sent"""
    sandbox, _, agent = bring_up(lab)
    window = ("--window", "1000", "--limit", "5")
    forty = [word for n in range(40)
             for word in ("--bucket", "b%d" % n) + window]
    # 28 guards of profile v1 are one too many beside an AES head.
    guards = [word for n in range(28)
              for word in ("--guard", "g%d:1000:10:4:2:80" % n)]
    cases = (
        (("nowhere",), "unknown-rule"),
        (("demo",), "validation"),  # {key} without a key
        (("demo", "--key", "k" * 256), "validation"),
        (("demo", "--key", "k" * 251), "validation"),  # with "demo:" 256
        (("demo", "--key", "k", "--tokens", "0"), "validation"),
        (("demo", "--key", "k", "--tokens", "65536"), "validation"),
        (("pair", "--tokens", "32768"), "validation"),
        (("--bucket", "b") + window + ("--tokens", "0"), "validation"),
        (("--bucket", "b") + window + ("--tokens", "65536"), "validation"),
        (("--bucket", "b", "--window", "0", "--limit", "5"), "validation"),
        (("--bucket", "b", "--window", "1000", "--limit", "0"),
         "validation"),
        (("--bucket", "") + window, "validation"),
        (("--bucket", "b" * 256) + window, "validation"),
        (tuple(forty), "validation"),
        (tuple(guards), "validation"),
        # The key's quota is 1024 samples.
        (("--guard", "g:1000:2000:1025:2:80"), "validation"),
        (("--guard", "g:0:10:4:2:80"), "validation"),
        (("--bucket", "b") + window + ("--tenant", "other"), "validation"),
        (("--bucket", "b") + window + ("--label", "l" * 257), "validation"),
    )
    for args, reason in cases:
        d = agent.check(*args, expect=FAILED)
        same((d["outcome"], d["reason"], d["source"], d["permit"]),
             ("failed", reason, "policy", False), args)
        check(d["text"], "says why:", d)
    for args in (("nothing", "5"),
                 ("--tracker", "t:1000:2000:1025:2", "5"),
                 ("--tracker", ":1000:10:4:2", "5")):
        check(agent.ctl("report", *args, expect=None).status in (1, 64),
              args)
    same([c["received"] for c in sandbox.counters()], [0])
    # The largest that may be asked, is.
    same(agent.check("pair", "--tokens", "32767")["outcome"], "allowed")
    same(agent.check(*forty[:39 * 6])["outcome"], "allowed")
    same(agent.check(*guards[:27 * 2])["outcome"], "allowed")
    same(agent.check("--guard", "g:1000:2000:1024:2:80")["outcome"],
         "allowed")


def test_window_quota(lab):
    """a window over the quota of a format-1 key is not sent"""
    path = os.path.join(lab.path, "narrow.key")
    done = subprocess.run(
        [harness.SANDBOX, "keygen", "--auth", "aes", "--key-id", "3",
         "--window-max", "1024"], stdout=subprocess.PIPE, env=lab.env(),
        timeout=harness.PATIENCE, check=True)
    key = lab.keyfile("narrow", done.stdout.decode().strip(), path)
    sandbox = lab.sandbox(key, zone=ZONE)
    agent = lab.agent(lab.document(
        {"main": {"key": {"file": key}, "policy": harness.POLICY,
                  "dns": {"name": ZONE, "nameservers": [sandbox.dns]}}}))
    for window, outcome in (("1024", "allowed"), ("1025", "failed")):
        d = agent.check("--bucket", "b", "--window", window, "--limit", "9")
        same(d["outcome"], outcome, d)
    same(d["reason"], "validation")


def test_listeners(lab):
    """a listener gives what it is told to, to whom it is told to"""
    few = {"path": lab.socket_path("few"), "mode": "0666",
           "rules": ["de*"], "trackers": [], "adhoc": False}
    none = {"path": lab.socket_path("none"), "mode": "0666",
            "uids": [os.getuid() + 1]}
    one = {"path": lab.socket_path("one"), "mode": "0666",
           "max_connections": 1}
    listeners = dict(listener(lab), few=few, none=none, one=one)
    _, _, agent = bring_up(lab, listeners=listeners)
    same(agent.check("pair")["outcome"], "allowed")
    adhoc = ("--bucket", "b", "--window", "1000", "--limit", "5")

    def ask(where, *args):
        return lab.ctl("--socket", where["path"], "check", *args, "--json",
                       expect=None).json()

    same(ask(few, "demo", "--key", "a")["outcome"], "allowed")
    for where, args in ((few, ("pair",)), (few, adhoc),
                        (none, ("demo", "--key", "a"))):
        d = ask(where, *args)
        same((d["outcome"], d["reason"], d["permit"]),
             ("failed", "unauthorised", False), args)
    lab.ctl("--socket", few["path"], "report", "backend", "5", expect=1)
    lab.ctl("--socket", few["path"], "status")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        s.connect(one["path"])
        poll("the connection", lambda: any(
            row["name"] == "one" and row["connections"] == 1
            for row in agent.status()["listeners"]))
        d = ask(one, "demo", "--key", "a", "--timeout", "200")
        same((d["reason"], d["source"]), ("overloaded", "policy"))
    same(ask(one, "demo", "--key", "a")["outcome"], "allowed")
    check(agent.counters()["connections_refused"] >= 2, agent.counters())


# rlctl.

def test_usage(lab):
    """64 and one line for what is no command line"""
    _, _, agent = bring_up(lab)
    for args in ((), ("nonsense",), ("check",), ("check", "a", "b"),
                 ("check", "demo", "--bogus"), ("check", "demo", "--key"),
                 ("check", "demo", "--tokens", "x"),
                 ("check", "demo", "--timeout", "-1"),
                 ("check", "demo", "--bucket", "b"),
                 ("check", "--window", "5", "--bucket", "b"),
                 ("check", "--guard", "g:1:2:3"),
                 ("check", "--on-failure", "maybe", "demo"),
                 ("report",), ("report", "backend"),
                 ("report", "backend", "5", "6"),
                 ("report", "backend", "4294967296"),
                 ("report", "backend", "5", "--key"),
                 ("report", "--tracker", "t:1000:10:4:2", "5", "--key", "k"),
                 ("wait", "--timeout", "x"), ("status", "x"),
                 ("servers", "x"), ("quit", "x"), ("key",),
                 ("key", "hide", "f"), ("key", "show"), ("--bogus",)):
        result = agent.ctl(*args, expect=USAGE)
        same(result.out, "", result)
        check(result.err, result)


def test_status(lab):
    """status and servers: their fields, as JSON and as text"""
    sandbox, _, agent = bring_up(lab, cluster=3)
    same(agent.check("demo", "--key", "a")["outcome"], "allowed")
    status = agent.status()
    for field in ("version", "ready", "draining", "uptime_ms", "generation",
                  "config_hash", "config", "inflight", "listeners",
                  "tenants", "counters"):
        check(field in status, field)
    same([row["name"] for row in status["listeners"]], ["main", "control"])
    counters = status["counters"]
    same((counters["checks"], counters["allowed"], counters["permitted"],
          counters["denied"], counters["failed"]), (1, 1, 1, 0, 0))
    tenant = agent.tenant("main")
    same((tenant["key_id"], tenant["auth"], tenant["profile"],
          tenant["ready"], tenant["servers"], tenant["horizon_ms"],
          tenant["dns_name"]),
         ("7", "aes", "v1", True, 3, 1500, ZONE))
    same((tenant["counters"]["operations"], tenant["counters"]["selected"]),
         (1, 1))
    servers = agent.ctl("servers", "--json").json()["servers"]
    same([s["server_id"] for s in servers], sandbox.ids())
    same([s["rank"] for s in servers], [0, 1, 2])
    same([s["addresses"] for s in servers],
         [s["addresses"] for s in sandbox.servers])
    same(servers[0]["selected"], 1)
    text = agent.ctl("status").out
    check("ready: yes" in text and "name: main" in text, text)
    text = agent.ctl("servers").out
    check(sandbox.ids()[0] in text, text)


def test_key_show(lab):
    """key show: all about a key but its secret; bad keys are refused"""
    for number, (auth, fmt) in enumerate((
            ("aes", 1), ("aes", 0), ("cookie", 1), ("cookie", 0),
            ("none", 1))):
        path = lab.keygen("%s%d" % (auth, fmt), auth, 40 + number, fmt)
        shown = lab.ctl("key", "show", path, "--json").json()
        same((shown["auth"], shown["key_id"], shown["format"],
              shown["profile"], shown["dns_name"]),
             (auth, str(40 + number), "1" if fmt else "unversioned",
              "v2" if fmt else "v1",
              "c-%d.p0.ratelimitly.com" % (40 + number)))
        same(shown["quotas"]["dedup_ttl_ms"], harness.DEDUP_MS)
        text = lab.ctl("key", "show", path).out
        check("key_id: %d" % (40 + number) in text, text)
        with open(path, encoding="ascii") as f:
            key = f.read().strip()
        shown = lab.ctl("key", "show", "--json",
                        env={"RATELIMITLY_AUTH_KEY": key}).json()
        same(shown["key_id"], str(40 + number))
        # One character changed: no word of it in the complaint.
        broken = os.path.join(lab.path, "broken%d.key" % number)
        with open(broken, "w", encoding="ascii") as f:
            f.write(key[:-1] + ("q" if key[-1] != "q" else "p"))
        result = lab.ctl("key", "show", broken, expect=1)
        same(result.err.count("\n"), 1, result)
    management = os.path.join(lab.path, "management.key")
    with open(management, "w", encoding="ascii") as f:
        f.write(peer.bech32_encode("rl-secret", b"\1" * 45))
    result = lab.ctl("key", "show", management, expect=1)
    check("management" in result.err, result)
    lab.ctl("key", "show", "/nonexistent", expect=1)


if __name__ == "__main__":
    harness.run([value for name, value in list(globals().items())
                 if name.startswith("test_")])
