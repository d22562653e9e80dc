"""
What the tests of web servers in front of a gateway share: the files of
deploy/proxies, which run as they are but for ports and paths, an origin that
they protect, and clients with addresses of their own. The programs are named
by RLA_NGINX, RLA_CADDY, RLA_HAPROXY and RLA_CURL, or found in PATH and the sbin
folders; one that is missing skips the test, unless RLA_REQUIRE_PROXIES is set.
"""

import collections
import http.client
import http.server
import json
import os
import re
import signal
import socket
import sys
import threading

import harness
from harness import PATIENCE, Failure, Process, check, poll, same

TOP = os.environ.get("srcdir", ".")
FOLDER = os.path.join(TOP, "deploy", "proxies")
STARTS = 8  # a port may be taken between our look and the server's
# A limit that does not come back while a test runs.
LONG_MS = 3600000
# H = 1.5 s, as most tests have it: what waits for it gives up too early.
PATIENT = "90s"


def program(name):
    return harness.find_program(name, "RLA_REQUIRE_PROXIES")


def read(name):
    with open(os.path.join(FOLDER, name), encoding="utf-8") as f:
        return f.read()


def listen(gateway):
    """Where one of rl-agent.json listens."""
    return json.loads(read("rl-agent.json"))["gateway"][gateway]["listen"]


def replaced(text, pairs):
    """Each of these texts has to be there."""
    for old, new in pairs:
        check(old in text, "there is no", old)
        text = text.replace(old, new)
    return text


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Origin:
    """What is to be protected: it says what it was asked, and counts it.
    /status/NNN is answered with that status, all else with 200; when it is
    dead, nothing is."""

    def __init__(self, lab):
        self.requests = []
        self.dropped = 0
        self.dead = False
        origin = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def any(self):
                if origin.dead:
                    origin.dropped += 1
                    self.close_connection = True
                    return
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length)
                origin.requests.append((self.command, self.path,
                                        dict(self.headers), body))
                match = re.match("/status/([0-9]+)", self.path)
                status = int(match[1]) if match else 200
                said = b"origin: %d bytes\n" % len(body)
                self.send_response(status)
                if status != 204:
                    self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                if status != 204 and self.command != "HEAD":
                    self.wfile.write(said)

            do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = any

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            request_queue_size = 256
            daemon_threads = True

            def handle_error(self, request, client_address):
                if not isinstance(sys.exc_info()[1], ConnectionError):
                    super().handle_error(request, client_address)

        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        thread.start()
        lab.closers.append(self.close)

    def close(self):
        self.dead = True
        self.server.shutdown()
        self.server.server_close()

    def count(self):
        return len(self.requests)


Answer = collections.namedtuple("Answer", "status fields body")


def field(answer, name):
    """The value of the one field of that name; None: there is none."""
    found = [value for key, value in answer.fields
             if key.lower() == name.lower()]
    check(len(found) < 2, name, "is there more than once", answer)
    return found[0] if found else None


class World:
    """A sandbox of one server and an agent with the configuration of the
    examples, but for limits that last, and a schedule of tests."""

    def __init__(self, lab, limits=None, policy=None, manager=None,
                 tcp=False):
        self.lab, self.manager = lab, manager
        self.key = lab.keygen("main", fmt=0, dedup_ms=0)
        self.sandbox = lab.sandbox(self.key, cluster=1)
        server = self.sandbox.servers[0]
        self.origin = Origin(lab)
        self.port = None  # of Traefik's gateway
        self.document = json.loads(read("rl-agent.json"))
        self.document.update(
            log={"level": "info"},
            listeners={"main": {"path": lab.socket_path(), "mode": "0600"}})
        self.document["tenants"]["main"] = {
            "key": {"file": self.key}, "policy": policy or harness.POLICY,
            "servers": [{"id": str(server["server_id"]),
                         "address": server["addresses"][0]}]}
        for name, limit in (limits or {"checkout": 2, "login": 1}).items():
            self.document["rules"][name]["resources"][0].update(
                window_ms=LONG_MS, limit=limit)
        gateways = self.document["gateway"]
        for name in ("nginx", "front"):
            gateways[name]["listen"] = "unix:" + self.socket(name)
        if tcp:
            self.agent = self.start_with_port()
        else:
            del gateways["traefik"]
            self.file = lab.config(self.document, "gateways.json")
            self.agent = self.start()

    def start_with_port(self):
        for attempt in range(1, STARTS + 1):
            self.port = free_port()
            self.document["gateway"]["traefik"]["listen"] = \
                "127.0.0.1:%d" % self.port
            self.file = self.lab.config(self.document, "gateways.json")
            try:
                return self.start()
            except Failure as failure:
                if attempt == STARTS or "already in use" not in str(failure):
                    raise

    def socket(self, name):
        return os.path.join(self.lab.path, name + ".sock")

    def start(self, ready=True):
        if self.manager:
            return self.manager.start(self.file, ready)
        return self.lab.agent(self.file, ready)

    def deaf(self):
        """The server hears nothing from now on."""
        self.sandbox.command("drop 0 1")

    def counter(self, name):
        return self.agent.counters()[name]


class Proxy:
    """A web server of the laboratory, which listens at a port of its own.
    configure(port) writes what it needs and gives the command to run."""

    def __init__(self, lab, name, configure, env=None):
        self.lab = lab
        for _ in range(STARTS):
            self.port = free_port()
            self.process = Process(lab, lab.name(name), configure(self.port),
                                   env)
            if self.comes_up():
                return
        raise Failure("%s does not start: %s" % (name, self.process.err()))

    def comes_up(self):
        def up_or_over():
            with socket.socket() as s:
                return not self.process.running() or \
                    s.connect_ex(("127.0.0.1", self.port)) == 0
        poll(self.process.name, up_or_over)
        return self.process.running()

    def connect(self, client=1):
        """A connection of that client: 127.0.0.CLIENT."""
        return http.client.HTTPConnection(
            "127.0.0.1", self.port, timeout=PATIENCE + 40,
            source_address=("127.0.0.%d" % client, 0))

    def ask(self, target, method="GET", client=1, body=None, fields=None,
            connection=None):
        c = connection or self.connect(client)
        c.request(method, target, body=body, headers=fields or {})
        response = c.getresponse()
        answer = Answer(response.status, response.getheaders(),
                        response.read())
        if connection is None:
            c.close()
        return answer

    def statuses(self, *targets, **more):
        return [self.ask(target, **more).status for target in targets]

    def raw(self, data):
        """The status that these bytes get, sent as they are."""
        with socket.create_connection(("127.0.0.1", self.port),
                                      PATIENCE) as s:
            s.sendall(data)
            came = b""
            while len(came) < len("HTTP/1.1 200"):
                more = s.recv(65536)
                check(more, data, "is not answered")
                came += more
            return int(came[9:12])


def limited(answer, rule, limit):
    """A refusal that tells the client all that it should know."""
    same(answer.status, 429, answer)
    same(field(answer, "RateLimit-Policy"),
         '"%s.0";q=%d;w=%d' % (rule, limit, LONG_MS // 1000), answer)
    match = re.fullmatch('"%s.0";r=0;t=([0-9]+)' % rule,
                         field(answer, "RateLimit") or "")
    check(match and 0 < int(match[1]) <= LONG_MS // 1000, answer)
    same(field(answer, "Retry-After"), match[1], answer)


# What each of them has to show, whatever it is.

def decisions(world, proxy):
    """200 and 429 with what the client should know, whatever it sends."""
    for left in (1, 0):
        answer = proxy.ask("/cart?key=other&tokens=2")
        same((answer.status, answer.body), (200, b"origin: 0 bytes\n"), answer)
        same(field(answer, "RateLimit"), '"checkout.0";r=%d' % left)
        same(field(answer, "RateLimit-Policy"),
             '"checkout.0";q=2;w=%d' % (LONG_MS // 1000))
        same(field(answer, "Retry-After"), None)
    same([request[1] for request in world.origin.requests],
         ["/cart?key=other&tokens=2"] * 2)
    limited(proxy.ask("/cart"), "checkout", 2)
    limited(proxy.ask("/cart", method="POST", body=b"x" * 100000), "checkout",
            2)
    same(proxy.ask("/", method="HEAD").status, 429)
    same(world.origin.count(), 2)
    # Another client, another path; a body arrives whole.
    answer = proxy.ask("/", client=2, method="POST", body=b"x" * 1000000)
    same((answer.status, answer.body), (200, b"origin: 1000000 bytes\n"))
    same(proxy.statuses("/login", "/login", client=3), [200, 429])


def origin_is_left_alone(world, proxy):
    """What the origin answers, errors too, and that it does not."""
    for status in (204, 301, 401, 403, 404, 429, 500, 502, 503, 504):
        answer = proxy.ask("/status/%d" % status)
        same(answer.status, status)
        check(field(answer, "RateLimit"), answer)
    # It is not asked twice, which could be an order that is given twice.
    world.origin.dead = True
    same(proxy.ask("/", method="POST", body=b"x").status, 502)
    same(proxy.ask("/", method="POST").status, 502)
    same(world.origin.dropped, 2)
    world.origin.close()
    for target in ("/", "/login"):
        check(proxy.ask(target).status in (502, 503), target)


def servers_dead(world, proxy):
    """No server answers: the failure policy of the rule decides."""
    world.deaf()
    answer = proxy.ask("/cart")
    same((answer.status, field(answer, "RateLimit")), (200, None))
    same(field(answer, "RateLimit-Policy"),
         '"checkout.0";q=2;w=%d' % (LONG_MS // 1000))
    same(proxy.ask("/login").status, 503)
    same(world.origin.count(), 1)


def unanswered(world, proxy):
    """Without an answer of the agent the path decides."""
    before = world.origin.count()
    for _ in range(4):  # more than the limit
        answer = proxy.ask("/cart")
        same((answer.status, field(answer, "RateLimit"),
              field(answer, "RateLimit-Policy")), (200, None, None))
        same(proxy.ask("/login").status, 503)
    same(proxy.ask("/", method="POST", body=b"x" * 1000000).body,
         b"origin: 1000000 bytes\n")
    same(world.origin.count(), before + 5)


def stalled(world, proxy):
    """The agent takes connections and does not answer: the same, in time."""
    world.agent.signal(signal.SIGSTOP)
    unanswered(world, proxy)  # each of these ends, or the test fails
    world.agent.signal(signal.SIGCONT)
    # What was given up is cancelled, and costs nobody.
    poll("all of them to be over", lambda: world.agent.inflight() == 0)


# Each is another key, and takes one token.
KEYS = ("a&tokens=2", "a&key=b", "a%26tokens%3D2", "a?tokens=2", "a#b", "a b",
        "a+b", "%", "%zz", "%00", "a/../login", "a; b", 'a"b', "{key}",
        "{remote_host}", "%[src]", "$uri", "\x80\xff", "a\tb", "a,b", "key=a",
        "..", "/", "*")


def keys_are_data(world, proxy, refused):
    """The key is X-Customer, from the client, and nothing but a key; one that
    cannot be has one of these statuses."""
    for key in KEYS:
        same(proxy.statuses("/", "/", "/", fields={"X-Customer": key}),
             [200, 200, 429], repr(key))
    # Who sets the header of the gateway himself is not heard.
    for name in ("RateLimitly-Key", "ratelimitly-key", "RateLimitly_Key"):
        same(proxy.statuses("/", fields={"X-Customer": "*", name: "me"}),
             [429], name)
    # No key, and one that is too long, are no way around.
    before = world.origin.count()
    check(proxy.ask("/").status in refused)
    for size in [0, 256] + list(range(7000, 17000, 250)):
        status = proxy.ask("/", fields={"X-Customer": "x" * size}).status
        check(status in refused, size, status)
    same(world.origin.count(), before)
    longest = "x" * (255 - len("checkout:"))
    same(proxy.statuses("/", fields={"X-Customer": longest}), [200])


def any_byte(proxy):
    """No byte of a key makes it go through unasked. The limit is 1."""
    for byte in range(256):
        data = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" \
            b"X-Customer: k" + bytes([byte]) + b"k\r\n\r\n"
        statuses = [proxy.raw(data) for _ in range(2)]
        check(statuses in ([200, 429], [503, 503], [400, 400]), byte, statuses)


def restarts(world, proxy, good):
    """Ends and starts it under load; all is good(answer)."""
    load = Load(proxy, "/", 4, good)
    load.wait_for_more(5)
    for _ in range(10):
        same(world.agent.stop(), 0, world.agent.err())
        world.agent = world.start()
        load.wait_for_more(5)
    count = load.finish()
    print("# %d requests over 10 restarts, %d lost" % (count, len(load.bad)))
    same(load.bad, [])
    check(count > 4 * 5 * 10, count)


class Load:
    """Clients that ask for a target one time after the other, each over a
    connection of its own; what they got that was not as good(answer) says."""

    def __init__(self, proxy, target, width, good):
        self.proxy, self.target, self.good = proxy, target, good
        self.over = threading.Event()
        self.done = [0] * width
        self.bad = []
        self.threads = [threading.Thread(target=self.run, args=(i,),
                                         daemon=True) for i in range(width)]
        for thread in self.threads:
            thread.start()

    def run(self, index):
        connection = self.proxy.connect(client=index + 2)
        try:
            while not self.over.is_set():
                answer = self.proxy.ask(self.target, connection=connection)
                self.done[index] += 1
                if not self.good(answer):
                    self.bad.append(answer)
        except (OSError, http.client.HTTPException) as error:
            self.bad.append(repr(error))
        connection.close()

    def wait_for_more(self, count):
        """Of each, since now."""
        before = list(self.done)
        poll("%d more of each" % count, lambda: self.bad or all(
            now >= then + count for now, then in zip(self.done, before)))

    def finish(self):
        self.over.set()
        for thread in self.threads:
            thread.join(PATIENCE + 40)
            check(not thread.is_alive(), "a client hangs")
        return sum(self.done)
