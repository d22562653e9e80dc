#!/usr/bin/env python3
"""
What rlctl acquire, errctl, set-rate and limiters ask, print and exit with,
against an agent that says what the test wants; and that the manual's words on
them are true.
"""

import json
import os
import re
import signal
import struct
import subprocess
import time

import harness
import wire
from fake_agent import OpenAgent, delay, document, done
from harness import CANCELLED, DENIED, FAILED, USAGE, check, poll, same

YEAR_MS = 365 * 24 * 3600 * 1000
# What must not come out: escape, C1 in UTF-8, newline, delete.
RUDE = "a\x1b[2Jb\u009b2Jc\nd\x7f"
POLITE = "a?[2Jb?2Jc?d?"
FIELDS = ["outcome", "permit", "source", "reason", "limit", "retry_after_ms",
          "server_id", "round", "elapsed_us", "text", "wait_us"]

COUNTED = {"granted": 11, "permits": 12, "waits": 13, "refused": 14,
           "overloaded": 15, "evictions": 16}
LIMITER = {
    "name": "mail", "permits_per_second": 10.0, "max_burst_seconds": 1.5,
    "stored": 2.5, "wait_us": 0, "keys": 2, "max_keys": 10000,
    "configured_permits_per_second": 10.0, "offered": True,
    "counters": COUNTED}
CONTROL = {
    "name": "smtp", "burst": 3, "burst_left": 2, "min_delay_ms": 100,
    "max_delay_ms": 30000, "delay_ms": 200.0, "wait_us": 95400, "keys": 1,
    "max_keys": 10000, "offered": False,
    "counters": {"begins": 21, "delays": 22, "successes": 23,
                 "overloaded": 24, "evictions": 25}}
RULE = {
    "name": "checkout", "permits_per_second": 0.001,
    "max_burst_seconds": 3600.0, "stored": 3.6, "wait_us": 1000000000,
    "keys": 3, "max_keys": 1000000, "counters": COUNTED}


def limiters(some=(), controls=(), rules=()):
    return document(json.dumps({
        "generation": 1, "limiters": list(some),
        "error_controls": list(controls), "rules": list(rules)}))


def ctl(lab, fake, *args, expect=0, **options):
    return lab.ctl("--socket", fake.path, *args, expect=expect, **options)


def silent(result):
    same((result.out, result.err), ("", ""), result)


def said(result, line):
    same((result.out, result.err), ("", "rlctl: %s\n" % line), result)


def take_string(payload):
    length, = struct.unpack_from("<H", payload)
    return payload[2:2 + length].decode(), payload[2 + length:]


def named(payload):
    """(name, key) of what ends in options, a name and a key; None: no key."""
    options, = struct.unpack_from("<I", payload)
    name, rest = take_string(payload[4:])
    key, rest = take_string(rest)
    same((options & ~2, rest), (0, b""))
    return name, key if options & 2 else None


def acquired(payload):
    return struct.unpack_from("<I", payload)[0], *named(payload[4:])


def tried(payload):
    return struct.unpack_from("<Q", payload)[0], *acquired(payload[8:])


def test_acquire(lab):
    """silent and 0; the limiter, the permits and the key are asked for"""
    fake = OpenAgent(lab, {wire.ACQUIRE: delay(), wire.TRY_ACQUIRE: delay()})
    for args, want in ((("mail",), (1, "mail", None)),
                       (("mail", "7"), (7, "mail", None)),
                       (("--key", "k", "mail", "1000000"),
                        (1000000, "mail", "k")),
                       (("mail", "--key", ""), (1, "mail", "")),
                       (("mail", "--permit"), (1, "mail", None)),
                       (("--on-failure", "closed", "mail"),
                        (1, "mail", None))):
        silent(ctl(lab, fake, "acquire", *args))
        same(acquired(fake.asked(wire.ACQUIRE)[-1]), want, args)
    for ms in (0, 10, 2 ** 32, YEAR_MS):
        silent(ctl(lab, fake, "acquire", "mail", "2", "--max-wait", str(ms)))
        same(tried(fake.asked(wire.TRY_ACQUIRE)[-1]),
             (1000 * ms, 2, "mail", None))
    same((len(fake.asked(wire.ACQUIRE)), len(fake.asked(wire.TRY_ACQUIRE))),
         (6, 4))


def test_acquire_waits(lab):
    """in rlctl, past the --timeout, which is the agent's"""
    fake = OpenAgent(lab, {wire.ACQUIRE: delay(300000)})
    begun = time.monotonic()
    silent(ctl(lab, fake, "acquire", "mail", "--timeout", "200"))
    check(time.monotonic() - begun >= 0.3)
    fake.answers[wire.ACQUIRE] = delay(20000)
    for args in (("--json", "acquire", "mail"), ("acquire", "mail", "--json")):
        result = ctl(lab, fake, *args)
        answer = result.json()
        same((result.out.count("\n"), result.err, list(answer)),
             (1, "", FIELDS))
        check(answer.pop("elapsed_us") >= 20000, result)
        same(answer, {
            "outcome": "allowed", "permit": True, "source": "local",
            "reason": "ok", "limit": None, "retry_after_ms": None,
            "server_id": None, "round": None, "text": None,
            "wait_us": 20000})


def test_refused(lab):
    """exit 1, and what --max-wait would have been enough"""
    fake = OpenAgent(lab, {})
    for wait_us, words in (
            (95000, "95 ms"), (94001, "95 ms"), (10001, "11 ms"),
            (999_900_000, "999900 ms"),
            (YEAR_MS * 1000, "%d ms" % YEAR_MS)):
        fake.answers[wire.TRY_ACQUIRE] = delay(wait_us, "resource", "later")
        said(ctl(lab, fake, "acquire", "mail", "--max-wait", "10",
                 expect=DENIED),
             "acquire: mail: the wait would be %s, longer than --max-wait 10"
             % words)
    result = ctl(lab, fake, "acquire", "mail", "--max-wait", "10", "--json",
                 expect=DENIED)
    answer = result.json()
    same((result.err, list(answer)), ("", FIELDS))
    same([answer[name] for name in ("outcome", "permit", "source", "reason",
                                    "wait_us", "text")],
         ["denied", False, "local", "resource", YEAR_MS * 1000,
          "the wait would be %d ms, longer than --max-wait 10" % YEAR_MS])
    said(ctl(lab, fake, "acquire", "mail", "--max-wait", "10", "--permit",
             "--on-failure", "open", expect=DENIED),
         "acquire: mail: " + answer["text"])


def test_failed(lab):
    """exit 2 and why; --permit asks the policy where it has a say"""
    fake = OpenAgent(lab, {})
    text = "no limiter \"mial\" here"
    for kind, args in ((wire.ACQUIRE, ("acquire", "mail")),
                       (wire.ERROR_BEGIN, ("errctl", "begin", "mail"))):
        for reason, covered in (("unknown-rule", False),
                                ("validation", False),
                                ("unauthorised", False),
                                ("overloaded", True), ("draining", True)):
            fake.answers[kind] = delay(0, reason, text)
            said(ctl(lab, fake, *args, expect=FAILED),
                 "%s: mail: %s: %s" % (args[0], reason, text))
            answer = ctl(lab, fake, *args, "--json", "--permit",
                         expect=0 if covered else 1).json()
            same((list(answer), answer["permit"], answer["source"],
                  answer["reason"], answer["text"], answer["wait_us"]),
                 (FIELDS, covered, "policy", reason, text, None), answer)
        fake.answers[kind] = delay(0, "overloaded")
        for policy, status in (("open", 0), ("closed", 1)):
            said(ctl(lab, fake, *args, "--permit", "--on-failure", policy,
                     expect=status), "%s: mail: overloaded" % args[0])


def test_nobody_there(lab):
    """failed, and the caller's policy; where nobody decides, a plain error"""
    path = os.path.join(lab.path, "none.sock")
    for args in (("acquire", "mail"), ("errctl", "begin", "mail")):
        for more, status in (((), FAILED), (("--permit",), 0),
                             (("--permit", "--on-failure", "closed"), 1)):
            result = lab.ctl("--socket", path, *args, "--timeout", "20",
                             *more, expect=status)
            check(result.err.startswith("rlctl: %s: mail: unavailable: no "
                                        "agent at " % args[0]), result)
            same((result.out, result.err.count("\n")), ("", 1), result)
    for args, status in ((("errctl", "success", "smtp"), FAILED),
                         (("set-rate", "mail", "1"), 1), (("limiters",), 1)):
        result = lab.ctl("--socket", path, *args, "--timeout", "20",
                         expect=status)
        check("no agent at " in result.err, result)
        same((result.out, result.err.count("\n")), ("", 1), result)


def test_interrupted_in_the_wait(lab):
    """SIGINT or SIGTERM: 3, and that what was granted is spent"""
    fake = OpenAgent(lab, {wire.ACQUIRE: delay(60000000),
                           wire.ERROR_BEGIN: delay(60000001)})
    acquire, begin = ("acquire", "mail"), ("errctl", "begin", "mail")
    for number, (args, name, status, word) in enumerate((
            (acquire, "SIGINT", CANCELLED, "spent"),
            (acquire, "SIGTERM", CANCELLED, "spent"),
            (acquire + ("--permit",), "SIGINT", 1, "spent"),
            (begin, "SIGINT", CANCELLED, "counts")), 1):
        waiting = lab.spawn_ctl("--socket", fake.path, *args)
        poll("the answer to be read", lambda n=number: fake.read(n))
        waiting.signal(getattr(signal, name))
        same((waiting.wait(), waiting.out()), (status, ""))
        check(re.fullmatch("rlctl: %s: mail: interrupted .* %s\n" % (
            args[0], word), waiting.err()), waiting.err())
    waiting = lab.spawn_ctl("--socket", fake.path, *acquire, "--json")
    poll("the answer to be read", lambda: fake.read(5))
    waiting.signal(signal.SIGINT)
    same((waiting.wait(), waiting.err()), (CANCELLED, ""))
    answer = json.loads(waiting.out())
    same([answer[name] for name in ("outcome", "permit", "reason",
                                    "wait_us")],
         ["cancelled", False, "cancelled", 60000000])


def test_interrupted_before(lab):
    """there is no answer yet: 3, and nothing is known of a wait"""
    fake = OpenAgent(lab, {})
    for number, (args, status) in enumerate((
            (("acquire", "mail"), CANCELLED),
            (("acquire", "mail", "--max-wait", "5"), CANCELLED),
            (("errctl", "begin", "mail"), CANCELLED)), 1):
        waiting = lab.spawn_ctl("--socket", fake.path, *args)
        poll("the request", lambda n=number: len(fake.requests) == n)
        waiting.signal(signal.SIGINT)
        same((waiting.wait(), waiting.out()), (status, ""))
        check(re.fullmatch("rlctl: %s: mail: .* may have granted it\n" %
                           args[0], waiting.err()), waiting.err())


def test_errctl(lab):
    """begin waits; success tells, and both name the control and the key"""
    fake = OpenAgent(lab, {wire.ERROR_BEGIN: delay(50000),
                           wire.ERROR_SUCCESS: done()})
    begun = time.monotonic()
    silent(ctl(lab, fake, "errctl", "begin", "smtp"))
    check(time.monotonic() - begun >= 0.05)
    silent(ctl(lab, fake, "errctl", "success", "smtp"))
    silent(ctl(lab, fake, "errctl", "begin", "--key", "k", "smtp",
               "--permit"))
    silent(ctl(lab, fake, "errctl", "success", "smtp", "--key", ""))
    same([named(p) for p in fake.asked(wire.ERROR_BEGIN)],
         [("smtp", None), ("smtp", "k")])
    same([named(p) for p in fake.asked(wire.ERROR_SUCCESS)],
         [("smtp", None), ("smtp", "")])
    result = ctl(lab, fake, "errctl", "begin", "smtp", "--json")
    same((list(result.json()), result.json()["wait_us"], result.err),
         (FIELDS, 50000, ""))
    fake.answers[wire.ERROR_SUCCESS] = done("unknown-rule", "no \x1bsuch")
    said(ctl(lab, fake, "errctl", "success", "smtp", expect=FAILED),
         "errctl: smtp: unknown-rule: no ?such")


def test_set_rate(lab):
    """asks the control socket; the rate travels exactly"""
    wrong = OpenAgent(lab, {}, name="agent.sock")
    fake = OpenAgent(lab, {wire.SET_RATE: done()}, name="control.sock")
    for text, rate in (("0.001", 10 ** 9), ("1000000", 10 ** 18),
                       ("10", 10 ** 13), ("0.3", 3 * 10 ** 11),
                       ("012.50", 125 * 10 ** 11)):
        silent(ctl(lab, wrong, "set-rate", "mail", text))
        payload = fake.asked(wire.SET_RATE)[-1]
        same((struct.unpack_from("<Q", payload)[0], take_string(payload[8:])),
             (rate, ("mail", b"")), text)
    silent(lab.ctl("--control", fake.path, "set-rate", "--timeout", "5000",
                   "mail", "1"))
    fake.answers[wire.SET_RATE] = done("unknown-rule", "no limiter \"mail\"")
    said(ctl(lab, wrong, "set-rate", "mail", "1", expect=1),
         "set-rate: unknown-rule: no limiter \"mail\"")
    same((len(fake.asked(wire.SET_RATE)), wrong.requests), (7, []))
    for text in ("", "0", "0.0009999", "1000000.1", "nan", "inf", "0x10",
                 "1e3", "1,5", " 1", "1 ", "+1", ".5", "5.", "1.2.3",
                 "\u0661", "9" * 400):
        said(ctl(lab, wrong, "set-rate", "mail", text, expect=USAGE),
             "RATE: must be a decimal number in 0.001..1000000, not \"%s\"" %
             text)
    same(len(fake.asked(wire.SET_RATE)), 7)


def test_limiters_as_text(lab):
    """a table of each kind, and what set-rate changed"""
    fast = dict(LIMITER, name="fast" + "\u00e9" * 30, offered=None,
                permits_per_second=1000000, stored=999999.75,
                configured_permits_per_second=0.5, wait_us=2500,
                counters={name: 2 ** 63 - 1 for name in COUNTED})
    fake = OpenAgent(lab, {wire.LIMITERS: limiters(
        [LIMITER, fast], [CONTROL], [RULE])})
    tables = ctl(lab, fake, "limiters").out.split("\n\n")
    rows = [[line.split() for line in table.rstrip("\n").split("\n")]
            for table in tables]
    same(rows[0][:3], [
        ["limiter", "rate", "burst", "stored", "wait", "keys", "granted",
         "permits", "waits", "refused", "overloaded", "evictions", "offered"],
        ["mail", "10/s", "1.5s", "2.5", "0", "2/10000", "11", "12", "13",
         "14", "15", "16", "yes"],
        ["fast" + "\u00e9" * 17 + "...", "1000000/s", "1.5s", "999999.8",
         "2.5ms", "2/10000"] + 6 * ["9223372036854M"] + ["-"]])
    same(tables[0].split("\n")[3:],
         [fast["name"] + ": the rate was set, the configuration has 0.5/s"])
    same(rows[1], [
        ["error", "control", "burst", "delay", "within", "wait", "keys",
         "begins", "delays", "successes", "overloaded", "evictions",
         "offered"],
        ["smtp", "2/3", "200ms", "100ms..30s", "95.4ms", "1/10000", "21",
         "22", "23", "24", "25", "no"]])
    same(rows[2], [
        ["local", "of", "rule", "rate", "burst", "stored", "wait", "keys",
         "granted", "permits", "waits", "refused", "overloaded",
         "evictions"],
        ["checkout", "0.001/s", "3600s", "3.6", "17m", "3/1000k", "11", "12",
         "13", "14", "15", "16"]])
    for some, head in ((([], [CONTROL]), "error control "),
                       (([], [], [RULE]), "local of rule ")):
        fake.answers[wire.LIMITERS] = limiters(*some)
        text = ctl(lab, fake, "limiters").out
        same((text.startswith(head), text.count("\n")), (True, 2), text)
    fake.answers[wire.LIMITERS] = limiters()
    same(ctl(lab, fake, "limiters").out,
         "no limiter and no error control is configured\n")


def test_spans(lab):
    """waits and delays of every size are short, and none is lost"""
    spans = {0: "0", 1: "0.001ms", 999499: "999ms", 999500: "1s",
             1500000: "1.5s", 99400000: "99.4s", 120000000: "2m",
             7200000000: "2h", YEAR_MS * 1000: "365d", None: "-"}
    fake = OpenAgent(lab, {wire.LIMITERS: limiters(
        [dict(LIMITER, wait_us=us) for us in spans])})
    same([line.split()[4] for line in
          ctl(lab, fake, "limiters").out.rstrip("\n").split("\n")[1:]],
         list(spans.values()))


def test_limiters_as_json(lab):
    """the agent's document as it is, with what a later agent adds"""
    more = dict(LIMITER, later=[{"x": 2 ** 63 - 1, "y": 0.1}],
                permits_per_second=123456.789012345)
    fake = OpenAgent(lab, {wire.LIMITERS: limiters([more], [CONTROL],
                                                   [RULE])})
    for args in (("--json", "limiters"), ("limiters", "--json")):
        result = ctl(lab, fake, *args)
        same(result.out.count("\n"), 1)
        same(result.json(), {"generation": 1, "limiters": [more],
                             "error_controls": [CONTROL], "rules": [RULE]})
    same(fake.asked(wire.LIMITERS), [b"", b""])


def test_what_an_agent_may_say(lab):
    """odd documents and rude texts: whole lines that steer no terminal"""
    fake = OpenAgent(lab, {})
    odd = [limiters([dict(LIMITER, name=RUDE)], [dict(CONTROL, name=RUDE)],
                    [dict(RULE, name=RUDE)]),
           limiters([{}], [{}], [{}]),
           limiters([{"name": 7, "stored": RUDE, "wait_us": -5,
                      "keys": RUDE, "counters": RUDE}],
                    [{"min_delay_ms": 1e300, "delay_ms": RUDE}], [[], 1])]
    for text, lines in ((RUDE, 0), *((o, None) for o in odd),
                        (document("[]"), 1),
                        (document('{"limiters":{},"rules":3}'), 1)):
        if lines == 0:
            fake.answers = {wire.LIMITERS: done("overloaded", text),
                            wire.ACQUIRE: delay(0, "overloaded", text)}
            results = [ctl(lab, fake, "limiters", expect=1),
                       ctl(lab, fake, "acquire", text, expect=FAILED)]
        else:
            fake.answers = {wire.LIMITERS: text}
            results = [ctl(lab, fake, "limiters")]
        for result in results:
            for stream in (result.out, result.err):
                check(not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", stream),
                      result)
            same(result.out.count("\n") if lines is not None else 8,
                 8 if lines is None else lines, result.out)
            check(lines is None or lines == 1 or POLITE in result.err, result)


def test_usage(lab):
    """64 and one line, before anybody is asked"""
    most = ('--max-wait: must be a number in 0..31536000000, not "%s"')
    for args, words in (
            (("acquire",), "acquire: name a limiter"),
            (("acquire", "--json"), "acquire: name a limiter"),
            (("acquire", "mail", "0"),
             'PERMITS: must be a number in 1..1000000, not "0"'),
            (("acquire", "mail", "1000001"),
             'PERMITS: must be a number in 1..1000000, not "1000001"'),
            (("acquire", "mail", "1.5"),
             'PERMITS: must be a number in 1..1000000, not "1.5"'),
            (("acquire", "mail", "1", "2"),
             'acquire: unexpected argument "2"'),
            (("acquire", "mail", "--max-wait", "31536000001"),
             most % "31536000001"),
            (("acquire", "mail", "--max-wait", "1.5"), most % "1.5"),
            (("acquire", "mail", "--max-wait=-1"), most % "-1"),
            (("acquire", "mail", "--max-wait", "18446744073709551616"),
             most % "18446744073709551616"),
            (("acquire", "mail", "--timeout", "0"),
             '--timeout: must be a number in 1..4294967295, not "0"'),
            (("acquire", "mail", "--on-failure", "maybe"),
             '--on-failure: must be open or closed, not "maybe"'),
            (("acquire", "mail", "--tokens", "2"),
             "acquire: unrecognized option '--tokens'"),
            (("errctl",), "errctl: takes begin NAME or success NAME"),
            (("errctl", "end", "smtp"),
             "errctl: takes begin NAME or success NAME"),
            (("errctl", "begin"), "errctl: name an error control"),
            (("errctl", "success", "--key", "k"),
             "errctl: name an error control"),
            (("errctl", "begin", "smtp", "2"),
             'errctl: unexpected argument "2"'),
            (("errctl", "begin", "smtp", "--max-wait", "1"),
             "errctl: unrecognized option '--max-wait'"),
            (("errctl", "success", "smtp", "--json"),
             "errctl: unrecognized option '--json'"),
            (("set-rate",), "set-rate: takes LIMITER and RATE"),
            (("set-rate", "mail"), "set-rate: takes LIMITER and RATE"),
            (("set-rate", "mail", "1", "2"),
             "set-rate: takes LIMITER and RATE"),
            (("set-rate", "mail", "1", "--json"),
             "set-rate: unrecognized option '--json'"),
            (("limiters", "mail"), 'limiters: unexpected argument "mail"'),
            (("limiters", "--key", "k"),
             "limiters: unrecognized option '--key'")):
        result = lab.ctl("--socket", os.path.join(lab.path, "none"), *args,
                         expect=USAGE)
        same((result.out, result.err), ("", "rlctl: %s\n" % words), args)
    for command in ("acquire", "errctl", "limiters", "set-rate"):
        check(lab.ctl(command, "--help").out.startswith("Usage: rlctl"))
    for args in (("acquire", "m" * 256), ("errctl", "begin", "m" * 256),
                 ("errctl", "success", "m" * 256),
                 ("acquire", "mail", "--key", "k" * 256)):
        result = lab.ctl("--socket", os.path.join(lab.path, "none"), *args,
                         expect=FAILED)
        same((result.out, result.err.count("\n")), ("", 1), result)
        check("255" in result.err, result)


def test_full(lab):
    """JSON that cannot be written is no success"""
    fake = OpenAgent(lab, {wire.ACQUIRE: delay(), wire.LIMITERS: limiters()})
    for args, status, word in ((("acquire", "m", "--json"), FAILED, "acquire"),
                               (("limiters",), 1, "limiters")):
        with open("/dev/full", "wb") as full:
            result = subprocess.run(
                [harness.CTL, "--socket", fake.path, *args], stdout=full,
                stderr=subprocess.PIPE, env=lab.env(),
                timeout=harness.PATIENCE, check=False)
        same((result.returncode, result.stderr.count(b"\n")), (status, 1))
        check(result.stderr.startswith(b"rlctl: %s: cannot write" %
                                       word.encode()), result.stderr)


def manual(name):
    path = os.path.join(os.environ.get("srcdir", "."), "man/rlctl.1")
    with open(path, encoding="utf-8") as f:
        return f.read().split(".Sh %s\n" % name)[1].split("\n.Sh ")[0]


def fields(document):
    """The names in it, in its order, of each list's first entry."""
    for name, value in document.items():
        yield name
        if isinstance(value, list):
            yield from fields(value[0])


def test_the_manual_explains_limiters(_lab):
    """rlctl(1) has the fields that are above, and no others"""
    same(re.findall(r"^\.It Sy (\w+)$", manual("LIMITERS"), re.M),
         list(fields({"generation": 1, "limiters": [LIMITER],
                      "error_controls": [CONTROL], "rules": [RULE]})))


def test_the_loops_of_the_manual(lab):
    """a throttled loop and one that tries again run as they stand"""
    fake = OpenAgent(lab, {
        wire.ACQUIRE: delay(1000), wire.ERROR_BEGIN: delay(1000),
        wire.ERROR_SUCCESS: done()})
    loops = [text.replace("\\e", "\\") for text in re.findall(
        r"^\.Bd -literal -offset indent\n(.*?)^\.Ed$", manual("EXAMPLES"),
        re.M | re.S)]
    same(len(loops), 2, "loops in the manual")
    bin_path = os.path.join(lab.path, "bin")
    os.mkdir(bin_path)
    with open(os.path.join(bin_path, "send"), "w", encoding="ascii") as f:
        # Fails at the first two attempts.
        f.write("#!/bin/sh\necho \"$@\" >>sent\n"
                "[ $(wc -l <sent) -gt \"${FAILURES:-0}\" ]\n")
    os.chmod(os.path.join(bin_path, "send"), 0o755)
    path = "%s:%s:%s" % (bin_path, os.path.dirname(harness.CTL),
                         os.environ["PATH"])
    with open(os.path.join(lab.path, "queue"), "w", encoding="ascii") as f:
        f.write("one\ntwo\nthree\n")
    for number, loop in enumerate(loops):
        done_ = subprocess.run(
            ["sh", "-euc", loop], cwd=lab.path, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env=lab.env({"PATH": path, "RL_AGENT_SOCKET": fake.path,
                         "FAILURES": str(5 * number), "m": "mail"}),
            timeout=harness.PATIENCE, check=False)
        same((done_.returncode, done_.stdout), (0, b""), loop)
    with open(os.path.join(lab.path, "sent"), encoding="ascii") as f:
        same(f.read().split("\n")[:3], ["one", "two", "three"])
    same(len(fake.asked(wire.ACQUIRE)), 4, "one finds the queue's end")
    same((len(fake.asked(wire.ERROR_BEGIN)),
          len(fake.asked(wire.ERROR_SUCCESS))), (3, 1))


if __name__ == "__main__":
    harness.run([value for name, value in list(globals().items())
                 if name.startswith("test_")])
