/*
 * daemon/io/listener on real paths: what it finds there and leaves behind,
 * mode and group, the lock, and accepting when descriptors run out.
 */
#include "daemon/io/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

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

static void
on_accept(void *arg, int fd)
{
	ck_assert_ptr_eq(arg, accepted);
	ck_assert_int_ne(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
	ck_assert_int_ne(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
	accepted[accepted_count++] = fd;
}

static void
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

static void
teardown(void)
{
	loop_free(loop);
	unlink(path);
	unlink(lock_path);
	ck_assert_int_eq(rmdir(dir), 0); /* nothing else was left */
}

static struct listener *
open_at(const char *where)
{
	struct listener *l =
	    listener_new(loop, where, 0660, ANY_GID, on_accept, accepted, err);

	if (l != NULL)
		ck_assert_int_eq(listener_start(l, err), 0);
	return l;
}

static struct listener *
must_open(void)
{
	struct listener *l = open_at(path);

	ck_assert_msg(l != NULL, "%s", err);
	return l;
}

/* An error names the path and what is wrong, in one line. */
static void
must_refuse(const char *why)
{
	ck_assert_ptr_null(open_at(path));
	ck_assert_msg(strstr(err, path) == err, "%s", err);
	ck_assert_msg(strstr(err, why) != NULL, "%s", err);
	ck_assert_ptr_null(strchr(err, '\n'));
}

static int
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

static int
dial(void)
{
	return unix_socket(SOCK_STREAM, path, true);
}

static mode_t
mode_of(const char *where)
{
	struct stat st;

	ck_assert_int_eq(lstat(where, &st), 0);
	return st.st_mode;
}

START_TEST(it_accepts_and_leaves_no_socket)
{
	struct listener *l = must_open();
	int fd;

	fd = dial();
	ck_assert_int_ge(fd, 0);
	TURN_UNTIL(accepted_count == 1);
	ck_assert_int_eq(write(fd, "hello", 5), 5);
	ck_assert_int_eq(read(accepted[0], err, sizeof(err)), 5);
	listener_free(l);
	ck_assert_int_eq(access(path, F_OK), -1);
	ck_assert_int_eq(access(lock_path, F_OK), 0);
	/* Accepted ones live on, and the path can be used again. */
	ck_assert_int_eq(write(fd, "again", 5), 5);
	ck_assert_int_eq(read(accepted[0], err, sizeof(err)), 5);
	l = must_open();
	listener_free(l);
	listener_free(NULL);
	close(fd);
	close(accepted[0]);
}
END_TEST

START_TEST(at_most_64_in_one_turn)
{
	struct listener *l = must_open();
	int fds[150];

	for (int i = 0; i < 150; i++) {
		fds[i] = dial();
		ck_assert_int_ge(fds[i], 0);
	}
	loop_turn(loop);
	ck_assert_uint_eq(accepted_count, 64);
	loop_turn(loop);
	ck_assert_uint_eq(accepted_count, 128);
	TURN_UNTIL(accepted_count == 150);
	for (int i = 0; i < 150; i++) {
		close(fds[i]);
		close(accepted[i]);
	}
	ck_assert_uint_eq(listener_pauses(l), 0);
	listener_free(l);
}
END_TEST

START_TEST(the_backlog_is_deep)
{
	struct listener *l = must_open();
	int fds[900];

	for (int i = 0; i < 900; i++) {
		fds[i] = dial();
		ck_assert_msg(fds[i] >= 0, "%d: %s", i, strerror(errno));
	}
	for (int i = 0; i < 900; i++)
		close(fds[i]);
	listener_free(l);
}
END_TEST

START_TEST(a_dead_socket_is_replaced)
{
	struct listener *l;
	int fd = unix_socket(SOCK_STREAM, path, false);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(listen(fd, 1), 0);
	close(fd); /* as a SIGKILL leaves it */
	ck_assert(S_ISSOCK(mode_of(path)));
	l = must_open();
	fd = dial();
	ck_assert_int_ge(fd, 0);
	TURN_UNTIL(accepted_count == 1);
	close(accepted[0]);
	close(fd);
	listener_free(l);
}
END_TEST

START_TEST(a_live_socket_is_refused)
{
	int fd = unix_socket(SOCK_STREAM, path, false);

	ck_assert_int_eq(listen(fd, 0), 0);
	must_refuse("in use");
	ck_assert(S_ISSOCK(mode_of(path)));
	/* Alive, even when its backlog is full. */
	for (int i = 0; i < 5; i++) {
		int client = dial();

		if (client < 0)
			ck_assert_int_eq(errno, EAGAIN);
	}
	must_refuse("in use");
	ck_assert(S_ISSOCK(mode_of(path)));
	close(fd);
	unlink(path);
	/* Alive, of another type. */
	fd = unix_socket(SOCK_DGRAM, path, false);
	must_refuse("in use");
	ck_assert(S_ISSOCK(mode_of(path)));
	close(fd);
}
END_TEST

START_TEST(two_in_one_process_do_not_fight)
{
	struct listener *l = must_open();
	int fd;

	must_refuse("in use");
	fd = dial(); /* the first is unharmed */
	ck_assert_int_ge(fd, 0);
	TURN_UNTIL(accepted_count == 1);
	close(fd);
	close(accepted[0]);
	listener_free(l);
}
END_TEST

START_TEST(the_lock_alone_refuses)
{
	struct listener *l = must_open();

	ck_assert_int_eq(unlink(path), 0); /* somebody's clean-up */
	must_refuse("in use");
	listener_free(l);
	l = must_open();
	listener_free(l);
}
END_TEST

START_TEST(what_is_not_a_socket_is_left_alone)
{
	char text[8] = "";
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	ck_assert_int_eq(write(fd, "data", 4), 4);
	close(fd);
	must_refuse("not a socket");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	ck_assert_int_eq(read(fd, text, sizeof(text)), 4);
	ck_assert_str_eq(text, "data");
	close(fd);
	unlink(path);
	/* Not even a link to one: its target is somebody else's. */
	ck_assert_int_eq(symlink("b.sock", path), 0);
	must_refuse("not a socket");
	ck_assert(S_ISLNK(mode_of(path)));
	unlink(path);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	must_refuse("not a socket");
	ck_assert_int_eq(rmdir(path), 0);
}
END_TEST

START_TEST(a_lock_that_is_a_link_is_refused)
{
	ck_assert_int_eq(symlink("elsewhere", lock_path), 0);
	must_refuse("lock");
}
END_TEST

START_TEST(only_its_own_socket_is_unlinked)
{
	struct listener *l = must_open();
	int fd;

	ck_assert_int_eq(unlink(path), 0);
	fd = unix_socket(SOCK_STREAM, path, false);
	ck_assert_int_ge(fd, 0);
	listener_free(l);
	ck_assert(S_ISSOCK(mode_of(path)));
	close(fd);
}
END_TEST

START_TEST(the_mode_is_exact_whatever_the_umask)
{
	static const mode_t modes[] = {0600, 0660, 0666, 0620};
	static const mode_t umasks[] = {0, 022, 077, 0777};

	for (size_t i = 0; i < 4; i++) {
		for (size_t j = 0; j < 4; j++) {
			mode_t before = umask(umasks[j]);
			struct listener *l = listener_new(loop, path, modes[i],
			    ANY_GID, on_accept, accepted, err);

			ck_assert_uint_eq(umask(before), umasks[j]);
			ck_assert_msg(l != NULL, "%s", err);
			ck_assert_int_eq(listener_start(l, err), 0);
			ck_assert_uint_eq(mode_of(path) & 07777, modes[i]);
			listener_free(l);
			ck_assert_int_eq(chmod(lock_path, 0600), 0);
		}
	}
	unlink(lock_path);
	listener_free(must_open());
	ck_assert_uint_eq(mode_of(lock_path) & 07777, 0600);
}
END_TEST

/* Bound but not started: as if nobody were there yet. */
START_TEST(not_before_it_is_started)
{
	struct listener *l =
	    listener_new(loop, path, 0660, ANY_GID, on_accept, accepted, err);
	int fd;

	ck_assert_msg(l != NULL, "%s", err);
	fd = dial();
	ck_assert_int_eq(fd, -1);
	ck_assert_int_eq(errno, ENOENT);
	/* The path is taken all the same. */
	ck_assert_ptr_null(open_at(path));
	ck_assert_int_eq(listener_start(l, err), 0);
	ck_assert_int_eq(listener_start(l, err), 0);
	fd = dial();
	ck_assert_int_ge(fd, 0);
	close(fd);
	listener_free(l);
}
END_TEST

/* What a process that was killed before it listened has left is replaced. */
START_TEST(a_place_that_was_left_is_taken)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct listener *l;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_lt(
	    snprintf(un.sun_path, sizeof(un.sun_path), "%.90s.new", path),
	    (int)sizeof(un.sun_path));
	ck_assert_int_eq(bind(fd, (const struct sockaddr *)&un, sizeof(un)), 0);
	close(fd);
	l = must_open();
	ck_assert_int_ne(access(un.sun_path, F_OK), 0);
	listener_free(l);
	/* Anything else of that name is somebody's, and is left alone. */
	fd = open(un.sun_path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	ck_assert_int_ge(fd, 0);
	close(fd);
	ck_assert_ptr_null(open_at(path));
	ck_assert_int_eq(unlink(un.sun_path), 0);
}
END_TEST

/* Nor does it take a place that somebody took meanwhile. */
START_TEST(a_file_that_appears_is_left_alone)
{
	struct listener *l =
	    listener_new(loop, path, 0660, ANY_GID, on_accept, accepted, err);
	int fd;

	ck_assert_msg(l != NULL, "%s", err);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	ck_assert_int_ge(fd, 0);
	close(fd);
	ck_assert_int_eq(listener_start(l, err), -1);
	ck_assert_ptr_nonnull(strstr(err, path));
	listener_free(l);
	ck_assert_uint_eq(mode_of(path) & S_IFMT, S_IFREG);
}
END_TEST

START_TEST(the_group_is_given)
{
	gid_t gid = geteuid() == 0 ? 54321 : getegid();
	struct listener *l =
	    listener_new(loop, path, 0660, gid, on_accept, accepted, err);
	struct stat st;

	ck_assert_msg(l != NULL, "%s", err);
	ck_assert_int_eq(listener_start(l, err), 0);
	ck_assert_int_eq(lstat(path, &st), 0);
	ck_assert_uint_eq(st.st_gid, gid);
	ck_assert_uint_eq(st.st_uid, geteuid());
	ck_assert_uint_eq(st.st_mode & 07777, 0660);
	listener_free(l);
}
END_TEST

/* In a child: a group that it may not give leaves nothing behind. */
static int
forbidden_group(void)
{
	struct listener *l;

	if (geteuid() == 0 && (chown(dir, 65534, 65534) != 0 ||
				  setgid(65534) != 0 || setuid(65534) != 0))
		return 77;
	l = listener_new(loop, path, 0660, 54321, on_accept, accepted, err);
	if (l != NULL || strstr(err, "group 54321") == NULL)
		return 1;
	return access(path, F_OK) == 0 ? 2 : 0;
}

static int
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

START_TEST(a_group_that_cannot_be_given_is_an_error)
{
	int status = exit_of(forbidden_group);

	if (status == 77)
		printf("# cannot change to another user\n");
	else
		ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(one_level_of_directory_is_made)
{
	char sub[128], deep[192], lock[224];
	mode_t before = umask(077);
	struct listener *l;

	snprintf(sub, sizeof(sub), "%s/run", dir);
	snprintf(deep, sizeof(deep), "%s/b.sock", sub);
	snprintf(lock, sizeof(lock), "%s.lock", deep);
	l = open_at(deep);
	ck_assert_msg(l != NULL, "%s", err);
	ck_assert_uint_eq(mode_of(sub) & 07777, 0755);
	umask(before);
	listener_free(l);
	unlink(lock);
	ck_assert_int_eq(rmdir(sub), 0);
	snprintf(deep, sizeof(deep), "%s/run/more/b.sock", dir);
	ck_assert_ptr_null(open_at(deep));
	ck_assert_ptr_nonnull(strstr(err, "directory"));
	ck_assert_int_eq(access(sub, F_OK), -1);
}
END_TEST

START_TEST(a_path_must_fit)
{
	char longest[200];

	memset(longest, 'x', sizeof(longest));
	memcpy(longest, dir, strlen(dir));
	longest[strlen(dir)] = '/';
	longest[108] = '\0'; /* without room for the NUL */
	ck_assert_ptr_null(open_at(longest));
	ck_assert_ptr_nonnull(strstr(err, "107"));
	ck_assert_ptr_null(open_at(""));
	longest[107] = '\0';
	listener_free(open_at(longest));
	strcat(longest, ".lock");
	ck_assert_int_eq(unlink(longest), 0);
}
END_TEST

/* In a child with no descriptor left: pause, no spinning, then go on. */
static int
out_of_descriptors(void)
{
	struct listener *l = must_open();
	struct rlimit limit = {.rlim_cur = 64, .rlim_max = 64};
	int clients[10], spare[64], n = 0;
	int64_t start;
	unsigned int turns = 0;

	if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
		return 77;
	for (int i = 0; i < 10; i++)
		clients[i] = dial();
	while ((spare[n] = dup(0)) >= 0)
		n++;
	close(spare[--n]);
	close(spare[--n]); /* room for two */
	start = loop_now();
	while (listener_pauses(l) < 3 && loop_now() < start + 10 * SEC) {
		loop_turn(loop);
		turns++;
	}
	if (accepted_count != 2 || loop_now() - start < 2 * SEC / 10)
		return 1;
	while (n > 0)
		close(spare[--n]);
	while (accepted_count < 10 && loop_now() < start + 20 * SEC)
		loop_turn(loop);
	if (accepted_count != 10 || clients[9] < 0)
		return 2;
	listener_free(l);
	return turns > 0 ? 0 : 3;
}

START_TEST(without_descriptors_it_pauses_and_resumes)
{
	int status = exit_of(out_of_descriptors);

	if (status == 77)
		printf("# cannot lower the limit of descriptors\n");
	else
		ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(freed_while_paused)
{
	struct listener *l = must_open();
	struct rlimit old, low;
	int fd = dial();

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
	low = old;
	low.rlim_cur = 1;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
	TURN_UNTIL(listener_pauses(l) == 1);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
	listener_free(l);
	loop_turn(loop);
	close(fd);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("listener");
	TCase *tc = tcase_create("listener");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, it_accepts_and_leaves_no_socket);
	tcase_add_test(tc, at_most_64_in_one_turn);
	tcase_add_test(tc, the_backlog_is_deep);
	tcase_add_test(tc, a_dead_socket_is_replaced);
	tcase_add_test(tc, a_live_socket_is_refused);
	tcase_add_test(tc, two_in_one_process_do_not_fight);
	tcase_add_test(tc, the_lock_alone_refuses);
	tcase_add_test(tc, what_is_not_a_socket_is_left_alone);
	tcase_add_test(tc, a_lock_that_is_a_link_is_refused);
	tcase_add_test(tc, only_its_own_socket_is_unlinked);
	tcase_add_test(tc, the_mode_is_exact_whatever_the_umask);
	tcase_add_test(tc, not_before_it_is_started);
	tcase_add_test(tc, a_place_that_was_left_is_taken);
	tcase_add_test(tc, a_file_that_appears_is_left_alone);
	tcase_add_test(tc, the_group_is_given);
	tcase_add_test(tc, a_group_that_cannot_be_given_is_an_error);
	tcase_add_test(tc, one_level_of_directory_is_made);
	tcase_add_test(tc, a_path_must_fit);
	tcase_add_test(tc, without_descriptors_it_pauses_and_resumes);
	tcase_add_test(tc, freed_while_paused);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
