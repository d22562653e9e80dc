#!/usr/bin/env python3
"""
The metrics: the format, read strictly; that each number is what happened and is
known otherwise; that no key and no name of a client makes a series; and what a
reload keeps. promtool has its say where there is one.
"""

import json
import os
import re
import shutil
import subprocess

import exposition
import harness
import wire
from exposition import total, value
from fake_agent import OpenAgent, document
from harness import check, poll, same
from reloading import World

TOP = os.environ.get("srcdir", ".")
PAGE = os.path.join(TOP, "man", "rl-agent-metrics.7")
P = "rl_agent_"
# A name that has to be escaped, and one in UTF-8.
ODD = 'a"b\\c d'
LONG = "\u00fc{}=," + "x" * 200


def scrape(agent):
    """Its metrics; every text is held to the format and to the manual."""
    families = exposition.parse(agent.ctl("metrics").out)
    compare_with_manual(families)
    return families


def manual():
    """Type, labels and help by name, in the order of the page."""
    with open(PAGE, encoding="utf-8") as f:
        section = f.read().split(".Sh METRICS\n")[1].split("\n.Sh ")[0]
    found = {}
    for name, kind, labels, text in re.findall(
            r"^\.It Sy (\w+) Pq (\w+)(?: ; ((?:Va \w+(?: , )?)+))?\n(.*)\.$",
            section, re.M):
        found[name] = kind, tuple(re.findall(r"Va (\w+)", labels)), text
    return found


def compare_with_manual(families):
    """The same names in the same order, with the same types, help and labels"""
    want = manual()
    check(len(want) > 80, "the manual has few metrics", len(want))
    same(list(families), list(want))
    for name, family in families.items():
        kind, labels, text = want[name]
        same((family.type, family.help), (kind, text), name)
        check(family.label_names() in (None, labels), name, labels,
              family.label_names())


def promtool(*args, text=None):
    """What it complains of; skips without one."""
    path = shutil.which("promtool")
    if path is None:
        raise harness.Skip("no promtool")
    done = subprocess.run([path] + list(args), input=text, encoding="utf-8",
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=harness.PATIENCE, check=False)
    return done.returncode, done.stdout


GOOD = """# HELP a_total Help, "quoted".
# TYPE a_total counter
a_total{x="",y="b\\\\c\\"d\\n"} 1
a_total{x="1",y="2"} 0.5
# HELP b_seconds B.
# TYPE b_seconds histogram
b_seconds_bucket{x="1",le="0.1"} 1
b_seconds_bucket{x="1",le="+Inf"} 3
b_seconds_sum{x="1"} 2.5
b_seconds_count{x="1"} 3
# HELP c C.
# TYPE c gauge
c 7
"""


def test_the_reader_is_strict(_lab):
    """what this test relies on: a reader that sees each fault"""
    families = exposition.parse(GOOD)
    same(families["a_total"].samples[0],
         ("a_total", (("x", ""), ("y", 'b\\c"d\n')), 1))
    same(value(families, "b_seconds_count"), 3)
    for old, new in (
            ("c 7\n", "c 7"), ("c 7\n", "c 7\n\n"), ("c 7", "c 7 "),
            ("c 7", "c  7"), ("c 7", "c NaN"), ("c 7", "c -7"),
            ("c 7", "c 1e3"), ("c 7", "c{} 7"), ("c 7", "d 7"),
            ("c 7", 'c{le="1"} 7'), ("c 7", "c 7\nc 8"), ("# TYPE c gauge\n", ""),
            ("# HELP c C.\n", ""), ("c gauge", "c untyped"),
            ("c gauge", "c gauge\n# TYPE c gauge"), ("c 7", "c 7\na_total 3"),
            ("c 7", "c 7\n# HELP a_total A.\n# TYPE a_total counter"),
            ("c 7", "c 7\n# HELP d D."), ('y="2"', 'y="2",'),
            ('y="2"', 'y="2'), ('y="2"', 'y="\\x"'), ('y="2"', 'y=2'),
            ('y="2"', 'x="2"'), ('x="1",y="2"', 'x="1"'),
            ('x="1",y="2"', 'y="2",x="1"'), ('y="2"', 'y="2\n"'),
            ('_bucket{x="1",le="0.1"} 1', '_bucket{x="1",le="0.1"} 4'),
            ('_bucket{x="1",le="0.1"} 1', '_bucket{le="0.1",x="1"} 1'),
            ('_bucket{x="1",le="0.1"} 1', '_bucket{x="2",le="0.1"} 1'),
            ('_bucket{x="1",le="0.1"} 1', '_bucket{x="1",le="0.1"} 1.5'),
            ('b_seconds_bucket{x="1",le="+Inf"} 3\n', ""),
            ('_count{x="1"} 3', '_count{x="1"} 4'),
            ('b_seconds_sum{x="1"} 2.5\n', ""),
            ('b_seconds_count{x="1"} 3\n', "")):
        check(old in GOOD, old)
        text = GOOD.replace(old, new, 1)
        try:
            exposition.parse(text)
        except (ValueError, IndexError):
            continue
        raise harness.Failure("not seen: %r for %r" % (new, old))


def tenant(key, **more):
    return dict({"key": {"file": key}, "policy": harness.POLICY}, **more)


def rule(name="main", bucket="b:{key}", limit=1000000, **more):
    return dict({"tenant": name, "resources": [
        {"bucket": bucket, "window_ms": 3600000, "limit": limit}]}, **more)


class Lively:
    """An agent to which everything happens that is counted by rules."""

    def __init__(self, lab):
        key = lab.keygen("main")
        self.sandbox = lab.sandbox(key, zone="rl.test")
        dns = {"name": "rl.test", "nameservers": [self.sandbox.dns]}
        dead = tenant(key, servers=[{"id": "7", "address": "127.0.0.1:9"}],
                      policy=harness.SHORT)
        local = {"permits_per_second": 0.01, "max_burst_seconds": 100}
        self.agent = lab.agent(lab.document(
            {"main": tenant(key, dns=dns), ODD: dead},
            {ODD: rule(), "few": rule(bucket="few", limit=1),
             "watch": rule(bucket="watch", limit=1, mode="shadow"),
             "empty": {"tenant": "main"},
             "open": rule(ODD, "o"), "closed": rule(
                 ODD, "c", on_failure="closed"),
             "local": rule(ODD, "l", on_failure={"local": local}),
             "shut": rule(ODD, "s", on_failure="closed", mode="shadow"),
             "hidden": rule(), LONG: rule()},
            {"inventory": {}},
            {"main": {"path": lab.socket_path(), "mode": "0600",
                      "rules": ["[!h]*"]}},
            limiters={"mail": {"permits_per_second": 0.001}, "idle": {}},
            error_controls={"smtp": {"burst": 1}}))
        self.checks = 0

    def ask(self, *args, times=1):
        for _ in range(times):
            self.agent.check(*args)
            self.checks += 1

    def ask_all(self):
        self.ask(ODD, "--key", "k", times=3)
        self.ask("few", times=3)
        self.ask("watch", times=2)
        self.ask("empty", times=4)
        self.ask("open")
        self.ask("closed")
        self.ask("local", times=2)
        self.ask("shut")
        self.ask("hidden")
        self.ask("nosuch", times=2)
        self.ask(ODD)  # without a key
        adhoc = ("--window", "3600000", "--limit", "1")
        self.ask("--tenant", "main", "--bucket", "a", *adhoc, times=2)
        self.ask("--tenant", "gone", "--bucket", "a", *adhoc)
        self.agent.ctl("report", "inventory", "5", "--tenant", "main")
        self.agent.ctl("report", "nosuch", "5", "--tenant", "main", expect=1)
        self.agent.ctl("acquire", "mail", "1")
        self.agent.ctl("acquire", "mail", "1", "--max-wait", "0", expect=1)
        self.agent.ctl("errctl", "begin", "smtp", "--key", "k")


# Tenant, rule, outcome, source, reason, how often.
DECIDED = (
    ("main", ODD, "allowed", "server", "ok", 3),
    ("main", ODD, "failed", "policy", "validation", 1),
    ("main", "few", "allowed", "server", "ok", 1),
    ("main", "few", "denied", "server", "resource", 2),
    ("main", "watch", "allowed", "server", "ok", 1),
    ("main", "watch", "denied", "shadow", "resource", 1),
    ("main", "empty", "allowed", "empty", "ok", 4),
    (ODD, "open", "failed", "policy", "timeout", 1),
    (ODD, "closed", "failed", "policy", "timeout", 1),
    (ODD, "local", "failed", "local", "timeout", 2),
    (ODD, "shut", "failed", "shadow", "timeout", 1),
    ("", "", "failed", "policy", "unauthorised", 1),
    ("", "", "failed", "policy", "unknown-rule", 2),
    ("", "", "failed", "policy", "validation", 1),
    ("main", "", "allowed", "server", "ok", 1),
    ("main", "", "denied", "server", "resource", 1),
)
PERMITTED = {("main", ODD): 3, ("main", "few"): 1, ("main", "watch"): 2,
             ("main", "empty"): 4, (ODD, "open"): 1, (ODD, "closed"): 0,
             (ODD, "local"): 1, (ODD, "shut"): 1, ("main", "hidden"): 0,
             ("main", LONG): 0, ("main", ""): 1, (ODD, ""): 0, ("", ""): 0}


def decisions(families):
    return {tuple(v for _, v in labels): n
            for _, labels, n in families[P + "decisions_total"].samples}


def test_decisions(lab):
    """each kind of decision, by rule, and how long they took"""
    lively = Lively(lab)
    lively.ask_all()
    m = scrape(lively.agent)
    got = decisions(m)
    same({k: n for k, n in got.items() if n}, {d[:5]: d[5] for d in DECIDED})
    # Zeroes of what is common, and of nothing else.
    for kind in got:
        check(got[kind] or kind[2:] in (
            ("allowed", "server", "ok"), ("denied", "server", "resource"),
            ("failed", "policy", "timeout")), kind)
    check(("main", LONG, "denied", "server", "resource") in got, got)
    same({tuple(v for _, v in labels): n for _, labels, n in
          m[P + "permitted_total"].samples}, PERMITTED)
    same(sum(got.values()), lively.checks)
    same(value(m, P + "checks_total"), lively.checks)
    for name, who in PERMITTED:
        asked = sum(n for k, n in got.items() if k[:2] == (name, who))
        same(value(m, P + "decision_duration_seconds_count", asked,
                   tenant=name, rule=who), asked)
    # A timeout takes the horizon, H = 300 ms.
    same(value(m, P + "decision_duration_seconds_bucket", tenant=ODD,
               rule="open", le="0.25"), 0)
    check(value(m, P + "decision_duration_seconds_sum", tenant=ODD,
                rule="open") >= 0.3)


def test_numbers(lab):
    """what status, servers and limiters tell, too"""
    lively = Lively(lab)
    agent = lively.agent
    lively.ask_all()
    # What is under way in the background is over then.
    poll("no operation", lambda: all(
        t["inflight"] == 0 for t in agent.status()["tenants"]))
    before = agent.status()
    m = scrape(agent)
    status = agent.status()
    # Milliseconds are cut.
    check(before["reload"]["in_force_ms"] <= 1000 * value(
        m, P + "config_in_force_seconds") < status["reload"]["in_force_ms"] + 1)
    same(value(m, P + "build_info", version=status["version"]), 1)
    check(re.match(r"2\.", dict(m[P + "build_info"].samples[0][1])["libevent"]))
    same((value(m, P + "ready"), value(m, P + "draining")), (1, 0))
    same(value(m, P + "config_info", config_hash=status["config_hash"],
               file_hash=status["file_hash"]), 1)
    for state in status["tenants"]:
        name, n = state["name"], state["counters"]
        for metric, field in (
                ("operations_total", "operations"),
                ("requests_sent_total", "requests_sent"),
                ("replays_sent_total", "replays_sent"),
                ("deliveries_sent_total", "deliveries_sent"),
                ("reports_sent_total", "reports_sent")):
            same(value(m, P + metric, tenant=name), n[field], metric)
        for end in ("selected", "no_server", "not_sent", "cancelled"):
            same(value(m, P + "operations_ended_total", tenant=name, end=end),
                 n[end])
        same(value(m, P + "tenant_ready", tenant=name), state["ready"])
        same(value(m, P + "servers", tenant=name), state["servers"])
        same(value(m, P + "tenant_diagnosis_info", tenant=name,
                   diagnosis=state["diagnosis"]), 1)
        same(value(m, P + "udp_sent_datagrams_total", tenant=name,
                   family="ipv4"), state["udp4"]["sent"])
        same(total(m, P + "operations_ended_total", tenant=name),
             n["operations"])
    same(value(m, P + "dns_queries_total", tenant="main"),
         agent.tenant("main")["discovery"]["dns"]["queries"])
    check(0 <= value(m, P + "discovery_age_seconds", tenant="main") <= value(
        m, P + "config_in_force_seconds"))
    for metric in ("dns_queries_total", "discovery_age_seconds",
                   "discovery_next_seconds"):
        check(ODD not in {v for _, labels, _ in m[P + metric].samples
                          for _, v in labels}, "static servers need no DNS")
    same(value(m, P + "limiter_acquires_total", limiter="mail",
               result="granted"), 1)
    same(value(m, P + "limiter_acquires_total", limiter="mail",
               result="refused"), 1)
    same(value(m, P + "local_limiter_acquires_total", rule="local",
               result="refused"), 1)
    same(value(m, P + "error_control_begins_total", error_control="smtp"), 1)
    same(value(m, P + "error_control_keys", error_control="smtp"), 1)
    same(value(m, P + "reports_total", result="taken"), 1)
    same(value(m, P + "reports_total", result="refused"), 1)
    check(value(m, P + "connections_total") >
          value(m, P + "listener_connections", listener="main") == 1)
    same(value(m, P + "listener_connections_limit", kind="control"), 64)


def test_the_process(lab):
    """CPU, memory, descriptors and the start, as the kernel has them"""
    lively = Lively(lab)
    proc = "/proc/%d/" % lively.agent.pid
    before = len(os.listdir(proc + "fd"))
    m = scrape(lively.agent)
    # One more while a client is there.
    same(value(m, "process_open_fds"), before + 1)
    with open(proc + "limits", encoding="ascii") as f:
        limit = re.search(r"Max open files +(\d+)", f.read()).group(1)
    same(value(m, "process_max_fds"), int(limit))
    with open(proc + "statm", encoding="ascii") as f:
        pages = f.read().split()
    # It may grow between the two looks, but not tenfold.
    for name, n in (("virtual", 0), ("resident", 1)):
        now = int(pages[n]) * os.sysconf("SC_PAGESIZE")
        check(now / 10 < value(m, "process_%s_memory_bytes" % name) < now * 10)
    check(0 < value(m, "process_cpu_seconds_total"))
    with open("/proc/stat", encoding="ascii") as f:
        boot = int(re.search(r"^btime (\d+)", f.read(), re.M).group(1))
    check(value(m, "process_start_time_seconds") > boot)
    later = scrape(lively.agent)
    same(value(later, "process_start_time_seconds"),
         value(m, "process_start_time_seconds"))
    check(value(later, "process_cpu_seconds_total") >
          value(m, "process_cpu_seconds_total"))


def test_servers(lab):
    """by server: round trips, selections, replays, deliveries, what is wrong"""
    key = lab.keygen("main")
    # The policy waits for the oldest, which never answers, and replays.
    sandbox = lab.sandbox(key, cluster=3)
    static = [{"id": str(s["server_id"]), "address": s["addresses"][0]}
              for s in sandbox.servers]
    agent = lab.agent(lab.document({"main": tenant(
        key, servers=static, policy={"unit_ms": 50, "suspect_after": 1})},
        {"r": rule()}))
    ids = sandbox.ids()
    for n in range(3):
        sandbox.command("drop %d 1" % n)
    same(agent.check("r", "--key", "k")["reason"], "timeout")
    for n in (1, 2):
        sandbox.command("drop %d 0" % n)
    for _ in range(3):
        same(agent.check("r", "--key", "k")["outcome"], "allowed")
    poll("the end of what is late", lambda: value(
        scrape(agent), P + "server_unanswered_operations", server=ids[0]) == 4)
    m = scrape(agent)
    n = agent.counters("main")
    for metric, field in (("server_selected_total", "selected"),
                          ("server_requests_sent_total", "requests_sent"),
                          ("server_replays_sent_total", "replays_sent"),
                          ("server_deliveries_sent_total", "deliveries_sent")):
        same(total(m, P + metric), n[field], metric)
        same(len(m[P + metric].samples), 3)
    check(n["deliveries_sent"] > 0 and n["replays_sent"] >= 3, n)
    with open(PAGE, encoding="utf-8") as f:
        most = int(re.search(r"a server has (\d+)\.", f.read()).group(1))
    for server in ids:
        same(sum(dict(labels).get("server") == server
                 for _, labels in exposition.series(m)), most)
    same(value(m, P + "server_selected_total", server=ids[0]), 0)
    same(value(m, P + "server_suspected", server=ids[0]), 1)
    same(value(m, P + "server_suspected", server=ids[1]), 0)
    check(value(m, P + "server_missed_rounds_total", server=ids[0]) >= 3)
    check(value(m, P + "suspicions_total", tenant="main") >= 1)
    same(value(m, P + "server_round_trip_seconds_count", server=ids[0]), 0)
    check(value(m, P + "server_round_trip_seconds_count", server=ids[1]) >= 1)
    # Answers with other bytes: refused, and counted by what is wrong. Which
    # bytes is chance: not all that are wrong say whose they are.
    sandbox.command("corrupt 1 1")

    def is_counted():
        same(agent.check("r", "--key", "k")["outcome"], "allowed")
        m = scrape(agent)
        return total(m, P + "invalid_datagrams_total") >= total(
            m, P + "server_invalid_datagrams_total", server=ids[1]) > 0
    poll("an invalid datagram", is_counted)


def test_cardinality(lab):
    """ten thousand keys and names of rules make no series"""
    key = lab.keygen("main")
    sandbox = lab.sandbox(key, zone="rl.test")
    agent = lab.agent(lab.document({"main": tenant(key, dns={
        "name": "rl.test", "nameservers": [sandbox.dns]})},
        {"r": rule()}, limiters={"mail": {"permits_per_second": 1000000}},
        error_controls={"smtp": {}}))
    client = wire.Client(agent.socket)

    def ask(first, count):
        for n in range(first, first + count):
            client.send(wire.check(4 * n, "r", "key-%d" % n) +
                        wire.check(4 * n + 1, "nosuch-%d" % n) +
                        wire.acquire(4 * n + 2, "mail", "key-%d" % n) +
                        wire.adhoc(4 * n + 3, [(1000, 9, 1, "b-%d" % n)],
                                   tenant="t-%d" % n))
            if n % 50 == 49:
                for _ in range(200):
                    client.receive()

    ask(0, 50)
    before = scrape(agent)
    ask(50, 10000)
    after = scrape(agent)
    same(exposition.series(after), exposition.series(before))
    same(value(after, P + "decisions_total", rule="r", outcome="allowed"),
         10050)
    same(value(after, P + "decisions_total", reason="unknown-rule"), 10050)
    same(value(after, P + "limiter_keys", limiter="mail"), 10000)
    client.close()


# Of a tenant or a server: those go on only while it is unchanged.
def lost(before, after):
    """Counters that are less than before, or gone."""
    then = {(n, labels): v for f in before.values() if f.type != "gauge"
            for n, labels, v in f.samples}
    now = {(n, labels): v for f in after.values() for n, labels, v in f.samples}
    return {k for k, v in then.items() if now.get(k, -1) < v}


def labels_of(series, name):
    return {dict(labels).get(name) for _, labels in series}


def test_reload(lab):
    """what stays goes on; what is gone, goes; a bad file is told"""
    rules = {"stays": rule(), "goes": rule(), "moves": rule()}
    # As reloading.World makes its tenant.
    world = World(lab, rules=rules, limiters={"stays": {}, "goes": {}},
                  error_controls={"stays": {}})
    agent = world.agent
    world.put(world.edited(tenants={"main": world.tenant(),
                                    "other": world.tenant()}))
    world.reach(2)
    for name in rules:
        agent.check(name, "--key", "k")
    agent.ctl("acquire", "goes")
    before = scrape(agent)
    same(value(before, P + "config_generation"), 2)
    same(value(before, P + "config_last_reload_successful"), 1)
    moved = {"stays": rule(), "moves": rule("other"), "new": rule()}
    world.reload(world.edited(
        tenants={"main": world.tenant(), "other": world.tenant()},
        rules=moved, limiters={"stays": {}}))
    after = scrape(agent)
    gone = lost(before, after)
    check(gone, "nothing is gone")
    for name, labels in gone:
        labels = dict(labels)
        check(labels.get("rule") in ("goes", "moves") or
              labels.get("limiter") == "goes", name, labels)
    series = exposition.series(after)
    check("goes" not in labels_of(series, "rule") | labels_of(
        series, "limiter"), "what is gone has series")
    same(value(after, P + "decisions_total", rule="stays",
               outcome="allowed"), 1)
    # Moved to another tenant: other series, which begin anew.
    same(value(after, P + "decisions_total", rule="moves", tenant="other",
               outcome="allowed"), 0)
    same(value(after, P + "config_generation"), 3)
    check(before[P + "config_info"].samples != after[P + "config_info"].samples)
    # A mistake is told, and nothing else has changed.
    world.put({"tenants": {}})
    agent.ctl("reload", expect=1)
    bad = scrape(agent)
    same(value(bad, P + "config_last_reload_successful"), 0)
    check(value(bad, P + "config_reload_failures_total") >= 1)
    same(value(bad, P + "config_generation"), 3)
    same(exposition.series(bad), series)
    same(lost(after, bad), set())
    # A tenant whose settings change begins anew, but not its rules.
    policy = {"unit_ms": 400}
    world.reload(world.edited(
        tenants={"main": world.tenant(policy), "other": world.tenant()},
        rules=moved, limiters={"stays": {}}))
    last = scrape(agent)
    same(value(last, P + "operations_total", tenant="main"), 0)
    same(value(last, P + "decisions_total", rule="stays",
               outcome="allowed"), 1)
    same(value(last, P + "config_last_reload_successful"), 1)


def test_removed_servers(lab):
    """a server that DNS does not name any more has no series"""
    key = lab.keygen("main")
    sandbox = lab.sandbox(key, cluster=2, zone="rl.test")
    dns = {"name": "rl.test", "nameservers": [sandbox.dns],
           "refresh_ms": 1000}
    agent = lab.agent(lab.document({"main": tenant(key, dns=dns)}))
    gone = sandbox.ids()[1]
    check(gone in labels_of(exposition.series(scrape(agent)), "server"))
    sandbox.command("withdraw 1")
    poll("the server to be gone", lambda: gone not in labels_of(
        exposition.series(scrape(agent)), "server"))
    m = scrape(agent)
    same(len(m[P + "server_selected_total"].samples), 1)
    same(value(m, P + "servers", tenant="main"), 1)
    check(value(m, P + "membership_changes_total", tenant="main") >= 2)


def test_rebinds(lab):
    """another source port when a server asks, the earlier ones that receive"""
    key = lab.keygen("main")
    # The oldest is silent: a check still waits when the other has asked.
    sandbox = lab.sandbox(key, "--server", "1", "--rebind", "1", cluster=2,
                          zone="rl.test")
    sandbox.command("drop 0 1")
    agent = lab.agent(lab.document({"main": tenant(key, dns={
        "name": "rl.test", "nameservers": [sandbox.dns]})}, {"r": rule()}))
    client = wire.Client(agent.socket)

    def are_alike():
        client.send(wire.check(5, "r", "k"))
        before, m = agent.tenant("main"), scrape(agent)
        state = agent.tenant("main")
        same(client.decision().outcome, "allowed")
        told = [(t["transport"]["rebinds"], t["transport"]["old_ports"],
                 t["counters"]["rebind_asked"]) for t in (before, state)]
        if told[0] != told[1] or 0 in told[0]:
            return False
        same(tuple(value(m, P + name) for name in (
            "rebinds_total", "old_ports", "rebinds_asked_total")), told[0])
        return True
    poll("an earlier port", are_alike)
    client.close()


def test_caps_and_queues(lab):
    """connections and checks over a cap, and what waits"""
    key = lab.keygen("main")
    sandbox = lab.sandbox(key, cluster=1)
    static = [{"id": sandbox.ids()[0],
               "address": sandbox.servers[0]["addresses"][0]}]
    agent = lab.agent(lab.document(
        {"main": tenant(key, servers=static),
         "late": tenant(key, dns={"name": "nowhere.test",
                                  "nameservers": ["127.0.0.1:9"]})},
        {"r": rule()}, None,
        {"main": {"path": lab.socket_path(), "mode": "0600",
                  "max_connections": 3, "max_inflight": 2}}), ready=False)
    poll("its socket", lambda: agent.ctl("ping", expect=None).status == 0)
    first, second = wire.Client(agent.socket), wire.Client(agent.socket)
    third = wire.Client(agent.socket)
    same(wire.Client(agent.socket, greet=False).error(), "busy")
    sandbox.command("drop 0 1")
    for n in range(3):
        first.send(wire.check(10 + n, "r", "k"))
    same(first.decision().reason, "overloaded")
    second.send(wire.frame(wire.WAIT, 5, (60000).to_bytes(4, "little")))
    third.send(wire.frame(wire.METRICS, 6))
    m = exposition.parse(third.text())
    same(value(m, P + "caps_hit_total", cap="connections"), 1)
    same(value(m, P + "caps_hit_total", cap="inflight_listener"), 1)
    same(total(m, P + "caps_hit_total"), 2)
    same(value(m, P + "connections_refused_total"), 1)
    same(value(m, P + "ready"), 0)
    same(value(m, P + "tenant_ready", tenant="late"), 0)
    same(value(m, P + "waiting_requests", request="wait"), 1)
    same(value(m, P + "checks_in_flight"), 2)
    same(value(m, P + "operations_in_flight", tenant="main"), 2)
    same(value(m, P + "listener_checks_in_flight", listener="main"), 2)
    same(value(m, P + "listener_checks_in_flight_limit", listener="main"), 2)
    same(value(m, P + "listener_connections", listener="main"), 3)
    second.send(b"\x03\0\0\0" * 8)
    same(second.error(), "malformed")
    third.send(wire.frame(wire.METRICS, 7))
    m = exposition.parse(third.text())
    same(value(m, P + "bad_frames_total", fault="malformed"), 1)
    same(value(m, P + "waiting_requests", request="wait"), 0)
    first.close()
    third.close()


def test_draining(lab):
    """the control socket tells of it, too"""
    world = World(lab, cluster=1)
    client = wire.Client(world.agent.socket)
    control = wire.Client(os.path.join(
        os.path.dirname(world.agent.socket), "control.sock"))
    control.send(wire.frame(wire.METRICS, 2))
    same(value(exposition.parse(control.text()), P + "draining"), 0)
    world.in_flight(client, "one")
    control.send(wire.frame(wire.DRAIN, 3) + wire.frame(wire.METRICS, 4))
    m = exposition.parse(control.text())
    same(value(m, P + "draining"), 1)
    same(value(m, P + "waiting_requests", request="drain"), 1)
    world.hold(False)
    same(world.agent.wait(), 0)
    client.close()
    control.close()


def test_thousands_of_rules(lab):
    """4096 of them: the text is whole, and is kept for a while"""
    key = lab.keygen("main")
    sandbox = lab.sandbox(key, cluster=1)
    static = [{"id": sandbox.ids()[0],
               "address": sandbox.servers[0]["addresses"][0]}]
    names = ["rule-%04d" % n for n in range(4096)]
    agent = lab.agent(lab.document(
        {"main": tenant(key, servers=static)},
        {name: {"tenant": "main"} for name in names}))
    client = wire.Client(agent.socket)
    for n, name in enumerate(names):
        client.send(wire.check(10 + n, name))
    for _ in names:
        same(client.decision().outcome, "allowed")
    client.send(wire.frame(wire.METRICS, 9000))
    text = client.text()
    m = exposition.parse(text)
    same(total(m, P + "permitted_total"), 4096)
    same(len(m[P + "decision_duration_seconds"].samples), 4096 * 18)

    def the_same_again():
        client.send(wire.frame(wire.METRICS, 9001) +
                    wire.frame(wire.METRICS, 9002))
        return client.text() == client.text()
    poll("a text that is kept", the_same_again)
    # One who does not read it.
    same(value(m, P + "unsent_bytes"), 0)
    idle = wire.Client(agent.socket)
    idle.send(wire.frame(wire.METRICS, 9003))
    poll("what is unsent", lambda: value(scrape(agent),
                                         P + "unsent_bytes") > 1 << 20)
    idle.close()
    poll("nothing unsent", lambda: value(scrape(agent),
                                         P + "unsent_bytes") < 1 << 20)
    cpu = value(m, "process_cpu_seconds_total")
    harness.say(["%d bytes" % len(text), "cpu before: %.3f s" % cpu])
    client.close()
    # The command takes it, too.
    path = os.path.join(lab.path, "text")
    with open(path, "wb") as out:
        subprocess.run([harness.CTL, "--socket", agent.socket, "metrics"],
                       stdout=out, check=True, timeout=harness.PATIENCE)
    same(os.path.getsize(path) > 8 << 20, True)


def test_json(lab):
    """the same samples as JSON"""
    lively = Lively(lab)
    lively.ask(ODD, "--key", "k")
    m = scrape(lively.agent)
    got = lively.agent.ctl("metrics", "--json").json()
    same(list(got), ["metrics"])
    same([(f["name"], f["type"], f["help"]) for f in got["metrics"]],
         [(f.name, f.type, f.help) for f in m.values()])
    for family in got["metrics"]:
        same([(s["name"], tuple(s["labels"].items()))
              for s in family["samples"]],
             [s[:2] for s in m[family["name"]].samples])
        for sample in family["samples"]:
            check(isinstance(sample["value"], (int, float)), sample)
    one = [s["value"] for f in got["metrics"] for s in f["samples"]
           if s["name"] == P + "decision_duration_seconds_count" and
           s["labels"]["rule"] == ODD]
    same(one, [1])
    for text, good in (("", True), ("# HELP a b\n# TYPE a gauge\na 1\n", True),
                       ("a 1\n", False), ("# HELP a b\na{ 1\n", False),
                       ("# HELP a b\na{x=\"\n", False),
                       ("# HELP a b\na{x=\"1\" 1\n", False),
                       ("# HELP a b\na x\n", False), ("# HELP a b\na\n", False),
                       ("# HELP a b\na 1 2\n", False), ("{}", False),
                       ("\n", False), ("# HELP\n", True), ("#", False)):
        fake = OpenAgent(lab, {wire.METRICS: document(text)},
                         name="fake%d.sock" % lab.name("x").__hash__())
        result = lab.ctl("--socket", fake.path, "metrics", "--json",
                         expect=0 if good else 1)
        same(result.err.count("\n"), 0 if good else 1, repr(text), result)
        same(lab.ctl("--socket", fake.path, "metrics").out, text)
        fake.close()


def test_promtool(lab):
    """has nothing to say about a text, nor about the rules for alerts"""
    promtool("--version")
    lively = Lively(lab)
    lively.ask_all()
    same(promtool("check", "metrics",
                  text=lively.agent.ctl("metrics").out), (0, ""))
    status, said = promtool("check", "rules", os.path.join(
        TOP, "deploy", "prometheus", "rl-agent.rules.yml"))
    same(status, 0, said)


def test_rules_and_questions(lab):
    """the alerts and the manual's questions are of metrics that there are"""
    with open(os.path.join(TOP, "deploy", "prometheus",
                           "rl-agent.rules.yml"), encoding="utf-8") as f:
        rules = f.read()
    with open(PAGE, encoding="utf-8") as f:
        page = f.read().split(".Sh EXAMPLES\n")[1]
    questions = page.split(".Bd")[1].split("\n", 1)[1].split(".Ed")[0]
    known = manual()
    for text, least in ((rules, 10), (questions, 3)):
        names = set(re.findall(r"\b(?:rl_agent|process)_\w+", text))
        check(len(names) >= least, names)
        for name in names:
            check(re.sub("_bucket$", "", name) in known, name)
    # A question begins where a line does.
    asked = re.split(r"\n(?=\S)", questions.strip())
    same(len(asked), 3, asked)
    path = lab.config({"groups": [{"name": "g", "rules": [
        {"record": "r%d" % n, "expr": q} for n, q in enumerate(asked)]}]})
    status, said = promtool("check", "rules", path)
    same(status, 0, said)


harness.run([test_the_reader_is_strict, test_decisions, test_numbers,
             test_the_process, test_servers, test_cardinality, test_reload,
             test_removed_servers, test_rebinds, test_caps_and_queues,
             test_draining, test_thousands_of_rules, test_json, test_promtool,
             test_rules_and_questions])
