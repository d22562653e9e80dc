#!/usr/bin/env python3
"""RateLimiter is the original, in all but what that cuts off.

Random schedules of calls (acquire, tryAcquire, setRate, idle) at round and at
awkward rates, through the agent's limiter (ratelimiter_probe), a plain model of
the description, and Guava itself: equal to the model with fractions to the
microsecond, and within what Guava cuts off, less than a microsecond for each
acquire so far. When tryAcquire refuses and how setRate scales is as in Guava
31.1. Without Java, Guava's answers are those in guava.json, which --record
makes, and which Guava must give again wherever there is Java. Prints TAP.

TEST_SEED repeats a run. RLA_GUAVA_JAR, RLA_JAVA and RLA_JAVAC name what is not
at its usual place; RLA_REQUIRE_GUAVA=1 makes it an error that it is nowhere.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

from ratelimiter_tools import (
    AWKWARD, ONE, ROUND, Bounds, Exact, Scheduler, Seed, replay)

SRC = os.environ.get("srcdir", ".")
BUILD = os.environ.get("top_builddir", ".")
PROBE = os.path.join(BUILD, "tests/unit/ratelimiter_probe")
RECORD = os.path.join(SRC, "tests/data/guava.json")
JAR = os.environ.get("RLA_GUAVA_JAR", "/usr/share/java/guava.jar")
JAVA = os.environ.get("RLA_JAVA") or shutil.which("java")
JAVAC = os.environ.get("RLA_JAVAC") or shutil.which("javac")
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
SEED = os.environ.get("TEST_SEED") or str(random.SystemRandom().getrandbits(48))

results = []


def ok(holds, name, remarks=()):
    results.append(bool(holds))
    for remark in [] if holds else remarks[:20]:
        print("#", remark)
    print(f"{'ok' if holds else 'not ok'} {len(results)} - {name}",
          flush=True)


def skip(name, why):
    if os.environ.get("RLA_REQUIRE_GUAVA") == "1":
        ok(False, name, [why])
        return
    results.append(True)
    print(f"ok {len(results)} - {name} # SKIP {why}")


def run(command, schedules):
    """The answers of a program, schedule by schedule."""
    calls = "".join(f"{line}\n" for calls in schedules for line in calls)
    out = subprocess.run(command, input=calls, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, encoding="utf-8", check=False)
    answers = iter(out.stdout.splitlines())
    if out.returncode != 0:
        raise SystemExit(f"Bail out! {command[0]}: {out.stderr[-2000:]}")
    return [[next(answers, "nothing") for line in calls
             if line.split()[0] in ("acquire", "try")] for calls in schedules]


def guava(schedules):
    """Compiled and started once. None without Java or the jar."""
    if not (JAVA and JAVAC and os.path.exists(JAR)):
        return None
    source = os.path.join(SRC, "tests/unit/GuavaModel.java")
    with tempfile.TemporaryDirectory() as folder:
        out = subprocess.run(
            [JAVAC, *("-J" + option for option in QUICK), "-proc:none",
             "-cp", JAR, "-d", folder, source], stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, encoding="utf-8", check=False)
        if out.returncode != 0:
            raise SystemExit(f"Bail out! {JAVAC}: {out.stdout[-2000:]}")
        return run([JAVA, *QUICK, "-cp", f"{folder}:{JAR}",
                    "com.google.common.util.concurrent.GuavaModel"],
                   schedules)


def differences(calls, answers, expected):
    """Where they differ, of the lines that are answered."""
    asked = [(i, line) for i, line in enumerate(calls)
             if line.split()[0] in ("acquire", "try")]
    return [f"{calls[0]} .. call {i}, {line}: {answer}, not {want}"
            for (i, line), answer, want in zip(asked, answers, expected)
            if answer != want]


def all_differences(schedules, answers, expected):
    return [line for three in zip(schedules, answers, expected)
            for line in differences(*three)]


def outside(calls, answers):
    """Where Guava's answers are not what the exact model says they must be."""
    wrong = []
    answers = iter(answers)
    model = bounds = now = None
    for i, line in enumerate(calls):
        word, *numbers = line.split()
        numbers = [int(n) for n in numbers]
        if word == "limiter":
            model, bounds, now = Exact(*numbers), Bounds(), numbers[2]
        elif word == "idle":
            now += numbers[0]
        elif word == "rate":
            bounds.before(model, now)
            bounds.set_rate(model, numbers[0])
            model.set_rate(numbers[0], now)
        else:
            bounds.before(model, now)
            answer = next(answers).split()
            granted = word == "acquire" or numbers[1] >= model.wait(now)
            if granted != (answer[0] == "granted") or (
                    granted and not bounds.holds(model, int(answer[1]), now)):
                wrong.append(
                    f"{calls[0]} .. call {i}, {line}: {' '.join(answer)}, "
                    f"exactly {float(model.next_free_ticket - now)}, "
                    f"{bounds.cuts} cuts")
            if granted:
                bounds.acquire(model, numbers[0])
                model.acquire(numbers[0], now)
    return wrong


def plain_refusals(answers):
    """Guava does not tell how long it would have been."""
    return [[a if a.startswith("granted") else "refused" for a in some]
            for some in answers]


def loop(rate, count, permits=1):
    """The loop of its usage, by so many callers at once."""
    return [f"limiter {rate} 1000000 0"] + [f"acquire {permits}"] * count


def check_model():
    scheduler = Scheduler(f"model {SEED}")
    schedules = [scheduler.calls(60) for _ in range(120)] + \
        [scheduler.calls(60, [rate]) for rate in ROUND + AWKWARD] + \
        [scheduler.calls(60, ROUND + AWKWARD) for _ in range(20)]
    wrong = all_differences(schedules, run([PROBE], schedules),
                            [replay(Exact, calls) for calls in schedules])
    ok(not wrong, f"{len(schedules)} schedules are the model's, "
       "to the microsecond", wrong)


def check_controls():
    """What must be noticed is: the original runs away, and we do not."""
    calls = loop(700000 * ONE, 50)
    ours = run([PROBE], [calls])[0]
    found = differences(calls, ours, replay(Seed, calls))
    ok(len(found) > 40, "without fractions it differs at 700,000 a second")
    ok(ours[-1] == "granted 70" and replay(Seed, calls)[-1] == "granted 49",
       "49 permits at 700,000 a second take 70 us, not 49", [ours[-1]])
    ok(not outside(calls, replay(Seed, calls)) and outside(calls, [
        f"granted {max(0, n - 1)}" for n in range(50)]) and
       outside(loop(10 * ONE, 2), ["granted 0", "granted 99999"]),
       "what Guava may cut off is bounded")


def record():
    """Schedules for guava.json, always the same, and Guava's answers."""
    scheduler = Scheduler("guava.json", for_guava=True)
    schedules = [loop(700000 * ONE, 30), loop(10 * ONE, 10, 7)] + \
        [scheduler.calls(25, [rate]) for rate in ROUND + AWKWARD] + \
        [scheduler.calls(40, ROUND + AWKWARD) for _ in range(6)] + \
        [scheduler.calls(40) for _ in range(6)]
    answers = guava(schedules)
    if answers is None:
        raise SystemExit("--record needs java, javac and guava.jar")
    with open(RECORD, "w", encoding="utf-8") as f:
        json.dump([{"calls": "; ".join(calls), "guava": "; ".join(some)}
                   for calls, some in zip(schedules, answers)], f, indent=1)
        f.write("\n")


def ours_and(guavas, schedules):
    """What is wrong with our answers and with Guava's."""
    wrong = all_differences(schedules, run([PROBE], schedules),
                            [replay(Exact, calls) for calls in schedules])
    return wrong + [line for pair in zip(schedules, guavas)
                    for line in outside(*pair)]


def written(guavas, schedules):
    """Where Guava is not what the description says."""
    return all_differences(
        schedules, guavas, plain_refusals(replay(Seed, calls)
                                          for calls in schedules))


def check_recorded():
    """Returns the schedules and the answers."""
    with open(RECORD, encoding="utf-8") as f:
        recorded = json.load(f)
    schedules = [r["calls"].split("; ") for r in recorded]
    answers = [r["guava"].split("; ") for r in recorded]
    wrong = written(answers, schedules)
    ok(not wrong, "the description is Guava's, digit by digit", wrong)
    wrong = ours_and(answers, schedules)
    ok(not wrong, f"{len(schedules)} recorded schedules are Guava's, but for "
       "what it cuts off", wrong)
    return schedules, answers


def check_guava(recorded, answers):
    scheduler = Scheduler(f"guava {SEED}", for_guava=True)
    schedules = [scheduler.calls(60) for _ in range(60)] + \
        [scheduler.calls(60, [rate]) for rate in ROUND + AWKWARD]
    live = guava(recorded + schedules)
    names = ("Guava gives the recorded answers again",
             f"{len(schedules)} schedules are Guava's, but for what it cuts "
             "off", "and the description is Guava's there, too")
    if live is None:
        for name in names:
            skip(name, f"no java, javac or {JAR}")
        return
    again, live = live[:len(recorded)], live[len(recorded):]
    wrong = all_differences(recorded, again, answers)
    ok(not wrong, names[0], wrong)
    wrong = ours_and(live, schedules)
    ok(not wrong, names[1], wrong)
    wrong = written(live, schedules)
    ok(not wrong, names[2], wrong)


def main():
    if "--record" in sys.argv[1:]:
        record()
        return 0
    print(f"# TEST_SEED={SEED}", flush=True)
    check_model()
    check_controls()
    check_guava(*check_recorded())
    print(f"1..{len(results)}")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
