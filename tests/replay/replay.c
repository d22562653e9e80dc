/*
 * Plays scripts of a rate request's life against the pure core, in virtual
 * time, and prints TAP: one test per script.
 *
 *   replay [-x] FILE|FOLDER...
 *
 * With -x every script has to fail, and its first line, "# fault: TEXT", says
 * how: TEXT is in what is reported.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/replay/script.h"

static const char *
base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

/* The fault that the first line announces; empty when it does not. */
static void
read_announced(FILE *f, char *buf, size_t size)
{
	static const char intro[] = "# fault: ";

	if (fgets(buf, (int)size, f) == NULL ||
	    strncmp(buf, intro, strlen(intro)) != 0)
		buf[0] = '\0';
	else
		memmove(
		    buf, buf + strlen(intro), strlen(buf + strlen(intro)) + 1);
	buf[strcspn(buf, "\n")] = '\0';
	rewind(f);
}

/* One TAP line. Returns whether the script did what was wanted of it. */
static bool
test(const char *path, int n, bool must_fail)
{
	static struct script s;
	FILE *f = fopen(path, "r");
	char want[SCRIPT_LINE_LEN];
	bool ok;

	if (f == NULL) {
		printf("not ok %d - %s\n# %s: cannot be read\n", n,
		    base_name(path), path);
		return false;
	}
	read_announced(f, want, sizeof(want));
	script_play(&s, f);
	fclose(f);
	ok = must_fail ? want[0] != '\0' && strstr(s.fault, want) != NULL
		       : s.fault[0] == '\0';
	printf("%sok %d - %s\n", ok ? "" : "not ", n, base_name(path));
	if (s.fault[0] != '\0')
		printf("# %s:%d: %s\n", path, s.line, s.fault);
	else if (must_fail)
		printf("# %s: passes, though it must fail\n", path);
	if (must_fail && !ok)
		printf("# %s: must fail with \"%s\"\n", path, want);
	return ok;
}

struct paths {
	char **list;
	size_t count;
};

static void
add_path(struct paths *paths, const char *folder, const char *name)
{
	char *path = NULL;

	paths->list =
	    realloc(paths->list, (paths->count + 1) * sizeof(*paths->list));
	if (paths->list == NULL ||
	    asprintf(&path, "%s%s%s", folder, folder[0] != '\0' ? "/" : "",
		name) < 0) {
		printf("Bail out! out of memory\n");
		exit(EXIT_FAILURE);
	}
	paths->list[paths->count++] = path;
}

static int
is_script(const struct dirent *d)
{
	const char *dot = strrchr(d->d_name, '.');

	return dot != NULL && strcmp(dot, ".rpl") == 0;
}

static void
add_argument(struct paths *paths, const char *arg)
{
	struct dirent **found = NULL;
	struct stat st;
	int n;

	if (stat(arg, &st) != 0 || !S_ISDIR(st.st_mode)) {
		add_path(paths, "", arg);
		return;
	}
	n = scandir(arg, &found, is_script, alphasort);
	for (int i = 0; i < n; i++) {
		add_path(paths, arg, found[i]->d_name);
		free(found[i]);
	}
	free(found);
}

int
main(int argc, char **argv)
{
	struct paths paths = {0};
	bool must_fail = argc > 1 && strcmp(argv[1], "-x") == 0;
	size_t failed = 0;

	for (int i = must_fail ? 2 : 1; i < argc; i++)
		add_argument(&paths, argv[i]);
	if (paths.count == 0) {
		printf("Bail out! no scripts\n");
		return EXIT_FAILURE;
	}
	printf("1..%zu\n", paths.count);
	for (size_t i = 0; i < paths.count; i++) {
		failed += !test(paths.list[i], (int)i + 1, must_fail);
		free(paths.list[i]);
	}
	free(paths.list);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
