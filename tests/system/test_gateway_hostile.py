#!/usr/bin/env python3
"""
What somebody who may connect to a gateway, and nothing else, can make of it:
heads that two readers would read in two ways, and documents that are asked for
and not read. Whatever he does, others get their decisions.
"""

import harness
from harness import check, poll, same
from web import World, request, rule

RULES = {"one": rule("one:{key}", limit=1000),
         "other": rule("other", limit=1000)}
CHECK = b"POST /check/one?key=a HTTP/1.1\r\nHost: x\r\n"
UNREAD_MAX = 16 * 1024 * 1024
HIDDEN = b"GET /check/other HTTP/1.1\r\nHost: x\r\n\r\n"


def test_heads(lab):
    """A head that is not plain is refused, and all that follows it"""
    world = World(lab, RULES)
    length = b"%d" % len(HIDDEN)
    for fields in (
            b"Content-Length : " + length, b"Content-Length\t: " + length,
            b" Content-Length: " + length,
            b"X(y): 1", b"X y: 1", b"X\x80: 1",
            # What is folded may be appended to the name, or be lost.
            b"Content-Length:\r\n " + length,
            b"Content-Length: 1\r\n\t" + length,
            b"Content-Len: " + length + b"\r\n gth",
            b"Transfer-Enc: chunked\r\n oding",
            b"Transfer-Encoding:\r\n chunked",
            b"X: y\r\n z", b"X: y\r\n ", b"X:\r\n\tz\r\n z\r\nY: z"):
        one = world.web()
        one.send(CHECK + fields + b"\r\n\r\n" + HIDDEN)
        answer = one.receive()
        same((answer.status, answer.field("Connection")), (400, "close"),
             fields)
        same(one.closed(), b"", fields)
    same(world.counter("checks"), 0)
    # What is plain, however it looks.
    for fields in (b"X:y", b"X: \t y", b"X:", b"X: ", b"!#$%&'*+-.^_`|~09: z",
                   b"X: a: b\r\nX: c", b"content-LENGTH:0",
                   b"Transfer-Encoding:\tchunked\r\n\r\n0"):
        one = world.web()
        one.send(CHECK + fields + b"\r\n\r\n")
        same(one.receive().status, 200, fields)
        one.close()


def test_key_header(lab):
    """A field whose name only becomes the key's by folding is no key"""
    world = World(lab, RULES, gateway={"key_header": "X-Key"})
    top = b"GET /check/one HTTP/1.1\r\nHost: x\r\n"
    for fields in (b"X-K: v\r\n ey", b"X-Key: v\r\n w", b"X-Key : v"):
        one = world.web()
        one.send(top + fields + b"\r\n\r\n")
        same(one.receive().status, 400, fields)
        one.close()
    same(world.counter("checks"), 0)
    same(world.ask("/check/one", fields=[("X-Key", "v")]).status, 200)


def test_documents_unread(lab):
    """Documents that nobody reads are few, whoever asks for how many"""
    rules = {"rule%d" % n: rule("b%d:{key}" % n) for n in range(2000)}
    world = World(lab, dict(RULES, **rules))
    size = len(world.ask("/metrics").body)
    check(size > 500000, size)
    ones = [world.web() for _ in range(200)]
    for one in ones:
        one.send(request("/metrics"))
    poll("all of them", lambda: world.counter("cap_documents") +
         UNREAD_MAX // size + 1 >= len(ones))
    # Others are served meanwhile, and their documents are, too.
    same(world.agent.check("one", "--key", "a")["outcome"], "allowed")
    same(world.ask("/check/one?key=a").status, 200)
    check(len(world.agent.ctl("metrics").out) > 500000)
    # Whoever reads is told, one way or the other.
    answers = [one.receive() for one in ones]
    refused = [a for a in answers if a.status == 503]
    same(len(refused), world.counter("cap_documents"))
    for answer in refused:
        same((answer.body, answer.field("Retry-After")),
             (b"too many documents are not read\n", "1"))
    check(all(a.status == 200 for a in answers if a not in refused))
    # And then there is room again, also after those who never read.
    for one in ones:
        one.close()
    for _ in range(3):
        before = world.counter("http_connections")
        ones = [world.web().send(request("/metrics")) for _ in range(50)]
        for one in ones:
            one.close()
        poll("the end of them", lambda: world.gateway()["connections"] == 0
             and world.counter("http_connections") == before + 50)
    same(world.ask("/metrics").status, 200)


if __name__ == "__main__":
    harness.run([value for name, value in list(globals().items())
                 if name.startswith("test_")])
