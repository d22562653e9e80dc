/*
 * The parts of the configuration's parser, in the order they run: the root
 * hands each section to the file that knows it, tables are read in the order
 * of their names, and references are resolved against what was read before.
 */
#ifndef DAEMON_CONFIG_PARSE_H
#define DAEMON_CONFIG_PARSE_H

#include "daemon/config_walk.h"

/* Caps that no key and no datagram sets. */
#define CONFIG_MAX_TENANTS   64
#define CONFIG_MAX_TRACKERS  4096
#define CONFIG_MAX_RULES     4096
#define CONFIG_MAX_LISTENERS 64
#define CONFIG_MAX_LIMITERS  4096 /* and as many error controls */
#define CONFIG_MAX_KEYS      1000000
#define CONFIG_KEYS          10000 /* max_keys that nobody gave */
#define CONFIG_MAX_PATTERNS  256
#define CONFIG_MAX_IDS       256 /* uids or gids of a listener */
#define CONFIG_MAX_CONNS     65536
#define CONFIG_MAX_INFLIGHT  1048576
/* Of the keys that are kept of each rule, and of all: some 300 bytes each. */
#define CONFIG_MAX_TOP_KEYS     1000
#define CONFIG_MAX_ALL_TOP_KEYS 65536

/* The table entry of a u32 that must not be 0. */
#define WALK_POSITIVE(key, type, field)                                      \
	{                                                                    \
		.name = (key), .kind = WALK_U32,                             \
		.offset = offsetof(type, field), .min = 1, .max = UINT32_MAX \
	}

/*
 * A configuration from parsed JSON, with one reference; NULL with err set.
 * Borrows everything. Its file_hash is the caller's to set.
 */
struct config *config_build(json_t *root, const char *source, bool from_file,
    const struct walk_alias *aliases, char err[CONFIG_ERR_MAX]);

/* All return 0, or a negative number with the error written. */
int config_parse_root(struct walk *w, json_t *root);
int config_parse_tenants(struct walk *w, json_t *json);
int config_parse_dns(struct walk *w, json_t *json, void *where);
int config_parse_servers(
    struct walk *w, json_t *json, struct config_tenant *tenant);
int config_parse_policy(struct walk *w, json_t *json, void *where);
/* What the policy under the cursor means in time, and that the key allows its
 * horizon. */
int config_plan_policy(struct walk *w, const struct policy *policy,
    const struct credential *cred, struct policy_plan *out);
int config_parse_trackers(struct walk *w, json_t *json);
/* Only known placeholders, braces in pairs: the name under the cursor. */
int config_check_template(struct walk *w, const char *name);
int config_parse_rules(struct walk *w, json_t *json);
int config_parse_limiters(struct walk *w, json_t *json);
int config_parse_error_controls(struct walk *w, json_t *json);
int config_parse_listeners(struct walk *w, json_t *json);
/* The default is resolved beside the first listener; paths must differ. */
int config_parse_control(struct walk *w, json_t *json);

/* After listeners and the control socket, whose paths are taken. */
int config_parse_gateways(struct walk *w, json_t *json);

/* The path under the cursor against another one, which is that of kind whose,
 * together "listener main": they must not want the same file. */
int config_check_path(struct walk *w, const char *path, const char *other,
    const char *kind, const char *whose);
int config_parse_group(struct walk *w, json_t *json, char **group, gid_t *gid);
/* "*" */
int config_default_patterns(struct walk *w, struct config_patterns *p);
/* Warns of those that match none of the rows, which start with their name and
 * are what key says. */
int config_warn_of_patterns(struct walk *w, const char *key,
    const struct config_patterns *p, const void *rows, size_t count,
    size_t size);
/* Frees the patterns and leaves none. */
void config_patterns_fini(struct config_patterns *p);

/* WALK_FUNCs. Replaces the patterns; where is a struct config_patterns. */
int config_parse_patterns(struct walk *w, json_t *json, void *where);
/* "open" or "closed"; where is an enum config_failure. */
int config_parse_failure(struct walk *w, json_t *json, void *where);
/* A RateLimiter; where is a struct config_rate. */
int config_parse_rate(struct walk *w, json_t *json, void *where);
/* These or {"local": {}}; where is a struct config_rule. */
int config_parse_rule_failure(struct walk *w, json_t *json, void *where);

#endif
