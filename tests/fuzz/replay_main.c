/*
 * The main() of a fuzz target where libFuzzer does not bring its own: runs
 * every file of tests/fuzz/corpus/NAME of a program fuzz_NAME, and the empty
 * input, one TAP line each. With file names as arguments it runs just those.
 * A target that finds a fault ends the program.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int
replay_file(const char *path)
{
	uint8_t *data = NULL;
	long size = 0;
	FILE *f;
	int rc = -1;

	f = fopen(path, "rb");
	if (f == NULL)
		return -1;
	if (fseek(f, 0, SEEK_END) != 0 || (size = ftell(f)) < 0 ||
	    fseek(f, 0, SEEK_SET) != 0)
		goto out;
	/* Exactly as large as the input, so that ASan sees a byte too far. */
	data = malloc(size > 0 ? (size_t)size : 1);
	if (data == NULL || fread(data, 1, (size_t)size, f) != (size_t)size)
		goto out;
	LLVMFuzzerTestOneInput(data, (size_t)size);
	rc = 0;
out:
	free(data);
	fclose(f);
	return rc;
}

static int
visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* The corpus folder of this program's name. */
static int
corpus_path(char *out, size_t cap, const char *argv0)
{
	const char *top = getenv("srcdir");
	const char *base = strrchr(argv0, '/');
	int n;

	base = base != NULL ? base + 1 : argv0;
	if (strncmp(base, "fuzz_", 5) != 0)
		return -1;
	n = snprintf(out, cap, "%s/tests/fuzz/corpus/%s",
	    top != NULL ? top : ".", base + 5);
	return n > 0 && (size_t)n < cap ? 0 : -1;
}

static int
replay_corpus(const char *dir)
{
	struct dirent **list;
	char path[2 * PATH_MAX];
	int bad = 0, i, n;

	n = scandir(dir, &list, visible, alphasort);
	if (n <= 0) {
		printf("Bail out! %s: %s\n", dir,
		    n == 0 ? "an empty corpus" : strerror(errno));
		return -1;
	}
	printf("1..%d\n", n + 1);
	LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
	printf("ok 1 - the empty input\n");
	for (i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, list[i]->d_name);
		/* Before the run, so that a crash is seen to be this one's. */
		printf("# %s\n", list[i]->d_name);
		fflush(stdout);
		if (replay_file(path) != 0)
			bad = -1;
		printf("%s %d - %s\n", bad ? "not ok" : "ok", i + 2,
		    list[i]->d_name);
		free(list[i]);
	}
	free(list);
	return bad;
}

int
main(int argc, char **argv)
{
	char dir[PATH_MAX];
	int i;

	if (argc > 1) {
		for (i = 1; i < argc; i++) {
			if (replay_file(argv[i]) != 0) {
				fprintf(stderr, "%s: %s\n", argv[i],
				    strerror(errno));
				return 1;
			}
		}
		return 0;
	}
	if (corpus_path(dir, sizeof(dir), argv[0]) != 0) {
		printf("Bail out! not named fuzz_NAME: %s\n", argv[0]);
		return 1;
	}
	return replay_corpus(dir) == 0 ? 0 : 1;
}
