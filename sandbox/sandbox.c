/*
 * Everything is bound before the first line tells where. The order of setting
 * up is the order of the functions here; sandbox_fini() takes any prefix.
 */
#include "sandbox/sandbox.h"

#include <errno.h>
#include <event2/event.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "proto/err.h"
#include "proto/random.h"
#include "sandbox/cluster.h"
#include "sandbox/command.h"
#include "sandbox/dnsd.h"
#include "sandbox/dnsio.h"
#include "sandbox/events.h"
#include "sandbox/keyring.h"
#include "sandbox/options.h"

/* With --seed the newest server started at this moment, in 2026. */
#define SEEDED_START INT64_C(1767225600)

struct sandbox {
	const struct options *options;
	struct keyring ring;
	struct event_base *base;
	struct events *events;
	struct cluster cluster;
	struct dnsd *zone;
	struct dnsio *dns;
	struct command *command;
	struct event *signals[2];
};

static int
complain(const char *what, const char *why)
{
	fprintf(stderr, "rl-sandbox: %s: %s\n", what, why);
	return EXIT_FAILURE;
}

static int
load_keys(struct sandbox *sb)
{
	const struct options *o = sb->options;
	char why[KEYRING_WHY];
	size_t i;

	for (i = 0; i < o->key_count; i++)
		if (keyring_load(&sb->ring, o->key_files[i],
			o->profile_forced ? &o->profile : NULL, why) < 0)
			return complain("--key-file", why);
	return 0;
}

/* A zone is checked before anything is bound: its name is a usage error. */
static int
make_zone(struct sandbox *sb)
{
	char name[CREDENTIAL_DNS_MAX];
	const char *zone = sb->options->zone;

	if (!sb->options->dns)
		return 0;
	credential_dns_name(&sb->ring.keys[0].cred, name);
	sb->zone = dnsd_new(zone != NULL ? zone : name, sb->options->dns_ttl_s);
	if (sb->zone != NULL)
		return 0;
	fprintf(stderr,
	    "rl-sandbox: --zone %s: not a domain name, or too long for one\n",
	    zone != NULL ? zone : name);
	return EX_USAGE;
}

/*
 * Readable commands may come from a file or /dev/null, which epoll refuses.
 * Timers have to be precise, as the delays that tests ask for are short.
 */
static int
make_loop(struct sandbox *sb)
{
	struct event_config *config = event_config_new();

	if (config != NULL) {
		event_config_set_flag(config,
		    EVENT_BASE_FLAG_PRECISE_TIMER |
			EVENT_BASE_FLAG_NO_CACHE_TIME | EVENT_BASE_FLAG_NOLOCK |
			EVENT_BASE_FLAG_IGNORE_ENV);
		if (sb->options->commands)
			event_config_require_features(config, EV_FEATURE_FDS);
		sb->base = event_base_new_with_config(config);
		event_config_free(config);
	}
	if (sb->base == NULL)
		return complain("event loop", "cannot be set up");
	sb->events = events_new(sb->options->events);
	if (sb->events == NULL)
		return complain(sb->options->events != NULL
				    ? sb->options->events
				    : "events",
		    strerror(errno));
	return 0;
}

static int
draw_seeds(uint64_t *seed, uint64_t *hash_seed)
{
	struct random_pool *pool = random_pool_new();
	int rc = RLA_ECRYPTO;

	if (pool != NULL && random_bytes(pool, seed, sizeof(*seed)) == 0 &&
	    random_bytes(pool, hash_seed, sizeof(*hash_seed)) == 0)
		rc = 0;
	random_pool_free(pool);
	return rc;
}

static int
add_server(
    struct sandbox *sb, struct server_setup *setup, uint64_t id, uint32_t i)
{
	const struct options *o = sb->options;
	char text[ADDR_TEXT_MAX];
	struct addr failed;
	uint16_t port;
	size_t k;
	int rc;

	setup->index = i;
	setup->server_id = id;
	setup->faults = o->faults[i];
	for (k = 0; k < o->listen_count; k++) {
		setup->addrs[k] = o->listens[k];
		port = addr_port(&o->listens[k]);
		if (port != 0)
			addr_set_port(&setup->addrs[k], (uint16_t)(port + i));
	}
	rc = cluster_add(&sb->cluster, setup, &failed);
	if (rc == RLA_ESYS) {
		rc = errno;
		addr_format(&failed, text);
		fprintf(stderr, "rl-sandbox: --listen, server %u: %s: %s\n", i,
		    text, strerror(rc));
		return EXIT_FAILURE;
	}
	if (rc < 0)
		return complain("server", err_str((enum rla_err)rc));
	return 0;
}

static int
start_servers(struct sandbox *sb)
{
	const struct options *o = sb->options;
	struct server_setup setup = {.base = sb->base,
	    .ring = &sb->ring,
	    .events = sb->events,
	    .tolerance_ms = o->tolerance_ms,
	    .addr_count = o->listen_count};
	uint64_t ids[CLUSTER_MAX];
	uint32_t i;
	int rc;

	if (draw_seeds(&setup.seed, &setup.hash_seed) < 0)
		return complain("servers", err_str(RLA_ECRYPTO));
	if (o->seeded)
		setup.seed = o->seed;
	cluster_ids(
	    setup.seed, o->seeded ? SEEDED_START : time(NULL), o->cluster, ids);
	for (i = 0; i < o->cluster; i++) {
		rc = add_server(sb, &setup, ids[i], i);
		if (rc != 0)
			return rc;
	}
	return 0;
}

static int
start_dns(struct sandbox *sb)
{
	const struct addr *addrs;
	char text[ADDR_TEXT_MAX];
	size_t i, count;

	if (sb->zone == NULL)
		return 0;
	for (i = 0; i < sb->cluster.count; i++) {
		addrs = server_addrs(sb->cluster.servers[i], &count);
		if (dnsd_add(sb->zone, server_id(sb->cluster.servers[i]), addrs,
			count) < 0)
			return complain(
			    "--zone", "too long for the names of servers");
	}
	sb->dns = dnsio_new(sb->base, sb->zone, &sb->options->dns_addr);
	if (sb->dns != NULL)
		return 0;
	i = (size_t)errno;
	addr_format(&sb->options->dns_addr, text);
	fprintf(stderr, "rl-sandbox: --dns %s: %s\n", text, strerror((int)i));
	return EXIT_FAILURE;
}

static void
on_signal(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	event_base_loopbreak(arg);
}

static int
start_control(struct sandbox *sb)
{
	static const int numbers[] = {SIGTERM, SIGINT};
	struct command_target target = {&sb->cluster, sb->zone};
	size_t i;

	for (i = 0; i < 2; i++) {
		sb->signals[i] =
		    evsignal_new(sb->base, numbers[i], on_signal, sb->base);
		if (sb->signals[i] == NULL ||
		    event_add(sb->signals[i], NULL) < 0)
			return complain("signals", "cannot be watched");
	}
	if (!sb->options->commands)
		return 0;
	sb->command = command_new(sb->base, STDIN_FILENO, &target, sb->events);
	if (sb->command == NULL)
		return complain("--stdin", "cannot be watched");
	return 0;
}

static json_t *
describe_keys(const struct keyring *ring)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < ring->count; i++) {
		const struct key *key = &ring->keys[i];

		json_array_append_new(
		    list, json_pack("{s:o,s:s,s:i,s:s}", "key_id",
			      events_u64(key->cred.key_id), "auth",
			      credential_auth_name(key->cred.auth), "format",
			      (int)key->cred.format, "profile",
			      key->profile == PROFILE_V1 ? "v1" : "v2"));
	}
	return list;
}

static int
announce(struct sandbox *sb)
{
	char dns[ADDR_TEXT_MAX];

	fprintf(stderr,
	    "rl-sandbox %s: NOT a production server, for development and "
	    "tests only; %zu server%s up\n",
	    PACKAGE_VERSION, sb->cluster.count,
	    sb->cluster.count == 1 ? "" : "s");
	if (sb->dns != NULL)
		addr_format(dnsio_addr(sb->dns), dns);
	if (events_print(
		sb->events, json_pack("{s:o,s:s?,s:s?,s:o}", "servers",
				cluster_describe(&sb->cluster), "dns",
				sb->dns != NULL ? dns : NULL, "zone",
				sb->dns != NULL ? dnsd_zone(sb->zone) : NULL,
				"keys", describe_keys(&sb->ring))) < 0)
		return complain("standard output", "cannot be written");
	return 0;
}

static void
conclude(struct sandbox *sb)
{
	events_append(sb->events,
	    json_pack("{s:o}", "counters", cluster_counters(&sb->cluster)));
	(void)events_print(sb->events,
	    json_pack("{s:o}", "counters", cluster_counters(&sb->cluster)));
}

static void
sandbox_fini(struct sandbox *sb)
{
	size_t i;

	command_free(sb->command);
	for (i = 0; i < 2; i++)
		if (sb->signals[i] != NULL)
			event_free(sb->signals[i]);
	dnsio_free(sb->dns);
	dnsd_free(sb->zone);
	cluster_fini(&sb->cluster);
	events_free(sb->events);
	if (sb->base != NULL)
		event_base_free(sb->base);
	keyring_fini(&sb->ring);
}

int
sandbox_run(const struct options *options)
{
	static int (*const steps[])(struct sandbox *) = {load_keys, make_zone,
	    make_loop, start_servers, start_dns, start_control, announce};
	struct sandbox sb = {.options = options};
	size_t i;
	int rc = 0;

	signal(SIGPIPE, SIG_IGN);
	keyring_init(&sb.ring);
	cluster_init(&sb.cluster);
	for (i = 0; i < sizeof(steps) / sizeof(steps[0]) && rc == 0; i++)
		rc = steps[i](&sb);
	if (rc == 0) {
		event_base_dispatch(sb.base);
		conclude(&sb);
	}
	sandbox_fini(&sb);
	return rc;
}
