#!/usr/bin/env python3
"""
The gateway's connections: kept and pipelined, too many, too long, too slow,
half-open, gone while a check runs, drained, reloaded, and fed with bytes that
are no HTTP. Whatever one of them does, the others are served.
"""

import os
import random
import resource
import select
import signal
import socket
import stat
import time

import harness
import manager
import web
from harness import check, poll, same
from web import World, form, request, rule

# In flight until the server hears again: H = 16 s.
STUBBORN = {"unit_ms": 500, "replay_count": 30, "completion_delivery": False}
RULES = {"one": rule("one:{key}", limit=1000, window_ms=web.YEAR_MS),
         "shut": rule("shut", limit=1000, on_failure="closed"),
         "other": rule("other")}
SEED = int(os.environ.get("TEST_SEED", str(random.randrange(2**32))))


def left(answer):
    return int(answer.field("RateLimit").split("=")[1])


def waiting(world, count):
    """So many checks of gateways wait for their answer."""
    poll("%d in flight" % count, lambda: world.agent.inflight() == count)


def begin(world, data):
    """A connection with the start of a request, that the agent has seen."""
    one = world.web()
    for at in range(0, len(data), 5):
        one.send(data[at:at + 5])
        world.agent.status()
    return one


def test_kept(lab):
    """Many requests on one connection, one after the other and ahead."""
    world = World(lab, RULES)
    one = world.web()
    for n in range(20):
        same(left(one.ask("/check/one?key=a")), 999 - n)
        same(one.ask("/healthz").body, b"ok\n")
        same(one.ask("/nowhere").status, 404)
        same(one.ask("/check/one?key=a&key=b").status, 400)
    # Answers come in the order of the requests, whatever each takes.
    targets = ["/check/one?key=b", "/healthz", "/check/one?key=b", "/nope",
               "/check/one", "/check/one?key=b"] * 30
    one.send(b"".join(request(target) for target in targets))
    answers = [one.receive() for _ in targets]
    same([answer.status for answer in answers],
         [200, 200, 200, 404, 400, 200] * 30)
    same([left(a) for a, t in zip(answers, targets) if t == targets[0]],
         list(range(999, 909, -1)))
    # Forms, too, and one byte at a time.
    for byte in request("/check/one", **form(b"key=b")) * 2:
        one.send(bytes([byte]))
    same([left(one.receive()) for _ in range(2)], [909, 908])
    same(world.counter("http_connections"), 1)
    # Who asks for it, or speaks the version before, is closed.
    same(one.ask("/healthz", fields=[("Connection", "close")]).field(
        "Connection"), "close")
    same(one.closed(), b"")
    two = world.web()
    same(two.ask("/healthz", version="1.0").status, 200)
    same(two.closed(), b"")
    same(world.counter("http_bad"), 0)


def test_too_long(lab):
    """Head, target, body, form: refused with an answer that can be read."""
    world = World(lab, RULES)

    def refused(data, status):
        one = world.web()
        one.send(data)
        answer = one.receive()
        same(answer.status, status, data[:60])
        one.closed()
        return answer

    same(world.ask("/healthz", fields=[("X", 20000 * "x")]).status, 200)
    same(world.ask("/check/one?key=" + 200 * "k" + "&" * 20000).status, 200)
    # Far over it: what is sent meanwhile must not hide the answer.
    refused(request("/healthz", fields=[("X", 300000 * "x")]), 431)
    refused(request("/" + 300000 * "x"), 414)
    refused(request("/healthz", fields=[("X", "")] * 20000), 431)
    refused(request("/healthz", fields=[("Cookie", "a;" * 40000)]), 431)
    answer = refused(request("/healthz", "POST", b"x" * 65537), 413)
    same((answer.body, answer.field("Connection")),
         (b"the body is longer than 65536 bytes\n", "close"))
    refused(b"POST /check/one?key=a HTTP/1.1\r\nHost: x\r\n"
            b"Content-Length: 99999999999999999999\r\n\r\n", 413)
    refused(request("/check/one?key=a", "POST", None, [
        ("Transfer-Encoding", "chunked")]) + 70 * (
            b"400\r\n" + 1024 * b"x" + b"\r\n") + b"0\r\n\r\n", 413)
    # As much as is taken.
    same(world.ask("/check/one?key=a", method="POST",
                   body=b"x" * 65536).status, 200)
    same(world.ask("/check/one", **form(b"key=a" + 8187 * b"&")).status, 200)
    answer = world.ask("/check/one", **form(b"key=a" + 8188 * b"&"))
    same((answer.status, answer.body),
         (413, b"the form is longer than 8192 bytes\n"))
    # A body without end is not even answered.
    one = world.web()
    one.send(request("/check/one?key=a", "POST", None, [
        ("Transfer-Encoding", "chunked")]))
    try:
        for _ in range(100000):
            one.send(b"400\r\n" + 1024 * b"x" + b"\r\n")
        raise harness.Failure("100 MB of a body were taken")
    except OSError:
        pass
    same(world.counter("checks"), 3)
    same(world.ask("/healthz").status, 200)


def test_no_http(lab):
    """What is no HTTP, and what two readers could read in two ways."""
    world = World(lab, RULES)
    check_one = b"POST /check/one?key=a HTTP/1.1\r\nHost: x\r\n"
    for data in (
            b"NONSENSE\r\n\r\n", b"GET /healthz FTP/1.0\r\n\r\n",
            b"GET /healthz HTTP/1.1\r\n\r\n",
            b"GET /healthz HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n",
            b"GET /health z HTTP/1.1\r\nHost: x\r\n\r\n",
            b"GET /healthz\x01 HTTP/1.1\r\nHost: x\r\n\r\n",
            b"GET /healthz HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n",
            check_one + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
            check_one + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
            check_one + b"Content-Length: -1\r\n\r\n",
            check_one + b"Content-Length: 3x\r\n\r\nabc",
            check_one + b"Content-Length: 0x3\r\n\r\nabc",
            check_one + b"Content-Length: 3\r\nTransfer-Encoding: chunked"
            b"\r\n\r\n0\r\n\r\n",
            check_one + b"Transfer-Encoding: gzip, chunked\r\n\r\n"
            b"0\r\n\r\n",
            check_one + b"Transfer-Encoding: chunked\r\n"
            b"Transfer-Encoding: identity\r\n\r\n0\r\n\r\n",
            check_one + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
            check_one + b"Transfer-Encoding: chunked\r\n\r\n"
            b"ffffffffffffffffff\r\n"):
        one = world.web()
        one.send(data + b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        came = one.closed()
        check(came == b"" or came.startswith((b"HTTP/1.1 4", b"HTTP/1.0 4",
                                              b"HTTP/1.1 505")), data, came)
        # The rest was no request.
        check(b"200 OK" not in came, data, came)
        same(came.count(b"Connection: close") > 0, came != b"", data, came)
    same(world.counter("checks"), 0)
    check(world.counter("http_bad") > 0)
    same(world.ask("/healthz").status, 200)


def test_too_many(lab):
    """One more than max_connections is told so; then there is room again."""
    world = World(lab, RULES, gateway={"max_connections": 2},
                  limits={"max_connections_per_uid": 3})
    ones = [world.web(), world.web()]
    for one in ones:
        same(one.ask("/healthz").status, 200)
    for _ in range(3):
        refused = world.web()
        answer = refused.receive()
        same((answer.status, answer.body, answer.field("Retry-After")),
             (503, b"too many connections on this listener\n", "1"))
        same(refused.closed(), b"")
    same(ones[0].ask("/healthz").status, 200)
    ones[1].close()
    poll("room", lambda: world.gateway()["connections"] == 1)
    same(world.ask("/healthz").status, 200)
    same([world.counter(name) for name in (
        "http_connections", "http_refused", "cap_connections")], [6, 3, 3])
    # Those of one user are counted together with those over IPC.
    clients = [socket.socket(socket.AF_UNIX) for _ in range(2)]
    for client in clients:
        client.connect(world.agent.socket)
        lab.closers.append(client.close)
    answer = world.web().receive()
    same((answer.status, answer.body),
         (503, b"too many connections of this uid\n"))


def test_few_descriptors(lab):
    """Descriptors are kept back from gateways for the control socket."""
    world = World(lab, RULES)
    resource.prlimit(world.agent.pid, resource.RLIMIT_NOFILE, (64, 64))
    ones = [world.web() for _ in range(64)]
    control = os.path.join(lab.path, "agent", "control.sock")
    poll("all of them", lambda: lab.ctl(
        "--socket", control, "status", "--json").json()["counters"][
            "http_connections"] == 64)
    for one in ones:
        one.close()
    poll("room", lambda: world.gateway()["connections"] == 0)
    same(world.ask("/healthz").status, 200)
    counters = world.agent.counters()
    check(0 < counters["cap_descriptors"] == counters["http_refused"] < 64,
          counters)


def test_overloaded(lab):
    """The caps on checks in flight are those of all callers."""
    world = World(lab, RULES, policy=STUBBORN, limits={"max_inflight": 2})
    world.deaf()
    ones = [world.web().send(request("/check/one?key=a")) for _ in range(2)]
    waiting(world, 2)
    answer = world.ask("/check/shut")
    same((answer.status, answer.field("RateLimitly-Reason"), answer.body),
         (503, "overloaded", b"failed: overloaded\n"))
    same(world.ask("/check/one?key=a").status, 200)
    same(world.ask("/healthz").status, 200)
    same(world.gateway()["inflight"], 2)
    world.deaf(0)
    same([one.receive().status for one in ones], [200, 200])
    same(world.counter("cap_inflight"), 2)


def test_gone(lab):
    """Who goes while his check runs has cancelled it."""
    world = World(lab, RULES, policy=STUBBORN, gateway={"mode": "0666"})
    port = web.free_port()
    world.put(gateway=dict(world.document["gateway"],
                           tcp={"listen": "127.0.0.1:%d" % port}))
    world.deaf()

    def close(one):
        one.sock.close()

    def half(one):
        one.sock.shutdown(socket.SHUT_WR)

    def reset(one):
        one.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                            b"\1\0\0\0\0\0\0\0")
        one.sock.close()

    def ahead(one):
        # Pipelined requests that nobody reads must not hide the end.
        one.send(request("/healthz") * 10)
        one.sock.close()

    cancelled = 0
    for where in (world.path, port):
        for leave in (close, half, reset, ahead):
            one = world.web(where).send(request("/check/one?key=a"))
            waiting(world, 1)
            leave(one)
            waiting(world, 0)
            cancelled += 1
            world.reach("cancelled", cancelled)
            if leave is half:
                same(one.closed(), b"")
    # At once: the end comes together with the request.
    one = world.web().send(request("/check/one?key=a"))
    one.sock.shutdown(socket.SHUT_WR)
    same(one.closed(), b"")
    world.reach("cancelled", cancelled + 1)
    # What needs no waiting is answered all the same.
    one = world.web().send(request("/healthz"))
    one.sock.shutdown(socket.SHUT_WR)
    same(one.receive().status, 200)
    world.deaf(0)
    same(world.ask("/check/one?key=a").status, 200)
    poll("none is left", lambda: world.gateway()["connections"] == 0)


def test_half_open(lab):
    """Who goes, or stops, amid a request costs the others nothing."""
    world = World(lab, RULES)
    whole = request("/check/one", **form(b"key=a"))
    stopped = [world.web().send(whole[:n]) for n in range(1, len(whole), 7)]
    for n in range(1, len(whole)):
        one = world.web().send(whole[:n])
        one.close()
    same(world.ask("/check/one?key=b").status, 200)
    poll("those that are gone to be seen", lambda: world.gateway()[
        "connections"] == len(stopped))
    # Those that were seen to begin are counted.
    before = world.counter("http_bad")
    for n in (10, len(whole) - 1):
        begin(world, whole[:n]).close()
    world.reach("http_bad", before + 2)
    same(world.counter("checks"), 1)
    for one, n in zip(stopped, range(1, len(whole), 7)):
        one.send(whole[n:])
    same([one.receive().status for one in stopped], [200] * len(stopped))


def test_slow(lab):
    """Whatever trickles in or is not read: 10 seconds; nothing at all: 60."""
    world = World(lab, RULES)
    began = time.monotonic()
    fresh, kept = world.web(), world.web()
    same(kept.ask("/healthz").status, 200)
    heads = [world.web().send(b"G"),
             world.web().send(request("/healthz")[:-2]),
             world.web().send(request("/check/one", "POST", None, [
                 ("Transfer-Encoding", "chunked")])),
             world.web().send(request("/check/one", "POST", b"x" * 100)[:-50])]
    # A slow reader: answers fill what the kernel holds for it.
    lazy = world.web()
    lazy.sock.setblocking(False)
    poll("its answers not to fit", lambda: not stuff(lazy, 20))
    trickle = [b"E", b"X: y\r\n", b"1\r\nx\r\n", b"x"]
    open_now = list(range(len(heads)))

    def feed():
        for n in list(open_now):
            try:
                heads[n].sock.setblocking(False)
                heads[n].send(trickle[n])
                if heads[n].sock.recv(100) == b"":
                    open_now.remove(n)
            except BlockingIOError:
                pass
            except OSError:
                open_now.remove(n)
        same(world.ask("/check/one?key=b").status, 200)
        # A trickle, which is not to be a flood, until one is closed.
        select.select([heads[n].sock for n in open_now], [], [], 0.2)
        return not open_now

    poll("the slow ones to be closed", feed)
    check(time.monotonic() - began >= 10 - 0.1, "they were closed early")
    poll("the lazy one to be closed",
         lambda: world.counter("http_slow") == len(heads) + 1)
    # Those without a request are there still, and one of them asks.
    same(world.gateway()["connections"], 2)
    same(kept.ask("/healthz").status, 200)
    same(fresh.closed(), b"")
    check(time.monotonic() - began >= 60 - 0.1, "it was closed early")
    same(kept.ask("/healthz").status, 200)
    same(world.counter("http_slow"), len(heads) + 1)


def stuff(one, count):
    """Sends requests whose answers are not read; is there room for more?"""
    try:
        for _ in range(count):
            one.send(request("/metrics"))
        return True
    except OSError:
        return False


def test_unread(lab):
    """Long documents that nobody reads are bounded, all together."""
    rules = {"rule-%d" % n: rule("bucket") for n in range(4000)}
    world = World(lab, rules, gateway={"max_connections": 64})
    size = len(world.ask("/metrics").body)
    check(size > 1000000, size)
    lazy = []
    for _ in range(60):
        lazy.append(world.web().send(request("/metrics")))
        row = world.ask("/metrics")
        if row.status == 503:
            break
    same((row.status, row.body), (503, b"too many documents are not read\n"))
    check(16 * 2**20 <= (len(lazy) + 1) * size <= 16 * 2**20 + 3 * size,
          len(lazy), size)
    same(world.ask("/healthz").status, 200)
    same(world.ask("/check/rule-7").status, 200)
    same([len(one.receive().body) >= size for one in lazy],
         [True] * len(lazy))
    same(world.ask("/metrics").status, 200)


def test_drain(lab):
    """What is under way is answered; then the connections end."""
    world = World(lab, RULES, policy=STUBBORN)
    world.deaf()
    idle = world.web()
    same(idle.ask("/healthz").status, 200)
    asking = world.web().send(request("/check/one?key=a"))
    late = begin(world, request("/readyz")[:20])
    waiting(world, 1)
    world.agent.signal(signal.SIGTERM)
    same(idle.closed(), b"")
    poll("the socket to be gone", lambda: not os.path.exists(world.path))
    # A request that had begun; the agent says what it is about.
    late.send(request("/readyz")[20:])
    answer = late.receive()
    same((answer.status, answer.body, answer.field("Connection")),
         (503, b"draining\n", "close"))
    same(late.closed(), b"")
    world.deaf(0)
    answer = asking.receive()
    same((answer.status, answer.field("Connection")), (200, "close"))
    same(asking.closed(), b"")
    same(world.agent.wait(), 0)


def test_drain_late(lab):
    """A check that comes whole while the agent drains fails by its policy."""
    world = World(lab, RULES, policy=STUBBORN)
    world.deaf()
    asking = world.web().send(request("/check/one?key=a"))
    whole = {"one?key=a": request("/check/one?key=a"),
             "shut": request("/check/shut")}
    begun = {name: begin(world, data[:-1]) for name, data in whole.items()}
    waiting(world, 1)
    silent = world.web()
    poll("all to be there", lambda: world.gateway()["connections"] == 4)
    same(world.ask("/healthz").status, 200)
    begin_of_end = time.monotonic()
    world.agent.signal(signal.SIGTERM)
    # It might have asked for something still; then it is late for all.
    same(silent.closed(), b"")
    check(time.monotonic() - begin_of_end >= 0.19)
    for name, one in begun.items():
        one.send(whole[name][-1:])
    answers = {name: one.receive() for name, one in begun.items()}
    same({name: (answer.status, answer.field("RateLimitly-Reason"),
                 answer.field("Connection"))
          for name, answer in answers.items()},
         {"one?key=a": (200, "draining", "close"),
          "shut": (503, "draining", "close")})
    world.deaf(0)
    same(asking.receive().status, 200)
    same(world.agent.wait(), 0)


def test_quit(lab):
    """What is under way is cancelled, and the agent gone at once."""
    world = World(lab, RULES, policy=STUBBORN)
    world.deaf()
    asking = world.web().send(request("/check/one?key=a"))
    idle = world.web()
    waiting(world, 1)
    world.agent.ctl("quit")
    answer = asking.receive()
    same((answer.status, answer.field("RateLimitly-Outcome")),
         (503, "cancelled"))
    same((asking.closed(), idle.closed()), (b"", b""))
    same(world.agent.wait(), 0)


def test_reload(lab):
    """Gateways come, change and go; connections stay where they may."""
    world = World(lab, RULES, policy=STUBBORN)
    one = world.web()
    same(one.ask("/check/one?key=a").status, 200)
    port = web.free_port()
    second = os.path.join(lab.path, "second.sock")
    front = {"listen": "unix:" + world.path, "mode": "0600",
             "rules": ["shut"], "deny_status": 418, "max_connections": 3}
    same(world.put(gateway={
        "front": front, "tcp": {"listen": "127.0.0.1:%d" % port},
        "second": {"listen": "unix:" + second}}).status, 0)
    same(stat.S_IMODE(os.stat(world.path).st_mode), 0o600)
    # The same connection, under what is in force now.
    same(one.ask("/check/one?key=a").status, 403)
    same(one.ask("/check/shut").status, 200)
    same(one.ask("/check/shut?tokens=1000").status, 418)
    tcp, other = world.web(port), world.web(second)
    for each in (tcp, other):
        same(each.ask("/check/one?key=a").status, 200)
    same(sorted(row["name"] for row in world.agent.status()["gateway"]),
         ["front", "second", "tcp"])
    # One that cannot listen: nothing changes.
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        refused = world.put(gateway={"front": front, "tcp": {
            "listen": "127.0.0.1:%d" % taken.getsockname()[1]}})
        check(refused.status != 0 and "gateway.tcp.listen: 127.0.0.1:"
              in refused.err and "cannot bind" in refused.err, refused)
    same(tcp.ask("/check/one?key=a").status, 200)
    # Two are gone: idle connections end, a check under way is answered.
    world.deaf()
    other.send(request("/check/one?key=a"))
    waiting(world, 1)
    same(world.put(gateway={"front": front}).status, 0)
    same(tcp.closed(), b"")
    check(not os.path.exists(second))
    try:
        web.Web(lab, port)
        raise harness.Failure("the port is served")
    except ConnectionRefusedError:
        pass
    world.deaf(0)
    answer = other.receive()
    same((answer.status, answer.field("Connection")), (200, "close"))
    same(other.closed(), b"")
    same(one.ask("/check/shut").status, 200)
    # All of them, and then one again.
    same(world.put(gateway={}).status, 0)
    same(one.closed(), b"")
    same(world.agent.status()["gateway"], [])
    same(world.put(gateway={"front": front}).status, 0)
    same(world.ask("/check/shut").status, 200)
    # A listener in the place of a gateway is not for one step.
    refused = world.put(gateway={}, listeners=dict(
        world.document["listeners"], second={"path": world.path}))
    check(refused.status != 0 and "take each other's place" in refused.err,
          refused)


def test_start(lab):
    """Places that cannot be had, and files that a killed agent left."""
    world = World(lab, RULES)
    world.agent.kill()
    check(os.path.exists(world.path))
    world.agent = lab.agent(world.file)
    same(world.ask("/healthz").status, 200)
    port = web.free_port()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        document = dict(world.document, gateway={
            "front": {"listen": "127.0.0.1:%d" % port}},
            listeners={"main": {"path": lab.socket_path("x")}})
        bad = lab.agent(document, ready=False)
        check(bad.wait() != 0)
        lines = bad.err().strip().split("\n")
        check("gateway.front.listen: 127.0.0.1:%d: cannot bind: " % port
              in lines[-1], lines)
    same(world.ask("/healthz").status, 200)


def test_passed(lab):
    """Sockets that a service manager passes are taken by their names."""
    world = World(lab, RULES)
    world.agent.stop()
    passed = manager.Manager(lab)
    passed.listen("gateway.front", world.path, 0o660)
    inet = socket.socket()
    inet.bind(("127.0.0.1", 0))
    inet.listen(10)
    port = inet.getsockname()[1]
    passed.hold("gateway.tcp", inet, None)
    world.document["gateway"]["tcp"] = {"listen": "127.0.0.1:%d" % port}
    lab.config(world.document, "gateway.json")
    # Who came before it waits, and is served.
    early = [world.web(), world.web(port)]
    for one in early:
        one.send(request("/check/one?key=a"))
    world.agent = passed.start(world.file)
    world.agent.ready()
    same([one.receive().status for one in early], [200, 200])
    same([row["activated"] for row in world.agent.status()["gateway"]],
         [True, True])
    same(world.agent.stop(), 0)
    check(os.path.exists(world.path))


def hostile(rnd):
    """Bytes between HTTP and noise."""
    data = bytearray(request(
        rnd.choice(["/check/one?key=a", "/metrics", "/check/one/x", "*",
                    "/check/%00", "/" + "a" * rnd.randrange(3000)]),
        rnd.choice(["GET", "POST", "HEAD", "PUT", "\x00", ""]),
        rnd.choice([None, b"", b"key=a&tokens=2", bytes(rnd.randrange(300))]),
        [("Content-Type", "application/x-www-form-urlencoded"),
         ("Transfer-Encoding", "chunked"), ("Expect", "100-continue"),
         ("Connection", "close"), ("Cookie", "a=b; c"), ("X", "\x00\xff")][
             :rnd.randrange(7)]) * rnd.randrange(1, 4))
    for _ in range(rnd.randrange(6)):
        at = rnd.randrange(len(data) or 1)
        what = rnd.randrange(4)
        if what == 0:
            data[at:at + 1] = bytes([rnd.randrange(256)])
        elif what == 1:
            del data[at:at + rnd.randrange(20)]
        elif what == 2:
            data[at:at] = rnd.randbytes(rnd.randrange(50))
        else:
            data[at:at] = rnd.choice([b"\r\n", b"\n", b"\0", b"\r", b" ",
                                      b":", b"%", b"0\r\n\r\n"])
    return bytes(data) if rnd.random() < 0.9 else rnd.randbytes(500)


def test_hostile(lab):
    """Random bytes: no harm, and others are served all the while."""
    world = World(lab, RULES)
    print("# TEST_SEED=%d" % SEED)
    rnd = random.Random(SEED)
    good = world.web()
    ones = []
    for n in range(3000):
        one = world.web()
        try:
            one.send(hostile(rnd))
            if rnd.random() < 0.1:
                one.sock.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        if rnd.random() < 0.5:
            one.close()
        else:
            ones.append(one)
        if len(ones) > 100:
            ones.pop(rnd.randrange(len(ones))).close()
        if n % 50 == 0:
            same(good.ask("/check/shut").status, 200)
    for one in ones:
        one.close()
    poll("all to be gone", lambda: world.gateway()["connections"] == 1)
    poll("nothing to be left", lambda: world.agent.inflight() == 0)
    same(good.ask("/healthz").status, 200)
    same(world.agent.stop(), 0)


harness.run([test_slow, test_kept, test_too_long, test_no_http, test_too_many,
             test_few_descriptors, test_overloaded, test_gone, test_half_open,
             test_unread, test_drain, test_drain_late, test_quit, test_reload, test_start,
             test_passed, test_hostile])
