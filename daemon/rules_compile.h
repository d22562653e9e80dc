/*
 * What rules are compiled to, for the files that build requests from them
 * (rules.c, rules_adhoc.c). Nothing here changes after rules_new(), but for
 * ids, which every id goes through.
 */
#ifndef DAEMON_RULES_COMPILE_H
#define DAEMON_RULES_COMPILE_H

#include "daemon/rules_block.h"
#include "daemon/rules_name.h"

struct compiled_bucket {
	struct rules_name name;
	uint8_t id[ID_LEN]; /* of a fixed name */
};

struct compiled_tracker {
	struct rules_tracker is;
	struct rules_name name;
	uint8_t id[2][ID_LEN]; /* of a fixed name, by enum profile */
};

struct compiled_rule {
	size_t first; /* of the rule's resources in buckets */
	size_t size;  /* of its datagram */
	/* The placeholders that tell its callers apart: 1 << template_part. */
	uint8_t varies;
};

struct rules {
	const struct config *config;
	struct rules_ids *ids;
	struct compiled_tracker *trackers; /* as config->trackers */
	struct compiled_rule *list;        /* as config->rules */
	struct compiled_bucket *buckets;
	size_t bucket_count;
};

#endif
