"""
Images, and a container engine to run them. Where there is none, both are made
of what Debian has: mmdebstrap makes the base image, buildah builds on it, and
dockerd runs in namespaces of its own, with no network but its own bridges. All
of it is in one temporary folder, and ends with Engine.close().
"""

import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "system"))
from harness import PATIENCE, Failure, Skip, check, poll  # noqa: E402

SOURCE = os.path.abspath(os.environ.get("srcdir", "."))
DEPLOY = os.path.join(SOURCE, "deploy")
RELEASE = "bookworm"
# Images as deploy/ names them, by the stage of the Dockerfile.
IMAGES = {"sandbox": "rl-sandbox", "app": "rl-agent-app", "agent": "rl-agent"}
PACKAGES = "buildah mmdebstrap runc docker-compose iptables iproute2"
# Unpacked, never installed: their maintainer scripts start daemons.
DAEMONS = "docker.io containerd"
PROGRAMS = ("buildah", "mmdebstrap", "runc", "docker-compose", "iptables",
            "ip", "unshare")
# Storage of its own: no image of the machine is used or replaced.
STORAGE = """[storage]
driver = "overlay"
graphroot = "%(path)s/images"
runroot = "%(path)s/images-run"
"""


def run(argv, **options):
    """Its output; a failure shows all that it said."""
    done = subprocess.run(argv, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                          check=False, **options)
    text = done.stdout.decode(errors="replace")
    if done.returncode != 0:
        raise Failure("%s: exit %d\n%s" % (" ".join(argv), done.returncode,
                                           text[-6000:]))
    return text


def needs():
    """Whether this machine can do it at all."""
    if os.geteuid() != 0:
        raise Skip("needs root")
    missing = [name for name in PROGRAMS if not shutil.which(name)]
    if missing:
        raise Skip("no %s; on Debian: apt-get install "
                   "--no-install-recommends %s" % (", ".join(missing),
                                                   PACKAGES))
    if subprocess.run(["unshare", "--net", "--mount", "--pid", "--fork",
                       "true"], check=False,
                      stderr=subprocess.DEVNULL).returncode != 0:
        raise Skip("no namespaces of our own to be had")


class Engine:
    """Docker, with the images of deploy/."""

    def __init__(self):
        self.daemon = None
        self.path = tempfile.mkdtemp(prefix="rla-containers-")
        self.tools = os.path.join(os.getcwd(), "container-tools")
        self.parent = os.path.basename(self.path)
        self.env = dict(os.environ)
        for name in ("DOCKER_HOST", "DOCKER_CONTEXT"):
            self.env.pop(name, None)
        with open(os.path.join(self.path, "storage.conf"), "w",
                  encoding="ascii") as f:
            f.write(STORAGE % {"path": self.path})
        self.env["CONTAINERS_STORAGE_CONF"] = f.name
        self.env["DOCKER_CONFIG"] = os.path.join(self.path, "docker")
        os.mkdir(self.env["DOCKER_CONFIG"])
        with open(os.path.join(self.path, "docker", "config.json"), "w",
                  encoding="ascii") as f:
            f.write("{}")

    # Images.

    def buildah(self, *args):
        return run(["buildah"] + list(args), env=self.env)

    def base(self):
        """Debian, as the image of that name has it."""
        if os.environ.get("RLA_CONTAINERS_PULL") == "1":
            return
        tar = os.path.join(self.path, "base.tar")
        run(["mmdebstrap", "--quiet", "--variant=minbase", RELEASE, tar])
        container = self.buildah("from", "scratch").split()[-1]
        self.buildah("add", "-q", container, tar, "/")
        for tag in (RELEASE, RELEASE + "-slim"):
            self.buildah("commit", "-q", container,
                         "localhost/debian:" + tag)
        self.buildah("rm", container)
        os.unlink(tar)

    def build(self, stage):
        """As "docker build" does, and into the engine."""
        policy = "--pull" if os.environ.get("RLA_CONTAINERS_PULL") == "1" \
            else "--pull-never"
        self.buildah("bud", "--isolation", "chroot", "--format", "docker",
                     policy, "--layers", "--target", stage,
                     "-t", IMAGES[stage],
                     "-f", os.path.join(DEPLOY, "Dockerfile"), SOURCE)
        self.load(IMAGES[stage])

    def without_shells(self, image):
        """The same image, in which nothing can run a script."""
        container = self.buildah("from", "--pull-never",
                                 "localhost/" + image).split()[-1]
        place = self.buildah("mount", container).split()[-1]
        for name in ("sh", "bash", "dash", "rbash", "perl", "env", "busybox"):
            for folder in ("bin", "usr/bin"):
                at = os.path.join(place, folder, name)
                if os.path.lexists(at):
                    os.unlink(at)
        self.buildah("umount", container)
        self.buildah("commit", "-q", "--format", "docker", container, image)
        self.buildah("rm", container)
        self.load(image)

    def load(self, image):
        archive = os.path.join(self.path, "image.tar")
        self.buildah("push", "-q", "localhost/" + image,
                     "docker-archive:%s:%s:latest" % (archive, image))
        self.docker("load", "-q", "-i", archive)
        os.unlink(archive)

    # The engine.

    def unpack(self):
        """dockerd and containerd, from Debian's packages."""
        if all(shutil.which(name) for name in ("dockerd", "containerd")):
            return
        root = os.path.join(self.tools, "root")
        if not os.path.exists(os.path.join(root, "usr/sbin/dockerd")):
            os.makedirs(root, exist_ok=True)
            run(["apt-get", "download", "-q"] + DAEMONS.split(), cwd=self.tools)
            for package in glob.glob(os.path.join(self.tools, "*.deb")):
                run(["dpkg-deb", "-x", package, root])
                os.unlink(package)
        self.env["PATH"] = "%s/usr/bin:%s/usr/sbin:%s" % (
            root, root, self.env["PATH"])

    def start(self):
        """In a network of its own: that of the machine is left alone."""
        self.unpack()
        self.env["DOCKER_HOST"] = "unix://%s/docker.sock" % self.path
        script = ("ip link set lo up && mount -t tmpfs none /run && "
                  "exec dockerd -H \"$DOCKER_HOST\" --data-root \"$1/data\" "
                  "--exec-root \"$1/exec\" -p \"$1/docker.pid\" "
                  "--cgroup-parent \"/$2\"")
        with open(os.path.join(self.path, "dockerd.log"), "wb") as log:
            self.daemon = subprocess.Popen(
                ["unshare", "--net", "--mount", "--pid", "--fork",
                 "--kill-child", "--mount-proc", "sh", "-c", script, "sh",
                 self.path, self.parent],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=self.env)
        poll("the engine", self.answers)

    def answers(self):
        check(self.daemon.poll() is None, "dockerd ended:", self.log())
        return subprocess.run(
            ["docker", "version"], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env=self.env,
            check=False).returncode == 0

    def log(self):
        with open(os.path.join(self.path, "dockerd.log"),
                  encoding="utf-8", errors="replace") as f:
            return f.read()[-3000:]

    def docker(self, *args):
        return run(["docker"] + list(args), env=self.env)

    def status(self, *args):
        """The exit status of a command, and what it said."""
        done = subprocess.run(
            ["docker"] + list(args), stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=self.env,
            check=False)
        return done.returncode, done.stdout.decode(errors="replace")

    def inspect(self, name):
        return json.loads(self.docker("inspect", name))[0]

    def close(self):
        """The end of its pid namespace is the end of all that it runs."""
        if self.daemon:
            for name in self.status("ps", "-aq")[1].split():
                self.status("rm", "-f", "-v", name)
            self.end()
        for group in glob.glob("/sys/fs/cgroup/*/" + self.parent) + \
                glob.glob("/sys/fs/cgroup/" + self.parent):
            os.rmdir(group)
        self.unmount()
        shutil.rmtree(self.path, ignore_errors=True)

    def end(self):
        """unshare, which is our child, leaves signals to its own."""
        pid = self.daemon.pid
        with open("/proc/%d/task/%d/children" % (pid, pid),
                  encoding="ascii") as f:
            for child in f.read().split():
                os.kill(int(child), signal.SIGTERM)
        try:
            self.daemon.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.daemon.kill()
            self.daemon.wait()

    def unmount(self):
        """Containers that buildah has mounted would stay mounted."""
        subprocess.run(["buildah", "rm", "--all"], env=self.env, check=False,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        mounted = os.path.join(self.path, "images", "overlay")
        subprocess.run(["umount", mounted], check=False,
                       stderr=subprocess.DEVNULL)
