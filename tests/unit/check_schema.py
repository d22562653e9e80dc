#!/usr/bin/env python3
"""The JSON Schema and the parser agree.

Every good case (tests/data/config/good-*.json and the installed example) is
accepted by both. Every bad one is refused by the parser with the line of its
.err file, and by the schema unless the .err says "parser only". Then good-full
is changed in one place at a time, everywhere: the bounds of every number, a
value of every wrong type, an unknown key, a comment, a missing key.

CONFIG_PROBE is the program that loads configurations; without it the one
beside the build folder's tests. Prints TAP.
"""

import copy
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

SRC = os.environ.get("srcdir", ".")
BUILD = os.environ.get("top_builddir", ".")
PROBE = os.environ.get(
    "CONFIG_PROBE", os.path.join(BUILD, "tests/unit/config_probe"))
DATA = os.path.join(SRC, "tests/data/config")
KEYS = {
    "RATELIMITLY_AUTH_KEY": ("api_keys_legacy_unversioned",
                             "c_0.5_cookie_tenant2"),
    "RLA_TEST_AES": ("api_keys_legacy_unversioned", "c_0.5_aes_tenant3"),
}

try:
    import jsonschema
except ImportError:
    print("1..0 # SKIP no python3-jsonschema")
    sys.exit(1 if os.environ.get("RLA_REQUIRE_TOOLS") == "1" else 0)

results = []


def ok(holds, name, remarks=()):
    results.append(bool(holds))
    for remark in [] if holds else remarks:
        print("#", remark)
    print(f"{'ok' if holds else 'not ok'} {len(results)} - {name}")


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def environment():
    """Keys of the vectors, under the names that the cases use."""
    wire = load(os.path.join(SRC, "tests/vectors/wire.json"))
    env = dict(os.environ)
    env.pop("RLA_TEST_UNSET", None)
    for name, (section, vector) in KEYS.items():
        env[name] = next(k["bech32"] for k in wire[section]
                         if k["name"] == vector)
    return env


ENV = environment()
SCHEMA = load(os.path.join(SRC, "daemon/rl-agent.schema.json"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def probe(paths):
    """What the parser says of each file: "ok" or its error."""
    out = subprocess.run([PROBE, *paths], env=ENV, check=False,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         encoding="utf-8")
    lines = out.stdout.splitlines()
    bad = [p for p, line in zip(paths, lines) if line != f"{p}: ok"]
    if len(lines) != len(paths) or out.returncode != (78 if bad else 0):
        raise SystemExit(f"Bail out! {PROBE}: exit {out.returncode}, "
                         f"{len(lines)} lines, {out.stderr[-2000:]}")
    return [line[len(path):].lstrip(":").lstrip() if line.startswith(path)
            else line for path, line in zip(paths, lines)]


def probe_values(values):
    """The same of values, in batches of files."""
    said = []
    with tempfile.TemporaryDirectory() as folder:
        for start in range(0, len(values), 500):
            paths = []
            for i, value in enumerate(values[start:start + 500]):
                paths.append(os.path.join(folder, f"{i}.json"))
                with open(paths[-1], "w", encoding="utf-8") as f:
                    json.dump(value, f)
            said += probe(paths)
    return said


def schema_error(value):
    error = jsonschema.exceptions.best_match(VALIDATOR.iter_errors(value))
    return None if error is None else f"{error.json_path}: {error.message}"


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


def resolve(schema):
    while "$ref" in schema:
        found = SCHEMA
        for part in schema["$ref"].lstrip("#/").split("/"):
            found = found[part]
        schema = {**found, **{k: v for k, v in schema.items() if k != "$ref"}}
    return schema


def shown(path):
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


def walk(value, schema, path=()):
    """Every place of a value with the schema that rules there."""
    schema = resolve(schema)
    yield path, value, schema
    if isinstance(value, dict):
        for key, member in value.items():
            if key.startswith("_"):
                continue
            properties = schema.get("properties", {})
            sub = properties.get(key, schema.get("additionalProperties"))
            yield from walk(member, sub, path + (key,))
    elif isinstance(value, list) and "items" in schema:
        for i, member in enumerate(value):
            yield from walk(member, schema["items"], path + (i,))


def changed(root, path, value):
    root = copy.deepcopy(root)
    at = root
    for part in path[:-1]:
        at = at[part]
    at[path[-1]] = value
    return root


def without(root, path):
    root = copy.deepcopy(root)
    at = root
    for part in path[:-1]:
        at = at[part]
    del at[path[-1]]
    return root


def changes(full):
    """(name, value, accepted by both?, path of a complaint)."""
    for path, value, schema in walk(full, SCHEMA):
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
        if isinstance(value, int) and not isinstance(value, bool):
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
    r"must be at least initial: it is|"
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
        error = schema_error(value)
        here = at_place(line, where)
        if verdict is None:
            verdict = error is None
        if (error is None) != verdict:
            wrong.append(f"{name}: the schema says {error}")
        if verdict and here and not BEYOND_SCHEMA.search(line):
            wrong.append(f"{name}: the parser says {line}")
        parent = where.rpartition(".")[0] if where.endswith(".zz") else where
        if not verdict and not (here or at_place(line, parent + ":")):
            wrong.append(f"{name}: the parser says {line}")
    ok(len(cases) > 800 and not wrong,
       f"{len(cases)} changes of good-full.json", wrong[:40])


def properties(schema, names):
    if isinstance(schema, dict):
        names.update(schema.get("properties", {}))
        for part in schema.values():
            properties(part, names)
    elif isinstance(schema, list):
        for part in schema:
            properties(part, names)
    return names


def run_lists():
    """The parser's tables, the schema and the manual know the same keys."""
    known = properties(SCHEMA, set())
    parser = set()
    for path in glob.glob(os.path.join(SRC, "daemon/config_*.c")):
        with open(path, encoding="utf-8") as f:
            text = f.read()
        parser |= set(re.findall(r'\.name = "(\w+)"', text))
        parser |= set(re.findall(r'WALK_POSITIVE\("(\w+)"', text))
        parser |= set(re.findall(r'strcmp\(form, "(\w+)"\)', text))
        parser |= set(re.findall(r'parse_growing\(w, json, out, "(\w+)"',
                                 text))
    full = set()
    for path, _, _ in walk(load(os.path.join(DATA, "good-full.json")), SCHEMA):
        full |= {part for part in path if isinstance(part, str)}
    with open(os.path.join(SRC, "man/rl-agent.json.5"), encoding="utf-8") as f:
        items = re.findall(r"^\.It Cm (.+)", f.read(), re.M)
    manual = set(re.findall(r"\w+", " ".join(items)))
    unsupported = {"local"}
    ok(parser - unsupported == known, "the parser's keys are the schema's",
       [str((parser - unsupported) ^ known)])
    ok(known <= full | {"file", "credential"}, "good-full.json has them all",
       [str(known - full)])
    ok(known == manual, "the manual lists them all", [str(known ^ manual)])


def main():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    run_good()
    run_bad()
    run_changes()
    run_lists()
    print(f"1..{len(results)}")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
