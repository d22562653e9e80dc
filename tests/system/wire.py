"""
The protocol between applications and the agent, as proto/IPC.md has it, for
tests that send what no well-behaved client sends, or many at once.
"""

import json
import os
import socket
import struct
import uuid

HELLO, CHECK, ADHOC, CANCEL = 0x01, 0x10, 0x11, 0x12
REPORT, REPORT_RULE, PING, WAIT = 0x20, 0x22, 0x30, 0x40
STATUS, RULES, EXPLAIN, LIMITERS = 0x41, 0x44, 0x45, 0x46
METRICS = 0x47
ACQUIRE, TRY_ACQUIRE, ERROR_BEGIN, ERROR_SUCCESS = 0x50, 0x51, 0x52, 0x53
QUIT, RELOAD, DRAIN, SET_RATE = 0x60, 0x61, 0x62, 0x63
WELCOME, DECISION, REPORTED, PONG = 0x8001, 0x8010, 0x8020, 0x8030
DOCUMENT, GO_AWAY, DELAY = 0x8041, 0x8050, 0x8051
DONE, ERROR = 0x8060, 0x807F

MAX_FRAME = 16384
MORE = 1
YEAR_US = 365 * 86400 * 1000000
MAGIC = 0x50494C52

OUTCOMES = ("allowed", "denied", "failed", "cancelled")
REASONS = ("ok", "resource", "guard", "resource+guard", "validation",
           "unknown-rule", "unauthorised", "discovery", "transport",
           "timeout", "overloaded", "draining", "interrupted", "unavailable",
           "cancelled")
ERRORS = {1: "version", 2: "malformed", 3: "type", 4: "greeting", 5: "busy",
          6: "slow", 7: "id", 8: "unauthorised"}


def string(text):
    data = text.encode() if isinstance(text, str) else text
    return struct.pack("<H", len(data)) + data


def frame(kind, ident, payload=b"", length=None):
    return struct.pack("<IHHQ", 16 + len(payload) if length is None else
                       length, kind, 0, ident) + payload


def hello(name="", low=1, high=1, magic=MAGIC):
    return frame(HELLO, 1, struct.pack("<IHH", magic, low, high) +
                 string(name))


def base(tokens=1, key=None, deadline_ms=0, detail=False, operation=None):
    """The common start of the checks."""
    options = (1 if detail else 0) | (2 if key is not None else 0)
    return struct.pack("<16s16sQIII", operation or uuid.uuid4().bytes,
                       bytes(16), 0, deadline_ms, options, tokens)


def check(ident, rule, key=None, **more):
    return frame(CHECK, ident, base(key=key, **more) + string(rule) +
                 string(key or ""))


def adhoc(ident, resources=(), guards=(), tenant="", label="", **more):
    """resources: (window, limit, tokens, name); guards: five and a name."""
    body = base(**more) + string(tenant) + string(label)
    body += struct.pack("<HH", len(guards), len(resources))
    for *numbers, name in guards:
        body += struct.pack("<5I", *numbers) + string(name)
    for *numbers, name in resources:
        body += struct.pack("<3I", *numbers) + string(name)
    return frame(ADHOC, ident, body)


def named(name, key):
    """The end of what is asked of a limiter or an error control."""
    return (struct.pack("<I", 0 if key is None else 2) + string(name) +
            string(key or ""))


def acquire(ident, limiter, key=None, permits=1):
    return frame(ACQUIRE, ident, struct.pack("<I", permits) +
                 named(limiter, key))


def try_acquire(ident, limiter, max_wait_us, key=None, permits=1):
    return frame(TRY_ACQUIRE, ident, struct.pack("<QI", max_wait_us, permits) +
                 named(limiter, key))


def error_begin(ident, control, key=None):
    return frame(ERROR_BEGIN, ident, named(control, key))


def error_success(ident, control, key=None):
    return frame(ERROR_SUCCESS, ident, named(control, key))


def set_rate(ident, limiter, rate):
    """rate: in 10^-12 permits a second, as it travels."""
    return frame(SET_RATE, ident, struct.pack("<Q", rate) + string(limiter))


def limiters(ident):
    return frame(LIMITERS, ident)


class Closed(Exception):
    """The agent closed the connection."""


class Decision:
    def __init__(self, ident, payload):
        self.id = ident
        self.outcome = OUTCOMES[payload[0]]
        self.permit = bool(payload[1])
        self.reason = REASONS[payload[3]]
        self.server_id = str(struct.unpack_from("<Q", payload, 12)[0])

    def __repr__(self):
        return "%s (%s), permit %s" % (self.outcome, self.reason, self.permit)


def verdict(payload, more=""):
    """Reason, what more says and text of a DONE or DELAY."""
    form = "<HH" + more + "H"
    reason, zero, *rest, length = struct.unpack_from(form, payload)
    text = payload[struct.calcsize(form):]
    assert zero == 0 and len(text) == length <= 512, payload
    return (REASONS[reason], *rest, text.decode())


class Delay:
    def __init__(self, ident, payload):
        self.id = ident
        self.reason, self.wait_us, self.text = verdict(payload, "Q")
        assert self.reason in ("ok", "resource") or self.wait_us == 0, self
        assert self.reason != "ok" or self.wait_us <= YEAR_US, self

    def __repr__(self):
        return "%s, wait %d us: %s" % (self.reason, self.wait_us, self.text)


class Client:
    def __init__(self, path, greet=True, timeout=60):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(timeout)
        self.sock.connect(path)
        self.buffer = b""
        self.flags = 0  # of the last frame
        if greet:
            self.send(hello("test"))
            kind, _, payload = self.receive()
            assert kind == WELCOME, (hex(kind), payload)

    def send(self, data):
        self.sock.sendall(data)

    def receive(self):
        """Type, id and payload of the next frame."""
        while True:
            if len(self.buffer) >= 4:
                length, = struct.unpack_from("<I", self.buffer)
                assert 16 <= length <= MAX_FRAME, length
                if len(self.buffer) >= length:
                    _, kind, self.flags, ident = struct.unpack_from(
                        "<IHHQ", self.buffer)
                    payload = self.buffer[16:length]
                    self.buffer = self.buffer[length:]
                    return kind, ident, payload
            try:
                data = self.sock.recv(65536)
            except ConnectionResetError:
                data = b""
            if not data:
                raise Closed
            self.buffer += data

    def decision(self):
        """The next frame, a DECISION."""
        kind, ident, payload = self.receive()
        assert kind == DECISION, (hex(kind), payload)
        return Decision(ident, payload)

    def delay(self):
        """The next frame, a DELAY."""
        kind, ident, payload = self.receive()
        assert kind == DELAY, (hex(kind), payload)
        return Delay(ident, payload)

    def done(self):
        """Reason and text of the next frame, a DONE."""
        kind, _, payload = self.receive()
        assert kind == DONE, (hex(kind), payload)
        return verdict(payload)

    def text(self):
        """What the next frames hold, DOCUMENTs."""
        pieces, self.flags = [], MORE
        while self.flags & MORE:
            kind, _, payload = self.receive()
            assert kind == DOCUMENT, (hex(kind), payload)
            pieces.append(payload)
        return b"".join(pieces).decode()

    def document(self):
        return json.loads(self.text())

    def error(self):
        """The name of the ERROR that comes next and last."""
        kind, _, payload = self.receive()
        assert kind == ERROR, (hex(kind), payload)
        code, = struct.unpack_from("<H", payload)
        try:
            self.receive()
        except Closed:
            return ERRORS[code]
        raise AssertionError("a frame after ERROR")

    def ping(self):
        text = os.urandom(8)
        self.send(frame(PING, 99, text))
        kind, ident, payload = self.receive()
        assert (kind, ident, payload) == (PONG, 99, text), (hex(kind), ident)

    def close(self):
        self.sock.close()
