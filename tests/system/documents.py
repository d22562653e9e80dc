"""
What the tests of documents share: the shell blocks of a Markdown file as one
script for bash, which stops at the first command that fails.
"""

import os
import re

from harness import check

TOP = os.environ.get("srcdir", ".")
MARK = "---- block %d ----"
# What runs in the background ends with it.
GUARD = "set -eu\ntrap 'kill $(jobs -p) 2>/dev/null || :; wait' EXIT\n"


def read(name):
    with open(os.path.join(TOP, name), encoding="utf-8") as f:
        return f.read()


def shell_blocks(name):
    """The text of each ```sh block, in order."""
    return re.findall(r"^```sh\n(.*?)^```$", read(name), re.M | re.S)


def script_of(blocks, replace=()):
    """All of them, after what a test has to have otherwise: pairs of texts.
    A text to be replaced has to be there."""
    script = "".join("echo '%s'\n%s" % (MARK % i, block)
                     for i, block in enumerate(blocks))
    for old, new in replace:
        check(old in script, "no block mentions", old)
        script = script.replace(old, new)
    return script
