#!/usr/bin/env python3
"""
The images of deploy/ are built and run by a container engine: the compose file
as it is, the pods of the Kubernetes manifests as a kubelet would run them. "make
check-containers" runs it, as root; it takes some minutes, most of them for what
apt-get downloads into the images. RLA_REQUIRE_CONTAINERS=1: a machine that
cannot do it fails. RLA_CONTAINERS_PULL=1: on Debian's own images.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
import traceback

import engine as engines
from engine import DEPLOY, SOURCE, Engine, run
from harness import Skip, check, poll, same
from pod import Pod

try:
    import yaml
except ImportError:
    yaml = None

# For lints; versions that were looked at.
NPM = ("dockerfile-utils@0.16.3", "kubernetes-models@4.5.1")
VALIDATE = """
import {readFileSync} from "fs";
import * as apps from "kubernetes-models/apps/v1";
import * as core from "kubernetes-models/v1";
for (const o of JSON.parse(readFileSync(0, "utf8")))
	new (apps[o.kind] ?? core[o.kind])(o).validate();
"""


def documents(*path):
    with open(os.path.join(DEPLOY, *path), encoding="utf-8") as f:
        return [d for d in yaml.safe_load_all(f) if d]


def test_lints(e):
    """what others have written for Dockerfiles and manifests finds nothing"""
    if not shutil.which("npm"):
        raise Skip("no npm")
    place = os.path.join(e.tools, "npm")
    os.makedirs(place, exist_ok=True)
    run(["npm", "install", "--silent", "--no-save", "--ignore-scripts",
         "--prefix", place] + list(NPM))
    run([os.path.join(place, "node_modules/.bin/dockerfile-utils"), "lint",
         os.path.join(DEPLOY, "Dockerfile")])
    script = os.path.join(place, "validate.mjs")
    with open(script, "w", encoding="ascii") as f:
        f.write(VALIDATE)
    for name in ("sidecar.yaml", "daemonset.yaml"):
        objects = documents("kubernetes", name)
        for broken in (False, True):
            if broken:
                objects[-1]["spec"]["template"]["spec"]["containers"][0][
                    "volumeMounts"][0]["mountPath"] = 7
            done = subprocess.run(
                ["node", script], input=json.dumps(objects).encode(),
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
            same(done.returncode != 0, broken, name, done.stdout.decode())


def test_images(e):
    """are built, and say what an engine has to know"""
    e.base()
    e.start()
    for stage in engines.IMAGES:
        e.build(stage)
    e.without_shells("rl-agent")
    config = e.inspect("rl-agent")["Config"]
    same((config["User"], config["Entrypoint"], config["StopSignal"],
          list(config["Volumes"]), config["Healthcheck"]["Test"]),
         ("10001:10001", ["rl-agent"], "SIGTERM", ["/run/rl-agent"],
          ["CMD", "rlctl", "health"]))
    for tool in ("gcc", "make", "sh", "bash", "perl"):
        status, said = e.status("run", "--rm", "--network", "none",
                                "--entrypoint", tool, "rl-agent")
        same(status, 127, tool, said)
    # rlctl runs where there is nothing else.
    container = e.docker("create", "rl-agent").strip()
    e.docker("cp", container + ":/usr/bin/rlctl", e.path + "/rlctl")
    e.docker("rm", container)
    same(subprocess.run(["ldd", e.path + "/rlctl"], check=False,
                        stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL).returncode, 1)


def seen(e, container, text, since=0):
    """Waits for a line of its log after the first since; how many are now."""
    def there():
        lines = e.docker("logs", container).splitlines()
        return any(re.search(text, line) for line in lines[since:]) and \
            len(lines)
    return poll("%s in the log of %s" % (text, container), there)


class Compose:
    """The compose file, its folder, and the program that reads it."""

    def __init__(self, e):
        self.e = e
        self.place = os.path.join(e.path, "deploy")
        shutil.copytree(DEPLOY, self.place)
        document = documents("compose.yaml")[0]
        # docker-compose 1.29, which Debian 12 has, knows less: no "name", and
        # conditions only with a version of their own.
        del document["name"]
        document["version"] = "2.4"
        with open(os.path.join(self.place, "compose.yaml"), "w",
                  encoding="utf-8") as f:
            yaml.safe_dump(document, f, sort_keys=False)

    def __call__(self, *args):
        return run(["docker-compose", "-p", "rl", "-f",
                    os.path.join(self.place, "compose.yaml")] + list(args),
                   env=self.e.env)

    def configure(self, old, new):
        """As an editor does: a new file takes the place of the old."""
        path = os.path.join(self.place, "compose", "etc", "rl-agent.json")
        with open(path, encoding="utf-8") as f:
            text = f.read()
        check(old in text, old)
        with open(path + ".new", "w", encoding="utf-8") as f:
            f.write(text.replace(old, new))
        os.rename(path + ".new", path)


def no_rights(e, container):
    """What the container of an application cannot do."""
    for command in (["quit"], ["drain"], ["reload"], ["set-rate", "x", "1"]):
        check(e.status("exec", container, "rlctl", *command)[0] != 0, command)
    status, said = e.status("exec", container, "rlctl", "check", "--bucket",
                            "b", "--window", "1000", "--limit", "1")
    same(status, 2, said)
    check("unauthorised" in said, said)
    check(e.status("exec", container, "rm", "/run/rl-agent/agent.sock")[0])


def test_compose(e):
    """a cluster, an agent and an application, through stops and restarts"""
    compose = Compose(e)
    compose("config", "-q")
    compose("up", "-d", "--no-build")
    app, agent = "rl_app_1", "rl_agent_1"
    # The application has waited for that.
    same(e.inspect(agent)["State"]["Health"]["Status"], "healthy")
    seen(e, app, "checks out: Allowed")
    n = seen(e, app, "has to wait: Denied")
    no_rights(e, app)

    compose("stop", "sandbox")
    n = seen(e, app, "checks out: Failed.*reason=timeout", n)
    compose("start", "sandbox")
    n = seen(e, app, "Allowed", n)

    # One restart that is asked for, one that is not.
    compose("restart", "agent")
    n = seen(e, app, "Allowed", n)
    e.docker("kill", agent)
    poll("the agent to start again",
         lambda: not e.inspect(agent)["State"]["Running"] or
         e.inspect(agent)["RestartCount"])
    compose("start", "agent")
    n = seen(e, app, "Allowed", n)

    # A reload with a mistake, and one without.
    compose.configure('"limit": 2', '"limit": "2"')
    poll("the mistake to be seen", lambda: "limit" in e.docker(
        "exec", agent, "rlctl", "status"))
    seen(e, agent, r"reload.*resources\[0\]\.limit")
    n = seen(e, app, "Allowed|Denied", n)
    compose.configure('"limit": "2"', '"limit": 1000000')
    poll("the limit", lambda: "1000000" in e.docker(
        "exec", agent, "rlctl", "explain", "checkout", "--key", "k"))
    seen(e, app, "Allowed", n)

    started = e.inspect(app)["State"]["StartedAt"]
    same(e.docker("exec", agent, "rlctl", "health"), e.docker(
        "exec", agent, "rlctl", "health"))
    compose("stop", "agent")
    same(e.inspect(agent)["State"]["ExitCode"], 0)
    seen(e, app, "Failed.*reason=unavailable")
    same(e.inspect(app)["State"]["StartedAt"], started)
    compose("down", "-v", "-t", "2")


def keygen(e, number):
    return e.docker("run", "--rm", "--network", "none", "rl-sandbox", "keygen",
                    "--auth", "aes", "--key-id", str(number))


class Cluster:
    """A network with nameserver and servers, and the objects of a manifest."""

    def __init__(self, e, name, manifest):
        self.e, self.name = e, name
        self.node = os.path.join(e.path, name)
        os.mkdir(self.node)
        os.chmod(self.node, 0o755)
        os.chmod(e.path, 0o755)
        self.objects = documents("kubernetes", manifest)
        self.data = {o["metadata"]["name"]: o["data"] for o in self.objects
                     if o["kind"] == "ConfigMap"}
        self.keys = [keygen(e, 7), keygen(e, 8)]
        self.data["rl-agent-key"] = {"main.key": self.keys[0]}
        argv = ["run", "-d", "--name", name, "--dns", "127.0.0.1", "--user",
                "0:0", "--network", "none"]
        files = []
        for n, key in enumerate(self.keys):
            path = os.path.join(self.node, "%d.key" % n)
            with open(path, "w", encoding="ascii") as f:
                f.write(key)
            argv += ["-v", "%s:/key/%d:ro" % (path, n)]
            files += ["--key-file", "/key/%d" % n]
        # The manifests name no server: what the key's name leads to.
        zone = "p0.ratelimitly.com"
        self.zones = ["c-7." + zone, "c-8." + zone]
        self.network = "container:" + name
        e.docker(*argv, "rl-sandbox", *files, "--cluster", "3",
                 "--dns", "127.0.0.1:53", "--zone", self.zones[0])
        seen(e, name, '"servers"')

    def spec(self, kind):
        return [o["spec"]["template"]["spec"] for o in self.objects
                if o["kind"] == kind][0]

    def pod(self, name, kind, network=None):
        return Pod(self.e, "%s-%s" % (self.name, name), self.spec(kind),
                   network or self.network, self.node)


# The application is ours; everything else is as the manifest has it.
RUNS = {"rl-agent": "rl-agent", "folder": "rl-agent", "shop": "rl-agent-app"}


def rules_follow(e, cluster, pod, agent, app):
    """A ConfigMap and a Secret that change are loaded, mistakes are not."""
    volumes = {v["name"]: v for v in pod.spec["volumes"]}
    good = cluster.data["rl-agent"]["rl-agent.json"]
    for text, seen_by in (
            (good.replace('"limit": 100', '"limit": "x"'),
             ("status", "limit: ")),
            (good.replace('"limit": 100', '"limit": 55555'),
             ("explain checkout --key k", "55555"))):
        check(text != good)
        cluster.data["rl-agent"]["rl-agent.json"] = text
        pod.update(volumes["rl-agent-config"], cluster.data)
        command, word = seen_by
        poll(command, lambda c=command, w=word: w in e.docker(
            "exec", agent, "rlctl", *c.split()))
    seen(e, app, "Allowed")


def test_sidecar(e):
    """starts before the application, serves it, and ends after it"""
    cluster = Cluster(e, "sidecar", "sidecar.yaml")
    pod = cluster.pod("pod", "Deployment").up(cluster.data, RUNS)
    side, app = pod.spec["initContainers"][0], pod.spec["containers"][0]
    seen(e, pod.of(app), "checks out: Allowed")
    check(pod.probe(side, "livenessProbe"))
    same(e.docker("exec", pod.of(side), "rlctl", "wait"), "")
    no_rights(e, pod.of(app))
    check("warning" not in e.docker("logs", pod.of(side)),
          e.docker("logs", pod.of(side)))
    rules_follow(e, cluster, pod, pod.of(side), pod.of(app))
    # A sidecar that dies is started again, and found by the application.
    e.docker("kill", pod.of(side))
    e.docker("start", pod.of(side))
    n = len(e.docker("logs", pod.of(app)).splitlines())
    seen(e, pod.of(app), "Allowed", n)
    pod.stop(app)
    same(pod.stop(side), 0)
    pod.remove()
    e.docker("rm", "-f", cluster.name)


def test_daemonset(e):
    """one agent is replaced by another while an application goes on"""
    cluster = Cluster(e, "daemon", "daemonset.yaml")
    pod = cluster.pod("agent", "DaemonSet").up(cluster.data, RUNS)
    agent = pod.spec["containers"][0]
    shop = cluster.pod("shop", "Deployment", "none").up(cluster.data, RUNS)
    app = shop.spec["containers"][0]
    seen(e, shop.of(app), "checks out: Allowed")
    for kind in ("readinessProbe", "livenessProbe"):
        check(pod.probe(agent, kind), kind)
    no_rights(e, shop.of(app))
    rules_follow(e, cluster, pod, pod.of(agent), shop.of(app))
    # A rollout: the old pod ends, the next has another root and the same node.
    same(pod.stop(agent), 0)
    pod.remove()
    n = seen(e, shop.of(app), "reason=unavailable")
    pod = cluster.pod("next", "DaemonSet").up(cluster.data, RUNS)
    seen(e, shop.of(app), "Allowed", n)
    # Two at once cannot be: the second says so, and the first goes on.
    other = cluster.pod("surge", "DaemonSet").up(cluster.data, RUNS)
    seen(e, other.of(agent), "in use")
    n = len(e.docker("logs", shop.of(app)).splitlines())
    seen(e, shop.of(app), "Allowed", n)
    same(e.inspect(shop.of(app))["RestartCount"], 0)
    for each in (other, pod, shop):
        each.remove()
    e.docker("rm", "-f", cluster.name)


def attempt(number, test, e):
    begin = time.monotonic()
    word, trouble, skipped = "ok", "", ""
    try:
        test(e)
    except Skip as skip:
        skipped = " # SKIP %s" % skip
    except Exception:  # pylint: disable=broad-except
        word, trouble = "not ok", traceback.format_exc()
    for line in trouble.splitlines():
        print("#", line)
    print("%s %d - %s: %s%s" % (word, number, test.__name__,
                                test.__doc__.split("\n")[0], skipped))
    print("# %.0f s" % (time.monotonic() - begin))
    sys.stdout.flush()
    return word == "ok"


def main():
    tests = [test_lints, test_images, test_compose, test_sidecar,
             test_daemonset]
    try:
        if yaml is None:
            raise Skip("no python3-yaml")
        engines.needs()
    except Skip as skip:
        required = os.environ.get("RLA_REQUIRE_CONTAINERS") == "1"
        print("1..1\nnot ok 1 - %s" % skip if required else
              "1..0 # SKIP %s" % skip)
        return 1 if required else 0
    print("1..%d" % len(tests))
    e = Engine()
    good = True
    try:
        for number, test in enumerate(tests, 1):
            if not good and number > 2:
                print("not ok %d - %s: the images are missing" % (
                    number, test.__name__))
                continue
            good &= attempt(number, test, e)
    finally:
        e.close()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
