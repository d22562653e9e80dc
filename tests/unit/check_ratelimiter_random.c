/*
 * RateLimiter over years, in random lives: at rates from 0.001 to a million a
 * second, acquires and tries of all sizes in crowds and lulls. At the moment of
 * each grant (now + wait) all that was granted is at most
 *
 *   rate x time + stored at the start + the largest single acquire
 *
 * counted exactly, in 10^-18 permits with 128 bits. With rates that change, a
 * change is a start: what was granted before is over by then, or owed.
 */
#include "daemon/core/ratelimiter.h"

#include "tests/unit/harness.h"

#define YEAR   INT64_C(31536000000000)
#define DAY    INT64_C(86400000000)
#define PERMIT INT64_C(1000000000000000000) /* so many units */

typedef __int128 units;

static uint64_t seed, first_seed;

/* Each is another one, in a process of its own or not. */
static void
life(int number)
{
	seed = first_seed + (uint64_t)number;
	seed = harness_random(&seed);
}

/* The account of one limiter, kept without looking into it. */
struct account {
	struct ratelimiter l;
	int64_t now;
	int64_t start;   /* permits come since then */
	units stored;    /* at the start */
	units granted;   /* since the start */
	units least;     /* of granted - rate * moment, over all grants */
	int64_t largest; /* permits */
	int64_t grants;
};

static int64_t
below(int64_t n)
{
	return (int64_t)(harness_random(&seed) % (uint64_t)n);
}

/* As many from each power of ten. */
static int64_t
any_size(int64_t least, int64_t most)
{
	int64_t size = least, from;
	uint32_t tens = 0;

	for (from = least; from < most; from *= 10)
		tens++;
	for (tens = harness_below(&seed, tens + 1); tens > 0; tens--)
		size *= 10;
	if (size < most)
		size += below(size * 9);
	return size < most ? size : most;
}

static int64_t
cost(const struct account *a, int64_t permits)
{
	return (int64_t)((units)permits * PERMIT / a->l.rate);
}

static void
open_account(struct account *a, int64_t start, units stored)
{
	a->start = start;
	a->stored = stored;
	a->granted = 0;
	a->largest = 0;
	a->least = -a->l.rate * (units)start;
}

static void
begin(struct account *a, int64_t rate, int64_t burst_us)
{
	*a = (struct account){.now = below(100 * YEAR)};
	ratelimiter_init(&a->l, rate, burst_us, a->now);
	open_account(a, a->now, 0);
}

static void
broken(const struct account *a, const char *what)
{
	ck_abort_msg("%s: rate %lld burst %lld now %lld, grant %lld", what,
	    (long long)a->l.rate, (long long)a->l.burst_us, (long long)a->now,
	    (long long)a->grants);
}

/* Permits that somebody has from this moment on. */
static void
book(struct account *a, int64_t permits, int64_t moment)
{
	units rate = a->l.rate, time = rate * (moment - a->start), level;

	if (permits > a->largest)
		a->largest = permits;
	/* What was granted before is paid for by now. */
	if (a->granted > time + a->stored)
		broken(a, "over the rate");
	a->granted += permits * (units)PERMIT;
	if (a->granted > time + a->stored + a->largest * (units)PERMIT)
		broken(a, "more than the largest over the rate");
	/* And the same since any grant before, with a full store then. */
	level = a->granted - rate * moment;
	if (level - a->least >
	    rate * a->l.burst_us + a->largest * (units)PERMIT)
		broken(a, "over the rate from some moment on");
	if (level < a->least)
		a->least = level;
	a->grants++;
}

/* The moment since which permits are unspent. */
static units
since(const struct ratelimiter *l)
{
	return (units)l->since_us * l->rate + l->part;
}

static void
acquire(struct account *a, int64_t permits)
{
	int64_t owed = ratelimiter_owed(&a->l, a->now), wait;
	int64_t max = below(4) > 0 ? YEAR : owed + below(3) - 1;
	struct ratelimiter before = a->l;
	bool granted;

	max = max < 0 ? 0 : max > YEAR ? YEAR : max;
	granted =
	    ratelimiter_acquire(&a->l, (uint32_t)permits, max, a->now, &wait);
	if (wait != owed || granted != (wait <= max))
		broken(a, "not as it said");
	if (granted) {
		book(a, permits, a->now + wait);
	} else if (since(&a->l) != since(&before)) {
		broken(a, "a refusal took something");
	}
}

/*
 * Scaled, the store is the same part of its maximum, and who waits does not
 * wait less: the moment is what it was, at most a unit of the new rate later.
 */
static void
set_rate(struct account *a, int64_t rate)
{
	struct ratelimiter old = a->l;
	int64_t owed = ratelimiter_owed(&a->l, a->now), later;
	units more;

	if (rate == old.rate)
		return;
	if (since(&old) < (a->now - old.burst_us) * (units)old.rate) {
		old.since_us = a->now - old.burst_us;
		old.part = 0;
	}
	ratelimiter_set(&a->l, rate, old.burst_us, a->now);
	later = a->l.since_us - old.since_us;
	/* later + part / rate - old.part / old.rate, times both rates. */
	more = (later * (units)rate + a->l.part) * old.rate -
	       (units)old.part * rate;
	if (later < 0 || later > 1 || more < 0 || more >= old.rate)
		broken(a, "another store or debt at another rate");
	if (ratelimiter_owed(&a->l, a->now) != owed)
		broken(a, "another wait at another rate");
	open_account(
	    a, a->now + owed, (a->now + owed) * (units)rate - since(&a->l));
}

/* So many calls to one pattern: how large, and how much beyond the rate. */
static void
crowd(struct account *a, int calls)
{
	static const int loads[] = {1, 5, 9, 10, 11, 20, 100, 1000000};
	int64_t most = any_size(1, RATELIMITER_MAX_PERMITS), permits;
	int64_t load = loads[harness_below(&seed, 8)];
	bool even = below(2) == 0;

	/* No more than a day is owed for one. */
	while (most > 1 && cost(a, most) > DAY)
		most /= 2;
	while (calls-- > 0) {
		permits = even ? most : 1 + below(most);
		acquire(a, permits);
		a->now += below(cost(a, permits) * 20 / load + 2);
	}
}

static void
lull(struct account *a, int64_t most)
{
	int64_t owed = ratelimiter_owed(&a->l, a->now);

	a->now += below(3) == 0 ? owed : below(most);
}

static int64_t
any_rate(void)
{
	return any_size(RATELIMITER_MIN_RATE, RATELIMITER_MAX_RATE);
}

static int64_t
any_burst(void)
{
	return any_size(RATELIMITER_MIN_BURST_US, RATELIMITER_MAX_BURST_US);
}

/* 0.001, 0.01 .. 1,000,000 a second, then any. */
START_TEST(a_year_at_one_rate)
{
	struct account a;
	int64_t rate = RATELIMITER_MIN_RATE, first;

	for (int i = 0; i < _i && rate < RATELIMITER_MAX_RATE; i++)
		rate *= 10;
	life(_i);
	begin(&a, _i < 10 ? rate : any_rate(),
	    below(2) == 0 ? 1000000 : any_burst());
	first = a.now;
	for (int i = 0; i < 40 || a.now < first + YEAR; i++) {
		crowd(&a, 60);
		lull(&a, YEAR / 100);
	}
	ck_assert_int_gt(a.grants, 100);
}
END_TEST

START_TEST(a_year_of_changing_rates)
{
	struct account a;
	int64_t first;

	life(100 + _i);
	begin(&a, any_rate(), any_burst());
	first = a.now;
	for (int i = 0; i < 40 || a.now < first + YEAR; i++) {
		crowd(&a, 12);
		if (below(4) == 0)
			lull(&a, YEAR / 100);
		set_rate(&a, any_rate());
	}
	ck_assert_int_gt(a.grants, 100);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("ratelimiter_random");
	TCase *tc = tcase_create("ratelimiter_random");

	first_seed = harness_seed();
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, a_year_at_one_rate, 0, 20);
	tcase_add_loop_test(tc, a_year_of_changing_rates, 0, 10);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
