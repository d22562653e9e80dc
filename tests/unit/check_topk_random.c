/*
 * The promises of daemon/core/topk.h, at random, against a model that counts
 * every key exactly and lets each count fade by itself.
 */
#include "daemon/core/topk.h"

#include <string.h>

#include "tests/unit/harness.h"

#define KEYS   400
#define ROOM   64
#define EVENTS 4000
#define STEP   1.0352649238413776 /* 2^(1/20) */

static const uint64_t secret[2] = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
static uint64_t seed;
static uint64_t state;

static struct topk *t;
static double exact[KEYS], total;
static int64_t model_step;
static struct topk_key list[ROOM];

/* As far from exact as sums of doubles may be. */
static double
slack(double v)
{
	return v * 1e-9 + 1e-9;
}

static void
fade(int64_t now)
{
	for (; model_step < now / TOPK_STEP_US; model_step++) {
		for (uint32_t i = 0; i < KEYS; i++)
			exact[i] /= STEP;
		total /= STEP;
	}
}

/* Keys of several lengths, alike but for their number at the end. */
static size_t
key_of(uint32_t i, uint8_t out[TOPK_KEY_MAX])
{
	static const size_t lens[] = {3, 17, 255};
	const size_t len = lens[i % 3];

	memset(out, 'k', len);
	out[len - 2] = (uint8_t)i;
	out[len - 1] = (uint8_t)(i >> 8);
	return len;
}

static uint32_t
number_of(const struct topk_key *k)
{
	return k->bytes[k->len - 2] + 256U * k->bytes[k->len - 1];
}

/* Few of them often, most seldom; now and then the few are others. */
static uint32_t
pick(uint32_t few, uint32_t phase)
{
	const uint32_t n = harness_below(&state, 100) < 60
			       ? harness_below(&state, few)
			       : harness_below(&state, KEYS);

	return (n + phase * 131) % KEYS;
}

static void
holds(uint32_t size, int64_t now)
{
	const uint32_t n = topk_list(t, list, now);
	const double bound = total / size;
	bool kept[KEYS] = {false};
	double sum = 0;

	ck_assert_uint_le(n, size);
	ck_assert_double_le(topk_total(t, now) - total, slack(total));
	ck_assert_double_le(total - topk_total(t, now), slack(total));
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t k = number_of(&list[i]);

		ck_assert_uint_lt(k, KEYS);
		ck_assert_msg(!kept[k], "key %u twice", k);
		kept[k] = true;
		sum += list[i].count;
		ck_assert_double_ge(list[i].count, exact[k] - slack(total));
		ck_assert_double_le(
		    list[i].count - list[i].error, exact[k] + slack(total));
		ck_assert_double_le(list[i].error, bound + slack(total));
		if (i > 0)
			ck_assert_double_le(list[i].count, list[i - 1].count);
	}
	/* All that was counted stands somewhere. */
	ck_assert_double_le(sum - total, slack(total));
	ck_assert_double_le(total - sum, slack(total));
	for (uint32_t i = 0; i < KEYS; i++) {
		if (exact[i] > bound + slack(total))
			ck_assert_msg(
			    kept[i], "key %u of %g is not kept", i, exact[i]);
	}
}

static void
life(uint32_t size, uint32_t few, uint32_t pause)
{
	int64_t now = harness_below(&state, 1000000) * INT64_C(1000000);
	uint8_t key[TOPK_KEY_MAX];
	uint32_t k;

	memset(exact, 0, sizeof(exact));
	total = 0;
	model_step = now / TOPK_STEP_US;
	t = topk_new(size, secret);
	ck_assert_ptr_nonnull(t);
	for (uint32_t i = 0; i < EVENTS; i++) {
		now += harness_below(&state, pause);
		fade(now);
		k = pick(few, i / (EVENTS / 4));
		topk_add(t, key, key_of(k, key), now);
		exact[k]++;
		total++;
		if (i % 97 == 0 || i + 1 == EVENTS)
			holds(size, now);
	}
	topk_free(t);
}

START_TEST(at_random)
{
	static const uint32_t sizes[] = {1, 2, 3, 10, 63, 64};
	/* All at once; some steps apart; past the moving of the landmark. */
	static const uint32_t pauses[] = {2, 1000000, 60000000};

	state = seed + (uint64_t)_i;
	life(sizes[_i % 6], 1 + harness_below(&state, 80), pauses[_i / 6]);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("topk_random");
	TCase *tc = tcase_create("topk_random");

	seed = harness_seed();
	tcase_set_timeout(tc, 300);
	tcase_add_loop_test(tc, at_random, 0, 18);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
