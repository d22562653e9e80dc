/* The frames of a load, read with the agent's own codec. */
#include "client-shim/load_frame.h"

#include <string.h>

#include "tests/unit/harness.h"

static struct load_frame frame;
static uint8_t bytes[LOAD_FRAME_MAX];

static struct load_options
options(const char *key, uint64_t keys, enum load_order order)
{
	return (struct load_options){.rule = "checkout",
	    .key = key,
	    .keys = keys,
	    .order = order,
	    .tokens = 3,
	    .deadline_ms = 1234};
}

static void
init(const struct load_options *o)
{
	ck_assert_int_eq(load_frame_init(&frame, o), 0);
}

/* One frame, as the agent takes it. */
static struct ipc_check
next(uint64_t id)
{
	struct ipc_check check;
	struct ipc_head head;
	struct reader payload;

	memset(bytes, 0xaa, sizeof(bytes));
	if (load_frame_put(&frame, id, bytes) != 0 ||
	    ipc_frame(bytes, frame.len, &head, &payload) != IPC_MESSAGE ||
	    head.length != frame.len || head.type != IPC_CHECK ||
	    head.flags != 0 || head.id != id ||
	    ipc_dec_check(&payload, &check) != 0)
		ck_abort_msg("no check");
	return check;
}

static bool
is(const struct ipc_str *s, const char *text)
{
	return s->len == strlen(text) && memcmp(s->bytes, text, s->len) == 0;
}

START_TEST(fields)
{
	const struct load_options o = options("a{n}z", 1000, LOAD_SEQUENTIAL);
	static const uint8_t zeros[IPC_HASH_LEN];
	struct ipc_check c;

	init(&o);
	c = next(UINT64_C(0x123456789abcdef0));
	ck_assert(is(&c.rule, "checkout"));
	ck_assert(is(&c.key, "a000z"));
	ck_assert_uint_eq(c.base.options, IPC_OPT_KEY);
	ck_assert_uint_eq(c.base.tokens, 3);
	ck_assert_uint_eq(c.base.deadline_ms, 1234);
	ck_assert_uint_eq(c.base.age_us, 0);
	ck_assert_mem_eq(c.base.config_hash, zeros, sizeof(zeros));
	load_frame_free(&frame);
}
END_TEST

/* Each is random, and a UUIDv4. */
START_TEST(operation_ids)
{
	const struct load_options o = options("k", 1, LOAD_SEQUENTIAL);
	static uint8_t ids[1000][IPC_ID_LEN];
	struct ipc_check c;
	size_t i, j;

	init(&o);
	for (i = 0; i < 1000; i++) {
		c = next(i + 1);
		memcpy(ids[i], c.base.operation_id, IPC_ID_LEN);
		if (ids[i][6] >> 4 != 4 || ids[i][8] >> 6 != 2)
			ck_abort_msg("no UUIDv4");
		for (j = 0; j < i; j++)
			if (memcmp(ids[i], ids[j], IPC_ID_LEN) == 0)
				ck_abort_msg("%zu is as %zu", i, j);
	}
	load_frame_free(&frame);
}
END_TEST

START_TEST(keys_without_a_number)
{
	static const char *const keys[] = {NULL, "", "k", "{n", "n}", "{N}"};
	struct load_options o;
	struct ipc_check c;
	size_t i;

	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		o = options(keys[i], 1, LOAD_RANDOM);
		init(&o);
		c = next(1);
		ck_assert_uint_eq(
		    c.base.options, keys[i] != NULL ? IPC_OPT_KEY : 0);
		ck_assert(is(&c.key, keys[i] != NULL ? keys[i] : ""));
		load_frame_free(&frame);
	}
}
END_TEST

START_TEST(digits)
{
	static const struct {
		uint64_t keys;
		size_t digits;
	} cases[] = {{1, 1}, {2, 1}, {9, 1}, {10, 1}, {11, 2}, {99, 2},
	    {100, 2}, {101, 3}, {1000, 3}, {1001, 4}, {1000000, 6},
	    {1000001, 7}, {LOAD_MAX_KEYS, 9}};
	struct load_options o;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ck_assert_uint_eq(
		    load_frame_digits(cases[i].keys), cases[i].digits);
		o = options("ab{n}c{n}", cases[i].keys, LOAD_RANDOM);
		ck_assert_uint_eq(load_frame_key_len(&o), cases[i].digits + 6);
		init(&o);
		ck_assert_uint_eq(next(1).key.len, cases[i].digits + 6);
		load_frame_free(&frame);
	}
}
END_TEST

static void
expect(uint64_t number, size_t width)
{
	const struct ipc_check c = next(1);
	char want[32];

	snprintf(want, sizeof(want), "<%0*llu>", (int)width,
	    (unsigned long long)number);
	if (!is(&c.key, want))
		ck_abort_msg("%.*s, not %s", (int)c.key.len,
		    (const char *)c.key.bytes, want);
}

/* All of them in order, and again. */
START_TEST(sequential)
{
	static const uint64_t counts[] = {1, 2, 9, 10, 11, 100, 1234};
	struct load_options o;
	size_t i;
	uint64_t n;

	for (i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		o = options("<{n}>", counts[i], LOAD_SEQUENTIAL);
		init(&o);
		for (n = 0; n < 2 * counts[i] + 1; n++)
			expect(n % counts[i], load_frame_digits(counts[i]));
		load_frame_free(&frame);
	}
}
END_TEST

/* Each about as often as any other, and none besides. */
START_TEST(random_order)
{
	const struct load_options o = options("{n}", 13, LOAD_RANDOM);
	unsigned int seen[13] = {0}, i, number;
	struct ipc_check c;

	init(&o);
	for (i = 0; i < 130000; i++) {
		c = next(1);
		number = (c.key.bytes[0] - '0') * 10U + c.key.bytes[1] - '0';
		if (c.key.len != 2 || number >= 13)
			ck_abort_msg("no key");
		seen[number]++;
	}
	for (i = 0; i < 13; i++)
		if (seen[i] < 9000 || seen[i] > 11000)
			ck_abort_msg("%u: %u times", i, seen[i]);
	load_frame_free(&frame);
}
END_TEST

/* Two loads do not ask for the same keys in the same order. */
START_TEST(random_orders_differ)
{
	const struct load_options o =
	    options("{n}", LOAD_MAX_KEYS, LOAD_RANDOM);
	uint8_t keys[2][9 * 4];
	int i, k;

	for (i = 0; i < 2; i++) {
		init(&o);
		for (k = 0; k < 4; k++)
			memcpy(keys[i] + 9 * k, next(1).key.bytes, 9);
		load_frame_free(&frame);
	}
	ck_assert_mem_ne(keys[0], keys[1], sizeof(keys[0]));
}
END_TEST

START_TEST(longest)
{
	char rule[IPC_MAX_NAME + 1], key[IPC_MAX_NAME + 1] = "";
	struct load_options o = options(key, 1000, LOAD_SEQUENTIAL);
	struct ipc_check c;

	memset(rule, 'r', sizeof(rule));
	memset(key, 'k', sizeof(key));
	memcpy(key, "{n}", 3);
	rule[IPC_MAX_NAME] = key[IPC_MAX_NAME] = '\0';
	o.rule = rule;
	init(&o);
	c = next(UINT64_MAX);
	ck_assert_uint_eq(frame.len, LOAD_FRAME_MAX);
	ck_assert(is(&c.rule, rule));
	memcpy(key, "000", 3);
	ck_assert(is(&c.key, key));
	load_frame_free(&frame);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("load_frame");
	TCase *tc = tcase_create("load_frame");

	tcase_add_test(tc, fields);
	tcase_add_test(tc, operation_ids);
	tcase_add_test(tc, keys_without_a_number);
	tcase_add_test(tc, digits);
	tcase_add_test(tc, sequential);
	tcase_add_test(tc, random_order);
	tcase_add_test(tc, random_orders_differ);
	tcase_add_test(tc, longest);
	suite_add_tcase(s, tc);
	return harness_run(s);
}
