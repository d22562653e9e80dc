/*
 * The shim in processes and threads: fork, descriptors that were closed
 * behind its back, a client to each of several threads. rlshim.c is included
 * to reach the descriptors.
 */
#include "client-shim/rlshim.c"

#include <sys/wait.h>

#include "tests/unit/rlshim_fixture.h"

/* ---- fork ---- */

/* Waits for a child that exits with 0. */
static void
reap(pid_t pid)
{
	int status = -1;

	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0,
	    "the child ended with %#x", (unsigned)status);
}

/* A check in a child, without Check's own machinery. */
static bool
child_is_allowed(void)
{
	return rl_check(client, &simple, &decision, NULL) == RL_OK &&
	       decision.outcome == RL_ALLOWED;
}

static void
script_family(struct fake *f)
{
	int child, parent = fake_greet(f);

	serve(f, parent);
	child = fake_greet(f);
	serve(f, child);
	ck_assert(fake_at_end(f, child));
	serve(f, parent);
}

START_TEST(a_child_has_its_own_connection)
{
	int parents;
	pid_t pid;

	fake_start(&fake, script_family);
	check_allowed();
	/* Asked for in the parent: nothing to the child. */
	rl_interrupt(client);
	parents = atomic_load(&client->wake);
	pid = fork();
	if (pid == 0) {
		if (!child_is_allowed())
			_exit(1);
		rl_interrupt(client);
		rl_check(client, &simple, &decision, NULL);
		rl_close(client);
		_exit(decision.outcome == RL_CANCELLED ? 0 : 2);
	}
	reap(pid);
	ck_assert_int_eq(atomic_load(&client->wake), parents);
	check_simple();
	expect_cancelled();
	check_allowed();
	fake_join(&fake);
	ck_assert_int_eq(fake.seen[fake.seen_count - 1].conn, 0);
	ck_assert_mem_ne(
	    seen(1)->operation_id, seen(3)->operation_id, IPC_ID_LEN);
	ck_assert_mem_ne(
	    seen(3)->operation_id, seen(4)->operation_id, IPC_ID_LEN);
}
END_TEST

/*
 * A child that interrupts before its first call: its own call gives up, the
 * parent's does not.
 */
static void
script_serves(struct fake *f)
{
	int conn = fake_greet(f);

	serve(f, conn);
	serve(f, conn);
}

START_TEST(an_interrupt_stays_in_its_process)
{
	pid_t pid;

	fake_start(&fake, script_serves);
	check_allowed();
	pid = fork();
	if (pid == 0) {
		rl_interrupt(client);
		rl_check(client, &simple, &decision, NULL);
		_exit(decision.outcome == RL_CANCELLED ? 0 : 1);
	}
	reap(pid);
	check_allowed();
}
END_TEST

/*
 * A daemon closes what it inherited, and its own files get those numbers:
 * they must survive the shim's cleaning up.
 */
static bool
is_same(int fd, int other)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 && fstat(other, &b) == 0 &&
	       a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

START_TEST(a_child_that_closed_everything)
{
	int sock, wake, other = socket(AF_UNIX, SOCK_DGRAM, 0);
	pid_t pid;

	ck_assert_int_ge(other, 0);
	fake_start(&fake, script_family);
	check_allowed();
	pid = fork();
	if (pid == 0) {
		sock = client->conns[0]->fd;
		wake = atomic_load(&client->wake);
		if (dup2(other, sock) != sock || dup2(other, wake) != wake)
			_exit(1);
		if (!child_is_allowed())
			_exit(2);
		_exit(is_same(sock, other) && is_same(wake, other) ? 0 : 3);
	}
	reap(pid);
	check_allowed();
	close(other);
}
END_TEST

/* The pool of random ids is not shared with a child. */
START_TEST(a_child_draws_its_own_ids)
{
	uint8_t first[WIRE_ID], mine[WIRE_ID], childs[WIRE_ID];
	int ends[2];
	pid_t pid;

	ck_assert(client_draw_id(client, first));
	ck_assert_uint_gt(client->pool_left, 0);
	ck_assert_int_eq(pipe(ends), 0);
	pid = fork();
	if (pid == 0) {
		client_enter(client);
		if (!client_draw_id(client, childs) ||
		    write(ends[1], childs, WIRE_ID) != WIRE_ID)
			_exit(1);
		_exit(0);
	}
	reap(pid);
	ck_assert_int_eq(read(ends[0], childs, WIRE_ID), WIRE_ID);
	ck_assert(client_draw_id(client, mine));
	ck_assert_mem_ne(mine, childs, WIRE_ID);
	close(ends[0]);
	close(ends[1]);
}
END_TEST

/* ---- descriptors lost in the process itself ---- */

static void
script_twice(struct fake *f)
{
	serve(f, fake_greet(f));
	serve(f, fake_greet(f));
}

START_TEST(descriptors_closed_behind_its_back)
{
	fake_start(&fake, script_twice);
	check_allowed();
	close(client->conns[0]->fd);
	close(atomic_load(&client->wake));
	check_allowed();
	/* The new eventfd works. */
	rl_interrupt(client);
	check_simple();
	expect_cancelled();
	fake_join(&fake);
	is_first_send(seen(3));
}
END_TEST

START_TEST(descriptors_are_not_inherited)
{
	fake_start(&fake, script_twice);
	check_allowed();
	ck_assert_int_eq(
	    fcntl(client->conns[0]->fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	ck_assert_int_eq(
	    fcntl(atomic_load(&client->wake), F_GETFD) & FD_CLOEXEC,
	    FD_CLOEXEC);
	client_drop(client);
	check_allowed();
}
END_TEST

/* ---- a client to each thread ---- */

#define THREADS 4
#define CHECKS  50

static void *
serve_one(void *arg)
{
	int i, fd = *(int *)arg;
	struct fake one;

	/* One connection with notes of its own. */
	memset(&one, 0, sizeof(one));
	one.seen = calloc(FAKE_SEEN, sizeof(*one.seen));
	one.max_frame = IPC_MAX_FRAME;
	one.conns[0] = fd;
	fake_welcome(&one, 0, fake_read(&one, 0, IPC_HELLO)->head.id);
	for (i = 0; i < CHECKS; i++)
		serve(&one, 0);
	free(one.seen);
	return NULL;
}

static void
script_threads(struct fake *f)
{
	pthread_t threads[THREADS];
	int i;

	for (i = 0; i < THREADS; i++) {
		fake_accept(f);
		pthread_create(&threads[i], NULL, serve_one, &f->conns[i]);
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void *
ask(void *arg)
{
	struct rl_options options = {.socket = arg, .timeout_ms = 20000};
	struct rl_client *mine;
	struct rl_decision got;
	uintptr_t allowed = 0;
	int i;

	if (rl_open(&mine, &options) != RL_OK)
		return NULL;
	for (i = 0; i < CHECKS; i++) {
		rl_check(mine, &simple, &got, NULL);
		allowed += got.outcome == RL_ALLOWED;
	}
	rl_close(mine);
	return (void *)allowed;
}

START_TEST(a_client_to_each_thread)
{
	pthread_t threads[THREADS];
	void *allowed;
	int i;

	fake_start(&fake, script_threads);
	for (i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, ask, fake.path);
	for (i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &allowed);
		ck_assert_uint_eq((uintptr_t)allowed, CHECKS);
	}
}
END_TEST

/* ---- operation ids ---- */

static int
compare_ids(const void *a, const void *b)
{
	return memcmp(a, b, WIRE_ID);
}

START_TEST(operation_ids)
{
	static uint8_t ids[1000][WIRE_ID];
	size_t i;

	for (i = 0; i < 1000; i++) {
		ck_assert(client_draw_id(client, ids[i]));
		ck_assert_uint_eq(ids[i][6] >> 4, 4);
		ck_assert_uint_eq(ids[i][8] >> 6, 2);
	}
	qsort(ids, 1000, WIRE_ID, compare_ids);
	for (i = 1; i < 1000; i++)
		ck_assert_mem_ne(ids[i - 1], ids[i], WIRE_ID);
}
END_TEST

static Suite *
process_suite(void)
{
	Suite *s = suite_create("rlshim_process");
	TCase *tc = tcase_create("processes");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, begin, end);
	tcase_add_test(tc, a_child_has_its_own_connection);
	tcase_add_test(tc, an_interrupt_stays_in_its_process);
	tcase_add_test(tc, a_child_that_closed_everything);
	tcase_add_test(tc, a_child_draws_its_own_ids);
	tcase_add_test(tc, descriptors_closed_behind_its_back);
	tcase_add_test(tc, descriptors_are_not_inherited);
	tcase_add_test(tc, a_client_to_each_thread);
	tcase_add_test(tc, operation_ids);
	suite_add_tcase(s, tc);
	return s;
}

int
main(void)
{
	return harness_run(process_suite());
}
