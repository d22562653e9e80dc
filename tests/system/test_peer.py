#!/usr/bin/env python3
"""
The agent against an r-server and a DNS server that share no code with it:
every request is judged byte for byte, every kind of key and both profiles,
and hostile answers change nothing but a counter.
"""

import os
import socket
import struct

import harness
import peer
from harness import check, poll, same
from peer import Guard, Resource, reply

# name, auth, format of the key, forced profile
KINDS = (
    ("aes1", "aes", 1, None),
    ("aes0", "aes", 0, None),
    ("cookie1", "cookie", 1, None),
    ("cookie0", "cookie", 0, None),
    ("none1", "none", 1, None),
    ("aes1v1", "aes", 1, "v1"),
    ("aes0v2", "aes", 0, "v2"),
)

TRACKERS = {
    "inventory": {"ttl_ms": 10000, "max_samples": 100, "buffer_size": 32,
                  "min_samples": 5},
    "cafe-é": {"ttl_ms": 60000, "max_samples": 200, "buffer_size": 50,
               "min_samples": 3},
}


def tracker(name, below=0):
    t = TRACKERS[name]
    return Guard(name, t["ttl_ms"], t["max_samples"], t["buffer_size"],
                 t["min_samples"], below)


GUARDS = [tracker("inventory", 100), tracker("cafe-é", 250)]
RESOURCES = [Resource("checkout:k", 1000, 100, 3),
             Resource("total", 60000, 4294967295, 65535)]
LABEL = "größe".encode()
RULE = {
    "label": LABEL.decode(),
    "resources": [
        {"bucket": "checkout:{key}", "window_ms": 1000, "limit": 100,
         "tokens": 3},
        {"bucket": "total", "window_ms": 60000, "limit": 4294967295,
         "tokens": 65535}],
    "guards": [{"tracker": "inventory", "below_ms": 100},
               {"tracker": "cafe-é", "below_ms": 250}],
}
TTL = 3 * harness.POLICY["unit_ms"]


class Side:
    """A tenant and its servers."""

    def __init__(self, lab, number, kind, servers=1, family=socket.AF_INET):
        self.name, auth, fmt, self.forced = kind
        self.key = peer.Key(auth, 1000 + number, None, fmt, harness.DEDUP_MS)
        self.path = lab.keyfile(self.name, self.key.text())
        self.servers = [
            peer.Server(self.key, (number + 1 << 23) + i, self.forced, family)
            for i in range(servers)]
        self.profile = self.servers[0].profile
        for server in self.servers:
            lab.closers.append(server.close)
        self.request = peer.request_pdu(self.profile, TTL, GUARDS, RESOURCES,
                                        LABEL)

    def tenant(self, **more):
        tenant = {"key": {"file": self.path}, "policy": harness.POLICY,
                  "servers": [{"id": str(s.server_id),
                               "address": s.endpoint()}
                              for s in self.servers]}
        if self.forced:
            tenant["profile"] = self.forced
        tenant.update(more)
        return tenant

    def expect(self, answer, *pdus):
        for server in self.servers:
            server.expect(pdus or (self.request,), answer)

    def granted(self):
        return peer.response_pdu(self.profile, [(g, 0) for g in GUARDS],
                                 [(r, 1, 0) for r in RESOURCES])

    def denied(self):
        """By the second resource."""
        return peer.response_pdu(
            self.profile, [(g, 0) for g in GUARDS],
            [(RESOURCES[0], 1, 0), (RESOURCES[1], 4294967295, 7)])

    def fine(self):
        for server in self.servers:
            same(server.wrong, [], "what the peer saw")


def bring_up(lab, kinds=KINDS, servers=1, family=socket.AF_INET, **more):
    sides = [Side(lab, n, kind, servers, family)
             for n, kind in enumerate(kinds)]
    agent = lab.agent(lab.document(
        {s.name: s.tenant(**more) for s in sides},
        {s.name: dict(RULE, tenant=s.name) for s in sides}, TRACKERS))
    return agent, sides


def invalid(agent, side):
    return {name: count for name, count in agent.counters(side.name).items()
            if name.startswith("invalid_")}


def ask(agent, side, *args):
    return agent.check(side.name, "--key", "k", *args)


# What every key must get right.

def test_allowed(lab):
    """each kind of key: the request is exact, a grant is Allowed"""
    agent, sides = bring_up(lab)
    for side in sides:
        side.expect(lambda server, r, side=side: [
            reply(server, r, side.granted())])
        d = ask(agent, side)
        same((d["outcome"], d["permit"], d["source"], d["round"],
              d["server_id"]),
             ("allowed", True, "server", 0, str(side.servers[0].server_id)),
             side.name)
        side.fine()


def test_denied(lab):
    """each kind of key: Denied by resource, guard and both, with the limit"""
    agent, sides = bring_up(lab)
    for side in sides:
        cases = (
            ("resource", "total", (99, 0), (0, 7)),
            # As high as the threshold is not below it.
            ("guard", "cafe-é", (99, 250), (0, 0)),
            # The rule lists its resources first.
            ("resource+guard", "checkout:k", (100, 0), (1, 0)),
        )
        for reason, limit, currents, deficits in cases:
            body = peer.response_pdu(
                side.profile, list(zip(GUARDS, currents)),
                [(r, 5, d) for r, d in zip(RESOURCES, deficits)])
            side.expect(lambda server, r, body=body: [reply(server, r, body)])
            d = ask(agent, side, "--detail")
            same((d["outcome"], d["permit"], d["reason"], d["limit"]),
                 ("denied", False, reason, limit), side.name)
            same([g["current_ms"] for g in d["guards"]], list(currents))
            same([g["passed"] for g in d["guards"]],
                 [c < g.below for c, g in zip(currents, GUARDS)])
            same([r["deficit"] for r in d["resources"]], list(deficits))
            same([r["actual_rate"] for r in d["resources"]], [5, 5])
            same([r["limit"] for r in d["resources"]],
                 [r.limit for r in RESOURCES])
            same((d["retry_after_ms"] or 0) > 0, any(deficits), d)
        side.fine()


def test_adhoc(lab):
    """each kind of key: an ad-hoc request is exact, without a label"""
    agent, sides = bring_up(lab)
    guard = Guard("lat", 5000, 10, 4, 2, 80)
    resource = Resource("b 1", 250, 9, 2)
    for side in sides:
        body = peer.response_pdu(side.profile, [(guard, 79)],
                                 [(resource, 2, 0)])
        side.expect(lambda server, r, body=body: [reply(server, r, body)],
                    peer.request_pdu(side.profile, TTL, [guard], [resource]))
        d = agent.check("--bucket", "b 1", "--window", "250", "--limit", "9",
                        "--tokens", "2", "--guard", "lat:5000:10:4:2:80",
                        "--tenant", side.name)
        same(d["outcome"], "allowed", side.name)
        side.fine()


def test_guard_only(lab):
    """a request of guards alone is sent"""
    agent, (side,) = bring_up(lab, KINDS[:1])
    guard = Guard("lat", 5000, 10, 4, 2, 80)
    body = peer.response_pdu(side.profile, [(guard, 80)], [])
    side.expect(lambda server, r: [reply(server, r, body)],
                peer.request_pdu(side.profile, TTL, [guard], []))
    d = agent.check("--guard", "lat:5000:10:4:2:80", "--tenant", side.name)
    same((d["outcome"], d["reason"], d["limit"]), ("denied", "guard", "lat"))
    side.fine()


def test_report(lab):
    """each kind of key: a report is exact and goes to every server once"""
    agent, sides = bring_up(lab, servers=2)
    for side in sides:
        side.expect(None, peer.report_pdu(
            side.profile, [(tracker("inventory"), 4294967295)]))
        agent.ctl("report", "inventory", "4294967295", "--tenant", side.name)
        for server in side.servers:
            same(len(server.wait(1)), 1, side.name)
        same(len({s.requests[0].unique_id for s in side.servers}), 2,
             "each report datagram has its own")
        side.fine()


# The policy of section 9.3, seen from outside.

def test_replay(lab):
    """a silent round is replayed with the same id; the answer counts"""
    agent, sides = bring_up(lab, KINDS[:3])
    for side in sides:
        side.expect(lambda server, r, side=side: [
            reply(server, r, side.granted())] if server.requests else [])
        d = ask(agent, side)
        same((d["outcome"], d["round"]), ("allowed", 1))
        check(d["elapsed_us"] >= 1e6 * harness.PREFERENCE, d)
        seen = side.servers[0].requests
        same(len(seen), 2)
        same((seen[0].unique_id, seen[0].stamp),
             (seen[1].unique_id, seen[1].stamp), "a replay is the same")
        side.fine()


def test_silence(lab):
    """no answer at all is Failed (timeout) at H, open and closed"""
    agent, (side, closed) = bring_up(lab, KINDS[:2])
    document = lab.document(
        {side.name: side.tenant()},
        {"open": dict(RULE, tenant=side.name),
         "closed": dict(RULE, tenant=side.name, on_failure="closed")},
        TRACKERS)
    agent.stop()
    agent = lab.agent(document)
    for rule in ("open", "closed"):
        side.expect(None)
        d = agent.check(rule, "--key", "k")
        same((d["outcome"], d["reason"], d["source"], d["permit"]),
             ("failed", "timeout", "policy", rule == "open"))
        check(d["elapsed_us"] >= 1e6 * harness.HORIZON, d)
        same(len(side.servers[0].requests), 2, "rounds 0 and 1")
    side.fine()
    closed.fine()


def test_oldest_rules(lab):
    """within the preference time the oldest server's answer wins"""
    agent, (side,) = bring_up(lab, KINDS[:1], servers=3)

    def answer(server, r):
        if server is side.servers[2]:
            return [reply(server, r, side.granted())]
        if server is side.servers[0]:
            server.later(0.1, r, reply(server, r, side.denied()))
        return []

    side.expect(answer)
    d = ask(agent, side)
    same((d["outcome"], d["server_id"], d["round"]),
         ("denied", str(side.servers[0].server_id), 0))
    check(1e5 <= d["elapsed_us"] < 1e6 * harness.HORIZON, d)
    # Completion delivery: the one that had not answered gets it once more.
    seen = side.servers[1].wait(2)
    same(len(seen), 2)
    same(seen[0].unique_id, seen[1].unique_id)
    same(len(side.servers[2].requests), 1)
    side.fine()


def test_oldest_silent(lab):
    """without the oldest, the oldest that answered decides after P(0)"""
    agent, (side,) = bring_up(lab, KINDS[:1], servers=3)

    def answer(server, r):
        if server is side.servers[2]:
            return [reply(server, r, side.granted())]
        if server is side.servers[1]:
            server.later(0.1, r, reply(server, r, side.denied()))
        return []

    side.expect(answer)
    d = ask(agent, side)
    same((d["outcome"], d["server_id"], d["round"]),
         ("denied", str(side.servers[1].server_id), 0))
    check(d["elapsed_us"] >= 1e6 * harness.PREFERENCE, d)
    same(len(side.servers[0].wait(2)), 2, "completion delivery")
    side.fine()


# Hostile answers. Each is followed by the true one, which denies; the false
# one allows, so whoever believes it is found out.

def flip(datagram, at):
    broken = bytearray(datagram)
    broken[at] ^= 1
    return bytes(broken)


def patched(body, at, fmt, value):
    broken = bytearray(body)
    struct.pack_into(fmt, broken, at, value)
    return bytes(broken)


def hostile(side, server, r):
    """Name, counter, datagram. Counter None: it depends on the key."""
    good = side.granted()
    tenant = peer.tenant_tlv(server.server_id, r.unique_id, r.stamp, 1)
    other = "none" if side.key.auth == "cookie" else "cookie"
    wide = RESOURCES + [Resource("more", 1000, 5)]

    def response(guards, resources):
        return peer.response_pdu(side.profile, [(g, 0) for g in guards],
                                 [(x, 1, 0) for x in resources])

    def sealed(body):
        return peer.seal(server.key, tenant, body)

    def short(body):
        return body[:-4]

    yield "nothing", "invalid_malformed", b"\0"
    yield "half a tenant TLV", "invalid_malformed", sealed(good)[:20]
    yield "no auth TLV", "invalid_malformed", tenant
    yield "tenant TLV of another type", "invalid_malformed", peer.seal(
        server.key, flip(tenant, 0), good)
    yield "tenant TLV that says 36", "invalid_malformed", peer.seal(
        server.key, patched(tenant, 2, "<H", 36), good)
    yield "short tenant TLV", "invalid_malformed", peer.seal(
        server.key, patched(tenant, 2, "<H", 36)[:36], good)
    yield "endless tenant TLV", "invalid_malformed", peer.seal(
        server.key, patched(tenant, 2, "<H", 65535), good)
    yield "unknown operation", "invalid_operation", reply(
        server, r, good, unique_id=flip(r.unique_id, 0))
    yield "unknown server", "invalid_server", reply(
        server, r, good, server_id=server.server_id ^ 1)
    yield "other auth type", "invalid_auth", peer.seal(
        server.key, tenant, good, auth=other)
    yield "unknown auth type", None, tenant + struct.pack(
        "<HH", 0x4242, 4) + good
    yield "no PDU", None, sealed(b"")
    yield "other PDU", None, sealed(patched(good, 0, "<H", peer.PDU_REPORT))
    yield "request as answer", None, sealed(r.pdu)
    yield "PDU longer than the datagram", None, sealed(
        patched(good, 2, "<H", len(good) + 1))
    yield "PDU that says less than its header", None, sealed(
        patched(good, 2, "<H", 7))
    yield "truncated block", None, sealed(
        patched(short(good), 2, "<H", len(good) - 4))
    yield "block cut by the PDU's size", None, sealed(
        patched(good, 2, "<H", len(good) - 4))
    yield "counts without blocks", None, sealed(
        peer.pdu(peer.PDU_RESPONSE, 0, struct.pack("<HH", 65535, 65535)))
    yield "empty response", "invalid_content", sealed(response([], []))
    yield "a resource more", "invalid_content", sealed(response(GUARDS, wide))
    yield "a resource less", "invalid_content", sealed(
        response(GUARDS, RESOURCES[:1]))
    yield "no guards", "invalid_content", sealed(response([], RESOURCES))
    yield "no resources", "invalid_content", sealed(response(GUARDS, []))
    yield "a foreign bucket", "invalid_content", sealed(
        response(GUARDS, [RESOURCES[0], wide[2]]))
    yield "resources swapped", "invalid_content", sealed(
        response(GUARDS, RESOURCES[::-1]))
    yield "guards swapped", "invalid_content", sealed(
        response(GUARDS[::-1], RESOURCES))
    yield "longer than the protocol has", "invalid_truncated", sealed(
        good) + bytes(65000)
    if side.key.auth == "cookie":
        yield "a bit of the cookie", "invalid_auth", flip(sealed(good), 75)
        yield "another cookie", "invalid_auth", peer.seal(
            peer.Key("cookie", 1), tenant, good)
    if side.key.auth == "aes":
        for what, at in (("tag", 56), ("tag's end", 71), ("nonce", 44),
                         ("AAD", 30), ("first of the text", 72),
                         ("last of the text", -1)):
            yield "a bit of the " + what, "invalid_auth", flip(
                sealed(good), at)
        yield "another AES key", "invalid_auth", peer.seal(
            peer.Key("aes", 1), tenant, good)
        yield "plain text under an AES head", "invalid_auth", tenant + \
            struct.pack("<HH", 0x4541, 32) + bytes(28) + good
        yield "AES TLV of another size", None, tenant + struct.pack(
            "<HH", 0x4541, 36) + bytes(32) + good


def test_hostile(lab):
    """hostile answers are counted and ignored, the true one decides"""
    kinds = [k for k in KINDS if k[0] in ("aes1", "cookie0", "none1")]
    agent, sides = bring_up(lab, kinds)
    for side in sides:
        server = side.servers[0]
        probe = peer.Request.__new__(peer.Request)
        probe.unique_id, probe.stamp, probe.pdu = bytes(16), 0, side.request
        count = len(list(hostile(side, server, probe)))
        for index in range(count):
            seen = {}

            def answer(srv, r, side=side, index=index, seen=seen):
                what, counter, false = list(hostile(side, srv, r))[index]
                seen.update(what=what, counter=counter)
                return [false, reply(srv, r, side.denied())]

            before = invalid(agent, side)
            side.expect(answer)
            d = ask(agent, side)
            same((d["outcome"], d["limit"]), ("denied", "total"), side.name,
                 seen)
            after = invalid(agent, side)
            grown = {k: after[k] - before[k] for k in after
                     if after[k] != before[k]}
            same(sum(grown.values()), 1, side.name, seen, grown)
            if seen["counter"]:
                same(list(grown), [seen["counter"]], side.name, seen)
        side.fine()


def test_hostile_alone(lab):
    """an answer that is empty or foreign never decides by itself"""
    agent, (side,) = bring_up(lab, KINDS[2:3])
    empty = peer.response_pdu(side.profile, [], [])
    side.expect(lambda server, r: [reply(server, r, empty)])
    d = ask(agent, side)
    same((d["outcome"], d["reason"], d["source"]),
         ("failed", "timeout", "policy"))
    same(invalid(agent, side)["invalid_content"], 2, "one for each round")
    side.fine()


def test_flood(lab):
    """a flood of junk before the answer neither hides nor delays it"""
    agent, (side,) = bring_up(lab, KINDS[:1])
    side.expect(lambda server, r: [os.urandom(n % 300) or b"\0"
                                   for n in range(200)] +
                [reply(server, r, side.granted())])
    same(ask(agent, side)["outcome"], "allowed")
    same(sum(invalid(agent, side).values()), 200)
    side.fine()


def test_tolerated(lab):
    """what wire.md says to ignore is ignored"""
    kinds = [k for k in KINDS if k[0] in ("aes1", "aes0", "cookie1", "none1")]
    agent, sides = bring_up(lab, kinds)
    for side in sides:
        good = side.granted()
        cases = {
            "a longer tenant TLV": lambda s, r: reply(
                s, r, good, extra=b"abcdefgh"),
            "management flag": lambda s, r: reply(s, r, good, mgmt=1),
            "padding": lambda s, r: reply(s, r, good, padding=0xFFFF),
            "header word": lambda s, r: reply(
                s, r, patched(good, 4, "<I", 0xFFFFFFFF)),
            "bytes after the PDU": lambda s, r: reply(s, r, good + b"junk"),
            "a timestamp of long ago": lambda s, r: peer.seal(
                s.key, peer.tenant_tlv(s.server_id, r.unique_id, 1, 1), good),
            "a resource's padding": lambda s, r: reply(
                s, r, good[:-2] + b"\xff\xff"),
        }
        for what, make in cases.items():
            side.expect(lambda server, r, make=make: [make(server, r)])
            same(ask(agent, side)["outcome"], "allowed", side.name, what)
        same(sum(invalid(agent, side).values()), 0, side.name)
        side.fine()


def test_duplicates(lab):
    """an answer that comes twice counts once"""
    agent, (side,) = bring_up(lab, KINDS[:1], servers=2)

    def answer(server, r):
        if server is side.servers[1]:
            return [reply(server, r, side.granted())] * 2
        server.later(0.1, r, reply(server, r, side.granted()))
        return []

    side.expect(answer)
    same(ask(agent, side)["outcome"], "allowed")
    counters = agent.counters(side.name)
    same((counters["answers"], counters["answers_duplicate"]), (2, 1))
    side.fine()


# Where the servers are.

def test_dns(lab):
    """members come from SRV, A and AAAA, whatever the case of their label"""
    family = socket.AF_INET6 if harness.ipv6_works() else socket.AF_INET
    sides = [Side(lab, 0, KINDS[0], 2), Side(lab, 1, KINDS[3], 1, family)]
    dns = peer.Dns()
    lab.closers.append(dns.close)
    for side, first in zip(sides, ("s-", "S-")):
        dns.serve(side.name + ".example.com", side.servers, first)
    agent = lab.agent(lab.document(
        {s.name: s.tenant(servers=[], dns={
            "name": s.name + ".example.com",
            "nameservers": [dns.endpoint()]}) for s in sides},
        {s.name: dict(RULE, tenant=s.name) for s in sides}, TRACKERS))
    for side in sides:
        side.expect(lambda server, r, side=side: [
            reply(server, r, side.granted())])
        same(ask(agent, side)["outcome"], "allowed", side.name)
        for server in side.servers:
            check(server.wait(1), "every member was asked")
        side.fine()
    same({kind for _, kind in dns.questions},
         {peer.TYPE_A, peer.TYPE_AAAA, peer.TYPE_SRV})


def test_default_name(lab):
    """without a DNS name it is c-<key_id>.p0.ratelimitly.com"""
    side = Side(lab, 5, KINDS[0])
    dns = peer.Dns()
    lab.closers.append(dns.close)
    dns.serve("c-%d.p0.ratelimitly.com" % side.key.key_id, side.servers)
    agent = lab.agent(lab.document(
        {side.name: side.tenant(servers=[],
                                dns={"nameservers": [dns.endpoint()]})},
        {side.name: dict(RULE, tenant=side.name)}, TRACKERS))
    side.expect(lambda server, r: [reply(server, r, side.granted())])
    same(ask(agent, side)["outcome"], "allowed")
    side.fine()


def test_steering(lab):
    """steering feedback 0 is counted, and loses no answer"""
    agent, (side,) = bring_up(lab, KINDS[:1])
    side.expect(lambda server, r: [
        reply(server, r, side.granted(), steering=0)])
    for _ in range(5):
        same(ask(agent, side)["outcome"], "allowed")
    poll("5 requests for another port",
         lambda: agent.counters(side.name)["rebind_asked"] == 5)
    side.fine()


def test_strict_source(lab):
    """an answer from another port is refused only under strict_source"""
    kinds = [k for k in KINDS if k[0] in ("aes1", "cookie1", "none1")]
    agent, sides = bring_up(lab, kinds)
    stranger = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    lab.closers.append(stranger.close)
    for side in sides:
        def answer(server, r, side=side):
            stranger.sendto(reply(server, r, side.granted()), r.peer)
            server.later(0.1, r, reply(server, r, side.denied()))
            return []

        side.expect(answer)
        strict = side.key.auth != "aes"
        same(ask(agent, side)["outcome"], "denied" if strict else "allowed",
             side.name)
        counters = agent.counters(side.name)
        same((counters["invalid_source"], counters["source_mismatch"]),
             (1, 0) if strict else (0, 1), side.name)
        side.fine()


if __name__ == "__main__":
    if not peer.have_aes():
        print("Bail out! python3-cryptography is not installed")
        raise SystemExit(1)
    harness.run([value for name, value in list(globals().items())
                 if name.startswith("test_")])
