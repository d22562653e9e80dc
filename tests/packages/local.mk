# tests/packages/: builds the Debian packages, and installs, uses, upgrades and
# purges them in a root of its own. Needs root, dpkg-dev, debhelper and
# mmdebstrap, which fetches a minimal system: "make check-packages".

EXTRA_DIST += tests/packages/inside tests/packages/try.sh

check-packages:
	$(MAKE) $(AM_MAKEFLAGS) check-TESTS TESTS=tests/packages/try.sh \
		TEST_SUITE_LOG=test-suite-packages.log

.PHONY: check-packages
