#!/usr/bin/env python3
"""
The gateway's answers: every status with its fields, what a check may be asked
with, what proxies append, and that a decision is the one that the same check
over IPC would get. Over a Unix socket and over TCP, by raw sockets and by curl.
"""

import os
import re
import shutil
import subprocess

import harness
import web
from harness import check, poll, same
from web import World, form, rule

# Longer than any test: what is used up stays so.
RULES = {
    "one": rule("one:{key}", window_ms=web.YEAR_MS),
    "slow": rule("slow", limit=60),
    "two": {"tenant": "main", "resources": [
        {"bucket": "wide:{key}", "window_ms": 3600000, "limit": 3600},
        {"bucket": "odd", "window_ms": 1500, "limit": 7}]},
    "empty": {"tenant": "main"},
    "watch": rule("watch:{key}", limit=1, window_ms=web.YEAR_MS,
                  mode="shadow"),
    "shut": rule("shut", on_failure="closed"),
    "open": rule("open", on_failure="open"),
    "local": rule("local", on_failure={"local": {
        "permits_per_second": 0.001, "max_burst_seconds": 1}}),
    "by-uid": rule("uid:{uid}:{gid}", window_ms=web.YEAR_MS),
    "by-gateway": rule("at:{listener}", window_ms=web.YEAR_MS),
    "na/me 50%\"": rule("odd name", window_ms=web.YEAR_MS),
    "other": rule("other"),
}
SHORT = {"unit_ms": 100}
KEY = "personal.customer@example.com"
TEXT = "text/plain; charset=utf-8"


def expect(answer, status, body, **fields):
    """Exactly these fields, with _ for -, but for those that all have."""
    same((answer.status, answer.body.decode()), (status, body + "\n"), answer)
    wanted = {"content-type": TEXT, "cache-control": "no-store",
              "content-length": str(len(body) + 1)}
    wanted.update((name.replace("_", "-").lower(), value)
                  for name, value in fields.items())
    got = dict(answer.fields)
    check(re.match(r"[A-Z][a-z]{2}, \d\d ", got.pop("date")), answer)
    same(got, wanted, answer)


def decided(outcome, source, reason=None, **fields):
    fields.update(RateLimitly_Outcome=outcome, RateLimitly_Source=source)
    if reason:
        fields["RateLimitly_Reason"] = reason
    return fields


ONE = '"one.0";q=2'


def test_decisions(lab):
    """Allowed, denied, empty, shadow: status, fields and line of each."""
    world = World(lab, RULES)
    for left in (1, 0):
        expect(world.ask("/check/one?key=" + KEY), 200, "allowed",
               **decided("allowed", "server", RateLimit_Policy=ONE,
                         RateLimit='"one.0";r=%d' % left))
    denied = world.ask("/check/one?key=" + KEY)
    wait = denied.field("Retry-After")
    # Half of the window, less what has passed of it, in whole seconds.
    check(2147400 < int(wait) <= 2147484, wait)
    expect(denied, 429, "denied: resource",
           **decided("denied", "server", "resource", RateLimit_Policy=ONE,
                     RateLimit='"one.0";r=0;t=%s' % wait, Retry_After=wait))
    # Another key has another bucket.
    same(world.ask("/check/one?key=other").status, 200)
    expect(world.ask("/check/two?key=a&tokens=5"), 200, "allowed",
           **decided("allowed", "server",
                     RateLimit_Policy='"two.0";q=3600;w=3600, "two.1";q=7',
                     RateLimit='"two.0";r=3595, "two.1";r=2'))
    expect(world.ask("/check/empty"), 200, "allowed",
           **decided("allowed", "empty"))
    world.ask("/check/watch?key=a")
    answer = world.ask("/check/watch?key=a")
    same(answer.field("Retry-After"), None)
    expect(answer, 200, "denied: resource",
           **decided("denied", "shadow", "resource",
                     RateLimit_Policy='"watch.0";q=1',
                     RateLimit=answer.field("RateLimit")))
    counters = world.agent.counters()
    same([counters[name] for name in (
        "checks", "allowed", "denied", "source_empty", "source_shadow",
        "http_2xx", "http_4xx", "http_5xx", "http_bad", "http_connections")],
         [8, 6, 2, 1, 1, 7, 1, 0, 0, 8])
    # The key is told to nobody.
    with open(os.path.join(lab.path, "http.log"), "rb") as log:
        text = log.read()
    check(KEY.encode() not in text and b"wide" not in text, text)


def test_same_as_ipc(lab):
    """What is taken over HTTP is gone over IPC, and the other way."""
    world = World(lab, RULES)
    same(world.ask("/check/one?key=k").status, 200)
    same(world.agent.check("one", "--key", "k")["outcome"], "allowed")
    same(world.ask("/check/one?key=k").status, 429)
    same(world.agent.check("one", "--key", "k")["outcome"], "denied")
    rules = {row["name"]: row for row in
             world.agent.ctl("rules", "--json").json()["rules"]}
    same([rules["one"]["counters"][name] for name in
          ("checks", "allowed", "denied")], [4, 2, 2])


def test_failures(lab):
    """A server that is silent: closed, open, local and shadow."""
    rules = dict(RULES, both=rule("both", on_failure="closed", mode="shadow"))
    world = World(lab, rules, policy=SHORT)
    world.deaf()
    policy = {"RateLimit_Policy": '"shut.0";q=2;w=60'}
    expect(world.ask("/check/shut"), 503, "failed: timeout",
           **decided("failed", "policy", "timeout", **policy))
    expect(world.ask("/check/open"), 200, "failed: timeout",
           **decided("failed", "policy", "timeout",
                     RateLimit_Policy='"open.0";q=2;w=60'))
    expect(world.ask("/check/both"), 200, "failed: timeout",
           **decided("failed", "shadow", "timeout",
                     RateLimit_Policy='"both.0";q=2;w=60'))
    statuses = []
    for _ in range(2):
        answer = world.ask("/check/local")
        same(answer.field("RateLimitly-Source"), "local")
        statuses.append((answer.status, answer.field("Retry-After")))
    same(statuses[0], (200, None))
    check(statuses[1][0] == 503 and int(statuses[1][1]) > 900, statuses)
    same([world.counter(name) for name in ("failed_timeout", "http_5xx",
                                           "source_local")], [5, 2, 2])


def test_no_server(lab):
    """Without a server: 503 by the policy, and readyz says why."""
    world = World(lab, RULES)
    world.document["tenants"]["main"] = {
        "key": {"file": world.key},
        "dns": {"name": "x.example", "timeout_ms": 50, "nameservers": [
            "127.0.0.1:%d" % web.free_port()]}}
    world.agent.stop()
    lab.config(world.document, "gateway.json")
    world.agent = lab.agent(world.file, ready=False)
    poll("the gateway", lambda: os.path.exists(world.path))
    answer = world.ask("/readyz")
    same(answer.status, 503)
    check(answer.body.startswith(
        b"no decision is possible now, tenant main: "), answer)
    same(answer.body.count(b"\n"), 1)
    expect(world.ask("/healthz"), 200, "ok")
    expect(world.ask("/check/shut"), 503, "failed: discovery",
           **decided("failed", "policy", "discovery",
                     RateLimit_Policy='"shut.0";q=2;w=60'))
    same(world.ask("/check/open").status, 200)


def test_wrong(lab):
    """What is asked wrongly: a 4xx with a line that says what, counted."""
    world = World(lab, RULES, gateway={"rules": ["one", "by-*", "slow"]})
    expect(world.ask("/check/one"), 400,
           'failed: validation: bucket "one:{key}" needs a key',
           **decided("failed", "policy", "validation", RateLimit_Policy=ONE))
    expect(world.ask("/check/other"), 403,
           "failed: unauthorised: this listener does not offer the rule",
           **decided("failed", "policy", "unauthorised"))
    expect(world.ask("/check/by-nobody"), 404,
           'failed: unknown-rule: unknown rule "by-nobody"',
           **decided("failed", "policy", "unknown-rule"))
    for target in ("/", "/check", "/check/", "/Check/one", "*", "/metrics/",
                   "/../check/one", "//"):
        expect(world.ask(target), 404,
               "there are /check/RULE, /metrics, /healthz and /readyz")
    for target, text in (
            ("/check/one?key", "key: has no value"),
            ("/check/one?key=%", "key: has a % without two hexadecimal "
             "digits"),
            ("/check/one?key=a&key=b", "key: is given twice"),
            ("/check/one?key=%00", "key: holds a NUL byte"),
            ("/check/one?key=a&tokens=0", "tokens: must be from 1 to 65535"),
            ("/check/one?key=a&tokens=1e3", "tokens: must be a number"),
            ("/check/one?key=a&token=1",
             'unknown parameter "token": there are key and tokens'),
            ("/check/on%00e?key=a", "rule: holds a NUL byte"),
            ("/check/one?key=" + 256 * "k", "key: is longer than 255 bytes")):
        expect(world.ask(target), 400, text)
    for target, method, allow in (
            ("/check/one?key=a", "PUT", "GET, HEAD, POST"),
            ("/check/one?key=a", "DELETE", "GET, HEAD, POST"),
            ("/check/one?key=a", "BREW", "GET, HEAD, POST"),
            ("/metrics", "POST", "GET, HEAD"),
            ("/healthz", "OPTIONS", "GET, HEAD"),
            ("/readyz", "PUT", "GET, HEAD")):
        expect(world.ask(target, method=method, body=b""), 405,
               "the method is not allowed", Allow=allow)
    # A key that fits, and makes a name that does not.
    answer = world.ask("/check/one?key=" + 255 * "k")
    same(answer.status, 400)
    check(b"is longer than 255 bytes" in answer.body, answer)
    counters = world.agent.counters()
    same([counters[name] for name in (
        "http_2xx", "http_4xx", "http_5xx", "http_bad", "failed_validation",
        "failed_unauthorised", "failed_unknown_rule", "permitted")],
         [0, 27, 0, 0, 2, 1, 1, 0])


def test_ways_to_ask(lab):
    """GET, HEAD, POST; query, form and both; escapes; tokens."""
    world = World(lab, dict(RULES, many=rule(
        "many:{key}", limit=100, window_ms=web.YEAR_MS)))

    def left(target, **more):
        answer = world.ask(target, **more)
        same(answer.status, 200, answer)
        return int(re.search("r=([0-9]+)", answer.field("RateLimit"))[1])

    same(left("/check/many?key=a+b%2F&tokens=10"), 90)
    same(left("/check/many?tokens=010&key=%61%20b/"), 80)
    same(left("/check/%6dany?key=a b/".replace(" ", "+")), 79)
    same(left("/check/many", **form(b"key=a+b%2f&tokens=9")), 70)
    same(left("/check/many?key=a+b/", **form(b"tokens=10")), 60)
    same(left("http://some.host/check/many?key=a%20b/"), 59)
    # Bodies of another type are not looked at.
    same(left("/check/many?key=a+b/", method="POST", body=b"key=x&%zz",
              fields=[("Content-Type", "application/json")]), 58)
    same(left("/check/many?key=a+b/", method="POST", body=b""), 57)
    same(left("/check/many?key=a+b/", body=b"key=x"), 56)
    answer = world.ask("/check/many?key=x", **form(b"key=y"))
    same((answer.status, answer.body), (400, b"key: is given twice\n"))
    answer = world.ask("/check/many", **form(b"key=y&%=1"))
    same((answer.status, answer.body), (
        400, b"the name of a parameter: has a % without two hexadecimal "
        b"digits\n"))
    # HEAD: the same fields, nothing else.
    head = world.ask("/check/many?key=a+b/", method="HEAD")
    same((head.status, head.field("RateLimit"), head.field("Content-Length"),
          head.body), (200, '"many.0";r=55', "8", b""))
    same(world.ask("/healthz", method="HEAD").status, 200)
    # A name that needs all kinds of quoting.
    answer = world.ask("/check/na%2Fme%2050%25%22")
    same((answer.status, answer.field("RateLimit")),
         (200, '"na/me 50%25\\".0";r=1'))
    # A chunked form, with an extension and a trailer.
    one = world.web()
    one.send(web.request("/check/many", "POST", None, [
        ("Content-Type", "Application/X-WWW-Form-Urlencoded; charset=utf-8"),
        ("Transfer-Encoding", "chunked")]))
    one.send(b"5;x=y\r\nkey=a\r\n").send(b"3\r\n+b/\r\n0\r\nX: y\r\n\r\n")
    same(one.receive().field("RateLimit"), '"many.0";r=54')


def test_original(lab):
    """What a proxy appends is not asked for, and the key is the header's."""
    world = World(lab, RULES, gateway={"key_header": "X-Client"})
    key = [("X-Client", "c")]

    def ask(target, method="GET", fields=key, **more):
        return world.ask(target, method=method, fields=fields, **more).status

    # All of them are of key c, whatever the client's own query says.
    same(ask("/check/one/"), 200)
    same(ask("/check/one/a/b%zz?key=free&tokens=60000&x", "DELETE"), 200)
    for target in ("/check/one/?key=free", "/check/one//check/other",
                   "/check/one/../two", "/check/one?"):
        same(ask(target), 429, target)
    for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "OPTIONS", "BREW"):
        same(ask("/check/one/x?key=free", method), 429, method)
    same(ask("/check/one/x", "POST", key + form(b"")["fields"],
             body=b"key=free"), 429)
    # In the other form the query goes first.
    same(ask("/check/one?key=free"), 200)
    same(ask("/check/one", "POST", key + form(b"")["fields"],
             body=b"key=free"), 200)
    same(ask("/check/one?key=free"), 429)
    # Twice, empty, none, too long.
    answer = world.ask("/check/one/", fields=key + [("x-client", "d")])
    same((answer.status, answer.body), (400, b"X-Client: is there 2 times\n"))
    for fields in ((), [("X-Client", "")], [("X-Client", "  ")]):
        answer = world.ask("/check/one/?key=free", fields=fields)
        same(answer.status, 400)
        check(b"needs a key" in answer.body, answer)
    same(ask("/check/one/", fields=[("X-Client", 256 * "k")]), 400)
    # It is taken as it is.
    same(ask("/check/one/", fields=[("X-Client", "%63")]), 200)


def test_inform(lab):
    """Metrics are those of rlctl; health and readiness."""
    world = World(lab, RULES)
    world.ask("/check/one?key=" + KEY)
    poll("it to be gone", lambda: world.gateway()["connections"] == 0)
    answer = world.ask("/metrics?anything=%zz")
    same((answer.status, answer.field("Content-Type")),
         (200, "text/plain; version=0.0.4; charset=utf-8"))
    text = answer.body.decode()
    for line in ('rl_agent_http_requests_total{class="2xx"} 1',
                 'rl_agent_http_connections_total 2',
                 'rl_agent_listener_connections{listener="front",'
                 'kind="gateway"} 1',
                 'rl_agent_listener_connections_limit{listener="front",'
                 'kind="gateway"} 256'):
        check("\n" + line + "\n" in text, line, "is not in", text)
    check("personal" not in text)
    same(re.findall("^# HELP ([^ ]*)", text, re.M), re.findall(
        "^# HELP ([^ ]*)", world.agent.ctl("metrics").out, re.M))
    expect(world.ask("/healthz?x"), 200, "ok")
    expect(world.ask("/readyz"), 200, "ready")
    row = world.gateway()
    same([row[name] for name in ("listen", "inflight", "activated")],
         ["unix:" + world.path, 0, False])


def test_callers(lab):
    """Who asks: the kernel's word on a Unix socket, nobody over TCP."""
    world = World(lab, RULES, gateway={"mode": "0666"})
    port = web.free_port()
    gateway = dict(world.document["gateway"], tcp={
        "listen": "127.0.0.1:%d" % port, "deny_status": 403})
    same(world.put(gateway=gateway).status, 0)
    same(world.gateway("tcp")["listen"], "127.0.0.1:%d" % port)
    tcp = world.web(port)
    answer = tcp.ask("/check/by-uid")
    expect(answer, 400, "failed: validation: bucket \"uid:{uid}:{gid}\" needs "
           "a caller whom the kernel knows: over TCP there is no {uid} and no "
           "{gid}", **decided("failed", "policy", "validation",
                              RateLimit_Policy='"by-uid.0";q=2'))
    same([world.ask("/check/by-uid").status for _ in range(3)],
         [200, 200, 429])
    if os.getuid() == 0:
        os.chmod(lab.path, 0o711)
        done = subprocess.run(
            ["setpriv", "--reuid", "40011", "--regid", "40011",
             "--clear-groups", "curl", "-sS", "--unix-socket", world.path,
             "http://x/check/by-uid"], stdout=subprocess.PIPE, check=False,
            stderr=subprocess.STDOUT, timeout=harness.PATIENCE)
        same(done.stdout, b"allowed\n")
    # Each gateway is a listener of its own, and denies as it is told.
    same([world.ask("/check/by-gateway").status for _ in range(3)],
         [200, 200, 429])
    same([tcp.ask("/check/by-gateway").status for _ in range(3)],
         [200, 200, 403])


def test_curl(lab):
    """By curl, as a shell does it."""
    if not shutil.which("curl"):
        raise harness.Skip("there is no curl")
    world = World(lab, RULES)

    def curl(*args):
        done = subprocess.run(
            ["curl", "-sS", "-o", "/dev/null", "-w",
             "%{http_code} %{num_connects}\n", "--unix-socket", world.path,
             *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=harness.PATIENCE, check=False)
        same(done.returncode, 0, done.stdout)
        return done.stdout.decode().split("\n")[:-1]

    # Two on one connection.
    same(curl("http://x/check/one?key=c", "-o", "/dev/null",
              "http://x/check/one?key=c"), ["200 1", "200 0"])
    same(curl("http://x/check/one?key=c"), ["429 1"])
    same(curl("--data-urlencode", "key=a b", "http://x/check/one"),
         ["200 1"])
    same(curl("-I", "http://x/readyz"), ["200 1"])
    same(curl("-H", "Expect: 100-continue", "-d", "key=z",
              "http://x/check/one"), ["200 1"])
    same(curl("--http1.0", "http://x/healthz"), ["200 1"])


harness.run([test_decisions, test_same_as_ipc, test_failures, test_no_server,
             test_wrong, test_ways_to_ask, test_original, test_inform,
             test_callers, test_curl])
