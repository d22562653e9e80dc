"""
The socket units of the stand-in for systemd (fake_systemd.py): bound when
they are started, passed to their service, kept open while it is down or begins
again, and watched meanwhile, so that the first client starts it.
"""

import asyncio
import collections
import contextlib
import grp
import os
import pwd
import socket
import stat
import time

from fake_units import UnitError


class Socket:
    def __init__(self, manager, unit):
        self.manager, self.unit, self.name = manager, unit, unit.name
        self.service = unit.one("Service", unit.stem + ".service")
        self.state, self.sub, self.result = "inactive", "dead", "success"
        self.since = time.time()
        self.sockets = []
        self.triggers = collections.deque()
        self.watching = False
        self.journal = manager.journal_of(self.name)

    def say(self, text, priority=6):
        self.journal.record("systemd", 1, text, priority)

    def title(self):
        return "%s - %s" % (self.name,
                            self.unit.one("Description", self.name))

    def set(self, state, sub):
        self.state, self.sub, self.since = state, sub, time.time()

    def fd_name(self):
        return self.unit.one("FileDescriptorName", self.name)

    async def start(self):
        if self.state == "active":
            return True
        unmet = self.unit.unmet()
        if unmet:
            self.say("%s was skipped because of an unmet condition check "
                     "(%s)." % (self.title(), unmet))
            return True
        if self.manager.state_of(self.service) not in ("inactive", "failed"):
            self.say("%s: Socket service %s already active, refusing." % (
                self.name, self.service), 3)
            self.set("failed", "failed")
            self.result = "resources"
            return False
        if self.unit.truth("Accept"):
            raise UnitError("%s: Accept=yes is not known here" % self.name)
        try:
            self.sockets = [self.bind(address)
                            for address in self.unit.all("ListenStream")]
        except (OSError, KeyError) as error:
            self.say("%s: Failed to create listening socket: %s" % (
                self.name, error), 3)
            self.close()
            self.set("failed", "failed")
            self.result = "resources"
            return False
        self.result = "success"
        self.set("active", "listening")
        self.say("Listening on %s." % self.title())
        self.watch()
        return True

    def bind(self, address):
        if address.startswith("/"):
            return self.bind_path(address)
        host, _, port = address.rpartition(":")
        if not host:
            raise UnitError("%s: ListenStream=%s is not known here" % (
                self.name, address))
        family = socket.AF_INET6 if host.startswith("[") else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host.strip("[]"), int(port)))
        return self.listen(sock)

    def bind_path(self, path):
        folder = os.path.dirname(path)
        if not os.path.isdir(folder):
            os.makedirs(folder, mode=int(self.unit.one("DirectoryMode",
                                                       "0755"), 8))
        with contextlib.suppress(FileNotFoundError):
            if stat.S_ISSOCK(os.lstat(path).st_mode):
                os.unlink(path)
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.bind(path)
        user, group = self.unit.one("SocketUser"), self.unit.one("SocketGroup")
        os.chown(path, pwd.getpwnam(user).pw_uid if user else -1,
                 grp.getgrnam(group).gr_gid if group else
                 pwd.getpwnam(user).pw_gid if user else -1)
        os.chmod(path, int(self.unit.one("SocketMode", "0666"), 8))
        return self.listen(sock)

    def listen(self, sock):
        sock.listen(int(self.unit.one("Backlog", "4096")))
        sock.setblocking(False)
        return sock

    def watch(self, yes=True):
        """For the first client, while the service is down."""
        if yes == self.watching:
            return
        self.watching = yes
        for sock in self.sockets:
            if yes:
                self.manager.loop.add_reader(sock, self.trigger)
            else:
                self.manager.loop.remove_reader(sock)

    def service_changed(self, state):
        if self.state != "active":
            return
        down = state in ("inactive", "failed")
        self.sub = "listening" if down else "running"
        self.watch(down)

    def trigger(self):
        now = time.monotonic()
        interval = self.unit.span("TriggerLimitIntervalSec", 2)
        burst = int(self.unit.one("TriggerLimitBurst", "20"))
        while self.triggers and now - self.triggers[0] > interval:
            self.triggers.popleft()
        if interval and burst and len(self.triggers) >= burst:
            self.say("%s: Trigger limit hit, refusing further activation." %
                     self.name, 4)
            self.close()
            self.set("failed", "failed")
            self.result = "trigger-limit-hit"
            return
        self.triggers.append(now)
        self.watch(False)
        asyncio.ensure_future(self.manager.activate(self))

    def close(self):
        self.watch(False)
        for sock in self.sockets:
            sock.close()
        self.sockets = []

    async def stop(self):
        if self.state == "active" and self.unit.truth("RemoveOnStop"):
            for address in self.unit.all("ListenStream"):
                if address.startswith("/"):
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(address)
        if self.state == "active":
            self.say("Closed %s." % self.title())
        self.close()
        self.set("inactive", "dead")
        return True
