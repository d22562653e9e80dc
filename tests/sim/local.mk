# tests/sim: the HA policy in a simulated world, against an oracle of its own.
# check_sim runs in "make check", soak by "make soak" alone.

tests_sim_libsim_a_SOURCES = \
	tests/sim/driver.c tests/sim/driver.h \
	tests/sim/driver_check.c \
	tests/sim/driver_op.c \
	tests/sim/driver_private.h \
	tests/sim/driver_queue.c \
	tests/sim/driver_read.c \
	tests/sim/generate.c tests/sim/generate.h \
	tests/sim/journal.c tests/sim/journal.h \
	tests/sim/network.c tests/sim/network.h \
	tests/sim/oracle.c tests/sim/oracle.h \
	tests/sim/reach.c tests/sim/reach.h \
	tests/sim/report.c tests/sim/report.h \
	tests/sim/scenario.c tests/sim/scenario.h \
	tests/sim/shrink.c \
	tests/sim/timetable.c tests/sim/timetable.h \
	tests/sim/transcript.c tests/sim/transcript.h \
	tests/sim/trial.c tests/sim/trial.h

EXTRA_LIBRARIES += tests/sim/libsim.a
EXTRA_PROGRAMS += tests/sim/check_sim tests/sim/soak
EXTRA_DIST += tests/sim/README
# Scripts of failures, where they were run.
CLEANFILES += sim-*.rpl tests/sim/soak$(EXEEXT) tests/sim/libsim.a

tests_sim_check_sim_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_sim_check_sim_LDADD = tests/sim/libsim.a tests/libtests.a \
	daemon/core/libcore.a $(CHECK_LIBS)
tests_sim_soak_LDADD = tests/sim/libsim.a daemon/core/libcore.a

if TESTS_ENABLED
check_LIBRARIES += tests/sim/libsim.a
check_PROGRAMS += tests/sim/check_sim
TESTS += tests/sim/check_sim
endif

# SOAK_ARGS: -n COUNT, -s SEED, -j JOBS; see tests/sim/README.
soak: tests/sim/soak$(EXEEXT)
	./tests/sim/soak$(EXEEXT) $(SOAK_ARGS)

.PHONY: soak
