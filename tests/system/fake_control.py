"""
What systemctl can be told, as the stand-in for systemd (fake_systemd.py)
carries it out. An answer is what the real one would print and its exit status.
"""

import fnmatch
import getopt
import os
import re
import signal
import time

import fake_journal
from fake_units import FOLDERS, Unit, UnitError, canonical

ETC = FOLDERS[0]
OPTIONS = """now no-block no-pager quiet system value full signal= kill-who=
    kill-whom= property= lines= all root= preset-mode= no-reload no-legend plain
    force no-ask-password""".split()
DETAILS = 'See "systemctl status %s" and "journalctl -xeu %s" for details.'


class Answer:
    def __init__(self):
        self.status, self.out, self.err = 0, [], []

    def say(self, *lines):
        self.out += lines

    def error(self, text, status=1):
        self.err.append(text)
        self.status = status

    def document(self):
        return {"status": self.status,
                "out": "".join(line + "\n" for line in self.out),
                "err": "".join(line + "\n" for line in self.err)}


async def run(manager, argv):
    """One command line of systemctl."""
    answer = Answer()
    try:
        options, words = getopt.gnu_getopt(argv, "qfals:p:n:", OPTIONS)
    except getopt.GetoptError as error:
        answer.error("systemctl: %s" % error)
        return answer
    options = {key.lstrip("-"): value for key, value in options}
    verb = (words.pop(0) if words else "-").replace("-", "_")
    if verb not in VERBS:
        answer.error("Unknown command verb %s (to this stand-in)." % verb)
        return answer
    if verb in ("daemon_reload", "sync"):
        if verb == "daemon_reload":
            answer.err += manager.reload()
        return answer
    if not words:
        answer.error("Too few arguments.")
    for name in named(manager, words):
        try:
            await VERBS[verb](manager, name, options, answer)
        except UnitError as error:
            missing = str(error).endswith("could not be found.")
            answer.error(str(error), (5 if verb in JOBS else 4) if missing
                         else 1)
    return answer


def named(manager, words):
    """The units that are meant: a pattern is for those that are loaded."""
    for word in words:
        if re.search(r"[*?\[]", word):
            yield from fnmatch.filter(sorted(manager.units), word)
        else:
            yield canonical(word)


# Jobs.

async def start(manager, name, _options, answer):
    if not await manager.start(name):
        answer.error("Job for %s failed.\n%s" % (name, DETAILS % (name, name)))


async def stop(manager, name, _options, answer):
    if name not in manager.units:
        manager.unit(name)
    await manager.units[name].stop()
    for part in manager.parts_of(name):
        await part.stop()
    for sock in manager.sockets_of(name):
        answer.err.append("Warning: Stopping %s, but it can still be "
                          "activated by:\n  %s" % (name, sock.name))


async def restart(manager, name, options, answer):
    await manager.unit(name).stop()
    parts = [part for part in manager.parts_of(name)
             if part.state in ("active", "reloading")]
    for part in parts:
        await part.stop()
    await start(manager, name, options, answer)
    for part in parts:
        await start(manager, part.name, options, answer)


async def try_restart(manager, name, options, answer):
    if manager.state_of(name) in ("active", "reloading"):
        await restart(manager, name, options, answer)


async def reload(manager, name, _options, answer):
    trouble = await manager.unit(name).reload()
    if trouble:
        answer.error(trouble)


async def reload_or_restart(manager, name, options, answer):
    known = manager.unit(name)
    can = known.unit.all("ExecReload") and known.state == "active"
    await (reload if can else restart)(manager, name, options, answer)


async def kill(manager, name, options, answer):
    word = options.get("signal", options.get("s", "SIGTERM"))
    word = word if word.startswith("SIG") else "SIG" + word
    number = signal.Signals(int(word[3:])) if word[3:].isdigit() else \
        signal.Signals[word]
    known = manager.unit(name)
    if not known.main:
        answer.error("Failed to kill unit %s: No main process to kill" % name)
        return
    who = options.get("kill-whom", options.get("kill-who", "all"))
    for pid in [known.main] if who == "main" else known.members():
        os.kill(pid, number)


async def reset_failed(manager, name, _options, _answer):
    known = manager.unit(name)
    if known.state == "failed":
        known.set("inactive", "dead")
    if hasattr(known, "starts"):
        known.starts.clear()


# Questions.

async def is_active(manager, name, options, answer):
    state = manager.state_of(name)
    answer.status = 0 if state in ("active", "reloading") else 3
    if "quiet" not in options and "q" not in options:
        answer.say(state)


async def is_failed(manager, name, options, answer):
    state = manager.state_of(name)
    answer.status = 0 if state == "failed" else 1
    if "quiet" not in options and "q" not in options:
        answer.say(state)


def links(unit):
    """Where enabling puts what."""
    found = []
    for key, folder in ("WantedBy", "wants"), ("RequiredBy", "requires"):
        for target in unit.words(key):
            found.append(os.path.join(ETC, "%s.%s" % (target, folder),
                                      unit.name))
    return found + [os.path.join(ETC, name) for name in unit.words("Alias")]


def enabled(unit):
    if unit.masked:
        return "masked"
    if not links(unit):
        return "static"
    return "enabled" if any(os.path.islink(path) for path in links(unit)) \
        else "disabled"


async def is_enabled(_manager, name, options, answer):
    state = enabled(Unit(name))
    answer.status = 0 if state in ("enabled", "static") else 1
    if "quiet" not in options and "q" not in options:
        answer.say(state)


async def cat(_manager, name, _options, answer):
    for path in Unit(name).files:
        with open(path, encoding="utf-8") as f:
            answer.say("# " + path, f.read())


async def show(manager, name, options, answer):
    known = manager.unit(name)
    values = {"ActiveState": known.state, "SubState": known.sub,
              "Result": known.result, "MainPID": getattr(known, "main", 0),
              "NRestarts": getattr(known, "restarts", 0),
              "StatusText": getattr(known, "status", ""),
              "FragmentPath": known.unit.path, "Id": name,
              "UnitFileState": enabled(known.unit), "LoadState": "loaded"}
    wanted = options.get("property", options.get("p"))
    for key in wanted.split(",") if wanted else values:
        if key not in values:
            raise UnitError("systemctl show: no %s here" % key)
        answer.say(str(values[key]) if "value" in options else
                   "%s=%s" % (key, values[key]))


async def status(manager, name, options, answer):
    known = manager.unit(name)
    answer.status = 0 if known.state in ("active", "reloading") else 3
    dot = {"active": "●", "failed": "×"}.get(known.state, "○")
    answer.say("%s %s" % (dot, known.title()),
               "     Loaded: loaded (%s; %s)" % (known.unit.path,
                                                 enabled(known.unit)))
    if known.unit.files[1:]:
        answer.say("    Drop-In: " + ", ".join(known.unit.files[1:]))
    words = known.sub if known.result == "success" else \
        "%s; Result: %s" % (known.sub, known.result) \
        if known.state != "failed" else "Result: " + known.result
    answer.say("     Active: %s (%s) since %s" % (
        known.state, words, time.strftime("%a %Y-%m-%d %H:%M:%S",
                                          time.localtime(known.since))))
    for sock in manager.sockets_of(name):
        answer.say("TriggeredBy: ● " + sock.name)
    if getattr(known, "main", 0):
        with open("/proc/%d/comm" % known.main, encoding="utf-8") as f:
            answer.say("   Main PID: %d (%s)" % (known.main, f.read().strip()))
    if getattr(known, "status", ""):
        answer.say('     Status: "%s"' % known.status)
    count = int(options.get("lines", options.get("n", "10")))
    last = fake_journal.entries([name])[-count:] if count else []
    answer.say("", *[fake_journal.shown(entry) for entry in last])


# Files.

async def enable(manager, name, options, answer):
    unit = Unit(name)
    if unit.masked:
        raise UnitError("Failed to enable unit: Unit file %s is masked." %
                        unit.path)
    for path in links(unit):
        if not os.path.islink(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.symlink(unit.path, path)
            answer.err.append("Created symlink %s → %s." % (path, unit.path))
    for other in unit.words("Also"):
        if enabled(Unit(other)) == "disabled":
            await enable(manager, other, {}, answer)
    answer.err += manager.reload()
    if "now" in options:
        await start(manager, name, options, answer)


async def preset(manager, name, _options, answer):
    """Debian's presets enable everything."""
    await enable(manager, name, {}, answer)


async def disable(manager, name, options, answer):
    unit = Unit(name)
    for path in links(unit):
        if os.path.islink(path):
            os.unlink(path)
            answer.err.append('Removed "%s".' % path)
    for other in unit.words("Also"):
        if enabled(Unit(other)) == "enabled":
            await disable(manager, other, {}, answer)
    answer.err += manager.reload()
    if "now" in options:
        await stop(manager, name, options, answer)


async def mask(manager, name, options, answer):
    path = os.path.join(ETC, name)
    os.symlink("/dev/null", path)
    answer.err.append("Created symlink %s → /dev/null." % path)
    if "now" in options and name in manager.units:
        await manager.units[name].stop()


async def unmask(_manager, name, _options, answer):
    path = os.path.join(ETC, name)
    if os.path.realpath(path) == "/dev/null":
        os.unlink(path)
        answer.err.append('Removed "%s".' % path)


JOBS = ("start", "stop", "restart", "try_restart", "reload",
        "reload_or_restart")
VERBS = {f.__name__: f for f in (
    start, stop, restart, try_restart, reload, reload_or_restart, kill,
    reset_failed, is_active, is_failed, is_enabled, cat, show, status, enable,
    preset, disable, mask, unmask)}
VERBS.update(daemon_reload=None, sync=None)
