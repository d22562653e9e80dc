#!/usr/bin/env python3
"""
The units of systemd/, without a systemd that runs: they are well formed, keep
the service in tight bounds, and fit the agent's configuration and one another.
Needs systemd-analyze; RLA_REQUIRE_TOOLS=1 makes its absence a failure, but not
with musl, which systemd does not run on.
"""

import fnmatch
import glob
import json
import os
import platform
import re
import shutil
import subprocess

import harness
import manager
from harness import check, same

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                      os.pardir, os.pardir, "systemd")
UNITS = ("rl-agent.service", "rl-agent.socket", "rl-agent-control.socket",
         "rl-agent-gateway@.socket")
# In tenths, as systemd-analyze takes it.
EXPOSURE = 15


def render(lab, change=lambda name, text: text):
    """The units as they are installed, for the programs of the build."""
    folder = os.path.join(lab.path, "units")
    os.makedirs(folder, exist_ok=True)
    for name in UNITS:
        with open(os.path.join(SOURCE, name + ".in"), encoding="utf-8") as f:
            text = f.read()
        for word, value in (("sbindir", os.path.dirname(harness.AGENT)),
                            ("bindir", os.path.dirname(harness.CTL)),
                            ("sysconfdir", "/etc")):
            text = text.replace("@%s@" % word, value)
        same(re.findall("@[a-z]+dir@", text), [], name)
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(change(name, text))
    return [os.path.join(folder, name) for name in UNITS]


def analyze(*args):
    """systemd-analyze; its exit status and all that it says."""
    if shutil.which("systemd-analyze") is None:
        if os.environ.get("RLA_REQUIRE_TOOLS") == "1" and \
                platform.libc_ver()[0] == "glibc":
            raise harness.Failure("there is no systemd-analyze")
        raise harness.Skip("there is no systemd-analyze")
    done = subprocess.run(
        ["systemd-analyze", "--no-pager"] + list(args),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, timeout=harness.PATIENCE, check=False)
    return done.returncode, done.stdout.decode()


def settings(path):
    """KEY to its values, whatever the section."""
    found = {}
    with open(path, encoding="utf-8") as f:
        for line in f:
            if re.match("[A-Z][A-Za-z]+=", line):
                key, value = line.strip().split("=", 1)
                found.setdefault(key, []).append(value)
    return found


def test_verify(lab):
    """systemd-analyze verify has nothing to say"""
    same(analyze("verify", "--man=no", *render(lab)), (0, ""))
    # And would have, about a key that it does not know.
    status, said = analyze("verify", "--man=no", *render(
        lab, lambda name, text: text.replace("WatchdogSec", "WatchDogSec")))
    check("WatchDogSec" in said, status, said)


def test_exposure(lab):
    """systemd-analyze security: 1.5 or lower"""
    units = render(lab)
    args = ("security", "--offline=true", "--threshold=%d" % EXPOSURE)
    status, said = analyze(*args, units[0])
    overall, = [line for line in said.splitlines() if "Overall" in line]
    same(status, 0, overall)
    check(float(re.search(r"[0-9]+\.[0-9]", overall).group()) <=
          EXPOSURE / 10, overall)
    print("# %s" % overall.strip())
    # And would not be, with less.
    units = render(lab, lambda name, text: text.replace(
        "ProtectSystem=strict", "ProtectSystem=no").replace(
            "CapabilityBoundingSet=\n", ""))
    check(analyze(*args, units[0])[0] != 0)


def test_settings(lab):
    """what a restart, a crash loop and a container need"""
    service, sock, control, gateway = [settings(path)
                                       for path in render(lab)]
    same(service["Type"], ["notify"])
    check(int(service["WatchdogSec"][0]) > 0, service["WatchdogSec"])
    same(service["ExecReload"], [harness.CTL + " reload"])
    same(service["StartLimitIntervalSec"], ["0"])
    # Peers would have the uid 65534; a folder that goes takes the mount along.
    for key in ("PrivateUsers", "RuntimeDirectory", "BindPaths", "RootImage"):
        check(key not in service, key)
    # A service that has failed for good has no pause between two starts.
    check("RestartPreventExitStatus" not in service)
    same(service["Restart"], ["on-failure"])
    for unit, name, mode in ((sock, "main", "0660"),
                             (control, "control", "0600"),
                             (gateway, "gateway.%i", "0660")):
        same(unit["FileDescriptorName"], [name])
        same(unit["SocketMode"], [mode])
        same(unit["TriggerLimitBurst"], ["0"])
        same(unit["SocketUser"], service["User"])
        # Clients of one that is stopped wait, so it must stay.
        check("RemoveOnStop" not in unit)
        # Clients of one that is down start it, with or without a file.
        check(fnmatch.fnmatch(unit["ListenStream"][0],
                              service["ConditionPathExistsGlob"][0].strip("|")))
    for unit in control, gateway:
        same(unit["Service"], ["rl-agent.service"])
    with open(os.path.join(SOURCE, "rl-agent.tmpfiles.conf"),
              encoding="utf-8") as f:
        check("d %s 0755 rl-agent rl-agent -" % os.path.dirname(
            sock["ListenStream"][0]) in f.read())


def test_gateway(_):
    """the example for nginx listens where the unit for gateways does"""
    path = os.path.join(SOURCE, os.pardir, "deploy", "proxies",
                        "rl-agent.json")
    with open(path, encoding="utf-8") as f:
        gateway = json.load(f)["gateway"]
    sock = settings(os.path.join(SOURCE, "rl-agent-gateway@.socket.in"))
    same(gateway["nginx"]["listen"],
         "unix:" + sock["ListenStream"][0].replace("%i", "nginx"))


def test_rendered(_):
    """what make has made of them holds no placeholder"""
    folder = os.environ.get("top_builddir", ".")
    found = glob.glob(os.path.join(folder, "systemd", "rl-agent*.s*"))
    found = [path for path in found if not path.endswith((".in", ".new"))]
    for path in found:
        with open(path, encoding="utf-8") as f:
            text = f.read()
        same(re.findall(r"@[a-z]+@|\$\{", text), [], path)
        check("/rl-agent" in text)
    check(len(found) in (0, len(UNITS)), found)


def test_they_fit(lab):
    """the sockets as the units name them are taken by the defaults"""
    _, sock, control, gateway = [settings(path) for path in render(lab)]
    key = lab.keygen("main")
    document = {"tenants": {"main": {
        "key": {"file": key},
        "servers": [{"id": "1", "address": "127.0.0.1:9"}]}},
                "rules": {}, "listeners": {"main": {}},
                "gateway": {"front": {}}}
    # Their folder, which no test may touch, becomes one of the lab.
    folder = os.path.dirname(sock["ListenStream"][0])
    here = os.path.dirname(lab.socket_path())
    document["listeners"]["main"]["path"] = sock["ListenStream"][0].replace(
        folder, here)
    def named(text):
        return text.replace(folder, here).replace("%i", "front")
    document["gateway"]["front"]["listen"] = "unix:" + named(
        gateway["ListenStream"][0])
    m = manager.Manager(lab)
    for unit in (sock, control, gateway):
        m.listen(named(unit["FileDescriptorName"][0]),
                 named(unit["ListenStream"][0]),
                 int(unit["SocketMode"][0], 8))
    agent = m.start(lab.config(document))
    status = json.loads(agent.ctl("status", "--json").out)
    same([(row["name"], row["activated"])
          for row in status["listeners"] + status["gateway"]],
         [("main", True), ("control", True), ("front", True)])
    # With the modes of the units, the defaults have nothing to warn of.
    check(" activation " not in agent.err(), agent.err())
    agent.ctl("reload")
    same(agent.stop(), 0)


if __name__ == "__main__":
    harness.run([value for name, value in list(globals().items())
                 if name.startswith("test_")])
