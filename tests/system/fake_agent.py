"""
An agent that says what no real one would, to see what rlctl makes of it.
"""

import fcntl
import os
import socket
import struct
import termios
import threading

import harness
import wire

SERVERS, POLICY = 0x42, 0x43


class FakeAgent:
    """Greets, and answers a query of this kind with the next of these texts."""

    def __init__(self, lab, query, texts):
        self.query = query
        self.path = os.path.join(lab.path, "fake.sock")
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(self.path)
        self.listener.listen(8)
        self.listener.settimeout(harness.PATIENCE)
        self.thread = threading.Thread(target=self.serve, args=(texts,))
        self.thread.start()
        lab.closers.append(self.close)

    def serve(self, texts):
        for text in texts:
            conn = self.listener.accept()[0]
            peer = wire.Client.__new__(wire.Client)
            peer.sock, peer.buffer = conn, b""
            with conn:
                conn.settimeout(harness.PATIENCE)
                kind, ident, _ = peer.receive()
                assert kind == wire.HELLO, kind
                peer.send(wire.frame(wire.WELCOME, ident, struct.pack(
                    "<HHIII16sQ", 1, 0, wire.MAX_FRAME, 9, 1000, bytes(16),
                    1) + wire.string("fake")))
                kind, ident, _ = peer.receive()
                assert kind == self.query, kind
                peer.send(wire.frame(wire.DOCUMENT, ident, text.encode()))
                try:
                    peer.receive()
                except wire.Closed:
                    pass

    def close(self):
        self.listener.close()
        self.thread.join(harness.PATIENCE)


def decision(outcome="allowed", permit=True, source="server", reason="ok",
             limit="", text="", server=None):
    """The frame that answers a check."""
    return wire.DECISION, struct.pack(
        "<BBBBHHIQQ", wire.OUTCOMES.index(outcome), permit,
        harness.SOURCES.index(source), wire.REASONS.index(reason), 0,
        2 if server else 0, 0, server or 0, 10) + wire.string(limit) + \
        wire.string(text)


def done(reason="ok", text=""):
    return wire.DONE, struct.pack("<HH", wire.REASONS.index(reason),
                                  0) + wire.string(text)


def delay(wait_us=0, reason="ok", text=""):
    """The frame that answers an acquire or a begin."""
    return wire.DELAY, struct.pack("<HHQ", wire.REASONS.index(reason), 0,
                                   wait_us) + wire.string(text)


def reported(reason="ok", text=""):
    return wire.REPORTED, struct.pack("<BBH", wire.REASONS.index(reason), 3,
                                      0) + wire.string(text)


def document(text):
    return wire.DOCUMENT, text.encode()


class OpenAgent:
    """
    Any number of connections and requests. answers has for the type of each
    the frame that answers it, a function of the payload that gives one, or
    nothing: then it stays unanswered. What was asked stands in requests.
    """

    def __init__(self, lab, answers, name="open.sock", default_ms=600000):
        self.answers, self.default_ms = answers, default_ms
        self.requests = []  # of (type, payload)
        self.answered = 0  # of them
        self.connections = set()
        self.path = os.path.join(lab.path, name)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(self.path)
        self.listener.listen(64)
        self.threads = [threading.Thread(target=self.accept)]
        self.threads[0].start()
        lab.closers.append(self.close)

    def accept(self):
        while True:
            try:
                conn = self.listener.accept()[0]
            except OSError:
                return
            self.connections.add(conn)
            self.threads.append(
                threading.Thread(target=self.serve, args=(conn,)))
            self.threads[-1].start()

    def serve(self, conn):
        peer = wire.Client.__new__(wire.Client)
        peer.sock, peer.buffer = conn, b""
        conn.settimeout(harness.PATIENCE)
        try:
            while True:
                self.answer(peer, *peer.receive())
        except (wire.Closed, OSError):
            self.connections.discard(conn)
            conn.close()

    def answer(self, peer, kind, ident, payload):
        if kind == wire.HELLO:
            peer.send(wire.frame(wire.WELCOME, ident, struct.pack(
                "<HHIII16sQ", 1, 0, wire.MAX_FRAME, 9, self.default_ms,
                bytes(16), 1) + wire.string("fake")))
            return
        answer = self.answers.get(kind)
        if callable(answer):
            answer = answer(payload)
        # After its effects, so that who has seen it sees those, too.
        self.requests.append((kind, payload))
        if answer:
            peer.send(wire.frame(answer[0], ident, answer[1]))
            self.answered += 1

    def read(self, count):
        """Have clients read that many answers?"""
        return self.answered >= count and all(
            fcntl.ioctl(conn, termios.TIOCOUTQ, bytes(4)) == bytes(4)
            for conn in list(self.connections))

    def asked(self, kind):
        return [payload for asked, payload in list(self.requests)
                if asked == kind]

    def leave(self):
        """Nobody is accepted any more; those that are there stay."""
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def close(self):
        try:
            self.leave()
        except OSError:
            pass
        for conn in list(self.connections):
            try:
                conn.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        for thread in self.threads:
            thread.join(harness.PATIENCE)
