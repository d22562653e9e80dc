"""
The life of one service of the stand-in for systemd (fake_systemd.py):
started, ready, watched, reloaded, stopped, started again, in the way and in the
words of systemd 252. One job at a time; each is a coroutine that ends when
systemctl would.
"""

import asyncio
import collections
import os
import signal
import time
import uuid

import fake_spawn
from fake_processes import Processes, outcome
from fake_units import Command, StepError, UnitError

CLEAN_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)
UP = ("active", "reloading")


class Service(Processes):
    def __init__(self, manager, unit):
        super().__init__(manager, unit)
        self.state, self.sub = "inactive", "dead"
        self.since = time.time()
        self.status, self.restarts = "", 0
        self.lock = asyncio.Lock()
        self.starts = collections.deque()
        self.ready = asyncio.Event()
        self.aborted = asyncio.Event()
        self.dog = self.again = None
        self.stopping = False

    # Small things.

    def set(self, state, sub):
        if (self.state, self.sub) != (state, sub):
            self.state, self.sub, self.since = state, sub, time.time()
            self.manager.changed(self)

    def title(self):
        return "%s - %s" % (self.name,
                            self.unit.one("Description", self.name))

    # Start.

    def too_often(self):
        interval = self.unit.span("StartLimitIntervalSec", 10)
        burst = int(self.unit.one("StartLimitBurst", "5"))
        now = time.monotonic()
        while self.starts and now - self.starts[0] > interval:
            self.starts.popleft()
        if interval and burst and len(self.starts) >= burst:
            return True
        self.starts.append(now)
        return False

    async def start(self, automatic=False):
        while self.state == "deactivating" and not self.stopping:
            await asyncio.sleep(0.01)  # it ends by itself
        async with self.lock:
            if self.state in UP:
                return True
            if automatic and self.sub != "auto-restart":
                return True  # somebody stopped it meanwhile
            self.cancel_restart()
            if not automatic:
                self.restarts = 0
            unmet = self.unit.unmet()
            if unmet:
                self.say("%s was skipped because of an unmet condition check "
                         "(%s)." % (self.title(), unmet))
                self.set("inactive", "dead")
                return True
            if self.too_often():
                self.say("%s: Start request repeated too quickly." %
                         self.name, 4)
                self.fail("start-limit-hit")
                return False
            try:
                return await self.bring_up()
            except StepError as error:
                self.say("%s (status=%d)" % (error, error.status), 4)
                self.clean_up()
                self.fail("exit-code")
                self.come_again(error.status << 8)
                return False
            except UnitError as error:
                self.say(str(error), 4)
                self.fail("resources")
                return False

    async def bring_up(self):
        self.stopping = False
        self.ready.clear()
        self.aborted.clear()
        self.status, self.result, self.main = "", "success", 0
        self.invocation = uuid.uuid4().hex
        self.identity = fake_spawn.Identity(self.unit)
        self.more = fake_spawn.directories(self.unit, self.identity)
        self.more.update(fake_spawn.credentials(self.unit, self.identity))
        self.set("activating", "start-pre")
        self.say("Starting %s..." % self.title())
        timeout = self.timeout("TimeoutStartSec")
        if not await self.control("ExecStartPre", timeout):
            return await self.did_not_start("exit-code")
        self.within(timeout)
        self.set("activating", "start")
        for line in self.unit.all("ExecStart"):
            self.launch(Command(line))
            trouble = await self.come_up()
            if trouble:
                return await self.did_not_start(trouble)
        self.set("active", "running" if self.main else "exited")
        if not await self.control("ExecStartPost", timeout):
            self.say("%s: ExecStartPost= failed." % self.name, 4)
        self.say("Started %s." % self.title())
        self.pat()
        if self.main:
            asyncio.ensure_future(self.supervise(self.gone))
        elif not self.unit.truth("RemainAfterExit"):
            self.set("inactive", "dead")
        return True

    def launch(self, command):
        env = self.environment()
        fds, names = self.manager.fds_for(self)
        if fds:
            env["LISTEN_FDS"] = str(len(fds))
            env["LISTEN_FDNAMES"] = ":".join(names)
        seconds = self.unit.span("WatchdogSec", 0)
        if seconds:
            env["WATCHDOG_USEC"] = str(int(seconds * 1e6))
        self.main = fake_spawn.spawn(self.unit, self.identity, command, env,
                                     fds, self.journal.output())
        self.gone = self.manager.watch(self.main)

    async def come_up(self):
        """Until it is up; else what is wrong."""
        kind = self.type()
        if kind in ("simple", "exec"):
            return None
        if kind == "notify":
            await self.until(self.ready.wait(), self.gone,
                             self.aborted.wait())
            if self.ready.is_set() and not self.gone.done():
                return None
        else:
            await self.until(self.gone, self.aborted.wait())
        if self.aborted.is_set():
            return "success"
        if not self.gone.done():
            self.say("%s: start operation timed out. Terminating." %
                     self.name, 4)
            return "timeout"
        if kind == "oneshot" and self.gone.result() == 0:
            self.main = 0
            return None
        if kind == "forking" and self.gone.result() == 0:
            return self.adopt()
        self.journal.drain()
        self.say("%s: Main process exited, code=%s, status=%s" % (
            (self.name,) + outcome(self.gone.result())), 5)
        return self.blame(self.gone.result())

    def adopt(self):
        """The process that a daemon left behind."""
        try:
            with open(self.unit.one("PIDFile", ""), encoding="ascii") as f:
                self.main = int(f.read())
        except (OSError, ValueError):
            self.main = 0
            return "protocol"
        self.gone = self.manager.watch(self.main)
        return None

    async def did_not_start(self, result):
        self.stopping = True
        await self.end_processes()
        self.clean_up()
        if result == "success":  # it was stopped meanwhile
            self.set("inactive", "dead")
            return False
        status = self.gone.result() if self.gone and self.gone.done() else 0
        self.fail(result)
        self.come_again(status)
        return False

    # The watchdog.

    def pat(self):
        if self.dog:
            self.dog.cancel()
            self.dog = None
        seconds = self.unit.span("WatchdogSec", 0)
        if seconds and self.state in UP and not self.stopping:
            self.dog = self.manager.loop.call_later(seconds, self.bite)

    def bite(self):
        self.say("%s: Watchdog timeout (limit %s)!" % (
            self.name, self.unit.one("WatchdogSec")), 3)
        self.result = "watchdog"
        asyncio.ensure_future(self.abort())

    async def abort(self):
        gone = self.gone
        self.say("%s: Killing process %d with signal SIGABRT." % (
            self.name, self.main), 5)
        self.signal(signal.SIGABRT)
        self.within(self.timeout("TimeoutAbortSec",
                                 self.timeout("TimeoutStopSec")))
        if not await self.until(gone):
            self.signal(signal.SIGKILL)

    # The end.

    def blame(self, status):
        if self.result == "watchdog":
            return "watchdog"
        if os.WIFSIGNALED(status):
            return "success" if os.WTERMSIG(status) in CLEAN_SIGNALS else \
                "core-dump" if os.WCOREDUMP(status) else "signal"
        clean = ["0"] + self.unit.words("SuccessExitStatus")
        return "success" if str(os.WEXITSTATUS(status)) in clean else \
            "exit-code"

    async def supervise(self, gone):
        status = await gone
        if self.stopping:
            return
        async with self.lock:
            if self.stopping or gone is not self.gone:
                return
            self.journal.drain()
            result = self.blame(status)
            self.say("%s: Main process exited, code=%s, status=%s" % (
                (self.name,) + outcome(status)),
                6 if result == "success" else 5)
            self.main = 0
            await self.end_processes()
            await self.control("ExecStopPost", 90)
            self.clean_up()
            if result == "success":
                self.set("inactive", "dead")
                self.say("%s: Deactivated successfully." % self.name)
            else:
                self.fail(result)
            self.come_again(status)

    def fail(self, result):
        self.result = result
        self.say("%s: Failed with result '%s'." % (self.name, result), 4)
        self.set("failed", "failed")

    def clean_up(self):
        if self.dog:
            self.dog.cancel()
            self.dog = None
        self.main = 0
        fake_spawn.remove_directories(self.unit)

    def wants_restart(self, status):
        policy = self.unit.one("Restart", "no")
        exited = str(os.WEXITSTATUS(status)) if os.WIFEXITED(status) else ""
        if exited in self.unit.words("RestartPreventExitStatus"):
            return False
        if exited in self.unit.words("RestartForceExitStatus"):
            return True
        failed = self.state == "failed"
        return {"no": False, "always": True, "on-success": not failed,
                "on-failure": failed,
                "on-abnormal": failed and self.result != "exit-code",
                "on-watchdog": self.result == "watchdog",
                "on-abort": self.result in ("signal", "core-dump"),
                }[policy]

    def come_again(self, status):
        if self.wants_restart(status):
            self.set("activating", "auto-restart")
            self.again = self.manager.loop.call_later(
                self.unit.span("RestartSec", 0.1), self.restart_by_itself)

    def restart_by_itself(self):
        self.again = None
        self.restarts += 1
        self.say("%s: Scheduled restart job, restart counter is at %d." % (
            self.name, self.restarts))
        asyncio.ensure_future(self.start(automatic=True))

    def cancel_restart(self):
        if self.again:
            self.again.cancel()
            self.again = None

    async def stop(self):
        self.aborted.set()
        async with self.lock:
            self.cancel_restart()
            if self.state not in UP and not self.main:
                self.set("inactive", "dead")
                return True
            self.stopping = True
            self.result = "success"
            self.set("deactivating", "stop-sigterm")
            self.say("Stopping %s..." % self.title())
            await self.control("ExecStop", self.timeout("TimeoutStopSec"))
            await self.end_processes()
            self.journal.drain()
            result = self.result
            if result == "success" and self.main:
                result = self.blame(self.gone.result())
            await self.control("ExecStopPost", 90)
            self.clean_up()
            if result == "success":
                self.set("inactive", "dead")
                self.say("%s: Deactivated successfully." % self.name)
            else:
                self.fail(result)
            self.say("Stopped %s." % self.title())
            return True

    async def reload(self):
        """An explanation, when it does not work."""
        async with self.lock:
            if self.state not in UP:
                return "Unit %s cannot be reloaded because it is inactive." % \
                    self.name
            if not self.unit.all("ExecReload"):
                return "Job type reload is not applicable for unit %s." % \
                    self.name
            self.say("Reloading %s..." % self.title())
            if not await self.control("ExecReload",
                                      self.timeout("TimeoutStartSec")):
                self.say("Reload failed for %s." % self.title(), 4)
                return "Job for %s failed.\nSee \"systemctl status %s\" and " \
                    "\"journalctl -xeu %s\" for details." % ((self.name,) * 3)
            self.say("Reloaded %s." % self.title())
            return None

    # What it says through NOTIFY_SOCKET.

    def heard(self, pid, text):
        access = self.unit.one("NotifyAccess", "main")
        if pid != self.main and access != "all":
            self.say("%s: Got notification message from PID %d, but reception "
                     "only permitted for main PID %d" % (self.name, pid,
                                                         self.main), 4)
            return
        for line in text.split("\n"):
            key, _, value = line.partition("=")
            if key == "READY" and value == "1":
                self.ready.set()
                if self.state == "reloading":
                    self.set("active", "running")
            elif key == "RELOADING" and value == "1" and self.state in UP:
                self.set("reloading", "reload")
            elif key == "STOPPING" and value == "1" and self.state in UP:
                self.set("deactivating", "stop-sigterm")
            elif key == "STATUS":
                self.status = value
            elif key == "WATCHDOG" and value == "1":
                self.pat()
            elif key == "WATCHDOG" and value == "trigger":
                self.bite()
            elif key == "EXTEND_TIMEOUT_USEC":
                self.deadline = max(self.deadline,
                                    time.monotonic() + int(value) / 1e6)
