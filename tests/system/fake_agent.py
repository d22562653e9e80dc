"""
An agent that says what no real one would, to see what rlctl makes of it.
"""

import os
import socket
import struct
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
