"""
The processes of one service of the stand-in for systemd (fake_systemd.py):
what they are given, which there are, control processes such as ExecReload=,
and how all of them are ended. fake_service.py says when.
"""

import asyncio
import contextlib
import os
import signal
import time

import fake_spawn
from fake_units import INFINITY, Command, UnitError


def outcome(status):
    """A wait status in the words of the journal: code, status."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        code = "dumped" if os.WCOREDUMP(status) else "killed"
        return code, "%d/%s" % (number, signal.Signals(number).name[3:])
    code = os.WEXITSTATUS(status)
    names = {0: "SUCCESS", 1: "FAILURE", 64: "USAGE", 78: "CONFIG",
             fake_spawn.EXIT_EXEC: "EXEC",
             fake_spawn.EXIT_CREDENTIALS: "CREDENTIALS"}
    return "exited", "%d/%s" % (code, names.get(code, "n/a"))


class Processes:
    """The half of a service that does not know its state."""

    def __init__(self, manager, unit):
        self.manager, self.unit, self.name = manager, unit, unit.name
        self.journal = manager.journal_of(self.name)
        self.main, self.gone = 0, None  # a future of its wait status
        self.identity, self.invocation, self.more = None, "", {}
        self.result = "success"
        self.deadline = INFINITY

    def say(self, text, priority=6):
        self.journal.record("systemd", 1, text, priority)

    def environment(self):
        env = fake_spawn.environment(self.unit, self.identity)
        env.update(self.more)
        env["INVOCATION_ID"] = self.invocation
        env["JOURNAL_STREAM"] = self.journal.stream()
        if self.main:
            env["MAINPID"] = str(self.main)
        if self.type() == "notify" or self.unit.one("WatchdogSec"):
            env["NOTIFY_SOCKET"] = self.manager.notify_path
        return env

    def type(self):
        kind = self.unit.one("Type", "simple")
        if kind not in ("simple", "exec", "notify", "forking", "oneshot"):
            raise UnitError("%s: Type=%s is not known here" % (self.name,
                                                               kind))
        return kind

    def timeout(self, key, default=90):
        return self.unit.span(key, self.unit.span("TimeoutSec", default)) or \
            INFINITY

    def members(self):
        """Every process that came from it and still is there."""
        mark = ("INVOCATION_ID=" + self.invocation).encode()
        found = []
        for name in os.listdir("/proc"):
            with contextlib.suppress(OSError, ValueError):
                pid = int(name)
                with open("/proc/%d/environ" % pid, "rb") as f:
                    if mark in f.read().split(b"\0") and pid != 1:
                        found.append(pid)
        return sorted(set(found + [self.main] if self.main else found))

    def signal(self, number, pids=None):
        for pid in [self.main] if pids is None else pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
                if number not in (signal.SIGKILL, signal.SIGCONT,
                                  signal.SIGSTOP):
                    os.kill(pid, signal.SIGCONT)

    async def until(self, *what):
        """One of them, or the deadline, which may move meanwhile."""
        tasks = [asyncio.ensure_future(w) for w in what]
        try:
            while True:
                left = self.deadline - time.monotonic()
                if left <= 0:
                    return False
                done, _ = await asyncio.wait(
                    tasks, timeout=min(left, 0.2),
                    return_when=asyncio.FIRST_COMPLETED)
                if done:
                    return True
        finally:
            for task, made in zip(tasks, what):
                if task is not made:
                    task.cancel()

    def within(self, seconds):
        self.deadline = time.monotonic() + seconds

    # Control processes: ExecStartPre=, ExecReload=, ...

    async def control(self, key, timeout):
        """All of the setting's lines; false when one fails."""
        for line in self.unit.all(key):
            command = Command(line)
            pid = fake_spawn.spawn(self.unit, self.identity, command,
                                   self.environment(),
                                   output=self.journal.output())
            end = self.manager.watch(pid)
            try:
                status = await asyncio.wait_for(
                    asyncio.shield(end),
                    None if timeout == INFINITY else timeout)
            except asyncio.TimeoutError:
                os.kill(pid, signal.SIGKILL)
                status = await end
            if status and not command.may_fail:
                self.journal.drain()
                self.say("%s: Control process exited, code=%s, status=%s" % (
                    (self.name,) + outcome(status)), 5)
                return False
        return True

    async def end_processes(self):
        """SIGTERM, patience, SIGKILL, as KillMode= has it."""
        mode = self.unit.one("KillMode", "control-group")
        number = signal.Signals[self.unit.one("KillSignal", "SIGTERM")]
        if self.main and not self.gone.done():
            self.within(self.timeout("TimeoutStopSec"))
            self.signal(number, self.members() if mode == "control-group"
                        else None)
            if not await self.until(self.gone):
                self.say("%s: State 'stop-sigterm' timed out. Killing." %
                         self.name, 4)
                self.result = "timeout"
                self.signal(signal.SIGKILL)
                await self.gone
        if mode in ("control-group", "mixed"):
            self.signal(signal.SIGKILL, [pid for pid in self.members() if
                                         pid != self.main])
