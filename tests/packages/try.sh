#!/bin/sh
# Builds the Debian packages of a fresh copy of the source, has lintian look at
# them, makes a second version of each, and lets "inside" try them in a minimal
# system. Needs root, and apt's network. Leaves nothing behind: all is in a
# temporary folder, and whatever runs in the system is in namespaces that end
# with it. Prints TAP. RLA_KEEP=1 keeps the folder with the packages and logs;
# RLA_MIRROR is another mirror than mmdebstrap's own.
set -eu
export LC_ALL=C.UTF-8
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)

skip() {
	echo "1..0 # SKIP $*"
	exit 0
}
for tool in dpkg-buildpackage dh mmdebstrap unshare setpriv; do
	command -v "$tool" >/dev/null || skip "no $tool"
done
[ "$(id -u)" = 0 ] || skip "not root"
[ -r /etc/debian_version ] || skip "not Debian"
# shellcheck source=/dev/null
release=$(. /etc/os-release && echo "${VERSION_CODENAME-}")
[ -n "$release" ] || skip "a release without a name"
missing=$(cd "$top" && dpkg-checkbuilddeps 2>&1) || skip "$missing"

tmp=$(mktemp -d "${TMPDIR:-/tmp}/rla-packages.XXXXXX")
making=
looking=
# shellcheck disable=SC2317 # by a trap
finish() {
	status=$?
	trap - EXIT
	for pid in $making $looking; do
		kill "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	if [ "${RLA_KEEP:-0}" = 1 ]; then
		echo "# $tmp"
	else
		rm -rf --one-file-system "$tmp"
	fi
	exit "$status"
}
trap finish EXIT
trap 'exit 1' HUP INT TERM

# "inside" has the tests that follow.
number=0
failed=0
report() { # STATUS NAME LOG
	number=$((number + 1))
	if [ "$1" = 0 ]; then
		echo "ok $number - $2"
	else
		tail -n 40 "$3" | sed 's/^/# /'
		echo "not ok $number - $2"
		failed=1
	fi
}
give_up() {
	echo "1..$number"
	exit 1
}

copy_source() {
	mkdir "$tmp/build" "$tmp/build/source"
	if [ -e "$top/.git" ] && (cd "$top" && git ls-files) >/dev/null 2>&1
	then
		(cd "$top" && git ls-files -z --cached --others \
			--exclude-standard) >"$tmp/list"
	else
		# A tarball: all but what a build makes in it.
		(cd "$top" && find . -type f ! -path './build*/*' ! -name '*.o' \
			! -name '*.a' ! -name '*.log' -print0) >"$tmp/list"
	fi
	tar -C "$top" --ignore-failed-read --null -T "$tmp/list" -cf - \
		2>"$tmp/copy.log" | tar -C "$tmp/build/source" -xf -
}

# The tests of the sources have their own place.
build() {
	cd "$tmp/build/source"
	unset MAKEFLAGS MFLAGS MAKELEVEL CC CFLAGS CPPFLAGS LDFLAGS srcdir \
		top_builddir TESTS
	DEB_BUILD_OPTIONS="nocheck parallel=$(nproc)" dpkg-buildpackage \
		-us -uc -b
}

# A higher version of every package; a real one is built the same way.
next_version() {
	mkdir "$tmp/next"
	for package in "$tmp"/build/*.deb; do
		case $package in *-dbgsym_*) continue ;; esac
		rm -rf "$tmp/repack"
		dpkg-deb -R "$package" "$tmp/repack"
		version=$(dpkg-deb -f "$package" Version)
		sed -i -e "s/^Version: .*/&+next/" \
			-e "s/(= $version)/(= $version+next)/g" \
			"$tmp/repack/DEBIAN/control"
		dpkg-deb -Zgzip -z1 -b "$tmp/repack" "$tmp/next" || return
	done
}

# A minimal Debian of this release, meanwhile.
mmdebstrap --quiet --mode=root --variant=apt --include=systemd \
	--skip=cleanup/apt "$release" "$tmp/root" ${RLA_MIRROR+"$RLA_MIRROR"} \
	>"$tmp/root.log" 2>&1 &
making=$!

copy_source
(build) >"$tmp/build.log" 2>&1 && status=0 || status=1
report "$status" "dpkg-buildpackage builds the packages" "$tmp/build.log"
[ "$status" = 0 ] || give_up

if command -v lintian >/dev/null; then
	lintian --allow-root --fail-on error,warning "$tmp"/build/*.changes \
		>"$tmp/lintian.log" 2>&1 &
	looking=$!
fi
next_version >"$tmp/next.log" 2>&1 && status=0 || status=1
report "$status" "they have a next version" "$tmp/next.log"
wait "$making" && status=0 || status=1
making=
report "$status" "a minimal $release is there" "$tmp/root.log"
[ "$status" = 0 ] || give_up

mkdir "$tmp/root/packages" "$tmp/root/next" "$tmp/root/tests"
cp "$tmp"/build/*.deb "$tmp/root/packages"
rm -f "$tmp"/root/packages/*-dbgsym_*
mv "$tmp"/next/*.deb "$tmp/root/next"
cp "$top"/debian/tests/* "$tmp/root/tests"
cp /etc/resolv.conf "$tmp/root/etc/resolv.conf"
unshare --mount --pid --fork --kill-child "$here/inside" "$tmp/root" \
	$((number + 1)) >"$tmp/inside.tap" || failed=1
cat "$tmp/inside.tap"
number=$(($(grep -cE '^(not )?ok ' "$tmp/inside.tap") + number))

if [ -n "$looking" ]; then
	wait "$looking" && status=0 || status=1
	looking=
	report "$status" "lintian has neither errors nor warnings" \
		"$tmp/lintian.log"
else
	number=$((number + 1))
	echo "ok $number - lintian # SKIP no lintian"
fi
echo "1..$number"
exit $failed
