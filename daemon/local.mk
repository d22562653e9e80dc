# daemon/: core is pure, io alone knows libevent and ldns, the rest joins them.
# libdaemon is everything but main.c, so that tests can link the daemon.

noinst_LIBRARIES += daemon/core/libcore.a daemon/io/libio.a daemon/libdaemon.a

daemon_core_libcore_a_SOURCES = \
	daemon/core/container.h \
	daemon/core/counters.c daemon/core/counters.h \
	daemon/core/endpoint.c daemon/core/endpoint.h \
	daemon/core/errorrate.c daemon/core/errorrate.h \
	daemon/core/estimate.c daemon/core/estimate.h \
	daemon/core/heap.c daemon/core/heap.h \
	daemon/core/histogram.c daemon/core/histogram.h \
	daemon/core/latency.c daemon/core/latency.h \
	daemon/core/members.c daemon/core/members.h \
	daemon/core/metrics.c daemon/core/metrics.h \
	daemon/core/pace.c daemon/core/pace.h \
	daemon/core/peer.c daemon/core/peer.h \
	daemon/core/policy.c daemon/core/policy.h \
	daemon/core/policy_op.c \
	daemon/core/ratelimiter.c daemon/core/ratelimiter.h \
	daemon/core/registry.c daemon/core/registry.h \
	daemon/core/sample.c daemon/core/sample.h \
	daemon/core/schedule.c daemon/core/schedule.h \
	daemon/core/siphash.c daemon/core/siphash.h \
	daemon/core/slab.c daemon/core/slab.h \
	daemon/core/suspect.c daemon/core/suspect.h \
	daemon/core/table.c daemon/core/table.h \
	daemon/core/topk.c daemon/core/topk.h

daemon_io_libio_a_SOURCES = \
	daemon/io/activation.c daemon/io/activation.h \
	daemon/io/address.c daemon/io/address.h \
	daemon/io/bufs.c daemon/io/bufs.h \
	daemon/io/conn.c daemon/io/conn.h \
	daemon/io/conninput.c daemon/io/conninput.h \
	daemon/io/connline.c daemon/io/connline.h \
	daemon/io/connoutput.c daemon/io/connoutput.h \
	daemon/io/connpool.c daemon/io/connpool.h \
	daemon/io/connwatch.c daemon/io/connwatch.h \
	daemon/io/dns.c daemon/io/dns.h \
	daemon/io/dnsexchange.c daemon/io/dnsexchange.h \
	daemon/io/dnsextract.c daemon/io/dnsextract.h \
	daemon/io/dnsfault.c daemon/io/dnsfault.h \
	daemon/io/dnsscan.c daemon/io/dnsscan.h \
	daemon/io/dnswire.c daemon/io/dnswire.h \
	daemon/io/http.c daemon/io/http.h \
	daemon/io/http_head.c \
	daemon/io/http_linger.c \
	daemon/io/http_private.h \
	daemon/io/http_request.c \
	daemon/io/listener.c daemon/io/listener.h \
	daemon/io/listener_file.c daemon/io/listener_private.h \
	daemon/io/listener_check.c \
	daemon/io/loop.c daemon/io/loop.h \
	daemon/io/loop_private.h \
	daemon/io/loop_timer.c \
	daemon/io/notify.c daemon/io/notify.h \
	daemon/io/outq.c daemon/io/outq.h \
	daemon/io/resolvconf.c daemon/io/resolvconf.h \
	daemon/io/udp.c daemon/io/udp.h \
	daemon/io/udp_group.c \
	daemon/io/udp_private.h \
	daemon/io/udp_receive.c \
	daemon/io/udp_send.c \
	daemon/io/watch.c daemon/io/watch.h
daemon_io_libio_a_CFLAGS = $(AM_CFLAGS) $(EVENT_CFLAGS) $(LDNS_CFLAGS) \
	$(MICROHTTPD_CFLAGS)

daemon_libdaemon_a_SOURCES = \
	daemon/agent.c daemon/agent.h \
	daemon/agent_document.c daemon/agent_document.h \
	daemon/agent_notify.c daemon/agent_notify.h \
	daemon/caller.c daemon/caller.h \
	daemon/client.c \
	daemon/clock.c daemon/clock.h \
	daemon/config.c daemon/config.h \
	daemon/config_env.c \
	daemon/config_equal.c \
	daemon/config_gateway.c \
	daemon/config_hash.c daemon/config_hash.h \
	daemon/config_key.c daemon/config_key.h \
	daemon/config_limiter.c \
	daemon/config_listener.c \
	daemon/config_network.c \
	daemon/config_parse.c daemon/config_parse.h \
	daemon/config_policy.c \
	daemon/config_rules.c \
	daemon/config_tenant.c \
	daemon/config_tracker.c \
	daemon/config_value.c \
	daemon/config_walk.c daemon/config_walk.h \
	daemon/decision.c daemon/decision.h \
	daemon/diagnosis.c daemon/diagnosis.h \
	daemon/diagnosis_private.h \
	daemon/diagnosis_server.c \
	daemon/diagnosis_tenant.c \
	daemon/diagnosis_words.c \
	daemon/discovery.c daemon/discovery.h \
	daemon/discovery_host.c daemon/discovery_host.h \
	daemon/discovery_log.c daemon/discovery_log.h \
	daemon/discovery_pace.c daemon/discovery_pace.h \
	daemon/discovery_round.c daemon/discovery_round.h \
	daemon/dispatch.c daemon/dispatch.h \
	daemon/dispatch_answer.c \
	daemon/dispatch_check.c \
	daemon/dispatch_life.c \
	daemon/dispatch_limit.c \
	daemon/dispatch_log.c \
	daemon/dispatch_port.c \
	daemon/dispatch_private.h \
	daemon/dispatch_report.c \
	daemon/dispatch_request.c \
	daemon/gateway.c daemon/gateway.h \
	daemon/gateway_answer.c daemon/gateway_answer.h \
	daemon/gateway_fields.c daemon/gateway_fields.h \
	daemon/gateway_target.c daemon/gateway_target.h \
	daemon/limiters.c daemon/limiters.h \
	daemon/limiters_error.c \
	daemon/limiters_private.h \
	daemon/limiters_rate.c \
	daemon/log.c daemon/log.h \
	daemon/log_format.c daemon/log_format.h \
	daemon/message.c daemon/message.h \
	daemon/metrics.c daemon/metrics.h \
	daemon/metrics_limiters.c \
	daemon/metrics_private.h \
	daemon/metrics_process.c \
	daemon/metrics_rules.c \
	daemon/metrics_sources.c daemon/metrics_sources.h \
	daemon/metrics_tenants.c \
	daemon/metrics_write.c daemon/metrics_write.h \
	daemon/reload.c daemon/reload.h \
	daemon/rules.c daemon/rules.h \
	daemon/rules_adhoc.c \
	daemon/rules_block.c daemon/rules_block.h \
	daemon/rules_compile.c daemon/rules_compile.h \
	daemon/rules_ids.c daemon/rules_ids.h \
	daemon/rules_name.c daemon/rules_name.h \
	daemon/setup.c daemon/setup.h \
	daemon/status.c daemon/status.h \
	daemon/status_json.c daemon/status_json.h \
	daemon/status_limiters.c daemon/status_limiters.h \
	daemon/status_policy.c \
	daemon/status_rules.c daemon/status_rules.h \
	daemon/status_servers.c \
	daemon/status_top.c daemon/status_top.h \
	daemon/tally.c daemon/tally.h \
	daemon/template.c daemon/template.h \
	daemon/tenant.c daemon/tenant.h \
	daemon/tenant_address.c \
	daemon/tenant_op.c \
	daemon/tenant_private.h \
	daemon/tenant_receive.c \
	daemon/tenant_say.c \
	daemon/tenant_silent.c \
	daemon/tenant_send.c \
	daemon/tenant_start.c \
	daemon/tenant_turn.c \
	daemon/transport.c daemon/transport.h
daemon_libdaemon_a_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)

# In the order of linking.
DAEMON_LIBS = daemon/libdaemon.a daemon/io/libio.a daemon/core/libcore.a \
	$(PROTO_LIBS)
DAEMON_EXT_LIBS = $(EVENT_LIBS) $(MICROHTTPD_LIBS) $(LDNS_LIBS) $(JANSSON_LIBS) $(CRYPTO_LIBS)

sbin_PROGRAMS += rl-agent
rl_agent_SOURCES = daemon/main.c
rl_agent_LDADD = $(DAEMON_LIBS) $(DAEMON_EXT_LIBS)

dist_pkgdata_DATA = daemon/rl-agent.schema.json
dist_doc_DATA = daemon/rl-agent.json.example
