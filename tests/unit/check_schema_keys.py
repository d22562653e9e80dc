#!/usr/bin/env python3
"""Every key of the configuration is known alike to schema, agent and manual.

For each key of the JSON Schema, at every depth, configurations are made from
good-full.json with that key wrong: another type, out of its range, a bad word,
too long, missing, with an unknown neighbour, twice. The schema refuses all but
the last, and the agent has one line with the path of the key and what would be
right: all are tried by the probe, and some by rl-agent -t, which exits 78 with
the file and the same line.

The keys that the agent takes at each place, the values that it gives to those
that are omitted, and what rl-agent.json(5) says of both are the schema's.
Prints TAP.
"""

import glob
import json
import os
import re
import subprocess
import sys
import tempfile

from schema_tools import (
    BUILD, DATA, ENV, SCHEMA, SRC, changed, container, finish, first_places,
    kinds, load, misunderstood, ok, probe_texts, probe_values, read, resolve,
    schema_accepts, schema_error, shown, without, words)

AGENT = os.environ.get("RLA_AGENT", os.path.join(BUILD, "rl-agent"))
FULL = load(os.path.join(DATA, "good-full.json"))
KEY = ENV["RATELIMITLY_AUTH_KEY"]
TYPES = {"null": None, "boolean": True, "integer": 7, "number": 1.5,
         "string": "zz zz", "array": [], "object": {}}
SAYS = {"integer": "must be an integer", "integer number": "must be a number",
        "boolean": "must be true or false",
        "boolean null": "must be true, false or null",
        "array": "must be an array", "object": "must be an object",
        "string": "must be a string", "null string": "must be a string"}
# Some of these are wrong for every pattern.
TEXTS = ("", "\x01", "a\x7f", "{", "a}", "{k}", "/", "a", "/a/", "/.", "/a/..",
         "a/b", "..", "-", "0", "07", "!", "9" * 20, "0888", "a..b", "é",
         "127.0.0.1", "127.0.0.1:", "[::1]", "zz zz")


def type_names(schema):
    found = schema.get("type", [])
    found = {found} if isinstance(found, str) else set(found)
    for value in schema.get("enum", []) + [schema.get("const", "zz")] * (
            "const" in schema):
        found |= {name for name, of in TYPES.items()
                  if type(of) is type(value)}
    for part in schema.get("anyOf", []) + schema.get("oneOf", []):
        found |= type_names(resolve(part))
    return found | ({"integer"} if "number" in found else set())


def wrong_types(schema):
    names = type_names(schema)
    says = [f'"{word}"' for word in words(schema)] or \
        [SAYS[" ".join(sorted(names))]]
    for name, value in TYPES.items():
        if name not in names:
            yield value, says


def out_of_range(schema):
    low, high = schema["minimum"], schema["maximum"]
    outside = [low - 1, high + 1, -2**63, 2**63 - 1]
    if schema["type"] == "number":
        outside += [low / 2, high * 2, 0, 1e300, -1e300]
    for value in outside:
        if low <= value <= high:
            continue
        yield value, [f"must be {low:.10g}..{high:.10g}, not "]


def bad_lengths(schema, kind):
    least = schema.get("minLength", int(
        re.search(schema["pattern"], "") is None))
    size = schema["maxLength"] + 1
    for text in ("a" * size, "/" + "a" * (size - 1), "1" * size,
                 ("a." * size)[:size]):
        if re.search(schema["pattern"], text):
            break
    bounds = f"must be {least}..{size - 1} bytes long"
    yield text, ["must be a DNS name" if kind[-2:] == ("dns", "name")
                 else "has this name" if kind[-1] in ("tenant", "tracker")
                 else bounds]
    if least > 0 and kind[-1] in ("label", "bucket", "env", "file", "id"):
        yield "", [bounds]


def bad_entries(schema, value):
    least, most = schema.get("minItems", 0), schema["maxItems"]
    item = value[0] if value else {}
    yield [item] * (most + 1), [
        f"must have {least}..{most} entries, not {most + 1}"]


def bad_values(kind, value, schema):
    """What a key cannot be, and what is said of it."""
    for part in schema.get("anyOf", []):
        part = resolve(part)
        if part.get("type") != "null":
            schema = {**part, **schema}
    yield from wrong_types(schema)
    if "minimum" in schema:
        yield from out_of_range(schema)
    if "maxLength" in schema:
        yield from bad_lengths(schema, kind)
    if "maxItems" in schema:
        yield from bad_entries(schema, value)
    for word in words(schema):
        yield word.upper(), [f'"{word}"' for word in words(schema)]
    if schema.get("const") is False:
        yield True, ["not yet supported"]
    one_of = [part["required"][0] for part in schema.get("oneOf", [])
              if "required" in part]
    if one_of:
        both = {name: value.get(name, "zz") for name in one_of[:2]}
        yield {}, ["must hold exactly one of "] + one_of
        yield both, ["must hold exactly one of "] + one_of


def bad_texts(root, path, schema):
    """Texts that the schema's pattern refuses."""
    if "string" in type_names(schema) and not words(schema):
        found = [text for text in TEXTS
                 if not schema_accepts(changed(root, path, text))]
        assert found, path
        for text in found:
            yield text, [""]


def bad_names(kind, schema):
    """Names of entries, and none at all."""
    if not isinstance(schema.get("additionalProperties"), dict):
        return
    for name in ("", "n" * 256, "a\x01"):
        says = "must not hold control characters" if "\x01" in name else \
            "must be 1..255 bytes long"
        yield name, says
    if kind == ("trackers",):
        yield "a{", "a brace must be part of "


def twice(root, path):
    """The text with a key twice, and where the second is: LINE:COLUMN."""
    mark = "\ue000"
    within = container(root, path)
    double = {}
    for key, value in within.items():
        double[key] = value
        if key == path[-1]:
            double[key + mark] = value
    text = json.dumps(changed(root, path[:-1], double), indent=2)
    lines = text.split("\n")
    at = next(i for i, line in enumerate(lines) if "\\ue000" in line)
    lines[at] = lines[at].replace("\\ue000", "")
    return "\n".join(lines), f"{at + 1}:{lines[at].index(':')}"


def cases(places):
    """(what, text or value, start of the line, what else it holds)."""
    for kind, (root, path, value, schema) in places.items():
        where = shown(path)
        for name, says in bad_names(kind, schema):
            yield ("name", changed(root, path + (name,), {}),
                   shown(path + (name,)), [says])
        if kind in (("tenants",), ("listeners",)):
            yield "none", changed(root, path, {}), where, [
                "must have 1..64 entries, not 0"]
        for name in schema.get("required", []):
            if isinstance(value, dict):
                yield ("missing", without(root, path + (name,)),
                       shown(path + (name,)), ["is missing"])
        if not path:
            continue
        for bad, says in list(bad_values(kind, value, schema)) + list(
                bad_texts(root, path, schema)):
            yield "value", changed(root, path, bad), where, says
        if kind[-1] != "[]":
            text, line = twice(root, path)
            yield "twice", text, line, [
                f'duplicate object key "{path[-1]}"']
        if kind[-1] not in ("[]", "*"):
            other = path[:-1] + (path[-1] + "x",)
            yield "unknown", changed(root, other, value), shown(other), [
                "unknown key"]


def text_of(case):
    what, value, _, _ = case
    return value if what == "twice" else json.dumps(value)


def misjudged(case, said):
    """What is wrong with how it is refused; None: nothing."""
    what, value, where, says = case
    start = f"{where}: "
    if not said.startswith(start) or not said[len(start):].strip() or \
            any(text not in said[len(start):] for text in says) or \
            KEY[-20:] in said:
        return f"{what} {where} {says}: {said}"
    if what != "twice" and schema_accepts(value):
        return f"{what} {where} {says}: the schema accepts it"
    return None


def misreported(folder, case, said, env):
    """The same of the agent's own line and exit."""
    path = os.path.join(folder, "agent.json")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text_of(case))
    done = subprocess.run([AGENT, "-t", "-c", path], env=env, check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, encoding="utf-8")
    what = case[0]
    want = f"rl-agent: {path}:{'' if what == 'twice' else ' '}{said}\n"
    if (done.returncode, done.stdout, done.stderr) == (78, "", want):
        return None
    return f"{what}: exit {done.returncode}, {done.stdout}{done.stderr}"


def key_folder(folder):
    with open(os.path.join(folder, "main.key"), "w", encoding="utf-8") as f:
        f.write(KEY)
    os.chmod(f.name, 0o400)
    return f.name


SAMPLE = 25


def run_refusals(places, folder):
    env = {**ENV, "CREDENTIALS_DIRECTORY": folder}
    todo = list(cases(places))
    said = probe_texts([text_of(case) for case in todo], env=env)
    for what, least in (("value", 500), ("twice", 80), ("unknown", 70),
                        ("missing", 10), ("name", 12)):
        mine = [(case, text) for case, text in zip(todo, said)
                if case[0] == what]
        wrong = list(filter(None, (misjudged(*one) for one in mine)))
        ok(len(mine) >= least and not wrong, f"{len(mine)} refusals: {what}",
           wrong[:20] or [f"at least {least}"])
        # What the probe has said of all the agent says, too.
        wrong = list(filter(None, (misreported(folder, *one, env)
                                   for one in mine[::SAMPLE])))
        ok(not wrong, f"and by rl-agent -t: {what}", wrong[:20])


def run_known_keys(places):
    """At each place the agent knows the keys of the schema and no others."""
    known = set()
    for path in glob.glob(os.path.join(SRC, "daemon/config*.c")):
        known |= set(re.findall(r'"([a-z][a-z0-9_]*)"', read(
            os.path.relpath(path, SRC))))
    for _, schema in kinds(SCHEMA):
        known |= set(schema.get("properties", {}))
    asked, values = [], []
    for kind, (root, path, _, schema) in places.items():
        if "properties" not in schema:
            continue
        for name in sorted(known):
            asked.append((kind, path + (name,)))
            values.append(changed(root, path + (name,), None))
    taken = {kind: set() for kind, _ in asked}
    for (kind, path), line in zip(asked, probe_values(values)):
        if line != f"{shown(path)}: unknown key":
            taken[kind].add(path[-1])
    wrong = [f"{kind}: {taken[kind] ^ set(places[kind][3]['properties'])}"
             for kind in taken
             if taken[kind] != set(places[kind][3]["properties"])]
    ok(len(taken) > 20 and not wrong,
       f"the agent knows the schema's keys at {len(taken)} places", wrong)


def run_places(places):
    missing = [shown(kind) for kind, _ in kinds(SCHEMA) if kind not in places]
    ok(not missing, "good-full.json has a value of each", missing)
    error = schema_error(FULL)
    ok(error is None, "good-full.json is good", [str(error)])


BARE = {"tenants": {"t": {"key": {"env": "RATELIMITLY_AUTH_KEY"}}}}
SMALL = {**BARE, "trackers": {"k": {}}, "listeners": {"l": {}}, "rules": {
    "r": {"resources": [{"bucket": "b"}], "guards": [{"tracker": "k"}]},
    "s": {"on_failure": {"local": {}}}},
    "limiters": {"m": {}}, "error_controls": {"e": {}},
    "gateway": {"g": {"listen": "127.0.0.1:80"}}}
# What is neither required nor one of several, and has no default.
WITHOUT_DEFAULT = {("listeners",), ("rules", "tenant")}


def run_defaults():
    """What is omitted is what the schema says, what is written is taken."""
    documents = [BARE, SMALL, FULL] + [
        load(os.path.join(DATA, f"good-{name}.json"))
        for name in ("tenants", "local", "growing-schedules", "largest", "limiters")]
    for document, dump in zip(documents, probe_values(documents, "-d")):
        wrong = misunderstood(document, json.loads(dump))
        ok(not wrong, "as written: " + ", ".join(document), wrong)
    lacks = set()
    for kind, schema in kinds(SCHEMA):
        for name, sub in schema.get("properties", {}).items():
            sub = resolve(sub)
            choice = any(part.get("required") == [name]
                         for part in schema.get("oneOf", []))
            if "default" not in sub and not choice and \
                    name not in schema.get("required", []) and \
                    "properties" not in sub:
                lacks.add(flat(kind + (name,)))
    ok(lacks == WITHOUT_DEFAULT, "all else has a default",
       [str(lacks)])


# ---- rl-agent.json(5)

NAMED = ("the object before the list",)
SECTIONS = {"DESCRIPTION": (), "Tenants": ("tenants",),
            "Trackers": ("trackers",), "Rules": ("rules",),
            "Limiters": ("limiters",), "Error controls": ("error_controls",),
            "Listeners": ("listeners",), "Gateways": ("gateway",),
            "Control, limits, log": NAMED,
            "Metrics": ("metrics",)}


def prose(lines):
    """Text as it is read."""
    text = []
    for line in lines:
        line = re.sub(r"^\.[A-Z][a-z]( |$)", "", line)
        text.append(line.replace("\\(dq", '"').replace("\\&", ""))
    return re.sub(r" ([.,;:])( |$)", r"\1\2", " ".join(text))


def manual_items():
    """kind -> (what stands before its list, its own text), as lines."""
    items = {}
    lists = []  # of [kind of what it is in, kinds of its item, before it]
    section, before = None, []
    for line in read("man/rl-agent.json.5").split("\n"):
        if line.startswith((".Sh ", ".Ss ")):
            section, before = SECTIONS.get(line[4:]), []
        elif section is None:
            continue
        elif line.startswith(".Bl ") and lists:
            (within, *_), text = lists[-1][1], items[lists[-1][1][0]]
            lists.append([within, [], text[0] + text[1]])
        elif line.startswith(".Bl "):
            within = section if section != NAMED else tuple(
                re.findall(r"^\.Cm (\w+)$", "\n".join(before), re.M)[:1])
            lists.append([within, [], before])
        elif line == ".El":
            lists.pop()
            before = before if lists else []
        elif line.startswith(".It Cm "):
            lists[-1][1] = [lists[-1][0] + (name,)
                            for name in line[7:].split(" , ")]
            items.update({kind: (lists[-1][2], []) for kind in lists[-1][1]})
        else:
            for text in [items[kind][1] for kind in lists[-1][1]] \
                    if lists else [before]:
                text.append(line)
    return items


def flat(kind):
    """As the manual has it: no lists, no names, one list for schedules."""
    kind = tuple(part for part in kind if part not in ("[]", "*"))
    for form in ("linear", "exponential"):
        if form in kind[:-1]:
            kind = tuple(part for part in kind if part != form)
    return kind


def spoken(value):
    if value in ([], {}, "") and not isinstance(value, bool):
        return "none"
    return value if isinstance(value, str) else json.dumps(value)


def manual_wrongs(kind, schema, before, own):
    found = re.findall(r"Default: (.+?)(?:, \w+)?\.(?= |$)", prose(own))
    if "default" in schema and found != [spoken(schema["default"])]:
        yield f"{shown(kind)}: {found}, not {spoken(schema['default'])}"
    if "default" not in schema and found and \
            flat(kind) not in WITHOUT_DEFAULT and "properties" not in schema:
        yield f"{shown(kind)}: {found}, but it has no default"
    if "minimum" in schema:
        bounds = f"{schema['minimum']:.10g} to {schema['maximum']:.10g}"
        if bounds not in prose(before + own):
            yield f"{shown(kind)}: not {bounds}"


def run_manual():
    items = manual_items()
    wanted, wrong = set(), []
    for kind, schema in kinds(SCHEMA):
        if not kind or kind[-1] in ("*", "[]") or (
                "preference" in kind and kind[-1] != "preference"):
            continue
        wanted.add(flat(kind))
        if flat(kind) in items and "replay_gap" not in kind[:-1]:
            wrong += manual_wrongs(kind, schema, *items[flat(kind)])
    ok(wanted == set(items), "the manual has the schema's keys",
       [shown(kind) for kind in sorted(wanted ^ set(items))])
    ok(not wrong, "the manual has the schema's defaults and ranges", wrong)


def run_dictionary():
    """The fuzzer's words are the schema's."""
    want = set()
    for _, schema in kinds(SCHEMA):
        want |= set(schema.get("properties", {})) | set(words(schema))
    have = set(re.findall(r'^"\\"(.*)\\""$', read("tests/fuzz/config.dict"),
                          re.M))
    ok(want <= have, "the fuzzer's dictionary has them", [str(want - have)])


def main():
    with tempfile.TemporaryDirectory() as folder:
        keys = [{"file": key_folder(folder)}, {"credential": "main.key"}]
        places = first_places([FULL] + [
            changed(FULL, ("tenants", "main", "key"), key) for key in keys])
        run_places(places)
        run_refusals(places, folder)
        run_known_keys(places)
    run_defaults()
    run_manual()
    run_dictionary()
    return finish()


if __name__ == "__main__":
    sys.exit(main())
