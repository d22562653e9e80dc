# tests/bench: run by "make bench" alone. A system test shows that all of it
# works; check_report runs in "make check".

EXTRA_PROGRAMS += tests/bench/bench
tests_bench_bench_SOURCES = \
	tests/bench/bench.c tests/bench/bench.h \
	tests/bench/crypto.c tests/bench/crypto.h \
	tests/bench/lab.c tests/bench/lab.h \
	tests/bench/lab_programs.c \
	tests/bench/probe.c tests/bench/probe.h \
	tests/bench/redis.c tests/bench/redis.h \
	tests/bench/redis_load.c \
	tests/bench/report.c tests/bench/report.h \
	tests/bench/rows.c tests/bench/rows.h \
	tests/bench/rows_allocations.c \
	tests/bench/rows_calls.c \
	tests/bench/rows_cpu.c \
	tests/bench/rows_dead.c \
	tests/bench/rows_flood.c \
	tests/bench/rows_held.c \
	tests/bench/rows_keys.c \
	tests/bench/rows_latency.c \
	tests/bench/rows_memory.c \
	tests/bench/rows_redis.c \
	tests/bench/rows_servers.c \
	tests/bench/side.c tests/bench/side.h
tests_bench_bench_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
tests_bench_bench_LDFLAGS = $(AM_LDFLAGS) -no-install
tests_bench_bench_LDADD = client-shim/librlshim.la client-shim/libload.a \
	sandbox/libsandbox.a $(PROTO_LIBS) $(JANSSON_LIBS) $(CRYPTO_LIBS) -lm

# What runs beside the agent: a peer that answers at once, the least that a
# relay costs, and forged answers.
EXTRA_PROGRAMS += tests/bench/relay tests/bench/responder tests/bench/flood
BENCH_WIRE = tests/bench/wire.c tests/bench/wire.h
BENCH_WIRE_LIBS = sandbox/libsandbox.a $(PROTO_LIBS) $(CRYPTO_LIBS)
tests_bench_relay_SOURCES = $(BENCH_WIRE) \
	tests/bench/presealed.c tests/bench/presealed.h \
	tests/bench/relay.c tests/bench/relay.h \
	tests/bench/relay_conn.c \
	tests/bench/relay_slot.c
tests_bench_relay_LDADD = $(BENCH_WIRE_LIBS)
tests_bench_responder_SOURCES = $(BENCH_WIRE) \
	tests/bench/answer.c tests/bench/answer.h \
	tests/bench/hold.c tests/bench/hold.h \
	tests/bench/responder.c
tests_bench_responder_LDADD = $(BENCH_WIRE_LIBS)
tests_bench_flood_SOURCES = $(BENCH_WIRE) tests/bench/flood.c
tests_bench_flood_LDADD = $(BENCH_WIRE_LIBS)

# An -rpath, of any place, is what makes libtool build a shared object.
EXTRA_LTLIBRARIES = tests/bench/countalloc.la
tests_bench_countalloc_la_SOURCES = tests/bench/countalloc.c
tests_bench_countalloc_la_LDFLAGS = $(RLA_LDFLAGS) \
	-module -shared -avoid-version -rpath /nowhere

EXTRA_DIST += tests/bench/README
CLEANFILES += bench-results.json $(bench_programs) tests/bench/countalloc.la

# What "make bench" runs; BENCH_ARGS: see tests/bench/README.
bench_programs = tests/bench/bench$(EXEEXT) tests/bench/relay$(EXEEXT) \
	tests/bench/responder$(EXEEXT) tests/bench/flood$(EXEEXT)

EXTRA_PROGRAMS += tests/bench/check_report
tests_bench_check_report_SOURCES = tests/bench/check_report.c \
	tests/bench/report.c tests/bench/report.h
tests_bench_check_report_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) \
	$(JANSSON_CFLAGS)
tests_bench_check_report_LDADD = $(CHECK_LIBS) $(JANSSON_LIBS) -lm
if TESTS_ENABLED
check_PROGRAMS += tests/bench/check_report
TESTS += tests/bench/check_report
endif

if INSTRUMENTED
bench:
	@echo 'bench: this build would measure its instruments' >&2; exit 1
else
bench: rl-agent$(EXEEXT) $(bench_programs) tests/bench/countalloc.la
	./tests/bench/bench $(BENCH_ARGS) bench-results.json

# Of "make check-system".
system_programs = $(bench_programs) tests/bench/countalloc.la
endif

.PHONY: bench
