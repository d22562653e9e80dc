# tests/containers/: the images of deploy/, built and run by an engine. It takes
# root, Debian's packages and some minutes, so "make check" is without it.

EXTRA_DIST += \
	tests/containers/engine.py \
	tests/containers/pod.py \
	tests/containers/run.py

check-containers:
	@test '$(PYTHON3)' != no || \
		{ echo 'check-containers: needs Python 3' >&2; exit 1; }
	$(MAKE) $(AM_MAKEFLAGS) check-TESTS TESTS=tests/containers/run.py \
		TEST_SUITE_LOG=test-suite-containers.log

.PHONY: check-containers
