/*
 * ErrorRateControl in random lives, equal to a plain model to the microsecond:
 * the published rules as they are written, and a list of every delay that was
 * handed out, from when to when somebody slept.
 */
#include "daemon/core/errorrate.h"

#include "tests/unit/harness.h"

#define STEPS 400

static struct errorrate e;

struct model {
	int64_t burst, most_burst, min, max, current;
	int64_t from[STEPS], to[STEPS];
	int delays;
};

/* Where the next delay would start. */
static int64_t
free_from(const struct model *m, int64_t now)
{
	int64_t from = now;

	for (int i = 0; i < m->delays; i++)
		if (m->to[i] > from)
			from = m->to[i];
	return from;
}

/* -1: over the most. */
static int64_t
model_begin(struct model *m, int64_t most, int64_t now)
{
	int64_t from = free_from(m, now), to = from + m->current;

	if (m->burst > 0) {
		m->burst -= 1;
		return 0;
	}
	if (to - now > most)
		return -1;
	m->from[m->delays] = from;
	m->to[m->delays++] = to;
	m->current *= 2;
	if (m->current > m->max)
		m->current = m->max;
	return to - now;
}

static void
model_success(struct model *m)
{
	m->burst += 1;
	if (m->burst > m->most_burst)
		m->burst = m->most_burst;
	m->current /= 2;
	if (m->current < m->min)
		m->current = m->min;
}

static bool
model_is(const struct model *m, int64_t now)
{
	return e.burst == m->burst && e.delay_us == m->current &&
	       errorrate_held(&e, now) == free_from(m, now) - now;
}

/* Nobody sleeps while another one does. */
static void
no_overlap(const struct model *m)
{
	for (int i = 1; i < m->delays; i++)
		ck_assert_int_ge(m->from[i], m->to[i - 1]);
}

static void
live(uint64_t *seed)
{
	struct model m = {0};
	int64_t now = 0, wait, most, expected;

	m.burst = m.most_burst = harness_below(seed, 6);
	m.min = m.current = 1 + harness_below(seed, 1000000);
	m.max = m.min + harness_below(seed, 100000000);
	errorrate_init(&e, (uint32_t)m.burst, m.min, m.max);
	for (int i = 0; i < STEPS; i++) {
		most = harness_below(seed, 3) > 0
			   ? INT64_MAX
			   : harness_below(seed, (uint32_t)m.max + 1);
		if (harness_below(seed, 5) < 2) {
			model_success(&m);
			errorrate_success(&e);
		} else if ((expected = model_begin(&m, most, now)) < 0) {
			if (errorrate_begin_within(&e, most, now, &wait))
				ck_abort_msg(
				    "step %d: %lld", i, (long long)wait);
		} else if (!errorrate_begin_within(&e, most, now, &wait) ||
			   wait != expected) {
			ck_abort_msg("step %d: %lld, not %lld", i,
			    (long long)wait, (long long)expected);
		}
		if (!model_is(&m, now))
			ck_abort_msg("step %d: another state", i);
		if (harness_below(seed, 3) == 0)
			now += harness_below(seed, (uint32_t)m.max * 2);
	}
	no_overlap(&m);
}

START_TEST(random_lives_are_the_models)
{
	uint64_t seed = harness_seed();

	for (int i = 0; i < 100; i++)
		live(&seed);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("errorrate_random");
	TCase *tc = tcase_create("errorrate_random");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, random_lives_are_the_models);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
