# sandbox/: an r-server for development and tests. It uses proto and nothing
# else of the project: it is an independent peer.

noinst_LIBRARIES += sandbox/libsandbox.a

sandbox_libsandbox_a_SOURCES = \
	sandbox/addr.c sandbox/addr.h \
	sandbox/bucket.c sandbox/bucket.h \
	sandbox/buckets.c sandbox/buckets.h \
	sandbox/cluster.c sandbox/cluster.h \
	sandbox/command.c sandbox/command.h \
	sandbox/counters.c sandbox/counters.h \
	sandbox/damage.c sandbox/damage.h \
	sandbox/dedup.c sandbox/dedup.h \
	sandbox/dnsd.c sandbox/dnsd.h \
	sandbox/dnsio.c sandbox/dnsio.h \
	sandbox/dnsq.c sandbox/dnsq.h \
	sandbox/engine.c sandbox/engine.h \
	sandbox/events.c sandbox/events.h \
	sandbox/expmap.c sandbox/expmap.h \
	sandbox/fault.c sandbox/fault.h \
	sandbox/keygen.c sandbox/keygen.h \
	sandbox/keyring.c sandbox/keyring.h \
	sandbox/labels.c sandbox/labels.h \
	sandbox/number.c sandbox/number.h \
	sandbox/options.c sandbox/options.h \
	sandbox/prng.c sandbox/prng.h \
	sandbox/sandbox.c sandbox/sandbox.h \
	sandbox/server.c sandbox/server.h \
	sandbox/state.c sandbox/state.h \
	sandbox/tracker.c sandbox/tracker.h \
	sandbox/trackers.c sandbox/trackers.h
sandbox_libsandbox_a_CFLAGS = $(AM_CFLAGS) $(EVENT_CFLAGS) $(LDNS_CFLAGS) \
	$(JANSSON_CFLAGS)

bin_PROGRAMS += rl-sandbox
rl_sandbox_SOURCES = sandbox/main.c
rl_sandbox_LDADD = sandbox/libsandbox.a $(PROTO_LIBS) \
	$(EVENT_LIBS) $(LDNS_LIBS) $(JANSSON_LIBS) $(CRYPTO_LIBS)
