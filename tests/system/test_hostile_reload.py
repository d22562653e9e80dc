#!/usr/bin/env python3
"""
What clumsy operators and clients that do not read do to an agent that loads
its configuration again: the control socket stays open, nothing hangs, nothing
is kept without bound.
"""

import copy
import json
import os
import signal
import struct
import time
import uuid

import harness
import wire
from harness import check, poll, same
from reloading import replace


class Place:
    """Servers, an agent, the paths of its sockets."""

    def __init__(self, lab, edit=None, **policy):
        key = lab.keygen("main", fmt=0, dedup_ms=0)
        self.sandbox = lab.sandbox(key)
        servers = [{"id": str(s["server_id"]), "address": s["addresses"][0]}
                   for s in self.sandbox.servers]
        self.document = lab.document(
            {"main": {"key": {"file": key}, "servers": servers,
                      "policy": dict({"unit_ms": 500}, **policy)}},
            {"r": {"tenant": "main",
                   "resources": [{"bucket": "b:{key}", "window_ms": 1000,
                                  "limit": 1000}]}})
        if edit:
            edit(self.document)
        self.path = lab.config(self.document)
        self.agent = lab.agent(self.path)
        self.socket = self.agent.socket
        self.control = os.path.join(os.path.dirname(self.socket),
                                    "control.sock")

    def reload(self, document):
        replace(self.path, json.dumps(document))
        client = wire.Client(self.control)
        client.send(wire.frame(wire.RELOAD, 5))
        answer = answered(client)
        client.close()
        return answer

    def edited(self, **listener):
        document = copy.deepcopy(self.document)
        document["listeners"]["main"].update(listener)
        return document


def answered(client):
    """The reason of the DONE that comes, whatever comes before it."""
    while True:
        kind, _, payload = client.receive()
        if kind == wire.DONE:
            reason, = struct.unpack_from("<H", payload)
            return wire.REASONS[reason], payload[6:].decode()


def test_lower_cap(lab):
    """fewer connections than there are: the operator is let in all the same"""
    place = Place(lab)
    clients = [wire.Client(place.socket) for _ in range(100)]
    same(place.reload(place.edited(max_connections=8)), ("ok", ""))
    wire.Client(place.control).close()
    other = place.edited(max_connections=8)
    other["listeners"]["other"] = {
        "path": os.path.join(lab.path, "agent", "other.sock")}
    same(place.reload(other), ("ok", ""))
    wire.Client(other["listeners"]["other"]["path"]).close()
    for client in clients:
        client.close()


def test_listener_gone(lab):
    """connections that leave take no room from those that come"""
    place = Place(lab, replay_count=10)
    for n in range(3):
        place.sandbox.command("drop %d 1" % n)
    clients = [wire.Client(place.socket) for _ in range(100)]
    for client in clients:
        client.send(wire.check(2, "r", "k"))
    poll("in flight", lambda: place.agent.inflight() == 100)
    new = os.path.join(lab.path, "agent", "new.sock")
    same(place.reload(place.edited(path=new, max_connections=8)), ("ok", ""))
    wire.Client(place.control).close()
    wire.Client(new).close()


def test_pipe(lab):
    """a pipe in the place of the file, held open by who writes nothing"""
    place = Place(lab)
    client = wire.Client(place.socket, timeout=20)
    os.mkfifo(place.path + ".pipe")
    writer = os.open(place.path + ".pipe", os.O_RDWR)
    os.rename(place.path + ".pipe", place.path)
    place.agent.signal(signal.SIGHUP)
    try:
        poll("the error", lambda: "not a" in (
            place.agent.status()["reload"]["error"] or ""), 20)
    finally:
        os.close(writer)
    client.ping()


def test_new(lab):
    """from PATH.new to PATH: what fails leaves the socket in force alone"""
    path = os.path.join(lab.path, "agent", "agent.sock.new")
    place = Place(lab, lambda d: d["listeners"]["main"].update(path=path))
    moved = place.edited(path=path[:-4])
    bad = copy.deepcopy(moved)
    bad["listeners"]["z"] = {"path": os.path.join(lab.path, "no/such/z.sock")}
    same(place.reload(bad)[0], "validation")
    wire.Client(path).ping()
    same(place.reload(moved), ("ok", ""))
    wire.Client(path[:-4]).ping()


def test_adopted(lab):
    """told to go away, and its last check goes on elsewhere: it is closed"""
    place = Place(lab, replay_count=20)
    operation = uuid.uuid4().bytes
    for n in range(3):
        place.sandbox.command("drop %d 1" % n)
    first = wire.Client(place.socket)
    first.send(wire.check(3, "r", "k", operation=operation))
    poll("in flight", lambda: place.agent.inflight() == 1)
    config_hash = bytes.fromhex(place.agent.status()["config_hash"])
    same(place.reload(place.edited(uids=[12345])), ("ok", ""))
    same(place.reload(place.document), ("ok", ""))
    again = bytearray(wire.check(4, "r", "k", operation=operation))
    again[32:56] = config_hash + struct.pack("<Q", 100000)
    second = wire.Client(place.socket)
    second.send(bytes(again))
    try:
        while True:
            same(hex(first.receive()[0] & 0x8000), "0x8000")
    except wire.Closed:
        pass
    same(place.agent.inflight(), 1)


def test_asked_again(lab):
    """asked again and again while a tenant has no server"""
    place = Place(lab)
    document = copy.deepcopy(place.document)
    document["tenants"]["dead"] = {
        "key": document["tenants"]["main"]["key"],
        "dns": {"name": "x.example", "nameservers": ["127.0.0.1:1"]}}
    replace(place.path, json.dumps(document))
    asked = [time.monotonic()]

    def in_force():
        if time.monotonic() - asked[-1] >= 1:
            place.agent.signal(signal.SIGHUP)
            asked.append(time.monotonic())
        return place.agent.status()["generation"] > 1

    place.agent.signal(signal.SIGHUP)
    poll("it to be in force", in_force, 15)  # RELOAD_READY_US, and much more
    check(len(asked) > 2, "it was not asked for again")


def test_pipelined(lab):
    """many who ask at once cost one load"""
    place = Place(lab)
    client = wire.Client(place.control)
    replace(place.path, "{")
    before = place.agent.status()["reload"]["failures"]
    client.send(b"".join(wire.frame(wire.RELOAD, n) for n in range(2, 18)))
    for _ in range(16):
        same(answered(client)[0], "validation")
    # The watch may see it, too.
    check(place.agent.status()["reload"]["failures"] - before <= 3)


def test_deaf(lab):
    """documents that nobody reads"""
    def many(document):
        document["rules"] = {
            "rule-%d" % n: {"label": "x" * 200, "resources": [
                {"bucket": "bucket-%d:{key}" % n, "window_ms": 1000,
                 "limit": 1000}] * 4} for n in range(1000)}
    place = Place(lab, many)
    clients = [wire.Client(place.socket) for _ in range(100)]
    for client in clients:
        client.send(wire.frame(wire.RULES, 2))
    control = wire.Client(place.control)
    control.send(wire.frame(wire.STATUS, 2))
    same(hex(control.receive()[0]), hex(wire.DOCUMENT))
    kinds = [client.receive()[0] for client in clients]
    check(0 < kinds.count(wire.DOCUMENT) < 60, kinds)
    same(kinds.count(wire.DOCUMENT) + kinds.count(wire.DONE), 100)
    control = wire.Client(place.control)
    control.send(wire.frame(wire.STATUS, 2))
    same(control.document()["counters"]["cap_documents"],
         kinds.count(wire.DONE))
    for client in clients:
        client.close()


harness.run([test_lower_cap, test_listener_gone, test_pipe, test_new,
             test_adopted, test_asked_again, test_pipelined, test_deaf])
