/*
 * The host-wide limiters of a configuration: its RateLimiters, its
 * ErrorRateControls, and the RateLimiters of the rules whose on_failure is
 * local. Each has an instance without a key and up to max_keys with one. One
 * that the next configuration has, too, by kind and name, is shared with it:
 * what is stored and what is owed go on over a reload. Owned by a setup.
 */
#ifndef DAEMON_LIMITERS_H
#define DAEMON_LIMITERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/config.h"
#include "daemon/core/counters.h"

struct limiters;

/* A key is bytes and a length; bytes NULL: the instance without a key. */
struct limiters_key {
	const void *bytes;
	size_t len; /* at most REGISTRY_KEY_MAX */
};

/*
 * before, which may be NULL, shares what it has of the same kinds and names.
 * Borrows config, as before does its own, for its life. NULL without memory;
 * before is as it was.
 */
struct limiters *limiters_new(const struct config *config,
    const struct limiters *before, const uint64_t seed[2], int64_t now);
void limiters_free(struct limiters *ls); /* takes NULL */
/*
 * Its configuration is in force from now on: changed settings apply. A rate
 * that was set by limiters_set_rate() stays until the configured one changes.
 */
void limiters_begin(struct limiters *ls, int64_t now);

enum limiters_answer {
	LIMITERS_GRANTED,  /* wait_us: before going on */
	LIMITERS_REFUSED,  /* wait_us: what it would have been; none taken */
	LIMITERS_FULL,     /* every keyed instance is busy; none taken */
	LIMITERS_TOO_LONG, /* over a year is owed, or it never can be; none
			      taken */
};

/* One of ls's configuration. max_wait_us as ratelimiter_acquire() takes it;
 * permits and max_wait_us are in range. */
enum limiters_answer limiters_acquire(struct limiters *ls,
    const struct config_limiter *limiter, struct limiters_key key,
    uint32_t permits, int64_t max_wait_us, int64_t now, int64_t *wait_us);
/* For all instances of it, and those to come. rate is in range. */
void limiters_set_rate(
    struct limiters *ls, const struct config_limiter *limiter, int64_t rate);

/* Never LIMITERS_REFUSED. */
enum limiters_answer limiters_error_begin(struct limiters *ls,
    const struct config_error_control *control, struct limiters_key key,
    int64_t now, int64_t *wait_us);
/* Of a key that has no instance: nothing to give back, so nothing is made. */
void limiters_error_success(struct limiters *ls,
    const struct config_error_control *control, struct limiters_key key,
    int64_t now);

/* Of a rule of FAILURE_LOCAL. Warm: there is an instance from now on, storing
 * permits, if there is room. Never waits: granted, or not; never more than it
 * can store, or one. */
void limiters_local_warm(struct limiters *ls, const struct config_rule *rule,
    struct limiters_key key, int64_t now);
enum limiters_answer limiters_local_acquire(struct limiters *ls,
    const struct config_rule *rule, struct limiters_key key, uint32_t permits,
    int64_t now, int64_t *wait_us);

/* What status tells of one; of the instance without a key where it says so. */
struct limiters_shown {
	int64_t rate;    /* in force now */
	double stored;   /* permits, without a key */
	int64_t owed_us; /* wait of who comes now, without a key */
	uint32_t keys;   /* instances with a key */
	const struct limiter_counters *counters;
};
struct limiters_error_shown {
	uint32_t burst;   /* left, without a key */
	int64_t delay_us; /* the next one's, without a key */
	int64_t owed_us;  /* wait of who comes now, without a key */
	uint32_t keys;    /* instances with a key */
	const struct error_control_counters *counters;
};
struct limiters_shown limiters_show(const struct limiters *ls,
    const struct config_limiter *limiter, int64_t now);
struct limiters_error_shown limiters_show_error(const struct limiters *ls,
    const struct config_error_control *control, int64_t now);
struct limiters_shown limiters_show_local(
    const struct limiters *ls, const struct config_rule *rule, int64_t now);

#endif
