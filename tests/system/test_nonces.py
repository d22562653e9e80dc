#!/usr/bin/env python3
"""
AES-GCM nonces, as a peer socket sees them: unique for one key over starts and
ends of the agent of every kind, over key changes, tenants and agents that run
at once; kept nowhere. A prefix is judged by exact duplicates alone.
"""

import threading

import harness
import peer
from harness import check, poll, same
from peer import Resource, reply

RESOURCE = Resource("b", 1000, 100, 1)
TRACKER = {"ttl_ms": 10000, "max_samples": 100, "buffer_size": 32,
           "min_samples": 5}
TTL = 3 * harness.POLICY["unit_ms"]
PREFIX = 8  # bytes of a nonce; the rest counts


class Any:
    """PDUs that are all expected: reports have many values."""

    def __contains__(self, pdu):
        return True


class Side:
    """A key, and the servers that know it: the first two answer."""

    def __init__(self, lab, name, key_id, servers=3):
        self.name = name
        self.key = peer.Key("aes", key_id, None, 1, harness.DEDUP_MS)
        self.path = lab.keyfile(name, self.key.text())
        self.servers = [peer.Server(self.key, (key_id << 23) + i)
                        for i in range(servers)]
        for server in self.servers:
            lab.closers.append(server.close)
            server.expect(Any(), self.answer)

    def answer(self, server, request):
        if request.kind != peer.PDU_REQUEST or server is self.servers[-1]:
            return []
        return [reply(server, request, peer.response_pdu(
            server.profile, [], [(RESOURCE, 1, 0)]))]

    def tenant(self):
        return {"key": {"file": self.path}, "policy": harness.POLICY,
                "servers": [{"id": str(s.server_id), "address": s.endpoint()}
                            for s in self.servers]}

    def seen(self):
        """Nonce to datagram, of all servers; none seals two datagrams."""
        found = {}
        for server in self.servers:
            with server.lock:
                nonces = dict(server.nonces)
                same(server.wrong, [], "what the peer saw")
            for nonce, raw in nonces.items():
                check(found.setdefault(nonce, raw) == raw,
                      "one nonce, two datagrams:", nonce.hex())
        return found


    def told(self):
        """What each server got, for a failure."""
        return ["%d: %s" % (server.server_id, sorted(
            "%s %d" % (nonce.hex(), peer.Request(self.key, raw).kind)
            for nonce, raw in server.nonces.items()))
            for server in self.servers]


def document(lab, sides, sock="agent"):
    """Tenants by name, each with a rule of its name."""
    return lab.document(
        {name: side.tenant() for name, side in sides.items()},
        {name: {"tenant": name,
                "resources": [{"bucket": "b", "window_ms": 1000,
                               "limit": 100, "tokens": 1}]}
         for name in sides},
        {"t": TRACKER},
        {"main": {"path": lab.socket_path(sock), "mode": "0600"}})


def use(agent, names, side, checks=3, reports=2):
    """Checks and reports of each tenant, until every server has them all."""
    # Not requests: some come again, with the nonce that they had.
    before = [len(s.nonces) for s in side.servers]
    for name in names:
        for _ in range(checks):
            same(agent.check(name)["outcome"], "allowed")
        for i in range(reports):
            agent.ctl("report", "t", str(50 + i), "--tenant", name)
    more = len(names) * (checks + reports)
    poll("all datagrams", lambda: all(
        len(s.nonces) >= n + more for s, n in zip(side.servers, before)))


def prefixes(nonces):
    return {nonce[:PREFIX] for nonce in nonces}


def counted(nonces):
    """Under each prefix the counters run from 0 without a gap."""
    for prefix in prefixes(nonces):
        counters = sorted(int.from_bytes(n[PREFIX:], "little")
                          for n in nonces if n[:PREFIX] == prefix)
        same(counters, list(range(len(counters))), prefix.hex())


def nowhere(lab, found):
    """No prefix stands in any file: neither as it is nor in letters."""
    for path, content in lab.files():
        for prefix in found:
            check(prefix not in content and
                  prefix.hex().encode() not in content.lower(),
                  "the prefix", prefix.hex(), "is kept in", path)


def test_restarts(lab):
    """one key over many starts, the agent being stopped, killed and quit"""
    side = Side(lab, "main", 11)
    config = document(lab, {"main": side})
    total, known = 0, set()
    for turn in range(12):
        agent = lab.agent(dict(config))
        use(agent, ["main"], side)
        if turn % 3 == 0:
            agent.kill()
        elif turn % 3 == 1:
            same(agent.stop(), 0)
        else:
            agent.ctl("quit")
            same(agent.wait(), 0)
        nonces = side.seen()
        fresh = prefixes(nonces) - known
        same(len(fresh), 1, "prefixes of one run")
        known |= fresh
        # Three requests, each sealed once for all servers, and two reports to
        # three servers, each datagram on its own.
        same(len(nonces) - total, 3 + 2 * 3, "nonces of one run")
        total = len(nonces)
    counted(side.seen())
    nowhere(lab, known)


def test_killed_in_the_middle(lab):
    """killed under load and started at once, again and again"""
    side = Side(lab, "main", 12)
    config = document(lab, {"main": side})
    for _ in range(6):
        agent = lab.agent(dict(config))
        before = len(side.seen())
        stop = threading.Event()
        thread = threading.Thread(target=keep_asking, args=(agent, stop))
        thread.start()
        try:
            poll("twenty nonces", lambda: len(side.seen()) >= before + 20)
        finally:
            agent.kill()
            stop.set()
            thread.join()
    same(len(prefixes(side.seen())), 6, "prefixes of six runs")


def keep_asking(agent, stop):
    """Whatever comes of it, until it is killed."""
    while not stop.is_set():
        agent.ctl("check", "main", "--timeout", "200", expect=None)


def test_key_changes(lab):
    """another key in between, and the first again: none is gone on with"""
    first, second = Side(lab, "first", 13), Side(lab, "second", 14)
    for side in (first, second, first, second, first):
        agent = lab.agent(document(lab, {side.name: side}))
        use(agent, [side.name], side)
        same(agent.stop(), 0)
    same(len(prefixes(first.seen())), 3)
    same(len(prefixes(second.seen())), 2)
    same(prefixes(first.seen()) & prefixes(second.seen()), set())


def test_two_tenants_of_one_key(lab):
    """tenants that share a key share no prefix"""
    side = Side(lab, "shared", 15)
    agent = lab.agent(document(lab, {"one": side, "two": side}))
    use(agent, ["one", "two"], side, checks=5)
    nonces = side.seen()
    same(len(prefixes(nonces)), 2)
    same(len(nonces), 2 * (5 + 2 * 3), side.told())
    counted(nonces)


def test_agents_at_once(lab):
    """agents that share a key share no prefix"""
    side = Side(lab, "shared", 16)
    agents = [lab.agent(document(lab, {"main": side}, "agent%d" % i))
              for i in range(4)]
    for _ in range(2):
        for agent in agents:
            use(agent, ["main"], side)
    nonces = side.seen()
    same(len(prefixes(nonces)), 4)
    same(len(nonces), 4 * 2 * (3 + 2 * 3), side.told())
    counted(nonces)


def test_replays_reuse_the_datagram(lab):
    """a nonce comes again with the identical datagram and never else"""
    side = Side(lab, "main", 17)
    for server in side.servers:
        server.expect(Any())
    agent = lab.agent(document(lab, {"main": side}))
    decision = agent.check("main")
    same((decision["outcome"], decision["reason"]), ("failed", "timeout"))
    for server in side.servers:
        raws = [r.raw for r in server.wait(2)]
        same(len(raws), 2, "transmissions")
        same(raws[0], raws[1])
    same(len(side.seen()), 1)


if __name__ == "__main__":
    if not peer.have_aes():
        print("Bail out! python3-cryptography is not installed")
        raise SystemExit(1)
    harness.run([value for name, value in list(globals().items())
                 if name.startswith("test_")])
