/*
 * The kinds of decisions: whatever decision.c can make has its own, each kind
 * can be made, and nothing else has one; and what a tally counts.
 */
#include "daemon/tally.h"

#include <string.h>

#include "daemon/decision.h"
#include "tests/unit/harness.h"

static struct ipc_decision d;
static struct tally tally;
static uint64_t permitted, noted;
static bool made[TALLY_KIND_COUNT];

static void
setup(void)
{
	memset(&tally, 0, sizeof(tally));
	memset(made, 0, sizeof(made));
	permitted = noted = 0;
}

/* What is in d is noted, and found again. */
static void
note(void)
{
	const int kind = tally_find(d.outcome, d.source, d.reason);

	ck_assert_msg(
	    kind >= 0, "no kind for %u, %u, %u", d.outcome, d.source, d.reason);
	ck_assert_uint_eq(tally_kinds[kind].outcome, d.outcome);
	ck_assert_uint_eq(tally_kinds[kind].source, d.source);
	ck_assert_uint_eq(tally_kinds[kind].reason, d.reason);
	tally_note(&tally, &d);
	made[kind] = true;
	permitted += d.permit;
	noted++;
}

/* As it is, and as a rule of mode shadow makes it. */
static void
note_both(void)
{
	note();
	decision_watch_only(&d);
	note();
}

static void
note_failed(enum ipc_reason reason)
{
	char room[DECISION_TEXT_MAX];

	decision_failed(&d, reason, FAILURE_OPEN, "");
	note_both();
	decision_failed(&d, reason, FAILURE_CLOSED, "");
	note_both();
	if (!decision_policy_applies(reason))
		return;
	for (int granted = 0; granted < 2; granted++) {
		decision_failed(&d, reason, FAILURE_LOCAL, "");
		decision_local(&d, granted, 0, room);
		note_both();
	}
}

static void
note_selected(bool resources_pass, bool guards_pass)
{
	const struct tenant_result r = {.end = POLICY_SELECTED,
	    .resources_pass = resources_pass,
	    .guards_pass = guards_pass};

	decision_selected(&d, &r, NULL, false);
	note_both();
}

static void
note_all(void)
{
	static const enum ipc_reason reasons[] = {IPC_REASON_VALIDATION,
	    IPC_REASON_UNKNOWN_RULE, IPC_REASON_UNAUTHORISED,
	    IPC_REASON_DISCOVERY, IPC_REASON_TRANSPORT, IPC_REASON_TIMEOUT,
	    IPC_REASON_OVERLOADED, IPC_REASON_DRAINING, IPC_REASON_INTERRUPTED};

	decision_empty(&d);
	note_both();
	decision_cancelled(&d);
	note_both();
	for (int i = 0; i < 4; i++)
		note_selected((i & 1) != 0, (i & 2) != 0);
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		note_failed(reasons[i]);
}

START_TEST(every_decision_has_its_kind)
{
	note_all();
	for (int i = 0; i < TALLY_KIND_COUNT; i++)
		ck_assert_msg(made[i], "kind %d cannot be", i);
	ck_assert_uint_eq(tally_total(&tally), noted);
	ck_assert_uint_eq(tally.permitted, permitted);
	ck_assert_uint_gt(permitted, 0);
	ck_assert_uint_lt(permitted, noted);
}
END_TEST

START_TEST(nothing_else_has_one)
{
	int kinds = 0;

	for (unsigned int o = 0; o < 300; o++) {
		for (unsigned int s = 0; s < 300; s++) {
			for (unsigned int r = 0; r < 20; r++)
				kinds += tally_find(o, s, r) >= 0;
			ck_assert_int_eq(tally_find(o, s, 255), -1);
		}
	}
	ck_assert_int_eq(kinds, TALLY_KIND_COUNT);
}
END_TEST

START_TEST(how_long_it_took)
{
	decision_empty(&d);
	d.elapsed_us = 250;
	note();
	d.elapsed_us = UINT64_MAX / 2;
	note();
	ck_assert_uint_eq(tally.latency.counts[0], 1);
	ck_assert_uint_eq(tally.latency.counts[LATENCY_BUCKETS], 1);
	ck_assert_uint_eq(tally.latency.sum_us, 250 + UINT64_MAX / 2);
}
END_TEST

/* As the manual says. */
START_TEST(one_is_small)
{
	ck_assert_uint_le(sizeof(struct tally), 400);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("tally");
	TCase *tc = tcase_create("tally");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, every_decision_has_its_kind);
	tcase_add_test(tc, nothing_else_has_one);
	tcase_add_test(tc, how_long_it_took);
	tcase_add_test(tc, one_is_small);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
