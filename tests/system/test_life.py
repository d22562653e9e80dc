#!/usr/bin/env python3
"""
The life of an agent: what keeps it from starting is one line that names the
file, and -t foresees it; when it is ready, and when it stops to be; and what
its log says of the decisions that it makes.
"""

import json
import os
import re
import signal
import stat
import subprocess

import fake_agent
import harness
import wire
from harness import check, poll, same

RULES = {
    "checkout": {"resources": [{"bucket": "checkout:{key}",
                                "window_ms": 3600000, "limit": 1}]},
    "nothing": {},
}


def document(lab, key, sandbox=None, **more):
    dns = {"name": "sandbox.example.com", "refresh_ms": 1000,
           "nameservers": [sandbox.dns if sandbox else "127.0.0.1:9"]}
    return lab.document({"main": {"key": {"file": key}, "dns": dns,
                                  "policy": more.pop("policy", None) or
                                  harness.POLICY}}, RULES, **more)


def run(lab, *argv):
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env=lab.env(), cwd=lab.path,
        timeout=harness.PATIENCE, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def why(err):
    """The reason of the one line, of either form."""
    line, = err.rstrip("\n").split("\n")
    read = harness.log_line(line)
    if read is None:
        check(line.startswith("rl-agent: "), line)
        return line[len("rl-agent: "):]
    same((read[0], read[1], list(read[2])), ("error", "start", ["error"]))
    return read[2]["error"]


def refused(lab, path, status, *words, foreseen=True):
    """The start ends so, and -t says the same."""
    got, out, err = run(lab, harness.AGENT, "-c", path)
    same((got, out), (status, ""), err)
    reason = why(err)
    for word in words:
        check(word in reason, word, "is not in", reason)
    got, out, err = run(lab, harness.AGENT, "-t", "-c", path)
    if foreseen:
        same((got, out, why(err)), (78, "", reason))
    else:
        same((got, err), (0, ""))


def test_what_is_wrong_with_keys(lab):
    """a missing key, one that is none, one that others can read"""
    key = lab.keygen("main")
    path = lab.config(document(lab, os.path.join(lab.path, "no.key")))
    refused(lab, path, 78, path, "tenants.main.key", "no.key",
            "No such file or directory")
    path = lab.config(document(lab, lab.path))
    refused(lab, path, 78, "tenants.main.key", lab.path, "is not a file")
    empty = os.path.join(lab.path, "empty.key")
    with open(empty, "w", encoding="ascii"):
        pass
    path = lab.config(document(lab, empty))
    refused(lab, path, 78, "tenants.main.key", empty, "is empty")
    os.chmod(key, 0o644)
    path = lab.config(document(lab, key))
    got, out, err = run(lab, harness.AGENT, "-t", "-c", path)
    same((got, out), (0, "%s: ok\n" % path))
    level, event, fields = harness.log_line(err.rstrip("\n"))
    same((level, event), ("warning", "config"))
    for word in (path, "tenants.main.key", key, "mode 0644"):
        check(word in fields["text"], fields)


def test_what_may_not_be_read(lab):
    """a configuration and a key of another user"""
    if os.getuid() != 0:
        raise harness.Skip("only root can be another user")
    key = lab.keygen("main")
    path = lab.config(document(lab, key))
    os.chmod(lab.path, 0o755)
    nobody = ["setpriv", "--reuid", "65534", "--regid", "65534",
              "--clear-groups", harness.AGENT]
    if run(lab, *nobody, "-V")[0] != 0:
        raise harness.Skip("another user cannot run the programs")
    for flag in (), ("-t",):
        got, out, err = run(lab, *nobody, *flag, "-c", path)
        same((got, out), (78, ""), err)
        check(key in why(err) and "Permission denied" in why(err), err)
    os.chmod(path, 0o600)
    got, out, err = run(lab, *nobody, "-c", path)
    same((got, why(err)), (78, "%s: Permission denied" % path))


def test_what_is_wrong_with_places(lab):
    """a folder that is missing or none, a path too long, a file in the way"""
    key = lab.keygen("main")

    def at(path):
        return lab.config(document(lab, key, listeners={
            "main": {"path": path}}))

    deep = os.path.join(lab.path, "no", "such", "a.sock")
    refused(lab, at(deep), 1, "listeners.main.path", os.path.dirname(deep),
            "cannot make the directory", "No such file or directory")
    refused(lab, at(key + "/a.sock"), 1, "listeners.main.path", key,
            "Not a directory")
    refused(lab, at("/" + "x" * 108), 78, "listeners.main.path", "107 bytes")
    path = lab.socket_path()
    os.mkdir(os.path.dirname(path))
    for name, words in ((path, "is not a socket"),
                        (path + ".new", "cannot bind"),
                        (os.path.join(os.path.dirname(path), "control.sock"),
                         "is not a socket")):
        with open(name, "w", encoding="ascii") as f:
            f.write("half")
        refused(lab, at(path), 1, name, words)
        with open(name, encoding="ascii") as f:
            same(f.read(), "half")
        os.unlink(name)
    os.unlink(path + ".lock")
    os.mkdir(path + ".lock")
    refused(lab, at(path), 1, path + ".lock", "Is a directory")


def test_address_in_use(lab):
    """another agent serves it: 1, and it goes on; -t asks nobody"""
    key = lab.keygen("main")
    sandbox = lab.sandbox(key, zone="sandbox.example.com")
    agent = lab.agent(document(lab, key, sandbox))
    path = lab.config(document(lab, key, sandbox), "other.json")
    refused(lab, path, 1, agent.socket, "in use", foreseen=False)
    same(agent.check("nothing")["outcome"], "allowed")


def mounted(lab, options, folder, *argv):
    """A command where a file system of its own is mounted on the folder."""
    return run(lab, "unshare", "-m", "sh", "-ec",
               'mount -t tmpfs -o "$1" none "$2"; shift 2; exec "$@"', "sh",
               options, folder, *argv)


def test_no_room(lab):
    """a file system that is read-only, or full"""
    folder = os.path.join(lab.path, "run")
    os.mkdir(folder)
    if mounted(lab, "ro", folder, "true")[0] != 0:
        raise harness.Skip("no file system can be mounted here")
    key = lab.keygen("main")
    sock = os.path.join(folder, "a.sock")
    path = lab.config(document(lab, key, listeners={"main": {"path": sock}}))
    for options, at, word, foreseen in (
            ("ro", sock + ".lock", "Read-only file system", True),
            ("nr_inodes=1", sock + ".lock", "No space left on device", False),
            ("nr_inodes=2", sock + ".new", "No space left on device", False),
            ("nr_inodes=3", os.path.join(folder, "control.sock.lock"),
             "No space left on device", False)):
        got, out, err = mounted(lab, options, folder, harness.AGENT, "-c",
                                path)
        same((got, out), (1, ""), options, err)
        check(at in why(err) and word in why(err), options, err)
        got, out, err = mounted(lab, options, folder, harness.AGENT, "-t",
                                "-c", path)
        same(got, 78 if foreseen else 0, options, err)
        check(not foreseen or at in why(err) and word in why(err), err)


def test_after_a_power_loss(lab):
    """sockets, locks and *.new of an agent that was killed are replaced"""
    key = lab.keygen("main")
    sandbox = lab.sandbox(key, zone="sandbox.example.com")
    agent = lab.agent(document(lab, key, sandbox))
    folder = os.path.dirname(agent.socket)
    agent.kill()
    left = sorted(os.listdir(folder))
    check("agent.sock" in left and "control.sock" in left, left)
    # As when it dies between bind() and rename().
    os.rename(agent.socket, agent.socket + ".new")
    os.truncate(agent.socket + ".lock", 0)
    agent = lab.agent(document(lab, key, sandbox))
    same(agent.check("nothing")["outcome"], "allowed")
    same(sorted(os.listdir(folder)), left)
    check(stat.S_ISSOCK(os.stat(agent.socket).st_mode))
    same(agent.stop(), 0)
    same(sorted(os.listdir(folder)), ["agent.sock.lock", "control.sock.lock"])


# Readiness.

def health(agent, *args):
    """The exit status and the JSON, which the text agrees with."""
    result = agent.ctl("health", "--json", *args, expect=None)
    got = result.json()
    same(sorted(got), ["healthy", "reason", "text"])
    same(result.status, 0 if got["healthy"] else 1, result)
    same((result.err, got["reason"] == "ok"), ("", got["healthy"]))
    return got


def test_health(lab):
    """0 when a decision is possible now; 1 and one line why else"""
    key = lab.keygen("main")
    sandbox = lab.sandbox(key, zone="sandbox.example.com")
    agent = lab.agent(document(lab, key, sandbox))
    same(health(agent), {"healthy": True, "reason": "ok",
                         "text": "a decision is possible"})
    result = agent.ctl("health")
    same((result.out, result.err), ("a decision is possible\n", ""))
    same(agent.ctl("wait").status, 0)
    # DNS says, twice, that there is no server any more.
    for n in range(3):
        sandbox.command("withdraw %d" % n)
    got = poll("the end of it", lambda: [
        g for g in [health(agent)] if not g["healthy"]])[0]
    same(got["reason"], "not-ready", got)
    check("tenant main: " in got["text"], got)
    result = agent.ctl("health", expect=1)
    same((result.out, result.err.count("\n")), ("", 1))
    check(result.err.startswith("rlctl: health: not-ready: "), result)
    check("no decision is possible now" in
          agent.ctl("wait", "--timeout", "1000", expect=1).err)
    same([f["ready"] for _, _, f in agent.events("ready")], ["yes", "no"])
    # And again there are some.
    for n in range(3):
        sandbox.command("publish %d" % n)
    poll("servers", lambda: health(agent)["healthy"])
    same(agent.stop(), 0)
    got = health(agent, "--timeout", "100")
    same((got["healthy"], got["reason"]), (False, "unavailable"))
    check(agent.socket in got["text"], got)


def test_health_of_who_goes(lab):
    """draining is no health, ready or not; neither is what says nothing"""
    for status, reason in (
            ({"ready": True, "unready": None, "draining": False}, "ok"),
            ({"ready": True, "unready": None, "draining": True}, "draining"),
            ({"ready": False, "unready": "x", "draining": True}, "draining"),
            ({"ready": False, "unready": "x", "draining": False}, "not-ready"),
            ({}, "not-ready"), ([], "not-ready")):
        fake = fake_agent.OpenAgent(lab, {
            wire.STATUS: fake_agent.document(json.dumps(status))},
                                    lab.name("fake") + ".sock")
        result = lab.ctl("--socket", fake.path, "health", "--json",
                         expect=0 if reason == "ok" else 1)
        same(result.json()["reason"], reason, status)
        fake.close()


def test_silence_is_not_ready(lab):
    """servers that stop to answer: not ready, until one answers"""
    key = lab.keygen("main")
    sandbox = lab.sandbox(key, zone="sandbox.example.com")
    agent = lab.agent(document(lab, key, sandbox, policy=harness.SHORT))
    poll("an answer in time", lambda: agent.check(
        "checkout", "--key", os.urandom(4).hex())["outcome"] == "allowed")
    sandbox.signal(signal.SIGSTOP)
    failed = 0
    while health(agent)["healthy"]:
        same(agent.check("checkout", "--key", "a")["reason"], "timeout")
        failed += 1
        check(failed <= 10, "still healthy")
    same(failed, 10)
    got = health(agent)
    same(got["reason"], "not-ready")
    check("tenant main: no server answers" in got["text"], got)
    same(agent.status()["ready"], False)
    agent.ctl("wait", "--timeout", "1", expect=1)
    ready = [fields["ready"] for _, _, fields in agent.events("ready")]
    same(ready, ["yes", "no"])
    waiting = lab.spawn_ctl("--socket", agent.socket, "wait", "--timeout",
                            "60000")
    sandbox.signal(signal.SIGCONT)
    while not health(agent)["healthy"]:
        agent.check("checkout", "--key", "b")
    same(waiting.wait(), 0, waiting.err())


# The log.

def test_the_journal(lab):
    """priorities when stderr is the journal's, and then only"""
    key = lab.keygen("main")
    path = lab.config(document(lab, key))
    for name, ours in (("journal", True), ("other", False)):
        err = os.path.join(lab.path, name + ".err")
        with open(err, "wb"):
            at = os.stat(err)
        agent = harness.Agent(
            lab, name, [harness.AGENT, "-c", path], lab.socket_path(), env={
                "JOURNAL_STREAM": "%d:%d" % (at.st_dev, at.st_ino + (
                    0 if ours else 1))})
        poll("a line", lambda agent=agent: agent.events("discovery"))
        same(agent.stop(), 0)
        lines = agent.err().rstrip("\n").split("\n")
        check(len(lines) >= 3, lines)
        for line in lines:
            check(harness.log_line(line), line)
            same(line.startswith("<"), ours, line)
            same(line.startswith("rl-agent: "), not ours, line)
    nowhere = os.path.join(lab.path, "nowhere.json")
    done = harness.Process(lab, "journal", [
        harness.AGENT, "-c", nowhere], env={"JOURNAL_STREAM": "%d:%d" % (
            os.stat(os.path.join(lab.path, "journal.err")).st_dev,
            os.stat(os.path.join(lab.path, "journal.err")).st_ino)})
    same(done.wait(), 78)
    check(done.err().endswith("\n<3>%s: No such file or directory\n" %
                              nowhere), done.err())


def test_decisions(lab):
    """log.decisions: what was answered, to whom, and how it is switched"""
    key = lab.keygen("main")
    sandbox = lab.sandbox(key, zone="sandbox.example.com")
    agent = lab.agent(document(lab, key, sandbox, log={"decisions": 1}))
    odd = 'a "b" c=\\d\n\x1b[31m\u20ac unsaid=7'
    asked = [agent.check("checkout", "--key", odd),
             agent.check("checkout", "--key", odd),
             agent.check("nothing"), agent.check("gh\"ost rule"),
             agent.check("--bucket", "b", "--window", "1000", "--limit", "5")]
    lines = poll("the lines", lambda: [
        e for e in [agent.events("decision")] if len(e) == len(asked)])[0]
    rules = ["checkout", "checkout", "nothing", 'gh"ost rule', ""]
    for rule, d, (level, _, fields) in zip(rules, asked, lines):
        same(level, "info")
        same(fields, {
            "rule": rule,
            "tenant": "" if d["reason"] == "unknown-rule" else "main",
            "outcome": d["outcome"], "permit": "yes" if d["permit"] else "no",
            "source": d["source"], "reason": d["reason"],
            "limit": d["limit"] or "",
            "key": odd if rule == "checkout" else "",
            "elapsed_us": fields["elapsed_us"], "listener": "main",
            "uid": str(os.getuid()), "server_id": d["server_id"] or "",
            "unsaid": "0"})
        # The library's time is longer: it includes the way.
        check(int(fields["elapsed_us"]) <= d["elapsed_us"], fields, d)
    same([d["outcome"] for d in asked],
         ["allowed", "denied", "allowed", "failed", "allowed"])
    # Off, and half of each, by a reload.
    path = agent.child.args[2]
    for share, more in ((0, 0), (0.5, 3)):
        with open(path, encoding="utf-8") as f:
            changed = json.load(f)
        changed["log"]["decisions"] = share
        with open(path + ".tmp", "w", encoding="utf-8") as f:
            json.dump(changed, f)
        os.rename(path + ".tmp", path)
        agent.ctl("reload")
        seen = len(agent.events("decision"))
        for _ in range(6):
            agent.check("nothing")
        same(len(agent.events("decision")) - seen, more, share)


if __name__ == "__main__":
    harness.run([value for name, value in list(globals().items())
                 if name.startswith("test_")])
