# tests/world: a tenant in virtual time. It is linked with everything of the
# daemon but io/, whose loop, sockets and DNS are fakes here: an object of io/
# that gets in after all does not link, as libevent and ldns are not given.

tests_world_world_SOURCES = \
	tests/world/answer.c tests/world/answer.h \
	tests/world/expect.c tests/world/expect.h \
	tests/world/expect_op.c \
	tests/world/expect_private.h \
	tests/world/fake_dns.c tests/world/fake_dns.h \
	tests/world/fake_log.c tests/world/fake_log.h \
	tests/world/fake_loop.c tests/world/fake_loop.h \
	tests/world/fake_udp.c tests/world/fake_udp.h \
	tests/world/scene.c tests/world/scene.h \
	tests/world/scene_setup.c \
	tests/world/scene_tenant.c \
	tests/world/scene_watch.c \
	tests/world/script.c tests/world/script.h \
	tests/world/words.c tests/world/words.h \
	tests/world/world.c
tests_world_world_LDADD = daemon/libdaemon.a daemon/core/libcore.a \
	$(PROTO_LIBS) $(CRYPTO_LIBS)

world_scripts = \
	tests/world/deadline-of-the-caller.wrl \
	tests/world/error-authentication-cookie.wrl \
	tests/world/error-authentication-none.wrl \
	tests/world/error-authentication.wrl \
	tests/world/error-cancellation-close.wrl \
	tests/world/error-cancellation.wrl \
	tests/world/error-correlation.wrl \
	tests/world/error-discovery-unusable-target.wrl \
	tests/world/error-discovery.wrl \
	tests/world/error-semantic.wrl \
	tests/world/error-timeout.wrl \
	tests/world/error-transport.wrl \
	tests/world/error-validation.wrl \
	tests/world/late-after-its-round.wrl \
	tests/world/late-answers.wrl \
	tests/world/late-duplicates-hide-nobody.wrl \
	tests/world/late-nothing-is-owed.wrl \
	tests/world/log-paced.wrl \
	tests/world/log-silence.wrl \
	tests/world/log-suspect.wrl \
	tests/world/members-change-addresses.wrl \
	tests/world/members-change.wrl \
	tests/world/order-cancelled-is-deaf.wrl \
	tests/world/order-completion-is-terminal.wrl \
	tests/world/order-rearm-earlier.wrl \
	tests/world/order-rebind-not-reentrant.wrl \
	tests/world/order-report-after-completion.wrl \
	tests/world/order-validate-before-state.wrl \
	tests/world/port-change-at-close.wrl \
	tests/world/port-change-blocked-send.wrl \
	tests/world/port-change-draining.wrl \
	tests/world/port-change-failed.wrl \
	tests/world/port-change-invalid.wrl \
	tests/world/port-change-late-server.wrl \
	tests/world/port-change-many.wrl \
	tests/world/port-change-never-content.wrl \
	tests/world/port-change-once.wrl \
	tests/world/port-change-one-family-fails.wrl \
	tests/world/port-change-other-server.wrl \
	tests/world/port-change.wrl \
	tests/world/ready-silence.wrl \
	tests/world/receive-batch-before-deadline.wrl \
	tests/world/receive-duplicate.wrl \
	tests/world/receive-flood-starves-nothing.wrl \
	tests/world/receive-ignores-invalid.wrl \
	tests/world/receive-validates-first.wrl \
	tests/world/reload-again-and-again.wrl \
	tests/world/reload-dns-no-more.wrl \
	tests/world/reload-ends-under-the-old-key.wrl \
	tests/world/reload-heard.wrl \
	tests/world/reload-idle-blocked.wrl \
	tests/world/reload-idle-early.wrl \
	tests/world/reload-idle.wrl \
	tests/world/reload-known-at-once.wrl \
	tests/world/reload-of-an-unready-one.wrl \
	tests/world/reload-old-answer-after-a-while.wrl \
	tests/world/reload-port-change.wrl \
	tests/world/reload-round-empty.wrl \
	tests/world/reload-round-fails.wrl \
	tests/world/reload-round-finds-others.wrl \
	tests/world/reload-round-nodata.wrl \
	tests/world/reload-server-line.wrl \
	tests/world/reload-silence.wrl \
	tests/world/reload-static.wrl \
	tests/world/reload-suspects.wrl \
	tests/world/report-created.wrl \
	tests/world/report-invalid.wrl \
	tests/world/report-later-events.wrl \
	tests/world/report-no-endpoint.wrl \
	tests/world/report-no-socket-at-all.wrl \
	tests/world/report-no-socket.wrl \
	tests/world/report-transmitted.wrl \
	tests/world/resumed.wrl \
	tests/world/state-of-the-tenant.wrl \
	tests/world/suspect-late-answer.wrl \
	tests/world/suspect-off.wrl \
	tests/world/suspect.wrl \
	tests/world/wire-address-rotation.wrl \
	tests/world/wire-blocked-cancelled.wrl \
	tests/world/wire-blocked-deadline.wrl \
	tests/world/wire-blocked-rounds.wrl \
	tests/world/wire-clock.wrl \
	tests/world/wire-dedup-deadline.wrl \
	tests/world/wire-empty-answer.wrl \
	tests/world/wire-first-round.wrl \
	tests/world/wire-guard-only.wrl \
	tests/world/wire-ignored-fields.wrl \
	tests/world/wire-label.wrl \
	tests/world/wire-later-round-fails.wrl \
	tests/world/wire-no-retry-after-an-answer.wrl \
	tests/world/wire-no-server.wrl \
	tests/world/wire-one-send-fails.wrl \
	tests/world/wire-quota-breach.wrl \
	tests/world/wire-refused-address-comes-back.wrl \
	tests/world/wire-refused-by-icmp.wrl \
	tests/world/wire-replay-bytes.wrl \
	tests/world/wire-response-form.wrl \
	tests/world/wire-round-zero-fails.wrl \
	tests/world/wire-send-error-next-address.wrl \
	tests/world/wire-serve-stale.wrl \
	tests/world/wire-short-block.wrl \
	tests/world/wire-silent-address.wrl \
	tests/world/wire-source-mismatch.wrl \
	tests/world/wire-stall.wrl \
	tests/world/wire-strict-source.wrl

world_tests = tests/world/scripts tests/world/scripts-broken

EXTRA_PROGRAMS += tests/world/world
EXTRA_DIST += $(world_scripts) $(world_tests) \
	tests/world/README \
	tests/world/broken

if TESTS_ENABLED
check_PROGRAMS += tests/world/world
TESTS += $(world_tests)
endif
