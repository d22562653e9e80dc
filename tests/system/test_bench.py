#!/usr/bin/env python3
"""
make bench: that all of it works, by a run too short to judge anything. Every
row of the table is there, with a value or a note why it has none. What is said
of a goal agrees with the value, in a run of one group that does judge. Its
options, what it says meanwhile, and how it ends.
"""

import calendar
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

import harness
import wire
from harness import USAGE, check, poll, same

BENCH = harness.program("RLA_BENCH", "tests/bench/bench")
RELAY = harness.program("RLA_BENCH_RELAY", "tests/bench/relay")
FLOOD = harness.program("RLA_BENCH_FLOOD", "tests/bench/flood")

# What is judged, by words of a row's name, and the goal.
JUDGED = [
    ("CPU, agent / (relay + crypto), 1 conn x 50", 1.4),
    ("CPU, agent / (relay + crypto), 1 conn x 1000", 1.4),
    ("CPU, agent / (relay + crypto), 50 conns x 1", 1.4),
    ("CPU, agent / (relay + crypto), 1000 conns x 1", 1.4),
    ("CPU at 4000 in flight", 1.3),
    ("CPU at 60000 in flight", 1.3),
    ("CPU, 1 million keys", 1.25),
    ("3 servers, x 50", 1.4),
    ("3 servers, x 1000", 1.4),
    ("5 servers, x 50", 1.4),
    ("5 servers, x 1000", 1.4),
    ("p50 of one at a time", 1.3),
    ("p99 of one at a time", 1.3),
    ("redis, 64 conns x 1", 0.95),
    ("redis, 64 conns x 16", 0.6),
    ("100,000 forged/s", 1.5),
    ("oldest of 3 dead", 1.2),
    ("RssAnon idle", 8),
    ("RssAnon of an idle connection", 1),
    ("RssAnon of an operation", 1),
    ("heap allocations a decision", 0),
    ("system calls a decision", 0.2),
]

# Figures that are nothing when all goes well.
ZERO = ("checks that relays sent again", "rounds left out, of all rows")

# Rows that need what a machine may not have.
OPTIONAL = ("redis", "with 3 servers, default policy", "system calls")

# What it says on stderr as a group begins.
PROGRESS = re.compile(r"bench: [a-z ]+, (?:1 round|[0-9]+ rounds)")


def bench(*args):
    """A run in a folder of its own; its exit status, output and results."""
    if not os.path.exists(BENCH):
        raise harness.Skip("this build has no bench")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "results.json")
        done = subprocess.run(
            [BENCH, *args, path], cwd=folder, timeout=harness.PATIENCE * 3,
            env=dict(os.environ, RLA_AGENT=harness.AGENT),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            universal_newlines=True)
        results = None
        if os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                results = json.load(f)
    return done, results


def check_row(row, line, judges):
    """A row, and its line of the table."""
    same(set(row) - {"note"}, {"name", "value", "goal", "ok"}, row)
    if row["value"] is None:
        check(row["ok"] is None and row["note"], row)
        check(any(word in row["name"] for word in OPTIONAL), row)
        return
    check("note" not in row and row["value"] >= 0, row)
    want = None
    if judges and row["goal"] is not None:
        want = row["value"] <= row["goal"]
    same(row["ok"], want, row)
    _, goal, said, _ = line[len(row["name"]):].split(maxsplit=3)
    same(said, {None: "-", True: "yes", False: "NO"}[want], line)
    same(goal == "-", row["goal"] is None, line)


def check_rows(done, rows, judges):
    lines = done.stdout.split("\n")
    for row in rows:
        line, = (line for line in lines
                 if line.startswith(row["name"].ljust(58)))
        check_row(row, line, judges)


def test_every_row(lab):
    done, results = bench("--quick")
    same(done.returncode, 0, done.stderr)
    same(set(results), {"rows", "raw"})
    rows = results["rows"]
    check_rows(done, rows, judges=False)
    for line in done.stderr.splitlines():
        check(PROGRESS.fullmatch(line), line)
    names = [row["name"] for row in rows]
    same(len(names), len(set(names)), names)
    goals = [(row["name"], row["goal"]) for row in rows
             if row["goal"] is not None]
    same(len(goals), len(JUDGED), goals)
    for (name, goal), (words, want) in zip(goals, JUDGED):
        check(words in name, name, words)
        same(goal, want, name)
    raw = results["raw"]
    check(raw["machine"]["cores"] > 0, raw["machine"])
    for name, row in raw["rows"].items():
        if "heap allocations" in name:
            same(len(row["samples"]), 1, name)
    measured = [row["name"] for row in rows if row["value"] is not None]
    same(sorted(raw["rows"]), sorted(measured))
    for name, figure in raw["figures"].items():
        check(figure["samples"], name)
        check(figure["median"] > 0 or name in ZERO, name, figure)


def test_only_some_rows(lab):
    args = ["--quick", "--rounds", "3", "--only", "RssAnon"]
    before = int(time.time())
    done, results = bench(*args)
    same(done.returncode, 0, done.stderr)
    same(done.stderr, "bench: memory, 3 rounds\n")
    raw = results["raw"]
    same(raw["arguments"][:-1], args)
    same(raw["version"], version())
    date = calendar.timegm(time.strptime(raw["date"], "%Y-%m-%dT%H:%M:%SZ"))
    check(before <= date <= time.time(), raw["date"], before)
    same([row["goal"] for row in results["rows"]], [8, 1, 1])
    for samples in results["raw"]["rows"].values():
        same(len(samples["samples"]), 3)


def test_a_row_is_judged(lab):
    done, results = bench("--rounds", "1", "--only", "RssAnon")
    same(done.returncode, 0, done.stderr)
    same(done.stderr, "bench: memory, 1 round\n")
    same(len(results["rows"]), 3)
    check_rows(done, results["rows"], judges=True)


def version():
    done = subprocess.run([harness.CTL, "--version"], stdout=subprocess.PIPE,
                          universal_newlines=True, check=True)
    return done.stdout.split()[1]


def children(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid),
              encoding="ascii") as f:
        return f.read().split()


def test_interrupted(lab):
    """
    A signal ends it and all that it started, without a result, and with one
    line. SIGINT comes to all of them at once, as from a terminal.
    """
    if not os.path.exists(BENCH):
        raise harness.Skip("this build has no bench")
    path = os.path.join(lab.path, "results.json")
    leader = "import os, sys; os.setsid(); os.execv(sys.argv[1], sys.argv[1:])"
    for number in (signal.SIGINT, signal.SIGTERM):
        run = harness.Process(
            lab, "bench%d" % number,
            [sys.executable, "-c", leader, BENCH, path],
            env={"RLA_AGENT": harness.AGENT})
        # The responder, the relay, the agent, and then those of a row.
        started = poll("programs", lambda: (
            children(run.pid) if len(children(run.pid)) >= 4 else None))
        if number == signal.SIGINT:
            os.killpg(run.pid, number)
        else:
            run.signal(number)
        same(run.wait(), 128 + number)
        same([line for line in run.err().splitlines()
              if not PROGRESS.fullmatch(line)], ["bench: interrupted"])
        check(not run.out() and not os.path.exists(path), run.out())
        check(not any(os.path.exists("/proc/" + pid) for pid in started))


def test_the_flood_tells_its_rate(lab):
    """what was sent, in what time, is what arrives"""
    if not os.path.exists(FLOOD):
        raise harness.Skip("this build has no bench")
    sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sink.bind(("127.0.0.1", 0))
    sink.settimeout(0)
    run = harness.Process(lab, "flood", [
        FLOOD, "--port", str(sink.getsockname()[1]), "--rate", "100",
        "--seconds", "1"])
    same(run.wait(), 0, run.err())
    sent, us = (int(word) for word in run.line().split())
    check(0 < sent <= 101 and 900000 < us < 30000000, run.out())
    same([len(sink.recv(2048)) for _ in range(sent)], [112] * sent)
    sink.close()


def test_bad_options(lab):
    done, results = bench("--help")
    same((done.returncode, done.stderr, results), (0, "", None))
    check(done.stdout.startswith("usage: bench"), done.stdout)
    usage = done.stdout
    cases = [(("--rounds", bad),
              "bench: --rounds %s: not a number from 1 to 32\n" % bad)
             for bad in ("0", "x", "33", "4294967297", " 1", "")]
    cases.append((("a", "b"), "bench: b: more than one FILE\n"))
    cases.append((("--no-such",),
                  BENCH + ": unrecognized option '--no-such'\n"))
    for args, line in cases:
        done, results = bench(*args)
        same((done.returncode, done.stdout, results), (USAGE, "", None), args)
        same(done.stderr, line + usage, args)
    done, results = bench("--only", "no such row")
    same(done.returncode, USAGE, done.stderr)
    check(results is None)


def test_a_floor_that_loses(lab):
    """what a relay had to send again fails, and nothing afterwards"""
    if not os.path.exists(RELAY):
        raise harness.Skip("this build has no bench")
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.settimeout(harness.PATIENCE)
    server.bind(("127.0.0.1", 0))
    path = os.path.join(lab.path, "relay.sock")
    run = harness.Process(lab, "relay", [
        RELAY, "--key-file", lab.keygen("main"), "--socket", path, "--server",
        "9@%d" % server.getsockname()[1]])
    same(run.line(), "ready")
    client = wire.Client(path)

    def answer(lose):
        for _ in range(lose):
            server.recv(2048)
        request, peer = server.recvfrom(2048)
        server.sendto(request[:4] + struct.pack("<Q", 9) + request[12:], peer)
        return client.decision()

    for ident, lose, outcome, reason in (
            (2, 0, "allowed", "ok"), (3, 1, "failed", "transport"),
            (4, 0, "allowed", "ok")):
        client.send(wire.check(ident, "r", "k"))
        decided = answer(lose)
        same((decided.id, decided.outcome, decided.reason),
             (ident, outcome, reason))
    client.close()
    server.close()


def test_an_agent_that_is_none(lab):
    if not os.path.exists(BENCH):
        raise harness.Skip("this build has no bench")
    done = subprocess.run(
        [BENCH, "--quick"], env=dict(os.environ, RLA_AGENT="/no/such/agent"),
        timeout=harness.PATIENCE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, universal_newlines=True)
    same(done.returncode, 1)
    check(not done.stdout and "agent" in done.stderr, done)


if __name__ == "__main__":
    harness.run([value for name, value in list(globals().items())
                 if name.startswith("test_")])
