#!/usr/bin/env python3
"""The peer of test_peer.py is right: it reproduces tests/vectors/wire.json."""

import json
import os
import struct
import sys

import peer
from peer import Guard, Key, Request, Resource, Wrong

TOP = os.environ.get("srcdir") or os.path.join(os.path.dirname(__file__),
                                               "..", "..")
COUNT = 0
BAD = 0


def ok(condition, name, context=""):
    global COUNT, BAD
    COUNT += 1
    if not condition:
        BAD += 1
        print("#", context)
    print("%s %d - %s" % ("ok" if condition else "not ok", COUNT, name))


def refused(call, *args):
    try:
        call(*args)
    except (ValueError, Wrong, struct.error):
        return True
    return False


def keys(vectors):
    known = {}
    for v in vectors["api_keys_format1_valid"] + \
            vectors["api_keys_legacy_unversioned"]:
        key = Key.parse(v["bech32"])
        want = v["decoded"]
        ok((key.auth, key.key_id, key.secret.hex(), key.payload().hex()) ==
           (want["auth"], want["key_id"], want["secret_hex"],
            want["payload_hex"]), "key " + v["name"])
        ok(key.text() == v["bech32"].lower(), "key text " + v["name"],
           key.text())
        known[v["name"]] = key
    for v in vectors["api_keys_format1_invalid"]:
        # A valid unversioned key, whatever format-1 clients make of it.
        if v["name"] == "legacy_unversioned_aes":
            ok(Key.parse(v["bech32"]).fmt == 0, "key " + v["name"])
        else:
            ok(refused(Key.parse, v["bech32"]), "refused key " + v["name"])
    return known


def ids(vectors):
    for v in vectors["bucket_ids"]:
        ok(peer.bucket_id(bytes.fromhex(v["name_hex"]), v["window_size_ms"],
                          v["rate_limit"]).hex() == v["id"],
           "bucket id " + v["id"])
    for group, profile in (("tracker_ids_v2", "v2"),
                           ("tracker_ids_v1_legacy", "v1")):
        for v in vectors[group]:
            ok(peer.tracker_id(profile, bytes.fromhex(v["name_hex"]),
                               v["ttl_ms"], v["max_samples"],
                               v.get("buffer_size", 0),
                               v["min_sample_threshold"]).hex() == v["id"],
               "tracker id %s %s" % (profile, v["id"]))
    for v in vectors["metrics_label_tlv"]:
        ok(peer.label_tlv(v["label"].encode()).hex() == v["hex"],
           "label " + v["label"])


def computed(vectors):
    """A request with an own nonce, from its parts to its bytes."""
    v = next(v for v in vectors["datagrams_v2"]
             if v["name"] == "aes_request_computed")
    key = Key("aes", 3, b"\3" * 32)
    tenant = peer.tenant_tlv(3, bytes.fromhex(v["request_id"]),
                             v["time_stamp"])
    raw = peer.seal(key, tenant, bytes.fromhex(v["plaintext_hex"]),
                    bytes.fromhex(v["nonce"]))
    ok(raw.hex() == v["hex"], "aes_request_computed sealed", raw.hex())
    ok(refused(Request, key, raw), "its unique_id is no UUIDv4")


def datagrams(vectors, known):
    guard = Guard("inventory-backend", 10000, 100, 32, 5, 100)
    resource = Resource("checkout", 1000, 100)
    want = peer.request_pdu("v1", 60, [guard], [resource], b"api")
    report = peer.report_pdu("v1", [(guard, 18)])
    for v in vectors["datagrams_v1"]:
        key = known[v["key"]]
        raw = bytes.fromhex(v["hex"])
        body = bytes.fromhex(v["plaintext_pdu_hex"])
        unique_id = bytes.fromhex(v["request_id"])
        if "response" in v["name"]:
            tenant = peer.tenant_tlv(83886081, unique_id, v["time_stamp"], 1)
            nonce = raw[44:56] if key.auth == "aes" else None
            ok(peer.seal(key, tenant, body, nonce) == raw,
               v["name"] + " sealed")
            continue
        request = Request(key, raw)
        ok((request.pdu, request.unique_id, request.stamp) ==
           (body, unique_id, v["time_stamp"]), v["name"] + " opened")
        ok(request.pdu == (report if "report" in v["name"] else want),
           v["name"] + " from its names", request.pdu.hex())
        for at in (0, 2, 4, 18, 36, 37, 38, 40, 42, len(raw) - 1):
            broken = bytearray(raw)
            broken[at] ^= 0x80
            try:
                seen = Request(key, bytes(broken))
            except Wrong:
                seen = None
            # Without a tag nothing protects the last byte of the body.
            ok(seen is None or
               key.auth == "cookie" and seen.pdu not in (want, report),
               "%s with byte %d changed" % (v["name"], at))
    response = next(v for v in vectors["datagrams_v2"]
                    if v["name"] == "cookie_response")
    ok(bytes.fromhex(response["hex"]).endswith(peer.pdu(
        peer.PDU_RESPONSE, 0, struct.pack("<HH", 1, 1) + b"g" * 16 +
        struct.pack("<IIIII", 1000, 10, 2, 50, 25) + b"b" * 16 +
        struct.pack("<IIHH", 60000, 77, 0, 0))), "response body v2")


def main():
    path = os.path.join(TOP, "tests", "vectors", "wire.json")
    with open(path, encoding="utf-8") as f:
        vectors = json.load(f)
    if not peer.have_aes():
        print("Bail out! python3-cryptography is not installed")
        sys.exit(1)
    known = keys(vectors)
    ids(vectors)
    computed(vectors)
    datagrams(vectors, known)
    print("1..%d" % COUNT)
    sys.exit(1 if BAD else 0)


main()
