#!/usr/bin/env python3
"""Writes proto/vectors/ipc.json: golden frames for the agent and its clients.

Written from proto/IPC.md and from nothing else, so that neither ipc.c nor
rlshim.c is held to itself. ipc_vectors.sh tests that the committed file is
what this prints.

    make_ipc.py > proto/vectors/ipc.json
    make_ipc.py --corpus tests/fuzz/corpus/ipc
"""
import json
import os
import struct
import sys

TYPES = {
    "hello": 0x0001, "check": 0x0010, "check-adhoc": 0x0011,
    "cancel": 0x0012, "report": 0x0020, "report-adhoc": 0x0021,
    "report-rule": 0x0022, "ping": 0x0030, "wait": 0x0040, "status": 0x0041,
    "servers": 0x0042, "policy": 0x0043, "rules": 0x0044, "explain": 0x0045,
    "limiters": 0x0046, "metrics": 0x0047, "top": 0x0048,
    "acquire": 0x0050, "try-acquire": 0x0051, "error-begin": 0x0052,
    "error-success": 0x0053, "quit": 0x0060, "reload": 0x0061,
    "drain": 0x0062, "set-rate": 0x0063,
    "welcome": 0x8001, "decision": 0x8010, "reported": 0x8020,
    "pong": 0x8030, "document": 0x8041, "go-away": 0x8050, "delay": 0x8051,
    "done": 0x8060, "error": 0x807F,
}
MORE = 1
OPERATION = bytes.fromhex("00112233445546778899aabbccddeeff")
HASH = bytes.fromhex("f0e1d2c3b4a5968778695a4b3c2d1e0f")
U64 = 2**64 - 1
U32 = 2**32 - 1
YEAR_US = 365 * 86400 * 10**6


def u8(v):
    return struct.pack("<B", v)


def u16(v):
    return struct.pack("<H", v)


def u32(v):
    return struct.pack("<I", v)


def u64(v):
    return struct.pack("<Q", v)


def raw(s):
    return s.encode("utf-8") if isinstance(s, str) else s


def string(s):
    return u16(len(raw(s))) + raw(s)


def frame(kind, ident, payload=b"", flags=0, length=None):
    code = kind if isinstance(kind, int) else TYPES[kind]
    if length is None:
        length = 16 + len(payload)
    return u32(length) + u16(code) + u16(flags) + u64(ident) + payload


# Section 4, one function a message.

def hello(magic=0x50494C52, version_min=1, version_max=1, client=""):
    return u32(magic) + u16(version_min) + u16(version_max) + string(client)


def welcome(version, max_frame, max_inflight, default_deadline_ms,
            config_hash, generation, agent):
    return (u16(version) + u16(0) + u32(max_frame) + u32(max_inflight) +
            u32(default_deadline_ms) + config_hash + u64(generation) +
            string(agent))


def base(operation_id=OPERATION, config_hash=bytes(16), age_us=0,
         deadline_ms=0, options=0, tokens=1):
    return (operation_id + config_hash + u64(age_us) + u32(deadline_ms) +
            u32(options) + u32(tokens))


def check(rule, key="", **start):
    return base(**start) + string(rule) + string(key)


def guard(ttl_ms, max_samples, buffer_size, min_samples, below_ms, name):
    return (u32(ttl_ms) + u32(max_samples) + u32(buffer_size) +
            u32(min_samples) + u32(below_ms) + string(name))


def resource(window_ms, limit, tokens, name):
    return u32(window_ms) + u32(limit) + u32(tokens) + string(name)


def check_adhoc(tenant="", label="", guards=(), resources=(), **start):
    return (base(**start) + string(tenant) + string(label) +
            u16(len(guards)) + u16(len(resources)) +
            b"".join(guard(**g) for g in guards) +
            b"".join(resource(**r) for r in resources))


def guard_result(below_ms, current_ms, passed, name):
    return u32(below_ms) + u32(current_ms) + u8(passed) + string(name)


def resource_result(window_ms, limit, tokens, deficit, actual_rate, name):
    return (u32(window_ms) + u32(limit) + u32(tokens) + u32(deficit) +
            u32(actual_rate) + string(name))


def decision(outcome, permit, source, reason, round=0, has=0,
             retry_after_ms=0, server_id=0, elapsed_us=0, limit="", text="",
             guards=(), resources=()):
    out = (u8(outcome) + u8(permit) + u8(source) + u8(reason) + u16(round) +
           u16(has) + u32(retry_after_ms) + u64(server_id) + u64(elapsed_us) +
           string(limit) + string(text))
    if has & 1:
        out += (u16(len(guards)) + u16(len(resources)) +
                b"".join(guard_result(**g) for g in guards) +
                b"".join(resource_result(**r) for r in resources))
    return out


def report(latency_ms, tenant, tracker, key="", options=0):
    return (u32(latency_ms) + u32(options) + string(tenant) +
            string(tracker) + string(key))


def report_adhoc(latency_ms, ttl_ms, max_samples, buffer_size, min_samples,
                 tenant, tracker):
    return (u32(latency_ms) + u32(ttl_ms) + u32(max_samples) +
            u32(buffer_size) + u32(min_samples) + string(tenant) +
            string(tracker))


def report_rule(latency_ms, rule, key="", options=0):
    return u32(latency_ms) + u32(options) + string(rule) + string(key)


def reported(reason, sent, text):
    return u8(reason) + u8(sent) + u16(0) + string(text)


def ping(bytes):
    return raw(bytes)


def wait(timeout_ms):
    return u32(timeout_ms)


def explain(rule, key="", options=0, tokens=1):
    return u32(options) + u32(tokens) + string(rule) + string(key)


def acquire(limiter, key="", options=0, permits=1):
    return u32(permits) + u32(options) + string(limiter) + string(key)


def try_acquire(max_wait_us, limiter, key="", options=0, permits=1):
    return (u64(max_wait_us) + u32(permits) + u32(options) +
            string(limiter) + string(key))


def error_control(control, key="", options=0):
    return u32(options) + string(control) + string(key)


def set_rate(rate, limiter):
    return u64(rate) + string(limiter)


def delay(reason, wait_us=0, text=""):
    return u16(reason) + u16(0) + u64(wait_us) + string(text)


def document(json):
    return raw(json)


def go_away(last_id, text):
    return u64(last_id) + string(text)


def done(reason, text):
    return u16(reason) + u16(0) + string(text)


def error(code, text):
    return u16(code) + u16(0) + string(text)


def empty():
    return b""


BUILD = {
    "hello": hello, "check": check, "check-adhoc": check_adhoc,
    "cancel": empty, "report": report, "report-adhoc": report_adhoc,
    "report-rule": report_rule, "ping": ping, "wait": wait, "status": empty,
    "servers": empty, "policy": empty, "rules": empty, "explain": explain,
    "limiters": empty, "metrics": empty, "top": empty, "acquire": acquire,
    "try-acquire": try_acquire, "error-begin": error_control,
    "error-success": error_control, "quit": empty, "reload": empty,
    "drain": empty, "set-rate": set_rate,
    "welcome": welcome, "decision": decision, "reported": reported,
    "pong": ping, "document": document, "go-away": go_away, "delay": delay,
    "done": done, "error": error,
}
WIDE = {"age_us", "generation", "server_id", "elapsed_us", "last_id",
        "max_wait_us", "rate", "wait_us"}
FIXED = {"operation_id", "config_hash"}
DEFAULTS = {
    "check": dict(operation_id=OPERATION, config_hash=bytes(16), age_us=0,
                  deadline_ms=0, options=0, tokens=1, key=""),
    "check-adhoc": dict(operation_id=OPERATION, config_hash=bytes(16),
                        age_us=0, deadline_ms=0, options=0, tokens=1,
                        tenant="", label="", guards=[], resources=[]),
    "report": dict(options=0, key=""),
    "report-rule": dict(options=0, key=""),
    "explain": dict(options=0, tokens=1, key=""),
    "acquire": dict(permits=1, options=0, key=""),
    "try-acquire": dict(permits=1, options=0, key=""),
    "error-begin": dict(options=0, key=""),
    "error-success": dict(options=0, key=""),
    "delay": dict(wait_us=0, text=""),
    "decision": dict(round=0, has=0, retry_after_ms=0, server_id=0,
                     elapsed_us=0, limit="", text="", guards=[],
                     resources=[]),
    "hello": dict(version_min=1, version_max=1, client=""),
}


def shown(name, v):
    """A field as ipc.json shows it (IPC.md, section 6)."""
    if isinstance(v, list):
        return [{k: shown(k, x) for k, x in e.items()} for e in v]
    if name in WIDE:
        return str(v)
    if isinstance(v, int):
        return v
    b = raw(v)
    if name in FIXED:
        return b.hex()
    if len(b) > 32 and len(set(b)) == 1:
        return {"repeat": b[:1].hex(), "count": len(b)}
    if all(32 <= c < 127 for c in b):
        return b.decode("ascii")
    return {"hex": b.hex()}


MESSAGES = []
MALFORMED = []


def good(name, kind, ident, flags=0, **fields):
    body = BUILD[kind](**fields)
    full = dict(DEFAULTS.get(kind, {}), **fields)
    entry = {
        "name": name,
        "from": "client" if TYPES[kind] < 0x8000 else "agent",
        "type": kind,
        "id": str(ident),
        "flags": flags,
        "fields": {k: shown(k, v) for k, v in full.items()},
        "frame": frame(kind, ident, body, flags).hex(),
    }
    assert len(entry["frame"]) <= 2 * 16384, name
    MESSAGES.append(entry)
    return bytes.fromhex(entry["frame"])


def bad(name, sender, fault, data):
    MALFORMED.append({"name": name, "from": sender, "fault": fault,
                      "frame": data.hex()})


def valid_client():
    good("hello", "hello", 1, client="shop")
    good("hello-anonymous", "hello", 1)
    good("hello-range", "hello", U64, version_min=1, version_max=65535,
         client="n" * 255)
    good("hello-none-in-common", "hello", 1, version_min=2, version_max=3,
         client="from the future")

    good("check", "check", 2, rule="checkout", deadline_ms=1500)
    good("check-key", "check", 3, rule="checkout", key="user:42",
         deadline_ms=250, options=2, tokens=3)
    good("check-empty-key", "check", 4, rule="checkout", options=2)
    good("check-detail", "check", 5, rule="checkout", key=b"\x00\xff\x80",
         options=3, tokens=65535, deadline_ms=U32)
    good("check-resend", "check", 6, rule="checkout", key="user:42",
         options=2, deadline_ms=250, config_hash=HASH, age_us=31337)
    good("check-longest", "check", 2**63, rule="r" * 255, key="k" * 255,
         options=2, deadline_ms=1, config_hash=b"\xff" * 16, age_us=U64)
    good("check-tokens-zero", "check", 7, rule="checkout", tokens=0)

    good("adhoc-empty", "check-adhoc", 8)
    good("adhoc-resource", "check-adhoc", 9, deadline_ms=1000, resources=[
        dict(window_ms=1000, limit=100, tokens=1, name="checkout:42")])
    good("adhoc-guard", "check-adhoc", 10, options=1, tenant="main",
         label="checkout", guards=[
             dict(ttl_ms=10000, max_samples=100, buffer_size=32,
                  min_samples=5, below_ms=100, name="inventory")])
    good("adhoc-both", "check-adhoc", 11, options=1, tokens=2, tenant="main",
         label="d\u00e9p\u00f4t", deadline_ms=500, guards=[
             dict(ttl_ms=1, max_samples=2, buffer_size=3, min_samples=4,
                  below_ms=5, name=b"\x00"),
             dict(ttl_ms=U32, max_samples=U32, buffer_size=U32,
                  min_samples=U32, below_ms=U32, name="t" * 255)],
         resources=[
             dict(window_ms=1, limit=1, tokens=1, name=b"a\x00b"),
             dict(window_ms=U32, limit=U32, tokens=65535, name=b"\xfe")])
    good("adhoc-resend", "check-adhoc", 12, config_hash=HASH, age_us=1,
         resources=[dict(window_ms=60000, limit=5, tokens=1, name="login")])
    good("adhoc-most", "check-adhoc", 13, label="l" * 256, tenant="t" * 255,
         guards=[dict(ttl_ms=i, max_samples=i + 1, buffer_size=i + 2,
                      min_samples=i + 3, below_ms=i + 4, name="g%d" % i)
                 for i in range(31)],
         resources=[dict(window_ms=i + 1, limit=i + 2, tokens=i + 3,
                         name="r%d" % i) for i in range(40)])

    good("cancel", "cancel", 3)
    good("report", "report", 14, latency_ms=37, tenant="", tracker="inventory")
    good("report-tenant", "report", 15, latency_ms=U32, tenant="main",
         tracker="t" * 255)
    good("report-key", "report", 27, latency_ms=5, options=2, tenant="",
         tracker="inventory:{key}", key=b"eu\x00\xff")
    good("report-empty-key", "report", 28, latency_ms=6, options=2,
         tenant="main", tracker="{key}")
    good("report-longest", "report", 29, latency_ms=U32, options=2,
         tenant="n" * 255, tracker="t" * 255, key="k" * 255)
    good("report-unknown-options", "report", 30, latency_ms=7,
         options=U32 - 2, tenant="", tracker="inventory")
    good("report-adhoc", "report-adhoc", 16, latency_ms=0, ttl_ms=10000,
         max_samples=100, buffer_size=32, min_samples=5, tenant="main",
         tracker="inventory")
    good("report-adhoc-bytes", "report-adhoc", 17, latency_ms=U32,
         ttl_ms=U32, max_samples=U32 - 1, buffer_size=U32 - 2,
         min_samples=U32 - 3, tenant="", tracker=b"\x00\x01\xff")
    good("report-rule", "report-rule", 32, latency_ms=37, rule="checkout")
    good("report-rule-key", "report-rule", 33, latency_ms=0, options=2,
         rule="checkout", key=b"eu\x00\xff")
    good("report-rule-empty-key", "report-rule", 34, latency_ms=6, options=2,
         rule="checkout")
    good("report-rule-longest", "report-rule", 35, latency_ms=U32, options=2,
         rule="r" * 255, key="k" * 255)
    good("report-rule-unknown-options", "report-rule", 36, latency_ms=7,
         options=U32 - 2, rule="checkout")
    good("ping", "ping", 18, bytes=b"\x01\x02\x03\x04\x05\x06\x07\x08")
    good("ping-empty", "ping", 19, bytes="")
    good("ping-longest", "ping", 20, bytes="p" * 64)
    good("wait", "wait", 21, timeout_ms=5000)
    good("wait-not", "wait", 22, timeout_ms=0)
    good("status", "status", 23)
    good("servers", "servers", 24)
    good("policy", "policy", 31)
    good("rules", "rules", 37)
    good("explain", "explain", 38, rule="checkout")
    good("explain-key", "explain", 39, rule="checkout", key=b"\x00\xff\x80",
         options=2, tokens=3)
    good("explain-empty-key", "explain", 40, rule="checkout", options=2,
         tokens=65535)
    good("explain-longest", "explain", 2**63 + 1, rule="r" * 255,
         key="k" * 255, options=2, tokens=65535)
    good("explain-tokens-zero", "explain", 41, rule="checkout", tokens=0)
    good("explain-unknown-options", "explain", 42, rule="checkout",
         options=U32 - 2, tokens=U32)
    good("limiters", "limiters", 45)
    good("top", "top", 54)
    good("metrics", "metrics", 64)
    valid_limiting()
    good("quit", "quit", 25)
    good("reload", "reload", 43)
    good("drain", "drain", 44)
    good("status-unknown-flags", "status", 26, flags=0xFFFE)


def valid_limiting():
    """What is asked of limiters and error controls."""
    good("acquire", "acquire", 46, limiter="mail")
    good("acquire-key", "acquire", 47, limiter="mail", key=b"eu\x00\xff",
         options=2, permits=1000000)
    good("acquire-empty-key", "acquire", 48, limiter="mail", options=2,
         permits=3)
    good("acquire-longest", "acquire", 2**63 + 2, limiter="l" * 255,
         key="k" * 255, options=2, permits=U32)
    good("acquire-permits-zero", "acquire", 49, limiter="mail", permits=0)
    good("acquire-unknown-options", "acquire", 50, limiter="mail",
         options=U32 - 2, permits=2)
    good("try-acquire", "try-acquire", 51, max_wait_us=250000,
         limiter="mail")
    good("try-acquire-now", "try-acquire", 52, max_wait_us=0, limiter="mail",
         key="user:42", options=2, permits=10)
    good("try-acquire-empty-key", "try-acquire", 53, max_wait_us=1,
         limiter="mail", options=2)
    good("try-acquire-longest", "try-acquire", 2**63 + 3,
         max_wait_us=YEAR_US, limiter=b"\xff" * 255, key=b"\x00" * 255,
         options=2, permits=1000000)
    good("try-acquire-over-a-year", "try-acquire", 54, max_wait_us=U64,
         limiter="mail", permits=U32)
    good("try-acquire-unknown-options", "try-acquire", 55,
         max_wait_us=2**32, limiter="mail", options=U32 - 2)
    ident = 56
    for kind in ("error-begin", "error-success"):
        good(kind, kind, ident, control="smtp")
        good(kind + "-key", kind, ident + 1, control="smtp",
             key=b"mx1\x00\xff", options=2)
        good(kind + "-empty-key", kind, ident + 2, control="smtp", options=2)
        good(kind + "-longest", kind, 2**63 + ident, control="c" * 255,
             key="k" * 255, options=2)
        good(kind + "-unknown-options", kind, ident + 3, control="smtp",
             options=U32 - 2)
        ident += 4
    good("set-rate", "set-rate", 64, rate=10 * 10**12, limiter="mail")
    good("set-rate-lowest", "set-rate", 65, rate=10**9, limiter="mail")
    good("set-rate-highest", "set-rate", 66, rate=10**18,
         limiter=b"\x00" * 255)
    good("set-rate-zero", "set-rate", 67, rate=0, limiter="mail")
    good("set-rate-over", "set-rate", 68, rate=U64, limiter="")


def valid_agent():
    good("welcome", "welcome", 1, version=1, max_frame=16384,
         max_inflight=16384, default_deadline_ms=1060, config_hash=HASH,
         generation=1, agent="rl-agent 1.0.0")
    good("welcome-extremes", "welcome", U64, version=1, max_frame=U32,
         max_inflight=U32, default_deadline_ms=U32,
         config_hash=b"\xff" * 16, generation=U64, agent="v" * 512)
    good("welcome-again", "welcome", 0, version=1, max_frame=16384,
         max_inflight=64, default_deadline_ms=1105,
         config_hash=bytes(reversed(HASH)), generation=2,
         agent="rl-agent 1.0.0")

    good("decision-allowed", "decision", 2, outcome=0, permit=1, source=0,
         reason=0, has=2, server_id=8521215115264, elapsed_us=812)
    good("decision-denied", "decision", 3, outcome=1, permit=0, source=0,
         reason=1, round=1, has=2, retry_after_ms=130, server_id=U64,
         elapsed_us=20812, limit="checkout:user:42",
         text="bucket checkout:user:42 lacks 1 token")
    good("decision-shadow", "decision", 4, outcome=1, permit=1, source=4,
         reason=3, has=2, server_id=1015809, limit="inventory",
         text="tracker inventory is at 250 ms")
    good("decision-empty", "decision", 5, outcome=0, permit=1, source=1,
         reason=0)
    good("decision-open", "decision", 6, outcome=2, permit=1, source=2,
         reason=9, elapsed_us=61000, text="no valid answer in 60 ms")
    good("decision-closed", "decision", 7, outcome=2, permit=0, source=2,
         reason=7, text="no server of main is known")
    good("decision-local", "decision", 8, outcome=2, permit=1, source=3,
         reason=8, text="nothing could be sent")
    good("decision-validation", "decision", 9, outcome=2, permit=0, source=2,
         reason=4, text="rule checkout needs a key")
    good("decision-cancelled", "decision", 10, outcome=3, permit=0, source=2,
         reason=14)
    good("decision-detail", "decision", 11, outcome=1, permit=0, source=0,
         reason=3, has=3, retry_after_ms=U32, server_id=1015809,
         elapsed_us=U64, limit=b"\x00", text="d\u00e9ni\u00e9", guards=[
             dict(below_ms=100, current_ms=250, passed=0, name=b"\x00"),
             dict(below_ms=U32, current_ms=0, passed=1, name="t" * 255)],
         resources=[
             dict(window_ms=1000, limit=100, tokens=2, deficit=1, actual_rate=99,
                  name="checkout:42"),
             dict(window_ms=U32, limit=U32, tokens=U32, deficit=U32,
                  actual_rate=U32, name=b"\xff\x00")])
    good("decision-detail-none", "decision", 12, outcome=0, permit=1,
         source=1, reason=0, has=1)
    good("decision-most", "decision", 13, outcome=0, permit=1, source=0,
         reason=0, round=65535, has=3, server_id=1, limit="l" * 255,
         text="x" * 512,
         guards=[dict(below_ms=i, current_ms=i + 1, passed=i % 2,
                      name="g%d" % i) for i in range(31)],
         resources=[dict(window_ms=i, limit=i + 1, tokens=i + 2, deficit=0,
                         actual_rate=i + 4, name="r%d" % i) for i in range(40)])

    good("reported", "reported", 14, reason=0, sent=3, text="")
    good("reported-refused", "reported", 15, reason=4, sent=0,
         text="no tracker nosuch")
    good("pong", "pong", 18, bytes=b"\x01\x02\x03\x04\x05\x06\x07\x08")
    good("pong-empty", "pong", 19, bytes="")
    good("pong-longest", "pong", 20, bytes="p" * 64)
    good("document", "document", 23, json='{"ready":true}')
    good("document-first", "document", 24, flags=MORE, json='{"servers":')
    good("document-last", "document", 24, json="[]}")
    good("document-rules", "document", 37, json='{"generation":1,"rules":[]}')
    good("document-empty", "document", 24, flags=MORE, json="")
    good("done", "done", 25, reason=0, text="")
    good("done-timeout", "done", 21, reason=9, text="no server of main")
    good("done-unknown-rule", "done", 38, reason=5, text="no rule nosuch")
    good("done-refused", "done", 43, reason=4,
         text="rl-agent.json: rules.checkout.tenant: no such tenant")
    good("done-draining", "done", 43, reason=11, text="the agent ends")
    good("go-away", "go-away", 0, last_id=7, text="quitting")
    good("go-away-none", "go-away", 0, last_id=0, text="")
    good("go-away-all", "go-away", 0, last_id=U64, text="t" * 512)
    good("document-limiters", "document", 45, json='{"limiters":[]}')
    good("document-top", "document", 54, json='{"rules":[]}')
    good("document-metrics", "document", 64,
         json="# TYPE rl_agent_ready gauge\nrl_agent_ready 1\n")
    good("delay", "delay", 46, reason=0, wait_us=99999)
    good("delay-none", "delay", 47, reason=0, text="d\u00e9lai")
    good("delay-a-year", "delay", 48, reason=0, wait_us=YEAR_US)
    good("delay-refused", "delay", 51, reason=1, wait_us=1900000,
         text="limiter mail is taken for 1.9 s")
    good("delay-refused-longest", "delay", U64, reason=1, wait_us=U64,
         text="t" * 512)
    good("delay-validation", "delay", 49, reason=4,
         text="permits are 1 to 1000000")
    good("delay-unknown-rule", "delay", 46, reason=5, text="no limiter mail")
    good("delay-unauthorised", "delay", 46, reason=6,
         text="this listener does not offer limiter mail")
    good("delay-overloaded", "delay", 47, reason=10,
         text="all keys of limiter mail are waited for")
    good("done-unauthorised", "done", 64, reason=6,
         text="only on the control socket")
    good("error-version", "error", 1, code=1, text="I speak version 1")
    for code, name in ((2, "malformed"), (3, "type"), (4, "greeting"),
                       (5, "busy"), (6, "slow"), (7, "id"),
                       (8, "unauthorised")):
        good("error-" + name, "error", 0, code=code, text=name)


def malformed_client():
    sender = "client"
    some = frame("check", 1, check("checkout"))

    bad("nothing", sender, "need-more", b"")
    bad("length-cut", sender, "need-more", some[:3])
    bad("head-cut", sender, "need-more", some[:15])
    bad("payload-absent", sender, "need-more", some[:16])
    bad("payload-cut", sender, "need-more", some[:-1])
    for length in (0, 1, 15, 16385, 0x7FFFFFFF, U32):
        bad("length-%d" % length, sender, "framing",
            frame("status", 1, length=length))
    bad("length-known-early", sender, "framing", u32(16385))
    bad("type-zero", sender, "type", frame(0, 1))
    bad("type-unknown", sender, "type", frame(0x7777, 1, b"???"))
    for kind, body in (("welcome", welcome(1, 16384, 1, 1, HASH, 1, "")),
                       ("decision", decision(0, 1, 0, 0)),
                       ("delay", delay(0)),
                       ("error", error(1, ""))):
        bad("type-of-agent-" + kind, sender, "type", frame(kind, 1, body))

    bad("hello-magic", sender, "malformed",
        frame("hello", 1, hello(magic=0x524C4950)))
    bad("hello-no-payload", sender, "short", frame("hello", 1))
    bad("hello-name-cut", sender, "short",
        frame("hello", 1, hello(client="shop")[:-1]))
    bad("hello-name-256", sender, "too-big",
        frame("hello", 1, hello(client="n" * 256)))
    bad("hello-left-over", sender, "malformed",
        frame("hello", 1, hello() + b"\0"))

    bad("check-no-payload", sender, "short", frame("check", 1))
    bad("check-base-cut", sender, "short", frame("check", 1, base()[:-1]))
    bad("check-no-rule", sender, "short", frame("check", 1, base()))
    bad("check-no-key", sender, "short",
        frame("check", 1, base() + string("checkout")))
    bad("check-rule-past-end", sender, "short",
        frame("check", 1, base() + u16(255) + b"checkout"))
    bad("check-rule-256", sender, "too-big",
        frame("check", 1, check("r" * 256)))
    bad("check-key-256", sender, "too-big",
        frame("check", 1, check("checkout", "k" * 256)))
    bad("check-key-65535-and-absent", sender, "too-big",
        frame("check", 1, base() + string("checkout") + u16(65535)))
    bad("check-left-over", sender, "malformed",
        frame("check", 1, check("checkout") + b"\0"))

    one = dict(window_ms=1, limit=1, tokens=1, name="b")
    gone = dict(ttl_ms=1, max_samples=1, buffer_size=1, min_samples=1,
                below_ms=1, name="t")
    start = base() + string("") + string("")
    bad("adhoc-no-counts", sender, "short", frame("check-adhoc", 1, start))
    bad("adhoc-guards-32", sender, "too-big",
        frame("check-adhoc", 1, check_adhoc(guards=[gone] * 32)))
    bad("adhoc-resources-41", sender, "too-big",
        frame("check-adhoc", 1, check_adhoc(resources=[one] * 41)))
    bad("adhoc-count-only", sender, "short",
        frame("check-adhoc", 1, start + u16(31) + u16(40)))
    bad("adhoc-one-of-two", sender, "short",
        frame("check-adhoc", 1, start + u16(0) + u16(2) + resource(**one)))
    bad("adhoc-two-of-one", sender, "malformed",
        frame("check-adhoc", 1,
              start + u16(0) + u16(1) + resource(**one) + resource(**one)))
    bad("adhoc-tenant-256", sender, "too-big",
        frame("check-adhoc", 1, check_adhoc(tenant="t" * 256)))
    bad("adhoc-label-257", sender, "too-big",
        frame("check-adhoc", 1, check_adhoc(label="l" * 257)))
    bad("adhoc-bucket-256", sender, "too-big",
        frame("check-adhoc", 1,
              check_adhoc(resources=[dict(one, name="b" * 256)])))
    bad("adhoc-tracker-256", sender, "too-big",
        frame("check-adhoc", 1,
              check_adhoc(guards=[dict(gone, name="t" * 256)])))

    for kind in ("cancel", "status", "servers", "policy", "rules",
                 "limiters", "metrics", "top", "quit", "reload", "drain"):
        bad(kind + "-with-payload", sender, "malformed",
            frame(kind, 1, b"\0"))
    bad("report-cut", sender, "short", frame("report", 1, u32(1)))
    bad("report-no-tenant", sender, "short",
        frame("report", 1, u32(1) + u32(2)))
    bad("report-no-key", sender, "short",
        frame("report", 1, report(1, "", "t")[:-2]))
    bad("report-key-cut", sender, "short",
        frame("report", 1, report(1, "", "t", "eu", 2)[:-1]))
    bad("report-tenant-256", sender, "too-big",
        frame("report", 1, report(1, "t" * 256, "t")))
    bad("report-key-256", sender, "too-big",
        frame("report", 1, report(1, "", "t", "k" * 256, 2)))
    bad("report-tracker-256", sender, "too-big",
        frame("report", 1, report(1, "", "t" * 256)))
    bad("report-left-over", sender, "malformed",
        frame("report", 1, report(1, "", "t") + b"\0"))
    bad("report-adhoc-cut", sender, "short",
        frame("report-adhoc", 1, report_adhoc(1, 2, 3, 4, 5, "", "t")[:-1]))
    bad("report-adhoc-tenant-256", sender, "too-big",
        frame("report-adhoc", 1, report_adhoc(1, 2, 3, 4, 5, "t" * 256, "")))
    bad("report-rule-cut", sender, "short",
        frame("report-rule", 1, u32(1) + b"\2\0\0"))
    bad("report-rule-no-rule", sender, "short",
        frame("report-rule", 1, u32(1) + u32(2)))
    bad("report-rule-no-key", sender, "short",
        frame("report-rule", 1, report_rule(1, "r")[:-2]))
    bad("report-rule-key-cut", sender, "short",
        frame("report-rule", 1, report_rule(1, "r", "eu", 2)[:-1]))
    bad("report-rule-256", sender, "too-big",
        frame("report-rule", 1, report_rule(1, "r" * 256)))
    bad("report-rule-key-256", sender, "too-big",
        frame("report-rule", 1, report_rule(1, "r", "k" * 256, 2)))
    bad("report-rule-left-over", sender, "malformed",
        frame("report-rule", 1, report_rule(1, "r") + b"\0"))
    # A REPORT, whose tenant comes first: one string too many.
    bad("report-rule-with-tenant", sender, "malformed",
        frame("report-rule", 1, report(1, "main", "r")))
    bad("explain-no-payload", sender, "short", frame("explain", 1))
    bad("explain-cut", sender, "short",
        frame("explain", 1, u32(2) + b"\1\0\0"))
    bad("explain-no-rule", sender, "short",
        frame("explain", 1, u32(2) + u32(1)))
    bad("explain-no-key", sender, "short",
        frame("explain", 1, explain("r")[:-2]))
    bad("explain-key-past-end", sender, "short",
        frame("explain", 1, explain("r")[:-2] + u16(255) + b"eu"))
    bad("explain-rule-256", sender, "too-big",
        frame("explain", 1, explain("r" * 256)))
    bad("explain-key-256", sender, "too-big",
        frame("explain", 1, explain("r", "k" * 256, 2)))
    bad("explain-left-over", sender, "malformed",
        frame("explain", 1, explain("r") + b"\0"))
    bad("ping-65", sender, "too-big", frame("ping", 1, b"p" * 65))
    bad("wait-cut", sender, "short", frame("wait", 1, b"\1\0\0"))
    bad("wait-left-over", sender, "malformed",
        frame("wait", 1, wait(1) + b"\0"))


def malformed_limiting():
    """Each is some integers, then two names."""
    sender = "client"
    for kind, numbers in (("acquire", u32(1) + u32(2)),
                          ("try-acquire", u64(1) + u32(1) + u32(2)),
                          ("error-begin", u32(2)),
                          ("error-success", u32(2))):
        bad(kind + "-no-payload", sender, "short", frame(kind, 1))
        bad(kind + "-cut", sender, "short", frame(kind, 1, numbers[:-1]))
        bad(kind + "-no-name", sender, "short", frame(kind, 1, numbers))
        bad(kind + "-name-past-end", sender, "short",
            frame(kind, 1, numbers + u16(255) + b"mail"))
        bad(kind + "-no-key", sender, "short",
            frame(kind, 1, numbers + string("mail")))
        bad(kind + "-key-past-end", sender, "short",
            frame(kind, 1, numbers + string("mail") + u16(3) + b"eu"))
        bad(kind + "-name-256", sender, "too-big",
            frame(kind, 1, numbers + string("l" * 256) + string("eu")))
        bad(kind + "-name-65535-and-absent", sender, "too-big",
            frame(kind, 1, numbers + u16(65535)))
        bad(kind + "-key-256", sender, "too-big",
            frame(kind, 1, numbers + string("mail") + string("k" * 256)))
        bad(kind + "-left-over", sender, "malformed",
            frame(kind, 1, numbers + string("mail") + string("eu") + b"\0"))
    # The one taken for the other.
    bad("try-acquire-without-wait", sender, "short",
        frame("try-acquire", 1, acquire("mail")))
    bad("acquire-with-wait", sender, "malformed",
        frame("acquire", 1, try_acquire(0, "", permits=0)))
    bad("set-rate-no-payload", sender, "short", frame("set-rate", 1))
    bad("set-rate-cut", sender, "short", frame("set-rate", 1, u64(1)[:-1]))
    bad("set-rate-no-name", sender, "short", frame("set-rate", 1, u64(1)))
    bad("set-rate-name-cut", sender, "short",
        frame("set-rate", 1, set_rate(1, "mail")[:-1]))
    bad("set-rate-name-256", sender, "too-big",
        frame("set-rate", 1, set_rate(1, "l" * 256)))
    bad("set-rate-left-over", sender, "malformed",
        frame("set-rate", 1, set_rate(1, "mail") + b"\0"))


def malformed_agent():
    sender = "agent"
    greeting = welcome(1, 16384, 16384, 1060, HASH, 1, "rl-agent")
    yes = decision(0, 1, 0, 0)
    bad("welcome-cut", sender, "short", frame("welcome", 1, greeting[:-1]))
    bad("welcome-left-over", sender, "malformed",
        frame("welcome", 1, greeting + b"\0"))
    bad("welcome-again-cut", sender, "short",
        frame("welcome", 0, greeting[:39]))
    bad("welcome-agent-513", sender, "too-big",
        frame("welcome", 1, welcome(1, 16384, 1, 1, HASH, 1, "v" * 513)))
    bad("welcome-version-2", sender, "value",
        frame("welcome", 1, welcome(2, 16384, 1, 1, HASH, 1, "")))
    bad("welcome-version-0", sender, "value",
        frame("welcome", 1, welcome(0, 16384, 1, 1, HASH, 1, "")))

    bad("decision-no-payload", sender, "short", frame("decision", 1))
    bad("decision-cut", sender, "short", frame("decision", 1, yes[:-1]))
    bad("decision-left-over", sender, "malformed",
        frame("decision", 1, yes + b"\0"))
    bad("decision-outcome-4", sender, "value",
        frame("decision", 1, decision(4, 0, 0, 0)))
    bad("decision-permit-2", sender, "value",
        frame("decision", 1, decision(0, 2, 0, 0)))
    bad("decision-source-5", sender, "value",
        frame("decision", 1, decision(0, 1, 5, 0)))
    bad("decision-reason-15", sender, "value",
        frame("decision", 1, decision(2, 1, 2, 15)))
    bad("decision-cancelled-permits", sender, "value",
        frame("decision", 1, decision(3, 1, 2, 14)))
    bad("decision-limit-256", sender, "too-big",
        frame("decision", 1, decision(1, 0, 0, 1, limit="l" * 256)))
    bad("decision-text-513", sender, "too-big",
        frame("decision", 1, decision(1, 0, 0, 1, text="t" * 513)))
    got = dict(window_ms=1, limit=1, tokens=1, deficit=0, actual_rate=1,
               name="b")
    seen = dict(below_ms=1, current_ms=0, passed=1, name="t")
    bad("decision-detail-absent", sender, "short",
        frame("decision", 1, decision(0, 1, 0, 0, has=1)[:-4]))
    bad("decision-guards-32", sender, "too-big",
        frame("decision", 1, decision(0, 1, 0, 0, has=1, guards=[seen] * 32)))
    bad("decision-resources-41", sender, "too-big",
        frame("decision", 1,
              decision(0, 1, 0, 0, has=1, resources=[got] * 41)))
    bad("decision-resource-absent", sender, "short",
        frame("decision", 1,
              decision(0, 1, 0, 0, has=1)[:-4] + u16(0) + u16(1)))
    bad("decision-passed-2", sender, "value",
        frame("decision", 1,
              decision(0, 1, 0, 0, has=1, guards=[dict(seen, passed=2)])))
    bad("decision-name-256", sender, "too-big",
        frame("decision", 1, decision(0, 1, 0, 0, has=1, resources=[
            dict(got, name="b" * 256)])))

    bad("reported-cut", sender, "short", frame("reported", 1, b"\0\1\0"))
    bad("reported-reason-15", sender, "value",
        frame("reported", 1, reported(15, 0, "")))
    bad("pong-65", sender, "too-big", frame("pong", 1, b"p" * 65))
    bad("go-away-cut", sender, "short", frame("go-away", 0, b"\0" * 7))
    bad("go-away-left-over", sender, "malformed",
        frame("go-away", 0, go_away(1, "") + b"\0"))
    bad("delay-no-payload", sender, "short", frame("delay", 1))
    bad("delay-wait-cut", sender, "short",
        frame("delay", 1, delay(0)[:11]))
    bad("delay-no-text", sender, "short", frame("delay", 1, delay(0)[:12]))
    bad("delay-text-cut", sender, "short",
        frame("delay", 1, delay(1, 5, "refused")[:-1]))
    bad("delay-text-513", sender, "too-big",
        frame("delay", 1, delay(1, 5, "t" * 513)))
    bad("delay-left-over", sender, "malformed",
        frame("delay", 1, delay(0) + b"\0"))
    bad("delay-reason-15", sender, "value", frame("delay", 1, delay(15)))
    # Its reason has two bytes.
    bad("delay-reason-256", sender, "value", frame("delay", 1, delay(256)))
    bad("delay-over-a-year", sender, "value",
        frame("delay", 1, delay(0, YEAR_US + 1)))
    bad("done-cut", sender, "short", frame("done", 1, b"\0\0"))
    bad("done-reason-15", sender, "value", frame("done", 1, done(15, "")))
    bad("error-cut", sender, "short", frame("error", 0, b"\1"))
    bad("error-text-513", sender, "too-big",
        frame("error", 0, error(2, "t" * 513)))
    bad("type-unknown-agent", sender, "type", frame(0x8888, 1, b"???"))
    bad("type-of-client", sender, "type", frame("status", 1))
    bad("length-0-agent", sender, "framing", bytes(16))
    bad("length-16385-agent", sender, "framing",
        frame("document", 1, length=16385))


def dump(out):
    """One vector to a line, so that a diff shows which one changed."""
    out.write('{\n"protocol": 1,\n"messages": [\n')
    out.write(",\n".join(json.dumps(m) for m in MESSAGES))
    out.write('\n],\n"malformed": [\n')
    out.write(",\n".join(json.dumps(m) for m in MALFORMED))
    out.write("\n]\n}\n")


def corpus(folder):
    """Seeds for the fuzzer: small frames of both directions, by name."""
    os.makedirs(folder, exist_ok=True)
    for m in MESSAGES + MALFORMED:
        data = bytes.fromhex(m["frame"])
        if 0 < len(data) <= 512:
            name = "%s-%s" % (m["from"], m["name"])
            with open(os.path.join(folder, name), "wb") as f:
                f.write(data)
    conversation = b"".join(
        bytes.fromhex(m["frame"]) for m in MESSAGES
        if m["name"] in ("hello", "check-key", "report-rule-key", "cancel",
                         "ping", "explain-key", "acquire-key",
                         "error-begin", "reload", "quit"))
    with open(os.path.join(folder, "client-conversation"), "wb") as f:
        f.write(conversation)


def main(argv):
    valid_client()
    valid_agent()
    malformed_client()
    malformed_limiting()
    malformed_agent()
    names = [m["name"] for m in MESSAGES + MALFORMED]
    assert len(names) == len(set(names)), "a name is used twice"
    if argv[1:2] == ["--corpus"] and len(argv) == 3:
        corpus(argv[2])
    elif len(argv) == 1:
        dump(sys.stdout)
    else:
        sys.exit("usage: make_ipc.py [--corpus DIR]")


main(sys.argv)
