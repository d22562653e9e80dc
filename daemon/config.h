/*
 * The configuration: strict JSON parsed into a new struct, validated wholly,
 * never changed afterwards (rl-agent.json(5)). Reference-counted, so that
 * whoever borrows from it can keep it. Holds the tenants' secrets, which are
 * wiped with the last reference.
 *
 * Every error is one line: "FILE: json.path[0].key: reason", where a key of
 * other characters than letters, digits, - and _ is ["quo.ted"], or
 * "FILE:LINE:COLUMN: reason" for what is not JSON at all.
 */
#ifndef DAEMON_CONFIG_H
#define DAEMON_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/core/members.h"
#include "daemon/core/policy.h"
#include "proto/credential.h"

#define CONFIG_NAME_MAX  255
#define CONFIG_ERR_MAX   1024
#define CONFIG_HASH_LEN  16
#define CONFIG_MAX_ADDRS 8 /* nameservers */

/* FAILURE_LOCAL, of rules only: a limiter of the agent's own decides. */
enum config_failure { FAILURE_OPEN, FAILURE_CLOSED, FAILURE_LOCAL };

/* A RateLimiter (core/ratelimiter.h). */
struct config_rate {
	int64_t rate;     /* 10^-12 permits a second */
	int64_t burst_us; /* of it, that can be stored */
	uint32_t max_keys;
};

struct config_dns {
	char *name; /* tenant DNS name; the key's default is filled in */
	uint32_t refresh_ms;
	uint32_t forced_min_ms;
	uint32_t jitter_ms;
	uint32_t timeout_ms;
	bool require_ad;
	uint32_t nameserver_count; /* 0: resolv.conf */
	struct endpoint nameservers[CONFIG_MAX_ADDRS];
};

struct config_tenant {
	char *name;
	struct credential cred;
	enum profile profile; /* "auto" is resolved */
	struct config_dns dns;
	size_t server_count; /* static servers: then no DNS at all */
	struct members_target *servers;
	bool strict_source; /* null is resolved */
	enum config_failure on_failure;
	struct policy policy;
	struct policy_plan plan; /* its horizon fits the key's dedup limit */
};

struct config_tracker {
	char *name; /* may hold {key}, {uid}, {gid}, {listener} */
	uint32_t ttl_ms;
	uint32_t max_samples;
	uint32_t buffer_size;
	uint32_t min_samples;
};

struct config_resource {
	char *bucket; /* may hold {key}, {uid}, {gid}, {listener} */
	uint32_t window_ms;
	uint32_t limit;
	uint16_t tokens;
};

struct config_guard {
	size_t tracker; /* index into config.trackers */
	uint32_t below_ms;
};

struct config_rule {
	char *name;
	size_t tenant; /* index into config.tenants */
	char *label;   /* "" without one */
	size_t resource_count;
	struct config_resource *resources;
	size_t guard_count;
	struct config_guard *guards;
	enum config_failure on_failure;
	struct config_rate local; /* with FAILURE_LOCAL */
	bool shadow;              /* mode: what is denied is permitted */
};

struct config_limiter {
	char *name;
	struct config_rate is;
};

struct config_error_control {
	char *name;
	uint32_t burst; /* failures without a delay */
	int64_t min_us;
	int64_t max_us;
	uint32_t max_keys;
};

struct config_patterns {
	size_t count;
	char **list; /* fnmatch(3) patterns */
};

struct config_listener {
	char *name;
	char *path;
	mode_t mode;
	char *group; /* NULL: the process's */
	gid_t gid;   /* of group; -1 without one */
	struct config_patterns rules;
	struct config_patterns trackers;
	struct config_patterns limiters;
	struct config_patterns error_controls;
	bool adhoc;
	size_t uid_count; /* uids and gids both 0: anyone the mode lets in */
	uid_t *uids;
	size_t gid_count;
	gid_t *gids;
	uint32_t max_connections;
	uint32_t max_inflight;
};

/* HTTP. */
struct config_gateway {
	char *name;
	char *address; /* the path of a Unix socket, or ADDRESS:PORT */
	bool tcp;
	struct endpoint at; /* with tcp: where, on the loopback */
	mode_t mode;
	char *group; /* NULL: the process's */
	gid_t gid;   /* of group; -1 without one */
	struct config_patterns rules;
	uint32_t deny_status;
	char *key_header; /* NULL: none */
	uint32_t max_connections;
};

struct config_control {
	char *path; /* null is resolved: control.sock beside the first */
	mode_t mode;
};

struct config_limits {
	uint32_t max_inflight;
	uint32_t max_inflight_per_uid;
	uint32_t max_connections_per_uid;
};

enum config_level { LEVEL_ERROR, LEVEL_WARNING, LEVEL_INFO, LEVEL_DEBUG };

/* Tables are sorted by name, listeners and gateways are as in the file. */
struct config {
	uint32_t refs;
	char *source;                       /* the file, or "environment" */
	bool from_file;                     /* else it cannot be loaded again */
	uint8_t hash[CONFIG_HASH_LEN];      /* of what decides; no secret */
	uint8_t file_hash[CONFIG_HASH_LEN]; /* of the text as it is */
	size_t file_count; /* the file itself, and every key file, by path */
	char **files;
	size_t tenant_count;
	struct config_tenant *tenants;
	size_t tracker_count;
	struct config_tracker *trackers;
	size_t rule_count;
	struct config_rule *rules;
	size_t limiter_count;
	struct config_limiter *limiters;
	size_t error_control_count;
	struct config_error_control *error_controls;
	size_t listener_count; /* at least 1 */
	struct config_listener *listeners;
	size_t gateway_count;
	struct config_gateway *gateways;
	struct config_control control;
	struct config_limits limits;
	enum config_level level;
	uint32_t top_denied_keys; /* kept of each rule; 0: none */
	int64_t decisions;        /* share that is logged; sample_share() */
	size_t warning_count;     /* one line each, for the log and -t */
	char **warnings;
};

/*
 * Reads, parses and validates the file, and the keys that it names. Returns a
 * configuration with one reference, or NULL with err set. No secret is ever
 * part of err or of a warning.
 */
struct config *config_load(const char *path, char err[CONFIG_ERR_MAX]);
/* The same from a regular file only: a pipe could hang who reads it. */
struct config *config_load_again(const char *path, char err[CONFIG_ERR_MAX]);

/* The same from text; source stands for the file in messages. */
struct config *config_parse(
    const char *text, size_t len, const char *source, char err[CONFIG_ERR_MAX]);

/*
 * The start without a file: RATELIMITLY_AUTH_KEY, RATELIMITLY_TENANT,
 * RATELIMITLY_NAMESERVERS (a list, separated by commas or blanks) and
 * RL_AGENT_SOCKET make one tenant "default" that takes ad-hoc requests.
 */
struct config *config_from_environment(char err[CONFIG_ERR_MAX]);

struct config *config_ref(struct config *config);
/* Takes NULL. */
void config_unref(struct config *config);

/* Is nothing different, the keys included? Then loading b changes nothing. */
bool config_equal(const struct config *a, const struct config *b);
/* Would one struct tenant do for both? on_failure is no part of it. */
bool config_tenant_equal(
    const struct config_tenant *a, const struct config_tenant *b);
/* Do both find the same servers in the same way? */
bool config_tenant_same_servers(
    const struct config_tenant *a, const struct config_tenant *b);

/* Are two paths of sockets those of one file, by whatever name of its folder?
 */
bool config_same_path(const char *a, const char *b);

/* Lookups by name, any bytes; NULL when there is none. */
const struct config_tenant *config_tenant(
    const struct config *config, const void *name, size_t len);
const struct config_tracker *config_tracker(
    const struct config *config, const void *name, size_t len);
const struct config_rule *config_rule(
    const struct config *config, const void *name, size_t len);
const struct config_limiter *config_limiter(
    const struct config *config, const void *name, size_t len);
const struct config_error_control *config_error_control(
    const struct config *config, const void *name, size_t len);

/* Does a pattern match the name? Names with NUL bytes match "*" only. */
bool config_allows(
    const struct config_patterns *patterns, const void *name, size_t len);

/*
 * What a tenant's key and a datagram allow. The size in bytes of a datagram
 * with such a request, which may be over PACKET_MAX; SIZE_MAX when no request
 * holds that many blocks or so long a label.
 */
size_t config_request_size(const struct config_tenant *tenant, size_t guards,
    size_t resources, size_t label_len);
/* A tracker's buffer_size against the key's limit; PROFILE_V1 only. */
bool config_allows_buffer(
    const struct config_tenant *tenant, uint32_t buffer_size);
bool config_allows_window(
    const struct config_tenant *tenant, uint32_t window_ms);

/* The longest horizon of all tenants, in ms. */
uint32_t config_max_horizon_ms(const struct config *config);

#endif
