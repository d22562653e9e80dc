"""
The journal of the stand-in for systemd: what each unit wrote, and what was
said of it, as lines of JSON in a file a unit, and how journalctl prints them.
"""

import json
import os
import re
import socket
import time

FOLDER = "/run/log/journal.fake"
NAMES = ("emerg", "alert", "crit", "err", "warning", "notice", "info", "debug")


class Journal:
    """Of one unit; its processes write to a stream, as those of journald."""

    def __init__(self, loop, name, pid_of):
        self.path = os.path.join(FOLDER, name)
        self.name, self.pid_of, self.loop = name, pid_of, loop
        self.identifier = name.rsplit(".", 1)[0]
        self.ours = self.theirs = None
        self.rest = b""

    def output(self):
        """What a process gets as standard output and error."""
        if self.ours is None:
            self.ours, self.theirs = socket.socketpair()
            self.ours.setblocking(False)
            self.loop.add_reader(self.ours, self.drain)
        return self.theirs.fileno()

    def stream(self):
        """JOURNAL_STREAM for it."""
        status = os.fstat(self.output())
        return "%d:%d" % (status.st_dev, status.st_ino)

    def drain(self):
        """Takes what is there now."""
        while self.ours is not None:
            try:
                data = self.ours.recv(65536)
            except BlockingIOError:
                break
            if not data:
                break
            lines = (self.rest + data).split(b"\n")
            self.rest = lines.pop()
            for line in lines:
                self.line(line.decode(errors="replace"))

    def line(self, text):
        level = re.match(r"<([0-7])>", text)
        self.record(self.identifier, self.pid_of(self.name),
                    text[3:] if level else text, int(level[1]) if level else 6)

    def record(self, identifier, pid, text, priority=6):
        with open(self.path, "a", encoding="utf-8") as f:
            f.write(json.dumps({"at": time.time(), "id": identifier,
                                "pid": pid, "priority": priority,
                                "unit": self.name, "text": text}) + "\n")


def entries(units, priority=7):
    """Of these units, or of all, in the order of time."""
    found = []
    for name in sorted(os.listdir(FOLDER)):
        if not units or name in units:
            with open(os.path.join(FOLDER, name), encoding="utf-8") as f:
                found += [json.loads(line) for line in f]
    return sorted((e for e in found if e["priority"] <= priority),
                  key=lambda e: e["at"])


def shown(entry, form="short"):
    if form == "cat":
        return entry["text"]
    if form == "json":
        return json.dumps({
            "MESSAGE": entry["text"], "PRIORITY": str(entry["priority"]),
            "SYSLOG_IDENTIFIER": entry["id"], "_PID": str(entry["pid"]),
            "_SYSTEMD_UNIT": entry["unit"]})
    when = time.strftime("%b %d %H:%M:%S", time.localtime(entry["at"]))
    return "%s %s %s[%d]: %s" % (when, os.uname().nodename, entry["id"],
                                 entry["pid"], entry["text"])


def priority_of(word):
    """That of -p: a number or a name."""
    return int(word) if word.isdigit() else NAMES.index(word)
