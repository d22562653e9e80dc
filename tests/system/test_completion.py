#!/usr/bin/env python3
"""
Completion in bash and in zsh: every command and option that a --help lists,
names of a running agent whatever they are called, and nothing that hangs or
runs what an agent says.
"""

import os
import pty
import re
import shutil
import signal
import subprocess
import tempfile

import harness
from harness import check, poll, same

TOP = os.path.abspath(os.environ.get("srcdir", "."))
FOLDER = os.path.join(TOP, "completion")
PROGRAMS = {"rlctl": harness.CTL, "rl-agent": harness.AGENT,
            "rl-sandbox": harness.SANDBOX}
# What a rule may be called, and what is made of it where nothing is quoted.
HOSTILE = ["$(touch pwned)", "`touch pwned`", "a b", "a\"b\\", "*", "it's",
           "caf\u00e9", "\\\"", "a\",", "-v", "eu:a", "eu:b"]

# $1 is the completion, $2 its function, $3 the program, then words of the line.
BASH = r"""
compopt() { printf '%s\0' "($*)"; }
source "$1"
complete_with=$2 program=$3
shift 3
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE=$RLA_LINE
$complete_with "$program" "${@: -1}" "${@: -2:1}"
[[ ${#COMPREPLY[@]} == 0 ]] || printf '%s\0' "${COMPREPLY[@]}"
"""


class Bash:
    """Calls the function as bash would; "(-o default)" stands for files."""

    def __init__(self, lab, socket):
        self.lab, self.socket = lab, socket

    def split(self, line):
        """COMP_WORDS: words are broken at = and : as well."""
        words = []
        for word in re.findall(r"(?:\\.|'[^']*'?|\"[^\"]*\"?|[^\s'\"\\])+",
                               line):
            words += [w for w in re.split("([=:]+)", word) if w] \
                if word[0] not in "'\"" else [word]
        return words + ([""] if line.endswith(" ") else [])

    def offers(self, line):
        words = self.split(line)
        program = words[0]
        env = self.lab.env({"RLA_LINE": line,
                            "RL_AGENT_SOCKET": self.socket,
                            "LC_ALL": "C.UTF-8"})
        done = subprocess.run(
            ["bash", "--norc", "-c", BASH, "bash",
             os.path.join(FOLDER, "bash", program),
             "_" + program.replace("-", "_"), PROGRAMS[program]] + words,
            env=env, cwd=self.lab.path, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            timeout=harness.PATIENCE, check=False)
        same(done.stderr, b"", line)
        return done.stdout.decode().split("\0")[:-1]


class Zsh:
    """A zsh at a terminal, as the completion system needs one."""

    def __init__(self, lab, socket):
        if not shutil.which("zsh"):
            raise harness.Skip("no zsh")
        self.ask = os.path.join(lab.path, "ask")
        self.answer = os.path.join(lab.path, "answer")
        # Outside the laboratory, which looks for reports in all its files.
        self.programs = tempfile.mkdtemp(prefix="rla-completion-")
        for name, path in PROGRAMS.items():
            os.symlink(path, os.path.join(self.programs, name))
        env = lab.env({
            "RL_AGENT_SOCKET": socket, "TERM": "dumb", "LC_ALL": "C.UTF-8",
            "PATH": self.programs + ":" + os.environ["PATH"],
            "ASK": self.ask, "ANSWER": self.answer,
            "COMPLETIONS": os.path.join(FOLDER, "zsh")})
        if os.path.exists(self.answer):
            os.unlink(self.answer)
        self.terminal, other = pty.openpty()
        # What it echoes is a few lines; the terminal holds them.
        self.child = subprocess.Popen(
            ["zsh", "-f", "-i"], env=env, cwd=lab.path, stdin=other,
            stdout=other, stderr=other, start_new_session=True)
        os.close(other)
        lab.closers.append(self.close)
        self.type("source %s\n" % os.path.join(
            TOP, "tests", "system", "completion.zsh"))
        self.take()

    def type(self, text):
        os.write(self.terminal, text.encode())

    def take(self):
        def there():
            self.drain()
            check(self.child.poll() is None, "zsh has ended")
            return os.path.exists(self.answer)
        poll("zsh to answer", there)
        with open(self.answer, encoding="utf-8") as f:
            lines = f.read().split("\n")[:-1]
        os.unlink(self.answer)
        return lines

    def drain(self):
        os.set_blocking(self.terminal, False)
        try:
            while os.read(self.terminal, 65536):
                pass
        except OSError:
            pass

    def offers(self, line):
        with open(self.ask, "w", encoding="utf-8") as f:
            f.write(line)
        self.type("\x18")
        return self.take()

    def close(self):
        self.child.kill()
        self.child.wait()
        os.close(self.terminal)
        shutil.rmtree(self.programs)


def in_each_shell(lab, socket, test):
    test(Bash(lab, socket))
    test(Zsh(lab, socket))


def usage(*argv):
    done = subprocess.run(list(argv) + ["--help"], stdout=subprocess.PIPE,
                          check=True, timeout=harness.PATIENCE)
    return done.stdout.decode()


OPTION = re.compile(r"(?<![-\w])--?[a-zA-Z][a-z-]*")


def rlctl_usage():
    """Of rlctl --help: command to its options; "" has those before it."""
    commands, command = {"": set()}, None
    for line in usage(harness.CTL).split("\n"):
        start = re.match(r"  ([a-z][a-z-]*) ", line)
        if start:
            command = start.group(1)
            commands.setdefault(command, set())
        elif re.match("  -", line):
            commands[""] |= set(OPTION.findall(line))
        elif not line:
            command = None
        if command:
            commands[command] |= set(OPTION.findall(line.split(" -- ")[0]))
    check(len(commands) > 15, commands)
    return commands


def agent_with_names(lab):
    key = lab.keygen("main")
    tenant = {"key": {"file": key},
              "servers": [{"id": "1", "address": "127.0.0.1:9"}]}
    guard = [{"tracker": "inventory", "below_ms": 9}]
    rules = {name: {"tenant": "main"} for name in HOSTILE}
    rules["checkout"] = {"tenant": "main", "guards": guard}
    document = lab.document(
        {"main": tenant, "second": tenant}, rules, {"inventory": {}},
        limiters={"mail": {"permits_per_second": 1}},
        error_controls={"smtp": {}})
    document["listeners"]["few"] = {
        "path": lab.socket_path("few"), "rules": ["checkout"],
        "limiters": [], "error_controls": []}
    return lab.agent(document)


def test_the_commands_of_rlctl(lab):
    """all of --help are offered, and none besides"""
    commands = rlctl_usage()
    commands.pop("")
    in_each_shell(lab, "/nowhere", lambda shell: same(
        sorted(shell.offers("rlctl ")), sorted(commands)))


def test_the_options_of_rlctl(lab):
    """all of --help are offered, with --json where that is taken"""
    commands = rlctl_usage()
    before = commands.pop("")
    for command, options in commands.items():
        argv = [command] + {"errctl": ["begin", "x"], "key": ["show", "x"]
                            }.get(command, [])
        if "--timeout" in options:
            argv += ["--timeout", "1"]
        for option in options | {"--json"}:
            said = lab.ctl("--socket", "/nowhere", "--control", "/nowhere",
                           *argv, option, expect=None).err
            if "unrecognized option" not in said:
                options.add(option)
            else:
                same(option, "--json", command, said)

    def test(shell):
        same(sorted(shell.offers("rlctl -")), sorted(before))
        for command, options in commands.items():
            same(sorted(shell.offers("rlctl %s -" % command)),
                 sorted(options), command)
    in_each_shell(lab, "/nowhere", test)


def test_the_options_of_the_others(lab):
    def test(shell):
        for argv in (["rl-agent"], ["rl-sandbox"], ["rl-sandbox", "keygen"]):
            text = usage(PROGRAMS[argv[0]], *argv[1:])
            lines = re.findall("^  (-.*)", text, re.M)
            want = {o for line in lines
                    for o in OPTION.findall(line.split("  ")[0])}
            check(len(want) > 5, want)
            # A shell may leave out the short one of two, or offer it with -.
            got = {o.rstrip("=") for o in shell.offers(
                " ".join(argv) + " --") + shell.offers(
                    " ".join(argv) + " -")}
            same(got, want, argv)
    in_each_shell(lab, "/nowhere", test)


def test_words_of_the_usage(lab):
    def test(shell):
        def offered(line, *want):
            same(sorted(shell.offers(line)), sorted(want), line)
        offered("rlctl check x --on-failure ", "open", "closed")
        offered("rlctl check x --on-failure=", "open", "closed")
        offered("rlctl check x --on-failure=o", "open")
        offered("rlctl bench x --order ", "random", "sequential")
        offered("rlctl errctl ", "begin", "success")
        offered("rlctl key ", "show")
        offered("rlctl nonsense ")
        offered("rl-sandbox keygen --auth ", "aes", "cookie", "none")
        offered("rl-sandbox keygen --auth=c", "cookie")
        offered("rl-sandbox --profile ", "auto", "v1", "v2")
        offered("rl-sandbox --cluster ")
        check("keygen" in shell.offers("rl-sandbox "))
    in_each_shell(lab, "/nowhere", test)


def test_files(lab):
    key = lab.keygen("main")
    for line in ("rlctl key show ", "rlctl --socket ", "rl-agent -c ",
                 "rl-agent --config ", "rl-sandbox --key-file ",
                 "rl-agent --config=", "rl-sandbox --events "):
        same(Bash(lab, "/nowhere").offers(line), ["(-o default)"], line)
    shell = Zsh(lab, "/nowhere")
    for line in ("rlctl key show ", "rlctl --socket ", "rl-agent -c ",
                 "rl-agent --config ", "rl-sandbox --key-file ",
                 "rlctl run x -- cat "):
        check(os.path.basename(key) in shell.offers(line), line)


def test_names_of_the_agent(lab):
    agent = agent_with_names(lab)

    def test(shell):
        def offered(line, *want):
            same(sorted(shell.offers(line)), sorted(want), line)
        for line in ("rlctl check che", "rlctl run --key x che",
                     "rlctl --json explain --timeout 1000 che",
                     "rlctl bench che"):
            offered(line, "checkout")
        offered("rlctl acquire ", "mail")
        offered("rlctl set-rate m", "mail")
        offered("rlctl errctl begin ", "smtp")
        offered("rlctl errctl success s", "smtp")
        offered("rlctl report ", "inventory")
        offered("rlctl report x 1 --tenant ", "main", "second")
        offered("rlctl policy s", "second")
        few = lab.socket_path("few")
        for option in ("--socket " + few, "--socket=" + few):
            offered("rlctl %s check " % option, "checkout")
        check("mail" not in shell.offers(
            "rlctl --socket %s acquire " % few))
        check("ls" in shell.offers("rlctl run checkout -- l"))
    in_each_shell(lab, agent.socket, test)


def unquoted(text):
    """What a shell makes of a word that was quoted for it."""
    done = subprocess.run(["bash", "-c", "printf %s " + text],
                          stdout=subprocess.PIPE, check=True)
    return done.stdout.decode()


def test_names_are_never_run(lab):
    agent = agent_with_names(lab)
    want = sorted(HOSTILE + ["checkout"])
    bash = Bash(lab, agent.socket)
    same(sorted(unquoted(w) for w in bash.offers("rlctl check ")), want)
    same(sorted(bash.offers("rlctl check 'a")), ["a b", "a\",", "a\"b\\"])
    same(bash.offers("rlctl check \"a"), ["a b"])
    same(bash.offers("rlctl check eu:"), ["a", "b"])
    same(bash.offers("rlctl check $(touch pwned) --key "), [])
    zsh = Zsh(lab, agent.socket)
    same(sorted(unquoted(w) for w in zsh.offers("rlctl check ")), want)
    for folder, _, files in os.walk(lab.path):
        check("pwned" not in files, "a name was run", folder)


def test_an_agent_that_does_not_answer(lab):
    """and one that is not there: completion ends, and offers no name"""
    agent = agent_with_names(lab)
    shells = [Bash(lab, agent.socket), Zsh(lab, agent.socket)]
    agent.signal(signal.SIGSTOP)
    for shell in shells:
        check("checkout" not in shell.offers("rlctl check che"))
    agent.signal(signal.SIGCONT)
    same(agent.stop(), 0)
    for shell in shells:
        check("checkout" not in shell.offers("rlctl check che"))


if __name__ == "__main__":
    harness.run([value for name, value in list(globals().items())
                 if name.startswith("test_")])
