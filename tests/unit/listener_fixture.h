/*
 * What the tests of listeners share: a folder with a path in it, accepting,
 * and sockets of others. Tests only; one folder per test.
 */
#ifndef TESTS_UNIT_LISTENER_FIXTURE_H
#define TESTS_UNIT_LISTENER_FIXTURE_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/io/listener.h"
#include "tests/unit/harness.h"

#define SEC     INT64_C(1000000)
#define ANY_GID ((gid_t)-1)

#define TURN_UNTIL(condition)                                              \
	do {                                                               \
		int64_t limit_ = loop_now() + 20 * SEC;                    \
		while (!(condition)) {                                     \
			ck_assert_msg(                                     \
			    loop_now() < limit_, "never: %s", #condition); \
			loop_turn(loop);                                   \
		}                                                          \
	} while (0)

static struct loop *loop;
static char dir[64];
static char path[96];
static char lock_path[104];
static char err[LISTENER_ERR_MAX];

static int accepted[512];
static unsigned int accepted_count;

static inline void
on_accept(void *arg, int fd)
{
	ck_assert_ptr_eq(arg, accepted);
	ck_assert_int_ne(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
	ck_assert_int_ne(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
	accepted[accepted_count++] = fd;
}

static inline void
setup(void)
{
	const char *tmp = getenv("TMPDIR");

	/* sockaddr_un is short. */
	if (tmp == NULL || strlen(tmp) > 30)
		tmp = "/tmp";
	snprintf(dir, sizeof(dir), "%s/listener-XXXXXX", tmp);
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/a.sock", dir);
	snprintf(lock_path, sizeof(lock_path), "%s.lock", path);
	memset(err, 0, sizeof(err));
	accepted_count = 0;
	loop = loop_new();
	ck_assert_ptr_nonnull(loop);
}

static inline void
teardown(void)
{
	loop_free(loop);
	unlink(path);
	unlink(lock_path);
	ck_assert_int_eq(rmdir(dir), 0); /* nothing else was left */
}

static inline struct listener *
open_at(const char *where)
{
	struct listener *l =
	    listener_new(loop, where, 0660, ANY_GID, on_accept, accepted, err);

	if (l != NULL)
		ck_assert_int_eq(listener_start(l, err), 0);
	return l;
}

static inline struct listener *
must_open(void)
{
	struct listener *l = open_at(path);

	ck_assert_msg(l != NULL, "%s", err);
	return l;
}

static inline int
unix_socket(int type, const char *where, bool connects)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	const struct sockaddr *sa = (const struct sockaddr *)&un;
	int fd = socket(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	snprintf(un.sun_path, sizeof(un.sun_path), "%s", where);
	if ((connects ? connect(fd, sa, sizeof(un))
		      : bind(fd, sa, sizeof(un))) == 0)
		return fd;
	close(fd);
	return -1;
}

static inline int
dial(void)
{
	return unix_socket(SOCK_STREAM, path, true);
}

static inline mode_t
mode_of(const char *where)
{
	struct stat st;

	ck_assert_int_eq(lstat(where, &st), 0);
	return st.st_mode;
}

static inline int
exit_of(int (*fn)(void))
{
	pid_t child = fork();
	int status;

	if (child == 0)
		_exit(fn());
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static inline gid_t
group_of(const char *where)
{
	struct stat st;

	ck_assert_int_eq(lstat(where, &st), 0);
	return st.st_gid;
}

#endif
