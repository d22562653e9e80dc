/*
 * daemon/io/watch on real files: every way in which a configuration is
 * changed, what must not be reported, and how often.
 */
#include "daemon/io/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/harness.h"

#define SEC       INT64_C(1000000)
#define PATHS_MAX 8

static struct loop *loop;
static struct watch *watch;
static char top[64];
static unsigned int reports;
static int64_t reported_at;
static char path_bytes[PATHS_MAX][PATH_MAX];
static const char *paths[PATHS_MAX];
static size_t path_count;

/* As an agent does it: where the links lead now. */
static void
on_change(void *arg)
{
	ck_assert_ptr_eq(arg, &reports);
	reports++;
	reported_at = loop_now();
	ck_assert(watch_files(watch, paths, path_count));
}

/* The path of something in the test's folder, until eight calls later. */
__attribute__((format(printf, 1, 2))) static const char *
in(const char *fmt, ...)
{
	static char ring[8][PATH_MAX];
	static unsigned int next;
	char *out = ring[next++ % 8];
	int n = snprintf(out, PATH_MAX, "%s/", top);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(out + n, PATH_MAX - (size_t)n, fmt, ap);
	va_end(ap);
	return out;
}

static void
add_path(const char *path)
{
	snprintf(path_bytes[path_count], PATH_MAX, "%s", path);
	paths[path_count] = path_bytes[path_count];
	path_count++;
}

static void
watch_one(const char *path)
{
	path_count = 0;
	add_path(path);
	ck_assert_msg(
	    watch_files(watch, paths, path_count), "%s", strerror(errno));
}

static void
setup(void)
{
	const char *tmp = getenv("TMPDIR");

	if (tmp == NULL || strlen(tmp) > 30)
		tmp = "/tmp";
	snprintf(top, sizeof(top), "%s/watch-XXXXXX", tmp);
	ck_assert_ptr_nonnull(mkdtemp(top));
	reports = 0;
	path_count = 0;
	loop = loop_new();
	ck_assert_ptr_nonnull(loop);
	watch = watch_new(loop, on_change, &reports);
	ck_assert_ptr_nonnull(watch);
}

static void
teardown(void)
{
	char command[128];

	watch_free(watch);
	loop_free(loop);
	snprintf(command, sizeof(command), "rm -rf '%s'", top);
	ck_assert_int_eq(system(command), 0);
}

/* What people do to files */

static void
rewrite(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	ck_assert_msg(fd >= 0, "%s: %s", path, strerror(errno));
	ck_assert_int_eq(write(fd, "{}", 2), 2);
	close(fd);
}

static void
make_dir(const char *path)
{
	ck_assert_msg(mkdir(path, 0755) == 0, "%s: %s", path, strerror(errno));
}

static void
make_link(const char *target, const char *path)
{
	ck_assert_int_eq(symlink(target, path), 0);
}

static void
move(const char *from, const char *to)
{
	ck_assert_msg(
	    rename(from, to) == 0, "%s -> %s: %s", from, to, strerror(errno));
}

/* In one step, as careful people do it. */
static void
swap_link(const char *target, const char *path)
{
	make_link(target, in("swap.tmp"));
	move(in("swap.tmp"), path);
}

static void
turn(void)
{
	loop_turn(loop);
	poll(NULL, 0, 1);
}

static void
must_report(void)
{
	unsigned int before = reports;
	int64_t limit = loop_now() + 20 * SEC;

	while (reports == before) {
		ck_assert_msg(loop_now() < limit, "never reported");
		turn();
	}
}

/* For as long as a report would take twice. */
static void
must_not_report(void)
{
	unsigned int before = reports;
	int64_t until = loop_now() + 4 * WATCH_QUIET_US;

	while (loop_now() < until) {
		turn();
		ck_assert_uint_eq(reports, before);
	}
}

/* Ways to change a file */

START_TEST(a_file_is_written_in_place)
{
	int fd;

	rewrite(in("f"));
	watch_one(in("f"));
	must_not_report();
	fd = open(in("f"), O_WRONLY | O_TRUNC | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, "{", 1), 1);
	must_not_report(); /* half a file is of no use */
	ck_assert_int_eq(write(fd, "}", 1), 1);
	close(fd);
	must_report();
	must_not_report();
	rewrite(in("f"));
	must_report();
}
END_TEST

START_TEST(a_file_is_replaced)
{
	rewrite(in("f"));
	watch_one(in("f"));
	for (int i = 0; i < 2; i++) {
		rewrite(in("f.tmp"));
		move(in("f.tmp"), in("f"));
		must_report();
	}
	/* As an editor with a backup. */
	move(in("f"), in("f~"));
	rewrite(in("f"));
	must_report();
	ck_assert_int_eq(unlink(in("f")), 0);
	must_report();
	rewrite(in("f"));
	must_report();
}
END_TEST

START_TEST(a_file_may_be_read_at_last)
{
	rewrite(in("f"));
	watch_one(in("f"));
	ck_assert_int_eq(chmod(in("f"), 0600), 0);
	must_report();
}
END_TEST

/* As where a single file is mounted: it changes, its folder says nothing. */
START_TEST(a_file_is_written_under_another_name)
{
	make_dir(in("a"));
	make_dir(in("b"));
	rewrite(in("a/f"));
	ck_assert_int_eq(link(in("a/f"), in("b/g")), 0);
	watch_one(in("a/f"));
	rewrite(in("b/g"));
	must_report();
}
END_TEST

/* Kubernetes: f -> ..data/f, ..data -> ..1, which is renamed over. */
START_TEST(a_config_map_is_swapped)
{
	make_dir(in("..1"));
	rewrite(in("..1/f"));
	make_link("..1", in("..data"));
	make_link("..data/f", in("f"));
	watch_one(in("f"));
	must_not_report();
	for (int i = 2; i < 5; i++) {
		char name[16];

		snprintf(name, sizeof(name), "..%d", i);
		make_dir(in("%s", name));
		rewrite(in("%s/f", name));
		make_link(name, in("..data_tmp"));
		move(in("..data_tmp"), in("..data"));
		ck_assert_int_eq(unlink(in("..%d/f", i - 1)), 0);
		ck_assert_int_eq(rmdir(in("..%d", i - 1)), 0);
		must_report();
	}
	must_not_report();
	rewrite(in("..4/f")); /* it knows where the link leads now */
	must_report();
}
END_TEST

START_TEST(the_folder_is_a_link_that_is_swapped)
{
	make_dir(in("v1"));
	make_dir(in("v2"));
	rewrite(in("v1/f"));
	rewrite(in("v2/f"));
	make_link("v1", in("current"));
	make_link(in("current"), in("conf"));
	watch_one(in("conf/f"));
	swap_link("v2", in("current"));
	must_report();
	rewrite(in("v1/f")); /* nobody's now */
	must_not_report();
	rewrite(in("v2/f"));
	must_report();
	ck_assert_int_eq(unlink(in("conf")), 0);
	must_report();
	make_link("v1", in("conf"));
	must_report();
	rewrite(in("v1/f"));
	must_report();
}
END_TEST

START_TEST(the_folder_is_made_again)
{
	make_dir(in("conf"));
	rewrite(in("conf/f"));
	watch_one(in("conf/f"));
	ck_assert_int_eq(unlink(in("conf/f")), 0);
	ck_assert_int_eq(rmdir(in("conf")), 0);
	must_report();
	make_dir(in("conf"));
	must_report();
	rewrite(in("conf/f"));
	must_report();
	rewrite(in("conf/f"));
	must_report();
	/* Gone and there again between two looks. */
	ck_assert_int_eq(unlink(in("conf/f")), 0);
	ck_assert_int_eq(rmdir(in("conf")), 0);
	make_dir(in("conf"));
	rewrite(in("conf/f"));
	must_report();
	rewrite(in("conf/f"));
	must_report();
}
END_TEST

START_TEST(a_parent_is_replaced)
{
	make_dir(in("a"));
	make_dir(in("a/b"));
	make_dir(in("a/b/c"));
	rewrite(in("a/b/c/f"));
	make_dir(in("new"));
	make_dir(in("new/b"));
	make_dir(in("new/b/c"));
	rewrite(in("new/b/c/f"));
	watch_one(in("a/b/c/f"));
	move(in("a"), in("old"));
	move(in("new"), in("a"));
	must_report();
	rewrite(in("old/b/c/f"));
	must_not_report();
	rewrite(in("a/b/c/f"));
	must_report();
	move(in("a/b"), in("a/x")); /* and back: nobody can tell */
	move(in("a/x"), in("a/b"));
	must_report();
}
END_TEST

START_TEST(what_is_missing_is_waited_for)
{
	watch_one(in("a/b/f"));
	must_not_report();
	make_dir(in("a"));
	must_report();
	make_link("elsewhere", in("a/b"));
	must_report();
	make_dir(in("a/elsewhere"));
	must_report();
	rewrite(in("a/elsewhere/f"));
	must_report();
	/* All at once: whoever waits for the first must find the rest. */
	watch_one(in("x/y/f"));
	make_dir(in("x"));
	make_dir(in("x/y"));
	rewrite(in("x/y/f"));
	must_report();
	rewrite(in("x/y/f"));
	must_report();
	/* A file where a folder ought to be. */
	rewrite(in("no"));
	watch_one(in("no/f"));
	ck_assert_int_eq(unlink(in("no")), 0);
	must_report();
}
END_TEST

START_TEST(links_that_lead_nowhere)
{
	char name[16] = "f";

	for (int i = 0; i < 45; i++) {
		make_link(name, in("l%d", i));
		snprintf(name, sizeof(name), "l%d", i);
	}
	ck_assert_int_eq(open(in("l44"), O_RDONLY | O_CLOEXEC), -1);
	make_link("loop", in("loop"));
	watch_one(in("loop"));
	swap_link("f", in("loop"));
	must_report();
	rewrite(in("f"));
	must_report();
	/* More of them than the kernel follows: nobody can open it. */
	watch_one(in("l44"));
	rewrite(in("f"));
	must_not_report();
	swap_link("f", in("l20"));
	must_report();
	rewrite(in("f"));
	must_report();
}
END_TEST

START_TEST(paths_in_any_form)
{
	char before[PATH_MAX];

	ck_assert_ptr_nonnull(getcwd(before, sizeof(before)));
	make_dir(in("a"));
	make_dir(in("b"));
	rewrite(in("b/f"));
	make_link("../b/./f", in("a/f"));
	ck_assert_int_eq(chdir(in("a")), 0);
	watch_one("..//a/.././a/f");
	rewrite(in("b/f"));
	must_report();
	watch_one("f");
	rewrite(in("b/f"));
	must_report();
	watch_one("/../../..");
	ck_assert_int_eq(chdir(before), 0);
}
END_TEST

/* What must not be reported */

START_TEST(others_do_not_matter)
{
	make_dir(in("conf"));
	make_dir(in("data"));
	rewrite(in("data/f"));
	make_link("../data/f", in("conf/f"));
	watch_one(in("conf/f"));
	for (int i = 0; i < 100; i++) {
		rewrite(in("conf/f.tmp"));
		rewrite(in("data/f2"));
		rewrite(in("data/F"));
		rewrite(in("other"));
		move(in("other"), in("another"));
		ck_assert_int_eq(unlink(in("conf/f.tmp")), 0);
		ck_assert_int_eq(chmod(in("another"), 0600), 0);
		close(open(in("data/f"), O_RDONLY | O_CLOEXEC));
	}
	must_not_report();
	rewrite(in("data/f"));
	must_report();
}
END_TEST

START_TEST(two_files_of_one_folder)
{
	rewrite(in("f"));
	rewrite(in("g"));
	add_path(in("f"));
	add_path(in("g"));
	add_path(in("g"));
	ck_assert(watch_files(watch, paths, path_count));
	rewrite(in("f"));
	must_report();
	rewrite(in("g"));
	must_report();
	/* The folder's watch was shared, and stays for the other one. */
	watch_one(in("g"));
	rewrite(in("f"));
	must_not_report();
	rewrite(in("g"));
	must_report();
	ck_assert(watch_files(watch, NULL, 0));
	rewrite(in("g"));
	must_not_report();
}
END_TEST

/* Of what is in both sets, what happened before the change is not lost. */
START_TEST(a_change_of_the_set_loses_nothing)
{
	make_dir(in("a"));
	rewrite(in("a/f"));
	rewrite(in("g"));
	watch_one(in("a/f"));
	rewrite(in("a/f"));
	add_path(in("g"));
	ck_assert(watch_files(watch, paths, path_count));
	must_report();
	/* Nor while a report is due. */
	rewrite(in("g"));
	turn();
	ck_assert(watch_files(watch, paths, path_count));
	must_report();
	must_not_report();
}
END_TEST

/* How often */

static int
inotify_of_watch(void)
{
	char name[32], what[64];

	for (int fd = 3; fd < 256; fd++) {
		ssize_t n;

		snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
		n = readlink(name, what, sizeof(what) - 1);
		what[n > 0 ? n : 0] = '\0';
		if (strcmp(what, "anon_inode:inotify") == 0)
			return fd;
	}
	ck_abort_msg("no inotify");
}

START_TEST(a_burst_is_one_report)
{
	int64_t last;

	rewrite(in("f"));
	watch_one(in("f"));
	rewrite(in("f"));
	turn(); /* the first is seen, then many more happen */
	for (int i = 0; i < 500; i++) {
		rewrite(in("f.tmp"));
		move(in("f.tmp"), in("f"));
	}
	last = loop_now();
	must_report();
	ck_assert_int_ge(reported_at - last, WATCH_QUIET_US);
	must_not_report();
}
END_TEST

static void
storm(const char *path, int64_t us)
{
	int fd = inotify_of_watch(), before, after;
	unsigned int looks = 0;
	int64_t start = loop_now(), last = start;
	unsigned int seen = reports;

	while (loop_now() < start + us) {
		rewrite(path);
		ck_assert_int_eq(ioctl(fd, FIONREAD, &before), 0);
		turn();
		ck_assert_int_eq(ioctl(fd, FIONREAD, &after), 0);
		looks += after < before;
		if (reports == seen)
			continue;
		ck_assert_int_ge(reported_at - last, WATCH_MOST_US);
		last = reported_at;
		seen = reports;
	}
	ck_assert_int_gt(looks, 0);
	ck_assert_int_le(
	    looks, 2 * ((loop_now() - start) / WATCH_QUIET_US + 2));
}

/* Reported, but not each, and looked at a few times a second. */
START_TEST(a_storm_is_reported_now_and_then)
{
	rewrite(in("f"));
	watch_one(in("f"));
	storm(in("f"), 9 * SEC / 2);
	ck_assert_uint_ge(reports, 1);
	must_report(); /* the end of it */
	must_not_report();
}
END_TEST

START_TEST(a_storm_of_others_costs_nothing)
{
	rewrite(in("f"));
	watch_one(in("f"));
	storm(in("other"), 2 * SEC);
	ck_assert_uint_eq(reports, 0);
	rewrite(in("f"));
	must_report();
}
END_TEST

/* What the kernel could not keep may have been ours. */
START_TEST(a_full_queue_is_a_change)
{
	FILE *f = fopen("/proc/sys/fs/inotify/max_queued_events", "re");
	int most = 0;

	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fscanf(f, "%d", &most), 1);
	fclose(f);
	if (most > 200000) {
		printf("# the queue is too long to fill\n");
		return;
	}
	watch_one(in("f"));
	for (int i = 0; i <= most / 2; i++) {
		ck_assert_int_eq(symlink("x", in("other")), 0);
		ck_assert_int_eq(unlink(in("other")), 0);
	}
	must_report();
	must_not_report();
}
END_TEST

/* Failures */

START_TEST(without_descriptors)
{
	struct rlimit old, low;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
	low = old;
	low.rlim_cur = 3;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
	errno = 0;
	ck_assert_ptr_null(watch_new(loop, on_change, &reports));
	ck_assert_int_eq(errno, EMFILE);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
	watch_free(NULL);
}
END_TEST

START_TEST(too_long_a_path)
{
	static char path[2 * PATH_MAX];
	const char *two[2] = {path, in("f")};

	memset(path, 'x', sizeof(path) - 1);
	path[0] = '/';
	ck_assert(!watch_files(watch, two, 2));
	ck_assert_int_eq(errno, ENAMETOOLONG);
	path[NAME_MAX + 2] = '\0'; /* a name that is too long */
	ck_assert(!watch_files(watch, two, 2));
	ck_assert_int_eq(errno, ENAMETOOLONG);
	rewrite(in("f")); /* the other one is watched */
	must_report();
}
END_TEST

/* However many paths there are, and wherever they lead. */
START_TEST(the_number_of_steps_is_bounded)
{
	enum { COUNT = 5000 };
	static char names[COUNT][96];
	static const char *many[COUNT];

	for (int i = 0; i < COUNT; i++) {
		snprintf(names[i], sizeof(names[i]), "%s/%d", top, i);
		many[i] = names[i];
	}
	ck_assert(watch_files(watch, many, 1000));
	ck_assert(!watch_files(watch, many, COUNT));
	ck_assert_int_eq(errno, ENOSPC);
	rewrite(names[0]);
	must_report();
}
END_TEST

/* In a child, as nobody: a folder may be passed that may not be read. */
static int
unreadable_folders(void)
{
	make_dir(in("pass"));
	make_dir(in("pass/conf"));
	make_dir(in("shut"));
	rewrite(in("pass/conf/f"));
	rewrite(in("shut/f"));
	ck_assert_int_eq(chmod(in("pass"), 0311), 0);
	ck_assert_int_eq(chmod(in("shut"), 0311), 0);
	if (geteuid() == 0 &&
	    (chmod(top, 0755) != 0 || chown(in("pass/conf"), 65534, 0) != 0 ||
		chown(in("pass/conf/f"), 65534, 0) != 0 || setgid(65534) != 0 ||
		setuid(65534) != 0))
		return 77;
	loop = loop_new();
	watch = watch_new(loop, on_change, &reports);
	watch_one(in("pass/conf/f"));
	rewrite(in("pass/conf/f"));
	must_report();
	path_count = 0;
	add_path(in("shut/f"));
	if (watch_files(watch, paths, 1) || errno != EACCES)
		return 1;
	return 0;
}

START_TEST(a_folder_that_cannot_be_read)
{
	pid_t child = fork();
	int status;

	if (child == 0)
		_exit(unreadable_folders());
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		printf("# cannot change to another user\n");
	else
		ck_assert_int_eq(WEXITSTATUS(status), 0);
	ck_assert_int_eq(chmod(in("pass"), 0755), 0);
	ck_assert_int_eq(chmod(in("shut"), 0755), 0);
}
END_TEST

START_TEST(freed_while_a_report_is_due)
{
	rewrite(in("f"));
	watch_one(in("f"));
	rewrite(in("f"));
	turn();
	watch_free(watch);
	watch = NULL;
	must_not_report();
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("watch");
	TCase *tc = tcase_create("watch");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, a_file_is_written_in_place);
	tcase_add_test(tc, a_file_is_replaced);
	tcase_add_test(tc, a_file_may_be_read_at_last);
	tcase_add_test(tc, a_file_is_written_under_another_name);
	tcase_add_test(tc, a_config_map_is_swapped);
	tcase_add_test(tc, the_folder_is_a_link_that_is_swapped);
	tcase_add_test(tc, the_folder_is_made_again);
	tcase_add_test(tc, a_parent_is_replaced);
	tcase_add_test(tc, what_is_missing_is_waited_for);
	tcase_add_test(tc, links_that_lead_nowhere);
	tcase_add_test(tc, paths_in_any_form);
	tcase_add_test(tc, others_do_not_matter);
	tcase_add_test(tc, two_files_of_one_folder);
	tcase_add_test(tc, a_change_of_the_set_loses_nothing);
	tcase_add_test(tc, a_burst_is_one_report);
	tcase_add_test(tc, a_storm_is_reported_now_and_then);
	tcase_add_test(tc, a_storm_of_others_costs_nothing);
	tcase_add_test(tc, a_full_queue_is_a_change);
	tcase_add_test(tc, without_descriptors);
	tcase_add_test(tc, too_long_a_path);
	tcase_add_test(tc, the_number_of_steps_is_bounded);
	tcase_add_test(tc, a_folder_that_cannot_be_read);
	tcase_add_test(tc, freed_while_a_report_is_due);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
