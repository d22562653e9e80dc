#!/usr/bin/env python3
"""
Three containers, as near as a host without a container engine comes: each has
mount, pid and network namespaces of its own, another uid, and the folder of its
socket mounted as /run/rl-agent. Each finds its agent where clients look by
default, may do what its listener says, and survives a restart of the agent.
"""

import json
import os
import shutil
import subprocess

import harness
from harness import check, same

# Nothing of the host's /run is there, and only one folder of the agent's.
INSIDE = """
set -e
mount -t tmpfs none /run
mkdir /run/rl-agent
mount --bind "$1" /run/rl-agent
exec setpriv --reuid="$2" --regid="$2" --clear-groups sh -c '
    while read -r line; do eval "$line"; echo "status=$?"; done'
"""


class Container(harness.Process):
    """A shell in there; what it is told, it does, and tells the status."""

    def __init__(self, lab, folder, uid):
        super().__init__(
            lab, lab.name("container"),
            ["unshare", "--mount", "--pid", "--net", "--fork", "--kill-child",
             "--mount-proc", "sh", "-c", INSIDE, "sh", folder, str(uid)],
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

    def stop(self):
        self.child.stdin.close()
        return self.wait()


def containers(lab):
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        raise harness.Skip("needs root and setpriv")
    probe = subprocess.run(
        ["unshare", "--mount", "--pid", "--net", "--fork", "--mount-proc",
         "mount", "-t", "tmpfs", "none", "/run"],
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


if __name__ == "__main__":
    harness.run([value for name, value in list(globals().items())
                 if name.startswith("test_")])
