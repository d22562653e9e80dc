#!/usr/bin/env python3
"""
The documents keep their word: the commands of the README and of the manual
pages are run as they stand, but for ports, folders and where the build is.
"""

import os
import re
import socket
import subprocess

import harness
from documents import GUARD, TOP, read, script_of, shell_blocks
from harness import check, same


def free_port():
    """A port that no UDP and no TCP socket has now."""
    while True:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
            udp.bind(("127.0.0.1", 0))
            port = udp.getsockname()[1]
            with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tcp:
                try:
                    tcp.bind(("127.0.0.1", port))
                    return port
                except OSError:
                    continue


def run_script(lab, script, cwd):
    """bash on the text; ends what it left behind; its output."""
    done = subprocess.run(
        ["bash", "-c", GUARD + script], cwd=cwd, env=lab.env(),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, timeout=harness.PATIENCE, check=False)
    out = done.stdout.decode()
    with open(os.path.join(lab.path, "script.log"), "w",
              encoding="utf-8") as f:
        f.write(out)
    same(done.returncode, 0, out)
    return out


def test_the_readme_as_it_stands(lab):
    blocks = shell_blocks("README.md")
    check(len(blocks) >= 6, "the README has too few blocks", len(blocks))
    script = script_of(blocks, (
        ("$PWD/build", os.path.dirname(harness.CTL)),
        ("/tmp/rl-try", os.path.join(lab.path, "try")),
        ("127.0.0.1:5300", "127.0.0.1:%d" % free_port())))
    out = run_script(lab, script, TOP)
    for want in ("Allowed: ", "Denied: ", "denied: 1", '"outcome":"allowed"',
                 "rl-agent.json: ok", "main: ok, ", "allowed (ok): go on",
                 "one sends mail 10", "two sends mail 10",
                 "checkout:customer-4", "outcome: 1", "source=shadow",
                 "goes on",
                 "too slow: 1", "no: 2", "reason=unauthorised",
                 "HTTP/1.1 200 OK", "HTTP/1.1 429 ", "Retry-After: ",
                 'rule="checkout",outcome="denied"', "key_id: 2"):
        check(want in out, "no", want, "in", out)
    lab.know(os.path.join(lab.path, "try", "main.key"))


def manual_commands(page):
    """The shell lines of a page's EXAMPLES."""
    lines = re.findall(r"^\.Dl \$ (.*)$", read(page), re.M)
    check(lines, page, "has no commands")
    return [line.replace("\\(dq", '"').replace("\\e", "\\")
            for line in lines]


def examples_document(lab, sandbox, key):
    tenant = {"key": {"file": key}, "policy": harness.POLICY,
              "dns": {"name": sandbox.zone, "nameservers": [sandbox.dns]}}
    return lab.document(
        {"main": tenant},
        {"checkout": {"resources": [{"bucket": "checkout:{key}",
                                     "window_ms": 1000, "limit": 100}]}},
        {"inventory": {"ttl_ms": 10000}, "inventory:{key}": {}},
        limiters={"mail": {"permits_per_second": 10}},
        error_controls={"smtp": {}})


def test_the_examples_of_rlctl(lab):
    key = lab.keygen("main")
    sandbox = lab.sandbox(key, zone="rl.test")
    agent = lab.agent(examples_document(lab, sandbox, key))
    os.symlink("/bin/true", os.path.join(lab.path, "serve"))
    script = "export PATH=%s:$PATH RL_AGENT_SOCKET=%s\n" % (
        os.path.dirname(harness.CTL), agent.socket)
    script += "\n".join(manual_commands("man/rlctl.1")) + "\n"
    out = run_script(lab, script, lab.path)
    check(out.count("Allowed: ") >= 2, out)


def test_the_examples_of_the_agent(lab):
    key = lab.keygen("main")
    sandbox = lab.sandbox(key, zone="rl.test")
    lab.config(examples_document(lab, sandbox, key), "rl-agent.json")
    checking, running = manual_commands("man/rl-agent.8")
    path = os.path.join(lab.path, "env", "rl.sock")
    check("/tmp/rl.sock" in running, running)
    script = "export PATH=%s:%s:$PATH\n%s\n" % (
        os.path.dirname(harness.AGENT), os.path.dirname(harness.CTL),
        checking)
    script += "export RATELIMITLY_TENANT=%s RATELIMITLY_NAMESERVERS=%s\n" % (
        sandbox.zone, sandbox.dns)
    script += "%s &\nrlctl --socket %s wait --timeout 10000\n" % (
        running.replace("/tmp/rl.sock", path), path)
    script += "rlctl --socket %s quit\nwait\n" % path
    check("rl-agent.json: ok" in run_script(lab, script, lab.path))


def section_of(page, name):
    return read(page).split(".Sh %s\n" % name)[1].split("\n.Sh ")[0]


def fields(document):
    """The names in a document, in its order, of each list's first entry."""
    for name, value in document.items():
        yield name
        if isinstance(value, list) and value:
            value = value[0]
        if isinstance(value, dict) and name not in (
                "counters", "udp6", "replay_gap", "preference"):
            yield from fields(value)


def test_the_manual_explains_status(lab):
    """rlctl(1) has the fields of status, servers, rules and limiters, and no
    others"""
    key = lab.keygen("main")
    sandbox = lab.sandbox(key, zone="rl.test")
    document = examples_document(lab, sandbox, key)
    document["rules"]["checkout"]["guards"] = [
        {"tracker": "inventory", "below_ms": 100}]
    document["rules"]["local"] = {
        "resources": [{"bucket": "local", "window_ms": 1000, "limit": 1}],
        "on_failure": {"local": {"permits_per_second": 1}}}
    document["gateway"] = {"front": {
        "listen": "unix:" + os.path.join(lab.path, "http.sock")}}
    agent = lab.agent(document)
    for what in ("status", "servers", "rules", "limiters"):
        section = section_of("man/rlctl.1", what.upper())
        same(re.findall(r"^\.It Sy (\w+)$", section, re.M),
             list(fields(agent.ctl(what, "--json").json())), what)


def test_the_manual_explains_explain(lab):
    """rlctl(1) has the fields of explain, an error's too, and no others"""
    key = lab.keygen("main")
    sandbox = lab.sandbox(key, zone="rl.test")
    document = examples_document(lab, sandbox, key)
    document["rules"]["checkout"]["guards"] = [
        {"tracker": "inventory", "below_ms": 100}]
    agent = lab.agent(document)
    explained = agent.ctl("explain", "checkout", "--json").json()
    policy = agent.ctl("policy", "--json").json()["tenants"][0]["policy"]
    same(explained["policy"], policy)
    explained["policy"] = None  # "As in POLICY"
    same(re.findall(r"^\.It Sy (\w+)$", section_of("man/rlctl.1", "EXPLAIN"),
                    re.M), list(fields(explained)))


def test_the_manual_explains_every_diagnosis(_lab):
    """rlctl(1) has the codes of daemon/diagnosis.h, and no others"""
    codes = re.findall(r'\bX\(\w+, "([a-z-]+)"', read("daemon/diagnosis.h"))
    check(len(codes) > 10, codes)
    section = section_of("man/rlctl.1", "SERVERS")
    same(sorted(re.findall(r"^\.It Cm ([a-z-]+)$", section, re.M)),
         sorted(codes))


def test_the_manual_explains_policy(lab):
    """rlctl(1) has the fields of policy, the estimate's too, and no others"""
    key = lab.keygen("main")
    sandbox = lab.sandbox(key, zone="rl.test")
    agent = lab.agent(examples_document(lab, sandbox, key))
    section = read("man/rlctl.1").split(".Sh POLICY\n")[1].split("\n.Sh ")[0]
    same(re.findall(r"^\.It Sy (\w+)$", section, re.M),
         list(fields(agent.ctl("policy", "--json").json())))


def log_calls():
    """Of the sources: event -> (levels, names of fields)."""
    events = {}
    folder = os.path.join(TOP, "daemon")
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".c") or name == "log.c":
            continue
        text = read(os.path.join("daemon", name))
        for level, event, rest in re.findall(
                r'\blog_(error|warning|info|debug)\(\s*"([\w-]+)"(.*?)\);',
                text, re.S):
            strings = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', rest))
            known = events.setdefault(event, (set(), set()))
            known[0].add(level)
            known[1].update(re.findall(r"(\w+)=", strings))
        same(len(re.findall(r"\blog_(?:error|warning|info|debug)\(", text)),
             len(re.findall(
                 r'\blog_(?:error|warning|info|debug)\(\s*"[\w-]+",', text)),
             name + ": an event is no constant word")
    return events


def test_the_manual_explains_the_log(_lab):
    """rl-agent(8) has each event with its levels and fields, and no others"""
    events = log_calls()
    check(len(events) > 10, events)
    section = section_of("man/rl-agent.8", "LOG")
    manual = {}
    for item in section.split("\n.It Ic ")[1:]:
        words = set(re.findall(r"(?<![=\w])\w+", " ".join(
            re.findall(r"^\.Sy (.*)$", item, re.M)))) - {"Ns"}
        manual[item.split("\n")[0]] = words
    same(sorted(manual), sorted(events))
    for event, (levels, names) in events.items():
        # "error" is a level and a field.
        same(manual[event], levels | names, event)


def test_help_names_every_command(lab):
    page = read("man/rlctl.1")
    text = lab.ctl("--help").out
    for command in ("check", "run", "report", "status", "servers", "policy",
                    "rules", "explain", "acquire", "errctl begin",
                    "errctl success", "limiters", "set-rate", "ping", "wait",
                    "top", "health", "reload", "drain", "quit", "key show"):
        check(command in text, "rlctl --help lacks", command)
        check(command.split()[0] in page, "rlctl(1) lacks", command)


def test_help_names_every_timeout(lab):
    """a command that asks an agent takes --timeout, and --help says so"""
    usage = lab.ctl("--help").out.split("\n\n")[1]
    entries = re.split(r"\n(?=  \w)", usage)
    check(len(entries) >= 9, usage)
    for entry in entries:
        same("--timeout MS" in entry, not re.match(r" *key ", entry), entry)


def test_the_programs_refuse_alike(lab):
    """the same words for the same mistake, whatever the program"""
    for argv, name, takes in (
            ([harness.AGENT], "rl-agent", "--config"),
            ([harness.CTL], "rlctl", "--socket"),
            ([harness.CTL, "policy"], "rlctl: policy", "--rtt"),
            ([harness.SANDBOX], "rl-sandbox", "--seed"),
            ([harness.SANDBOX, "keygen"], "rl-sandbox: keygen", "--auth")):
        for args, words in (
                (["--bogus"], "unrecognized option '--bogus'"),
                (["-x"], "invalid option -- 'x'"),
                (["--help=x"], "option '--help' doesn't allow an argument"),
                ([takes], "option '%s' requires an argument" % takes)):
            done = subprocess.run(
                argv + args, env=lab.env(), stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                timeout=harness.PATIENCE, check=False)
            if argv[1:] == ["policy"] and args == ["--help=x"]:
                continue  # it has no --help of its own
            same((done.returncode, done.stdout.decode(), done.stderr.decode()),
                 (harness.USAGE, "", "%s: %s\n" % (name, words)))
        done = subprocess.run(
            argv + ["--help"], env=lab.env(), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, timeout=harness.PATIENCE, check=True)
        check(done.stdout.decode().startswith("Usage: rl"), argv)


if __name__ == "__main__":
    harness.run([value for name, value in list(globals().items())
                 if name.startswith("test_")])
