#!/usr/bin/env python3
"""
The limiters that all processes of a host share: what sixteen of them get from
one, in three languages; keys, rights, rates and reloads; error controls whose
delays queue; and the local limiter that stands in for servers that are dead.
Every bound on a wait is a lower one.
"""

import json
import os
import selectors
import shlex
import signal
import subprocess
import sys
import time

import harness
import wire
from harness import CANCELLED, DENIED, FAILED, check, poll, same
from reloading import World, replace

RATE, BURST = 50, 1
SECONDS = 20
FOR_EVER = {"permits_per_second": 0.001, "max_burst_seconds": 1}


def bare(lab, **more):
    """An agent whose one server nobody has started: limiters need none."""
    key = lab.keygen("main")
    tenant = {"key": {"file": key}, "policy": harness.SHORT,
              "servers": [{"id": "1", "address": "127.0.0.1:9"}]}
    return lab.agent(lab.document({"main": tenant}, **more))


def acquire(agent, *args, expect=0, **options):
    return agent.ctl("acquire", *args, expect=expect, **options)


def wait_us(agent, *args, expect=0):
    """What an acquire that gives up at once would have to wait."""
    answer = acquire(agent, *args, "--max-wait", "0", "--json", expect=None)
    check(answer.status in (0, DENIED), answer)
    return answer.json()["wait_us"]


def limiter(agent, name, kind="limiters"):
    for row in agent.ctl("limiters", "--json").json()[kind]:
        if row["name"] == name:
            return row
    raise harness.Failure("no %s in %s" % (name, kind))


# Sixteen processes.

SHELL = """
while %s --socket %s acquire mail; do
	echo 1
done
"""

PYTHON = """
import sys
import time
sys.path.insert(0, sys.argv[1])
import wire
client = wire.Client(sys.argv[2])
while True:
    client.send(wire.acquire(2, "mail"))
    answer = client.delay()
    assert answer.reason == "ok", answer
    time.sleep(answer.wait_us / 1e6)
    print(1, flush=True)
"""


def endless(agent):
    """argv of those who write a line for each grant: five in shell, five in
    Python"""
    here = os.path.dirname(os.path.abspath(__file__))
    shell = SHELL % (shlex.quote(harness.CTL), shlex.quote(agent.socket))
    yield from [["sh", "-c", shell]] * 5
    yield from [[sys.executable, "-c", PYTHON, here, agent.socket]] * 5


class Crowd:
    """Ten processes that go on for ever, and six in C that know their time.
    All have one clock, the monotonic one."""

    def __init__(self, lab, agent):
        self.lab = lab
        self.grants = {}  # moments of each process
        self.pipes = selectors.DefaultSelector()
        self.began = time.monotonic()
        self.known = [self.start([harness.SHIMCLIENT, "acquire", agent.socket,
                                  "mail", "%ds" % SECONDS])
                      for _ in range(6)]
        self.others = [self.start(argv) for argv in endless(agent)]
        for process in self.others:
            os.set_blocking(process.stdout.fileno(), False)
            self.pipes.register(process.stdout, selectors.EVENT_READ, process)

    def start(self, argv):
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            cwd=self.lab.path, env=self.lab.env(), start_new_session=True)
        self.grants[process.pid] = []
        return process

    def listen(self, seconds):
        end = self.began + seconds
        while (left := end - time.monotonic()) > 0:
            for key, _ in self.pipes.select(left):
                data = os.read(key.fd, 65536)
                check(data, key.data.args, "ended", key.data.poll())
                self.grants[key.data.pid] += \
                    [time.monotonic()] * data.count(b"\n")
        self.kill(self.others)
        for process in self.known:
            out = process.communicate(timeout=harness.PATIENCE)[0]
            same(process.returncode, 0, out)
            self.grants[process.pid] = [
                us / 1e6 for us in json.loads(out)["grants_us"]]

    @staticmethod
    def kill(processes):
        for process in processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def end(self):
        self.kill(self.known + self.others)
        for process in self.known + self.others:
            process.stdout.close()
        self.pipes.close()


def test_sixteen_processes_share_a_limiter(lab):
    """never more than rate x time + burst + 1, at any moment of 20 seconds"""
    agent = bare(lab, limiters={"mail": {"permits_per_second": RATE,
                                         "max_burst_seconds": BURST}})
    crowd = Crowd(lab, agent)
    try:
        crowd.listen(SECONDS)
    finally:
        crowd.end()
    moments = sorted(at - crowd.began for at in sum(crowd.grants.values(), []))
    nearest = 0
    for n, at in enumerate(moments, 1):
        bound = RATE * at + RATE * BURST + 1
        check(n <= bound, n, "by", at, "of", bound)
        nearest = max(nearest, n / bound)
    each = sorted(len(grants) for grants in crowd.grants.values())
    print("# %d granted in %.3f s, of at most %d; at most %.1f %% of the bound "
          "at any moment; each process %d to %d" % (
              len(moments), moments[-1],
              RATE * moments[-1] + RATE * BURST + 1, 100 * nearest,
              each[0], each[-1]))
    check(len(moments) >= RATE * SECONDS / 2, "it is a limiter, not a wall")
    check(each[0] > 0, "somebody got nothing", crowd.grants)
    # Who is killed while it waits has spent its permit.
    granted = limiter(agent, "mail")["counters"]["granted"]
    check(len(moments) <= granted <= len(moments) + 2 * 16, granted)


def test_an_acquire_waits(lab):
    """the first one goes at once, and the next one pays for it"""
    agent = bare(lab, limiters={"mail": {"permits_per_second": 10,
                                         "max_burst_seconds": 0.001}})
    begun = time.monotonic()
    same(acquire(agent, "mail", "5").out, "")
    acquire(agent, "mail")
    acquire(agent, "mail")
    took = time.monotonic() - begun
    check(took >= 0.59, "five and one before the last", took)
    answer = acquire(agent, "mail", "--json").json()
    same([answer[name] for name in ("outcome", "permit", "source", "reason")],
         ["allowed", True, "local", "ok"], answer)
    check(answer["elapsed_us"] >= answer["wait_us"], answer)
    row = limiter(agent, "mail")
    same((row["counters"]["granted"], row["counters"]["permits"]), (4, 8))


def test_who_does_not_want_to_wait(lab):
    """--max-wait is refused, takes nothing, and says what it would be"""
    agent = bare(lab, limiters={"slow": FOR_EVER})
    acquire(agent, "slow", "--max-wait", "0")
    for _ in range(3):
        refused = acquire(agent, "slow", "--max-wait", "10", expect=DENIED)
        same((refused.out, refused.err.count("\n")), ("", 1), refused)
        check("slow" in refused.err, refused)
    answer = acquire(agent, "slow", "--max-wait", "10", "--json",
                     expect=DENIED).json()
    same([answer[name] for name in ("outcome", "permit", "source", "reason")],
         ["denied", False, "local", "resource"], answer)
    check(900e6 < answer["wait_us"] <= 1000e6, answer)
    row = limiter(agent, "slow")["counters"]
    same((row["granted"], row["refused"]), (1, 4), row)


def test_who_dies_while_it_waits(lab):
    """has spent its permits; who is interrupted is told so"""
    agent = bare(lab, limiters={"slow": FOR_EVER})
    acquire(agent, "slow")
    for number, status in ((signal.SIGKILL, -signal.SIGKILL),
                           (signal.SIGINT, CANCELLED)):
        before = wait_us(agent, "slow")
        waiting = lab.spawn_ctl("--socket", agent.socket, "acquire", "slow")
        poll("its permit to be taken", lambda: wait_us(agent, "slow") > before)
        check(waiting.running(), waiting.err())
        waiting.signal(number)
        same(waiting.wait(), status, waiting.err())
        check(wait_us(agent, "slow") > before, "it was given back")


def test_keys(lab):
    """each has a limiter of its own, and not without bound"""
    agent = bare(lab, limiters={"slow": dict(FOR_EVER, max_keys=2)})
    for key in ("a", "b"):
        acquire(agent, "slow", "--key", key, "--max-wait", "0")
        acquire(agent, "slow", "--key", key, "--max-wait", "0", expect=DENIED)
    acquire(agent, "slow", "--max-wait", "0")
    failed = acquire(agent, "slow", "--key", "c", "--json",
                     expect=FAILED).json()
    same((failed["reason"], failed["source"]), ("overloaded", "policy"))
    row = limiter(agent, "slow")
    same((row["keys"], row["max_keys"], row["counters"]["overloaded"]),
         (2, 2, 1), row)


def test_keys_make_room(lab):
    """what owes nothing goes first, and the counter tells"""
    agent = bare(lab, limiters={
        "fast": {"permits_per_second": 1000000, "max_keys": 3}})
    for i in range(20):
        acquire(agent, "fast", "--key", str(i))
    row = limiter(agent, "fast")
    same((row["keys"], row["counters"]["evictions"]), (3, 17), row)


def test_another_rate(lab):
    """set-rate holds for all keys, those to come as well, until a reload that
    brings another one; what is owed is owed"""
    world = World(lab, cluster=1, limiters={"slow": FOR_EVER})
    agent = world.agent
    for args in ((), ("--key", "a")):
        acquire(agent, "slow", *args)
    agent.ctl("set-rate", "slow", "1000")
    check(wait_us(agent, "slow") > 900e6, "owed before it")
    acquire(agent, "slow", "--key", "b")
    check(wait_us(agent, "slow", "--key", "b") < 1e6)
    row = limiter(agent, "slow")
    same((row["permits_per_second"], row["configured_permits_per_second"]),
         (1000, 0.001), row)
    check('set-rate limiter="slow" permits_per_second=1000' in agent.err())
    for wrong in ("0", "-1", "1e7", "nan", "0x10", "", "1000000.1", "ten"):
        refused = agent.ctl("set-rate", "slow", wrong, expect=None)
        check(refused.status in (1, harness.USAGE), refused)
        same(refused.err.count("\n"), 1, refused)
    same(limiter(agent, "slow")["permits_per_second"], 1000)
    check("unknown" in agent.ctl("set-rate", "none", "1", expect=1).err)
    aside = agent.ctl("--control", agent.socket, "set-rate", "slow", "1",
                      expect=1)
    check("control socket" in aside.err, aside)
    # The same rate again: nothing is new. Another one: it holds.
    world.put(dict(world.document, rules={}))
    agent.ctl("reload")
    same(limiter(agent, "slow")["permits_per_second"], 1000)
    world.put(dict(world.document, limiters={
        "slow": dict(FOR_EVER, permits_per_second=0.002)}))
    agent.ctl("reload")
    same(limiter(agent, "slow")["permits_per_second"], 0.002)
    check(wait_us(agent, "slow") > 400e6, "owed over both reloads")


def test_over_a_reload(lab):
    """a limiter and an error control go on; one that is new begins"""
    world = World(lab, cluster=1, limiters={"slow": FOR_EVER},
                  error_controls={"smtp": {"burst": 0, "min_delay_ms": 1}})
    agent = world.agent
    acquire(agent, "slow", "--key", "k")
    agent.ctl("errctl", "begin", "smtp")
    agent.ctl("errctl", "begin", "smtp")
    world.put(dict(world.document,
                   limiters={"slow": FOR_EVER, "other": FOR_EVER}))
    agent.ctl("reload")
    check(wait_us(agent, "slow", "--key", "k") > 900e6)
    acquire(agent, "other", "--max-wait", "0")
    same(limiter(agent, "smtp", "error_controls")["delay_ms"], 4)
    replace(world.path, "{")
    agent.ctl("reload", expect=1)
    check(wait_us(agent, "slow", "--key", "k") > 900e6, "a bad file")


def test_error_control(lab):
    """the burst passes, then the delays double and queue, and success halves
    them and gives one back"""
    agent = bare(lab, error_controls={
        "smtp": {"burst": 3, "min_delay_ms": 40, "max_delay_ms": 10000}})

    def row():
        return limiter(agent, "smtp", "error_controls")

    def begin():
        return agent.ctl("errctl", "begin", "smtp", "--json").json()

    for _ in range(3):
        same(begin()["wait_us"], 0)
    begun = time.monotonic()
    waiting = [lab.spawn_ctl("--socket", agent.socket, "errctl", "begin",
                             "smtp") for _ in range(3)]
    for process in waiting:
        same(process.wait(), 0, process.err())
    took = time.monotonic() - begun
    check(took >= 0.279, "40, then 80, then 160 ms, one after another", took)
    same((row()["burst_left"], row()["delay_ms"]), (0, 320), row())
    agent.ctl("errctl", "success", "smtp")
    same((row()["burst_left"], row()["delay_ms"]), (1, 160), row())
    same(begin()["wait_us"], 0, "the one that was given back")
    check(begin()["wait_us"] > 100000)
    agent.ctl("errctl", "begin", "smtp", "--key", "elsewhere")
    same({name: row()["counters"][name]
          for name in ("begins", "delays", "successes")},
         {"begins": 9, "delays": 4, "successes": 1})


def test_rights(lab):
    """a listener offers what it says; the control socket nothing"""
    path = lab.socket_path("web")
    agent = bare(
        lab, limiters={"mail": FOR_EVER, "web-a": FOR_EVER},
        error_controls={"smtp": {}, "web-b": {}},
        listeners={"main": {"path": lab.socket_path(), "mode": "0600"},
                   "web": {"path": path, "mode": "0600",
                           "limiters": ["web-*"], "error_controls": ["web-*"]}})
    for args, allowed in ((("acquire", "web-a"), True),
                          (("errctl", "begin", "web-b"), True),
                          (("errctl", "success", "web-b"), True),
                          (("acquire", "mail"), False),
                          (("acquire", "none"), False),
                          (("errctl", "begin", "smtp"), False),
                          (("errctl", "success", "smtp"), False)):
        done = lab.ctl("--socket", path, *args, expect=None)
        same(done.status, 0 if allowed else FAILED, done)
        check(allowed or "offer" in done.err, done)
    unknown = acquire(agent, "none", "--json", expect=FAILED).json()
    same((unknown["reason"], unknown["permit"]), ("unknown-rule", False))
    control = os.path.join(os.path.dirname(agent.socket), "control.sock")
    done = lab.ctl("--socket", control, "acquire", "mail", "--json",
                   expect=FAILED).json()
    same((done["reason"], done["permit"]), ("unauthorised", False), done)
    offered = {row["name"]: row["offered"] for row in
               lab.ctl("--socket", path, "limiters", "--json").json()
               ["limiters"]}
    same(offered, {"mail": False, "web-a": True})


def test_without_an_agent(lab):
    """as a check: failed, and the caller's policy"""
    nobody = os.path.join(lab.path, "nobody.sock")
    for policy, permit in (("open", True), ("closed", False)):
        answer = lab.ctl("--socket", nobody, "acquire", "mail", "--timeout",
                         "20", "--on-failure", policy, "--json",
                         expect=FAILED).json()
        same((answer["reason"], answer["permit"]), ("unavailable", permit))


# on_failure: local.

def local_rules():
    window = {"window_ms": 1000, "limit": 1000}
    return {
        "api": {"resources": [dict(window, bucket="api:{key}")],
                "on_failure": {"local": {"permits_per_second": 0.001,
                                         "max_burst_seconds": 3600}}},
        "all": {"resources": [dict(window, bucket="all")],
                "on_failure": {"local": {"permits_per_second": 0.001}}},
        "watched": {"resources": [dict(window, bucket="w")],
                    "mode": "shadow",
                    "on_failure": {"local": {"permits_per_second": 0.001}}},
        "quick": {"resources": [dict(window, bucket="quick:{key}")],
                  "on_failure": {"local": {"permits_per_second": 50,
                                           "max_burst_seconds": 0.1}}}}


def decide(agent, rule, *args):
    answer = agent.check(rule, *args)
    return answer["outcome"], answer["source"], answer["permit"]


def test_the_local_limiter(lab):
    """stands in for dead servers, by rule and key; failed stays failed"""
    agent = bare(lab, rules=local_rules())
    yes, no = ("failed", "local", True), ("failed", "local", False)
    same(decide(agent, "api", "--key", "a"), yes)
    same(decide(agent, "api", "--key", "a"), no)
    same(decide(agent, "api", "--key", "b"), yes, "a key of its own")
    same(decide(agent, "all"), yes)
    same(decide(agent, "all", "--key", "x"), no, "no bucket has the key in it")
    same(decide(agent, "watched"), yes)
    same(decide(agent, "watched"), ("failed", "shadow", True))
    missing = agent.check("api")
    same((missing["reason"], missing["permit"]), ("validation", False))
    rows = {row["name"]: row for row in
            agent.ctl("rules", "--json").json()["rules"]}
    same(rows["api"]["counters"]["local"], 3)
    same(agent.status()["counters"]["source_local"], 6)
    row = limiter(agent, "api", "rules")
    same((row["counters"]["granted"], row["counters"]["refused"]), (2, 1), row)


def test_the_local_limiter_is_warm(lab):
    """checks that servers decided have kept it storing, over a reload too"""
    world = World(lab, cluster=1, rules=dict(
        local_rules(), steady={"resources": [
            {"bucket": "s", "window_ms": 1000, "limit": 1000}]}))
    agent = world.agent
    same(decide(agent, "quick", "--key", "k"), ("allowed", "server", True))
    same(limiter(agent, "quick", "rules")["keys"], 1, "it is there already")
    rules = dict(world.document["rules"])
    del rules["steady"]
    world.put(dict(world.document, rules=rules))
    agent.ctl("reload")
    same(limiter(agent, "quick", "rules")["keys"], 1, "and stays")
    world.sandbox.command("stop 0")

    def five_at_once():
        answer = agent.check("quick", "--key", "k", "--tokens", "5",
                             "--timeout", "20")
        same((answer["outcome"], answer["source"]), ("failed", "local"))
        return answer["permit"]

    poll("five permits to be stored", five_at_once)
    same(limiter(agent, "quick", "rules")["counters"]["permits"], 5)


if __name__ == "__main__":
    harness.run([value for name, value in list(globals().items())
                 if name.startswith("test_")])
