/*
 * What rules are compiled to, for the files that build requests from them
 * (rules.c, rules_adhoc.c). Nothing here changes after rules_new(), but for
 * the digest context, which every id goes through.
 */
#ifndef DAEMON_RULES_COMPILE_H
#define DAEMON_RULES_COMPILE_H

#include "daemon/rules.h"

struct bucket_id {
	bool fixed;
	uint8_t id[ID_LEN];
};

struct tracker_id {
	bool fixed;
	uint8_t id[2][ID_LEN]; /* by enum profile */
};

struct compiled {
	size_t first; /* of the rule's resources in buckets */
	size_t size;  /* of its datagram */
};

struct rules {
	const struct config *config;
	struct id_hash *hash;
	struct tracker_id *trackers; /* as config->trackers */
	struct compiled *list;       /* as config->rules */
	struct bucket_id *buckets;
};

/* Writes the text and returns rc. */
int rules_fail(int rc, char text[RULES_TEXT_MAX], const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* RLA_ETOOBIG; size as config_request_size() gave it. */
int rules_fail_size(char text[RULES_TEXT_MAX], size_t size);

/*
 * Fills in the placeholders. kind and name are for the text, as in: bucket
 * "checkout:{key}" needs a key. caller may be NULL for a name without any.
 * Returns 0 or RLA_EINVAL.
 */
int rules_expand(const char *kind, const char *name,
    const struct rules_caller *caller, uint8_t out[CONFIG_NAME_MAX],
    size_t *out_len, char text[RULES_TEXT_MAX]);

/* The id under a name that is filled in. 0 or RLA_ECRYPTO. */
int rules_hash_bucket(struct rules *rules, const struct config_resource *r,
    const uint8_t *name, size_t len, uint8_t id[ID_LEN]);
int rules_hash_tracker(struct rules *rules, enum profile profile,
    const struct config_tracker *t, const uint8_t *name, size_t len,
    uint8_t id[ID_LEN]);

#endif
