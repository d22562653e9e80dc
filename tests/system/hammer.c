/*
 * Load for the system tests: threads that check on librlshim, one after the
 * other, each with a client of its own, until standard input ends. No two
 * checks have the same key, and each is one line of standard output, in one
 * write(), when it is decided:
 *
 *   KEY RULE OUTCOME PERMIT SOURCE REASON SERVER BEGAN_US ELAPSED_US
 *
 * With -a each thread has several in flight, by the asynchronous calls.
 * BEGAN_US is of CLOCK_MONOTONIC. A key is NAME-THREAD-NUMBER; the rules take
 * turns. A line is written for every check that was begun: the exit is 0.
 */
#include <inttypes.h>
#include <poll.h>
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
#define KEY_LEN  64
#define ASYNC    4

/* A check in flight. */
struct job {
	char key[KEY_LEN];
	const char *rule;
	int64_t began;
};

struct hammer {
	void *(*work)(void *arg);
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

static struct rl_client *
open_client(const struct hammer *h)
{
	const struct rl_options options = {.socket = h->socket,
	    .name = h->name,
	    .timeout_ms = h->timeout_ms,
	    .on_failure = RL_CLOSED};
	struct rl_client *client;
	int status = rl_open(&client, &options);

	if (status != RL_OK)
		die("rl_open", status);
	return client;
}

/* The check with that number, which the job keeps. */
static struct rl_check
prepare(struct job *job, const struct worker *w, unsigned n)
{
	const struct hammer *h = w->hammer;

	snprintf(job->key, sizeof(job->key), "%s-%u-%u", h->name, w->number, n);
	job->rule = h->rules[n % h->rule_count];
	job->began = now_us();
	return (struct rl_check){
	    .rule = job->rule, .key = job->key, .key_len = strlen(job->key)};
}

static void *
work(void *arg)
{
	const struct worker *w = arg;
	struct rl_client *client = open_client(w->hammer);
	struct rl_check check;
	struct rl_decision d;
	struct job job;
	int status;

	for (unsigned n = 0; !atomic_load(&w->hammer->over); n++) {
		check = prepare(&job, w, n);
		status = rl_check(client, &check, &d, NULL);
		if (status != RL_OK)
			die("rl_check", status);
		print(job.key, job.rule, &d, job.began);
	}
	rl_close(client);
	return NULL;
}

static void
submit(struct rl_client *client, struct job *job, const struct worker *w,
    unsigned n)
{
	struct rl_check check = prepare(job, w, n);
	uint64_t ticket;
	int status = rl_submit(client, &check, NULL, job, &ticket);

	if (status != RL_OK)
		die("rl_submit", status);
}

static void *
work_async(void *arg)
{
	const struct worker *w = arg;
	struct rl_client *client = open_client(w->hammer);
	struct pollfd fd = {.fd = rl_fd(client), .events = POLLIN};
	struct job jobs[ASYNC], *job;
	struct rl_completion done;
	unsigned n = 0, open = 0;

	for (; n < ASYNC; n++, open++)
		submit(client, &jobs[n], w, n);
	while (open > 0) {
		poll(&fd, 1, -1);
		while (rl_collect(client, &done)) {
			job = done.user;
			print(job->key, job->rule, &done.decision, job->began);
			if (atomic_load(&w->hammer->over))
				open--;
			else
				submit(client, job, w, n++);
		}
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
	struct hammer hammer = {.work = work};
	struct worker *workers;
	unsigned i, count;

	if (argc > 1 && strcmp(argv[1], "-a") == 0) {
		hammer.work = work_async;
		argc--;
		argv++;
	}
	if (argc < 6) {
		fprintf(stderr, "usage: hammer [-a] SOCKET NAME THREADS "
				"TIMEOUT_MS RULE...\n");
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
		if (pthread_create(&workers[i].thread, NULL, hammer.work,
			&workers[i]) != 0)
			die("pthread_create", RL_ENOMEM);
	}
	wait_for_end_of_input();
	atomic_store(&hammer.over, true);
	for (i = 0; i < count; i++)
		pthread_join(workers[i].thread, NULL);
	free(workers);
	return 0;
}
