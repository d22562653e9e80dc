/*
 * Load for the system tests: threads that check on librlshim, one after the
 * other, each with a client of its own, until standard input ends. No two
 * checks have the same key, and each is one line of standard output, in one
 * write(), when it is decided:
 *
 *   KEY RULE OUTCOME PERMIT SOURCE REASON SERVER BEGAN_US ELAPSED_US
 *
 * BEGAN_US is of CLOCK_MONOTONIC. A key is NAME-THREAD-NUMBER; the rules take
 * turns. A line is written for every check that was begun: the exit is 0.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client-shim/rlshim.h"

#define LINE_LEN 512

struct hammer {
	const char *socket;
	const char *name;
	uint32_t timeout_ms;
	char **rules;
	unsigned rule_count;
	atomic_bool over;
};

struct worker {
	struct hammer *hammer;
	unsigned number;
	pthread_t thread;
};

static void
die(const char *what, int status)
{
	fprintf(stderr, "hammer: %s: %s\n", what, rl_strerror(status));
	exit(1);
}

static int64_t
now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static void
print(const char *key, const char *rule, const struct rl_decision *d,
    int64_t began)
{
	char line[LINE_LEN];
	int n = snprintf(line, sizeof(line),
	    "%s %s %s %d %s %s %" PRIu64 " %" PRId64 " %" PRIu64 "\n", key,
	    rule, rl_outcome_name(d->outcome), d->permit,
	    rl_source_name(d->source), rl_reason_name(d->reason), d->server_id,
	    began, d->elapsed_us);

	if (n < 0 || n >= (int)sizeof(line) || write(1, line, (size_t)n) != n)
		die("write", RL_EINVAL);
}

static void *
work(void *arg)
{
	const struct worker *w = arg;
	struct hammer *h = w->hammer;
	const struct rl_options options = {.socket = h->socket,
	    .name = h->name,
	    .timeout_ms = h->timeout_ms,
	    .on_failure = RL_CLOSED};
	struct rl_check check = {0};
	struct rl_client *client;
	struct rl_decision d;
	char key[64];
	int64_t began;
	int status = rl_open(&client, &options);

	if (status != RL_OK)
		die("rl_open", status);
	for (unsigned n = 0; !atomic_load(&h->over); n++) {
		snprintf(key, sizeof(key), "%s-%u-%u", h->name, w->number, n);
		check.rule = h->rules[n % h->rule_count];
		check.key = key;
		check.key_len = strlen(key);
		began = now_us();
		status = rl_check(client, &check, &d, NULL);
		if (status != RL_OK)
			die("rl_check", status);
		print(key, check.rule, &d, began);
	}
	rl_close(client);
	return NULL;
}

static void
wait_for_end_of_input(void)
{
	char byte;

	while (read(0, &byte, 1) > 0)
		continue;
}

int
main(int argc, char **argv)
{
	struct hammer hammer = {0};
	struct worker *workers;
	unsigned i, count;

	if (argc < 6) {
		fprintf(stderr,
		    "usage: hammer SOCKET NAME THREADS TIMEOUT_MS RULE...\n");
		return 64;
	}
	hammer.socket = argv[1];
	hammer.name = argv[2];
	count = (unsigned)strtoul(argv[3], NULL, 10);
	hammer.timeout_ms = (uint32_t)strtoul(argv[4], NULL, 10);
	hammer.rules = argv + 5;
	hammer.rule_count = (unsigned)argc - 5;
	workers = calloc(count, sizeof(*workers));
	if (workers == NULL)
		die("start", RL_ENOMEM);
	for (i = 0; i < count; i++) {
		workers[i].hammer = &hammer;
		workers[i].number = i;
		if (pthread_create(
			&workers[i].thread, NULL, work, &workers[i]) != 0)
			die("pthread_create", RL_ENOMEM);
	}
	wait_for_end_of_input();
	atomic_store(&hammer.over, true);
	for (i = 0; i < count; i++)
		pthread_join(workers[i].thread, NULL);
	free(workers);
	return 0;
}
