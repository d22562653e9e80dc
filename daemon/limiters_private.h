/*
 * What limiters.c shares with the files of the two kinds: one limiter of a
 * name, with all its instances. It counts the configurations that have it: the
 * one in force, those of checks that began before, one that is being loaded.
 * Invariant: its settings change when a configuration begins, and when a rate
 * is set; an instance follows at its next use.
 */
#ifndef DAEMON_LIMITERS_PRIVATE_H
#define DAEMON_LIMITERS_PRIVATE_H

#include "daemon/core/errorrate.h"
#include "daemon/core/ratelimiter.h"
#include "daemon/core/registry.h"
#include "daemon/limiters.h"

struct limiters_rate {
	uint32_t refs;
	int64_t rate;       /* in force */
	int64_t configured; /* rate; in force unless another was set */
	int64_t burst_us;
	struct ratelimiter own; /* without a key */
	struct registry *keyed;
	struct limiter_counters counters;
};

/* With one reference; NULL without memory. */
struct limiters_rate *limiters_rate_new(
    const struct config_rate *is, const uint64_t seed[2], int64_t now);
void limiters_rate_unref(struct limiters_rate *s); /* takes NULL */
void limiters_rate_apply(
    struct limiters_rate *s, const struct config_rate *is, int64_t now);
/* The instance of a key, ready for use; NULL when there is no room. */
struct ratelimiter *limiters_rate_instance(
    struct limiters_rate *s, struct limiters_key key, int64_t now);
enum limiters_answer limiters_rate_acquire(struct limiters_rate *s,
    struct limiters_key key, uint32_t permits, int64_t max_wait_us, int64_t now,
    int64_t *wait_us);
struct limiters_shown limiters_rate_show(
    const struct limiters_rate *s, int64_t now);

struct limiters_error {
	uint32_t refs;
	uint32_t burst;
	int64_t min_us;
	int64_t max_us;
	struct errorrate own; /* without a key */
	struct registry *keyed;
	struct error_control_counters counters;
};

struct limiters_error *limiters_error_new(
    const struct config_error_control *is, const uint64_t seed[2]);
void limiters_error_unref(struct limiters_error *s); /* takes NULL */
void limiters_error_apply(
    struct limiters_error *s, const struct config_error_control *is);
enum limiters_answer limiters_error_wait(struct limiters_error *s,
    struct limiters_key key, int64_t now, int64_t *wait_us);
void limiters_error_done(
    struct limiters_error *s, struct limiters_key key, int64_t now);
struct limiters_error_shown limiters_error_show(
    const struct limiters_error *s, int64_t now);

#endif
