/*
 * A program on librlshim for the system tests: what an application does, by
 * order of the test, with one JSON line for each answer on standard output.
 *
 *   shimclient calls SOCKET TIMEOUT_MS [open|closed]
 *       one client; a line of standard input is a call:
 *         check RULE [KEY]       adhoc BUCKET WINDOW LIMIT TOKENS
 *         report TRACKER MS [KEY]           ping       wait
 *         query WHAT             control WHAT          fork RULE [KEY]
 *         explain RULE [KEY]     work RULE [KEY]       admits and finishes
 *         interrupt RULE [KEY]   another thread interrupts the check
 *         acquire LIMITER [PERMITS [KEY [MAX_WAIT_US]]]
 *         begin CONTROL [KEY]    success CONTROL [KEY]
 *         rate LIMITER PERMITS_PER_SECOND
 *       a KEY of acquire that is - stands for none
 *   shimclient flood SOCKET RULE CLIENTS CHECKS
 *       so many clients at once, a thread each, so many checks each
 *   shimclient acquire SOCKET LIMITER TIMES [PERMITS [KEY [MAX_WAIT_US]]]
 *       acquires so many times, or, TIMES being 20s, for so long and the last
 *       one's wait; then one line, in which grants_us holds when each grant's
 *       wait was over, in microseconds of the monotonic clock
 */
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client-shim/rlshim.h"

#define WORDS_MAX 6

static void
die(const char *what, int status)
{
	fprintf(stderr, "shimclient: %s: %s\n", what, rl_strerror(status));
	exit(1);
}

static struct rl_client *
open_client(const char *path, uint32_t timeout_ms, enum rl_failure failure)
{
	const struct rl_options options = {
	    .socket = path,
	    .name = "shimclient",
	    .timeout_ms = timeout_ms,
	    .on_failure = failure,
	};
	struct rl_client *client;
	int status = rl_open(&client, &options);

	if (status != RL_OK)
		die("rl_open", status);
	return client;
}

static void
print_decision(int status, const struct rl_decision *d)
{
	printf("{\"status\": %d, \"outcome\": \"%s\", \"permit\": %s, "
	       "\"source\": \"%s\", \"reason\": \"%s\", \"limit\": \"%s\", "
	       "\"retry_after_ms\": %" PRIu32 ", \"server_id\": \"%" PRIu64
	       "\", \"round\": %" PRIu32 ", \"elapsed_us\": %" PRIu64
	       ", \"wait_us\": %" PRIu64 ", \"by_agent\": %s}\n",
	    status, rl_outcome_name(d->outcome), d->permit ? "true" : "false",
	    rl_source_name(d->source), rl_reason_name(d->reason), d->limit,
	    d->retry_after_ms, d->server_id, d->round, d->elapsed_us,
	    d->wait_us, d->by_agent ? "true" : "false");
	fflush(stdout);
}

static void
print_status(int status, const char *text)
{
	printf("{\"status\": %d, \"name\": \"%s\", \"text\": \"", status,
	    rl_strerror(status));
	for (; *text != '\0'; text++)
		printf(*text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
	printf("\"}\n");
	fflush(stdout);
}

/* Of a line RULE [KEY]. */
static struct rl_check
rule_check(char **word, int words)
{
	struct rl_check check = {.rule = word[1]};

	if (words > 2) {
		check.key = word[2];
		check.key_len = strlen(word[2]);
	}
	return check;
}

static void
call_check(struct rl_client *client, char **word, int words)
{
	const struct rl_check check = rule_check(word, words);
	struct rl_decision decision;
	int status = rl_check(client, &check, &decision, NULL);

	print_decision(status, &decision);
}

/* Two lines: the decision, and what became of the report. */
static void
call_work(struct rl_client *client, char **word, int words)
{
	const struct rl_check check = rule_check(word, words);
	struct rl_decision decision;
	struct rl_work work;
	int status = rl_admit(client, &check, &decision, NULL, &work);

	print_decision(status, &decision);
	status = rl_finish(client, &work);
	print_status(status, rl_last_text(client));
}

static void
call_adhoc(struct rl_client *client, char **word)
{
	const struct rl_resource resource = {
	    .bucket = word[1],
	    .bucket_len = strlen(word[1]),
	    .window_ms = (uint32_t)strtoul(word[2], NULL, 10),
	    .limit = (uint32_t)strtoul(word[3], NULL, 10),
	    .tokens = (uint32_t)strtoul(word[4], NULL, 10),
	};
	const struct rl_check check = {
	    .resources = &resource, .resource_count = 1};
	static struct rl_detail detail;
	struct rl_decision decision;
	int status = rl_check(client, &check, &decision, &detail);

	if (status == RL_OK && decision.has_server &&
	    (detail.resource_count != 1 ||
		strcmp(detail.resources[0].bucket, word[1]) != 0))
		die("detail", RL_EPROTO);
	print_decision(status, &decision);
}

/* The child's call and then the parent's, on a client that both have. */
static void
call_fork(struct rl_client *client, char **word, int words)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		call_check(client, word, words);
		rl_close(client);
		/* Not exit(): the parent's buffers are not this one's. */
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		die("fork", RL_EINVAL);
	call_check(client, word, words);
}

static void *
interrupt(void *arg)
{
	rl_interrupt(arg);
	return NULL;
}

/* Whether the interrupt comes before or within the call, it gives up. */
static void
call_interrupt(struct rl_client *client, char **word, int words)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, interrupt, client) != 0)
		die("pthread_create", RL_ENOMEM);
	call_check(client, word, words);
	pthread_join(thread, NULL);
}

/* Takes the document. */
static void
print_document(int status, char *json)
{
	printf("{\"status\": %d, \"document\": %s}\n", status,
	    status == RL_OK ? json : "null");
	fflush(stdout);
	free(json);
}

static void
call_query(struct rl_client *client, const char *what)
{
	char *json = NULL;
	int status = rl_query(client, what, 0, &json);

	print_document(status, json);
}

static void
call_explain(struct rl_client *client, char **word, int words)
{
	const struct rl_check check = rule_check(word, words);
	char *json = NULL;
	int status = rl_explain(client, &check, &json);

	print_document(status, json);
}

static void
call_report(struct rl_client *client, char **word, int words)
{
	const char *key = words > 3 ? word[3] : NULL;
	int status =
	    rl_report(client, NULL, word[1], key, key != NULL ? strlen(key) : 0,
		(uint32_t)strtoul(word[2], NULL, 10));

	print_status(status, rl_last_text(client));
}

/* Of words LIMITER [PERMITS [KEY [MAX_WAIT_US]]]. */
static struct rl_acquire
word_acquire(char **word, int words)
{
	struct rl_acquire acquire = {.limiter = word[0]};

	if (words > 1)
		acquire.permits = (uint32_t)strtoul(word[1], NULL, 10);
	if (words > 2 && strcmp(word[2], "-") != 0) {
		acquire.key = word[2];
		acquire.key_len = strlen(word[2]);
	}
	if (words > 3) {
		acquire.no_longer = 1;
		acquire.max_wait_us = strtoull(word[3], NULL, 10);
	}
	return acquire;
}

static void
call_acquire(struct rl_client *client, char **word, int words)
{
	const struct rl_acquire acquire = word_acquire(word + 1, words - 1);
	struct rl_decision decision;
	int status = rl_acquire(client, &acquire, &decision);

	print_decision(status, &decision);
}

static void
call_error(struct rl_client *client, char **word, int words)
{
	struct rl_error_control control = {.control = word[1]};
	struct rl_decision decision;
	int status;

	if (words > 2) {
		control.key = word[2];
		control.key_len = strlen(word[2]);
	}
	if (strcmp(word[0], "begin") == 0) {
		status = rl_error_begin(client, &control, &decision);
		print_decision(status, &decision);
	} else {
		status = rl_error_success(client, &control);
		print_status(status, rl_last_text(client));
	}
}

/* False: none of these. */
static bool
call_limiter(struct rl_client *client, char **word, int words)
{
	const char *verb = word[0];
	int status;

	if (strcmp(verb, "acquire") == 0 && words >= 2) {
		call_acquire(client, word, words);
	} else if ((strcmp(verb, "begin") == 0 ||
		       strcmp(verb, "success") == 0) &&
		   words >= 2) {
		call_error(client, word, words);
	} else if (strcmp(verb, "rate") == 0 && words == 3) {
		status = rl_set_rate(client, word[1], atof(word[2]), 0);
		print_status(status, rl_last_text(client));
	} else {
		return false;
	}
	return true;
}

static void
call(struct rl_client *client, char **word, int words)
{
	const char *verb = word[0];
	int status;

	if (strcmp(verb, "check") == 0 && words >= 2) {
		call_check(client, word, words);
	} else if (strcmp(verb, "adhoc") == 0 && words == 5) {
		call_adhoc(client, word);
	} else if (strcmp(verb, "fork") == 0 && words >= 2) {
		call_fork(client, word, words);
	} else if (strcmp(verb, "interrupt") == 0 && words >= 2) {
		call_interrupt(client, word, words);
	} else if (strcmp(verb, "work") == 0 && words >= 2) {
		call_work(client, word, words);
	} else if (strcmp(verb, "explain") == 0 && words >= 2) {
		call_explain(client, word, words);
	} else if (strcmp(verb, "query") == 0 && words == 2) {
		call_query(client, word[1]);
	} else if (strcmp(verb, "report") == 0 && (words == 3 || words == 4)) {
		call_report(client, word, words);
	} else if (strcmp(verb, "ping") == 0) {
		print_status(rl_ping(client, 0, NULL), "");
	} else if (strcmp(verb, "wait") == 0) {
		print_status(rl_wait(client, 0), "");
	} else if (strcmp(verb, "control") == 0 && words == 2) {
		status = rl_control(client, word[1], 0);
		print_status(status, rl_last_text(client));
	} else if (!call_limiter(client, word, words)) {
		die(verb, RL_EINVAL);
	}
}

static int
run_calls(int argc, char **argv)
{
	struct rl_client *client;
	char *word[WORDS_MAX];
	char line[1024];
	int words;

	if (argc < 4)
		return 64;
	client = open_client(argv[2], (uint32_t)strtoul(argv[3], NULL, 10),
	    argc > 4 && strcmp(argv[4], "closed") == 0 ? RL_CLOSED : RL_OPEN);
	/* Unbuffered, so that a child of fork() has read nothing ahead. */
	setvbuf(stdin, NULL, _IONBF, 0);
	while (fgets(line, sizeof(line), stdin) != NULL) {
		words = 0;
		for (char *at = strtok(line, " \n");
		     at != NULL && words < WORDS_MAX; at = strtok(NULL, " \n"))
			word[words++] = at;
		if (words > 0)
			call(client, word, words);
	}
	rl_close(client);
	return 0;
}

struct flood {
	const char *socket;
	const char *rule;
	int checks;
	pthread_barrier_t start;
};

struct tally {
	struct flood *flood;
	pthread_t thread;
	int outcomes[4];
	int wrong; /* permits that do not follow from the outcome */
	uint64_t longest_us;
};

static void *
flood_thread(void *arg)
{
	struct tally *t = arg;
	struct rl_client *client = open_client(t->flood->socket, 0, RL_CLOSED);
	const struct rl_check check = {
	    .rule = t->flood->rule, .key = "flood", .key_len = 5};
	struct rl_decision d;
	int i;

	/* Connected, so that all checks begin together. */
	rl_ping(client, 0, NULL);
	pthread_barrier_wait(&t->flood->start);
	for (i = 0; i < t->flood->checks; i++) {
		if (rl_check(client, &check, &d, NULL) != RL_OK)
			t->wrong++;
		t->outcomes[d.outcome]++;
		if ((d.outcome == RL_ALLOWED) != (d.permit == 1) &&
		    d.outcome != RL_FAILED)
			t->wrong++;
		if (d.elapsed_us > t->longest_us)
			t->longest_us = d.elapsed_us;
	}
	rl_close(client);
	return NULL;
}

static int
run_flood(int argc, char **argv)
{
	struct flood flood;
	struct tally *tally, sum = {0};
	int clients, i, k;

	if (argc != 6)
		return 64;
	clients = atoi(argv[4]);
	flood = (struct flood){
	    .socket = argv[2], .rule = argv[3], .checks = atoi(argv[5])};
	tally = calloc((size_t)clients, sizeof(*tally));
	if (tally == NULL ||
	    pthread_barrier_init(&flood.start, NULL, (unsigned)clients) != 0)
		die("flood", RL_ENOMEM);
	for (i = 0; i < clients; i++) {
		tally[i].flood = &flood;
		if (pthread_create(
			&tally[i].thread, NULL, flood_thread, &tally[i]) != 0)
			die("pthread_create", RL_ENOMEM);
	}
	for (i = 0; i < clients; i++) {
		pthread_join(tally[i].thread, NULL);
		for (k = 0; k < 4; k++)
			sum.outcomes[k] += tally[i].outcomes[k];
		sum.wrong += tally[i].wrong;
		if (tally[i].longest_us > sum.longest_us)
			sum.longest_us = tally[i].longest_us;
	}
	printf("{\"allowed\": %d, \"denied\": %d, \"failed\": %d, "
	       "\"cancelled\": %d, \"wrong\": %d, \"longest_us\": %" PRIu64
	       "}\n",
	    sum.outcomes[RL_ALLOWED], sum.outcomes[RL_DENIED],
	    sum.outcomes[RL_FAILED], sum.outcomes[RL_CANCELLED], sum.wrong,
	    sum.longest_us);
	pthread_barrier_destroy(&flood.start);
	free(tally);
	return 0;
}

static int64_t
now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

struct grants {
	int outcomes[4];
	size_t count, room;
	int64_t *at; /* of each, when its wait was over */
};

static void
grants_add(struct grants *g, const struct rl_decision *d)
{
	g->outcomes[d->outcome]++;
	if (d->outcome != RL_ALLOWED)
		return;
	if (g->count == g->room) {
		g->room = g->room != 0 ? 2 * g->room : 1024;
		g->at = realloc(g->at, g->room * sizeof(*g->at));
		if (g->at == NULL)
			die("acquire", RL_ENOMEM);
	}
	g->at[g->count++] = now_us();
}

static void
grants_print(const struct grants *g, int64_t begun_us)
{
	size_t i;

	printf("{\"granted\": %d, \"refused\": %d, \"failed\": %d, "
	       "\"cancelled\": %d, \"begun_us\": %" PRId64
	       ", \"ended_us\": %" PRId64 ", \"grants_us\": [",
	    g->outcomes[RL_ALLOWED], g->outcomes[RL_DENIED],
	    g->outcomes[RL_FAILED], g->outcomes[RL_CANCELLED], begun_us,
	    now_us());
	for (i = 0; i < g->count; i++)
		printf("%s%" PRId64, i > 0 ? ", " : "", g->at[i]);
	printf("]}\n");
}

static int
run_acquire(int argc, char **argv)
{
	int64_t begun = now_us(), until = INT64_MAX;
	struct grants grants = {0};
	struct rl_acquire acquire;
	struct rl_client *client;
	struct rl_decision d;
	unsigned long long times, i;
	char *unit;

	if (argc < 5 || argc > 8)
		return 64;
	times = strtoull(argv[4], &unit, 10);
	if (strcmp(unit, "s") == 0) {
		until = begun + (int64_t)times * 1000000;
		times = ULLONG_MAX;
	} else if (*unit != '\0') {
		return 64;
	}
	argv[4] = argv[3];
	acquire = word_acquire(argv + 4, argc - 4);
	client = open_client(argv[2], 0, RL_CLOSED);
	for (i = 0; i < times && now_us() < until; i++) {
		if (rl_acquire(client, &acquire, &d) != RL_OK)
			die(rl_last_text(client), RL_EINVAL);
		grants_add(&grants, &d);
	}
	rl_close(client);
	grants_print(&grants, begun);
	free(grants.at);
	return 0;
}

int
main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "calls") == 0)
		return run_calls(argc, argv);
	if (argc > 1 && strcmp(argv[1], "flood") == 0)
		return run_flood(argc, argv);
	if (argc > 1 && strcmp(argv[1], "acquire") == 0)
		return run_acquire(argc, argv);
	fprintf(stderr, "usage: shimclient calls|flood|acquire ...\n");
	return 64;
}
