/*
 * daemon/io/listener on real paths: mode and group, from the start and
 * changed, and accepting, also when descriptors run out.
 */
#include "daemon/io/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/io/address.h"
#include "tests/unit/listener_fixture.h"

/* A port of the loopback that nobody has. */
static struct endpoint
free_place(int family)
{
	struct endpoint at = {
	    .family = (uint8_t)family, .addr = {127, 0, 0, 1}};
	union address sa;
	socklen_t len;
	int fd;

	if (family == 6)
		at = (struct endpoint){.family = 6, .addr = {[15] = 1}};
	len = address_to_sockaddr(&at, &sa);
	fd = socket(sa.any.sa_family, SOCK_STREAM, 0);
	if (bind(fd, &sa.any, len) == 0) {
		getsockname(fd, &sa.any, &len);
		address_from_sockaddr(&sa, &at);
	}
	close(fd);
	return at;
}

static int
dial_tcp(const struct endpoint *at)
{
	union address sa;
	const socklen_t len = address_to_sockaddr(at, &sa);
	int fd = socket(sa.any.sa_family, SOCK_STREAM, 0);

	if (connect(fd, &sa.any, len) == 0)
		return fd;
	close(fd);
	return -1;
}

START_TEST(tcp)
{
	const struct endpoint at = free_place(_i);
	struct listener *l, *other;
	int fd;

	if (at.port == 0)
		return; /* this machine has no such address */
	l = listener_new_tcp(loop, &at, on_accept, accepted, err);
	ck_assert_msg(l != NULL, "%s", err);
	ck_assert_int_eq(dial_tcp(&at), -1);
	ck_assert_int_eq(listener_start(l, err), 0);
	ck_assert_int_eq(listener_change(l, 0600, 0, err), 0);
	fd = dial_tcp(&at);
	ck_assert_int_ge(fd, 0);
	TURN_UNTIL(accepted_count == 1);
	other = listener_new_tcp(loop, &at, on_accept, accepted, err);
	ck_assert_ptr_null(other);
	ck_assert_ptr_nonnull(strstr(err, ": cannot bind: "));
	listener_free(l);
	/* Again at once, though the last connection has just been closed. */
	close(accepted[0]);
	close(fd);
	l = listener_new_tcp(loop, &at, on_accept, accepted, err);
	ck_assert_msg(l != NULL, "%s", err);
	listener_free(l);
}
END_TEST

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
	if (l != NULL || strstr(err, "group 54321") == NULL ||
	    strstr(err, "; the agent has to be a member") == NULL)
		return 1;
	return access(path, F_OK) == 0 ? 2 : 0;
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

static struct listener *
must_bind(void)
{
	struct listener *l =
	    listener_new(loop, path, 0660, ANY_GID, on_accept, accepted, err);

	ck_assert_msg(l != NULL, "%s", err);
	return l;
}

START_TEST(mode_and_group_can_change)
{
	char new[104];
	gid_t usual, other = geteuid() == 0 ? 54321 : getegid();
	struct listener *l = must_bind();
	int fd;

	/* Before it listens, where it is then. */
	snprintf(new, sizeof(new), "%s.new", path);
	usual = group_of(new);
	ck_assert_int_eq(listener_change(l, 0600, other, err), 0);
	ck_assert_uint_eq(mode_of(new) & 07777, 0600);
	ck_assert_uint_eq(group_of(new), other);
	ck_assert_int_eq(listener_start(l, err), 0);
	ck_assert_uint_eq(mode_of(path) & 07777, 0600);
	/* And after it. */
	ck_assert_int_eq(listener_change(l, 0666, other, err), 0);
	ck_assert_uint_eq(mode_of(path) & 07777, 0666);
	ck_assert_uint_eq(group_of(path), other);
	/* Without a group: as if it never had had one. */
	ck_assert_int_eq(listener_change(l, 0620, ANY_GID, err), 0);
	ck_assert_uint_eq(mode_of(path) & 07777, 0620);
	ck_assert_uint_eq(group_of(path), usual);
	fd = dial();
	ck_assert_int_ge(fd, 0);
	TURN_UNTIL(accepted_count == 1);
	close(accepted[0]);
	close(fd);
	listener_free(l);
}
END_TEST

/* What else may be at the path keeps its mode, and what a link names. */
START_TEST(only_its_own_socket_is_changed)
{
	struct listener *l = must_open();
	char target[128];
	int fd;

	snprintf(target, sizeof(target), "%s/target", dir);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(listener_change(l, 0666, ANY_GID, err), -1);
	ck_assert_ptr_nonnull(strstr(err, path));
	fd = unix_socket(SOCK_STREAM, path, false);
	ck_assert_int_eq(chmod(path, 0600), 0);
	ck_assert_int_eq(listener_change(l, 0666, ANY_GID, err), -1);
	ck_assert_ptr_nonnull(strstr(err, "no longer"));
	ck_assert_uint_eq(mode_of(path) & 07777, 0600);
	close(fd);
	/* Not even a link to the socket itself. */
	ck_assert_int_eq(rename(path, target), 0);
	ck_assert_int_eq(symlink(target, path), 0);
	ck_assert_int_eq(listener_change(l, 0666, ANY_GID, err), -1);
	ck_assert_uint_eq(mode_of(target) & 07777, 0600);
	ck_assert_int_eq(unlink(target), 0);
	listener_free(l);
	ck_assert(S_ISLNK(mode_of(path)));
}
END_TEST

/* In a child: mode and group are as they were, the socket too. */
static int
forbidden_change(void)
{
	struct listener *l;
	gid_t usual;

	if (geteuid() == 0 && (chown(dir, 65534, 65534) != 0 ||
				  setgid(65534) != 0 || setuid(65534) != 0))
		return 77;
	l = must_open();
	usual = group_of(path);
	/* Only owners are left by the modes' common part. */
	if (listener_change(l, 0606, 54321, err) != -1 ||
	    strstr(err, "group 54321") == NULL ||
	    strstr(err, "; the agent has to be a member") == NULL ||
	    strstr(err, "mode 0606") == NULL || strstr(err, path) != err)
		return 1;
	if ((mode_of(path) & 07777) != 0660 || group_of(path) != usual)
		return 2;
	if (listener_change(l, 0606, ANY_GID, err) != 0 ||
	    (mode_of(path) & 07777) != 0606)
		return 3;
	listener_free(l);
	return 0;
}

START_TEST(a_change_that_fails_changes_nothing)
{
	int status = exit_of(forbidden_change);

	if (status == 77)
		printf("# cannot change to another user\n");
	else
		ck_assert_int_eq(status, 0);
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

/* The listening socket of somebody else, as a service manager has one. */
static int
foreign_socket(void)
{
	int fd = unix_socket(SOCK_STREAM, path, false);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(listen(fd, 5), 0);
	ck_assert_int_eq(chmod(path, 0604), 0);
	return fd;
}

START_TEST(an_adopted_socket_is_left_alone)
{
	int fd = foreign_socket(), peer[2];
	struct listener *l;

	for (int i = 0; i < 2; i++) { /* given back, and taken again */
		l = listener_adopt(loop, fd, path, on_accept, accepted, err);
		ck_assert_msg(l != NULL, "%s", err);
		peer[i] = dial(); /* waits in the backlog */
		ck_assert_int_ge(peer[i], 0);
		loop_turn(loop);
		ck_assert_uint_eq(accepted_count, i);
		ck_assert_int_eq(listener_start(l, err), 0);
		ck_assert_int_eq(listener_start(l, err), 0);
		TURN_UNTIL(accepted_count == (unsigned int)i + 1);
		ck_assert_int_eq(listener_change(l, 0666, 1, err), 0);
		listener_free(l);
		ck_assert_uint_eq(mode_of(path) & 07777, 0604);
		ck_assert_int_eq(access(lock_path, F_OK), -1);
		/* Who comes now waits; nobody accepts. */
		close(dial());
		loop_turn(loop);
		ck_assert_uint_eq(accepted_count, i + 1);
		close(accept(fd, NULL, NULL));
	}
	ck_assert_int_ge(fcntl(fd, F_GETFD), 0);
	for (int i = 0; i < 2; i++) {
		close(peer[i]);
		close(accepted[i]);
	}
	close(fd);
}
END_TEST

/* Not started: freed as it is. */
START_TEST(an_adopted_socket_that_never_starts)
{
	int fd = foreign_socket();

	listener_free(listener_adopt(loop, fd, path, on_accept, accepted, err));
	ck_assert_int_ge(fcntl(fd, F_GETFD), 0);
	ck_assert_int_eq(access(path, F_OK), 0);
	ck_assert_ptr_null(
	    listener_adopt(loop, fd, "", on_accept, accepted, err));
	ck_assert_int_ge(fcntl(fd, F_GETFD), 0);
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
	tcase_add_loop_test(tc, tcp, 4, 5);
	tcase_add_loop_test(tc, tcp, 6, 7);
	tcase_add_test(tc, at_most_64_in_one_turn);
	tcase_add_test(tc, the_backlog_is_deep);
	tcase_add_test(tc, the_mode_is_exact_whatever_the_umask);
	tcase_add_test(tc, the_group_is_given);
	tcase_add_test(tc, a_group_that_cannot_be_given_is_an_error);
	tcase_add_test(tc, mode_and_group_can_change);
	tcase_add_test(tc, only_its_own_socket_is_changed);
	tcase_add_test(tc, a_change_that_fails_changes_nothing);
	tcase_add_test(tc, without_descriptors_it_pauses_and_resumes);
	tcase_add_test(tc, freed_while_paused);
	tcase_add_test(tc, an_adopted_socket_is_left_alone);
	tcase_add_test(tc, an_adopted_socket_that_never_starts);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
