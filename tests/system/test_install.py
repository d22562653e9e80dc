#!/usr/bin/env python3
"""
What "make install" installs below a DESTDIR: the library links by its
pkg-config file, shared and static; the shells' completions and the schema are
in their places; uninstall leaves nothing.
"""

import os
import re
import shutil
import subprocess
import tempfile

import harness
from harness import check, same

TOP = os.path.abspath(os.environ.get("srcdir", "."))
BUILD = os.path.abspath(os.environ.get("top_builddir", "."))
CC = os.environ.get("CC", "cc").split()


def configured(name):
    """A folder, as configure was told."""
    with open(os.path.join(BUILD, "Makefile"), encoding="utf-8") as f:
        value = re.search(r"^%s = (.*)$" % name, f.read(), re.M).group(1)
    return re.sub(r"\$[{(](\w+)[)}]", lambda m: configured(m.group(1)), value)


def make(target, root):
    """In the build folder; a make above it has no part in this one."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")
           and k not in ("MFLAGS", "TESTS")}
    done = subprocess.run(
        ["make", target, "DESTDIR=" + root], cwd=BUILD, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, check=False)
    same(done.returncode, 0, done.stdout.decode()[-3000:])


def folder_for_programs(lab):
    """Outside the laboratory, which looks for reports in all of its files."""
    path = tempfile.mkdtemp(prefix="rla-install-")
    lab.closers.append(lambda: shutil.rmtree(path))
    return path


def installed(root):
    return {"/" + os.path.relpath(os.path.join(folder, name), root)
            for folder, _, names in os.walk(root) for name in names}


def run(argv, env=None, cwd=None):
    done = subprocess.run(argv, env=env, cwd=cwd, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=harness.PATIENCE,
                          check=False)
    same(done.returncode, 0, argv, done.stderr.decode())
    return done.stdout.decode()


def pkg_config(root, *args):
    """librlshim's answer, with the root before its folders."""
    env = dict(os.environ, PKG_CONFIG_SYSROOT_DIR=root,
               PKG_CONFIG_LIBDIR=root + configured("pkgconfigdir"))
    # What it leaves out as the system's own is not, below a root.
    env.update(PKG_CONFIG_ALLOW_SYSTEM_CFLAGS="1",
               PKG_CONFIG_ALLOW_SYSTEM_LIBS="1")
    return run(["pkg-config", "librlshim"] + list(args), env).split()


def readme_example():
    with open(os.path.join(TOP, "README.md"), encoding="utf-8") as f:
        found = re.findall(r"^cat >ask\.c <<'END'\n(.*?)^END$", f.read(),
                           re.M | re.S)
    same(len(found), 1, "examples in the README")
    return found[0]


def test_the_library_by_its_pkg_config_file(lab):
    """the README's C program, shared and static, asks an agent"""
    folder = folder_for_programs(lab)
    root = os.path.join(folder, "root")
    make("install", root)
    version = pkg_config(root, "--modversion")
    same(version, [run([harness.CTL, "--version"]).split()[1]])
    source = os.path.join(lab.path, "ask.c")
    with open(source, "w", encoding="utf-8") as f:
        f.write(readme_example())
    # A library of a sanitizer's build needs the sanitizer.
    libdir = root + configured("libdir")
    with open(libdir + "/librlshim.so", "rb") as f:
        flags = ["-fsanitize=address,undefined"] \
            if b"__asan" in f.read() else []
    common = CC + flags + pkg_config(root, "--cflags") + [source]
    run(common + pkg_config(root, "--libs") +
        ["-o", folder + "/ask-shared"])
    dynamic = run(["readelf", "-d", folder + "/ask-shared"])
    check("[librlshim.so.0]" in dynamic, dynamic)
    programs = ["ask-shared"]
    if not flags:
        run(common + ["-static"] + pkg_config(root, "--libs", "--static") +
            ["-o", folder + "/ask-static"])
        programs.append("ask-static")

    key = lab.keygen("main")
    sandbox = lab.sandbox(key, zone="rl.test")
    agent = lab.agent(lab.document(
        {"main": {"key": {"file": key}, "policy": harness.POLICY,
                  "dns": {"name": sandbox.zone,
                          "nameservers": [sandbox.dns]}}},
        {"checkout": {"resources": [{"bucket": "checkout:{key}", "limit": 10,
                                     "window_ms": 1000}]}}))
    env = lab.env({"RL_AGENT_SOCKET": agent.socket,
                   "LD_LIBRARY_PATH": libdir})
    for program in programs:
        said = run([os.path.join(folder, program), "customer-3"], env)
        check(said.startswith("allowed (ok): go on"), program, said)


def test_places(lab):
    """the shells, the manual and the schema find theirs; nothing is left"""
    root = folder_for_programs(lab)
    make("install", root)
    files = installed(root)
    lib, share = configured("libdir"), configured("datadir")
    wanted = [
        configured("bindir") + "/rlctl", configured("bindir") + "/rl-sandbox",
        configured("sbindir") + "/rl-agent",
        configured("includedir") + "/rlshim.h",
        lib + "/librlshim.a", lib + "/librlshim.so.0",
        lib + "/pkgconfig/librlshim.pc",
        share + "/bash-completion/completions/rl-agent",
        share + "/bash-completion/completions/rl-sandbox",
        share + "/bash-completion/completions/rlctl",
        share + "/zsh/site-functions/_rl-agent",
        share + "/zsh/site-functions/_rl-sandbox",
        share + "/zsh/site-functions/_rlctl",
        configured("mandir") + "/man8/rl-agent.8",
        share + "/rl-agent/rl-agent.schema.json"]
    units = configured("systemdsystemunitdir")
    if units:
        prefix = configured("prefix")
        wanted += [units + "/rl-agent.service",
                   prefix + "/lib/sysusers.d/rl-agent.conf",
                   prefix + "/lib/tmpfiles.d/rl-agent.conf"]
    for want in wanted:
        check(want in files, "no", want, "in", sorted(files))
    make("uninstall", root)
    same(installed(root), set())


if __name__ == "__main__":
    harness.run([value for name, value in list(globals().items())
                 if name.startswith("test_")])
