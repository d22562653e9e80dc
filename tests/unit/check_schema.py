#!/usr/bin/env python3
"""The JSON Schema and the parser agree.

Every good case (tests/data/config/good-*.json and the installed example) is
accepted by both. Every bad one is refused by the parser with the line of its
.err file, and by the schema unless the .err says "parser only". Then good-full
is changed in one place at a time, everywhere: the bounds of every number, a
value of every wrong type, an unknown key, a comment, a missing key.

Key by key it is check_schema_keys.py; what the schema makes of itself,
check_schema_random.py.
"""

import glob
import json
import os
import re
import sys

from schema_tools import (
    DATA, SCHEMA, SRC, changed, finish, load, ok, probe, probe_values,
    schema_accepts, schema_error, shown, walk, without)


def run_good():
    paths = sorted(glob.glob(os.path.join(DATA, "good-*.json")))
    for path, said in zip(paths, probe(paths)):
        error = schema_error(load(path))
        ok(said == "ok" and error is None, os.path.basename(path),
           [r for r in (said, error) if r not in ("ok", None)])
    example = load(os.path.join(SRC, "daemon/rl-agent.json.example"))
    error = schema_error(example)
    for tenant in example["tenants"].values():
        tenant["key"] = {"env": "RATELIMITLY_AUTH_KEY"}
    said = probe_values([example])[0]
    ok(said == "ok" and error is None, "rl-agent.json.example",
       [str(said), str(error)])


def run_bad():
    paths = sorted(glob.glob(os.path.join(DATA, "bad-*.json")))
    for path, said in zip(paths, probe(paths)):
        with open(path[:-5] + ".err", encoding="utf-8") as f:
            expected, *rest = f.read().splitlines()
        remarks = [] if said == expected else [f"{said} / {expected}"]
        if rest != ["parser only"] and schema_error(load(path)) is None:
            remarks.append("the schema accepts it")
        elif rest == ["parser only"] and "duplicate" not in path \
                and "comma" not in path and schema_error(load(path)):
            remarks.append("the schema refuses it, too: not parser only")
        ok(not remarks, os.path.basename(path), remarks)


def changes(full):
    """(name, value, accepted by both?, path of a complaint)."""
    for path, _, value, schema in walk(full, SCHEMA):
        where = shown(path)
        if isinstance(value, dict):
            yield (f"{where} + unknown", changed(full, path + ("zz",), {}),
                   False if schema.get("additionalProperties") is False
                   else None, shown(path + ("zz",)))
            yield (f"{where} + comment", changed(full, path + ("_zz",), [1]),
                   True, shown(path + ("_zz",)))
            for key in schema.get("required", []):
                yield (f"{where} - {key}", without(full, path + (key,)),
                       False, shown(path + (key,)))
        if not path:
            continue
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            for bound, good in ((schema["minimum"], True),
                                (schema["maximum"], True),
                                (schema["minimum"] - 1, False),
                                (schema["maximum"] + 1, False)):
                yield (f"{where} = {bound}", changed(full, path, bound),
                       good, where)
        for other in (None, True, -1, 1.5, "", "\x01", [], [None], {},
                      {"zz": 1}):
            yield (f"{where} = {json.dumps(other)}",
                   changed(full, path, other), None, where)


# What only the parser can know: references and values that must differ.
BEYOND_SCHEMA = re.compile(
    r"and there are \d+ tenants|is the path of listener|"
    r"must be at least initial: it is|is over max_delay_ms, which is|"
    r"final_preference_units: must be 0 to final_receive_units")


def at_place(line, where):
    """Is the line about this very place?"""
    return line.startswith(where) and \
        not re.match(r"[\w-]", line[len(where):len(where) + 1] or ".")


def run_changes():
    """
    None as the verdict: whatever the schema says of it, the parser says, too.
    A good value can have another place refused (a horizon that is too long
    then), a bad one is refused where it is, or where it makes one too many.
    """
    cases = list(changes(load(os.path.join(DATA, "good-full.json"))))
    said = probe_values([value for _, value, _, _ in cases])
    wrong = []
    for (name, value, verdict, where), line in zip(cases, said):
        accepts = schema_accepts(value)
        here = at_place(line, where)
        if verdict is None:
            verdict = accepts
        if accepts != verdict:
            wrong.append(f"{name}: the schema says {schema_error(value)}")
        if verdict and here and not BEYOND_SCHEMA.search(line):
            wrong.append(f"{name}: the parser says {line}")
        parent = where.rpartition(".")[0] if where.endswith(".zz") else where
        if not verdict and not (here or at_place(line, parent + ":")):
            wrong.append(f"{name}: the parser says {line}")
    ok(len(cases) > 800 and not wrong,
       f"{len(cases)} changes of good-full.json", wrong[:40])


def main():
    run_good()
    run_bad()
    run_changes()
    return finish()


if __name__ == "__main__":
    sys.exit(main())
