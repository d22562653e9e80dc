/*
 * What is foreseen of a socket that is not made: whatever stands in its way is
 * told in the words of the attempt, nothing is made, and what is no obstacle,
 * or none that another user would meet, too, is not told of.
 */
#include "daemon/io/listener.h"

#include <sched.h>
#include <sys/mount.h>

#include "tests/unit/listener_fixture.h"

static char foreseen[LISTENER_ERR_MAX];

/* The attempt is made afterwards, and fails alike. */
static void
expect_alike(const char *where)
{
	ck_assert_int_eq(listener_check(where, foreseen), -1);
	ck_assert_ptr_null(open_at(where));
	ck_assert_str_eq(foreseen, err);
	ck_assert_int_eq(strncmp(foreseen, dir, strlen(dir)), 0);
}

/* Neither is told of, nor is in the way. */
static void
expect_good(const char *where)
{
	struct listener *l;

	ck_assert_msg(listener_check(where, foreseen) == 0, "%s", foreseen);
	l = open_at(where);
	ck_assert_msg(l != NULL, "%s", err);
	ck_assert_int_eq(listener_check(where, foreseen), 0); /* in use */
	listener_free(l);
}

static void
beside(char out[96], const char *name)
{
	snprintf(out, 96, "%s/%s", dir, name);
}

static void
touch(const char *name)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0600);

	ck_assert_int_ge(fd, 0);
	close(fd);
}

START_TEST(nothing_is_in_the_way)
{
	char deep[96], sub[96], lock[160];

	ck_assert_int_eq(listener_check(path, foreseen), 0);
	ck_assert_int_ne(access(lock_path, F_OK), 0);
	expect_good(path);
	beside(sub, "run");
	beside(deep, "run/b.sock");
	ck_assert_int_eq(listener_check(deep, foreseen), 0);
	ck_assert_int_ne(access(sub, F_OK), 0);
	expect_good(deep);
	snprintf(lock, sizeof(lock), "%s.lock", deep);
	unlink(lock);
	ck_assert_int_eq(rmdir(sub), 0);
}
END_TEST

START_TEST(folders)
{
	char at[96], file[96];

	beside(at, "no/such/a.sock");
	expect_alike(at);
	beside(file, "file");
	touch(file);
	beside(at, "file/a.sock");
	expect_alike(at);
	ck_assert_ptr_nonnull(strstr(foreseen, "Not a directory"));
	beside(at, "file/no/a.sock");
	expect_alike(at);
	unlink(file);
}
END_TEST

START_TEST(files)
{
	char at[96];

	touch(path);
	expect_alike(path);
	unlink(path);
	ck_assert_int_eq(symlink("nowhere", path), 0);
	expect_alike(path);
	unlink(path);
	beside(at, "a.sock.new");
	touch(at);
	expect_alike(path);
	unlink(at);
	ck_assert_int_eq(mkdir(at, 0700), 0);
	expect_alike(path);
	ck_assert_int_eq(rmdir(at), 0);
	unlink(lock_path);
	ck_assert_int_eq(symlink("nowhere", lock_path), 0);
	expect_alike(path);
	unlink(lock_path);
	ck_assert_int_eq(mkdir(lock_path, 0700), 0);
	expect_alike(path);
	ck_assert_int_eq(rmdir(lock_path), 0);
}
END_TEST

START_TEST(what_a_killed_agent_leaves)
{
	char at[96];
	int fd[2];

	beside(at, "a.sock.new");
	fd[0] = unix_socket(SOCK_STREAM, path, false);
	fd[1] = unix_socket(SOCK_STREAM, at, false);
	close(fd[0]);
	close(fd[1]);
	touch(lock_path);
	expect_good(path);
}
END_TEST

/* In a mount namespace of its own. */
static int
on_a_read_only_folder(void)
{
	char at[96];

	if (unshare(CLONE_NEWNS) != 0 ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("none", dir, "tmpfs", MS_RDONLY, NULL) != 0)
		return 77;
	expect_alike(path);
	beside(at, "run/a.sock");
	expect_alike(at);
	return strstr(err, "Read-only file system") != NULL ? 0 : 1;
}

START_TEST(read_only)
{
	int status = exit_of(on_a_read_only_folder);

	if (status == 77)
		printf("# cannot mount\n");
	else
		ck_assert_int_eq(status, 0);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("listener_check");
	TCase *tc = tcase_create("listener_check");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, nothing_is_in_the_way);
	tcase_add_test(tc, folders);
	tcase_add_test(tc, files);
	tcase_add_test(tc, what_a_killed_agent_leaves);
	tcase_add_test(tc, read_only);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
