"""
What the tests of the gateway share: HTTP/1.1 spoken byte by byte, so that what
is sent can be wrong in any way, and an agent with gateways. Every answer is
written down, where secrets are searched for.
"""

import os
import socket

import harness
from harness import check, poll, same

YEAR_MS = 4294967295


def rule(bucket, limit=2, window_ms=60000, **more):
    return dict({"tenant": "main", "resources": [
        {"bucket": bucket, "window_ms": window_ms, "limit": limit}]}, **more)


class Answer:
    def __init__(self, status, fields, body):
        self.status, self.fields, self.body = status, fields, body

    def field(self, name):
        """The value of the one field of that name; None: there is none."""
        found = [value for key, value in self.fields if key == name.lower()]
        check(len(found) < 2, name, "is there more than once", self)
        return found[0] if found else None

    def __repr__(self):
        return "%s %s %r" % (self.status, self.fields, self.body)


class Closed(Exception):
    """The connection ended, with what had come of an answer."""


class Web:
    """A connection to a gateway: a path, or a port of the loopback."""

    def __init__(self, lab, where):
        self.lab = lab
        family = socket.AF_UNIX if isinstance(where, str) else socket.AF_INET
        self.sock = socket.socket(family, socket.SOCK_STREAM)
        self.sock.settimeout(harness.PATIENCE + 40)
        self.sock.connect(where if isinstance(where, str)
                          else ("127.0.0.1", where))
        self.came = b""
        lab.closers.append(self.close)

    def close(self):
        self.sock.close()

    def send(self, data):
        self.sock.sendall(data)
        return self

    def more(self):
        try:
            data = self.sock.recv(65536)
        except ConnectionResetError:
            data = b""
        if not data:
            raise Closed(self.came)
        self.came += data

    def closed(self):
        """Reads until the other side has closed; whatever came before it."""
        try:
            while True:
                self.more()
        except Closed:
            return self.came

    def receive(self, head=False):
        """The next answer; that to a HEAD has no body."""
        while b"\r\n\r\n" not in self.came:
            self.more()
        top, _, self.came = self.came.partition(b"\r\n\r\n")
        lines = top.decode("latin-1").split("\r\n")
        version, status = lines[0].split(" ")[:2]
        same(version, "HTTP/1.1", lines)
        fields = [(key.lower(), value.strip()) for key, _, value in
                  (line.partition(":") for line in lines[1:])]
        answer = Answer(int(status), fields, b"")
        length = 0 if head else int(answer.field("Content-Length"))
        while len(self.came) < length:
            self.more()
        answer.body, self.came = self.came[:length], self.came[length:]
        with open(os.path.join(self.lab.path, "http.log"), "ab") as log:
            log.write(top + b"\r\n\r\n" + answer.body)
        return answer

    def ask(self, target, method="GET", body=None, fields=(), version="1.1"):
        self.send(request(target, method, body, fields, version))
        return self.receive(method == "HEAD")


def request(target, method="GET", body=None, fields=(), version="1.1"):
    lines = ["%s %s HTTP/%s" % (method, target, version), "Host: gateway"]
    lines += ["%s: %s" % field for field in fields]
    if body is not None:
        lines.append("Content-Length: %d" % len(body))
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + (body or b"")


def form(text):
    return {"method": "POST", "body": text,
            "fields": [("Content-Type", "application/x-www-form-urlencoded")]}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class World:
    """A sandbox of one server, and an agent with gateways."""

    def __init__(self, lab, rules, policy=None, gateway=None, **more):
        self.lab = lab
        self.path = os.path.join(lab.path, "http.sock")
        self.port = None
        self.key = lab.keygen("main", fmt=0, dedup_ms=0)
        self.sandbox = lab.sandbox(self.key, cluster=1)
        server = self.sandbox.servers[0]
        self.document = lab.document(
            {"main": {"key": {"file": self.key},
                      "policy": policy or harness.POLICY,
                      "servers": [{"id": str(server["server_id"]),
                                   "address": server["addresses"][0]}]}},
            rules, gateway={"front": dict({"listen": "unix:" + self.path},
                                          **(gateway or {}))}, **more)
        self.file = lab.config(self.document, "gateway.json")
        self.agent = lab.agent(self.file)

    def web(self, where=None):
        return Web(self.lab, where or self.path)

    def ask(self, target, **more):
        """On a connection of its own."""
        web = self.web()
        answer = web.ask(target, **more)
        web.close()
        return answer

    def deaf(self, share=1):
        """The server hears nothing from now on."""
        self.sandbox.command("drop 0 %d" % share)

    def counter(self, name):
        return self.agent.counters()[name]

    def reach(self, name, value):
        poll("%s to be %d" % (name, value),
             lambda: self.counter(name) >= value)
        same(self.counter(name), value, name)

    def gateway(self, name="front"):
        """Its row of the status."""
        rows = [row for row in self.agent.status()["gateway"]
                if row["name"] == name]
        same(len(rows), 1, name)
        return rows[0]

    def put(self, **more):
        """Another configuration, in force; or the line that refuses it."""
        self.document.update(more)
        self.lab.config(self.document, "gateway.json")
        return self.agent.ctl("reload", expect=None)
