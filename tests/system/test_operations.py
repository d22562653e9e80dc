#!/usr/bin/env python3
"""
An operator's days, on a machine of their own (overlay.py): the build is
installed, its units start it, and it is used, given other keys and another
configuration, restarted and killed, under load, as the units and the manual
say. Then the commands of the operator's page, as they stand.

RLA_REQUIRE_TOOLS=1 makes it a failure when systemd-sysusers, systemd-tmpfiles
or useradd is missing; see overlay.py for the machine.
"""

import json
import os

import harness
import load
from documents import TOP
from harness import check, poll, same
from overlay import Machine, environment, need_tool

ZONE = "rl.example.com"
SOCKET = "/run/rl-agent/agent.sock"
CONFIG = "/etc/rl-agent/rl-agent.json"
KEY = "/etc/rl-agent/main.key"
# H = 6 s: no load of this machine makes a check fail.
POLICY = {"unit_ms": 2000, "completion_delivery": False}
DEADLINE_MS = 30000
PACKAGES, MADE = "/root/packages", {}  # where; what is in them, by name
# What a package does after it has unpacked its files.
PREPARE = """
systemd-sysusers rl-agent.conf
systemd-tmpfiles --create rl-agent.conf
systemctl daemon-reload
install -d -o root -g rl-agent -m 750 /etc/rl-agent
"""


class Site(Machine):
    """A machine with the build on it, and the operations on it."""

    def __init__(self, lab):
        for tool in "systemd-sysusers", "systemd-tmpfiles", "useradd":
            need_tool(tool)
        super().__init__(lab)
        self.servers = None

    def serve(self, *keys):
        """Three servers and their DNS, where resolv.conf says."""
        argv = ["rl-sandbox", "--stdin", "--listen", "127.0.0.1:0",
                "--cluster", "3", "--dns", "127.0.0.1:53", "--zone", ZONE,
                "--events", "/tmp/sandbox.events"]
        for key in keys:
            argv += ["--key-file", key]
        self.servers = harness.Sandbox(
            self.lab, self.lab.name("sandbox"),
            self.argv("env", "PATH=" + environment()["PATH"], *argv))
        self.servers.events_path = self.path("/tmp/sandbox.events")

    def keygen(self, path, key_id, owner="rl-agent"):
        self.run("rl-sandbox keygen --auth aes --key-id %d --format 0 "
                 "--dedup-max 0 >%s.new\nchown %s %s.new\n"
                 "chmod 400 %s.new\nmv %s.new %s" % (
                     key_id, path, owner, path, path, path, path))
        self.lab.know(self.path(path))

    def rotate(self, path, owner="rl-agent"):
        """The key in another file takes the place of the one in use."""
        self.run("install -o %s -m 400 %s %s.new\nmv %s.new %s" % (
            owner, path, KEY, KEY, KEY))

    def configure(self, text=None, key=None):
        """As an editor does: the file is whole at any time."""
        tenant = {"key": key or {"file": KEY}, "policy": POLICY,
                  "dns": {"name": ZONE}}
        document = {"tenants": {"main": tenant}, "rules": load.rules()}
        self.write(CONFIG + ".new", text or json.dumps(document, indent=1))
        self.run("mv %s.new %s" % (CONFIG, CONFIG))

    def prepare(self):
        """Users, two keys, of which one is in use, servers, configuration."""
        self.run("useradd --groups rl-agent alice\nuseradd bob")
        self.keygen(KEY, 1)
        self.keygen("/root/next.key", 2, owner="root")
        self.serve(KEY, "/root/next.key")
        self.configure()

    def status(self):
        return json.loads(self.run("rlctl status --json").out)

    def key_id(self):
        return int(self.status()["tenants"][0]["key_id"])

    def main_pid(self):
        return int(self.show("rl-agent", "MainPID"))

    def hammer(self):
        """Checks by a user of the group, until finish()."""
        return load.Load(self.lab, "hammer", SOCKET, 1, DEADLINE_MS,
                         prefix=self.argv(user="alice"))

    def shell(self):
        """The same by a shell script, until its end() returns the count."""
        script = "n=0\nwhile [ ! -e /tmp/enough ]; do\n" \
            "rlctl check one --key shell-$((n += 1)) --timeout %d\ndone" % \
            DEADLINE_MS
        process = self.spawn("bash", "-euc", script, user="alice")

        def end():
            self.run("touch /tmp/enough")
            same(process.wait(), 0, process.out()[-1000:], process.err())
            return process.out().count("Allowed: ")
        return end

    def another(self, pid):
        """The service runs again, in another process."""
        poll("another process", lambda: self.main_pid() not in (0, pid))
        self.until("rl-agent", "active")
        self.run("rlctl wait --timeout 30000")

    def check_counts(self, decisions):
        """Every check was decided by a server, and none was paid for twice."""
        check(len(decisions) > 100, len(decisions))
        for d in decisions:
            check(d.outcome != "failed", d)
        load.Ledger(self.servers).agrees(decisions)


def start(lab):
    site = Site(lab)
    site.install()
    site.run(PREPARE)
    site.prepare()
    site.run("systemctl enable --now rl-agent.socket rl-agent-control.socket "
             "rl-agent.service")
    site.run("rlctl wait --timeout 30000")
    return site


def who_may(site):
    """root and the group check; others do not; only root steers."""
    same(site.run("rlctl check one --key r").out.split()[0], "Allowed:")
    same(site.run("rlctl check never --key a", user="alice",
                  expect=1).out.split()[0], "Denied:")
    for user, command in (("bob", "status"), ("bob", "check one --key b"),
                          ("alice", "reload")):
        result = site.run("rlctl " + command, user=user, expect=None)
        check(result.status in (1, 2), result)
        check("may not use" in result.err + result.out, result)


def mistakes(site):
    """A reload that fails says so, everywhere, and nothing has changed."""
    before = site.status()
    site.configure('{"tenants": {"main": {"kee": 1}}}')
    result = site.run("systemctl reload rl-agent", expect=1)
    check("Job for rl-agent.service failed" in result.err, result)
    status = site.status()
    check("tenants.main.kee" in status["reload"]["error"], status)
    same(status["generation"], before["generation"])
    for text in (site.journal("rl-agent"),
                 site.run("systemctl status rl-agent").out):
        check("tenants.main.kee" in text, text)
    check("tenants.main.kee" in site.journal("rl-agent", "-p warning"))
    site.configure()
    site.run("systemctl reload rl-agent")
    same(site.status()["reload"]["error"], None)


def restarts(site, hammers):
    for _ in range(3):
        pid = site.main_pid()
        site.run("systemctl restart rl-agent")
        check(site.main_pid() not in (0, pid))
        load.wait_for_more(hammers, 10)


def test_an_operators_day(lab):
    """rotation, mistakes, restarts, a kill and a hang, under load"""
    site = start(lab)
    who_may(site)
    hammers = [site.hammer(), site.hammer()]
    load.wait_for_more(hammers, 10)
    end_shell = site.shell()

    # Another key: no check fails, and the next ones bear it.
    same(site.key_id(), 1)
    site.rotate("/root/next.key")
    site.run("systemctl reload rl-agent")
    same(site.key_id(), 2)
    load.wait_for_more(hammers, 10)

    mistakes(site)
    load.wait_for_more(hammers, 10)

    restarts(site, hammers)
    # The same without the sockets of systemd.
    site.run("systemctl stop rl-agent.socket rl-agent-control.socket")
    restarts(site, hammers)
    site.check_counts([d for one in hammers for d in one.finish()])
    check(end_shell() > 10)
    same(site.show("rl-agent", "NRestarts"), "0")
    same(site.journal("rl-agent").count("Deactivated successfully"), 6)
    site.run("systemctl stop rl-agent\n"
             "systemctl start rl-agent.socket rl-agent")

    # Killed, it comes again.
    pid = site.main_pid()
    site.run("systemctl kill -s KILL rl-agent")
    site.another(pid)
    same(site.run("rlctl check one --key k").out.split()[0], "Allowed:")

    # Hung, the watchdog ends it.
    site.write("/etc/systemd/system/rl-agent.service.d/dog.conf",
               "[Service]\nWatchdogSec=1\n")
    site.run("systemctl daemon-reload\nsystemctl restart rl-agent")
    pid = site.main_pid()
    site.run("systemctl kill -s STOP --kill-whom=main rl-agent")
    site.another(pid)
    check("Watchdog timeout" in site.journal("rl-agent"))

    # Stopped, with the door left open: the next client starts it.
    site.run("systemctl stop rl-agent")
    same(site.show("rl-agent", "Result"), "success")
    same(site.run("rlctl check one --key s").out.split()[0], "Allowed:")
    same(site.state("rl-agent"), "active")
    site.run("systemctl disable --now rl-agent.socket "
             "rl-agent-control.socket rl-agent")
    result = site.run("rlctl check one --key t --timeout 1000", expect=2)
    check("unavailable" in result.out, result)


def test_a_key_that_only_root_reads(lab):
    """LoadCredential=: it is read at the start; a restart rotates it"""
    site = start(lab)
    site.rotate(KEY, owner="root")
    site.run("rlctl reload", expect=1)
    check("main.key" in site.status()["reload"]["error"])
    site.write("/etc/systemd/system/rl-agent.service.d/key.conf",
               "[Service]\nLoadCredential=main.key:%s\n" % KEY)
    site.configure(key={"credential": "main.key"})
    site.run("systemctl daemon-reload\nsystemctl restart rl-agent")
    same(site.key_id(), 1)
    site.rotate("/root/next.key", owner="root")
    site.run("systemctl reload rl-agent")
    same(site.key_id(), 1)
    site.run("systemctl restart rl-agent")
    same(site.key_id(), 2)
    same(site.run("rlctl check one --key k").out.split()[0], "Allowed:")


def test_the_packages(lab):
    """installed twice, the second time under load, used, and purged"""
    site = Site(lab)
    packaged(site)
    site.run("apt-get install -q -y %s/*.deb" % PACKAGES)
    # Ready for a configuration.
    site.run("systemctl is-enabled rl-agent.service")
    same(site.state("rl-agent"), "inactive")
    check("ConditionPathExists" in site.journal("rl-agent"))
    site.prepare()
    site.run("systemctl start rl-agent\nrlctl wait --timeout 30000")
    end_shell = site.shell()
    pid = site.main_pid()
    site.run("dpkg -i %s/*.deb" % PACKAGES)
    site.another(pid)
    check(end_shell() > 10)
    site.run("dpkg -P rl-agent rlctl rl-sandbox librlshim0")
    same(site.run("systemctl is-active rl-agent", expect=3).out,
         "inactive\n")
    site.run("! command -v rl-agent rlctl rl-sandbox")


def packaged(site):
    """The packages of the build, made once for all tests, are there."""
    if not os.path.exists(os.path.join(TOP, "debian", "rules")):
        raise harness.Skip("the source has no debian/")
    with open(harness.AGENT, "rb") as f:
        if b"__asan_init" in f.read():
            raise harness.Skip("nobody packages a build with sanitizers")
    if not MADE:
        site.make_packages(PACKAGES)
        for name in os.listdir(site.path(PACKAGES)):
            with open(site.path(os.path.join(PACKAGES, name)), "rb") as f:
                MADE[name] = f.read()
    os.makedirs(site.path(PACKAGES), exist_ok=True)
    for name, content in MADE.items():
        with open(site.path(os.path.join(PACKAGES, name)), "wb") as f:
            f.write(content)


# As Debian's package has them, in short.
NGINX_CONF = """
user www-data;
pid /run/nginx.pid;
events {}
http { include /etc/nginx/conf.d/*.conf; }
"""
NGINX_UNIT = """
[Service]
ExecStart=/usr/sbin/nginx -g 'daemon off;'
"""


def with_nginx(site):
    """It is installed, or unpacked somewhere."""
    program = harness.find_program("nginx", "RLA_REQUIRE_PROXIES")
    if os.path.exists(site.path("/usr/sbin/nginx")):
        return
    site.run("ln -s %s /usr/sbin/nginx\nmkdir -p /etc/nginx/conf.d "
             "/var/lib/nginx /var/log/nginx" % os.path.realpath(program))
    site.write("/etc/nginx/nginx.conf", NGINX_CONF)
    site.write("/etc/systemd/system/nginx.service", NGINX_UNIT)
    site.run("systemctl daemon-reload")


def test_the_operators_page(lab):
    """OPERATIONS.md as it stands, where its packages are in root's home"""
    site = Site(lab)
    packaged(site)
    with_nginx(site)
    # Images for containers may be without documents.
    site.write("/etc/dpkg/dpkg.cfg.d/zz-documents",
               "path-include=/usr/share/doc/rl-agent/*\n")
    site.run("mv %s/*.deb /root" % PACKAGES)
    # With the horizon of 60 ms that it has by default, a busy machine makes
    # checks fail. 1.8 s is what these keys allow.
    dns = '"dns": {"name": "rl.test"'
    site.run_page("OPERATIONS.md", replace=(
        (dns, '"policy": {"unit_ms": 600},\n' + dns),), want=(
        "a page\n" * 5, "HTTP/1.1 429 ", "Retry-After: ", "RateLimit: ",
        "key_id: 2", "not loaded", "limit: must be an integer",
        "last_reload_successful 0\n", " 500 Allowed\n", " 500 allowed\n"))
    # Purged, nothing holds a socket or is left to be started.
    site.run("dpkg -P rl-agent")
    same(site.state("rl-agent-gateway@front.socket"), "inactive")
    site.run("! find /etc/systemd /run/rl-agent | grep rl-agent-gateway")


if __name__ == "__main__":
    harness.run([value for name, value in list(globals().items())
                 if name.startswith("test_")])
