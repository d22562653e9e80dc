/*
 * Plays scripts against a real tenant in a world without sockets, DNS and
 * clock, and prints TAP: one test per script. Each is played twice, since a
 * system may report sockets before timers or after them: both must do.
 *
 *   world [-x] FILE...      -x: every script has to fail, both times
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/world/script.h"

static const char *
base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

/* One run. Returns whether the script did what was wanted of it. */
static bool
play(struct scene *s, const char *path, bool timers_first, bool must_fail)
{
	FILE *f = fopen(path, "r");

	if (f == NULL) {
		printf("# %s: cannot be read\n", path);
		return false;
	}
	script_play(s, f, timers_first);
	fclose(f);
	if (words_failed(&s->w))
		printf("# %s:%d: %s (%s first)\n", path, s->w.line, s->w.fault,
		    timers_first ? "timers" : "sockets");
	else if (must_fail)
		printf("# %s: passes, though it must fail\n", path);
	return words_failed(&s->w) == must_fail;
}

int
main(int argc, char **argv)
{
	struct scene *s = malloc(sizeof(*s));
	bool must_fail = argc > 1 && strcmp(argv[1], "-x") == 0;
	int first = must_fail ? 2 : 1, failed = 0;
	bool ok;

	if (s == NULL || first >= argc) {
		printf("Bail out! no memory or no scripts\n");
		return EXIT_FAILURE;
	}
	printf("1..%d\n", argc - first);
	for (int i = first; i < argc; i++) {
		ok = play(s, argv[i], false, must_fail);
		ok = play(s, argv[i], true, must_fail) && ok;
		printf("%sok %d - %s\n", ok ? "" : "not ", i - first + 1,
		    base_name(argv[i]));
		failed += !ok;
	}
	free(s);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
