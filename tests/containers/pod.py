"""
A pod of a Kubernetes manifest, run by Docker as a kubelet would: its volumes,
its security contexts, its order and its probes. What is not translated is
refused, so that nothing of a manifest is passed over in silence.
"""

import os

from harness import check, poll, same

KNOWN_CONTAINER = {
    "name", "image", "command", "restartPolicy", "securityContext",
    "startupProbe", "readinessProbe", "livenessProbe", "resources",
    "volumeMounts"}
KNOWN_CONTEXT = {
    "runAsUser", "runAsGroup", "runAsNonRoot", "allowPrivilegeEscalation",
    "readOnlyRootFilesystem", "capabilities", "fsGroup", "supplementalGroups",
    "seccompProfile"}
UNITS = {"Mi": 1 << 20, "Gi": 1 << 30}


def publish(folder, version, files):
    """As the kubelet does: one link leads to all files, and is swapped."""
    place = os.path.join(folder, "..%d" % version)
    os.makedirs(place)
    for name, (text, mode, gid) in files.items():
        path = os.path.join(place, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, mode)
        os.chown(path, 0, gid)
        link = os.path.join(folder, name)
        if not os.path.islink(link):
            os.symlink(os.path.join("..data", name), link)
    os.symlink("..%d" % version, os.path.join(folder, "..tmp"))
    os.rename(os.path.join(folder, "..tmp"), os.path.join(folder, "..data"))


class Pod:
    """Its containers are NAME-CONTAINER."""

    def __init__(self, engine, name, spec, network, node):
        self.engine, self.name, self.spec = engine, name, spec
        self.network = network
        self.node = node  # a folder: the root of the node's files
        self.context = spec.get("securityContext", {})
        self.sources = {}
        self.versions = {}
        check(set(self.context) <= KNOWN_CONTEXT, self.context)

    # Volumes.

    def folder(self, volume):
        path = os.path.join(self.node, "%s-%s" % (self.name, volume))
        os.makedirs(path, exist_ok=True)
        os.chmod(path, 0o755)
        return path

    def volume(self, volume, objects):
        """What is mounted for it; objects are ConfigMaps and Secrets."""
        name, group = volume["name"], self.context.get("fsGroup", 0)
        if "emptyDir" in volume:
            made = "%s-%s" % (self.name, name)
            self.engine.docker(
                "volume", "create", "-d", "local", "-o", "type=tmpfs", "-o",
                "device=tmpfs", "-o", "o=mode=2777,gid=%d" % group, made)
            self.sources[name] = made
        elif "hostPath" in volume:
            at = self.node + volume["hostPath"]["path"]
            if volume["hostPath"]["type"] == "DirectoryOrCreate":
                os.makedirs(at, exist_ok=True)
            poll("the folder " + at, lambda: os.path.isdir(at))
            self.sources[name] = at
        else:
            self.sources[name] = self.folder(name)
            self.update(volume, objects)

    def update(self, volume, objects):
        """A ConfigMap or Secret with new data."""
        name, group = volume["name"], self.context.get("fsGroup", 0)
        if "configMap" in volume:
            data, mode = objects[volume["configMap"]["name"]], 0o644
        else:
            data = objects[volume["secret"]["secretName"]]
            mode = volume["secret"]["defaultMode"]
        self.versions[name] = self.versions.get(name, 0) + 1
        publish(self.sources[name], self.versions[name],
                {k: (text, mode, group) for k, text in data.items()})

    # Containers.

    def rights(self, c):
        """The arguments for its security context and the pod's."""
        own = c.get("securityContext", {})
        check(set(own) <= KNOWN_CONTEXT, own)
        both = dict(self.context, **own)
        check(both["runAsUser"] != 0 or not both.get("runAsNonRoot"), c)
        argv = ["--user", "%d:%d" % (both["runAsUser"], both["runAsGroup"])]
        groups = list(self.context.get("supplementalGroups", []))
        if "fsGroup" in self.context:
            groups.append(self.context["fsGroup"])
        for group in groups:
            argv += ["--group-add", str(group)]
        if both.get("readOnlyRootFilesystem"):
            argv.append("--read-only")
        if both.get("allowPrivilegeEscalation") is False:
            argv += ["--security-opt", "no-new-privileges"]
        for way in ("drop", "add"):
            for name in both["capabilities"].get(way, []):
                argv += ["--cap-" + way, name]
        return argv

    def start(self, c, image):
        check(set(c) <= KNOWN_CONTAINER, sorted(c))
        limit = c["resources"]["limits"]["memory"]
        argv = ["run", "-d", "--name", self.of(c), "--network", self.network,
                "--memory", str(int(limit[:-2]) * UNITS[limit[-2:]])]
        argv += self.rights(c)
        for mount in c.get("volumeMounts", []):
            argv += ["-v", "%s:%s%s" % (
                self.sources[mount["name"]], mount["mountPath"],
                ":ro" if mount.get("readOnly") else "")]
        command = c.get("command", [])
        if command:
            argv += ["--entrypoint", command[0]]
        self.engine.docker(*argv, image, *command[1:])

    def of(self, c):
        return "%s-%s" % (self.name, c["name"])

    def probe(self, c, kind):
        """As the kubelet does it; whether it succeeds."""
        command = c[kind]["exec"]["command"]
        return self.engine.status("exec", self.of(c), *command)[0] == 0

    def up(self, objects, images):
        """In the order of Kubernetes. images: what runs as which container."""
        for volume in self.spec.get("volumes", []):
            self.volume(volume, objects)
        for c in self.spec.get("initContainers", []):
            self.start(c, images[c["name"]])
            if c.get("restartPolicy") == "Always":
                poll("start of " + c["name"],
                     lambda c=c: self.probe(c, "startupProbe"))
            else:
                same(self.engine.docker("wait", self.of(c)).strip(), "0",
                     self.engine.docker("logs", self.of(c)))
        for c in self.spec["containers"]:
            self.start(c, images[c["name"]])
        return self

    def stop(self, c):
        """SIGTERM; its exit status."""
        self.engine.docker("stop", "-t", str(
            self.spec["terminationGracePeriodSeconds"]
            if "terminationGracePeriodSeconds" in self.spec else 30),
            self.of(c))
        return self.engine.inspect(self.of(c))["State"]["ExitCode"]

    def remove(self):
        for c in self.spec.get("initContainers", []) + self.spec["containers"]:
            self.engine.docker("rm", "-f", self.of(c))
