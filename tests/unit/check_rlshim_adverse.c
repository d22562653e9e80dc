/*
 * The shim where its surroundings fail it: an agent that hangs or does not
 * read, an application that is late, event loops of the edge-triggered kind,
 * descriptors that the system refuses or the application took over.
 * rlshim.c is included to reach what is kept, and with it a few system calls
 * that fail when told.
 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/types.h>
#include <unistd.h>

static bool no_watches, no_proc, no_eventfd;

/* Not while something is in flight. */
static bool poll_fails(void);

static int
flaky_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	return no_watches ? -1 : epoll_ctl(epfd, op, fd, event);
}

static ssize_t
flaky_readlink(const char *path, char *out, size_t size)
{
	return no_proc ? -1 : readlink(path, out, size);
}

static int
flaky_access(const char *path, int mode)
{
	return no_proc ? -1 : access(path, mode);
}

static int
flaky_eventfd(unsigned count, int flags)
{
	return no_eventfd ? -1 : eventfd(count, flags);
}

static int
flaky_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
    const sigset_t *mask)
{
	if (!poll_fails())
		return ppoll(fds, count, timeout, mask);
	errno = ENOMEM;
	return -1;
}

#define epoll_ctl flaky_epoll_ctl
#define readlink  flaky_readlink
#define access    flaky_access
#define eventfd   flaky_eventfd
#define ppoll     flaky_ppoll
#include "client-shim/rlshim.c"
#undef epoll_ctl
#undef readlink
#undef access
#undef eventfd
#undef ppoll

#include <sys/wait.h>

#include "tests/unit/rlshim_limit.h"

static const struct rl_check hasty = {.rule = "checkout", .timeout_ms = 300};

static void
submit_hasty(void)
{
	ck_assert_int_eq(rl_submit(client, &hasty, NULL, marks, NULL), RL_OK);
}

/* ---- an application that is late ---- */

static void
script_answers_in_time(struct fake *f)
{
	int conn = fake_greet(f);

	serve(f, conn);
	fake_hold(f);
	serve(f, conn);
	fake_reached(f);
	fake_read(f, conn, IPC_CHECK);
}

/* Whatever call comes first looks at what came in before it ends anything. */
START_TEST(an_answer_that_waited)
{
	struct op *op;

	fake_start(&fake, script_answers_in_time);
	check_allowed();
	submit(1);
	fake_let(&fake);
	fake_await(&fake);
	op = client->conns[0]->pending.first;
	ck_assert_ptr_nonnull(op);
	op->deadline = now_us() - GRACE - 1;
	op_rekey(client, op);
	submit(2);
	ck_assert_uint_eq(collect(), 1);
	expect(RL_ALLOWED, 1, RL_SOURCE_SERVER, RL_REASON_OK);
	fake_join(&fake);
}
END_TEST

/* ---- an agent that does not read ---- */

#define FLOOD 3000

static int begun;

/* Counts the checks up to the one with this key. */
static void
script_reads_at_last(struct fake *f)
{
	uint8_t buf[IPC_MAX_FRAME], last = 0;
	uint16_t type;
	uint32_t len;
	int conn = fake_greet(f);

	fake_reached(f);
	fake_hold(f);
	begun = 0;
	while (last != 63) {
		if (recv(f->conns[conn], buf, HEAD_LEN, MSG_WAITALL) !=
		    HEAD_LEN)
			return;
		memcpy(&len, buf, 4);
		memcpy(&type, buf + 4, 2);
		len -= HEAD_LEN;
		if (len > 0 &&
		    recv(f->conns[conn], buf, len, MSG_WAITALL) != (ssize_t)len)
			return;
		if (type == W_CHECK) {
			begun++;
			last = buf[len - 1];
		}
	}
}

/* What ended as never written is not begun afterwards. */
START_TEST(never_written_means_never)
{
	struct rl_options options = {.socket = fake.path,
	    .timeout_ms = 20000,
	    .max_inflight = FLOOD + 2};
	int i, unavailable = 0, timeout = 0;

	rl_close(client);
	ck_assert_int_eq(rl_open(&client, &options), RL_OK);
	fake_start(&fake, script_reads_at_last);
	submit(1);
	collect_nothing_until_reached();
	while (client->queue.first != NULL || client->conns[0]->out_len > 0)
		ck_assert_int_eq(rl_collect(client, &completion), 0);
	for (i = 0; i < FLOOD; i++)
		submit_hasty();
	for (i = 0; i < FLOOD; i++) {
		collect();
		unavailable += decision.reason == RL_REASON_UNAVAILABLE;
		timeout += decision.reason == RL_REASON_TIMEOUT;
	}
	ck_assert_int_gt(unavailable, 0);
	ck_assert_int_eq(unavailable + timeout, FLOOD);
	fake_let(&fake);
	submit(63);
	while (client->queue.first != NULL || client->conns[0]->out_len > 0) {
		readable(rl_fd(client), 10);
		ck_assert_int_eq(rl_collect(client, &completion), 0);
	}
	fake_join(&fake);
	/* The first and the last; and one may have been written in part. */
	ck_assert_int_ge(begun, timeout + 2);
	ck_assert_int_le(begun, timeout + 3);
}
END_TEST

/* ---- an agent that hangs ---- */

static void
script_hangs_at_the_greeting(struct fake *f)
{
	fake_accept(f);
	serve(f, fake_greet(f));
}

static void
script_hangs(struct fake *f)
{
	fake_greet(f);
	serve(f, fake_greet(f));
}

static void (*const hanging[])(struct fake *f) = {
    script_hangs_at_the_greeting, script_hangs};

/* Each check ends in time; and one that came later is asked of another. */
START_TEST(a_hung_agent_is_left)
{
	fake_start(&fake, hanging[_i]);
	do {
		submit_hasty();
		readable(rl_fd(client), 20);
		while (rl_collect(client, &completion)) {
			decision = completion.decision;
			if (decision.outcome == RL_FAILED)
				ck_assert_uint_ge(decision.elapsed_us, 300000);
		}
	} while (decision.outcome != RL_ALLOWED || decision.permit != 1);
	fake_join(&fake);
}
END_TEST

START_TEST(a_hung_agent_is_left_by_calls)
{
	fake_start(&fake, script_hangs);
	do
		rl_check(client, &hasty, &decision, NULL);
	while (decision.outcome != RL_ALLOWED);
	fake_join(&fake);
}
END_TEST

/* ---- event loops ---- */

static void
script_half_an_answer(struct fake *f)
{
	uint8_t half[HEAD_LEN + 4] = {40, 0, 0, 0, 0x10, 0x80};
	int conn = fake_greet(f);

	memcpy(half + 8, &fake_read(f, conn, IPC_CHECK)->head.id, 8);
	fake_reached(f);
	fake_hold(f);
	fake_write(f, conn, half, sizeof(half));
	fake_close(f, conn);
	fake_reached(f);
	serve(f, fake_greet(f));
}

/* The end behind a piece of a frame makes no edge of its own. */
START_TEST(an_edge_triggered_loop)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};
	int got = 0, loop = epoll_create1(EPOLL_CLOEXEC);

	fake_start(&fake, script_half_an_answer);
	ck_assert_int_eq(
	    epoll_ctl(loop, EPOLL_CTL_ADD, rl_fd(client), &event), 0);
	submit(1);
	collect_nothing_until_reached();
	epoll_wait(loop, &event, 1, 0); /* the edges up to now */
	ck_assert_int_eq(rl_collect(client, &completion), 0);
	fake_let(&fake);
	fake_await(&fake);
	while (got == 0) {
		ck_assert_int_eq(epoll_wait(loop, &event, 1, 10000), 1);
		while (rl_collect(client, &completion))
			got++;
	}
	ck_assert_int_eq(completion.decision.outcome, RL_ALLOWED);
	fake_join(&fake);
	close(loop);
}
END_TEST

static void
script_one(struct fake *f)
{
	serve(f, fake_greet(f));
}

/* The descriptor that a loop was given stays good, only slower. */
START_TEST(no_more_watches)
{
	int fd = rl_fd(client);

	no_watches = true;
	fake_start(&fake, script_one);
	submit(1);
	while (rl_collect(client, &completion) == 0)
		ck_assert(readable(fd, 10000));
	ck_assert_int_eq(completion.decision.outcome, RL_ALLOWED);
	no_watches = false;
	ck_assert_int_eq(rl_fd(client), fd);
	fake_join(&fake);
}
END_TEST

/* ---- descriptors ---- */

static int
descriptors(void)
{
	int fd, n = 0;

	for (fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

START_TEST(without_proc)
{
	struct rl_client *other;
	int before = descriptors();

	no_proc = true;
	ck_assert_int_eq(rl_open(&other, NULL), RL_OK);
	ck_assert_int_ge(rl_fd(other), 0);
	rl_close(other);
	no_proc = false;
	ck_assert_int_eq(descriptors(), before);
}
END_TEST

/* A daemon closes what it inherited, and its own loop gets those numbers. */
START_TEST(a_loop_of_a_child)
{
	int status, fd = rl_fd(client), timer = client->timer;
	pid_t pid = fork();

	if (pid == 0) {
		if (dup2(epoll_create1(0), fd) != fd ||
		    dup2(timerfd_create(CLOCK_MONOTONIC, 0), timer) != timer)
			_exit(1);
		rl_fd(client);
		_exit(fcntl(fd, F_GETFD) < 0 || fcntl(timer, F_GETFD) < 0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	ck_assert(!readable(fd, 0));
}
END_TEST

/* ---- a wait that nothing wakes ---- */

static bool no_poll, awaited;

/* An awaited wait is interrupted when it has looked for interrupts. */
static bool
poll_fails(void)
{
	bool waits = client->live == 0;

	if (waits && awaited) {
		awaited = false;
		fake_let(&fake);
	}
	return waits && no_poll;
}

static void
script_waits_and_interrupts(struct fake *f)
{
	int conn = fake_greet(f);

	grant(f, conn, 20000);
	grant(f, conn, LONG_US);
	fake_hold(f);
	rl_interrupt(client);
}

/* Waited all the same, and ended all the same. */
START_TEST(waits_without_poll)
{
	no_poll = true;
	fake_start(&fake, script_waits_and_interrupts);
	acquire(&mail);
	expect_granted(20000);
	awaited = true;
	acquire(&mail);
	expect_cancelled();
}
END_TEST

START_TEST(waits_without_an_eventfd)
{
	no_eventfd = true;
	close(atomic_exchange(&client->wake, -1));
	fake_start(&fake, script_waits_and_interrupts);
	acquire(&mail);
	expect_granted(20000);
	awaited = true;
	acquire(&mail);
	expect_cancelled();
	ck_assert_int_eq(atomic_load(&client->wake), -1);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("rlshim_adverse");
	TCase *tc = tcase_create("adverse");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, begin, end);
	tcase_add_test(tc, an_answer_that_waited);
	tcase_add_test(tc, never_written_means_never);
	tcase_add_loop_test(tc, a_hung_agent_is_left, 0, 2);
	tcase_add_test(tc, a_hung_agent_is_left_by_calls);
	tcase_add_test(tc, an_edge_triggered_loop);
	tcase_add_test(tc, no_more_watches);
	tcase_add_test(tc, without_proc);
	tcase_add_test(tc, a_loop_of_a_child);
	tcase_add_test(tc, waits_without_poll);
	tcase_add_test(tc, waits_without_an_eventfd);
	suite_add_tcase(s, tc);
	return harness_run(s);
}
