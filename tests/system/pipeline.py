#!/usr/bin/env python3
"""
Load for the system tests, as hammer.c, by a client that shares no code with
the shim: proto/IPC.md, section 3, with many checks in flight on a connection,
and the operation ids told.

    pipeline.py SOCKET NAME WINDOW DEADLINE_MS RULE...

keeps WINDOW checks in flight until standard input ends, and prints a line for
each when it is decided:

    KEY RULE OUTCOME PERMIT SOURCE REASON SERVER BEGAN_US ELAPSED_US OPERATION

The last line, on standard error, is the number of connections that it took.
A second decision for a check, a decision for none, and an ERROR end it with a
complaint and status 1.
"""

import os
import select
import socket
import struct
import sys
import time
import uuid

import wire

SOURCES = ("server", "empty", "policy", "local", "shadow")
GRACE_US = 5000000
PAUSE = 0.01


def now_us():
    return time.monotonic_ns() // 1000


class Operation:
    def __init__(self, key, rule, deadline_ms):
        self.key, self.rule, self.deadline_ms = key, rule, deadline_ms
        self.id = uuid.uuid4()
        self.began = now_us()
        self.first_write = None  # of the copy that may have been begun
        self.first_hash = None

    def frame(self, ident, config_hash):
        """As a first send, or as the resend that it is by now."""
        now = now_us()
        age = 0
        if self.first_write is None:
            self.first_write, self.first_hash = now, config_hash
            stamp = bytes(16)
        else:
            age, stamp = max(1, now - self.first_write), self.first_hash
        start = struct.pack("<16s16sQIII", self.id.bytes, stamp, age,
                            self.deadline_ms, 2, 1)
        return wire.frame(wire.CHECK, ident, start + wire.string(self.rule) +
                          wire.string(self.key))

    def overdue(self):
        """Past its deadline, and past any excuse of the agent's."""
        return now_us() > self.began + self.deadline_ms * 1000 + GRACE_US

    def say(self, words):
        print(self.key, self.rule, *words, self.began, now_us() - self.began,
              self.id.hex, flush=True)


class Connection:
    def __init__(self, path, name):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(10)
        self.buffer = b""
        self.waiting = {}  # operations by request id
        self.exposed_before = set()  # of these, sent on another one before
        self.next_id = 2
        self.hash = None
        self.retiring = False
        try:
            self.sock.connect(path)
            self.sock.sendall(wire.hello(name))
        except OSError:
            self.sock.close()
            raise
        self.sock.setblocking(False)

    def ask(self, op):
        """False when the connection is broken."""
        ident = self.next_id
        self.next_id += 1
        before = op.first_write is not None
        data = op.frame(ident, self.hash)
        try:
            if self.sock.send(data) != len(data):
                raise SystemExit("the agent reads too slowly for this load")
        except (BrokenPipeError, ConnectionResetError, BlockingIOError):
            if not before:
                op.first_write = None
            return False
        self.waiting[ident] = op
        if before:
            self.exposed_before.add(ident)
        return True

    def frames(self):
        """What has come; None at the end when the connection is broken."""
        open_still = True
        try:
            data = self.sock.recv(65536)
            open_still = data != b""
        except BlockingIOError:
            data = b""
        except ConnectionResetError:
            data, open_still = b"", False
        self.buffer += data
        while len(self.buffer) >= 4:
            length, = struct.unpack_from("<I", self.buffer)
            if not 16 <= length <= wire.MAX_FRAME:
                raise SystemExit("a frame of %d bytes" % length)
            if len(self.buffer) < length:
                break
            _, kind, _, ident = struct.unpack_from("<IHHQ", self.buffer)
            payload = self.buffer[16:length]
            self.buffer = self.buffer[length:]
            yield kind, ident, payload
        if not open_still:
            yield None, None, None


class Pipeline:
    def __init__(self, path, name, window, deadline_ms, rules):
        self.path, self.name, self.window = path, name, window
        self.deadline_ms, self.rules = deadline_ms, rules
        self.connections = []
        self.unsent = []  # begun, and on no connection
        self.count = self.opened = 0
        self.over = False
        self.retry_at = 0.0

    def in_flight(self):
        return len(self.unsent) + sum(len(c.waiting)
                                      for c in self.connections)

    def begin(self):
        while not self.over and self.in_flight() < self.window:
            key = "%s-0-%d" % (self.name, self.count)
            self.unsent.append(Operation(
                key, self.rules[self.count % len(self.rules)],
                self.deadline_ms))
            self.count += 1

    def current(self):
        """The connection for new requests; None while there is none."""
        for c in self.connections:
            if not c.retiring:
                return c
        if not self.unsent or time.monotonic() < self.retry_at:
            return None
        try:
            c = Connection(self.path, self.name)
        except OSError:
            self.retry_at = time.monotonic() + PAUSE
            return None
        self.opened += 1
        self.connections.append(c)
        return c

    def send(self):
        c = self.current()
        while c is not None and c.hash is not None and self.unsent:
            if not c.ask(self.unsent[0]):
                return  # reading finds its last words, and its end
            self.unsent.pop(0)

    def decided(self, c, ident, payload):
        op = c.waiting.pop(ident, None)
        if op is None:
            raise SystemExit("a decision for nothing: id %d" % ident)
        server, = struct.unpack_from("<Q", payload, 12)
        op.say((wire.OUTCOMES[payload[0]], payload[1], SOURCES[payload[2]],
                wire.REASONS[payload[3]], server))

    def go_away(self, c, payload):
        last, = struct.unpack_from("<Q", payload)
        c.retiring = True
        for ident in [i for i in c.waiting if i > last]:
            op = c.waiting.pop(ident)
            if ident not in c.exposed_before:
                op.first_write = None
            self.unsent.append(op)

    def broken(self, c):
        """What it has not answered is sent again, and says so."""
        c.sock.close()
        self.connections.remove(c)
        self.unsent += c.waiting.values()

    def take(self, c):
        for kind, ident, payload in c.frames():
            if kind is None:
                self.broken(c)
            elif kind == wire.WELCOME:
                c.hash = payload[16:32]
            elif kind == wire.DECISION:
                self.decided(c, ident, payload)
            elif kind == wire.GO_AWAY:
                self.go_away(c, payload)
            else:
                raise SystemExit("a frame of type %#x: %r" % (kind, payload))
        if c in self.connections and c.retiring and not c.waiting:
            c.sock.close()
            self.connections.remove(c)

    def turn(self):
        self.begin()
        self.send()
        ready, _, _ = select.select(
            [c.sock for c in self.connections] +
            ([] if self.over else [sys.stdin]), [], [], PAUSE)
        if sys.stdin in ready and not os.read(0, 4096):
            self.over = True
        for c in list(self.connections):
            if c.sock in ready:
                self.take(c)
        for op in [op for c in self.connections
                   for op in c.waiting.values()] + self.unsent:
            if op.overdue():
                raise SystemExit("no decision in time: %s %s" % (
                    op.key, op.id.hex))

    def run(self):
        while not self.over or self.in_flight():
            self.turn()
        print(self.opened, file=sys.stderr)


if __name__ == "__main__":
    Pipeline(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]),
             sys.argv[5:]).run()
