/*
 * The command line of the server half of rl-sandbox, parsed and validated as
 * a whole. Strings borrow argv.
 */
#ifndef SANDBOX_OPTIONS_H
#define SANDBOX_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sandbox/addr.h"
#include "sandbox/cluster.h"
#include "sandbox/keyring.h"
#include "sandbox/server.h"

#define OPTIONS_WHY 256

enum options_outcome {
	OPTIONS_RUN,
	OPTIONS_HELP,
	OPTIONS_VERSION,
	OPTIONS_BAD, /* why says what and where */
};

struct options {
	const char *key_files[KEYRING_MAX];
	size_t key_count;
	struct addr listens[SERVER_MAX_ADDRS]; /* all with one port */
	size_t listen_count;
	size_t cluster;
	bool dns;
	struct addr dns_addr;
	const char *zone; /* NULL: the default of the first key */
	uint32_t dns_ttl_s;
	const char *events; /* NULL: none */
	bool seeded;
	uint64_t seed;
	bool profile_forced;
	enum profile profile;
	uint32_t tolerance_ms;
	bool commands; /* --stdin */
	struct faults faults[CLUSTER_MAX];
};

enum options_outcome options_parse(
    int argc, char **argv, struct options *out, char why[OPTIONS_WHY]);
const char *options_help(void);

#endif
