/*
 * Loads at a rate against a scripted agent: how many are asked and when, what
 * a stall does to the latencies, the window, the end of the time.
 */
#include "client-shim/load.h"

#include "tests/unit/load_fixture.h"

#define STALL_MS 200

static void
setup(void)
{
	fake_init(&fake);
}

static struct load_options
at_rate(uint32_t rate, size_t connections, size_t window)
{
	struct load_options o = load_options(connections, window);

	o.rate = rate;
	return o;
}

static void
serve_one(struct fake *f)
{
	serve(f, 1);
}

/* How many, and when. */

START_TEST(bad_rate)
{
	const struct load_options o = at_rate(LOAD_MAX_RATE + 1, 1, 1);

	ck_assert_ptr_null(load_open(&o, err));
	ck_assert_str_eq(err, "--rate must be at most 10000000");
	fake_stop(&fake);
}
END_TEST

START_TEST(as_many_as_the_time_has)
{
	const struct load_options o = at_rate(2000, 1, 1000);
	struct load *l = start_load(serve_one, &o);
	const struct load_result *r = load_result(l);

	ran(load_run(l, 0, 250000, err));
	ck_assert_uint_eq(r->asked, 500);
	ck_assert_uint_eq(r->checks, 500);
	ck_assert_uint_eq(r->unasked, 0);
	/* None was asked before its time. */
	ck_assert_int_ge(r->asking_us, 250000);
	ck_assert_int_ge(r->elapsed_us, 250000);
	ck_assert(load_latency(l, 0) > 0);
	ck_assert(load_latency(l, 1) <= (double)r->elapsed_us + 1);
	/* What comes first ends it, and a time may have none. */
	ran(load_run(l, 10, INT64_C(3600) * 1000000, err));
	ran(load_run(l, 1000000, 5000, err));
	ran(load_run(l, 0, 499, err));
	ck_assert_uint_eq(r->asked, 520);
	ck_assert_int_ge(r->asking_us, 250000 + 5000 + 5000);
	end_load(l);
}
END_TEST

/* Far longer between two checks than the agent may say nothing. */
START_TEST(one_a_second)
{
	struct load_options o = at_rate(1, 1, 1);
	struct load *l;

	o.patience_ms = 300;
	l = start_load(serve_one, &o);
	ran(load_run(l, 2, 0, err));
	ck_assert_uint_eq(load_result(l)->checks, 2);
	ck_assert_int_ge(load_result(l)->asking_us, 2000000);
	ck_assert(load_latency(l, 0.5) < 900000);
	end_load(l);
}
END_TEST

#define EACH 50

/* One connection after the other: none has two more than another. */
static void
in_turn(struct fake *f)
{
	int conn, i;

	for (conn = 0; conn < 3; conn++)
		fake_greet(f);
	for (i = 0; i < EACH; i++)
		for (conn = 0; conn < 3; conn++)
			fake_allow(f, conn, read_check(f, conn));
	for (conn = 0; conn < 3; conn++)
		ck_assert(fake_at_end(f, conn));
}

START_TEST(even_parts)
{
	static const uint32_t rates[] = {1000, 30000, LOAD_MAX_RATE};
	const struct load_options o = at_rate(rates[_i], 3, EACH);
	struct load *l = start_load(in_turn, &o);

	ran(load_run(l, 3 * EACH, 0, err));
	ck_assert_uint_eq(load_result(l)->allowed, 3 * EACH);
	end_load(l);
}
END_TEST

/* A stall. */

#define CHECKS   1000
#define STALL_AT 200

static void
stall(struct fake *f)
{
	const int conn = fake_greet(f);
	int i;

	for (i = 0; i < CHECKS; i++) {
		const uint64_t id = read_check(f, conn);

		if (i == STALL_AT)
			poll(NULL, 0, STALL_MS);
		fake_allow(f, conn, id);
	}
	ck_assert(fake_at_end(f, conn));
}

/* Of 2000 a second 400 come while it stalls: whether they are in flight or
 * have no room, p99 is that of one that came at its beginning. */
START_TEST(a_stall_shows)
{
	static const size_t windows[] = {CHECKS, 10, 1};
	const struct load_options o = at_rate(2000, 1, windows[_i]);
	struct load *l = start_load(stall, &o);
	const struct load_result *r = load_result(l);

	ran(load_run(l, CHECKS, 0, err));
	ck_assert_uint_eq(r->asked, CHECKS);
	ck_assert_uint_eq(r->checks, CHECKS);
	ck_assert_uint_eq(r->unasked, 0);
	ck_assert(load_latency(l, 0.99) >= (STALL_MS - 10) * 1000.0);
	ck_assert(load_latency(l, 0.8) >= STALL_MS / 2 * 1000.0 * 0.9);
	end_load(l);
}
END_TEST

/* The same without a rate: two checks of a thousand feel it. */
START_TEST(a_closed_loop_hides_it)
{
	const struct load_options o = load_options(1, 2);
	struct load *l = start_load(stall, &o);

	ran(load_run(l, CHECKS, 0, err));
	ck_assert(load_latency(l, 0.99) < (STALL_MS - 10) * 1000.0);
	ck_assert(load_latency(l, 1) >= STALL_MS * 1000.0 * 0.99);
	ck_assert_int_eq(load_result(l)->asking_us, 0);
	end_load(l);
}
END_TEST

/* The window. */

#define WINDOW 5
#define ROUNDS 10

/* Answers when both windows are full, and then has nothing to read. */
static void
fill_windows(struct fake *f)
{
	uint64_t ids[2][WINDOW];
	int conn, i, round, waiting;

	(void)fake_greet(f);
	(void)fake_greet(f);
	for (round = 0; round < ROUNDS; round++) {
		for (conn = 0; conn < 2; conn++)
			for (i = 0; i < WINDOW; i++)
				ids[conn][i] = read_check(f, conn);
		poll(NULL, 0, 5); /* time for one too many */
		for (conn = 0; conn < 2; conn++) {
			if (ioctl(f->conns[conn], FIONREAD, &waiting) != 0 ||
			    waiting > 0)
				ck_abort_msg("more than the window");
		}
		for (conn = 0; conn < 2; conn++)
			for (i = 0; i < WINDOW; i++)
				fake_allow(f, conn, ids[conn][i]);
	}
	for (conn = 0; conn < 2; conn++)
		ck_assert(fake_at_end(f, conn));
}

START_TEST(never_more_than_the_window)
{
	static const uint32_t rates[] = {20000, LOAD_MAX_RATE};
	const struct load_options o = at_rate(rates[_i], 2, WINDOW);
	struct load *l = start_load(fill_windows, &o);

	ran(load_run(l, (uint64_t)2 * WINDOW * ROUNDS, 0, err));
	ck_assert_uint_eq(load_result(l)->checks, 2 * WINDOW * ROUNDS);
	/* The last rounds waited for all before them. */
	ck_assert(load_latency(l, 1) >= ROUNDS * 5 * 1000.0 / 2);
	end_load(l);
}
END_TEST

/* Far more than can be: the time ends it, and what had no room is told. */
START_TEST(a_huge_rate)
{
	const struct load_options o = at_rate(LOAD_MAX_RATE, 1, 50);
	struct load *l = start_load(serve_one, &o);
	const struct load_result *r = load_result(l);

	ran(load_run(l, 0, 100000, err));
	ck_assert_uint_gt(r->checks, 0);
	ck_assert_uint_eq(r->asked, r->checks);
	ck_assert_uint_gt(r->unasked, 0);
	ck_assert_uint_eq(r->asked + r->unasked, LOAD_MAX_RATE / 10);
	ck_assert_int_ge(r->asking_us, 100000);
	ck_assert(load_latency(l, 1) >= 90000);
	end_load(l);
}
END_TEST

/* Ends. */

static void
say_nothing(struct fake *f)
{
	const int conn = fake_greet(f);

	(void)read_check(f, conn);
	(void)read_check(f, conn);
	ck_assert(fake_at_end(f, conn));
}

static bool
count_turns(void *arg)
{
	++*(int *)arg;
	return false;
}

/* While nothing has room it waits, and does not look each time one is due. */
START_TEST(no_answer)
{
	struct load_options o = at_rate(1000, 1, 2);
	struct load *l;
	int turns = 0;

	o.patience_ms = 50;
	o.stop = count_turns;
	o.stop_arg = &turns;
	l = start_load(say_nothing, &o);
	failed_with(load_run(l, 0, INT64_C(3600) * 1000000, err),
	    "no answer of the agent for 50 ms");
	ck_assert_uint_eq(load_result(l)->asked, 2);
	ck_assert_uint_eq(load_result(l)->checks, 0);
	ck_assert_uint_gt(load_result(l)->unasked, 0);
	ck_assert_int_ge(load_result(l)->asking_us, 50000);
	ck_assert_int_lt(turns, 25);
	end_load(l);
}
END_TEST

static bool
stop_once(void *arg)
{
	int *left = arg;

	return --*left == 0;
}

/* Between two checks: none of them is asked later, and others are. */
START_TEST(stopped)
{
	struct load_options o = at_rate(1, 1, 1);
	int left = -1;
	struct load *l;

	o.stop = stop_once;
	o.stop_arg = &left;
	l = start_load(serve_one, &o);
	left = 2;
	ran(load_run(l, 10, 0, err));
	ck_assert_uint_eq(load_result(l)->asked, 0);
	ck_assert_uint_eq(load_result(l)->unasked, 0);
	ran(load_drain(l, err));
	ck_assert_uint_eq(load_result(l)->asked, 0);
	ran(load_run(l, 1, 0, err));
	ck_assert_uint_eq(load_result(l)->allowed, 1);
	end_load(l);
}
END_TEST

static void
greet_fill(struct fake *f)
{
	const int conn = fake_greet(f);
	uint64_t ids[3];
	int i;

	fake_allow(f, conn, read_check(f, conn));
	for (i = 0; i < 3; i++)
		ids[i] = read_check(f, conn);
	pong(f, conn, fake_read(f, conn, IPC_PING)->head.id);
	for (i = 0; i < 3; i++)
		fake_allow(f, conn, ids[i]);
	ck_assert(fake_at_end(f, conn));
}

/* A rate is of runs, also after one. */
START_TEST(filled_at_once)
{
	const struct load_options o = at_rate(2, 1, 3);
	struct load *l = start_load(greet_fill, &o);

	ran(load_run(l, 1, 0, err));
	load_reset(l);
	ran(load_fill(l, 3, err));
	ran(load_drain(l, err));
	ck_assert_uint_eq(load_result(l)->allowed, 3);
	ck_assert_int_lt(load_result(l)->elapsed_us, 900000);
	ck_assert(load_latency(l, 1) < 900000);
	end_load(l);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("load_rate");
	TCase *tc = tcase_create("load_rate");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, bad_rate);
	tcase_add_test(tc, as_many_as_the_time_has);
	tcase_add_test(tc, one_a_second);
	tcase_add_loop_test(tc, even_parts, 0, 3);
	tcase_add_loop_test(tc, a_stall_shows, 0, 3);
	tcase_add_test(tc, a_closed_loop_hides_it);
	tcase_add_loop_test(tc, never_more_than_the_window, 0, 2);
	tcase_add_test(tc, a_huge_rate);
	tcase_add_test(tc, no_answer);
	tcase_add_test(tc, stopped);
	tcase_add_test(tc, filled_at_once);
	suite_add_tcase(s, tc);
	return harness_run(s);
}
