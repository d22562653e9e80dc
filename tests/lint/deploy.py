#!/usr/bin/env python3
"""
What deploy/ shows is consistent: names that are referred to exist, sockets are
shared by their folder, everything runs as a number without rights, and nothing
but what says so needs a shell. Parses the files, runs nothing of the build.
RLA_REQUIRE_TOOLS=1 makes a missing tool a failure.
"""

import copy
import json
import os
import re
import shutil
import subprocess
import sys

os.chdir(os.environ.get("srcdir", "."))
REQUIRED = os.environ.get("RLA_REQUIRE_TOOLS") == "1"
AGENT = 10001
SHELLS = ("sh", "bash", "dash", "/bin/sh", "/bin/bash", "/bin/dash")
RUN, CONFIG = "/run/rl-agent", "/etc/rl-agent"

try:
    import yaml
except ImportError:
    if REQUIRED:
        print("1..1\nnot ok 1 - deploy: no python3-yaml")
        sys.exit(1)
    print("1..0 # SKIP no python3-yaml")
    sys.exit(0)


def documents(path):
    with open(path, encoding="utf-8") as f:
        return [d for d in yaml.safe_load_all(f) if d]


# The Dockerfile.

def instructions(text):
    """(stage, word, rest) of each, continued lines joined."""
    text = re.sub(r"^\s*#.*\n", "", text, flags=re.M)
    text = text.replace("\\\n", " ")
    stage, found = None, []
    for line in filter(None, map(str.strip, text.split("\n"))):
        word, rest = line.split(None, 1)
        if word == "FROM":
            stage = rest.split()[2] if " AS " in rest else rest
        found.append((stage, word, rest.strip()))
    return found


def dockerfile(text):
    """What is wrong with the images that are made to be run."""
    bad, all_of = [], instructions(text)
    for stage in ("sandbox", "app", "agent"):
        own = {w: r for s, w, r in all_of if s == stage}
        if not own:
            bad.append("no stage " + stage)
            continue
        if not re.fullmatch(r"[1-9][0-9]*:[1-9][0-9]*", own.get("USER", "")):
            bad.append("%s: USER is no number: %s" % (stage, own.get("USER")))
        if own.get("STOPSIGNAL") != "SIGTERM":
            bad.append(stage + ": STOPSIGNAL is not SIGTERM")
        if not own.get("ENTRYPOINT", "").startswith("["):
            bad.append(stage + ": ENTRYPOINT goes through a shell")
    agent = {w: r for s, w, r in all_of if s == "agent"}
    if agent.get("USER") != "%d:%d" % (AGENT, AGENT):
        bad.append("agent: USER is not %d" % AGENT)
    health = agent.get("HEALTHCHECK", "").partition(" CMD ")[2]
    if health != '["rlctl", "health"]':
        bad.append("agent: HEALTHCHECK is not rlctl health")
    if json.loads(agent.get("VOLUME", "[]")) != [RUN]:
        bad.append("agent: VOLUME is not " + RUN)
    if all_of[-1][0] != "agent":
        bad.append("the last stage, which is the default, is not agent")
    return bad


# Configurations.

def configuration(where, text):
    """The listeners of a configuration, and what is wrong with them."""
    listeners = json.loads(text)["listeners"]
    own, *apps = [v for k, v in listeners.items() if not k.startswith("_")]
    bad = []
    if own["path"] != RUN + "/agent.sock" or own["mode"] != "0600":
        bad.append(where + ": the first listener is not the agent's own")
    for app in apps:
        if os.path.basename(app["path"]) != "agent.sock" or \
                os.path.dirname(app["path"]) == RUN:
            bad.append("%s: %s is in no folder of its own" % (
                where, app["path"]))
        if app["mode"] != "0660" or app.get("adhoc", True):
            bad.append("%s: %s is too open" % (where, app["path"]))
    return [os.path.dirname(app["path"]) for app in apps], bad


# Compose.

def compose(document, config):
    """What is wrong with the compose file."""
    services, volumes = document["services"], document["volumes"]
    folders, bad = configuration("compose", config)
    mounts = {}
    for name, service in services.items():
        mounts[name] = {}
        for text in service.get("volumes", []):
            source, target = text.split(":")[:2]
            mounts[name][target] = source
            if not source.startswith(".") and source not in volumes:
                bad.append("%s: no volume %s" % (name, source))
            if source.endswith(".sock") or source.startswith(".") and \
                    not os.path.isdir(os.path.join("deploy", source)):
                bad.append("%s: %s is no folder" % (name, source))
        for other in service.get("depends_on", {}):
            if other not in services:
                bad.append("%s depends on %s" % (name, other))
        if not service.get("read_only") or service.get("cap_drop") != ["ALL"] \
                or "no-new-privileges:true" not in service["security_opt"]:
            bad.append(name + ": has more rights than it needs")
        if name != "key" and set(service.get("entrypoint", [])) & set(SHELLS):
            bad.append(name + ": needs a shell")
    if mounts["agent"].get(folders[0]) != mounts["app"].get(RUN):
        bad.append("the application does not have the folder of its socket")
    if services["app"]["group_add"] != [str(AGENT)]:
        bad.append("the application is not in the socket's group")
    if "/etc/rl-agent" not in mounts["agent"]:
        bad.append("the agent has no configuration")
    return bad


# Kubernetes.

def restricted(where, context, pod):
    """As the Pod Security Standard "restricted" has it."""
    bad = []
    for key in ("runAsUser", "runAsGroup", "runAsNonRoot"):
        if not context.get(key, pod.get(key)):
            bad.append("%s: %s" % (where, key))
    if pod.get("seccompProfile") != {"type": "RuntimeDefault"}:
        bad.append(where + ": seccompProfile")
    return bad


def container(where, c, pod, volumes):
    """What is wrong with one container of a pod."""
    bad, context = [], c.get("securityContext", {})
    if c["name"] != "folder":
        bad += restricted(where, context, pod)
        if context.get("capabilities") != {"drop": ["ALL"]}:
            bad.append(where + ": capabilities")
    if context.get("allowPrivilegeEscalation") is not False or \
            context.get("readOnlyRootFilesystem") is not True:
        bad.append(where + ": has more rights than it needs")
    if "memory" not in c.get("resources", {}).get("limits", {}):
        bad.append(where + ": no limit of memory")
    for mount in c.get("volumeMounts", []):
        if mount["name"] not in volumes:
            bad.append("%s: no volume %s" % (where, mount["name"]))
        if "subPath" in mount or mount["mountPath"].endswith(".sock"):
            bad.append(where + ": mounts a file, or what never changes")
    commands = [c.get("command", [])]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        if probe in c:
            commands.append(c[probe]["exec"]["command"])
            if commands[-1][0] != "rlctl":
                bad.append("%s: %s is not rlctl" % (where, probe))
    if c.get("lifecycle"):
        bad.append(where + ": SIGTERM drains; a preStop comes too early")
    if any(set(command) & set(SHELLS) for command in commands):
        bad.append(where + ": needs a shell")
    return bad


def is_agent(c):
    return c["name"] == "rl-agent"


def pod(where, spec, maps):
    """What is wrong with a pod; maps are the ConfigMaps by name."""
    bad, volumes = [], {v["name"]: v for v in spec.get("volumes", [])}
    every = spec.get("initContainers", []) + spec["containers"]
    if len({c["name"] for c in every}) != len(every):
        bad.append(where + ": two containers of one name")
    used = {m["name"] for c in every for m in c.get("volumeMounts", [])}
    bad += ["%s: nobody mounts %s" % (where, v) for v in set(volumes) - used]
    for c in every:
        bad += container("%s/%s" % (where, c["name"]), c,
                         spec.get("securityContext", {}), volumes)
    for volume in volumes.values():
        name = volume.get("configMap", {}).get("name")
        if name and name not in maps:
            bad.append("%s: no ConfigMap %s" % (where, name))
    if spec.get("automountServiceAccountToken") is not False:
        bad.append(where + ": has a token that it does not need")
    for c in filter(is_agent, every):
        bad += agent(where, spec, c, volumes, maps)
    return bad


def agent(where, spec, c, volumes, maps):
    """What is wrong with the container of the agent, and who it serves."""
    mounts = {m["mountPath"]: m["name"] for m in c["volumeMounts"]}
    name = volumes[mounts[CONFIG]]["configMap"]["name"]
    folders, bad = configuration(where, maps[name]["rl-agent.json"])
    if c["securityContext"]["runAsUser"] != AGENT or \
            spec["securityContext"]["fsGroup"] != AGENT:
        bad.append(where + ": is not the user of the image")
    if "secret" not in volumes[mounts["/run/secrets/rl-agent"]]:
        bad.append(where + ": the key is no Secret")
    for other in spec["containers"]:
        if is_agent(other):
            continue
        theirs = {m["mountPath"]: m for m in other["volumeMounts"]}
        if theirs[RUN]["name"] != mounts.get(folders[0]) or \
                not theirs[RUN].get("readOnly"):
            bad.append(where + ": the application has another folder")
    return bad


def shared_folders(found, maps):
    """hostPath: what pods mount is the folder of a listener."""
    bad = []
    known = [folder for data in maps.values() for folder in
             configuration("", data["rl-agent.json"])[0]]
    for name, spec in found:
        for volume in spec.get("volumes", []):
            path = volume.get("hostPath", {}).get("path")
            if path and path != RUN and path not in known:
                bad.append("%s: %s is no listener's folder" % (name, path))
            if path == RUN and not any(map(is_agent, spec["containers"])):
                bad.append(name + ": has the control socket")
            if path in known and AGENT not in spec["securityContext"].get(
                    "supplementalGroups", []):
                bad.append(name + ": is not in the socket's group")
    return bad


def kubernetes(objects):
    """What is wrong with the objects of a file."""
    bad, found = [], []
    maps = {o["metadata"]["name"]: o["data"] for o in objects
            if o["kind"] == "ConfigMap"}
    for o in objects:
        if "template" not in o.get("spec", {}):
            continue
        template = o["spec"]["template"]
        name = "%s %s" % (o["kind"], o["metadata"]["name"])
        labels = template["metadata"]["labels"].items()
        if not o["spec"]["selector"]["matchLabels"].items() <= labels:
            bad.append(name + ": does not select its own pods")
        if o["kind"] == "DaemonSet" and o["spec"]["updateStrategy"][
                "rollingUpdate"].get("maxSurge", 0) != 0:
            bad.append(name + ": two agents cannot have the same sockets")
        bad += pod(name, template["spec"], maps)
        found.append((name, template["spec"]))
    for name, spec in found:
        for c in filter(is_agent, spec.get("initContainers", [])):
            if c.get("restartPolicy") != "Always":
                bad.append(name + ": the agent is no sidecar")
            if "startupProbe" not in c:
                bad.append(name + ": nobody waits for the agent")
    return bad + shared_folders(found, maps)


# That the checks see something: each breaks one thing in a good file.

def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def broken_dockerfiles(text):
    yield text.replace("USER 10001:10001", "USER agent")
    yield text.replace('ENTRYPOINT ["rl-agent"]', "ENTRYPOINT rl-agent")
    yield text.replace('CMD ["rlctl", "health"]', "CMD rlctl health")
    yield text.replace('VOLUME ["/run/rl-agent"]', "")
    yield text.replace("STOPSIGNAL SIGTERM\nHEALTH", "STOPSIGNAL SIGINT\nHEALTH")


def change(document, value, *path):
    """A copy in which what path leads to has another value."""
    made = copy.deepcopy(document)
    at = made
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return made


def broken_compose(good):
    services = ("services",)
    yield change(good, ["keys:/run/rl-agent"], *services, "app", "volumes")
    yield change(good, ["gone:/run/rl-agent"], *services, "app", "volumes")
    yield change(good, [], *services, "app", "group_add")
    yield change(good, [], *services, "agent", "cap_drop")
    yield change(good, ["sh", "-c"], *services, "agent", "entrypoint")
    yield change(good, {"gone": {}}, *services, "app", "depends_on")


def broken_sidecar(good):
    spec = (1, "spec", "template", "spec")
    side, app = spec + ("initContainers", 0), spec + ("containers", 0)
    yield change(good, "OnFailure", *side, "restartPolicy")
    yield change(good, 0, *side, "securityContext", "runAsUser")
    yield change(good, ["sh"], *side, "livenessProbe", "exec", "command")
    yield change(good, {"preStop": {}}, *side, "lifecycle")
    yield change(good, "gone", *side, "volumeMounts", 0, "name")
    yield change(good, "rl-agent-own", *app, "volumeMounts", 0, "name")
    yield change(good, "x", *app, "volumeMounts", 0, "subPath")
    yield change(good, "gone", *spec, "volumes", 0, "configMap", "name")
    yield change(good, {}, *spec, "securityContext", "seccompProfile")
    yield change(good, {"cpu": 1}, *app, "resources", "limits")
    yield change(good, good[0]["data"]["rl-agent.json"].replace(
        "/app/", "/"), 0, "data", "rl-agent.json")


def broken_daemonset(good):
    agents, app = (2, "spec"), (3, "spec", "template", "spec")
    yield change(good, 1, *agents, "updateStrategy", "rollingUpdate",
                 "maxSurge")
    yield change(good, "/run/rl-agent/gone", *app, "volumes", 0, "hostPath",
                 "path")
    yield change(good, "/run/rl-agent", *app, "volumes", 0, "hostPath",
                 "path")
    yield change(good, [], *app, "securityContext", "supplementalGroups")
    yield change(good, {"app": "x"}, *agents, "selector", "matchLabels")


def complaints(judge, value):
    """What is wrong; a file that lacks what all have is wrong, too."""
    try:
        return judge(value)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        return [repr(error)]


COUNT = 0
FAILED = 0


def report(name, bad):
    global COUNT, FAILED  # pylint: disable=global-statement
    COUNT += 1
    FAILED += bool(bad)
    for line in bad:
        print("#", line)
    print("%s %d - %s" % ("not ok" if bad else "ok", COUNT, name))


def judged(name, judge, good, broken):
    report(name, complaints(judge, good))
    report(name + ": faults are seen",
           ["fault %d is not" % n for n, value in enumerate(broken, 1)
            if value == good or not complaints(judge, value)])


def main():
    print("1..9")
    text = read("deploy/Dockerfile")
    judged("Dockerfile", dockerfile, text, broken_dockerfiles(text))
    config = read("deploy/compose/etc/rl-agent.json")
    good = documents("deploy/compose.yaml")[0]
    judged("compose.yaml", lambda d: compose(d, config), good,
           broken_compose(good))
    for name, broken in (("sidecar", broken_sidecar),
                         ("daemonset", broken_daemonset)):
        good = documents("deploy/kubernetes/%s.yaml" % name)
        judged(name + ".yaml", kubernetes, good, broken(good))
    if shutil.which("yamllint"):
        done = subprocess.run(
            ["yamllint", "-s", "-f", "parsable", "-c", "deploy/.yamllint",
             "deploy"], stdout=subprocess.PIPE, check=False)
        report("yamllint", done.stdout.decode().splitlines())
    elif REQUIRED:
        report("yamllint", ["no yamllint"])
    else:
        print("ok 9 - yamllint # SKIP no yamllint")
    return FAILED != 0


if __name__ == "__main__":
    sys.exit(main())
