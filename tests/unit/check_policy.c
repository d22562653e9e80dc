/*
 * The HA policy: plans in numbers, the machine's contract point by point, and
 * tens of thousands of random operations against the oracle. The walk through
 * the specification's own tables is in tests/replay.
 */
#include "daemon/core/policy.h"

#include <inttypes.h>
#include <string.h>

#include "tests/unit/harness.h"
#include "tests/unit/policy_oracle.h"

#define MS    INT64_C(1000)
#define START (INT64_C(7000) * MS)
#define RUNS  60000

static uint64_t seed;
static struct policy policy;
static struct policy_plan plan;
static struct policy_op op;

static void
make_plan(void)
{
	struct policy_refusal why;

	ck_assert_msg(
	    policy_plan_init(&plan, &policy, &why) == 0, "%s", why.reason);
}

/* The recommended defaults: 20 ms rounds at 0 and 20, final 40 to 60. */
static void
setup(void)
{
	policy_defaults(&policy);
	make_plan();
}

static void
begin(uint32_t servers)
{
	policy_op_init(&op, &plan, servers, 0, START, POLICY_NEVER, START);
}

static void
take_send(int64_t now, uint64_t targets, uint32_t round)
{
	struct policy_action a = policy_op_next(&op, START + now);

	ck_assert_int_eq(a.act, POLICY_SEND);
	ck_assert_uint_eq(a.targets, targets);
	ck_assert_uint_eq(a.round, round);
	policy_op_sent(&op, targets);
}

static void
take_nothing(int64_t now)
{
	ck_assert_int_eq(policy_op_next(&op, START + now).act, POLICY_NOTHING);
}

static void
take_deliver(int64_t now, uint64_t targets)
{
	struct policy_action a = policy_op_next(&op, START + now);

	ck_assert_int_eq(a.act, POLICY_DELIVER);
	ck_assert_uint_eq(a.targets, targets);
}

static void
take_complete(int64_t now, enum policy_end end, uint32_t server, uint32_t round)
{
	struct policy_action a = policy_op_next(&op, START + now);

	ck_assert_int_eq(a.act, POLICY_COMPLETE);
	ck_assert_int_eq(a.end, end);
	ck_assert_uint_eq(a.server, server);
	ck_assert_uint_eq(a.round, round);
	ck_assert_uint_eq(a.targets, 0);
	ck_assert_int_eq(policy_op_timeout(&op), POLICY_NEVER);
	take_nothing(now);
}

START_TEST(the_defaults_in_numbers)
{
	ck_assert_uint_eq(plan.rounds, 2);
	ck_assert_int_eq(plan.round_end_us[0], 20 * MS);
	ck_assert_int_eq(plan.round_end_us[1], 40 * MS);
	ck_assert_int_eq(plan.prefer_end_us[0], 20 * MS);
	ck_assert_int_eq(plan.prefer_end_us[1], 40 * MS);
	ck_assert_int_eq(plan.final_prefer_end_us, 40 * MS);
	ck_assert_int_eq(plan.horizon_us, 60 * MS);
	ck_assert_uint_eq(plan.ttl_ms, 60);
	ck_assert(plan.completion_delivery);
}
END_TEST

START_TEST(a_growing_schedule_in_numbers)
{
	policy.unit_ms = 5;
	policy.replay_count = 3;
	policy.gap = (struct schedule){SCHEDULE_EXPONENTIAL, 2, 3, 10};
	policy.preference = (struct schedule){SCHEDULE_LINEAR, 0, 2, 5};
	policy.final_units = 4;
	policy.final_preference_units = 3;
	policy.completion_delivery = false;
	make_plan();
	/* B: 2, 6, 10, 10; P: 0, 2, 4, 5. */
	ck_assert_uint_eq(plan.rounds, 4);
	ck_assert_int_eq(plan.round_end_us[0], 2 * 5 * MS);
	ck_assert_int_eq(plan.round_end_us[1], 8 * 5 * MS);
	ck_assert_int_eq(plan.round_end_us[2], 18 * 5 * MS);
	ck_assert_int_eq(plan.round_end_us[3], 28 * 5 * MS);
	ck_assert_int_eq(plan.prefer_end_us[0], 0);
	ck_assert_int_eq(plan.prefer_end_us[1], 4 * 5 * MS);
	ck_assert_int_eq(plan.prefer_end_us[2], 12 * 5 * MS);
	ck_assert_int_eq(plan.prefer_end_us[3], 23 * 5 * MS);
	ck_assert_int_eq(plan.final_prefer_end_us, 31 * 5 * MS);
	ck_assert_int_eq(plan.horizon_us, 32 * 5 * MS);
	ck_assert_uint_eq(plan.ttl_ms, 160);
	ck_assert(!plan.completion_delivery);
}
END_TEST

START_TEST(first_round_preset_in_numbers)
{
	policy.first_round = true;
	policy.gap = (struct schedule){SCHEDULE_LINEAR, 2, 1, 9};
	policy.preference.initial = 77; /* not looked at */
	make_plan();
	ck_assert_int_eq(plan.prefer_end_us[0], 40 * MS);
	ck_assert_int_eq(plan.round_end_us[0], 40 * MS);
	ck_assert_int_eq(plan.prefer_end_us[1], 40 * MS);
	ck_assert_int_eq(plan.round_end_us[1], 100 * MS);
	ck_assert_int_eq(plan.final_prefer_end_us, 100 * MS);
}
END_TEST

START_TEST(the_longest_horizon_fits)
{
	struct policy_refusal why;

	policy.unit_ms = 1;
	policy.replay_count = 0;
	policy.gap.initial = UINT32_MAX - 1;
	make_plan();
	ck_assert_uint_eq(plan.ttl_ms, UINT32_MAX);
	ck_assert_int_eq(plan.horizon_us, UINT32_MAX * MS);
	policy.final_units = 2;
	ck_assert_int_eq(policy_plan_init(&plan, &policy, &why), -1);
	ck_assert_ptr_null(why.key);
	ck_assert_str_eq(
	    why.reason, "its horizon must not be over 4294967295 ms");
	policy.unit_ms = UINT32_MAX;
	policy.gap.initial = 1;
	policy.final_units = 0;
	make_plan();
	ck_assert_uint_eq(plan.ttl_ms, UINT32_MAX);
}
END_TEST

static const struct {
	const char *key;
	struct policy policy;
} refused[] = {
#define GAP .gap = {SCHEDULE_FIXED, 1, 0, 0}
    {"unit_ms", {.unit_ms = 0, GAP}},
    {"replay_count", {.unit_ms = 1, .replay_count = 32, GAP}},
    {"replay_gap", {.unit_ms = 1}},
    {"replay_gap", {.unit_ms = 1, .gap = {SCHEDULE_LINEAR, 2, 1, 1}}},
    {"replay_gap", {.unit_ms = 1, .gap = {SCHEDULE_EXPONENTIAL, 2, 2, 1}}},
    {"replay_gap", {.unit_ms = 1, .gap = {SCHEDULE_EXPONENTIAL, 2, 0, 9}}},
    {"replay_gap", {.unit_ms = 1, .gap = {(enum schedule_kind)3, 1, 1, 1}}},
    {"preference",
	{.unit_ms = 1, GAP, .preference = {SCHEDULE_FIXED, 2, 0, 0}}},
    {"preference",
	{.unit_ms = 1, GAP, .preference = {SCHEDULE_LINEAR, 1, 0, 0}}},
    {"preference",
	{.unit_ms = 1, GAP, .preference = {SCHEDULE_EXPONENTIAL, 1, 0, 1}}},
    {"preference",
	{.unit_ms = 1, GAP, .preference = {(enum schedule_kind)9, 0, 0, 0}}},
    /* Longer than the gap in a later round only. */
    {"preference", {.unit_ms = 1,
		       .replay_count = 2,
		       GAP,
		       .preference = {SCHEDULE_LINEAR, 0, 1, 5}}},
    {"final_preference_units",
	{.unit_ms = 1, GAP, .final_units = 1, .final_preference_units = 2}},
    {"final_preference_units", {.unit_ms = 1,
				   GAP,
				   .first_round = true,
				   .final_units = 1,
				   .final_preference_units = 1}},
    {NULL, {.unit_ms = UINT32_MAX,
	       .replay_count = 31,
	       .gap = {SCHEDULE_FIXED, UINT32_MAX, 0, 0},
	       .final_units = UINT32_MAX}},
    {NULL, {.unit_ms = 65536, .gap = {SCHEDULE_FIXED, 65536, 0, 0}}},
#undef GAP
};

START_TEST(bad_policies_are_refused_by_name)
{
	const struct policy_plan before = plan;
	struct policy_refusal why = {0};

	ck_assert_int_eq(
	    policy_plan_init(&plan, &refused[_i].policy, &why), -1);
	ck_assert_pstr_eq(why.key, refused[_i].key);
	ck_assert_ptr_nonnull(why.reason);
	ck_assert_mem_eq(&plan, &before, sizeof(plan));
	ck_assert_int_eq(
	    policy_plan_init(&plan, &refused[_i].policy, NULL), -1);
}
END_TEST

START_TEST(no_server_ends_at_once)
{
	begin(0);
	take_complete(0, POLICY_NO_SERVER, 0, 0);
	ck_assert(!policy_op_answer(&op, 0));
}
END_TEST

START_TEST(sixty_four_servers_fit)
{
	begin(64);
	take_send(0, UINT64_MAX, 0);
	ck_assert(policy_op_answer(&op, 63));
	ck_assert(!policy_op_answer(&op, 64));
	ck_assert(policy_op_answer(&op, 0));
	policy_op_advance(&op, START);
	take_deliver(0, UINT64_MAX >> 1 & ~UINT64_C(1));
	take_complete(0, POLICY_SELECTED, 0, 0);
}
END_TEST

START_TEST(prepared_until_the_send_is_taken)
{
	begin(2);
	ck_assert_int_eq(op.state, POLICY_PREPARED);
	policy_op_advance(&op, START + 1);
	ck_assert_int_eq(op.state, POLICY_PREPARED);
	take_send(1, 3, 0);
	ck_assert_int_eq(op.state, POLICY_ROUND);
	take_nothing(1);
}
END_TEST

START_TEST(an_answer_is_only_recorded)
{
	begin(2);
	take_send(0, 3, 0);
	ck_assert(policy_op_answer(&op, 0));
	take_nothing(5 * MS);
	/* Due at once, so an owner that forgot to judge is woken. */
	ck_assert_int_le(policy_op_timeout(&op), START + 5 * MS);
	policy_op_advance(&op, START + 5 * MS);
	take_deliver(5 * MS, 2);
	take_complete(5 * MS, POLICY_SELECTED, 0, 0);
}
END_TEST

START_TEST(no_send_from_the_horizon_on)
{
	begin(2);
	take_nothing(60 * MS); /* offered at 0, taken far too late */
	policy_op_advance(&op, START + 60 * MS);
	take_complete(60 * MS, POLICY_TIMEOUT, 0, 2);

	begin(2);
	take_send(60 * MS - 1, 3, 0);
}
END_TEST

START_TEST(no_delivery_from_the_horizon_on)
{
	begin(3);
	take_send(0, 7, 0);
	ck_assert(policy_op_answer(&op, 1));
	policy_op_advance(&op, START + 59 * MS);
	take_complete(60 * MS, POLICY_SELECTED, 1, 0);
}
END_TEST

START_TEST(no_delivery_to_one_that_answers_meanwhile)
{
	begin(3);
	take_send(0, 7, 0);
	ck_assert(policy_op_answer(&op, 0));
	policy_op_advance(&op, START);
	ck_assert(!policy_op_answer(&op, 2));
	take_deliver(0, 2);
	take_complete(0, POLICY_SELECTED, 0, 0);
}
END_TEST

START_TEST(no_send_from_the_callers_deadline_on)
{
	policy_op_init(&op, &plan, 2, 0, START, START + 30 * MS, START);
	take_send(0, 3, 0);
	ck_assert_int_eq(policy_op_timeout(&op), START + 20 * MS);
	policy_op_advance(&op, START + 20 * MS);
	ck_assert_int_eq(policy_op_timeout(&op), START + 30 * MS);
	take_nothing(30 * MS);
	policy_op_advance(&op, START + 30 * MS);
	take_complete(30 * MS, POLICY_TIMEOUT, 0, 1);
}
END_TEST

START_TEST(a_failed_first_send_ends_it)
{
	begin(2);
	ck_assert_int_eq(policy_op_next(&op, START).act, POLICY_SEND);
	policy_op_sent(&op, 0);
	take_complete(0, POLICY_NOT_SENT, 0, 0);
	policy_op_sent(&op, 3); /* late, of no effect */
	take_nothing(0);
}
END_TEST

START_TEST(a_failed_replay_does_not)
{
	begin(2);
	ck_assert_int_eq(policy_op_next(&op, START).act, POLICY_SEND);
	policy_op_sent(&op, 2);
	policy_op_advance(&op, START + 20 * MS);
	ck_assert_int_eq(policy_op_next(&op, START + 20 * MS).act, POLICY_SEND);
	policy_op_sent(&op, 0);
	take_nothing(20 * MS);
	ck_assert(policy_op_answer(&op, 0));
	policy_op_advance(&op, START + 21 * MS);
	take_deliver(21 * MS, 2);
	take_complete(21 * MS, POLICY_SELECTED, 0, 1);
}
END_TEST

START_TEST(cancel_counts_only_before_the_decision)
{
	begin(2);
	take_send(0, 3, 0);
	policy_op_answer(&op, 0);
	policy_op_advance(&op, START);
	policy_op_cancel(&op);
	ck_assert_int_eq(op.state, POLICY_TERMINAL);
	take_deliver(0, 2);
	take_complete(0, POLICY_SELECTED, 0, 0);

	begin(2);
	take_send(0, 3, 0);
	policy_op_answer(&op, 1);
	policy_op_cancel(&op);
	ck_assert_int_eq(op.state, POLICY_CANCELLED);
	policy_op_advance(&op, START + 60 * MS);
	take_complete(60 * MS, POLICY_STOPPED, 0, 0);
	policy_op_cancel(&op);
	take_nothing(60 * MS);
}
END_TEST

START_TEST(a_cancel_before_the_send_sends_nothing)
{
	begin(2);
	policy_op_cancel(&op);
	take_complete(0, POLICY_STOPPED, 0, 0);
}
END_TEST

/* Adaptive preference. */

static void
begin_suspecting(uint32_t servers, uint64_t suspected)
{
	policy.suspect_after = 1;
	make_plan();
	policy_op_init(
	    &op, &plan, servers, suspected, START, POLICY_NEVER, START);
}

static void
take_missed(int64_t now, uint32_t server)
{
	struct policy_action a = policy_op_next(&op, START + now);

	ck_assert_int_eq(a.act, POLICY_MISSED);
	ck_assert_uint_eq(a.server, server);
	ck_assert_uint_eq(a.targets, 0);
}

static const struct {
	uint32_t servers;
	uint32_t preferred;
	uint64_t suspected;
} preferences[] = {
    {3, 0, 0},
    {3, 1, 1},
    {3, 0, 2},
    {3, 2, 3},
    {3, 1, 5},
    {3, 0, 7}, /* all of them: as the specification has it */
    {3, 0, UINT64_MAX},
    {1, 0, 1},
    {64, 63, UINT64_MAX >> 1},
    {64, 0, UINT64_MAX},
    {64, 0, UINT64_MAX << 1},
    {0, 0, 1},
};

START_TEST(the_preferred_is_the_oldest_unsuspected)
{
	begin_suspecting(preferences[_i].servers, preferences[_i].suspected);
	ck_assert_uint_eq(op.preferred, preferences[_i].preferred);
}
END_TEST

START_TEST(the_plan_tells_suspect_after)
{
	ck_assert_uint_eq(plan.suspect_after, 0);
	policy.suspect_after = UINT32_MAX;
	make_plan();
	ck_assert_uint_eq(plan.suspect_after, UINT32_MAX);
}
END_TEST

START_TEST(a_miss_comes_before_the_other_actions)
{
	begin_suspecting(2, 0);
	take_send(0, 3, 0);
	ck_assert(policy_op_answer(&op, 1));
	policy_op_advance(&op, START + 20 * MS);
	take_missed(20 * MS, 0);
	take_deliver(20 * MS, 1);
	take_complete(20 * MS, POLICY_SELECTED, 1, 0);
}
END_TEST

START_TEST(a_miss_does_not_take_the_send)
{
	begin_suspecting(2, 1);
	take_send(0, 3, 0);
	policy_op_advance(&op, START + 20 * MS);
	take_missed(20 * MS, 1);
	take_send(20 * MS, 3, 1);
	take_nothing(20 * MS);
}
END_TEST

START_TEST(a_younger_suspect_still_waits)
{
	begin_suspecting(3, 4);
	take_send(0, 7, 0);
	ck_assert(policy_op_answer(&op, 2));
	policy_op_advance(&op, START + 1);
	take_nothing(1);
	ck_assert_int_eq(policy_op_timeout(&op), START + 20 * MS);
}
END_TEST

START_TEST(state_names_are_the_specifications)
{
	ck_assert_str_eq(policy_state_name(POLICY_PREPARED), "Prepared");
	ck_assert_str_eq(policy_state_name(POLICY_ROUND), "TransmissionRound");
	ck_assert_str_eq(policy_state_name(POLICY_FINAL), "FinalReceive");
	ck_assert_str_eq(policy_state_name(POLICY_TERMINAL), "Terminal");
	ck_assert_str_eq(policy_state_name(POLICY_CANCELLED), "Cancelled");
}
END_TEST

static uint32_t
pick(void *arg, uint32_t bound)
{
	return harness_below(arg, bound);
}

START_TEST(random_operations_agree_with_the_oracle)
{
	struct oracle_reach reach = {0};
	const char *broken;
	uint64_t state;

	for (uint64_t i = 0; i < RUNS; i++) {
		state = seed + i;
		state = harness_random(&state);
		broken = oracle_run(pick, &state, 25, &reach);
		ck_assert_msg(broken == NULL,
		    "run %" PRIu64 " of TEST_SEED=%" PRIu64
		    ": does not hold: %s",
		    i, seed, broken);
	}
	/* The runs are worth something only if they go everywhere. */
	ck_assert_uint_gt(reach.refused, RUNS / 100);
	for (int end = 0; end < 5; end++)
		ck_assert_msg(reach.ends[end] > RUNS / 1000, "end %d", end);
	ck_assert_uint_gt(reach.finals, RUNS / 100);
	ck_assert_uint_gt(reach.deliveries, RUNS / 20);
	ck_assert_uint_gt(reach.skipped, RUNS / 200);
	ck_assert_uint_gt(reach.missed, RUNS / 20);
	ck_assert_uint_gt(reach.spared, RUNS / 20);
	ck_assert_uint_gt(reach.by_preferred, RUNS / 200);
	ck_assert_uint_gt(reach.by_suspect, RUNS / 200);
	ck_assert_uint_gt(reach.all_suspect, RUNS / 50);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("policy");
	TCase *tc = tcase_create("policy");

	seed = harness_seed();
	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, the_defaults_in_numbers);
	tcase_add_test(tc, a_growing_schedule_in_numbers);
	tcase_add_test(tc, first_round_preset_in_numbers);
	tcase_add_test(tc, the_longest_horizon_fits);
	tcase_add_loop_test(tc, bad_policies_are_refused_by_name, 0,
	    sizeof(refused) / sizeof(refused[0]));
	tcase_add_test(tc, no_server_ends_at_once);
	tcase_add_test(tc, sixty_four_servers_fit);
	tcase_add_test(tc, prepared_until_the_send_is_taken);
	tcase_add_test(tc, an_answer_is_only_recorded);
	tcase_add_test(tc, no_send_from_the_horizon_on);
	tcase_add_test(tc, no_delivery_from_the_horizon_on);
	tcase_add_test(tc, no_delivery_to_one_that_answers_meanwhile);
	tcase_add_test(tc, no_send_from_the_callers_deadline_on);
	tcase_add_test(tc, a_failed_first_send_ends_it);
	tcase_add_test(tc, a_failed_replay_does_not);
	tcase_add_test(tc, cancel_counts_only_before_the_decision);
	tcase_add_test(tc, a_cancel_before_the_send_sends_nothing);
	tcase_add_loop_test(tc, the_preferred_is_the_oldest_unsuspected, 0,
	    sizeof(preferences) / sizeof(preferences[0]));
	tcase_add_test(tc, the_plan_tells_suspect_after);
	tcase_add_test(tc, a_miss_comes_before_the_other_actions);
	tcase_add_test(tc, a_miss_does_not_take_the_send);
	tcase_add_test(tc, a_younger_suspect_still_waits);
	tcase_add_test(tc, state_names_are_the_specifications);
	tcase_add_test(tc, random_operations_agree_with_the_oracle);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
