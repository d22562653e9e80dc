#!/usr/bin/env python3
"""Seed corpora of fuzz_datagram and fuzz_key from the wire vectors.

Run from the top folder after the vectors change; the files are committed.
"""
import json
import pathlib

VECTORS = pathlib.Path("tests/vectors")
CORPUS = pathlib.Path("tests/fuzz/corpus")
AUTH = {"none": 0, "cookie": 1, "aes": 2}
BARE = 3


def control(profile, what):
    return bytes([what << 1 | (profile == "v2")])


def slug(text):
    kept = [c if c.isalnum() else "-" for c in text.lower()]
    return "-".join(filter(None, "".join(kept).split("-")))[:48]


def write(kind, name, data):
    folder = CORPUS / kind
    folder.mkdir(parents=True, exist_ok=True)
    (folder / slug(name)).write_bytes(data)


def datagrams(wire, official):
    for profile in ("v1", "v2"):
        for v in wire["datagrams_" + profile]:
            auth = "aes" if "aes" in v["name"] else "cookie"
            name = v["name"]
            if not name.startswith(profile):
                name = f"{profile}-{name}"
            write("datagram", name,
                  control(profile, AUTH[auth]) + bytes.fromhex(v["hex"]))
    # The parts of the other keys' datagrams: what a server or client decodes.
    picked = {"more entries than asked (asked 1; third has deficit)",
              "trailing bytes after the PDU", "PDU size 7 < header",
              "deny by guard (current 101 > threshold 100)"}
    for v in official["responses"]["vectors"]:
        if v["auth"] == "cookie" and v["desc"] in picked:
            write("datagram", "pdu-" + v["desc"],
                  control("v1", BARE) + bytes.fromhex(v["pdu"]))
        if v["auth"] == "cookie" and v["desc"].startswith("tenant TLV size"):
            write("datagram", v["desc"],
                  control("v1", AUTH["cookie"]) + bytes.fromhex(v["datagram"]))
    for v in official["aes_requests"]["vectors"]:
        write("datagram", "pdu-request-" + v["desc"],
              control("v1", BARE) + bytes.fromhex(v["pdu"]))


def keys(wire, official):
    for v in wire["api_keys_format1_valid"][:3]:
        write("key", v["name"], b"0" + v["bech32"].encode())
    for v in wire["api_keys_legacy_unversioned"][:1]:
        write("key", v["name"], b"0" + v["bech32"].encode())
    for v in official["keys"]["valid"][2:3] + official["keys"]["invalid"][2:5]:
        write("key", v["desc"], b"0" + bytes.fromhex(v["encoded"]))
    hrp = {"aes": b"1", "cookie": b"2", "none": b"3"}
    for v in wire["api_keys_format1_valid"][:3]:
        d = v["decoded"]
        write("key", "payload-" + v["name"],
              hrp[d["auth"]] + bytes.fromhex(d["payload_hex"]))
    for v in wire["api_keys_format1_invalid"][:1]:
        write("key", "payload-" + v["name"],
              b"1" + bytes.fromhex(v["payload_hex"]))
    for v in wire["api_keys_legacy_unversioned"][:1]:
        write("key", "payload-" + v["name"],
              b"2" + bytes.fromhex(v["decoded"]["payload_hex"]))


def main():
    wire = json.loads((VECTORS / "wire.json").read_text())
    official = json.loads((VECTORS / "official-v1.json").read_text())
    datagrams(wire, official)
    keys(wire, official)


if __name__ == "__main__":
    main()
