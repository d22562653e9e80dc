/*
 * What rules are compiled to, for the files that build requests from them
 * (rules.c, rules_adhoc.c). Nothing here changes after rules_new(), but for
 * the digest context, which every id goes through.
 */
#ifndef DAEMON_RULES_COMPILE_H
#define DAEMON_RULES_COMPILE_H

#include "daemon/rules_block.h"

struct compiled_bucket {
	bool fixed; /* one name for every caller: the id is known */
	uint8_t id[ID_LEN];
};

struct compiled_tracker {
	struct rules_tracker is;
	bool fixed;
	uint8_t id[2][ID_LEN]; /* by enum profile */
};

struct compiled_rule {
	size_t first; /* of the rule's resources in buckets */
	size_t size;  /* of its datagram */
	/* The placeholders that tell its callers apart: 1 << template_part. */
	uint8_t varies;
};

struct rules {
	const struct config *config;
	struct id_hash *hash;
	struct compiled_tracker *trackers; /* as config->trackers */
	struct compiled_rule *list;        /* as config->rules */
	struct compiled_bucket *buckets;
};

/*
 * Fills in the placeholders. kind and name are for the text, as in: bucket
 * "checkout:{key}" needs a key. caller may be NULL for a name without any.
 * out->bytes is room. Returns 0 or RLA_EINVAL.
 */
int rules_expand(const char *kind, const char *name,
    const struct rules_caller *caller, uint8_t room[CONFIG_NAME_MAX],
    struct ipc_str *out, char text[RULES_TEXT_MAX]);

#endif
