/* Loads against a scripted agent: windows, bounds, filling, stopping. */
#include "client-shim/load.h"

#include "tests/unit/load_fixture.h"

static void
setup(void)
{
	fake_init(&fake);
}

/* Options. */

START_TEST(bad_options)
{
	char name[257];
	const struct {
		struct load_options o;
		const char *want;
	} cases[] = {
	    {load_options(0, 1), "--connections must be 1 to 10000"},
	    {load_options(10001, 1), "--connections must be 1 to 10000"},
	    {load_options(1, 0), "--window must be 1 to 65536"},
	    {load_options(1, 65537), "--window must be 1 to 65536"},
	    {load_options(1001, 1000),
		"--window must be at most 1000000 of all connections together"},
	    {{.rule = "", .keys = 1, .connections = 1, .window = 1},
		"the rule must not be empty"},
	    {{.rule = name, .keys = 1, .connections = 1, .window = 1},
		"the rule must be at most 255 bytes"},
	    {{.rule = "r",
		 .key = name,
		 .keys = 1,
		 .connections = 1,
		 .window = 1},
		"--key must be at most 255 bytes"},
	    {{.rule = "r", .connections = 1, .window = 1},
		"--keys must be 1 to 1000000000"},
	    {{.rule = "r",
		 .key = "{n}",
		 .keys = LOAD_MAX_KEYS + 1,
		 .connections = 1,
		 .window = 1},
		"--keys must be 1 to 1000000000"},
	    {{.rule = "r", .keys = 2, .connections = 1, .window = 1},
		"--key must contain {n} when --keys is more than 1"},
	    {{.rule = "r",
		 .key = "n",
		 .keys = 2,
		 .connections = 1,
		 .window = 1},
		"--key must contain {n} when --keys is more than 1"},
	};
	size_t i;

	memset(name, 'x', 256);
	name[256] = '\0';
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ck_assert_ptr_null(load_open(&cases[i].o, err));
		ck_assert_str_eq(err, cases[i].want);
	}
	fake_stop(&fake);
}
END_TEST

START_TEST(nobody_there)
{
	struct load_options o = load_options(1, 1);
	char path[300], want[400];

	ck_assert_ptr_null(load_open(&o, err));
	snprintf(
	    want, sizeof(want), "%s: No such file or directory", fake.path);
	ck_assert_str_eq(err, want);
	memset(path, 'x', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	o.socket = path;
	ck_assert_ptr_null(load_open(&o, err));
	ck_assert_ptr_nonnull(strstr(err, ": a socket's path is shorter"));
	fake_stop(&fake);
}
END_TEST

/* Listens, and takes nobody. */
START_TEST(nobody_greets)
{
	struct load_options o = load_options(1, 1);

	o.patience_ms = 30;
	fake_listen(&fake);
	ck_assert_ptr_null(load_open(&o, err));
	ck_assert_str_eq(err, "no answer of the agent for 30 ms");
	fake_stop(&fake);
}
END_TEST

/* Running. */

static void
serve_three(struct fake *f)
{
	serve(f, 3);
}

START_TEST(a_number_of_checks)
{
	const struct load_options o = load_options(3, 2);
	struct load *l = start_load(serve_three, &o);
	const struct load_result *r = load_result(l);

	ck_assert(load_latency(l, 0.5) == 0);
	ran(load_run(l, 1000, 0, err));
	ck_assert_uint_eq(r->checks, 1000);
	ck_assert_uint_eq(r->allowed, 1000);
	ck_assert_uint_eq(r->permitted, 1000);
	ck_assert_uint_eq(r->reasons[IPC_REASON_OK], 1000);
	ck_assert_int_gt(r->elapsed_us, 0);
	ck_assert(load_latency(l, 0) > 0);
	ck_assert(load_latency(l, 0) <= load_latency(l, 0.5));
	ck_assert(load_latency(l, 0.5) <= load_latency(l, 1));
	ck_assert(load_latency(l, 1) <= (double)r->elapsed_us + 1);
	ran(load_run(l, 1, 0, err));
	ck_assert_uint_eq(r->checks, 1001);
	ran(load_run(l, 0, 0, err));
	ck_assert_uint_eq(r->checks, 1001);
	load_reset(l);
	ck_assert_uint_eq(r->checks, 0);
	ck_assert_int_eq(r->elapsed_us, 0);
	ck_assert(load_latency(l, 1) == 0);
	end_load(l);
}
END_TEST

START_TEST(a_time)
{
	const struct load_options o = load_options(3, 2);
	struct load *l = start_load(serve_three, &o);
	const struct load_result *r = load_result(l);

	ran(load_run(l, 0, 50000, err));
	ck_assert_uint_gt(r->checks, 0);
	ck_assert_int_ge(r->elapsed_us, 49000);
	load_reset(l);
	ran(load_run(l, 5, INT64_C(3600) * 1000000, err));
	ck_assert_uint_eq(r->checks, 5);
	end_load(l);
}
END_TEST

/* On a connection each window holds, and what is asked next has the slot that
 * became free, under a higher id. */
static void
hold_the_window(struct fake *f)
{
	uint64_t ids[3], id, last = 0;
	int i, conn = fake_greet(f);

	for (i = 0; i < 3; i++) {
		ids[i] = read_check(f, conn);
		ck_assert_uint_gt(ids[i], last);
		last = ids[i];
	}
	ck_assert_uint_ne(LOAD_SLOT(ids[0]), LOAD_SLOT(ids[1]));
	ck_assert_uint_ne(LOAD_SLOT(ids[0]), LOAD_SLOT(ids[2]));
	ck_assert_uint_ne(LOAD_SLOT(ids[1]), LOAD_SLOT(ids[2]));
	for (i = 0; i < 50; i++) {
		fake_allow(f, conn, ids[i % 3]);
		if (i >= 47)
			continue; /* all are asked */
		id = read_check(f, conn);
		ck_assert_uint_eq(LOAD_SLOT(id), LOAD_SLOT(ids[i % 3]));
		ck_assert_uint_gt(id, last);
		ids[i % 3] = last = id;
	}
	ck_assert(fake_at_end(f, conn));
}

START_TEST(the_window)
{
	const struct load_options o = load_options(1, 3);
	struct load *l = start_load(hold_the_window, &o);

	ran(load_run(l, 50, 0, err));
	ck_assert_uint_eq(load_result(l)->checks, 50);
	end_load(l);
}
END_TEST

/* Fewer checks than windows: each connection has its part. */
static void
equal_parts(struct fake *f)
{
	uint64_t ids[3][2];
	int conn, i;

	for (conn = 0; conn < 3; conn++)
		fake_greet(f);
	for (conn = 0; conn < 3; conn++)
		for (i = 0; i < 2; i++)
			ids[conn][i] = read_check(f, conn);
	for (conn = 0; conn < 3; conn++)
		for (i = 0; i < 2; i++)
			fake_allow(f, conn, ids[conn][i]);
	for (conn = 0; conn < 3; conn++)
		ck_assert(fake_at_end(f, conn));
}

START_TEST(fewer_than_windows)
{
	const struct load_options o = load_options(3, 50);
	struct load *l = start_load(equal_parts, &o);

	ran(load_run(l, 6, 0, err));
	ck_assert_uint_eq(load_result(l)->checks, 6);
	end_load(l);
}
END_TEST

/* More than the socket holds, before anything is read. */
#define MANY 20000

static void
read_late(struct fake *f)
{
	const int conn = fake_greet(f);
	int i, waiting = 0;
	uint64_t id, last = 0;

	while (waiting < 64 * 1024) {
		ck_assert_int_eq(ioctl(f->conns[conn], FIONREAD, &waiting), 0);
		poll(NULL, 0, 1);
	}
	for (i = 0; i < MANY; i++) {
		id = read_check(f, conn);
		if (id <= last)
			ck_abort_msg("ids do not increase");
		last = id;
		fake_allow(f, conn, id);
	}
	ck_assert(fake_at_end(f, conn));
}

START_TEST(a_full_socket)
{
	const struct load_options o = load_options(1, MANY);
	struct load *l = start_load(read_late, &o);

	ran(load_run(l, MANY, 0, err));
	ck_assert_uint_eq(load_result(l)->checks, MANY);
	end_load(l);
}
END_TEST

/* Filling. */

#define FILL 10

static void
take_all(struct fake *f)
{
	uint64_t ids[2][FILL / 2], id;
	int conn, i;

	for (conn = 0; conn < 2; conn++)
		fake_greet(f);
	for (conn = 0; conn < 2; conn++) {
		for (i = 0; i < FILL / 2; i++)
			ids[conn][i] = read_check(f, conn);
		id = fake_read(f, conn, IPC_PING)->head.id;
		if (conn == 1)
			fake_reached(f);
		pong(f, conn, id);
	}
	fake_hold(f);
	for (conn = 0; conn < 2; conn++)
		for (i = 0; i < FILL / 2; i++)
			fake_deny(f, conn, ids[conn][i]);
	for (conn = 0; conn < 2; conn++)
		ck_assert(fake_at_end(f, conn));
}

START_TEST(fill_and_drain)
{
	const struct load_options o = load_options(2, FILL);
	struct load *l = start_load(take_all, &o);

	ran(load_fill(l, FILL, err));
	/* Both of its connections have taken theirs, and none is answered. */
	ck_assert_int_eq(sem_trywait(&fake.step), 0);
	ck_assert_uint_eq(load_result(l)->checks, 0);
	failed_with(load_fill(l, FILL + 1, err),
	    "more checks than the windows have room for");
	fake_let(&fake);
	ran(load_drain(l, err));
	ck_assert_uint_eq(load_result(l)->denied, FILL);
	end_load(l);
}
END_TEST

/* Stopping. */

struct stopper {
	int left; /* questions until it says so */
};

static bool
stop(void *arg)
{
	struct stopper *s = arg;

	return s->left-- <= 0;
}

static void
answer_on_request(struct fake *f)
{
	const int conn = fake_greet(f);
	const uint64_t first = read_check(f, conn);

	fake_hold(f);
	fake_allow(f, conn, first);
	fake_allow(f, conn, read_check(f, conn));
	ck_assert(fake_at_end(f, conn));
}

/* At once, though nothing is answered; a later run finds the answer. */
START_TEST(stopped)
{
	struct load_options o = load_options(1, 1);
	struct stopper s = {1000};
	struct load *l;

	o.stop = stop;
	o.stop_arg = &s;
	l = start_load(answer_on_request, &o);
	s.left = 1;
	ran(load_run(l, 10, 0, err));
	ck_assert_uint_eq(load_result(l)->checks, 0);
	fake_let(&fake);
	s.left = 1000;
	ran(load_run(l, 1, 0, err));
	ck_assert_uint_eq(load_result(l)->allowed, 2);
	end_load(l);
}
END_TEST

START_TEST(stopped_while_opening)
{
	struct load_options o = load_options(1, 1);
	struct stopper s = {0};

	o.stop = stop;
	o.stop_arg = &s;
	fake_listen(&fake);
	ck_assert_ptr_null(load_open(&o, err));
	ck_assert_str_eq(err, "interrupted");
	fake_stop(&fake);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("load");
	TCase *tc = tcase_create("load");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, bad_options);
	tcase_add_test(tc, nobody_there);
	tcase_add_test(tc, nobody_greets);
	tcase_add_test(tc, a_number_of_checks);
	tcase_add_test(tc, a_time);
	tcase_add_test(tc, the_window);
	tcase_add_test(tc, fewer_than_windows);
	tcase_add_test(tc, a_full_socket);
	tcase_add_test(tc, fill_and_drain);
	tcase_add_test(tc, stopped);
	tcase_add_test(tc, stopped_while_opening);
	suite_add_tcase(s, tc);
	return harness_run(s);
}
