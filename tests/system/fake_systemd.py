#!/usr/bin/env python3
"""
A stand-in for systemd as process 1 of a test's own machine (overlay.py), where
the real one cannot run: it obeys real unit files well enough to start, watch,
reload and end services as systemd 252 does, sockets and credentials included.
systemctl and journalctl are fake_systemctl.py; it asks over CONTROL. Owner of
every process of the machine: all end with it.
"""

import asyncio
import contextlib
import json
import os
import signal
import socket
import struct
import sys
import traceback

import fake_control
import fake_journal
from fake_service import Service
from fake_socket import Socket
from fake_units import Unit, UnitError, canonical

CONTROL = "/run/systemd/private.fake"
NOTIFY = "/run/systemd/notify"


class Manager:
    notify_path = NOTIFY

    def __init__(self, loop):
        self.loop = loop
        self.units = {}  # loaded, by name
        self.journals = {}
        self.waits = {}  # pid to a future of its wait status
        self.files = {}  # what was read for a unit that runs

    # Processes.

    def watch(self, pid):
        """A future of a child's wait status. Others find us as parent."""
        self.waits[pid] = self.loop.create_future()
        return self.waits[pid]

    def reap(self):
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            future = self.waits.pop(pid, None)
            if future and not future.done():
                future.set_result(status)

    # Units.

    def journal_of(self, name):
        if name not in self.journals:
            self.journals[name] = fake_journal.Journal(
                self.loop, name,
                lambda name: getattr(self.units.get(name), "main", 0))
        return self.journals[name]

    def unit(self, name):
        """Read anew while it is down; as it was read, while it is up."""
        name = canonical(name)
        known = self.units.get(name)
        if known and known.state not in ("inactive", "failed"):
            return known
        read = Unit(name)
        if read.masked:
            raise UnitError("Unit %s is masked." % name)
        if known:
            known.unit = read
        else:
            kinds = {"service": Service, "socket": Socket}
            if read.kind not in kinds:
                raise UnitError("%s: units of this kind are not known here" %
                                name)
            known = self.units[name] = kinds[read.kind](self, read)
        return known

    def reload(self):
        """daemon-reload: those that are up, too; what is wrong with some."""
        wrong = []
        for name, known in self.units.items():
            try:
                known.unit = Unit(name)
            except UnitError as error:
                wrong.append(str(error))
        return wrong

    def state_of(self, name):
        known = self.units.get(canonical(name))
        return known.state if known else "inactive"

    def sockets_of(self, service):
        """The socket units that may hold descriptors for it, by name."""
        for name, known in sorted(self.units.items()):
            if name.endswith(".socket") and known.state == "active":
                if known.service == service:
                    yield known

    def fds_for(self, service):
        fds, names = [], []
        wanted = list(self.sockets_of(service.name))
        for name in service.unit.words("Sockets"):
            known = self.units.get(name)
            if known and known not in wanted and known.state == "active":
                wanted.append(known)
        for known in wanted:
            fds += [sock.fileno() for sock in known.sockets]
            names += [known.fd_name()] * len(known.sockets)
        return fds, names

    def changed(self, service):
        for known in self.sockets_of(service.name):
            known.service_changed(service.state)

    def parts_of(self, name):
        """Those that are stopped and restarted with it."""
        return [known for known in self.units.values()
                if name in known.unit.words("PartOf")]

    async def activate(self, sock):
        try:
            await self.start(sock.service)
        except UnitError as error:
            sock.say(str(error), 4)

    async def start(self, name, seen=()):
        """With what it requires, sockets first."""
        name = canonical(name)
        if name.endswith(".target") or name in seen:
            return True
        known = self.unit(name)
        seen = tuple(seen) + (name,)
        needed = known.unit.needs("Requires", ".requires")
        if name.endswith(".service"):
            needed = known.unit.words("Sockets") + needed
        for other in needed:
            if not await self.start(other, seen):
                known.say("Dependency failed for %s." % known.title(), 4)
                return False
        for other in known.unit.needs("Wants", ".wants"):
            with contextlib.suppress(UnitError):
                await self.start(other, seen)
        if name.endswith(".socket") and known.state != "active":
            self.unit(known.service)  # there has to be one
        return await known.start()

    # What is said to us.

    def open_notify(self):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        sock.bind(NOTIFY)
        os.chmod(NOTIFY, 0o777)
        sock.setblocking(False)
        self.loop.add_reader(sock, self.notified, sock)

    def notified(self, sock):
        while True:
            try:
                data, extra, _, _ = sock.recvmsg(4096, 1024)
            except BlockingIOError:
                return
            pid = 0
            for level, kind, content in extra:
                if (level, kind) == (socket.SOL_SOCKET,
                                     socket.SCM_CREDENTIALS):
                    pid = struct.unpack("3i", content[:12])[0]
                elif (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                    for fd in struct.unpack("%di" % (len(content) // 4),
                                            content):
                        os.close(fd)
            for known in self.units.values():
                if isinstance(known, Service) and known.main and (
                        pid == known.main or pid in known.members()):
                    known.heard(pid, data.decode(errors="replace"))

    async def asked(self, reader, writer):
        try:
            argv = json.loads(await reader.readline())
            for journal in self.journals.values():
                journal.drain()
            answer = await fake_control.run(self, argv)
        except Exception:  # pylint: disable=broad-except
            answer = fake_control.Answer()
            answer.error(traceback.format_exc(), 125)
        writer.write(json.dumps(answer.document()).encode() + b"\n")
        with contextlib.suppress(ConnectionError):
            await writer.drain()
        writer.close()


async def main():
    manager = Manager(asyncio.get_running_loop())
    manager.loop.add_signal_handler(signal.SIGCHLD, manager.reap)
    for path in fake_journal.FOLDER, os.path.dirname(CONTROL), \
            "/run/systemd/system":
        os.makedirs(path, exist_ok=True)
    manager.open_notify()
    await asyncio.start_unix_server(manager.asked, CONTROL)
    os.chmod(CONTROL, 0o600)
    print("running", flush=True)
    await manager.loop.create_future()


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(asyncio.run(main()))
