#!/usr/bin/env python3
"""
An agent that is ended, by SIGTERM and by rlctl drain, and started again, many
times, as a service manager does that passes it no sockets: blocking and
asynchronous clients in C, one that pipelines, and shell loops of rlctl see no
error, and no check is lost or consumes twice. All of it is counted.
"""

import os

import harness
import load
from harness import check, poll, same
from load import PATIENT, SLOW, World

RESTARTS = 40
PATIENCE_MS = "30000"

# $N is another one in each turn.
SHELL = {
    "check": "check one --key $NAME-$N --timeout " + PATIENCE_MS,
    "run": "run one --key $NAME-$N --timeout %s -- true" % PATIENCE_MS,
    "adhoc": "check --bucket $NAME-$N --window 3600000 --limit 1 --timeout "
             + PATIENCE_MS,
    "acquire": "acquire mail --timeout " + PATIENCE_MS,
    "begin": "errctl begin smtp --timeout " + PATIENCE_MS,
    "report": "report inventory 5 --timeout " + PATIENCE_MS,
}
MORE = {
    "limiters": {"mail": {"permits_per_second": 1000000}},
    "error_controls": {"smtp": {"burst": 1000000}},
    "trackers": {"inventory": {}},
}


class Loop(harness.Process):
    """A shell loop of one command; a line with the exit status of each."""

    def __init__(self, lab, kind, path):
        self.kind, self.go = kind, os.path.join(lab.path, "go")
        name = lab.name("shell-" + kind)
        with open(self.go, "w", encoding="ascii"):
            pass
        script = ("N=0; while [ -e %s ]; do N=$((N+1)); %s --socket %s %s "
                  ">/dev/null; echo $?; done" % (
                      self.go, harness.CTL, path, SHELL[kind]))
        super().__init__(lab, name, ["sh", "-c", script], {"NAME": name})

    def statuses(self):
        return self.out().split("\n")[:-1]

    def errors(self):
        """A report after rlctl run has a second, and a restart may take more;
        rlctl(1) says so."""
        return [line for line in self.err().splitlines() if not (
            self.kind == "run" and
            line.startswith("rlctl: run: no report: no agent at "))]


def end(world, n):
    """In turns as an operator does, and as a service manager."""
    if n % 2 == 0:
        same(world.agent.stop(), 0, world.agent.err())
        return
    control = os.path.join(os.path.dirname(world.agent.socket),
                           "control.sock")
    world.lab.ctl("--control", control, "drain", "--timeout", PATIENCE_MS)
    same(world.agent.wait(), 0, world.agent.err())


def consumed_once(ledger, loop):
    """What the checks of a shell loop have taken."""
    for n in range(1, len(loop.statuses()) + 1):
        bucket = load.bucket("one", "%s-%d" % (loop.name, n))
        taken = [tokens for (_, name), tokens in ledger.consumed.items()
                 if name == bucket]
        check(taken and set(taken) == {1}, loop.name, n, "consumed", taken)


def test_restarts(lab):
    """40 restarts under load: no check is lost, nobody sees an error"""
    world = World(lab, *SLOW)
    world.text("only", PATIENT, **MORE)
    world.start("only")
    world.begin()
    world.loads.append(load.Load(lab, "async", world.agent.socket, 4,
                                 load.DEADLINE_MS))
    loops = [Loop(lab, kind, world.agent.socket) for kind in SHELL]
    for n in range(RESTARTS):
        seen = [len(loop.statuses()) for loop in loops]
        world.more(4)
        # Of some loop at least: they are slower.
        poll("a shell loop", lambda seen=seen: any(
            len(loop.statuses()) > s for loop, s in zip(loops, seen)))
        end(world, n)
        world.start("only")
    # What is in flight now ends with the agent that is there.
    os.unlink(loops[0].go)
    for loop in loops:
        same(loop.wait(), 0, loop.err())
    decisions, ledger = world.finish()
    for d in decisions:
        check(d.outcome in ("allowed", "denied"), "lost:", d)
    for loop in loops:
        same((set(loop.statuses()), loop.errors()), ({"0"}, []), loop.kind)
        check(len(loop.statuses()) > RESTARTS // 8, loop.kind,
              len(loop.statuses()))
        if loop.kind in ("check", "run"):
            consumed_once(ledger, loop)
    ledger.agrees(decisions)
    same(ledger.resumed(), [], "accepted, and sent by another agent")
    harness.say(["%d restarts; %d decisions; shell: %s" % (
        RESTARTS, len(decisions), ", ".join("%s %d" % (
            loop.kind, len(loop.statuses())) for loop in loops))])


if __name__ == "__main__":
    harness.run([value for name, value in list(globals().items())
                 if name.startswith("test_")])
