"""
Unit files as the stand-in for systemd (fake_systemd.py) reads them: where
they are, how they are written, what their values mean. A setting is either
obeyed, or it is one that may be ignored in a test (hardening, ordering), or
the unit is refused: nothing is passed over in silence.
"""

import glob
import itertools
import os
import re
import shlex

FOLDERS = ("/etc/systemd/system", "/run/systemd/system",
           "/usr/local/lib/systemd/system", "/usr/lib/systemd/system",
           "/lib/systemd/system")

OBEYED = {
    "Unit": """Description Requires Wants PartOf ConditionPathExists
        ConditionPathExistsGlob ConditionFileNotEmpty ConditionPathIsDirectory
        StartLimitIntervalSec StartLimitBurst""",
    "Service": """Type ExecStart ExecStartPre ExecStartPost ExecReload ExecStop
        ExecStopPost PIDFile NotifyAccess WatchdogSec Sockets Restart
        RestartSec RestartPreventExitStatus RestartForceExitStatus
        SuccessExitStatus TimeoutSec TimeoutStartSec TimeoutStopSec
        TimeoutAbortSec KillSignal KillMode RemainAfterExit User Group
        SupplementaryGroups UMask LimitNOFILE LimitCORE WorkingDirectory
        Environment EnvironmentFile UnsetEnvironment LoadCredential
        SetCredential RuntimeDirectory RuntimeDirectoryMode StateDirectory
        StateDirectoryMode StandardOutput StandardError SyslogIdentifier
        AmbientCapabilities CapabilityBoundingSet NoNewPrivileges PrivateTmp
        ProtectClock ProtectHome ProtectSystem ReadWritePaths
        RestrictAddressFamilies SystemCallErrorNumber SystemCallFilter""",
    "Socket": """ListenStream FileDescriptorName SocketMode SocketUser
        SocketGroup DirectoryMode RemoveOnStop Backlog Accept Service
        TriggerLimitIntervalSec TriggerLimitBurst""",
    "Install": "WantedBy RequiredBy Also Alias"}

HARDENING = """
    DeviceAllow DevicePolicy IPAddressAllow IPAddressDeny InaccessiblePaths
    KeyringMode LockPersonality MemoryDenyWriteExecute PrivateDevices
    PrivateIPC PrivateMounts ProcSubset ProtectControlGroups ProtectHostname
    ProtectKernelLogs ProtectKernelModules ProtectKernelTunables ProtectProc
    ReadOnlyPaths RemoveIPC RestrictFileSystems RestrictNamespaces
    RestrictRealtime RestrictSUIDSGID SecureBits SystemCallArchitectures
    SystemCallLog ExecPaths NoExecPaths SocketBindAllow SocketBindDeny"""
# Harmless to leave out: what they change, no test of ours could see.
IGNORED = {
    "Unit": """Documentation After Before DefaultDependencies RequiresMountsFor
        SourcePath""",
    "Service": HARDENING + """ CPUWeight IOWeight MemoryAccounting MemoryHigh
        MemoryMax TasksMax OOMPolicy OOMScoreAdjust Nice Slice LimitMEMLOCK
        LogRateLimitBurst LogRateLimitIntervalSec SyslogFacility
        SyslogLevelPrefix IgnoreSIGPIPE CPUAccounting IPAccounting
        TasksAccounting IOAccounting CoredumpFilter""",
    "Socket": HARDENING + " PassCredentials PassSecurity SELinuxContextFromNet "
        "FlushPending KeepAlive NoDelay ReusePort FreeBind BindIPv6Only",
    "Install": ""}

UNITS = {"us": 1e-6, "usec": 1e-6, "ms": 1e-3, "msec": 1e-3, "": 1, "s": 1,
         "sec": 1, "second": 1, "seconds": 1, "m": 60, "min": 60,
         "minute": 60, "minutes": 60, "h": 3600, "hr": 3600, "hour": 3600,
         "hours": 3600, "d": 86400, "day": 86400, "days": 86400}
INFINITY = float("inf")


class UnitError(Exception):
    """One line for whoever wrote the unit."""


class StepError(UnitError):
    """A process that would have ended with this status before it began."""

    def __init__(self, text, status):
        super().__init__(text)
        self.status = status


def span(text):
    """A time span as seconds."""
    if text == "infinity":
        return INFINITY
    parts = re.findall(r"([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)\s*", text)
    if not parts or "".join(n + u for n, u in parts) != \
            re.sub(r"\s", "", text) or any(u not in UNITS for _, u in parts):
        raise UnitError("not a time span: %r" % text)
    return sum(float(number) * UNITS[unit] for number, unit in parts)


def truth(text):
    if text.lower() in ("1", "yes", "true", "on"):
        return True
    if text.lower() in ("0", "no", "false", "off", ""):
        return False
    raise UnitError("not a boolean: %r" % text)


def canonical(name):
    return name if re.search(r"\.(service|socket|target)$", name) else \
        name + ".service"


def lines_of(path):
    """The lines of a file, continued ones joined, without comments."""
    with open(path, encoding="utf-8") as f:
        pending = ""
        for line in f.read().split("\n"):
            if line.lstrip().startswith(("#", ";")):
                continue
            if line.endswith("\\"):
                pending += line[:-1] + " "
            else:
                yield (pending + line).strip()
                pending = ""


class Unit:
    """What the files of one unit say, drop-ins included."""

    def __init__(self, name):
        self.name = name
        self.kind = name.rsplit(".", 1)[1]
        self.stem = name.rsplit(".", 1)[0]
        # NAME@INSTANCE is read of the template NAME@.
        self.prefix, at, self.instance = self.stem.partition("@")
        self.sources = [name]
        if self.instance:
            self.sources.append(self.prefix + at + "." + self.kind)
        self.values = {}
        self.path = next((path for path in (
            os.path.join(folder, source) for source in self.sources
            for folder in FOLDERS) if os.path.exists(path)), None)
        self.files = []
        if self.path is None:
            raise UnitError("Unit %s could not be found." % name)
        self.masked = os.path.realpath(self.path) == "/dev/null"
        if not self.masked:
            self.files = [self.path] + self.dropins()
            for path in self.files:
                self.read(path)

    def dropins(self):
        found = {}
        for source, folder in itertools.product(self.sources, FOLDERS):
            folder = os.path.join(folder, source + ".d")
            for name in os.listdir(folder) if os.path.isdir(folder) else ():
                if name.endswith(".conf"):
                    found.setdefault(name, os.path.join(folder, name))
        return [found[name] for name in sorted(found)]

    def read(self, path):
        section = None
        sections = ("Unit", self.kind.capitalize(), "Install")
        for line in lines_of(path):
            if not line:
                continue
            if line.startswith("["):
                section = line.strip("[]")
                if section not in sections and section[:2] != "X-":
                    raise UnitError("%s: no section [%s] is known" % (
                        path, section))
                continue
            if section is None or "=" not in line:
                raise UnitError("%s: what is %r?" % (path, line))
            key, value = (part.strip() for part in line.split("=", 1))
            if section[:2] == "X-" or key[:2] == "X-":
                continue
            self.take(path, section, key, value)

    def take(self, path, section, key, value):
        if key in IGNORED.get(section, "").split():
            return
        if key not in OBEYED.get(section, "").split():
            raise UnitError("%s: [%s] %s= is not known here; teach it to "
                            "fake_units.py" % (path, section, key))
        if value:
            self.values.setdefault(key, []).append(self.expand(value))
        else:
            self.values[key] = []

    def expand(self, text):
        """The specifiers that do not depend on the host or a user. No instance
        here has a name with an escape."""
        meaning = {"%": "%", "n": self.name, "N": self.stem, "p": self.prefix,
                   "i": self.instance, "t": "/run", "S": "/var/lib", "E": "/etc",
                   "T": "/tmp", "L": "/var/log", "C": "/var/cache",
                   "d": "/run/credentials/" + self.name}

        def one(match):
            if match[1] not in meaning:
                raise UnitError("%s: %s is not known here" % (self.name,
                                                              match[0]))
            return meaning[match[1]]
        return re.sub(r"%(.)", one, text)

    def all(self, key):
        return self.values.get(key, [])

    def words(self, key):
        return [word for value in self.all(key) for word in value.split()]

    def one(self, key, default=None):
        values = self.all(key)
        return values[-1] if values else default

    def needs(self, key, suffix):
        """Requires= or Wants=, with what was enabled for it."""
        found = self.words(key)
        for folder in FOLDERS:
            folder = os.path.join(folder, self.name + suffix)
            if os.path.isdir(folder):
                found += sorted(os.listdir(folder))
        return found

    def span(self, key, default):
        text = self.one(key)
        return default if text is None else span(text)

    def truth(self, key, default=False):
        text = self.one(key)
        return default if text is None else truth(text)

    def unmet(self):
        """The condition that keeps it from being started, or None."""
        tests = {"ConditionPathExists": os.path.exists,
                 "ConditionPathExistsGlob": glob.glob,
                 "ConditionPathIsDirectory": os.path.isdir,
                 "ConditionFileNotEmpty":
                     lambda p: os.path.isfile(p) and os.path.getsize(p) > 0}
        any_of = []
        for key, test in tests.items():
            for value in self.all(key):
                path = value.lstrip("|!")
                holds = bool(test(path)) != ("!" in value[:2])
                if value.startswith("|"):
                    any_of.append((holds, key, value))
                elif not holds:
                    return "%s=%s" % (key, value)
        if any_of and not any(holds for holds, _, _ in any_of):
            return "%s=%s" % any_of[0][1:]
        return None

    def environment(self):
        env = {}
        for value in self.all("Environment"):
            env.update(word.split("=", 1) for word in shlex.split(value))
        for value in self.all("EnvironmentFile"):
            path = value.lstrip("-")
            if value.startswith("-") and not os.path.exists(path):
                continue
            if not os.path.exists(path):
                raise UnitError("Failed to load environment files: %s: No "
                                "such file or directory" % path)
            for line in lines_of(path):
                if line:
                    key, text = line.split("=", 1)
                    env[key.strip()] = " ".join(shlex.split(text))
        return env


class Command:
    """One line of an Exec...= setting."""

    def __init__(self, line):
        prefix = re.match(r"[-+!@:]*", line)[0]
        self.may_fail = "-" in prefix
        self.privileged = "+" in prefix or "!" in prefix
        self.literal = ":" in prefix
        if "@" in prefix:
            raise UnitError("no argv[0] of one's own here: %s" % line)
        self.words = shlex.split(line[len(prefix):])
        if not self.words or ";" in self.words:
            raise UnitError("one command a line here: %s" % line)

    def argv(self, env):
        """$NAME alone makes words, ${NAME} a part of one."""
        if self.literal:
            return self.words
        argv = []
        for word in self.words:
            alone = re.fullmatch(r"\$(\w+)", word)
            if alone:
                argv += env.get(alone[1], "").split()
            else:
                argv.append(re.sub(r"\$\{(\w+)\}|\$\$", lambda m: "$" if
                                   m[0] == "$$" else env.get(m[1], ""), word))
        return argv
