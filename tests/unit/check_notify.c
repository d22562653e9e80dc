/*
 * daemon/io/notify against sockets of the test: what it takes from the
 * environment, and that no manager can hold it up.
 */
#include "daemon/io/notify.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/unit/harness.h"

static char dir[64], path[96], name[96], err[NOTIFY_ERR_MAX];

static void
setup(void)
{
	snprintf(dir, sizeof(dir), "/tmp/notify-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/notify", dir);
	snprintf(name, sizeof(name), "@%s", dir);
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
}

static void
teardown(void)
{
	unlink(path);
	ck_assert_int_eq(rmdir(dir), 0);
}

static int
manager_at(const char *where, int type)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, type | SOCK_NONBLOCK, 0);

	ck_assert_int_ge(fd, 0);
	memcpy(un.sun_path, where, strlen(where));
	if (where[0] == '@')
		un.sun_path[0] = '\0';
	ck_assert_int_eq(
	    bind(fd, (struct sockaddr *)&un,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) +
			    strlen(where))),
	    0);
	return fd;
}

static struct notify *
opened(const char *where)
{
	struct notify *n;

	setenv("NOTIFY_SOCKET", where, 1);
	n = notify_new(err);
	ck_assert_ptr_nonnull(n);
	ck_assert_ptr_null(getenv("NOTIFY_SOCKET"));
	ck_assert_ptr_null(getenv("WATCHDOG_USEC"));
	ck_assert_ptr_null(getenv("WATCHDOG_PID"));
	return n;
}

static void
hears(int fd, const char *what)
{
	char got[256] = "";
	ssize_t n = recv(fd, got, sizeof(got) - 1, 0);

	ck_assert_int_eq(n, (ssize_t)strlen(what));
	ck_assert_str_eq(got, what);
	ck_assert_int_eq(recv(fd, got, sizeof(got), 0), -1);
}

START_TEST(a_path_and_an_abstract_name)
{
	const char *const where[] = {path, name};

	for (int i = 0; i < 2; i++) {
		int fd = manager_at(where[i], SOCK_DGRAM);
		struct notify *n = opened(where[i]);

		ck_assert_str_eq(err, "");
		ck_assert(notify_wanted(n));
		ck_assert(notify_send(n, "READY=1\nSTATUS=well"));
		hears(fd, "READY=1\nSTATUS=well");
		notify_free(n);
		close(fd);
	}
}
END_TEST

START_TEST(nobody_to_tell)
{
	struct notify *n = notify_new(err);

	ck_assert_ptr_nonnull(n);
	ck_assert_str_eq(err, "");
	ck_assert(!notify_wanted(n));
	ck_assert(notify_send(n, "READY=1"));
	ck_assert_int_eq(notify_watchdog_us(n), 0);
	notify_free(n);
	notify_free(NULL);
	/* Signs of life without a place to send them to. */
	setenv("WATCHDOG_USEC", "1000", 1);
	n = notify_new(err);
	ck_assert_int_eq(notify_watchdog_us(n), 0);
	ck_assert_ptr_null(getenv("WATCHDOG_USEC"));
	notify_free(n);
}
END_TEST

START_TEST(what_is_no_address)
{
	static const char *const bad[] = {
	    "", "/", "@", "notify", "vsock:2:1234", "\n"};
	char longest[110];
	struct notify *n;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		n = opened(bad[i]);
		ck_assert_ptr_nonnull(strstr(err, "NOTIFY_SOCKET: "));
		ck_assert(!notify_wanted(n));
		ck_assert(notify_send(n, "READY=1"));
		notify_free(n);
	}
	memset(longest, 'x', sizeof(longest));
	longest[0] = '/';
	longest[108] = '\0'; /* without room for the NUL */
	n = opened(longest);
	ck_assert_ptr_nonnull(strstr(err, "107"));
	notify_free(n);
	longest[107] = '\0';
	n = opened(longest);
	ck_assert_str_eq(err, "");
	notify_free(n);
}
END_TEST

/* A manager that does not read, and one that reads again. */
START_TEST(a_full_queue_does_not_block)
{
	int fd = manager_at(path, SOCK_DGRAM);
	struct notify *n = opened(path);
	char got[16];
	int sent = 0;

	while (notify_send(n, "WATCHDOG=1"))
		ck_assert_int_lt(++sent, 1000000);
	ck_assert_int_gt(sent, 0);
	ck_assert(!notify_send(n, "READY=1"));
	ck_assert_int_eq(recv(fd, got, sizeof(got), 0), 10);
	ck_assert(notify_send(n, "READY=1"));
	notify_free(n);
	close(fd);
}
END_TEST

/* Lost, but neither an error that is tried again for ever nor a signal. */
START_TEST(a_manager_that_is_gone)
{
	int fd = manager_at(path, SOCK_DGRAM);
	struct notify *n = opened(path);
	char *large = malloc(4 << 20);

	signal(SIGPIPE, SIG_DFL);
	ck_assert_ptr_nonnull(large);
	memset(large, 'x', (4 << 20) - 1);
	large[(4 << 20) - 1] = '\0';
	ck_assert(notify_send(n, large)); /* does not fit */
	free(large);
	close(fd);
	ck_assert(notify_send(n, "READY=1")); /* nobody reads */
	unlink(path);
	ck_assert(notify_send(n, "READY=1")); /* nothing there */
	fd = manager_at(path, SOCK_STREAM);
	ck_assert(notify_send(n, "READY=1")); /* something else */
	close(fd);
	unlink(path);
	fd = manager_at(path, SOCK_DGRAM); /* it was started again */
	ck_assert(notify_send(n, "READY=1"));
	hears(fd, "READY=1");
	close(fd);
	notify_free(n);
}
END_TEST

static int64_t
watchdog(const char *usec, const char *pid)
{
	struct notify *n;
	int64_t us;

	if (usec != NULL)
		setenv("WATCHDOG_USEC", usec, 1);
	if (pid != NULL)
		setenv("WATCHDOG_PID", pid, 1);
	n = opened(path);
	us = notify_watchdog_us(n);
	notify_free(n);
	return us;
}

START_TEST(signs_of_life)
{
	static const char *const bad[] = {
	    "", "0", "-1", "1s", " 1", "x", "99999999999999999999"};
	char pid[32];

	snprintf(pid, sizeof(pid), "%ld", (long)getpid());
	ck_assert_int_eq(watchdog("30000000", pid), 30000000);
	ck_assert_int_eq(watchdog("1", NULL), 1);
	ck_assert_int_eq(watchdog(NULL, pid), 0);
	snprintf(pid, sizeof(pid), "%ld", (long)getppid());
	ck_assert_int_eq(watchdog("30000000", pid), 0); /* of another one */
	ck_assert_int_eq(watchdog("30000000", "x"), 0);
	ck_assert_str_eq(err, "");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ck_assert_int_eq(watchdog(bad[i], NULL), 0);
		ck_assert_ptr_nonnull(strstr(err, "WATCHDOG_USEC: "));
	}
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("notify");
	TCase *tc = tcase_create("notify");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, a_path_and_an_abstract_name);
	tcase_add_test(tc, nobody_to_tell);
	tcase_add_test(tc, what_is_no_address);
	tcase_add_test(tc, a_full_queue_does_not_block);
	tcase_add_test(tc, a_manager_that_is_gone);
	tcase_add_test(tc, signs_of_life);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
