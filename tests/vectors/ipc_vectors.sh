#!/bin/sh
# The committed proto/vectors/ipc.json must be what make_ipc.py prints: a
# vector edited by hand, or a generator changed alone, fails here.
srcdir=${srcdir:-.}

if ! command -v python3 >/dev/null 2>&1; then
	echo "1..0 # SKIP no python3"
	exit 0
fi
echo "1..1"
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
if PYTHONDONTWRITEBYTECODE=1 python3 "$srcdir/tests/vectors/make_ipc.py" \
    >"$work/ipc.json" 2>"$work/errors" &&
    cmp "$work/ipc.json" "$srcdir/proto/vectors/ipc.json" >"$work/diff" 2>&1
then
	echo "ok 1 - ipc.json is what make_ipc.py prints"
	exit 0
fi
sed 's/^/# /' "$work/errors" "$work/diff"
echo "not ok 1 - ipc.json is what make_ipc.py prints"
exit 1
