/*
 * Asks rl-agent about many units of work at once, with poll(2).
 *
 *     example_poll RULE KEY...
 *
 * Submits a check of the rule for each key, and prints each decision as it
 * comes. An interrupt (SIGINT) cancels what is still open. Exits with 0 when
 * all of the work may go on, else with 1.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "rlshim.h"

struct job {
	const char *key;
	uint64_t ticket;
};

/* Fails only where nothing was begun: then there is no decision to come. */
static int
job_begin(struct rl_client *client, const char *rule, struct job *job)
{
	struct rl_check check = {.rule = rule};

	check.key = job->key;
	check.key_len = strlen(job->key);
	if (rl_submit(client, &check, NULL, job, &job->ticket) == RL_OK)
		return 1;
	printf("%s: %s\n", job->key, rl_last_text(client));
	return 0;
}

/* Prints the decision; may the work go on? */
static int
job_end(const struct job *job, const struct rl_decision *d)
{
	printf("%s: %s, permit %d by %s, reason %s%s%s\n", job->key,
	    rl_outcome_name(d->outcome), d->permit, rl_source_name(d->source),
	    rl_reason_name(d->reason), d->text[0] != '\0' ? ": " : "", d->text);
	fflush(stdout);
	return d->permit;
}

/* What is decided already is not in flight any more, and refused. */
static void
cancel_all(struct rl_client *client, const struct job *jobs, int count, int fd)
{
	struct signalfd_siginfo info;
	int i;

	if (read(fd, &info, sizeof(info)) != sizeof(info))
		return;
	for (i = 0; i < count; i++)
		rl_cancel(client, jobs[i].ticket);
}

/* Until all of them are decided; how many may go on. */
static int
run(struct rl_client *client, struct job *jobs, int count, int open, int sigint)
{
	struct pollfd fds[] = {{rl_fd(client), POLLIN, 0}, {sigint, POLLIN, 0}};
	struct rl_completion done;
	int permitted = 0;

	while (open > 0) {
		if (poll(fds, 2, -1) < 0)
			break;
		if (fds[1].revents != 0)
			cancel_all(client, jobs, count, sigint);
		while (rl_collect(client, &done)) {
			permitted += job_end(done.user, &done.decision);
			open--;
		}
	}
	return permitted;
}

int
main(int argc, char **argv)
{
	struct rl_options options = {
	    .name = "example_poll", .timeout_ms = 10000, .max_inflight = 65536};
	struct rl_client *client;
	struct job *jobs;
	int i, sigint, count = argc - 2, open = 0, permitted;
	sigset_t signals;

	if (count < 1) {
		fprintf(stderr, "usage: example_poll RULE KEY...\n");
		return 64;
	}
	jobs = calloc((size_t)count, sizeof(*jobs));
	if (jobs == NULL || rl_open(&client, &options) != RL_OK ||
	    rl_fd(client) < 0) {
		fprintf(stderr, "example_poll: cannot begin\n");
		return 1;
	}
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	sigint = signalfd(-1, &signals, SFD_CLOEXEC);
	for (i = 0; i < count; i++) {
		jobs[i].key = argv[2 + i];
		open += job_begin(client, argv[1], &jobs[i]);
	}
	permitted = run(client, jobs, count, open, sigint);
	close(sigint);
	rl_close(client);
	free(jobs);
	return permitted == count ? 0 : 1;
}
