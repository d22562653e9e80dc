"""
Processes of the stand-in for systemd (fake_systemd.py): forked by hand, since
descriptors have to be 3, 4 ... and LISTEN_PID the child's own; user, groups,
limits, directories and credentials as the unit says, and confined as
fake_confine.py can.
"""

import grp
import os
import pwd
import resource
import shutil
import signal

from fake_confine import Confinement
from fake_units import StepError, UnitError

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# What systemd.exec(5) calls these failures.
EXIT_CHDIR, EXIT_EXEC, EXIT_USER, EXIT_CREDENTIALS = 200, 203, 217, 243


class Identity:
    """Who runs a unit's processes."""

    def __init__(self, unit):
        self.name = unit.one("User")
        try:
            user = pwd.getpwnam(self.name) if self.name else None
            self.uid = user.pw_uid if user else 0
            self.gid = user.pw_gid if user else 0
            self.home = user.pw_dir if user else "/root"
            if unit.one("Group"):
                self.gid = grp.getgrnam(unit.one("Group")).gr_gid
            self.groups = os.getgrouplist(self.name, self.gid) if user else []
            self.groups += [grp.getgrnam(name).gr_gid
                            for name in unit.words("SupplementaryGroups")]
        except KeyError as error:
            raise StepError("%s: Failed to determine user credentials: %s" % (
                unit.name, error), EXIT_USER) from None


def limit(unit, key, what):
    text = unit.one(key)
    if text is None:
        return None
    numbers = [resource.RLIM_INFINITY if part == "infinity" else int(part)
               for part in text.split(":")]
    return what, (numbers[0], numbers[-1])


def directories(unit, identity):
    """RuntimeDirectory= and StateDirectory=; what the environment says."""
    env = {}
    for key, top in ("RuntimeDirectory", "/run"), ("StateDirectory",
                                                   "/var/lib"):
        paths = [os.path.join(top, word) for word in unit.words(key)]
        for path in paths:
            os.makedirs(path, exist_ok=True)
            os.chmod(path, int(unit.one(key + "Mode", "0755"), 8))
            os.chown(path, identity.uid, identity.gid)
        if paths:
            env["RUNTIME_DIRECTORY" if top == "/run" else
                "STATE_DIRECTORY"] = ":".join(paths)
    return env


def remove_directories(unit):
    for word in unit.words("RuntimeDirectory"):
        shutil.rmtree(os.path.join("/run", word), ignore_errors=True)
    shutil.rmtree("/run/credentials/" + unit.name, ignore_errors=True)


def credentials(unit, identity):
    """Copies them where only the unit's user reads them, at each start."""
    if not unit.all("LoadCredential") and not unit.all("SetCredential"):
        return {}
    folder = "/run/credentials/" + unit.name
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder, mode=0o700)
    wanted = [text.split(":", 1) for text in unit.all("SetCredential")]
    contents = {name: text.encode() for name, text in wanted}
    for text in unit.all("LoadCredential"):
        name, path = text.split(":", 1)
        try:
            with open(path, "rb") as f:
                contents[name] = f.read()
        except OSError as error:
            raise StepError(
                "%s: Failed to set up credentials: %s: %s" % (
                    unit.name, path, error.strerror),
                EXIT_CREDENTIALS) from None
    for name, content in contents.items():
        path = os.path.join(folder, name)
        with open(path, "wb") as f:
            f.write(content)
        os.chmod(path, 0o400)
        os.chown(path, identity.uid, identity.gid)
    os.chmod(folder, 0o500)
    os.chown(folder, identity.uid, identity.gid)
    return {"CREDENTIALS_DIRECTORY": folder}


def environment(unit, identity):
    env = {"PATH": PATH, "LANG": "C.UTF-8"}
    if identity.name:
        env.update(HOME=identity.home, USER=identity.name,
                   LOGNAME=identity.name, SHELL="/bin/sh")
    env.update(unit.environment())
    # The build may have its own needs.
    env.update((key, value) for key, value in os.environ.items()
               if key in ("ASAN_OPTIONS", "UBSAN_OPTIONS"))
    for name in unit.words("UnsetEnvironment"):
        env.pop(name, None)
    return env


def place(fds):
    """The descriptors become 3, 4, ..., all of them inherited."""
    spare = [os.dup(fd) for fd in fds]
    # A copy may sit where another belongs: first out of the way.
    top = max(spare + [2]) + len(fds) + 4
    for index, fd in enumerate(spare):
        os.dup2(fd, top + index, inheritable=False)
    for index in range(len(fds)):
        os.dup2(top + index, 3 + index, inheritable=True)


def become(unit, identity, privileged):
    os.umask(int(unit.one("UMask", "0022"), 8))
    for known in (limit(unit, "LimitNOFILE", resource.RLIMIT_NOFILE),
                  limit(unit, "LimitCORE", resource.RLIMIT_CORE)):
        if known:
            what, (soft, hard) = known
            try:
                resource.setrlimit(what, (soft, hard))
            except ValueError:  # a container's root may not raise it
                top = resource.getrlimit(what)[1]
                resource.setrlimit(what, (min(soft, top), min(hard, top)))
    if not privileged and identity.name:
        os.setgroups(identity.groups)
        os.setresgid(identity.gid, identity.gid, identity.gid)
        os.setresuid(identity.uid, identity.uid, identity.uid)


def child(unit, identity, command, env, fds, output, confinement):
    """In the new process; does not return."""
    status = EXIT_EXEC
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in range(1, signal.NSIG):
            if number not in (signal.SIGKILL, signal.SIGSTOP, 32, 33):
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        null = os.open("/dev/null", os.O_RDWR)
        if fds:
            env["LISTEN_PID"] = str(os.getpid())
        if "WATCHDOG_USEC" in env:
            env["WATCHDOG_PID"] = str(os.getpid())
        env["SYSTEMD_EXEC_PID"] = str(os.getpid())
        os.dup2(null, 0)
        for fd, key in (1, "StandardOutput"), (2, "StandardError"):
            os.dup2(null if unit.one(key) == "null" else output, fd)
        place(fds)
        status = EXIT_CHDIR
        folder = unit.one("WorkingDirectory", "/")
        os.chdir(identity.home if folder == "~" else folder)
        status = EXIT_EXEC
        argv = command.argv(env)
        if not command.privileged:
            confinement.before_user()
        become(unit, identity, command.privileged)
        if not command.privileged:
            confinement.last(shutil.which(argv[0], path=PATH))
        os.execvpe(argv[0], argv, env)
    except BaseException as error:  # pylint: disable=broad-except
        status = getattr(error, "status", status)
        text = "%s: Failed to execute %s: %s\n" % (
            unit.name, " ".join(command.words), error)
        os.write(2, text.encode())
    finally:
        os._exit(status)


def spawn(unit, identity, command, env, fds=(), output=2):
    """Its pid; the caller, as process 1, is told of its end."""
    for key in "StandardOutput", "StandardError":
        if unit.one(key, "journal") not in ("journal", "null", "inherit"):
            raise UnitError("%s: %s=%s is not known here" % (
                unit.name, key, unit.one(key)))
    confinement = Confinement(unit)
    pid = os.fork()
    if pid == 0:
        child(unit, identity, command, dict(env), list(fds), output,
              confinement)
    return pid
