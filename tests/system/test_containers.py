#!/usr/bin/env python3
"""
Containers, as near as a host without a container engine comes: each has mount,
pid and network namespaces of its own, another uid, and the folder of its socket
mounted as /run/rl-agent. Each finds its agent where clients look by default, may
do what its listener says, and survives a restart of the agent. With an engine:
tests/containers.
"""

import json
import os
import shutil
import subprocess

import harness
from harness import check, poll, same

# Nothing of the host's /run is there, and only what is mounted of the agent's:
# a folder, or a single file. Reading it is enough to connect.
INSIDE = """
set -e
mount -t tmpfs none /run
mkdir /run/rl-agent
at=/run/rl-agent
[ -d "$1" ] || { at=/run/rl-agent/agent.sock; : >"$at"; }
mount --bind "$1" "$at"
mount -o remount,bind,ro "$at"
exec setpriv --reuid="$2" --regid="$2" "$3" sh -c '
    while read -r line; do eval "$line"; echo "status=$?"; done'
"""

NAMESPACES = ["unshare", "--mount", "--pid", "--net", "--fork",
              "--kill-child", "--mount-proc"]


class Users(harness.Process):
    """A user namespace: its users 0 and up are first and up outside."""

    def __init__(self, lab, first):
        super().__init__(lab, lab.name("users"),
                         ["unshare", "--user", "sh", "-c", "echo up; read -r line"],
                         stdin=subprocess.PIPE)
        self.line()
        for name in ("uid_map", "gid_map"):
            with open("/proc/%d/%s" % (self.pid, name), "w",
                      encoding="ascii") as f:
                f.write("0 %d 65536" % first)
        self.enter = ["nsenter", "--user=/proc/%d/ns/user" % self.pid,
                      "--setuid=0", "--setgid=0"]


class Container(harness.Process):
    """A shell in there; what it is told, it does, and tells the status."""

    def __init__(self, lab, place, uid, group=None, users=None):
        argv = NAMESPACES + [
            "sh", "-c", INSIDE, "sh", place, str(uid),
            "--clear-groups" if group is None else "--groups=%d" % group]
        super().__init__(lab, lab.name("container"),
                         (users.enter if users else []) + argv,
                         stdin=subprocess.PIPE)
        self.lines = 0

    def run(self, command):
        """Its lines, and its exit status."""
        self.child.stdin.write((command + "\n").encode())
        self.child.stdin.flush()
        lines = []
        while True:
            line = self.line(self.lines)
            self.lines += 1
            if line.startswith("status="):
                return lines, int(line[len("status="):])
            lines.append(line)

    def check(self, *args):
        lines, status = self.run(
            " ".join([harness.CTL, "check", "--json"] + list(args)))
        decision = json.loads(lines[0])
        harness.check_decision(decision)
        return decision["outcome"], decision["reason"], status

    def bucket(self):
        """What the agent makes of {uid} and {gid} of whoever asks here."""
        lines, status = self.run(harness.CTL + " explain who --json")
        same(status, 0, lines)
        return json.loads(lines[0])["resources"][0]["name"]

    def stop(self):
        self.child.stdin.close()
        return self.wait()


def containers(lab):
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        raise harness.Skip("needs root and setpriv")
    probe = subprocess.run(
        NAMESPACES + ["mount", "-t", "tmpfs", "none", "/run"],
        stderr=subprocess.DEVNULL, check=False)
    if probe.returncode != 0:
        raise harness.Skip("no namespaces of our own to be had")
    os.chmod(lab.path, 0o755)


def listener(lab, name, rules):
    return {"path": lab.socket_path(name), "mode": "0666", "rules": rules,
            "trackers": [], "adhoc": False}


def start(lab):
    containers(lab)
    key = lab.keygen("main")
    sandbox = lab.sandbox(key, zone="rl.test")
    document = lab.document(
        {"main": {"key": {"file": key}, "policy": harness.POLICY,
                  "dns": {"name": sandbox.zone,
                          "nameservers": [sandbox.dns]}}},
        {"checkout": {"resources": [{"bucket": "checkout:{uid}",
                                     "window_ms": 60000, "limit": 2}]},
         "mail": {"resources": [{"bucket": "mail:{listener}",
                                 "window_ms": 60000, "limit": 1}]},
         "bulk": {"resources": [{"bucket": "bulk"}]}},
        listeners={"main": {"path": lab.socket_path()},
                   "web": listener(lab, "web", ["checkout", "mail"]),
                   "worker": listener(lab, "worker", ["mail", "bulk"]),
                   "reports": listener(lab, "reports", ["bulk"])})
    agent = lab.agent(document)
    inside = [Container(lab, os.path.dirname(lab.socket_path(name)), uid)
              for name, uid in (("web", 2001), ("worker", 2002),
                                ("reports", 2003))]
    return agent, document, inside


def test_three_containers(lab):
    agent, _, (web, worker, reports) = start(lab)
    same(web.check("checkout"), ("allowed", "ok", 0))
    same(web.check("mail"), ("allowed", "ok", 0))
    same(web.check("mail"), ("denied", "resource", 1))
    same(web.check("bulk"), ("failed", "unauthorised", 2))
    # A limit of each listener's own.
    same(worker.check("mail"), ("allowed", "ok", 0))
    same(worker.check("checkout"), ("failed", "unauthorised", 2))
    same(reports.check("bulk"), ("allowed", "ok", 0))
    same(reports.check("mail"), ("failed", "unauthorised", 2))
    same(reports.check("--bucket", "bulk", "--window", "1000", "--limit",
                       "1000000"), ("failed", "unauthorised", 2))
    # The uid in the bucket's name is the container's.
    lines, status = web.run(harness.CTL + " explain checkout --json")
    same((json.loads(lines[0])["resources"][0]["name"], status),
         ("checkout:2001", 0))
    # No other socket is to be seen, and none that steers the agent.
    lines, _ = web.run("ls /run/rl-agent")
    same([line for line in lines if not line.endswith(".lock")],
         ["agent.sock"])
    _, status = web.run(harness.CTL + " quit --timeout 100 2>&1")
    same(status, 1)
    check(agent.running())


def test_an_agent_that_starts_again(lab):
    """the folder is mounted, so a new socket in it is found"""
    agent, document, (web, _, _) = start(lab)
    same(web.check("checkout"), ("allowed", "ok", 0))
    agent.kill()
    lab.agent(document)
    same(web.check("checkout"), ("allowed", "ok", 0))
    same(web.check("checkout"), ("denied", "resource", 1))


# One folder for all, the socket for a group: as sidecars and daemons of a node
# have it.
GROUP = 10001
OUTSIDER = 65534


class OwnGroup(harness.Agent):
    """An agent whose group is GROUP, which so owns its sockets."""

    def __init__(self, lab, document, users=None):
        argv = ["setpriv", "--regid=%d" % GROUP, "--clear-groups",
                harness.AGENT, "-c", lab.config(document)]
        super().__init__(lab, lab.name("agent"),
                         (users.enter if users else []) + argv,
                         document["listeners"]["main"]["path"])


def group_document(lab, key, sandbox):
    return lab.document(
        {"main": {"key": {"file": key}, "policy": harness.POLICY,
                  "dns": {"name": sandbox.zone,
                          "nameservers": [sandbox.dns]}}},
        {"all": {"resources": [{"bucket": "all", "window_ms": 600000,
                                "limit": 6}]},
         "who": {"resources": [{"bucket": "who:{uid}:{gid}"}]}},
        listeners={"main": {"path": lab.socket_path(), "mode": "0600"},
                   "app": {"path": lab.socket_path("app"), "mode": "0660",
                           "adhoc": False}})


def grouped(lab):
    containers(lab)
    key = lab.keygen("main")
    sandbox = lab.sandbox(key, cluster=1, zone="rl.test")
    document = group_document(lab, key, sandbox)
    return document, OwnGroup(lab, document).ready()


def test_one_folder_for_three_users(lab):
    """the socket's group lets in; who is not in it is refused"""
    _, agent = grouped(lab)
    folder = os.path.dirname(lab.socket_path("app"))
    inside = [Container(lab, folder, uid, GROUP) for uid in (20001, 20002)]
    outsider = Container(lab, folder, OUTSIDER)
    for container in inside:
        same(container.check("all"), ("allowed", "ok", 0))
    same([c.bucket() for c in inside], ["who:20001:20001", "who:20002:20002"])
    same(outsider.check("all"), ("failed", "unauthorised", 2))
    # Being mounted read-only is no hindrance, and keeps the file safe.
    _, status = inside[0].run("rm -f /run/rl-agent/agent.sock 2>&1")
    check(status != 0)
    same(inside[0].check("all"), ("allowed", "ok", 0))
    # The number does not matter, the group does.
    member = Container(lab, folder, OUTSIDER, GROUP)
    same(member.check("all"), ("allowed", "ok", 0))
    same(agent.counters()["connections_refused"], 0)


def test_a_mount_of_the_file(lab):
    """goes stale at a restart, where that of the folder stays good"""
    document, agent = grouped(lab)
    path = lab.socket_path("app")
    by_folder = Container(lab, os.path.dirname(path), 20001, GROUP)
    by_file = Container(lab, path, 20002, GROUP)
    for container in (by_folder, by_file):
        same(container.check("all"), ("allowed", "ok", 0))
    for end in (agent.stop, agent.kill):
        end()
        agent = OwnGroup(lab, document).ready()
        same(by_folder.check("all"), ("allowed", "ok", 0))
        same(by_file.check("all", "--timeout", "500"),
             ("failed", "unavailable", 2))


def test_user_namespaces(lab):
    """the agent sees the number that a user has outside of its namespace"""
    document, _ = grouped(lab)
    folder = os.path.dirname(lab.socket_path("app"))
    # The socket's group is one of the container's, by its number there.
    near, far = Users(lab, 9000), Users(lab, 100000)
    shifted = Container(lab, folder, 1000, GROUP - 9000, near)
    same(shifted.bucket(), "who:10000:10000")
    same(shifted.check("all"), ("allowed", "ok", 0))
    # The same number there is another group outside.
    stranger = Container(lab, folder, 1000, GROUP, far)
    same(stranger.check("all"), ("failed", "unauthorised", 2))


def test_an_agent_in_a_user_namespace(lab):
    """who has no number there is 65534 for it, like all others without"""
    containers(lab)
    key = lab.keygen("main")
    document = group_document(lab, key, lab.sandbox(key, zone="rl.test"))
    folder = os.path.dirname(lab.socket_path("app"))
    inner, other = Users(lab, 100000), Users(lab, 300000)
    for name in ("agent", "app"):
        os.mkdir(os.path.dirname(lab.socket_path(name)))
        os.chown(os.path.dirname(lab.socket_path(name)), 100000, 100000)
    os.chown(key, 100000, 100000)
    OwnGroup(lab, document, inner)
    seen = Container(lab, folder, 20001, GROUP, inner)
    poll("the socket", lambda: os.path.exists(lab.socket_path("app")))
    same(seen.bucket(), "who:20001:20001")
    # Let in by the group that the socket has outside; no number inside.
    same(Container(lab, folder, 20001, 100000 + GROUP).bucket(),
         "who:65534:65534")
    same(Container(lab, folder, 20001, GROUP, other).check("all"),
         ("failed", "unauthorised", 2))


if __name__ == "__main__":
    harness.run([value for name, value in list(globals().items())
                 if name.startswith("test_")])
