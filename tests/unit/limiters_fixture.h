/*
 * Configurations with limiters, one after the other as reloads bring them, and
 * short words for what is asked of them. All of it goes to the generation g,
 * at the time now.
 */
#ifndef TESTS_UNIT_LIMITERS_FIXTURE_H
#define TESTS_UNIT_LIMITERS_FIXTURE_H

#include "daemon/core/ratelimiter.h"
#include "daemon/core/registry.h"
#include "daemon/limiters.h"
#include "tests/unit/harness.h"

#include "tests/unit/config_fixture.h"

#define MS     INT64_C(1000)
#define SECOND INT64_C(1000000)
#define ONE    RATELIMITER_ONE

#define NO_KEY    ((struct limiters_key){NULL, 0})
#define KEY(text) ((struct limiters_key){text, sizeof(text) - 1})

/* Tables without their braces; NULL: none. */
struct shape {
	const char *limiters;
	const char *controls;
	const char *rules;
};

#define LOCAL(rate)                                                \
	"\"r\":{\"tenant\":\"t\",\"on_failure\":{\"local\":{" rate \
	",\"max_burst_seconds\":10,\"max_keys\":2}}}"

/* 10 a second, a second's worth stored; 3 failures, then 100 ms to 30 s. */
static const struct shape usual = {"\"mail\":{}", "\"smtp\":{}", NULL};
/* One a second, ten stored, two keys. */
static const struct shape local = {.rules = LOCAL("\"permits_per_second\":1")};

struct generation {
	struct config *config;
	struct limiters *ls;
};

static struct generation first, second, third;
static struct generation *g;
static int64_t now, wait_us;

static inline void
setup(void)
{
	fixture_keys();
	now = 1000 * SECOND;
	g = &first;
}

static inline void
close_generation(struct generation *generation)
{
	limiters_free(generation->ls);
	config_unref(generation->config);
	*generation = (struct generation){0};
}

static inline void
teardown(void)
{
	close_generation(&first);
	close_generation(&second);
	close_generation(&third);
}

/* Loaded, and not in force yet. */
static inline void
load(struct generation *generation, const struct generation *before,
    const struct shape *shape)
{
	static const uint64_t seed[2] = {1, 2};
	char text[2048], err[CONFIG_ERR_MAX];

	snprintf(text, sizeof(text),
	    "{\"tenants\":{\"t\":{\"key\":" ENV(
		"RATELIMITLY_AUTH_KEY") "}},"
					"\"listeners\":{\"main\":{\"path\":\"/run/x.sock\"}},"
					"\"limiters\":{%s},\"error_controls\":{%s},\"rules\":{%s}}",
	    shape->limiters != NULL ? shape->limiters : "",
	    shape->controls != NULL ? shape->controls : "",
	    shape->rules != NULL ? shape->rules : "");
	generation->config = fixture_parse(text, err);
	ck_assert_msg(generation->config != NULL, "%s", err);
	generation->ls = limiters_new(
	    generation->config, before != NULL ? before->ls : NULL, seed, now);
	ck_assert_ptr_nonnull(generation->ls);
}

static inline void
begin(struct generation *generation)
{
	limiters_begin(generation->ls, now);
	g = generation;
}

static inline void
begin_one(const struct shape *shape)
{
	load(&first, NULL, shape);
	begin(&first);
}

static inline const struct config_limiter *
limiter(void)
{
	return config_limiter(g->config, "mail", 4);
}

static inline enum limiters_answer
acquire(struct limiters_key key, uint32_t permits, int64_t max_wait_us)
{
	wait_us = -1;
	return limiters_acquire(
	    g->ls, limiter(), key, permits, max_wait_us, now, &wait_us);
}

/* Of a plain acquire; want: the wait. */
static inline void
expect_grant(struct limiters_key key, uint32_t permits, int64_t want)
{
	ck_assert_int_eq(
	    acquire(key, permits, RATELIMITER_MAX_WAIT_US), LIMITERS_GRANTED);
	ck_assert_int_eq(wait_us, want);
}

static inline void
expect_refusal(struct limiters_key key, int64_t max_wait_us, int64_t want)
{
	ck_assert_int_eq(acquire(key, 1, max_wait_us), LIMITERS_REFUSED);
	ck_assert_int_eq(wait_us, want);
}

static inline struct limiters_shown
shown_limiter(void)
{
	return limiters_show(g->ls, limiter(), now);
}

static inline struct limiter_counters
limiter_counted(void)
{
	return *shown_limiter().counters;
}

static inline const struct config_error_control *
control(void)
{
	return config_error_control(g->config, "smtp", 4);
}

static inline enum limiters_answer
error_begin(struct limiters_key key)
{
	wait_us = -1;
	return limiters_error_begin(g->ls, control(), key, now, &wait_us);
}

static inline void
expect_delay(struct limiters_key key, int64_t want)
{
	ck_assert_int_eq(error_begin(key), LIMITERS_GRANTED);
	ck_assert_int_eq(wait_us, want);
}

static inline void
success(struct limiters_key key)
{
	limiters_error_success(g->ls, control(), key, now);
}

static inline struct limiters_error_shown
shown_control(void)
{
	return limiters_show_error(g->ls, control(), now);
}

static inline struct error_control_counters
control_counted(void)
{
	return *shown_control().counters;
}

static inline const struct config_rule *
rule(void)
{
	return config_rule(g->config, "r", 1);
}

static inline void
warm(struct limiters_key key)
{
	limiters_local_warm(g->ls, rule(), key, now);
}

static inline void
expect_local(
    struct limiters_key key, uint32_t permits, enum limiters_answer want)
{
	wait_us = -1;
	ck_assert_int_eq(
	    limiters_local_acquire(g->ls, rule(), key, permits, now, &wait_us),
	    want);
}

static inline struct limiters_shown
shown_local(void)
{
	return limiters_show_local(g->ls, rule(), now);
}

static inline struct limiter_counters
local_counted(void)
{
	return *shown_local().counters;
}

#endif
