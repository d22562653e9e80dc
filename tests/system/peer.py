"""
An r-server and a DNS server for tests, written from the protocol's public
description alone and without a look at the project's C. What both sides have
wrong in the same way cannot be seen by a sandbox that shares the agent's
codec; this peer shares nothing with it. It judges every request byte for
byte: the test says which logical request it expects, the peer encodes that
itself and compares.

AES-GCM comes from the cryptography package, all else from the standard
library.
"""

import hashlib
import ipaddress
import os
import select
import socket
import struct
import threading
import time

try:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
except ImportError:  # the caller asks have_aes()
    AESGCM = None

TENANT_TLV = 0x4C52
AUTH_TLV = {"none": 0x414E, "cookie": 0x4143, "aes": 0x4541}
AUTH_SIZE = {"none": 4, "cookie": 36, "aes": 32}
PDU_REQUEST = 0x5452
PDU_REPORT = 0x524C
PDU_RESPONSE = 0x5252
LABEL_TLV = 0x4C4D
DATAGRAM_MAX = 1200


class Wrong(Exception):
    """A datagram that no conforming client sends."""


def have_aes():
    return AESGCM is not None


# Keys: Bech32 with checksum constant 1.

BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
GENERATOR = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)


def bech32_polymod(values):
    check = 1
    for value in values:
        top = check >> 25
        check = (check & 0x1FFFFFF) << 5 ^ value
        for i in range(5):
            if top >> i & 1:
                check ^= GENERATOR[i]
    return check


def bech32_expand(hrp):
    return [ord(c) >> 5 for c in hrp] + [0] + [ord(c) & 31 for c in hrp]


def regroup(values, width_in, width_out, pad):
    acc = bits = 0
    out = []
    for value in values:
        acc = acc << width_in | value
        bits += width_in
        while bits >= width_out:
            bits -= width_out
            out.append(acc >> bits & (1 << width_out) - 1)
    if pad and bits:
        out.append(acc << width_out - bits & (1 << width_out) - 1)
    elif not pad and (bits >= width_in or acc & (1 << bits) - 1):
        raise ValueError("padding bits")
    return out


def bech32_encode(hrp, payload):
    data = regroup(payload, 8, 5, True)
    check = bech32_polymod(bech32_expand(hrp) + data + [0] * 6) ^ 1
    data += [check >> 5 * (5 - i) & 31 for i in range(6)]
    return hrp + "1" + "".join(BECH32[d] for d in data)


def bech32_decode(text):
    if text.lower() != text and text.upper() != text:
        raise ValueError("mixed case")
    if any(not 33 <= ord(c) <= 126 for c in text):
        raise ValueError("character")
    text = text.lower()
    hrp, found, data = text.rpartition("1")
    if not found or not hrp or len(data) < 6:
        raise ValueError("no separator")
    if any(c not in BECH32 for c in data):
        raise ValueError("character")
    values = [BECH32.index(c) for c in data]
    if bech32_polymod(bech32_expand(hrp) + values) != 1:
        raise ValueError("checksum")
    return hrp, bytes(regroup(values[:-6], 5, 8, False))


class Key:
    """An API key. fmt 1 is the 45-byte payload, 0 the unversioned one."""

    def __init__(self, auth, key_id, secret=None, fmt=1, dedup_ms=2000,
                 buffer_exponent=6):
        self.auth = auth
        self.key_id = key_id
        self.secret = b"" if auth == "none" else secret or os.urandom(32)
        self.fmt = fmt
        if fmt == 1:
            assert dedup_ms % 10 == 0 and 1 <= dedup_ms // 10 <= 200
            self.tail = struct.pack(
                "<I", 16 | 10 << 5 | 12 << 10 | buffer_exponent << 15 |
                dedup_ms // 10 << 19 | 31 << 27)
        else:
            self.tail = struct.pack("<5I", 65536, 1024, 4096,
                                    1 << buffer_exponent, dedup_ms)

    @classmethod
    def parse(cls, text):
        hrp, payload = bech32_decode(text)
        auth = {"rl-aes": "aes", "rl-cookie": "cookie",
                "rl-none": "none"}.get(hrp)
        if auth is None:
            raise ValueError("type " + hrp)
        key = cls.__new__(cls)
        key.auth = auth
        if len(payload) == 60 and auth != "none":
            key.fmt = 0
            body = payload
            tail = 20
        elif len(payload) == (13 if auth == "none" else 45):
            if payload[0] != 1:
                raise ValueError("version")
            key.fmt = 1
            body = payload[1:]
            tail = 4
        else:
            raise ValueError("length")
        key.key_id, = struct.unpack_from("<Q", body)
        key.secret = body[8:-tail]
        key.tail = body[-tail:]
        if key.fmt == 1:
            code, = struct.unpack("<I", key.tail)
            if code & 31 > 24 or code >> 5 & 31 > 24 or \
                    not 1 <= code >> 19 & 255 <= 200:
                raise ValueError("quota")
        return key

    def payload(self):
        head = b"\x01" if self.fmt == 1 else b""
        return head + struct.pack("<Q", self.key_id) + self.secret + self.tail

    def text(self):
        return bech32_encode("rl-" + self.auth, self.payload())

    def profile(self):
        return "v1" if self.fmt == 0 else "v2"


# Content-defined ids.

def content_id(domain, name, *settings):
    text = domain.encode() + b"\0" + struct.pack("<I", len(name)) + name
    text += struct.pack("<%dI" % len(settings), *settings)
    return hashlib.blake2s(text).digest()[:16]


def bucket_id(name, window, limit):
    return content_id("ratelimitly.resource.v1", name, window, limit)


def tracker_id(profile, name, ttl, most, size, least):
    if profile == "v1":
        return content_id("ratelimitly.latency-tracker.v1", name, ttl, most,
                          size, least)
    return content_id("ratelimitly.latency-tracker.v2", name, ttl, most,
                      least)


class Resource:
    def __init__(self, name, window, limit, tokens=1):
        self.name = name.encode() if isinstance(name, str) else name
        self.window, self.limit, self.tokens = window, limit, tokens

    def block(self, _profile, limit=None, tokens=None):
        return bucket_id(self.name, self.window, self.limit) + struct.pack(
            "<IIHH", self.window, self.limit if limit is None else limit,
            self.tokens if tokens is None else tokens, 0)


class Guard:
    def __init__(self, name, ttl, most, size, least, below=0):
        self.name = name.encode() if isinstance(name, str) else name
        self.ttl, self.most, self.size = ttl, most, size
        self.least, self.below = least, below

    def settings(self, profile):
        size = (self.size,) if profile == "v1" else ()
        return tracker_id(profile, self.name, self.ttl, self.most, self.size,
                          self.least) + struct.pack(
            "<%dI" % (3 + len(size)), self.ttl, self.most, *size, self.least)

    def block(self, profile, current=0):
        return self.settings(profile) + struct.pack("<II", self.below,
                                                    current)

    def sample(self, profile, observed):
        return self.settings(profile) + struct.pack("<I", observed)


# PDUs and datagrams.

def label_tlv(label):
    if not label:
        return b""
    size = (6 + len(label) + 3) // 4 * 4
    tlv = struct.pack("<HHH", LABEL_TLV, size, len(label)) + label
    return tlv.ljust(size, b"\0")


def pdu(kind, word, body):
    return struct.pack("<HHI", kind, 8 + len(body), word) + body


def request_pdu(profile, ttl, guards, resources, label=b""):
    body = struct.pack("<HH", len(guards), len(resources))
    body += b"".join(g.block(profile) for g in guards)
    body += b"".join(r.block(profile) for r in resources)
    return pdu(PDU_REQUEST, ttl, body + label_tlv(label))


def report_pdu(profile, samples):
    body = struct.pack("<HH", len(samples), 0)
    return pdu(PDU_REPORT, 0, body + b"".join(
        guard.sample(profile, observed) for guard, observed in samples))


def response_pdu(profile, guards, resources):
    """guards: (Guard, current); resources: (Resource, actual, deficit)."""
    body = struct.pack("<HH", len(guards), len(resources))
    body += b"".join(g.block(profile, current) for g, current in guards)
    body += b"".join(r.block(profile, actual, deficit)
                     for r, actual, deficit in resources)
    return pdu(PDU_RESPONSE, 0, body)


def tenant_tlv(key_id, unique_id, stamp, steering=0, mgmt=0, padding=0,
               extra=b""):
    return struct.pack("<HHQ16sQBBH", TENANT_TLV, 40 + len(extra), key_id,
                       unique_id, stamp, steering, mgmt, padding) + extra


def seal(key, tenant, body, nonce=None, auth=None):
    """A datagram. auth (none, cookie, aes) defaults to the key's."""
    auth = auth or key.auth
    head = struct.pack("<HH", AUTH_TLV[auth], AUTH_SIZE[auth])
    if auth == "none":
        return tenant + head + body
    if auth == "cookie":
        return tenant + head + (key.secret or bytes(32)) + body
    nonce = nonce or os.urandom(12)
    aad = tenant + head + nonce
    box = AESGCM(key.secret or bytes(32)).encrypt(nonce, body, aad)
    return aad + box[-16:] + box[:-16]


class Request:
    """One datagram of a client, opened and taken apart."""

    def __init__(self, key, raw):
        if len(raw) > DATAGRAM_MAX:
            raise Wrong("%d bytes" % len(raw))
        if len(raw) < 44:
            raise Wrong("short")
        (kind, size, self.key_id, self.unique_id, self.stamp, steering, mgmt,
         padding) = struct.unpack_from("<HHQ16sQBBH", raw)
        if (kind, size) != (TENANT_TLV, 40):
            raise Wrong("tenant TLV %#x of %d" % (kind, size))
        if (steering, mgmt, padding) != (0, 0, 0):
            raise Wrong("steering, flag or padding is not zero")
        if self.key_id != key.key_id:
            raise Wrong("key id %d" % self.key_id)
        if self.unique_id[6] >> 4 != 4 or self.unique_id[8] >> 6 != 2:
            raise Wrong("unique_id is no UUIDv4: " + self.unique_id.hex())
        kind, size = struct.unpack_from("<HH", raw, 40)
        if (kind, size) != (AUTH_TLV[key.auth], AUTH_SIZE[key.auth]):
            raise Wrong("auth TLV %#x of %d" % (kind, size))
        body = raw[40 + size:]
        self.nonce = None
        if key.auth == "cookie" and raw[44:76] != key.secret:
            raise Wrong("cookie")
        if key.auth == "aes":
            self.nonce = raw[44:56]
            try:
                body = AESGCM(key.secret).decrypt(
                    self.nonce, body + raw[56:72], raw[:56])
            except InvalidTag:
                raise Wrong("tag") from None
        if len(body) < 12:
            raise Wrong("PDU of %d bytes" % len(body))
        self.raw, self.pdu = raw, body
        self.kind, size, self.word = struct.unpack_from("<HHI", body)
        if size != len(body):
            raise Wrong("PDU says %d bytes, has %d" % (size, len(body)))
        if self.kind not in (PDU_REQUEST, PDU_REPORT):
            raise Wrong("PDU type %#x" % self.kind)
        if self.kind == PDU_REPORT and self.word != 0:
            raise Wrong("header word of a report")
        self.peer = self.port = None


# The servers.

class Behaviour:
    """
    What a server expects and does. expect(kind) gives the PDU that the test
    asked for; answer(server, request) yields the datagrams to send back.
    """

    def __init__(self, pdus, answer=None):
        self.pdus = pdus
        self.answer = answer or (lambda server, request: ())


class Server(threading.Thread):
    """One r-server of one tenant on one UDP port of the loopback."""

    def __init__(self, key, server_id, profile=None, family=socket.AF_INET):
        super().__init__(daemon=True)
        self.key, self.server_id = key, server_id
        self.profile = profile or key.profile()
        self.sock = socket.socket(family, socket.SOCK_DGRAM)
        self.sock.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1",
                        0))
        self.address = self.sock.getsockname()
        self.lock = threading.Condition()
        self.behaviour = None
        self.requests = []  # since the last expect()
        self.wrong = []  # texts, never forgotten
        self.nonces = {}  # nonce to datagram: a nonce seals one plaintext
        self.start()

    def endpoint(self):
        host, port = self.address[:2]
        return ("[%s]:%d" if ":" in host else "%s:%d") % (host, port)

    def expect(self, pdus, answer=None):
        with self.lock:
            self.requests = []
            self.behaviour = Behaviour(pdus, answer)

    def run(self):
        while True:
            try:
                raw, peer = self.sock.recvfrom(65536)
            except OSError:
                return
            if not raw:
                if self.behaviour is STOP:
                    return
                self.complain("an empty datagram")
                continue
            self.take(raw, peer)

    def complain(self, text):
        with self.lock:
            self.wrong.append("server %d: %s" % (self.server_id, text))
            self.lock.notify_all()

    def take(self, raw, peer):
        with self.lock:
            behaviour = self.behaviour
        try:
            request = Request(self.key, raw)
            if abs(time.time() * 1000 - request.stamp) > 60000:
                raise Wrong("time_stamp %d" % request.stamp)
            if self.nonces.setdefault(request.nonce or raw, raw) != raw:
                raise Wrong("a nonce used twice")
            if behaviour is None:
                raise Wrong("nothing was expected")
            if request.pdu not in behaviour.pdus:
                raise Wrong("not the PDU that was asked for: got %s, want %s"
                            % (request.pdu.hex(),
                               [p.hex() for p in behaviour.pdus]))
        except Wrong as wrong:
            self.complain("%s in %s" % (wrong, raw.hex()))
            return
        request.peer, request.port = peer, peer[1]
        with self.lock:
            answers = list(behaviour.answer(self, request))
            self.requests.append(request)
        for datagram in answers:
            self.sock.sendto(datagram, peer)
        with self.lock:
            self.lock.notify_all()

    def later(self, delay, request, datagram):
        """Sends it after a delay in seconds: slow servers, not slow tests."""
        threading.Timer(delay, self.sock.sendto,
                        (datagram, request.peer)).start()

    def wait(self, count, timeout=30):
        """Until count requests came since expect(); then those."""
        with self.lock:
            self.lock.wait_for(
                lambda: len(self.requests) >= count or self.wrong, timeout)
            return list(self.requests)

    def close(self):
        with self.lock:
            self.behaviour = STOP
        self.sock.sendto(b"", self.address)
        self.join(30)
        self.sock.close()


STOP = object()


def reply(server, request, body, server_id=None, unique_id=None, **fields):
    """A response datagram; fields are those of tenant_tlv()."""
    fields.setdefault("steering", 1)
    tenant = tenant_tlv(
        server.server_id if server_id is None else server_id,
        request.unique_id if unique_id is None else unique_id,
        int(time.time() * 1000), **fields)
    return seal(server.key, tenant, body)


# DNS: SRV, A and AAAA of one zone, as RFC 1035 and RFC 2782 have it.

TYPE_A, TYPE_AAAA, TYPE_SRV = 1, 28, 33


def dns_name(name):
    return b"".join(bytes([len(part)]) + part.encode()
                    for part in name.rstrip(".").split(".")) + b"\0"


class Dns(threading.Thread):
    """records: {(lower-case name, type): [rdata, ...]}."""

    def __init__(self, ttl=60):
        super().__init__(daemon=True)
        self.records = {}
        self.ttl = ttl
        self.questions = []
        self.closing = threading.Event()
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.bind(("127.0.0.1", 0))
        self.start()

    def endpoint(self):
        return "%s:%d" % self.sock.getsockname()

    def serve(self, tenant_name, servers, first="s-"):
        """Makes the servers members of the tenant of this DNS name."""
        srv = ("_ratelimitly._udp." + tenant_name).lower()
        for server in servers:
            host, port = server.address[:2]
            target = "%s%d.%s" % (first, server.server_id, tenant_name)
            self.records.setdefault((srv, TYPE_SRV), []).append(
                struct.pack(">HHH", 0, 0, port) + dns_name(target))
            kind = TYPE_AAAA if ":" in host else TYPE_A
            self.records.setdefault((target.lower(), kind), []).append(
                ipaddress.ip_address(host).packed)

    def run(self):
        while not self.closing.is_set():
            if not select.select([self.sock], [], [], 0.1)[0]:
                continue
            query, peer = self.sock.recvfrom(4096)
            answer = self.answer(query)
            if answer:
                self.sock.sendto(answer, peer)

    def answer(self, query):
        ident, flags, questions = struct.unpack_from(">HHH", query)
        if flags & 0x8000 or questions != 1:
            return None
        parts, at = [], 12
        while query[at]:
            parts.append(query[at + 1:at + 1 + query[at]].decode("ascii"))
            at += 1 + query[at]
        at += 1
        kind, klass = struct.unpack_from(">HH", query, at)
        question = query[12:at + 4]
        name = ".".join(parts).lower()
        self.questions.append((name, kind))
        found = self.records.get((name, kind), []) if klass == 1 else []
        known = any(name == n for n, _ in self.records)
        code = 0 if known else 3
        answer = struct.pack(">HHHHHH", ident, 0x8580 | code, 1, len(found),
                             0, 0) + question
        for rdata in found:
            answer += struct.pack(">HHHIH", 0xC00C, kind, 1, self.ttl,
                                  len(rdata)) + rdata
        return answer

    def close(self):
        self.closing.set()
        self.join(30)
        self.sock.close()
