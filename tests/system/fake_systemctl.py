#!/usr/bin/env python3
"""
systemctl and journalctl for the stand-in for systemd (fake_systemd.py): the
first argument says which.
"""

import getopt
import json
import socket
import sys

import fake_journal
from fake_units import canonical

CONTROL = "/run/systemd/private.fake"


def ask(argv):
    """The answer of process 1 to a command line of systemctl."""
    with socket.socket(socket.AF_UNIX) as sock:
        try:
            sock.connect(CONTROL)
        except OSError as error:
            sys.exit("Failed to connect to bus: %s" % error.strerror)
        sock.sendall(json.dumps(argv).encode() + b"\n")
        with sock.makefile("r", encoding="utf-8") as lines:
            return json.loads(lines.readline())


def systemctl(argv):
    answer = ask(argv)
    sys.stdout.write(answer["out"])
    sys.stderr.write(answer["err"])
    return answer["status"]


def journalctl(argv):
    options, rest = getopt.gnu_getopt(
        argv, "u:n:p:o:xeqbr", ["unit=", "lines=", "priority=", "output=",
                                "no-pager", "pager-end", "catalog", "quiet",
                                "boot", "reverse", "sync", "no-hostname"])
    if rest:
        sys.exit("journalctl: no matches are known here: %s" % rest)
    ask(["sync"])  # what was written is in the files
    units, count, priority, form = [], None, 7, "short"
    for key, value in options:
        if key in ("-u", "--unit"):
            units.append(canonical(value))
        elif key in ("-n", "--lines"):
            count = int(value)
        elif key in ("-p", "--priority"):
            priority = fake_journal.priority_of(value)
        elif key in ("-o", "--output"):
            form = value
    found = fake_journal.entries(units, priority)
    if count is not None:
        found = found[len(found) - min(count, len(found)):]
    if ("-r", "") in options or ("--reverse", "") in options:
        found.reverse()
    for entry in found:
        print(fake_journal.shown(entry, form))
    return 0


if __name__ == "__main__":
    sys.exit({"systemctl": systemctl, "journalctl": journalctl}[sys.argv[1]](
        sys.argv[2:]))
