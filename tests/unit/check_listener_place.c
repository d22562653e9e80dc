/*
 * daemon/io/listener's place: what it finds there, dead, alive or somebody
 * else's, the lock, what a killed agent leaves behind and what it leaves.
 */
#include "daemon/io/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/listener_fixture.h"

/* An error names the path and what is wrong, in one line. */
static void
must_refuse(const char *why)
{
	ck_assert_ptr_null(open_at(path));
	ck_assert_msg(strstr(err, path) == err, "%s", err);
	ck_assert_msg(strstr(err, why) != NULL, "%s", err);
	ck_assert_ptr_null(strchr(err, '\n'));
}

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

/* A process with a loop of its own, until it is killed. */
static pid_t
other_agent(bool starts)
{
	int ready[2];
	pid_t child;
	char byte = 0;

	ck_assert_int_eq(pipe2(ready, O_CLOEXEC), 0);
	child = fork();
	if (child == 0) {
		struct loop *own = loop_new();
		struct listener *l = listener_new(
		    own, path, 0660, ANY_GID, on_accept, accepted, err);

		if (l == NULL || (starts && listener_start(l, err) != 0) ||
		    write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	ck_assert_int_eq(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return child;
}

static void
kill_agent(pid_t child)
{
	int status;

	ck_assert_int_eq(kill(child, SIGKILL), 0);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFSIGNALED(status));
}

/* While it lives nothing is touched; when it is killed all is taken over. */
START_TEST(a_killed_agent_is_succeeded)
{
	pid_t child = other_agent(true);
	int fd;

	must_refuse("in use");
	fd = dial();
	ck_assert_int_ge(fd, 0);
	close(fd);
	kill_agent(child);
	ck_assert(S_ISSOCK(mode_of(path)));
	ck_assert_int_eq(dial(), -1);
	listener_free(must_open());
	ck_assert_int_eq(access(path, F_OK), -1);
}
END_TEST

/* Nor does one that is killed before it listens block the next. */
START_TEST(an_agent_killed_at_its_start_is_succeeded)
{
	pid_t child = other_agent(false);

	must_refuse("in use");
	kill_agent(child);
	listener_free(must_open());
}
END_TEST

/* Somebody's clean-up took the lock's file: a live socket is still one. */
START_TEST(the_probe_alone_refuses)
{
	pid_t child = other_agent(true);
	int fd;

	ck_assert_int_eq(unlink(lock_path), 0);
	must_refuse("serves it");
	fd = dial();
	ck_assert_int_ge(fd, 0);
	close(fd);
	kill_agent(child);
}
END_TEST

/* In a child: a socket that it may not connect to is not known to be dead. */
static int
forbidden_socket(void)
{
	int fd = unix_socket(SOCK_STREAM, path, false);

	close(fd);
	if (geteuid() == 0 &&
	    (chown(dir, 65534, 65534) != 0 || chmod(path, 0600) != 0 ||
		setgid(65534) != 0 || setuid(65534) != 0))
		return 77;
	if (geteuid() != 65534)
		ck_assert_int_eq(chmod(path, 0), 0);
	if (open_at(path) != NULL || strstr(err, "cannot probe") == NULL)
		return 1;
	return S_ISSOCK(mode_of(path)) ? 0 : 2;
}

START_TEST(a_socket_that_cannot_be_probed_is_left_alone)
{
	int status = exit_of(forbidden_socket);

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

int
main(void)
{
	Suite *suite = suite_create("listener_place");
	TCase *tc = tcase_create("listener_place");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, a_dead_socket_is_replaced);
	tcase_add_test(tc, a_live_socket_is_refused);
	tcase_add_test(tc, two_in_one_process_do_not_fight);
	tcase_add_test(tc, the_lock_alone_refuses);
	tcase_add_test(tc, what_is_not_a_socket_is_left_alone);
	tcase_add_test(tc, a_lock_that_is_a_link_is_refused);
	tcase_add_test(tc, only_its_own_socket_is_unlinked);
	tcase_add_test(tc, not_before_it_is_started);
	tcase_add_test(tc, a_place_that_was_left_is_taken);
	tcase_add_test(tc, a_file_that_appears_is_left_alone);
	tcase_add_test(tc, a_killed_agent_is_succeeded);
	tcase_add_test(tc, an_agent_killed_at_its_start_is_succeeded);
	tcase_add_test(tc, the_probe_alone_refuses);
	tcase_add_test(tc, a_socket_that_cannot_be_probed_is_left_alone);
	tcase_add_test(tc, one_level_of_directory_is_made);
	tcase_add_test(tc, a_path_must_fit);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
