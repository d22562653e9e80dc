"""
A nameserver that misbehaves on demand, over UDP and TCP of one loopback port.
It is written from RFC 1035, 2782 and 6891 and shares nothing with the agent,
the sandbox or peer.py. A behaviour is a function of the server and a Query; it
returns what goes out: over UDP datagrams, over TCP chunks of one stream. The
server counts what it was asked.
"""

import functools
import ipaddress
import select
import socket
import struct
import threading
import time

A, CNAME, SOA, AAAA, SRV, TXT, TSIG = 1, 5, 6, 28, 33, 16, 250
QR, AA, TC, RD, RA, AD = 0x8000, 0x0400, 0x0200, 0x0100, 0x0080, 0x0020
FORMERR, SERVFAIL, NXDOMAIN = 1, 2, 3
ANSWER, AUTHORITY, ADDITIONAL = range(3)
HERE = b"\xc0\x0c"  # a pointer to the name of the question
PAUSE = 0.05        # between two chunks of a stream that drips


def name(text):
    """The wire form, uncompressed."""
    return b"".join(bytes([len(part)]) + part.encode()
                    for part in text.split(".") if part) + b"\0"


def rr(owner, kind, ttl, rdata, klass=1):
    """owner is text, or bytes as they shall stand."""
    owner = owner if isinstance(owner, bytes) else name(owner)
    return owner + struct.pack(">HHIH", kind, klass, ttl, len(rdata)) + rdata


def address(text):
    packed = ipaddress.ip_address(text).packed
    return (A if len(packed) == 4 else AAAA), packed


def srv(port, target):
    return struct.pack(">HHH", 0, 0, port) + name(target)


class Query:
    """One question, with what it takes to answer it."""

    def __init__(self, raw, tcp):
        self.raw, self.tcp = raw, tcp
        self.ident, self.flags, count = struct.unpack_from(">HHH", raw)
        if self.flags & QR or count != 1:
            raise ValueError("no question")
        parts, at = [], 12
        while raw[at]:
            parts.append(raw[at + 1:at + 1 + raw[at]].decode("ascii"))
            at += 1 + raw[at]
        self.question = raw[12:at + 5]
        self.kind, _ = struct.unpack_from(">HH", raw, at + 1)
        self.spelled = ".".join(parts)
        self.name = self.spelled.lower()
        self.edns = struct.unpack_from(">H", raw, 10)[0] == 1

    def reply(self, *sections, flags=0, rcode=0, ident=None, question=None):
        """A message; each section is a list of whole records."""
        sections = list(sections) + [[]] * (3 - len(sections))
        return struct.pack(
            ">HHHHHH", self.ident if ident is None else ident,
            QR | RD | RA | flags | rcode, 1, *[len(s) for s in sections]) + \
            (self.question if question is None else question) + \
            b"".join(b"".join(s) for s in sections)


class Hostile(threading.Thread):
    """records: {(lower-case name, type): [(ttl, rdata)]}, honestly served."""

    def __init__(self, zone, servers, ttl=0):
        super().__init__(daemon=True)
        self.zone, self.ttl = zone, ttl
        self.service = "_ratelimitly._udp." + zone
        self.lock = threading.Lock()
        self.records = {}
        self.behaviour = honest
        self.asked = 0     # over UDP and TCP
        self.by_tcp = 0
        self.timers = []
        self.conns = {}    # socket: bytes that came
        self.drips = {}    # socket: [bytes to come, when the next]
        self.closing = False
        self.udp, self.tcp = sockets()
        self.publish(servers)
        self.start()

    def endpoint(self):
        return "%s:%d" % self.udp.getsockname()

    def publish(self, servers):
        """servers: as in the first line of a sandbox."""
        records = {}
        for server in servers:
            target = "s-%s.%s" % (server["server_id"], self.zone)
            for i, text in enumerate(server["addresses"]):
                host, port = text.rsplit(":", 1)
                kind, packed = address(host.strip("[]"))
                records.setdefault((target, kind), []).append(packed)
                if i == 0:
                    records.setdefault((self.service, SRV), []).append(
                        srv(int(port), target))
        with self.lock:
            self.records = records

    def behave(self, behaviour):
        """From now on; returns how often it was asked before."""
        with self.lock:
            self.behaviour = behaviour
            return self.asked

    def found(self, query):
        return [rr(HERE, query.kind, self.ttl, rdata)
                for rdata in self.records.get((query.name, query.kind), [])]

    def soa(self):
        return rr(self.zone, SOA, self.ttl, name("ns." + self.zone) +
                  name("admin." + self.zone) + struct.pack(
                      ">IIIII", 1, 3600, 600, 86400, self.ttl))

    def count(self):
        with self.lock:
            return self.asked

    # The loop.

    def run(self):
        while not self.closing:
            ready = select.select([self.udp, self.tcp] + list(self.conns),
                                  [], [], PAUSE)[0]
            for sock in ready:
                if sock is self.udp:
                    self.on_datagram()
                elif sock is self.tcp:
                    conn, _ = self.tcp.accept()
                    self.conns[conn] = b""
                else:
                    self.on_stream(sock)
            self.drip()

    def handle(self, raw, tcp):
        try:
            query = Query(raw, tcp)
        except (ValueError, IndexError, struct.error):
            return None, []
        with self.lock:
            self.asked += 1
            self.by_tcp += tcp
            return query, list(self.behaviour(self, query))

    def on_datagram(self):
        raw, peer = self.udp.recvfrom(4096)
        _, out = self.handle(raw, False)
        for item in out:
            if isinstance(item, Later):
                timer = threading.Timer(item.delay, self.udp.sendto,
                                        (item.datagram, peer))
                timer.start()
                self.timers.append(timer)
            else:
                self.udp.sendto(item, peer)

    def on_stream(self, conn):
        try:
            got = conn.recv(4096)
        except OSError:
            got = b""
        if not got:
            self.drop(conn)
            return
        self.conns[conn] += got
        have = self.conns[conn]
        if len(have) < 2 or len(have) < 2 + struct.unpack(">H", have[:2])[0]:
            return
        self.conns[conn] = b""
        _, out = self.handle(have[2:], True)
        for item in out:
            if isinstance(item, Drip):
                self.drips[conn] = [item.stream, 0]
            else:
                self.send(conn, item)

    def send(self, conn, chunk):
        try:
            conn.sendall(chunk)
        except OSError:
            self.drop(conn)

    def drip(self):
        now = time.monotonic()
        for conn, state in list(self.drips.items()):
            if now < state[1]:
                continue
            chunk, state[0], state[1] = state[0][:1], state[0][1:], now + PAUSE
            if chunk:
                self.send(conn, chunk)

    def drop(self, conn):
        self.conns.pop(conn, None)
        self.drips.pop(conn, None)
        conn.close()

    def close(self):
        self.closing = True
        self.join(30)
        for timer in self.timers:
            timer.cancel()
            timer.join(30)
        for sock in [self.udp, self.tcp] + list(self.conns):
            sock.close()


def sockets():
    """UDP and TCP of one port; what is free for one may be taken for both."""
    for _ in range(64):
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        tcp = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        udp.bind(("127.0.0.1", 0))
        try:
            tcp.bind(udp.getsockname())
            tcp.listen(64)
            return udp, tcp
        except OSError:
            udp.close()
            tcp.close()
    raise OSError("no port is free for UDP and TCP")


class Later:
    """A datagram that goes out after so many seconds."""

    def __init__(self, delay, datagram):
        self.delay, self.datagram = delay, datagram


class Drip:
    """A stream that goes out a byte at a time."""

    def __init__(self, stream):
        self.stream = stream


def framed(message):
    return struct.pack(">H", len(message)) + message


def out(query, message):
    """As the transport wants it."""
    return [framed(message) if query.tcp else message]


# Behaviours. The first serves the records as they are.

def answer(dns, query):
    found = dns.found(query)
    if found:
        return query.reply(found, flags=AA)
    known = any(query.name == known for known, _ in dns.records)
    return query.reply([], [dns.soa()], flags=AA,
                       rcode=0 if known else NXDOMAIN)


def honest(dns, query):
    return out(query, answer(dns, query))


def silent(_dns, _query):
    return []


def servfail(_dns, query):
    return out(query, query.reply(rcode=SERVFAIL))


def nxdomain(_dns, query):
    return out(query, query.reply(rcode=NXDOMAIN))


def nxdomain_storm(_dns, query):
    """Many times over, with the ids beside the right one too."""
    if query.tcp:
        return []
    return [query.reply(rcode=NXDOMAIN, ident=(query.ident + i) & 0xffff)
            for i in range(-50, 50)]


def wrong_id(dns, query):
    right = answer(dns, query)
    return out(query, bytes([right[0] ^ 1]) + right[1:])


def wrong_question(dns, query):
    return out(query, query.reply(
        dns.found(query), question=name("x" + query.name) +
        query.question[-4:]))


def wrong_case(dns, query):
    """The letters of the question, each in the other case."""
    return out(query, query.reply(
        dns.found(query), question=name(query.spelled.swapcase()) +
        query.question[-4:]))


def folded_case(dns, query):
    """All letters small, as old nameservers give them back."""
    return out(query, query.reply(
        dns.found(query), [] if dns.found(query) else [dns.soa()],
        question=name(query.name) + query.question[-4:]))


def truncated(dns, query):
    """All of it over TCP; nothing but a lie over UDP."""
    if query.tcp:
        return honest(dns, query)
    return [query.reply([rr(HERE, SRV, 60, srv(1, "s-1." + dns.zone))],
                        flags=TC)]


def truncated_twice(dns, query):
    return out(query, query.reply(dns.found(query), flags=TC))


def pointer_loop(_dns, query):
    at = 12 + len(query.question)
    loop = struct.pack(">H", 0xc000 | at)
    return out(query, query.reply([rr(loop, query.kind, 60, b"\0" * 4)]))


def short_srv(_dns, query):
    return out(query, query.reply([rr(HERE, SRV, 60, b"\0\0\0\0")]))


def repeated_tsig(dns, query):
    tsig = rr("key", TSIG, 0, name("hmac-sha256") + b"\0" * 16, klass=255)
    return out(query, query.reply(dns.found(query), [], [tsig, tsig]))


def huge(dns, query, fill):
    """TC, then 65,535 bytes over TCP: fill(room) after what is true."""
    if not query.tcp:
        return [query.reply(flags=TC)]
    base = query.reply(dns.found(query))
    padding = fill(65535 - len(base))
    message = query.reply(dns.found(query), [], padding)
    assert len(message) == 65535, len(message)
    return [framed(message)]


def huge_true(dns, query):
    """All in order: a record of another type fills it up."""
    return huge(dns, query, lambda room: [rr(HERE, TXT, 60,
                                             b"\0" * (room - 12))])


@functools.lru_cache
def pointers(start, room):
    """A record of pointers, each to the one before it."""
    chain = b"".join(struct.pack(">H", 0xc000 | min(0x3fff, max(12, at - 2)))
                     for at in range(start, start + room - 1, 2))
    return chain + b"\0" * (room - len(chain))


def huge_junk(dns, query):
    """A chain of pointers through all of it, which an alias begins at."""
    return huge(dns, query, lambda room: [rr(HERE, CNAME, 60, pointers(
        65535 - room + 12, room - 12))])


def drip(dns, query):
    """TC, then a byte at a time."""
    if not query.tcp:
        return [query.reply(flags=TC)]
    return [Drip(framed(answer(dns, query)))]


def tcp_half(dns, query):
    """TC, then half of it and nothing more."""
    if not query.tcp:
        return [query.reply(flags=TC)]
    stream = framed(answer(dns, query))
    return [stream[:len(stream) // 2]]


def late(delay):
    """What is true, when nobody waits for it any more."""
    def behave(dns, query):
        return [Later(delay, answer(dns, query))]
    return behave


def cname_loop(_dns, query):
    """Two names that are aliases of each other, one in each answer."""
    other = query.name[1:] if query.name.startswith("x") else "x" + query.name
    return out(query, query.reply([rr(HERE, CNAME, 60, name(other))]))


def cname_loop_inside(_dns, query):
    return out(query, query.reply([
        rr(HERE, CNAME, 60, name("loop.example")),
        rr("loop.example", CNAME, 60, name(query.name))]))


def cname_chain(_dns, query):
    """Without an end; a new name each time."""
    return out(query, query.reply([rr(HERE, CNAME, 60,
                                      name("x" + query.name))]))


def contradicting(dns, query):
    """Two answers at once: what is true, and that there is nothing."""
    if query.tcp:
        return honest(dns, query)
    return [answer(dns, query), query.reply(rcode=NXDOMAIN)]


def foreign_glue(dns, query):
    """Addresses of names that nobody asked for, beside what is true."""
    lie = ipaddress.ip_address("127.0.0.66").packed
    targets = [target for target, kind in dns.records if kind == A]
    others = ["www.example.com", dns.zone, "x." + dns.service,
              "s-1." + dns.zone] + ["x" + target for target in targets]
    if query.kind != SRV:
        # Of the targets, but not beside the SRV records that name them.
        others = [target for target in targets if target != query.name]
    return out(query, query.reply(dns.found(query), [dns.soa()], [
        rr(other, A, 60, lie) for other in others]))


def glue(dns, query):
    """The addresses beside the SRV records; no other question is answered."""
    if query.kind != SRV:
        return servfail(dns, query)
    return out(query, query.reply(dns.found(query), [], [
        rr(target, kind, dns.ttl, rdata)
        for (target, kind), list_ in dns.records.items() if kind != SRV
        for rdata in list_]))


def unusable(dns, query):
    """SRV records with targets that hold no server id, or with port 0."""
    if query.kind != SRV:
        return honest(dns, query)
    return out(query, query.reply([
        rr(HERE, SRV, 60, srv(1, "server." + dns.zone)),
        rr(HERE, SRV, 60, srv(0, "s-1." + dns.zone))]))


def duplicates(dns, query):
    """Every record three times."""
    return out(query, query.reply(dns.found(query) * 3))
