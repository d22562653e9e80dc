/*
 * daemon/io/watch in random trees of folders, files and links: whatever a
 * random step changes of what a path leads to, its watch reports. Many trees
 * at once, since each report takes its time.
 */
#include "daemon/io/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/harness.h"

#define SEC    INT64_C(1000000)
#define WORLDS 40
#define ROUNDS 12
#define STEPS  60 /* at most, of one world and round */

static const char *const names[] = {"a", "b", "c"};
static const char *const targets[] = {"a", "b", "c", "../a", "../b", "a/b",
    "../../b/c", ".", "b/../c", "/a", "/b/a", "/c/../a"};

/* What open() finds, by the kernel's own walk. */
struct found {
	int error;
	dev_t dev;
	ino_t ino;
	mode_t mode;
	off_t size; /* grows with each writing */
};

struct world {
	struct watch *watch;
	char top[64];
	char path[96];
	const char *paths[1];
	unsigned int reports;
	char log[4096]; /* the steps of this round */
};

static struct world worlds[WORLDS];
static struct loop *loop;
static uint64_t seed;

static void
on_change(void *arg)
{
	struct world *w = arg;

	w->reports++;
	ck_assert(watch_files(w->watch, w->paths, 1));
}

/* Below the top, one to three deep; what is missing makes the step fail. */
static void
any_path(const struct world *w, char out[PATH_MAX])
{
	uint64_t depth = 1 + harness_below(&seed, 3);
	int n = snprintf(out, PATH_MAX, "%s", w->top);

	while (depth-- > 0)
		n += snprintf(out + n, PATH_MAX - (size_t)n, "/%s",
		    names[harness_below(&seed, 3)]);
}

static void
write_more(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

	if (fd < 0)
		return;
	ck_assert_int_eq(write(fd, "x", 1), 1);
	close(fd);
}

static void
any_link(const struct world *w, const char *path)
{
	const char *to = targets[harness_below(&seed, 12)];
	char target[PATH_MAX];

	snprintf(
	    target, sizeof(target), "%s%s", to[0] == '/' ? w->top : "", to);
	if (symlink(target, path) != 0)
		return; /* no folder there, or something is */
}

static void
step(struct world *w)
{
	char path[PATH_MAX], other[PATH_MAX];
	uint64_t what = harness_below(&seed, 8);
	size_t len = strlen(w->log);

	any_path(w, path);
	any_path(w, other);
	snprintf(w->log + len, sizeof(w->log) - len, "%d %s %s\n", (int)what,
	    path + strlen(w->top), other + strlen(w->top));
	if (what == 0)
		(void)unlink(path);
	else if (what == 1)
		(void)rmdir(path);
	else if (what == 2)
		(void)rename(path, other);
	else if (what <= 4)
		(void)mkdir(path, 0755);
	else if (what == 5)
		any_link(w, path);
	else
		write_more(path);
}

static struct found
look_up(const struct world *w)
{
	int fd = open(w->path, O_RDONLY | O_CLOEXEC);
	struct found f = {.error = fd < 0 ? errno : 0};
	struct stat st;

	if (fd < 0)
		return f;
	ck_assert_int_eq(fstat(fd, &st), 0);
	f.dev = st.st_dev;
	f.ino = st.st_ino;
	f.mode = st.st_mode;
	f.size = S_ISREG(st.st_mode) ? st.st_size : 0;
	close(fd);
	return f;
}

static bool
differ(const struct found *a, const struct found *b)
{
	return a->error != b->error || a->dev != b->dev || a->ino != b->ino ||
	       a->mode != b->mode || a->size != b->size;
}

/* Steps until there is something to be seen, most often. */
static void
change(struct world *w, const struct found *was)
{
	struct found is;

	w->log[0] = '\0';
	for (int i = 0; i < STEPS; i++) {
		step(w);
		is = look_up(w);
		if (differ(was, &is))
			return;
	}
}

static void
open_worlds(void)
{
	const char *tmp = getenv("TMPDIR");

	if (tmp == NULL || strlen(tmp) > 30)
		tmp = "/tmp";
	seed = harness_seed();
	loop = loop_new();
	ck_assert_ptr_nonnull(loop);
	for (int i = 0; i < WORLDS; i++) {
		struct world *w = &worlds[i];
		char top[sizeof(w->top)];

		snprintf(top, sizeof(top), "%s/watch-XXXXXX", tmp);
		ck_assert_ptr_nonnull(mkdtemp(top));
		memcpy(w->top, top, sizeof(top));
		snprintf(w->path, sizeof(w->path), "%s/a/b%s", top,
		    i % 2 == 0 ? "" : "/c");
		w->paths[0] = w->path;
		w->watch = watch_new(loop, on_change, w);
		ck_assert_msg(w->watch != NULL, "%s", strerror(errno));
		for (int n = 0; n < 60; n++)
			step(w);
		ck_assert(watch_files(w->watch, w->paths, 1));
	}
}

static void
close_worlds(void)
{
	char command[128];

	for (int i = 0; i < WORLDS; i++) {
		watch_free(worlds[i].watch);
		snprintf(
		    command, sizeof(command), "rm -rf '%s'", worlds[i].top);
		ck_assert_int_eq(system(command), 0);
	}
	loop_free(loop);
}

static void
await(struct world *w)
{
	int64_t limit = loop_now() + 20 * SEC;

	while (w->reports == 0) {
		ck_assert_msg(loop_now() < limit, "never reported: %s\n%s",
		    w->path + strlen(w->top), w->log);
		loop_turn(loop);
		poll(NULL, 0, 1);
	}
}

/* What is still due belongs to this round. */
static void
settle(void)
{
	int64_t until = loop_now() + 5 * WATCH_QUIET_US / 2;

	while (loop_now() < until) {
		loop_turn(loop);
		poll(NULL, 0, 1);
	}
}

START_TEST(whatever_changes_is_reported)
{
	struct found was[WORLDS];
	unsigned int changes = 0;

	open_worlds();
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < WORLDS; i++) {
			was[i] = look_up(&worlds[i]);
			worlds[i].reports = 0;
			change(&worlds[i], &was[i]);
		}
		for (int i = 0; i < WORLDS; i++) {
			struct found is = look_up(&worlds[i]);

			if (!differ(&was[i], &is))
				continue;
			changes++;
			await(&worlds[i]);
		}
		settle();
	}
	printf("# %u changes\n", changes);
	ck_assert_uint_gt(changes, WORLDS * ROUNDS / 4);
	close_worlds();
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("watch_random");
	TCase *tc = tcase_create("watch_random");

	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, whatever_changes_is_reported);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
