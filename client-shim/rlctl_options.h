/* The options that commands of rlctl have in common. */
#ifndef RLCTL_OPTIONS_H
#define RLCTL_OPTIONS_H

#include <stdint.h>

#include "client-shim/rlctl.h"

struct rlctl_options {
	const char *tenant;
	const char *tracker;
	const char *key;
	uint32_t tokens; /* 0: not given */
	int no_longer;   /* --max-wait was given */
	uint64_t max_wait_ms;
	enum rl_failure on_failure;
	int by_permit;
};

/*
 * Those that a command takes, by the letters of which: t(imeout), T(enant),
 * r (tracker), k(ey), n (tokens), w (max-wait), f (on-failure), p(ermit),
 * j(son). Leaves optind at the first argument, or exits 64.
 */
void rlctl_options(struct rlctl *ctl, struct rlctl_options *out, int argc,
    char **argv, const char *which);
/* The same, and that there is no argument. */
void rlctl_options_alone(struct rlctl *ctl, const char *command, int argc,
    char **argv, const char *which);

/* The values of --timeout, --tokens and --on-failure, or exits 64. */
uint32_t rlctl_options_timeout(const char *text);
uint32_t rlctl_options_tokens(const char *text);
enum rl_failure rlctl_options_failure(const char *text);

#endif
