/*
 * Decisions as a whole: nothing or everything is consumed, quotas, eviction,
 * definitions that disagree.
 */
#include "sandbox/state.h"

#include <string.h>

#include "tests/unit/harness.h"

static struct state *st;
static struct pdu_rate req, resp;
static struct pdu_report report;

static const struct credential small = {.auth = AUTH_NONE,
    .format = KEY_FORMAT_1,
    .key_id = 1,
    .quotas = {.rate_buckets = 4,
	.latency_trackers = 2,
	.metrics_labels = 2,
	.latency_buffer = 8,
	.dedup_ttl_ms = 300,
	.rate_window_ms = 4096}};

static void
fresh(enum profile profile)
{
	st = state_new(&small, profile, 42);
	ck_assert_ptr_nonnull(st);
	memset(&req, 0, sizeof req);
	memset(&report, 0, sizeof report);
}

static void
setup_v2(void)
{
	fresh(PROFILE_V2);
}

static void
setup_v1(void)
{
	fresh(PROFILE_V1);
}

static void
teardown(void)
{
	state_free(st);
}

static void
clear(void)
{
	memset(&req, 0, sizeof req);
	memset(&report, 0, sizeof report);
}

static void
ask(uint8_t id, uint32_t window, uint32_t limit, uint16_t tokens)
{
	struct pdu_resource *r = &req.resources[req.resource_count++];

	memset(r->id, id, ID_LEN);
	r->window_ms = window;
	r->limit = limit;
	r->tokens = tokens;
}

static void
guard(uint8_t id, uint32_t buffer, uint32_t threshold)
{
	struct pdu_guard *g = &req.guards[req.guard_count++];

	memset(g->id, id, ID_LEN);
	g->ttl_ms = 1000;
	g->max_samples = 100;
	g->buffer_size = buffer;
	g->min_samples = 1;
	g->threshold_ms = threshold;
}

static void
sample(uint8_t id, uint32_t buffer, uint32_t ms)
{
	struct pdu_sample *p = &report.samples[report.count++];

	memset(p->id, id, ID_LEN);
	p->ttl_ms = 1000;
	p->max_samples = 100;
	p->buffer_size = buffer;
	p->min_samples = 1;
	p->observed_ms = ms;
}

static struct state_result
check(int64_t now)
{
	memset(&resp, 0xA5, sizeof resp);
	return state_check(st, now, &req, &resp);
}

static void
verdict_is(int64_t now, enum state_verdict verdict)
{
	ck_assert_int_eq(check(now).verdict, verdict);
}

START_TEST(allows_then_denies_then_refills)
{
	struct state_result r;

	ask(1, 1000, 10, 7);
	verdict_is(0, STATE_ALLOWED);
	ck_assert_uint_eq(resp.resource_count, 1);
	ck_assert_uint_eq(resp.resources[0].tokens, 0);
	ck_assert_uint_eq(resp.resources[0].limit, 7);
	ck_assert_uint_eq(resp.resources[0].window_ms, 1000);
	r = check(0);
	ck_assert_int_eq(r.verdict, STATE_DENIED);
	ck_assert(r.resource_failed && !r.guard_failed);
	ck_assert_uint_eq(resp.resources[0].tokens, 4);
	ck_assert_uint_eq(resp.resources[0].limit, 7);
	verdict_is(399, STATE_DENIED);
	ck_assert_uint_eq(resp.resources[0].tokens, 1);
	verdict_is(400, STATE_ALLOWED);
	ck_assert_uint_eq(resp.resources[0].limit, 10);
}
END_TEST

START_TEST(a_denial_consumes_nothing_anywhere)
{
	ask(1, 1000, 10, 3);
	ask(2, 1000, 1, 2);
	verdict_is(0, STATE_DENIED);
	ck_assert_uint_eq(resp.resources[0].tokens, 0);
	ck_assert_uint_eq(resp.resources[0].limit, 0);
	ck_assert_uint_eq(resp.resources[1].tokens, 1);
	clear();
	ask(1, 1000, 10, 10);
	verdict_is(0, STATE_ALLOWED);
}
END_TEST

START_TEST(a_failed_guard_consumes_nothing)
{
	struct state_result r;

	sample(9, 0, 50);
	ck_assert_int_eq(state_report(st, 0, &report).verdict, STATE_ALLOWED);
	ask(1, 1000, 10, 10);
	guard(9, 0, 50);
	r = check(0);
	ck_assert_int_eq(r.verdict, STATE_DENIED);
	ck_assert(r.guard_failed && !r.resource_failed);
	ck_assert_uint_eq(resp.guards[0].current_ms, 50);
	ck_assert_uint_eq(resp.guards[0].threshold_ms, 50);
	ck_assert_uint_eq(resp.resources[0].tokens, 0);
	req.guards[0].threshold_ms = 51;
	verdict_is(0, STATE_ALLOWED);
	ck_assert_uint_eq(resp.resources[0].limit, 10);
}
END_TEST

START_TEST(a_threshold_of_zero_never_passes)
{
	guard(9, 0, 0);
	verdict_is(0, STATE_DENIED);
	ck_assert_uint_eq(resp.guards[0].current_ms, 0);
	req.guards[0].threshold_ms = 1;
	verdict_is(0, STATE_ALLOWED);
}
END_TEST

/* Two blocks of one bucket are one demand. */
START_TEST(blocks_of_one_bucket_add_up)
{
	ask(1, 1000, 10, 6);
	ask(1, 1000, 10, 6);
	verdict_is(0, STATE_DENIED);
	ck_assert_uint_eq(resp.resources[0].tokens, 0);
	ck_assert_uint_eq(resp.resources[1].tokens, 2);
	req.resources[1].tokens = 4;
	verdict_is(0, STATE_ALLOWED);
	ck_assert_uint_eq(resp.resources[0].limit, 10);
	ck_assert_uint_eq(resp.resources[1].limit, 10);
	verdict_is(0, STATE_DENIED);
	ck_assert_uint_eq(resp.resources[0].tokens, 6);
}
END_TEST

START_TEST(deficits_saturate)
{
	size_t i;

	for (i = 0; i < 3; i++)
		ask(1, 1000, 1, UINT16_MAX);
	verdict_is(0, STATE_DENIED);
	ck_assert_uint_eq(resp.resources[0].tokens, UINT16_MAX - 1);
	ck_assert_uint_eq(resp.resources[2].tokens, UINT16_MAX);
}
END_TEST

START_TEST(zeros_and_nothing_are_malformed)
{
	verdict_is(0, STATE_MALFORMED);
	ask(1, 0, 1, 1);
	verdict_is(0, STATE_MALFORMED);
	clear();
	ask(1, 1, 0, 1);
	verdict_is(0, STATE_MALFORMED);
	clear();
	ask(1, 1, 1, 0);
	verdict_is(0, STATE_MALFORMED);
	ck_assert_int_eq(state_report(st, 0, &report).verdict, STATE_MALFORMED);
}
END_TEST

START_TEST(a_live_bucket_keeps_its_definition)
{
	ask(1, 1000, 10, 1);
	verdict_is(0, STATE_ALLOWED);
	clear();
	ask(2, 1000, 10, 10);
	ask(1, 1000, 11, 1);
	verdict_is(99, STATE_MISMATCH);
	/* The good block beside the bad one consumed nothing. */
	clear();
	ask(2, 1000, 10, 10);
	verdict_is(99, STATE_ALLOWED);
	/* Once full the bucket is forgotten, and so is its definition. */
	clear();
	ask(1, 1000, 11, 1);
	verdict_is(100, STATE_ALLOWED);
	clear();
	ask(1, 2000, 11, 1);
	verdict_is(100, STATE_MISMATCH);
}
END_TEST

START_TEST(blocks_must_agree_with_each_other)
{
	ask(1, 1000, 10, 1);
	ask(1, 1000, 20, 1);
	verdict_is(0, STATE_MISMATCH);
	clear();
	guard(5, 0, 10);
	guard(5, 0, 20); /* the threshold is no part of the definition */
	verdict_is(0, STATE_ALLOWED);
	req.guards[1].min_samples++;
	verdict_is(0, STATE_MISMATCH);
	clear();
	sample(6, 0, 1);
	sample(6, 0, 1);
	report.samples[1].ttl_ms++;
	ck_assert_int_eq(state_report(st, 0, &report).verdict, STATE_MISMATCH);
}
END_TEST

START_TEST(a_mismatched_report_adds_no_sample)
{
	sample(5, 0, 10);
	ck_assert_int_eq(state_report(st, 0, &report).verdict, STATE_ALLOWED);
	clear();
	sample(5, 0, 90);
	sample(5, 0, 90);
	report.samples[1].max_samples++;
	ck_assert_int_eq(state_report(st, 0, &report).verdict, STATE_MISMATCH);
	guard(5, 0, 100);
	verdict_is(0, STATE_ALLOWED);
	ck_assert_uint_eq(resp.guards[0].current_ms, 10);
	/* A tracker lives for its ttl after its last use. */
	ck_assert_uint_eq(state_trackers(st, 999), 1);
	ck_assert_uint_eq(state_trackers(st, 1000), 0);
}
END_TEST

/* Its samples die, but its definition lives on while it is asked for. */
START_TEST(a_guard_keeps_a_tracker_alive)
{
	sample(5, 0, 10);
	ck_assert_int_eq(state_report(st, 0, &report).verdict, STATE_ALLOWED);
	guard(5, 0, 100);
	verdict_is(900, STATE_ALLOWED);
	ck_assert_uint_eq(resp.guards[0].current_ms, 10);
	report.samples[0].min_samples++;
	ck_assert_int_eq(
	    state_report(st, 1899, &report).verdict, STATE_MISMATCH);
	ck_assert_int_eq(
	    state_report(st, 1900, &report).verdict, STATE_ALLOWED);
}
END_TEST

START_TEST(the_bucket_quota_counts_live_ones)
{
	struct state_result r;
	uint8_t id;

	for (id = 1; id <= 4; id++) {
		clear();
		ask(id, 1000, 10, 10);
		verdict_is(0, STATE_ALLOWED);
	}
	clear();
	ask(1, 1000, 10, 5);
	ask(77, 1000, 10, 6);
	r = check(500);
	ck_assert_int_eq(r.verdict, STATE_QUOTA);
	ck_assert_int_eq(r.quota, QUOTA_RATE_BUCKETS);
	ck_assert_uint_eq(resp.resources[0].tokens, 5);
	ck_assert_uint_eq(resp.resources[1].tokens, 6);
	/* Nothing was consumed, and known buckets still answer. */
	clear();
	ask(1, 1000, 10, 5);
	verdict_is(500, STATE_ALLOWED);
	/* Three fill up and make room. */
	ck_assert_uint_eq(state_buckets(st, 999), 4);
	ck_assert_uint_eq(state_buckets(st, 1000), 1);
	clear();
	ask(77, 1000, 10, 6);
	verdict_is(1000, STATE_ALLOWED);
}
END_TEST

START_TEST(denied_buckets_do_not_stay)
{
	uint8_t id;

	for (id = 1; id <= 100; id++) {
		clear();
		ask(id, 1000, 10, 11);
		verdict_is(0, STATE_DENIED);
	}
	ck_assert_uint_eq(state_buckets(st, 0), 0);
}
END_TEST

START_TEST(the_window_and_ttl_quotas)
{
	ask(1, 4096, 1, 1);
	req.dedup_ttl_ms = 300;
	verdict_is(0, STATE_ALLOWED);
	req.dedup_ttl_ms = 301;
	ck_assert_int_eq(check(5000).quota, QUOTA_DEDUP_TTL);
	ck_assert_uint_eq(resp.resources[0].tokens, 1);
	req.dedup_ttl_ms = 0;
	req.resources[0].window_ms = 4097;
	ck_assert_int_eq(check(5000).quota, QUOTA_RATE_WINDOW);
	ck_assert_uint_eq(state_buckets(st, 5000), 0);
}
END_TEST

START_TEST(a_guard_only_breach_fails_every_guard)
{
	struct state_result r;

	guard(1, 0, 10);
	guard(2, 0, UINT32_MAX);
	guard(3, 0, 10);
	r = check(0);
	ck_assert_int_eq(r.verdict, STATE_QUOTA);
	ck_assert_int_eq(r.quota, QUOTA_LATENCY_TRACKERS);
	ck_assert_uint_eq(resp.guards[0].current_ms, UINT32_MAX);
	ck_assert_uint_eq(resp.guards[1].current_ms, UINT32_MAX);
	ck_assert_uint_eq(state_trackers(st, 0), 0);
	req.guard_count = 2;
	verdict_is(0, STATE_ALLOWED);
	clear();
	sample(3, 0, 1);
	ck_assert_int_eq(
	    state_report(st, 0, &report).quota, QUOTA_LATENCY_TRACKERS);
	ck_assert_int_eq(state_report(st, 999, &report).verdict, STATE_QUOTA);
	ck_assert_int_eq(
	    state_report(st, 1000, &report).verdict, STATE_ALLOWED);
}
END_TEST

START_TEST(v1_buffers_are_bounded_by_the_key)
{
	guard(1, 8, 10);
	verdict_is(0, STATE_ALLOWED);
	clear();
	guard(2, 9, 10);
	ck_assert_int_eq(check(0).quota, QUOTA_LATENCY_BUFFER);
	clear();
	sample(2, 9, 10);
	ck_assert_int_eq(
	    state_report(st, 0, &report).quota, QUOTA_LATENCY_BUFFER);
	/* buffer_size is a part of the definition here. */
	clear();
	guard(1, 7, 10);
	verdict_is(0, STATE_MISMATCH);
}
END_TEST

START_TEST(v1_rings_hold_their_buffer_size)
{
	uint32_t i;

	for (i = 1; i <= 6; i++) {
		clear();
		sample(1, 2, i * 10);
		ck_assert_int_eq(
		    state_report(st, 0, &report).verdict, STATE_ALLOWED);
	}
	guard(1, 2, 100);
	verdict_is(0, STATE_ALLOWED);
	ck_assert_uint_eq(resp.guards[0].current_ms, 55);
}
END_TEST

START_TEST(v2_rings_hold_what_the_key_says)
{
	uint32_t i;

	for (i = 1; i <= 20; i++) {
		clear();
		sample(1, 0, i);
		ck_assert_int_eq(
		    state_report(st, 0, &report).verdict, STATE_ALLOWED);
	}
	guard(1, 0, 100);
	verdict_is(0, STATE_ALLOWED);
	ck_assert_uint_eq(resp.guards[0].current_ms, (13 + 20) / 2);
}
END_TEST

static bool
overflows(const char *label)
{
	clear();
	ask(1, 1000, 1000, 1);
	req.label = (const uint8_t *)label;
	req.label_len = strlen(label);
	return check(0).label_overflow;
}

START_TEST(labels_over_the_quota_overflow)
{
	ck_assert(!overflows("a"));
	ck_assert(!overflows("b"));
	ck_assert(overflows("c"));
	ck_assert(!overflows("a"));
	ck_assert(!overflows("overflow"));
	ck_assert(!overflows(""));
	ck_assert_ptr_null(resp.label);
	ck_assert_uint_eq(resp.label_len, 0);
}
END_TEST

/*
 * Random requests over few buckets: what was allowed never adds up to more
 * than the bucket held and gained, and a denied one changes nothing that the
 * next request could tell.
 */
START_TEST(the_ledger_adds_up)
{
	uint64_t state = harness_seed(), used[5] = {0};
	int64_t now = 0;
	int step;

	for (step = 0; step < 5000; step++) {
		uint32_t n = 1 + harness_below(&state, 4), i;
		struct state_result r;

		now += harness_below(&state, 40);
		clear();
		for (i = 0; i < n; i++)
			ask((uint8_t)(1 + harness_below(&state, 4)), 1000, 50,
			    (uint16_t)(1 + harness_below(&state, 20)));
		r = check(now);
		ck_assert(
		    r.verdict == STATE_ALLOWED || r.verdict == STATE_DENIED);
		for (i = 0; i < n; i++)
			if (r.verdict == STATE_ALLOWED)
				used[req.resources[i].id[0]] +=
				    req.resources[i].tokens;
		for (i = 1; i <= 4; i++)
			ck_assert_uint_le(
			    used[i], 50 + (uint64_t)now * 50 / 1000);
		ck_assert(r.resource_failed == (r.verdict == STATE_DENIED));
	}
	/* It was a test of something: much of what there was is used. */
	ck_assert_uint_gt(used[1], (uint64_t)now * 50 / 1000 / 2);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("sandbox_state");
	TCase *v2 = tcase_create("v2"), *v1 = tcase_create("v1");

	tcase_set_timeout(v2, 60);
	tcase_add_checked_fixture(v2, setup_v2, teardown);
	tcase_add_test(v2, allows_then_denies_then_refills);
	tcase_add_test(v2, a_denial_consumes_nothing_anywhere);
	tcase_add_test(v2, a_failed_guard_consumes_nothing);
	tcase_add_test(v2, a_threshold_of_zero_never_passes);
	tcase_add_test(v2, blocks_of_one_bucket_add_up);
	tcase_add_test(v2, deficits_saturate);
	tcase_add_test(v2, zeros_and_nothing_are_malformed);
	tcase_add_test(v2, a_live_bucket_keeps_its_definition);
	tcase_add_test(v2, blocks_must_agree_with_each_other);
	tcase_add_test(v2, a_mismatched_report_adds_no_sample);
	tcase_add_test(v2, a_guard_keeps_a_tracker_alive);
	tcase_add_test(v2, the_bucket_quota_counts_live_ones);
	tcase_add_test(v2, denied_buckets_do_not_stay);
	tcase_add_test(v2, the_window_and_ttl_quotas);
	tcase_add_test(v2, a_guard_only_breach_fails_every_guard);
	tcase_add_test(v2, v2_rings_hold_what_the_key_says);
	tcase_add_test(v2, labels_over_the_quota_overflow);
	tcase_add_test(v2, the_ledger_adds_up);
	suite_add_tcase(suite, v2);
	tcase_set_timeout(v1, 60);
	tcase_add_checked_fixture(v1, setup_v1, teardown);
	tcase_add_test(v1, v1_buffers_are_bounded_by_the_key);
	tcase_add_test(v1, v1_rings_hold_their_buffer_size);
	suite_add_tcase(suite, v1);
	return harness_run(suite);
}
