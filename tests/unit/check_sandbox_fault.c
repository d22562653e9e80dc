/*
 * The table of faults and its dice: ranges, rates, seeds, that no fault moves
 * another, and that the manual page lists what the tables list, in order.
 */
#include "sandbox/fault.h"

#include <stdlib.h>
#include <string.h>

#include "proto/err.h"
#include "sandbox/counters.h"
#include "sandbox/damage.h"
#include "tests/unit/harness.h"

#define ROLLS 10000

static struct faults faults;
static struct fault_dice dice;
static struct fault_plan plan;

static void
setup(void)
{
	memset(&faults, 0, sizeof faults);
	fault_dice_init(&dice, 42, 0);
}

static void
roll(void)
{
	fault_roll(&dice, &faults, &plan);
}

static const struct {
	enum fault fault;
	const char *text;
	double value; /* -1: refused */
} values[] = {
    {FAULT_DROP, "0", 0},
    {FAULT_DROP, "0.25", 0.25},
    {FAULT_REBIND, "1", 1},
    {FAULT_CORRUPT, "1e-3", 0.001},
    {FAULT_CORRUPT, "1.01", -1},
    {FAULT_WRONG_ID, "-0", -1},
    {FAULT_DUPLICATE, "", -1},
    {FAULT_DUPLICATE, "nan", -1},
    {FAULT_DELAY, "60000", 60000},
    {FAULT_DELAY, "60001", -1},
    {FAULT_JITTER, "60000", 60000},
    {FAULT_JITTER, "1.5", -1},
    {FAULT_CLOCK_OFFSET, "4294967295", 4294967295.0},
    {FAULT_CLOCK_OFFSET, "-4294967295", -4294967295.0},
    {FAULT_CLOCK_OFFSET, "-0", 0},
    {FAULT_CLOCK_OFFSET, "4294967296", -1},
    {FAULT_CLOCK_OFFSET, "-9223372036854775808", -1},
    {FAULT_CLOCK_OFFSET, "99999999999999999999", -1},
    {FAULT_CLOCK_OFFSET, "", -1},
    {FAULT_CLOCK_OFFSET, "-", -1},
    {FAULT_CLOCK_OFFSET, " 1", -1},
    {FAULT_CLOCK_OFFSET, "0x10", -1},
};

START_TEST(values_are_in_range)
{
	const int refused = values[_i].value == -1 ? RLA_EINVAL : 0;
	double v = 77;

	ck_assert_int_eq(
	    fault_parse(values[_i].fault, values[_i].text, &v), refused);
	ck_assert(v == (refused != 0 ? 77 : values[_i].value));
	ck_assert_ptr_nonnull(
	    strstr(fault_refusal(values[_i].fault), "not a number from "));
}
END_TEST

START_TEST(without_faults_nothing_happens)
{
	int i;

	for (i = 0; i < ROLLS; i++) {
		roll();
		ck_assert(!plan.lose && !plan.duplicate && !plan.corrupt);
		ck_assert(!plan.rebind && plan.wrong_id == 0);
		ck_assert_uint_eq(plan.delay_ms + plan.copy_ms, 0);
	}
	ck_assert_int_eq(fault_clock_ms(&faults), 0);
}
END_TEST

static bool
hit(enum fault f)
{
	switch (f) {
	case FAULT_DROP:
		return plan.lose;
	case FAULT_DUPLICATE:
		return plan.duplicate;
	case FAULT_CORRUPT:
		return plan.corrupt;
	case FAULT_WRONG_ID:
		return plan.wrong_id != 0;
	case FAULT_REBIND:
		return plan.rebind;
	case FAULT_DELAY:
	case FAULT_JITTER:
		return plan.delay_ms > 0;
	case FAULT_CLOCK_OFFSET:
		break;
	}
	return fault_clock_ms(&faults) != 0;
}

static const enum fault probabilities[] = {
    FAULT_DROP, FAULT_DUPLICATE, FAULT_CORRUPT, FAULT_WRONG_ID, FAULT_REBIND};

/* As often as it should, and no other fault with it. */
START_TEST(a_probability_is_a_rate)
{
	const enum fault f = probabilities[_i];
	int i, hits = 0, other;

	faults.values[f] = 0.3;
	for (i = 0; i < ROLLS; i++) {
		roll();
		hits += hit(f);
		for (other = 0; other < FAULT_COUNT; other++)
			ck_assert(other == (int)f || !hit((enum fault)other));
	}
	ck_assert_int_gt(hits, ROLLS * 28 / 100);
	ck_assert_int_lt(hits, ROLLS * 32 / 100);
	faults.values[f] = 1;
	for (i = 0; i < ROLLS; i++) {
		roll();
		ck_assert(hit(f));
	}
}
END_TEST

/* The plans of a run, without what the fault itself does. */
static void
record(struct fault_plan out[ROLLS], enum fault masked)
{
	int i;

	fault_dice_init(&dice, 42, 0);
	for (i = 0; i < ROLLS; i++) {
		memset(&plan, 0, sizeof plan);
		roll();
		plan.lose &= masked != FAULT_DROP;
		plan.duplicate &= masked != FAULT_DUPLICATE;
		plan.corrupt &= masked != FAULT_CORRUPT;
		plan.rebind &= masked != FAULT_REBIND;
		if (masked == FAULT_WRONG_ID)
			plan.wrong_id = 0;
		if (masked == FAULT_DELAY || masked == FAULT_JITTER)
			plan.delay_ms = plan.copy_ms = 0;
		out[i] = plan;
	}
}

START_TEST(a_fault_moves_no_other)
{
	static struct fault_plan with[ROLLS], without[ROLLS];
	size_t i;

	for (i = 0; i < sizeof probabilities / sizeof probabilities[0]; i++)
		faults.values[probabilities[i]] = 0.5;
	faults.values[FAULT_DELAY] = 3;
	faults.values[FAULT_JITTER] = 100;
	record(with, (enum fault)_i);
	faults.values[_i] = _i == FAULT_CLOCK_OFFSET ? -5 : 0;
	record(without, (enum fault)_i);
	ck_assert_mem_eq(with, without, sizeof with);
}
END_TEST

START_TEST(seeds_and_servers_have_their_own_faults)
{
	struct fault_dice again, seed, server;
	struct fault_plan p;
	int same[3] = {0}, i;

	faults.values[FAULT_CORRUPT] = 0.5;
	fault_dice_init(&again, 42, 0);
	fault_dice_init(&seed, 43, 0);
	fault_dice_init(&server, 42, 1);
	for (i = 0; i < ROLLS; i++) {
		roll();
		fault_roll(&again, &faults, &p);
		same[0] += p.corrupt == plan.corrupt && p.damage == plan.damage;
		fault_roll(&seed, &faults, &p);
		same[1] += p.corrupt == plan.corrupt;
		fault_roll(&server, &faults, &p);
		same[2] += p.corrupt == plan.corrupt;
	}
	ck_assert_int_eq(same[0], ROLLS);
	for (i = 1; i < 3; i++) {
		ck_assert_int_gt(same[i], ROLLS * 45 / 100);
		ck_assert_int_lt(same[i], ROLLS * 55 / 100);
	}
}
END_TEST

/* Any two strike together as often as by chance. */
START_TEST(faults_are_independent)
{
	const enum fault one = probabilities[_i / 5];
	const enum fault other = probabilities[_i % 5];
	int i, both = 0;

	if (one == other)
		return;
	faults.values[one] = faults.values[other] = 0.5;
	for (i = 0; i < ROLLS; i++) {
		roll();
		both += hit(one) && hit(other);
	}
	ck_assert_int_gt(both, ROLLS * 22 / 100);
	ck_assert_int_lt(both, ROLLS * 28 / 100);
}
END_TEST

/* The dice roll while a fault is off, too: when it came does not matter. */
START_TEST(a_fault_goes_on_where_it_would_have_been)
{
	const enum fault f = probabilities[_i];
	static bool always[ROLLS];
	int i;

	faults.values[f] = 0.5;
	for (i = 0; i < ROLLS; i++) {
		roll();
		always[i] = hit(f);
	}
	fault_dice_init(&dice, 42, 0);
	faults.values[f] = 0;
	for (i = 0; i < ROLLS; i++) {
		if (i == ROLLS / 2)
			faults.values[f] = 0.5;
		roll();
		ck_assert(i < ROLLS / 2 || hit(f) == always[i]);
	}
}
END_TEST

START_TEST(a_jitter_is_uniform_and_on_top)
{
	int seen[4] = {0}, apart = 0, i;

	faults.values[FAULT_DELAY] = 10;
	faults.values[FAULT_JITTER] = 3;
	for (i = 0; i < ROLLS; i++) {
		roll();
		ck_assert_uint_ge(plan.delay_ms, 10);
		ck_assert_uint_le(plan.delay_ms, 13);
		ck_assert_uint_ge(plan.copy_ms, 10);
		ck_assert_uint_le(plan.copy_ms, 13);
		seen[plan.delay_ms - 10]++;
		apart += plan.copy_ms != plan.delay_ms;
	}
	for (i = 0; i < 4; i++) {
		ck_assert_int_gt(seen[i], ROLLS * 22 / 100);
		ck_assert_int_lt(seen[i], ROLLS * 28 / 100);
	}
	ck_assert_int_gt(apart, ROLLS * 70 / 100);
}
END_TEST

/* A wrong id keeps the start time, so it is no other server's either. */
START_TEST(a_wrong_id_differs_below_the_start_time)
{
	uint32_t seen = 0;
	int i;

	faults.values[FAULT_WRONG_ID] = 1;
	for (i = 0; i < ROLLS; i++) {
		roll();
		ck_assert_uint_ne(plan.wrong_id, 0);
		ck_assert_uint_le(plan.wrong_id, 0x7FFFFF);
		seen |= plan.wrong_id;
	}
	ck_assert_uint_eq(seen, 0x7FFFFF);
}
END_TEST

START_TEST(a_clock_is_off_by_its_offset)
{
	faults.values[FAULT_CLOCK_OFFSET] = -90000;
	ck_assert_int_eq(fault_clock_ms(&faults), -90000);
	faults.values[FAULT_CLOCK_OFFSET] = FAULT_MAX_CLOCK;
	ck_assert_int_eq(fault_clock_ms(&faults), FAULT_MAX_CLOCK);
}
END_TEST

static char *
manual(void)
{
	const char *srcdir = getenv("srcdir");
	char path[1024], *text = calloc(1, 1 << 16);
	FILE *f;

	snprintf(path, sizeof path, "%s/man/rl-sandbox.1",
	    srcdir != NULL ? srcdir : ".");
	f = fopen(path, "re");
	ck_assert_msg(f != NULL && text != NULL, "%s", path);
	ck_assert_uint_lt(fread(text, 1, (1 << 16) - 1, f), (1 << 16) - 1);
	fclose(f);
	return text;
}

/* The next line that begins so has to be the named one, and whole. */
static const char *
next_item(const char *at, const char *begin, const char *name)
{
	char want[128];
	size_t n;

	at = strstr(at, begin);
	ck_assert_msg(at != NULL, "no more items before %s", name);
	n = (size_t)snprintf(want, sizeof want, "%s%s", begin, name);
	ck_assert_msg(
	    strncmp(at, want, n) == 0 && (at[n] == '\n' || at[n] == ' '),
	    "want %s, got %.40s", want + 1, at + 1);
	return at + n;
}

START_TEST(the_manual_lists_the_tables_in_their_order)
{
	char *text = manual();
	const char *at = strstr(text, "\n.It Fl Fl server Ar i\n");
	int i;

	ck_assert_ptr_nonnull(at);
	at++;
	for (i = 0; i < FAULT_COUNT; i++)
		at = next_item(at, "\n.It Fl Fl ", fault_name((enum fault)i));
	at = strstr(text, "\n.Ss Damage\n");
	ck_assert_ptr_nonnull(at);
	for (i = 0; i < DAMAGE_KINDS; i++)
		at = next_item(at, "\n.It Cm ", damage_name((enum damage)i));
	at = strstr(text, "\n.Ss Counters\n");
	ck_assert_ptr_nonnull(at);
	for (i = 0; i < COUNTER_COUNT; i++)
		at = next_item(at, "\n.It Cm ", counter_name((enum counter)i));
	at = strstr(text, "\n.It Cm start Ar i\n");
	ck_assert_ptr_nonnull(at);
	at++;
	for (i = 0; i < FAULT_COUNT; i++)
		at = next_item(at, "\n.It Cm ", fault_name((enum fault)i));
	free(text);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("sandbox_fault");
	TCase *tc = tcase_create("fault");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_loop_test(tc, values_are_in_range, 0,
	    (int)(sizeof values / sizeof values[0]));
	tcase_add_test(tc, without_faults_nothing_happens);
	tcase_add_loop_test(tc, a_probability_is_a_rate, 0,
	    (int)(sizeof probabilities / sizeof probabilities[0]));
	tcase_add_loop_test(tc, a_fault_moves_no_other, 0, FAULT_COUNT);
	tcase_add_test(tc, seeds_and_servers_have_their_own_faults);
	tcase_add_loop_test(tc, faults_are_independent, 0, 25);
	tcase_add_loop_test(tc, a_fault_goes_on_where_it_would_have_been, 0, 5);
	tcase_add_test(tc, a_jitter_is_uniform_and_on_top);
	tcase_add_test(tc, a_wrong_id_differs_below_the_start_time);
	tcase_add_test(tc, a_clock_is_off_by_its_offset);
	tcase_add_test(tc, the_manual_lists_the_tables_in_their_order);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
