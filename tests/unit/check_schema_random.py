#!/usr/bin/env python3
"""What the JSON Schema makes of itself, the agent takes, and takes it so.

Random configurations, generated from the schema: each key there or not, each
value anywhere in its range. What a schema cannot say (references, what a policy
means in time, paths that must differ) is mended afterwards. Each is accepted by
the schema and the parser, which shows every value as it was written, or its
default. TEST_SEED repeats a run. Prints TAP.
"""

import json
import os
import random
import sys

from schema_tools import (
    KEYS, SCHEMA, finish, misunderstood, ok, probe_values, resolve,
    schema_error, words)

COUNT = 400
SEED = os.environ.get("TEST_SEED") or str(random.SystemRandom().getrandbits(48))
LETTERS = "abcXYZ019-._ :/\\\"'*?[]!~\u00e9\u20ac\U0001f600"


class Maker:
    """One configuration."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.count = 0

    def name(self, most=40):
        if self.random.random() < 0.05:
            return "n" * 255
        self.count += 1
        return f"{self.count}" + "".join(self.random.choices(
            LETTERS, k=self.random.randrange(most)))

    def template(self):
        parts = ["{key}", "{uid}", "{gid}", "{listener}", "{{", "}}"]
        text = "".join(self.random.choices(
            [*parts, self.name(10)], k=self.random.randint(1, 5)))
        return text if len(text.encode()) <= 255 else self.name(1)

    def path(self):
        self.count += 1
        parts = ["run", "rl.agent", "..", f"x{self.count}", ".s"]
        return "".join(self.random.choice(["/", "/", "//", "/./", "/.//"]) +
                       part for part in parts)

    def address(self):
        self.count += 1
        port = self.random.randint(1, 65535)
        if self.random.random() < 0.5:
            return f"192.0.2.{self.count % 256}:{port}"
        return f"[2001:db8::{self.count:x}]:{port}"

    def listen(self):
        self.count += 1
        where = self.random.choice(["127.0.0.1", "127.3.2.1", "[::1]"])
        return self.random.choice(
            [f"{where}:{self.count % 65535 + 1}", "unix:" + self.path()])

    def text(self, what):
        """A text for the key of this name, or for an item of its list."""
        rnd = self.random
        return {
            "env": lambda: rnd.choice(list(KEYS)),
            "file": lambda: "/nowhere/main.key",
            "credential": lambda: "main.key",
            "name": lambda: rnd.choice(
                ["c-1.p0.example", "x", "_a.b-c.example.", "a" * 63 + ".b"]),
            "nameservers": lambda: rnd.choice(
                ["192.0.2.53", "2001:db8::53", "[2001:db8::53]"] +
                [self.address()]),
            "id": lambda: "0",
            "address": self.address,
            "tenant": self.name, "tracker": self.template,
            "label": lambda: self.name() if rnd.random() < 0.8 else "",
            "bucket": self.template, "path": self.path,
            "mode": lambda: f"{rnd.choice(['', '0'])}{rnd.randrange(512):03o}",
            "group": lambda: "root",
            "listen": self.listen, "key_header": lambda: "X-Key",
            "rules": self.name, "trackers": self.name,
            "limiters": self.name, "error_controls": self.name,
        }[what]()

    def number(self, low, high, whole):
        rnd = self.random
        value = rnd.choice([low, high, rnd.uniform(low, high),
                            low + (high - low) ** rnd.random()])
        value = min(max(value, low), high)
        return int(value) if whole or rnd.random() < 0.2 and \
            int(value) >= low else value

    def comment(self, value):
        if self.random.random() < 0.1:
            value["_" + self.name()] = self.random.choice(
                [None, 1.5, "text", [{}], {"mode": 1}])
        items = list(value.items())
        self.random.shuffle(items)
        return dict(items)

    def entries(self, schema, kind):
        least = 1 if "not" in schema else 0
        make = self.template if kind == ("trackers",) else self.name
        return self.comment({
            make(): self.value(schema["additionalProperties"], kind + ("*",))
            for _ in range(self.random.randint(least, 4))})

    def object(self, schema, kind):
        if isinstance(schema.get("additionalProperties"), dict):
            return self.entries(schema, kind)
        choices = [part["required"][0] for part in schema.get("oneOf", [])
                   if "required" in part]
        wanted = schema.get("required", []) + (
            [self.random.choice(choices)] if choices else [])
        likely = self.random.choice([0.2, 0.6, 0.95])
        return self.comment({
            name: self.value(sub, kind + (name,))
            for name, sub in schema.get("properties", {}).items()
            if name in wanted or
            (name not in choices and self.random.random() < likely)})

    def array(self, schema, kind):
        most = schema["maxItems"]
        count = self.random.choice([0, 1, 2, min(most, 5), min(most, 40)])
        return [self.value(schema["items"], kind + ("[]",))
                for _ in range(count)]

    def value(self, schema, kind=()):
        schema = resolve(schema)
        if "anyOf" in schema:
            schema = resolve(self.random.choice(schema["anyOf"]))
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self.random.choice(schema["enum"])
        named = [part for part in kind if part != "[]"][-1:]
        what = schema["type"]
        what = what if isinstance(what, str) else self.random.choice(what)
        if what == "string" and words(schema):
            return self.random.choice(words(schema))
        return {"object": lambda: self.object(schema, kind),
                "array": lambda: self.array(schema, kind),
                "string": lambda: self.text(named[0]),
                "boolean": lambda: self.random.random() < 0.5,
                "null": lambda: None,
                "integer": lambda: self.number(
                    schema["minimum"], schema["maximum"], True),
                "number": lambda: self.number(
                    schema["minimum"], schema["maximum"], False)}[what]()

    # What follows is what a schema cannot say.

    def shrink(self, schedule, least, most):
        form, value = next(item for item in schedule.items()
                           if item[0][0] != "_")
        if form == "fixed":
            schedule[form] = self.random.randint(least, most)
            return schedule[form]
        value["initial"] = self.random.randint(least, most)
        value["max"] = self.random.randint(value["initial"], most)
        return value["initial"]

    def mend_policy(self, policy):
        """No round of more than 3 units, no more than 4 rounds."""
        policy["unit_ms"] = self.random.randint(1, 5)
        policy["replay_count"] = policy.get("replay_count", 1) % 4
        gap = 1
        if "replay_gap" in policy:
            gap = self.shrink(policy["replay_gap"], 1, 3)
        if isinstance(policy.get("preference"), dict):
            self.shrink(policy["preference"], 0, gap)
        final = policy.get("final_receive_units", 1) % 5
        policy["final_receive_units"] = final
        if policy.get("preference") == "first-round":
            final = 0
        policy["final_preference_units"] = self.random.randint(0, final)

    def mend_tenant(self, tenant):
        tenant["key"] = {"env": self.random.choice(list(KEYS))}
        for i, server in enumerate(tenant.get("servers", [])):
            server["id"] = str(2**64 - 1 - i // 4)
        if tenant.get("servers"):
            tenant.get("dns", {}).pop("name", None)
            tenant.get("dns", {}).pop("nameservers", None)
        if "policy" in tenant:
            self.mend_policy(tenant["policy"])

    def mend_rule(self, rule, tenants, trackers):
        if len(tenants) > 1 or "tenant" in rule:
            rule["tenant"] = self.random.choice(tenants)
        if "guards" in rule and not trackers:
            rule["guards"] = []
        for guard in rule.get("guards", []):
            guard["tracker"] = self.random.choice(trackers)

    def mend_error_control(self, control):
        delays = sorted((control.get("min_delay_ms", 100),
                         control.get("max_delay_ms", 30000)))
        for name, delay in zip(("min_delay_ms", "max_delay_ms"), delays):
            if name in control:
                control[name] = delay

    @staticmethod
    def mend_gateway(gateway):
        if not gateway["listen"].startswith("unix:"):
            gateway.pop("mode", None)
            gateway.pop("group", None)

    def configuration(self):
        root = self.value(SCHEMA)
        names = {section: [name for name in root.get(section, {})
                           if name[0] != "_"]
                 for section in ("tenants", "trackers", "rules", "listeners")}
        for name in names["tenants"]:
            self.mend_tenant(root["tenants"][name])
        for name in names["rules"]:
            self.mend_rule(root["rules"][name], names["tenants"],
                           names["trackers"])
        for name, control in root.get("error_controls", {}).items():
            if name[0] != "_":
                self.mend_error_control(control)
        for name, gateway in root.get("gateway", {}).items():
            if name[0] != "_":
                self.mend_gateway(gateway)
        for name in names["listeners"]:
            root["listeners"][name]["path"] = self.path()
        if "path" in root.get("control", {}):
            root["control"]["path"] = self.random.choice([None, self.path()])
        return root


def main():
    print(f"# TEST_SEED={SEED}", flush=True)
    made = [Maker(f"{SEED}.{i}").configuration() for i in range(COUNT)]
    again = [Maker(f"{SEED}.{i}").configuration() for i in range(3)]
    ok(made[:3] == again, "a seed makes the same again")
    refused, wrong = [], []
    for i, (value, line) in enumerate(zip(made, probe_values(made, "-d"))):
        error = schema_error(value)
        if error is not None:
            refused.append(f"{i}: the schema says {error}")
        elif not line.startswith("{"):
            refused.append(f"{i}: the parser says {line}")
        else:
            wrong += [f"{i}: {text}"
                      for text in misunderstood(value, json.loads(line))]
    ok(not refused, f"{COUNT} random configurations are good", refused[:20])
    ok(not wrong, "all that they say is understood", wrong[:20])
    return finish()


if __name__ == "__main__":
    sys.exit(main())
