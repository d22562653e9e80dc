"""What the tests of the configuration's JSON Schema share.

The schema, its validator, the keys of the vectors under the names that the
cases use, the probe that loads many files in one run, places in a
configuration, and TAP.

CONFIG_PROBE is the program that loads configurations; without it the one
beside the build folder's tests. Without python3-jsonschema all is skipped.
"""

import copy
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
    print(f"{'ok' if holds else 'not ok'} {len(results)} - {name}",
          flush=True)


def finish():
    print(f"1..{len(results)}")
    return 0 if all(results) else 1


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def read(*path):
    with open(os.path.join(SRC, *path), encoding="utf-8") as f:
        return f.read()


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
jsonschema.Draft202012Validator.check_schema(SCHEMA)
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def probe(paths, *options, env=None):
    """What the parser says of each file: "ok" or its error."""
    out = subprocess.run([PROBE, *options, *paths], env=env or ENV, check=False,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         encoding="utf-8")
    lines = out.stdout.splitlines()
    good = [line == f"{p}: ok" or line.startswith("{")
            for p, line in zip(paths, lines)]
    if len(lines) != len(paths) or out.returncode != (0 if all(good) else 78):
        raise SystemExit(f"Bail out! {PROBE}: exit {out.returncode}, "
                         f"{len(lines)} lines, {out.stderr[-2000:]}")
    return [line[len(path):].lstrip(":").lstrip() if line.startswith(path)
            else line for path, line in zip(paths, lines)]


def probe_texts(texts, *options, env=None):
    """The same of texts, in batches of files."""
    said = []
    with tempfile.TemporaryDirectory() as folder:
        for start in range(0, len(texts), 500):
            paths = []
            for i, text in enumerate(texts[start:start + 500]):
                paths.append(os.path.join(folder, f"{i}.json"))
                with open(paths[-1], "w", encoding="utf-8") as f:
                    f.write(text)
            said += probe(paths, *options, env=env)
    return said


def probe_values(values, *options):
    return probe_texts([json.dumps(value) for value in values], *options)


def schema_accepts(value):
    return VALIDATOR.is_valid(value)


def schema_error(value):
    error = jsonschema.exceptions.best_match(VALIDATOR.iter_errors(value))
    return None if error is None else f"{error.json_path}: {error.message}"


def resolve(schema):
    while "$ref" in schema:
        found = SCHEMA
        for part in schema["$ref"].lstrip("#/").split("/"):
            found = found[part]
        schema = {**found, **{k: v for k, v in schema.items() if k != "$ref"}}
    return schema


def words(schema):
    """What a text may be, when that is a list of words."""
    listed = re.fullmatch(r"\^\(?([a-z|-]+)\)?\$", schema.get("pattern", ""))
    return listed.group(1).split("|") if listed else schema.get("enum", [])


def shown(path):
    """A path as the agent writes it."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif not re.fullmatch(r"[\w-]+", part, re.A):
            text += f"[{json.dumps(part)}]"
        else:
            text += f".{part}" if text else part
    return text


def walk(value, schema, path=(), kind=()):
    """
    Every place of a value, its kind, the value there, and the schema that
    rules there. The kind of a place is its path with * for the names of a
    table and [] for the indexes of a list.
    """
    schema = resolve(schema)
    yield path, kind, value, schema
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        for key, member in value.items():
            if key.startswith("_"):
                continue
            sub = properties.get(key, schema.get("additionalProperties"))
            if isinstance(sub, dict):
                yield from walk(member, sub, path + (key,),
                                kind + (key if key in properties else "*",))
    elif isinstance(value, list) and "items" in schema:
        for i, member in enumerate(value):
            yield from walk(member, schema["items"], path + (i,),
                            kind + ("[]",))


def kinds(schema, kind=()):
    """Every kind of place that the schema knows, and its schema."""
    schema = resolve(schema)
    yield kind, schema
    for key, sub in schema.get("properties", {}).items():
        yield from kinds(sub, kind + (key,))
    if isinstance(schema.get("additionalProperties"), dict):
        yield from kinds(schema["additionalProperties"], kind + ("*",))
    if "items" in schema:
        yield from kinds(schema["items"], kind + ("[]",))


def container(root, path):
    for part in path[:-1]:
        root = root[part]
    return root


def changed(root, path, value):
    if not path:
        return value
    root = copy.deepcopy(root)
    container(root, path)[path[-1]] = value
    return root


def without(root, path):
    root = copy.deepcopy(root)
    del container(root, path)[path[-1]]
    return root


def first_places(roots):
    """kind -> (root, path, value, schema), the first, an object if it can."""
    found = {}
    for root in roots:
        for path, kind, value, schema in walk(root, SCHEMA):
            if kind not in found or (isinstance(value, dict) and
                                     not isinstance(found[kind][2], dict)):
                found[kind] = (root, path, value, schema)
    return found


def plain(value):
    """Without comments."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items() if k[:1] != "_"}
    return [plain(v) for v in value] if isinstance(value, list) else value


# What the probe shows in another way than it is written, by the last of its
# kind: how what was written (or its default) is shown. None: whatever it is.
SHOWN = {
    "nameservers": lambda text: len(text),
    "servers": lambda text: len(text),
    "mode": lambda text: text if text.isalpha() else text.zfill(4),
    "path": lambda text: text and re.sub(r"(/\.?)+(?=/)", "", text),
    "listen": lambda text: re.sub(r"(/\.?)+(?=/)", "", text),
}
ABSENT = object()
RESOLVED = {
    ("tenants", "*", "profile"): "auto",
    ("tenants", "*", "dns", "name"): None,
    ("tenants", "*", "strict_source"): None,
    ("rules", "*", "tenant"): ABSENT,
    ("control", "path"): None,
}


def written(document, path):
    for part in path:
        if isinstance(document, dict) and part in document or \
                isinstance(document, list) and part < len(document):
            document = document[part]
        else:
            return ABSENT
    return document


def is_leaf(kind, value):
    """Is it compared as a whole?"""
    inside = value[:1] if isinstance(value, list) else []
    return kind[-1:] in (("replay_gap",), ("preference",)) or not (
        isinstance(value, dict) or isinstance(inside and inside[0], dict))


# What these are kept in. They are shown as the nearest of them.
UNITS = {"permits_per_second": 1e-12, "max_burst_seconds": 1e-6}


def same(value, want, unit=0):
    if unit and not isinstance(want, bool):
        return abs(value - want) <= unit * 0.501 + want * 2**-51
    return value == want and isinstance(value, bool) == isinstance(want, bool)


def misunderstood(document, dump):
    """Where the probe's -d differs from what was written and the defaults."""
    wrong = []
    document = {"listeners": {"main": {}}, **plain(document)}
    for path, kind, value, schema in walk(dump, SCHEMA):
        want = written(document, path)
        if want is ABSENT:
            want = schema.get("default", ABSENT)
        if {"linear", "exponential", "fixed"} & set(kind) or (
                kind[-1:] == ("[]",) and not isinstance(value, dict)):
            continue  # parts of a leaf
        if is_leaf(kind, value):
            want = want if want is ABSENT else \
                SHOWN.get(kind[-1], lambda text: text)(want)
            if not same(value, want, UNITS.get(kind[-1], 0)) and not (
                    kind in RESOLVED and want == RESOLVED[kind]):
                wrong.append(f"{shown(path)}: {value}, not {want}")
        elif (isinstance(value, list) or schema.get("additionalProperties")) \
                and len(value) != len(want):
            wrong.append(f"{shown(path)}: {list(value)}, not {list(want)}")
    return wrong
