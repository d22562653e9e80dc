#!/usr/bin/env python3
"""
An agent that ends under load and starts again, more than a hundred times.
With SIGTERM no check is lost. With SIGKILL each check still ends in one
decision: resumed where that is possible, else Failed (interrupted). Never
does a server's ledger show that a check consumed twice.
"""

import harness
import load
from harness import check, poll, same
from load import PATIENT, SLOW, World

# H = 600 ms, and a replay after 200 ms.
BRISK = {"unit_ms": 200, "completion_delivery": False}
BRISK_US = 600000
# The default, H = 60 ms.
DEFAULT = {}
DEFAULT_US = 60000
# By how much an agent that is told of a resend may think it older than it is:
# the time between its WELCOME and the frame, on a busy machine.
DOUBT_US = 300000


def across(decisions, kills):
    """Those that were in flight when the agent was killed."""
    return [d for d in decisions
            if any(d.began < after and before < d.began + d.elapsed
                   for before, after in kills)]


def test_terminated(lab):
    """ended by SIGTERM 60 times, also for another configuration: none lost"""
    world = World(lab, *SLOW)
    world.text("patient", PATIENT)
    world.text("other", PATIENT, limit=999)
    world.text("default", DEFAULT)
    names = ("patient", "other", "patient", "default")
    world.start("patient")
    world.begin()
    for n in range(60):
        if n % 6 == 5:  # hardly begun
            world.listening()
        else:
            world.more(6)
        status = world.agent.stop()
        check(status == 0 or n % 6 == 5, world.agent.err())
        world.start(names[n % 4])
    decisions, ledger = world.finish()
    for d in decisions:
        # A busy machine may miss a horizon of 60 ms: no loss of ours.
        check(d.outcome in ("allowed", "denied") or
              d.reason == "timeout" and d.elapsed >= DEFAULT_US, "lost:", d)
    check(sum(d.outcome != "failed" for d in decisions) > 60 * 15,
          "there was no load")
    ledger.agrees(decisions, (None, 999))
    same(ledger.resumed(), [], "accepted, and sent by another agent")


def kill(world, kills):
    before = load.now_us()
    world.agent.kill()
    kills.append((before, load.now_us()))


def report(decisions, kills, ledger):
    hit = across(decisions, kills)
    by_server = [d for d in hit if d.outcome != "failed"]
    print("# %d decisions, %d in flight at %d kills, %d of them decided by "
          "a server; %d operations resumed, %d duplicates" %
          (len(decisions), len(hit), len(kills), len(by_server),
           len(ledger.resumed()), ledger.duplicates))
    return hit, by_server


def killed(lab, policy, horizon_us, rounds):
    world = World(lab, *SLOW)
    world.text("only", policy)
    world.start("only")
    # One of the processes gives up before a horizon is over.
    world.begin(short_ms=150)
    kills = []
    for n in range(rounds):
        if n % 6 == 5:
            world.listening()
        else:
            world.more(6)
        kill(world, kills)
        world.start("only")
    decisions, ledger = world.finish()
    hit, by_server = report(decisions, kills, ledger)
    hurried = world.loads[1].name + "-"
    for d in decisions:
        if d.outcome != "failed":
            continue
        if d.key.startswith(hurried):
            check(d.reason in ("interrupted", "timeout", "unavailable") and
                  d.elapsed >= 150000 - DOUBT_US // 3, d)
        else:
            check(d.reason in ("interrupted", "timeout") and
                  d.elapsed >= horizon_us - DOUBT_US, d)
    ledger.agrees(decisions)
    check(len(hit) >= rounds, "no load when it was killed")
    check(len(ledger.resumed()) >= rounds, "nothing was resumed")
    check(len(by_server) >= rounds, "nothing that was resumed was decided")


def test_killed(lab):
    """killed 30 times: what is in flight is resumed"""
    killed(lab, PATIENT, 6000000, 30)


def test_killed_in_a_round(lab):
    """killed 25 times, with horizons that a busy restart may miss"""
    killed(lab, BRISK, BRISK_US, 25)


def test_killed_for_longer(lab):
    """killed 10 times, longer than the horizon: Failed (interrupted)"""
    world = World(lab, *SLOW)
    world.text("only", DEFAULT)
    world.start("only")
    world.begin()
    kills = []
    for _ in range(10):
        world.more(6)
        kill(world, kills)
        past = kills[-1][1] + DEFAULT_US
        poll("the end of the horizon", lambda past=past:
             load.now_us() > past)
        world.start("only")
    decisions, ledger = world.finish()
    hit, _ = report(decisions, kills, ledger)
    for d in decisions:
        if d.outcome == "failed":
            check(d.reason in ("interrupted", "timeout") and
                  d.elapsed >= DEFAULT_US, d)
    interrupted = [d for d in hit if d.reason == "interrupted"]
    check(len(interrupted) >= 10, "none was interrupted")
    same(ledger.resumed(), [], "sent again after its horizon")
    ledger.agrees(decisions)


def test_killed_for_another(lab):
    """killed 6 times, each time for another configuration: not resumed"""
    world = World(lab, *SLOW)
    limits = range(100, 107)
    for limit in limits:
        world.text(str(limit), PATIENT, limit)
    world.start(str(limits[0]))
    world.begin()
    kills = []
    for limit in limits[1:]:
        world.more(6)
        kill(world, kills)
        world.start(str(limit))
    decisions, ledger = world.finish()
    hit, _ = report(decisions, kills, ledger)
    failed = [d for d in decisions if d.outcome == "failed"]
    check(len(failed) >= len(kills), "none was interrupted")
    for d in failed:
        same(d.reason, "interrupted", d)
        check(d in hit, "not in flight when it was killed:", d)
    same(ledger.resumed(), [], "sent under another configuration")
    ledger.agrees(decisions, limits)


def test_killed_without_dns(lab):
    """killed, and no server is known then: what was sent may have consumed"""
    world = World(lab, *SLOW)
    world.text("only", PATIENT)
    world.start("only")
    world.begin()
    for n in range(2):
        world.sandbox.command("withdraw %d" % n)
    kills = []
    kill(world, kills)
    world.start("only")
    world.listening()
    # Nobody was let in before a second had passed: it might have become
    # ready.
    check(load.now_us() - kills[0][1] >= 1000000, "let in too early")
    world.more(1)
    decisions, ledger = world.finish()
    report(decisions, kills, ledger)
    failed = {"interrupted": 0, "discovery": 0}
    for d in decisions:
        if d.outcome == "failed":
            failed[d.reason] += 1
    check(all(failed.values()), failed)
    ledger.agrees(decisions)


if __name__ == "__main__":
    harness.run([value for name, value in list(globals().items())
                 if name.startswith("test_")])
