# tests/: unit (mirrors the sources), vectors, replay, fuzz corpora and lints
# run in "make check"; the system tests in "make check-system".

TEST_EXTENSIONS = .py .sh
TAP = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
LOG_DRIVER = $(TAP)
PY_LOG_DRIVER = $(TAP)
SH_LOG_DRIVER = $(TAP)
SH_LOG_COMPILER = $(SHELL)
PY_LOG_COMPILER = $(PYTHON3)

AM_TESTS_ENVIRONMENT = \
	top_builddir='$(abs_top_builddir)'; export top_builddir; \
	CC='$(CC)'; export CC; \
	RLA_AGENT='$(abs_top_builddir)/rl-agent'; export RLA_AGENT; \
	RLA_CTL='$(abs_top_builddir)/rlctl'; export RLA_CTL; \
	RLA_SANDBOX='$(abs_top_builddir)/rl-sandbox'; export RLA_SANDBOX; \
	RLA_HAMMER='$(abs_top_builddir)/tests/system/hammer'; \
	export RLA_HAMMER; \
	RLA_SHIMCLIENT='$(abs_top_builddir)/tests/system/shimclient'; \
	export RLA_SHIMCLIENT; \
	RLA_EXAMPLE='$(abs_top_builddir)/client-shim/example'; \
	export RLA_EXAMPLE; \
	PYTHONDONTWRITEBYTECODE=1; export PYTHONDONTWRITEBYTECODE; \
	ASAN_OPTIONS=detect_leaks=1:abort_on_error=0; export ASAN_OPTIONS; \
	UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1; \
	export UBSAN_OPTIONS;

# A test of one source file is a program of its name. All are linked with
# everything; an archive gives only what is asked for.
unit_tests = \
	tests/unit/check_activation \
	tests/unit/check_address \
	tests/unit/check_aesgcm \
	tests/unit/check_bech32 \
	tests/unit/check_blake2s \
	tests/unit/check_bufs \
	tests/unit/check_client \
	tests/unit/check_clock \
	tests/unit/check_config \
	tests/unit/check_config_equal \
	tests/unit/check_config_gateway \
	tests/unit/check_config_key \
	tests/unit/check_config_limiter \
	tests/unit/check_config_listener \
	tests/unit/check_config_load \
	tests/unit/check_config_policy \
	tests/unit/check_config_tenant \
	tests/unit/check_conn \
	tests/unit/check_conninput \
	tests/unit/check_connoutput \
	tests/unit/check_connwatch \
	tests/unit/check_counters \
	tests/unit/check_credential \
	tests/unit/check_decision \
	tests/unit/check_diagnosis \
	tests/unit/check_discovery \
	tests/unit/check_discovery_known \
	tests/unit/check_discovery_log \
	tests/unit/check_discovery_pace \
	tests/unit/check_discovery_round \
	tests/unit/check_dispatch \
	tests/unit/check_dispatch_check \
	tests/unit/check_dispatch_life \
	tests/unit/check_dispatch_limit \
	tests/unit/check_dispatch_local \
	tests/unit/check_dispatch_log \
	tests/unit/check_dispatch_rule \
	tests/unit/check_dns \
	tests/unit/check_dnsexchange \
	tests/unit/check_dnsfault \
	tests/unit/check_dnsscan \
	tests/unit/check_dnswire \
	tests/unit/check_endpoint \
	tests/unit/check_errorrate \
	tests/unit/check_errorrate_random \
	tests/unit/check_estimate \
	tests/unit/check_gateway \
	tests/unit/check_gateway_answer \
	tests/unit/check_gateway_fields \
	tests/unit/check_gateway_target \
	tests/unit/check_heap \
	tests/unit/check_histogram \
	tests/unit/check_http \
	tests/unit/check_id \
	tests/unit/check_ipc \
	tests/unit/check_ipc_enc \
	tests/unit/check_latency \
	tests/unit/check_limiters \
	tests/unit/check_limiters_reload \
	tests/unit/check_listener \
	tests/unit/check_listener_check \
	tests/unit/check_listener_place \
	tests/unit/check_load \
	tests/unit/check_load_checks \
	tests/unit/check_load_frame \
	tests/unit/check_load_histogram \
	tests/unit/check_load_lane \
	tests/unit/check_load_pace \
	tests/unit/check_load_rate \
	tests/unit/check_log \
	tests/unit/check_log_flood \
	tests/unit/check_log_format \
	tests/unit/check_loop \
	tests/unit/check_members \
	tests/unit/check_message \
	tests/unit/check_metrics \
	tests/unit/check_metrics_sources \
	tests/unit/check_metrics_write \
	tests/unit/check_nonce \
	tests/unit/check_notify \
	tests/unit/check_outq \
	tests/unit/check_pace \
	tests/unit/check_packet \
	tests/unit/check_pdu \
	tests/unit/check_peer \
	tests/unit/check_policy \
	tests/unit/check_provider \
	tests/unit/check_random \
	tests/unit/check_ratelimiter \
	tests/unit/check_ratelimiter_random \
	tests/unit/check_reader \
	tests/unit/check_registry \
	tests/unit/check_registry_random \
	tests/unit/check_reload \
	tests/unit/check_reload_tenants \
	tests/unit/check_resolvconf \
	tests/unit/check_rlshim \
	tests/unit/check_rlshim_adverse \
	tests/unit/check_rlshim_args \
	tests/unit/check_rlshim_async \
	tests/unit/check_rlshim_calls \
	tests/unit/check_rlshim_codec \
	tests/unit/check_rlshim_conn \
	tests/unit/check_rlshim_limit \
	tests/unit/check_rlshim_limit_async \
	tests/unit/check_rlshim_limit_wait \
	tests/unit/check_rlshim_process \
	tests/unit/check_rlshim_random \
	tests/unit/check_rlshim_resume \
	tests/unit/check_rlshim_work \
	tests/unit/check_rules \
	tests/unit/check_rules_adhoc \
	tests/unit/check_rules_ids \
	tests/unit/check_rules_name \
	tests/unit/check_sandbox_bucket \
	tests/unit/check_sandbox_command \
	tests/unit/check_sandbox_damage \
	tests/unit/check_sandbox_dedup \
	tests/unit/check_sandbox_dnsd \
	tests/unit/check_sandbox_engine \
	tests/unit/check_sandbox_expmap \
	tests/unit/check_sandbox_fault \
	tests/unit/check_sandbox_options \
	tests/unit/check_sandbox_server \
	tests/unit/check_sandbox_server_fault \
	tests/unit/check_sandbox_state \
	tests/unit/check_sandbox_tracker \
	tests/unit/check_sample \
	tests/unit/check_schedule \
	tests/unit/check_siphash \
	tests/unit/check_slab \
	tests/unit/check_status \
	tests/unit/check_status_limiters \
	tests/unit/check_status_policy \
	tests/unit/check_status_rules \
	tests/unit/check_status_top \
	tests/unit/check_suspect \
	tests/unit/check_table \
	tests/unit/check_tally \
	tests/unit/check_template \
	tests/unit/check_tenant \
	tests/unit/check_tenant_inherit \
	tests/unit/check_tenant_op \
	tests/unit/check_tenant_receive \
	tests/unit/check_tenant_send \
	tests/unit/check_topk \
	tests/unit/check_topk_random \
	tests/unit/check_transport \
	tests/unit/check_transport_load \
	tests/unit/check_udp \
	tests/unit/check_udp_group \
	tests/unit/check_udp_send \
	tests/unit/check_watch \
	tests/unit/check_watch_random \
	tests/unit/check_writer

vector_tests = \
	tests/vectors/check_vectors_core \
	tests/vectors/check_vectors_keys \
	tests/vectors/check_vectors_official \
	tests/vectors/check_vectors_wire

fuzz_tests = \
	tests/fuzz/fuzz_config \
	tests/fuzz/fuzz_datagram \
	tests/fuzz/fuzz_dns \
	tests/fuzz/fuzz_ipc \
	tests/fuzz/fuzz_key \
	tests/fuzz/fuzz_policy

replay_tests = \
	tests/replay/scripts \
	tests/replay/scripts-broken

lint_tests = \
	tests/lint/deploy.py \
	tests/lint/format \
	tests/lint/layers \
	tests/lint/manlint \
	tests/lint/rules \
	tests/lint/secrets \
	tests/lint/selftest \
	tests/lint/shell \
	tests/lint/sources

script_tests = \
	tests/unit/check_ratelimiter_model.py \
	tests/unit/check_schema.py \
	tests/unit/check_schema_keys.py \
	tests/unit/check_schema_random.py \
	tests/vectors/ipc_vectors.sh

# The longest first, as they are begun in this order; the rest by name.
system_tests = \
	tests/system/test_gateway_life.py \
	tests/system/test_operations.py \
	tests/system/test_overload.py \
	tests/system/test_dns.py \
	tests/system/test_dns_hostile.py \
	tests/system/test_reload_clients.py \
	tests/system/test_interrupted.py \
	tests/system/test_network.py \
	tests/system/test_reload.py \
	tests/system/test_life.py \
	tests/system/test_limiters.py \
	tests/system/test_peer.py \
	tests/system/test_nonces.py \
	tests/system/test_gateway_hostile.py \
	tests/system/test_agent.py \
	tests/system/test_async.py \
	tests/system/test_bench.py \
	tests/system/test_containers.py \
	tests/system/test_decisions.py \
	tests/system/test_diagnosis.py \
	tests/system/test_documents.py \
	tests/system/test_faults.py \
	tests/system/test_forward_auth.py \
	tests/system/test_frames.py \
	tests/system/test_gateway.py \
	tests/system/test_hostile_reload.py \
	tests/system/test_install.py \
	tests/system/test_listeners.py \
	tests/system/test_metrics.py \
	tests/system/test_nginx.py \
	tests/system/test_peer_vectors.py \
	tests/system/test_policy.py \
	tests/system/test_restart.py \
	tests/system/test_rlctl_admin.py \
	tests/system/test_rlctl_bench.py \
	tests/system/test_rlctl_limit.py \
	tests/system/test_rlctl_run.py \
	tests/system/test_rlctl_top.py \
	tests/system/test_systemd.py \
	tests/system/test_systemd_notify.py

# Of scripts, units, examples and the tests' own tools, where instruments find
# nothing that the others do not.
plain_system_tests = \
	tests/system/test_caddy.py \
	tests/system/test_completion.py \
	tests/system/test_deploy.py \
	tests/system/test_haproxy.py \
	tests/system/test_overlay.py \
	tests/system/test_systemd_units.py

if !INSTRUMENTED
system_tests += $(plain_system_tests)
endif

# What shows whether the distribution lacks something, without what is slow:
# "make distcheck TESTS='$(distcheck_tests)'".
distcheck_tests = tests/unit/check_schema.py $(unit_tests) $(vector_tests) \
	$(replay_tests) $(world_tests) $(fuzz_tests)

include $(srcdir)/tests/mutation/local.mk

# The core's archive calls its instruments when it is instrumented.
if !INSTRUMENTED
lint_tests += tests/lint/purity
endif
if VERSION_SCRIPT
lint_tests += tests/lint/symbols
endif

EXTRA_DIST += $(lint_tests) $(replay_tests) $(script_tests) $(system_tests) \
	$(plain_system_tests) \
	tests/fuzz/config.dict \
	tests/fuzz/corpus \
	tests/data \
	tests/fuzz/make-corpus.py \
	tests/lint/purity \
	tests/lint/purity.allow \
	tests/lint/symbols \
	tests/replay/README \
	tests/replay/RULES \
	tests/replay/broken \
	tests/system/documents.py \
	tests/system/completion.zsh \
	tests/system/fake_agent.py \
	tests/system/fake_confine.py \
	tests/system/fake_control.py \
	tests/system/fake_journal.py \
	tests/system/fake_processes.py \
	tests/system/fake_service.py \
	tests/system/fake_socket.py \
	tests/system/fake_spawn.py \
	tests/system/fake_systemctl.py \
	tests/system/fake_systemd.py \
	tests/system/fake_units.py \
	tests/system/exposition.py \
	tests/system/harness.py \
	tests/system/hostile_dns.py \
	tests/system/load.py \
	tests/system/manager.py \
	tests/system/nameservers.py \
	tests/system/netlab.py \
	tests/system/overlay.py \
	tests/system/overload_peers.py \
	tests/system/peer.py \
	tests/system/pipeline.py \
	tests/system/proxies.py \
	tests/system/reloading.py \
	tests/system/shiftclock.c \
	tests/system/wire.py \
	tests/system/web.py \
	tests/unit/GuavaModel.java \
	tests/unit/ratelimiter_tools.py \
	tests/unit/schema_tools.py \
	tests/vectors/make_ipc.py \
	tests/vectors/official-v1.json \
	tests/vectors/wire.json
EXTRA_DIST += $(replay_scripts)

replay_scripts = \
	tests/replay/adaptive-all-suspected.rpl \
	tests/replay/adaptive-later-rounds.rpl \
	tests/replay/adaptive-miss-at-the-preference-deadline.rpl \
	tests/replay/adaptive-miss-is-told-after-the-end.rpl \
	tests/replay/adaptive-miss-names-the-preferred.rpl \
	tests/replay/adaptive-miss-only-once.rpl \
	tests/replay/adaptive-no-miss-when-answered.rpl \
	tests/replay/adaptive-no-miss-when-off.rpl \
	tests/replay/adaptive-no-miss-when-over-before.rpl \
	tests/replay/adaptive-older-suspect-decides-at-once.rpl \
	tests/replay/adaptive-preferred-decides-at-once.rpl \
	tests/replay/adaptive-resumed.rpl \
	tests/replay/adaptive-with-first-round.rpl \
	tests/replay/callers-deadline.rpl \
	tests/replay/deadline-edges.rpl \
	tests/replay/deadline-last-round-without-final.rpl \
	tests/replay/deadline-last-round.rpl \
	tests/replay/deadline-preference.rpl \
	tests/replay/deadline-replay.rpl \
	tests/replay/default-first-two-deadlines.rpl \
	tests/replay/default-oldest-in-any-phase.rpl \
	tests/replay/default-schedule.rpl \
	tests/replay/delivery-changes-nothing.rpl \
	tests/replay/delivery-ends-at-the-horizon.rpl \
	tests/replay/delivery-is-outcome-independent.rpl \
	tests/replay/delivery-off-or-needless.rpl \
	tests/replay/delivery-only-after-selection.rpl \
	tests/replay/delivery-to-the-missing.rpl \
	tests/replay/error-semantic-denied.rpl \
	tests/replay/error-timeout-each-kind.rpl \
	tests/replay/error-transport-failed-sends.rpl \
	tests/replay/final-after-preference.rpl \
	tests/replay/final-end-deadline.rpl \
	tests/replay/final-preference-deadline.rpl \
	tests/replay/final-ranks-and-sends-nothing.rpl \
	tests/replay/first-round-preset.rpl \
	tests/replay/order-cancel-before-late-response.rpl \
	tests/replay/order-deadline-disarmed.rpl \
	tests/replay/order-exactly-once.rpl \
	tests/replay/order-rearm-earlier.rpl \
	tests/replay/order-terminal-before-completion.rpl \
	tests/replay/order-validate-first.rpl \
	tests/replay/outcome-allow-and-deny-alike.rpl \
	tests/replay/outcome-never-changes.rpl \
	tests/replay/rate-cancellation.rpl \
	tests/replay/rate-created-api-call.rpl \
	tests/replay/rate-created-invalid-input.rpl \
	tests/replay/rate-final-deadline.rpl \
	tests/replay/rate-final-valid-response.rpl \
	tests/replay/rate-prepared-initial-send.rpl \
	tests/replay/rate-prepared-no-endpoint.rpl \
	tests/replay/rate-round-invalid-datagram.rpl \
	tests/replay/rate-round-last-replay-deadline.rpl \
	tests/replay/rate-round-preference-with-candidate.rpl \
	tests/replay/rate-round-preference-without-candidate.rpl \
	tests/replay/rate-round-replay-deadline.rpl \
	tests/replay/rate-round-valid-response.rpl \
	tests/replay/ready-batch-before-deadline.rpl \
	tests/replay/receive-after-preference-decides.rpl \
	tests/replay/receive-duplicate.rpl \
	tests/replay/receive-older-replaces-candidate.rpl \
	tests/replay/receive-oldest-decides-at-once.rpl \
	tests/replay/resumed-in-a-round.rpl \
	tests/replay/resumed-late.rpl \
	tests/replay/schedule-final-interval.rpl \
	tests/replay/schedule-gap-exponential.rpl \
	tests/replay/schedule-gap-fixed.rpl \
	tests/replay/schedule-gap-linear.rpl \
	tests/replay/schedule-horizon-is-the-ttl.rpl \
	tests/replay/schedule-no-replay-at-the-horizon.rpl \
	tests/replay/schedule-preference-exponential.rpl \
	tests/replay/schedule-preference-fixed.rpl \
	tests/replay/schedule-preference-is-independent.rpl \
	tests/replay/schedule-preference-linear.rpl \
	tests/replay/schedule-preference-within-the-gap.rpl \
	tests/replay/schedule-zero.rpl \
	tests/replay/stall-keeps-the-candidate.rpl \
	tests/replay/stall-skips-rounds.rpl \
	tests/replay/stall-with-answers.rpl \
	tests/replay/start-later-round-to-the-missing.rpl \
	tests/replay/start-round-zero-to-all.rpl \
	tests/replay/state-age-then-lower-id.rpl \
	tests/replay/state-candidate.rpl \
	tests/replay/state-responding-servers.rpl \
	tests/replay/state-round-deadlines.rpl \
	tests/replay/state-snapshot-and-ranking.rpl

# What several of them share.
tests_libtests_a_SOURCES = \
	tests/replay/script.c tests/replay/script.h \
	tests/replay/script_private.h \
	tests/replay/script_scene.c tests/replay/script_words.c \
	tests/unit/agent_fixture.h \
	tests/unit/allocations.h \
	tests/unit/config_edit.h \
	tests/unit/config_fixture.h \
	tests/unit/conn_fixture.h \
	tests/unit/discovery_fixture.h \
	tests/unit/dns_fixture.h \
	tests/unit/dnsreply.c tests/unit/dnsreply.h \
	tests/unit/dnswire_fixture.h \
	tests/unit/fake_agent.c tests/unit/fake_agent.h \
	tests/unit/fake_server.c tests/unit/fake_server.h \
	tests/unit/fakedns.c tests/unit/fakedns.h \
	tests/unit/harness.h \
	tests/unit/ipc_peer.c tests/unit/ipc_peer.h \
	tests/unit/ipc_vectors.h \
	tests/unit/limiters_fixture.h \
	tests/unit/listener_fixture.h \
	tests/unit/load_fixture.h \
	tests/unit/policy_oracle.c tests/unit/policy_oracle.h \
	tests/unit/policy_oracle_run.c \
	tests/unit/reload_fixture.h \
	tests/unit/rlshim_fixture.h \
	tests/unit/rlshim_limit.h \
	tests/unit/sandbox_fixture.h \
	tests/unit/tenant_fixture.h \
	tests/unit/transport_fixture.h \
	tests/unit/udp_fixture.h \
	tests/vectors/vectors.c tests/vectors/vectors.h
tests_libtests_a_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JANSSON_CFLAGS)

# The shim's own tests have it in them, not the shared library.
tests_libshim_a_SOURCES = client-shim/rlshim.c

# The fuzz targets' main() where libFuzzer does not bring its own: it runs the
# corpus of tests/fuzz/corpus.
tests_fuzz_libreplay_a_SOURCES = tests/fuzz/replay_main.c
if !FUZZER
REPLAY_LIB = tests/fuzz/libreplay.a
endif

LDADD = tests/libtests.a tests/libshim.a client-shim/libload.a $(REPLAY_LIB) \
	sandbox/libsandbox.a $(DAEMON_LIBS) $(CHECK_LIBS) $(DAEMON_EXT_LIBS)

# libFuzzer's runtime is linked into these alone.
tests_fuzz_fuzz_config_LDFLAGS = $(AM_LDFLAGS) $(RLA_FUZZ_LDFLAGS)
tests_fuzz_fuzz_datagram_LDFLAGS = $(AM_LDFLAGS) $(RLA_FUZZ_LDFLAGS)
tests_fuzz_fuzz_dns_LDFLAGS = $(AM_LDFLAGS) $(RLA_FUZZ_LDFLAGS)
tests_fuzz_fuzz_ipc_LDFLAGS = $(AM_LDFLAGS) $(RLA_FUZZ_LDFLAGS)
tests_fuzz_fuzz_key_LDFLAGS = $(AM_LDFLAGS) $(RLA_FUZZ_LDFLAGS)
tests_fuzz_fuzz_policy_LDFLAGS = $(AM_LDFLAGS) $(RLA_FUZZ_LDFLAGS)

# Load configurations and drive a limiter, for hands and for the Python tests.
probes = tests/unit/config_probe tests/unit/ratelimiter_probe

EXTRA_PROGRAMS = $(unit_tests) $(vector_tests) $(fuzz_tests) $(probes) \
	tests/replay/replay
EXTRA_LIBRARIES = tests/libtests.a tests/libshim.a tests/fuzz/libreplay.a

if TESTS_ENABLED
check_LIBRARIES += tests/libtests.a tests/libshim.a $(REPLAY_LIB)
check_PROGRAMS += $(unit_tests) $(vector_tests) $(probes) \
	tests/replay/replay
# Scripts take longest.
TESTS += $(script_tests) $(unit_tests) $(vector_tests) $(replay_tests)
if FUZZER
noinst_PROGRAMS += $(fuzz_tests)
else
check_PROGRAMS += $(fuzz_tests)
TESTS += $(fuzz_tests)
endif
else
check-local:
	@echo '*** configured with --disable-tests: only the lints have run'
endif

TESTS += $(lint_tests)

# The clients of the system tests, on the shared library.
check_PROGRAMS += tests/system/hammer tests/system/shimclient \
	client-shim/example client-shim/example_event \
	client-shim/example_poll
tests_system_hammer_LDADD = client-shim/librlshim.la
tests_system_hammer_CFLAGS = $(AM_CFLAGS) -pthread
tests_system_hammer_LDFLAGS = $(AM_LDFLAGS) -no-install -pthread
tests_system_shimclient_LDADD = client-shim/librlshim.la
tests_system_shimclient_CFLAGS = $(AM_CFLAGS) -pthread
tests_system_shimclient_LDFLAGS = $(AM_LDFLAGS) -no-install -pthread
client_shim_example_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/client-shim
client_shim_example_LDADD = client-shim/librlshim.la
client_shim_example_LDFLAGS = $(AM_LDFLAGS) -no-install
client_shim_example_event_CPPFLAGS = $(client_shim_example_CPPFLAGS)
client_shim_example_event_CFLAGS = $(AM_CFLAGS) $(EVENT_CFLAGS)
client_shim_example_event_LDADD = client-shim/librlshim.la $(EVENT_LIBS)
client_shim_example_event_LDFLAGS = $(AM_LDFLAGS) -no-install
client_shim_example_poll_CPPFLAGS = $(client_shim_example_CPPFLAGS)
client_shim_example_poll_LDADD = client-shim/librlshim.la
client_shim_example_poll_LDFLAGS = $(AM_LDFLAGS) -no-install

check-system: all $(check_PROGRAMS) $(system_programs)
	@test '$(PYTHON3)' != no || \
		{ echo 'check-system: needs Python 3' >&2; exit 1; }
	$(MAKE) $(AM_MAKEFLAGS) check-TESTS TESTS='$(system_tests)' \
		TEST_SUITE_LOG=test-suite-system.log

.PHONY: check-system

include $(srcdir)/tests/bench/local.mk
include $(srcdir)/tests/containers/local.mk
include $(srcdir)/tests/sim/local.mk
include $(srcdir)/tests/world/local.mk
include $(srcdir)/tests/packages/local.mk
