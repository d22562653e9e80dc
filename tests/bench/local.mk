# tests/bench: built and run by "make bench" alone.

EXTRA_PROGRAMS += tests/bench/bench
tests_bench_bench_SOURCES = \
	tests/bench/bench.c tests/bench/bench.h \
	tests/bench/direct.c tests/bench/direct.h \
	tests/bench/flow.c tests/bench/flow.h \
	tests/bench/lab.c tests/bench/lab.h \
	tests/bench/lab_programs.c \
	tests/bench/probe.c tests/bench/probe.h \
	tests/bench/report.c tests/bench/report.h \
	tests/bench/rows_allocations.c \
	tests/bench/rows_calls.c \
	tests/bench/rows_cpu.c \
	tests/bench/rows_dead.c \
	tests/bench/rows_latency.c \
	tests/bench/rows_memory.c
tests_bench_bench_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
tests_bench_bench_LDFLAGS = $(AM_LDFLAGS) -no-install
tests_bench_bench_LDADD = client-shim/librlshim.la $(PROTO_LIBS) \
	$(JANSSON_LIBS) $(CRYPTO_LIBS)

# An -rpath, of any place, is what makes libtool build a shared object.
EXTRA_LTLIBRARIES = tests/bench/countalloc.la
tests_bench_countalloc_la_SOURCES = tests/bench/countalloc.c
tests_bench_countalloc_la_LDFLAGS = $(RLA_LDFLAGS) \
	-module -shared -avoid-version -rpath /nowhere

EXTRA_DIST += tests/bench/README
CLEANFILES += bench-results.json tests/bench/bench$(EXEEXT) \
	tests/bench/countalloc.la

if INSTRUMENTED
bench:
	@echo 'bench: this build would measure its instruments' >&2; exit 1
else
bench: rl-agent$(EXEEXT) rl-sandbox$(EXEEXT) tests/bench/bench$(EXEEXT) \
		tests/bench/countalloc.la
	RLA_AGENT=./rl-agent RLA_SANDBOX=./rl-sandbox \
		RLA_COUNTALLOC='$(abs_builddir)/tests/bench/.libs/countalloc.so' \
		./tests/bench/bench bench-results.json
endif

.PHONY: bench
