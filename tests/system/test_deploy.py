#!/usr/bin/env python3
"""
What deploy/ shows works with these programs: each configuration is good, with
no warning, and serves its application; each command that an engine is told to
call succeeds; the images have the libraries that the programs need. What the
files say of containers themselves: tests/lint/deploy.py and tests/containers.
"""

import json
import os
import re
import shutil
import signal
import subprocess

import harness
from harness import check, poll, same

SOURCE = os.path.abspath(os.environ.get("srcdir", "."))
DEPLOY = os.path.join(SOURCE, "deploy")
ZONE = "rl.example"
RUN = "/run/rl-agent"


def read(*path):
    with open(os.path.join(DEPLOY, *path), encoding="utf-8") as f:
        return f.read()


def documents(*path):
    try:
        import yaml  # pylint: disable=import-outside-toplevel
    except ImportError:
        raise harness.Skip("no python3-yaml") from None
    return [d for d in yaml.safe_load_all(read(*path)) if d]


def health_check():
    """The command of the image."""
    found = re.search(r"^HEALTHCHECK .* CMD (\[.*\])$", read("Dockerfile"),
                      re.M)
    return json.loads(found.group(1))


def pods(objects):
    return [o["spec"]["template"]["spec"] for o in objects
            if "template" in o.get("spec", {})]


def probes(objects):
    """The commands that the kubelet is told to call in the agent."""
    return [c[probe]["exec"]["command"]
            for spec in pods(objects)
            for c in spec.get("initContainers", []) + spec["containers"]
            for probe in ("startupProbe", "readinessProbe", "livenessProbe")
            if probe in c]


class World:
    """An agent as deployed, but for its folders and its servers."""

    def __init__(self, lab, text):
        self.lab = lab
        self.secrets = os.path.join(lab.path, "secrets")
        self.env = {"CREDENTIALS_DIRECTORY": self.secrets}
        os.mkdir(self.secrets)
        key = os.path.join(self.secrets, "main.key")
        os.rename(lab.keygen("main"), key)
        os.chmod(key, 0o440)  # as a Secret is: the group may read it
        os.mkdir(os.path.join(lab.path, "run"))
        text = text.replace(RUN, os.path.join(lab.path, "run"))
        self.good(text)
        sandbox = lab.sandbox(key, zone=ZONE)
        document = json.loads(text)
        tenant = document["tenants"]["main"]
        tenant["dns"] = {"name": ZONE, "nameservers": [sandbox.dns]}
        tenant["policy"] = harness.POLICY
        self.paths = [v["path"] for k, v in document["listeners"].items()
                      if not k.startswith("_")]
        self.rule = next(iter(document["rules"]))
        self.agent = harness.Agent(
            lab, lab.name("agent"),
            [harness.AGENT, "-c", lab.config(document)], self.paths[0],
            self.env).ready()

    def good(self, text):
        """As it is shipped, but for /run; there is nothing to warn of."""
        try:
            import jsonschema  # pylint: disable=import-outside-toplevel
            with open(os.path.join(SOURCE, "daemon",
                                   "rl-agent.schema.json"),
                      encoding="utf-8") as f:
                jsonschema.validate(json.loads(text), json.load(f))
        except ImportError:
            pass  # rl-agent -t is stricter
        path = os.path.join(self.lab.path, "shipped.json")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        done = subprocess.run(
            [harness.AGENT, "-t", "-c", path], stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, env=self.lab.env(self.env), check=False)
        same(done.returncode, 0, done.stdout)
        same(done.stdout.count(b"\n"), 1, done.stdout)
        check(b"warning" not in done.stdout, done.stdout)

    def command(self, argv):
        """One of rlctl, as called in the agent's container."""
        same(argv[0], "rlctl")
        return self.lab.ctl(*argv[1:], env={"RL_AGENT_SOCKET": self.paths[0]},
                            expect=None).status

    def application(self):
        """May do what it is for, and no more."""
        path = self.paths[1]
        self.lab.ctl("--socket", path, "check", self.rule, "--key", "k")
        self.lab.ctl("--socket", path, "check", "--bucket", "b", "--window",
                     "1000", "--limit", "1", expect=2)
        same(os.listdir(os.path.dirname(path)).count("control.sock"), 0)
        same(os.stat(path).st_mode & 0o777, 0o660)


def deployed(lab, text, commands):
    world = World(lab, text)
    world.application()
    for argv in commands:
        same(world.command(argv), 0, argv)
    same(world.agent.stop(), 0)
    for argv in commands:
        same(world.command(argv), 1, argv)


def test_compose(lab):
    deployed(lab, read("compose", "etc", "rl-agent.json"), [health_check()])


def kubernetes(lab, name):
    objects = documents("kubernetes", name)
    text = [o["data"]["rl-agent.json"] for o in objects
            if o["kind"] == "ConfigMap"]
    same(len(text), 1)
    commands = probes(objects)
    check(commands)
    deployed(lab, text[0], commands)


def test_sidecar(lab):
    kubernetes(lab, "sidecar.yaml")


def test_daemonset(lab):
    kubernetes(lab, "daemonset.yaml")


def test_key_is_replaced(lab):
    """by a link that is swapped, as Secrets are, also for a credential"""
    world = World(lab, read("compose", "etc", "rl-agent.json"))
    agent = world.agent
    same(agent.tenant("main")["key_id"], "7")
    next_key = lab.keygen("next", key_id=8)
    os.mkdir(os.path.join(world.secrets, "..2"))
    os.rename(next_key, os.path.join(world.secrets, "..2", "main.key"))
    os.symlink("..2/main.key", os.path.join(world.secrets, "new"))
    os.rename(os.path.join(world.secrets, "new"),
              os.path.join(world.secrets, "main.key"))
    poll("the new key", lambda: agent.tenant("main")["key_id"] == "8")


def test_application(lab):
    """the example goes on while there is a limit, and ends when asked"""
    world = World(lab, read("compose", "etc", "rl-agent.json"))
    app = harness.Process(
        lab, "app", [os.path.join(DEPLOY, "compose", "app.sh")],
        {"PATH": os.path.dirname(harness.CTL) + ":" + os.environ["PATH"],
         "PAUSE": "0.05", "RL_AGENT_SOCKET": world.paths[1]})
    poll("a check out", lambda: "checks out: Allowed" in app.out())
    poll("a limit", lambda: "has to wait: Denied" in app.out())
    same(world.agent.stop(), 0)
    poll("no agent", lambda: "reason=unavailable" in app.out())
    app.signal(signal.SIGTERM)
    same(app.wait(), 0)


def debian():
    try:
        with open("/etc/os-release", encoding="utf-8") as f:
            return "VERSION_CODENAME=bookworm" in f.read()
    except OSError:
        return False


def libraries(program):
    """The packages of what it is itself linked with."""
    told = [subprocess.run(argv + [program], stdout=subprocess.PIPE,
                           check=True).stdout.decode()
            for argv in (["readelf", "-d"], ["ldd"])]
    own = re.findall(r"NEEDED.*\[(\S+)\]", told[0])
    paths = [path for name, path in re.findall(r"(\S+) => (/\S+)", told[1])
             if name in own]
    # Either way that /lib and /usr/lib, which are one, may be written.
    names = [re.sub("^(/usr)?", usr, os.path.realpath(path))
             for path in paths for usr in ("", "/usr")]
    found = subprocess.run(["dpkg-query", "-S"] + names,
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                           check=False)
    packages = {line.split(":")[0] for line in
                found.stdout.decode().splitlines()}
    return packages - {"libc6", "libgcc-s1", "libasan8", "libubsan1"}


def test_libraries(lab):
    """the images have those that the programs are linked with, and no more"""
    if not debian() or not shutil.which("dpkg-query"):
        raise harness.Skip("only Debian 12 has the packages of the image")
    stage = read("Dockerfile").split(" AS runtime\n")[1].split("FROM ")[0]
    listed = set(re.findall(r"\blib[a-z]+[a-z0-9.-]+", stage))
    same(listed, libraries(harness.AGENT) | libraries(harness.SANDBOX))
    same(lab.processes, [])


if __name__ == "__main__":
    harness.run([value for name, value in list(globals().items())
                 if name.startswith("test_")])
