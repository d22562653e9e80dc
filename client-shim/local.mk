# client-shim/: the library that applications link, which needs libc alone,
# and rlctl, which is built on it.

lib_LTLIBRARIES += client-shim/librlshim.la
include_HEADERS += client-shim/rlshim.h

client_shim_librlshim_la_SOURCES = client-shim/rlshim.c client-shim/rlshim.h
client_shim_librlshim_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
# When these change, and how, is in rlshim.map.
client_shim_librlshim_la_LDFLAGS = $(RLA_LDFLAGS) -version-info 0:0:0
if VERSION_SCRIPT
client_shim_librlshim_la_LDFLAGS += \
	-Wl,--version-script=$(top_srcdir)/client-shim/rlshim.map
EXTRA_client_shim_librlshim_la_DEPENDENCIES = client-shim/rlshim.map
endif
EXTRA_DIST += client-shim/rlshim.map

pkgconfigdir = $(libdir)/pkgconfig
pkgconfig_DATA = client-shim/librlshim.pc

# Load on a running agent, for rlctl bench and tests/bench.
noinst_LIBRARIES += client-shim/libload.a
client_shim_libload_a_SOURCES = \
	client-shim/load.c client-shim/load.h \
	client-shim/load_checks.c \
	client-shim/load_frame.c client-shim/load_frame.h \
	client-shim/load_histogram.c client-shim/load_histogram.h \
	client-shim/load_lane.c client-shim/load_lane.h \
	client-shim/load_pace.c client-shim/load_pace.h \
	client-shim/load_private.h \
	client-shim/load_run.c

# -static leaves system libraries shared; it takes the shim into rlctl, which
# so works from any place, before and without ldconfig.
bin_PROGRAMS += rlctl
rlctl_SOURCES = \
	client-shim/rlctl.c client-shim/rlctl.h \
	client-shim/rlctl_acquire.c \
	client-shim/rlctl_agent.c \
	client-shim/rlctl_bench.c client-shim/rlctl_bench.h \
	client-shim/rlctl_bench_print.c \
	client-shim/rlctl_check.c \
	client-shim/rlctl_document.c \
	client-shim/rlctl_explain.c \
	client-shim/rlctl_health.c \
	client-shim/rlctl_key.c \
	client-shim/rlctl_limiters.c \
	client-shim/rlctl_metrics.c \
	client-shim/rlctl_options.c client-shim/rlctl_options.h \
	client-shim/rlctl_policy.c client-shim/rlctl_policy.h \
	client-shim/rlctl_policy_print.c \
	client-shim/rlctl_policy_read.c \
	client-shim/rlctl_print.c \
	client-shim/rlctl_rules.c client-shim/rlctl_rules.h \
	client-shim/rlctl_run.c \
	client-shim/rlctl_servers.c client-shim/rlctl_servers.h \
	client-shim/rlctl_servers_table.c \
	client-shim/rlctl_spec.c client-shim/rlctl_spec.h \
	client-shim/rlctl_table.c client-shim/rlctl_table.h \
	client-shim/rlctl_top.c client-shim/rlctl_top.h \
	client-shim/rlctl_top_draw.c client-shim/rlctl_top_draw.h \
	client-shim/rlctl_top_fetch.c \
	client-shim/rlctl_top_json.c \
	client-shim/rlctl_top_line.c \
	client-shim/rlctl_top_tables.c \
	client-shim/rlctl_top_term.c \
	client-shim/rlctl_top_view.c
rlctl_LDFLAGS = $(AM_LDFLAGS) -static
rlctl_LDADD = client-shim/libload.a client-shim/librlshim.la \
	daemon/core/libcore.a $(PROTO_LIBS) $(JANSSON_LIBS) $(CRYPTO_LIBS)
rlctl_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)

dist_doc_DATA += client-shim/example.c client-shim/example_event.c \
	client-shim/example_poll.c
