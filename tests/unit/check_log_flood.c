/*
 * Lines of the log that files and clients can cause: however often they do, a
 * few are written, and those tell how many were not. Those that packets and
 * DNS can cause: check_discovery_log.c and tests/world/log-*.
 */
#include "daemon/log.h"

#include <string.h>
#include <sys/mman.h>

#include "daemon/dispatch_private.h" /* to accept what is no client */
#include "tests/unit/reload_fixture.h"

#define FLOOD   150
#define RELOADS 50 /* lines at once */

static char text[64 * 1024];

/* From here on lines are kept for told(). */
static void
listen_to_log(enum log_level level)
{
	int fd = memfd_create("log", 0);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(dup2(fd, STDERR_FILENO), STDERR_FILENO);
	close(fd);
	log_set_level(level);
}

struct told {
	unsigned int lines;
	unsigned int unsaid; /* that they tell of */
};

/* Of this event, so far. */
static struct told
told(const char *event)
{
	struct told n = {0, 0};
	ssize_t len = pread(STDERR_FILENO, text, sizeof(text) - 1, 0);
	char *line, *rest = text, *at;
	char word[32];

	ck_assert_int_ge(len, 0);
	text[len] = '\0';
	snprintf(word, sizeof(word), ": %s ", event);
	while ((line = strsep(&rest, "\n")) != NULL) {
		if (strstr(line, word) == NULL)
			continue;
		n.lines++;
		at = strstr(line, "unsaid=");
		if (at != NULL)
			n.unsaid += (unsigned int)strtoul(
			    at + strlen("unsaid="), NULL, 10);
	}
	return n;
}

/* A burst, then one a second at most. */
static void
expect_few(const char *event, unsigned int burst, int64_t began)
{
	const struct told n = told(event);
	const unsigned int seconds =
	    (unsigned int)((loop_now() - began) / 1000000);

	ck_assert_uint_ge(n.lines, burst);
	ck_assert_msg(n.lines <= burst + 1 + seconds, "%u lines in %u seconds",
	    n.lines, seconds);
}

/* Nothing that was held back is forgotten, once a line comes again. */
static bool
all_told(const char *event, unsigned int happened)
{
	const struct told n = told(event);

	ck_assert_uint_le(n.lines + n.unsaid, happened);
	return n.lines + n.unsaid == happened;
}

static void
stop_loop(void *arg)
{
	loop_stop(arg);
}

/* The pause after those of the burst. */
static void
let_a_second_pass(void)
{
	struct loop_timer *timer =
	    loop_timer_new(agent->loop, stop_loop, agent->loop);

	ck_assert_ptr_nonnull(timer);
	loop_timer_set(timer, loop_now() + 1000000);
	ck_assert_int_eq(loop_run(agent->loop), 0);
	loop_timer_free(timer);
}

START_TEST(reloads)
{
	const struct shape warned = {.listener = ",\"rules\":[\"ordre\"]"};
	int64_t began;
	uint64_t id = 0;

	start(&usual);
	listen_to_log(LOG_LEVEL_INFO);
	began = loop_now();
	for (int i = 0; i < FLOOD; i++)
		load(&warned, ++id);
	expect_few("reload", RELOADS, began);
	/* A warning goes with the line, or is not written either. */
	ck_assert_uint_eq(told("config").lines, told("reload").lines);
	do {
		let_a_second_pass();
		load(&warned, ++id);
	} while (!all_told("reload", (unsigned int)id));
	ck_assert_uint_eq(agent->setup->generation, 1 + id);
	stop();
}
END_TEST

/* Another failure each time. */
START_TEST(reloads_that_fail)
{
	int64_t began;
	uint64_t id = 0;

	start(&usual);
	listen_to_log(LOG_LEVEL_INFO);
	began = loop_now();
	while (id < FLOOD) {
		snprintf(text, sizeof(text), "{\"x%d\":{}}", (int)id);
		write_text(text);
		ask_reload(++id, IPC_REASON_VALIDATION);
	}
	expect_few("reload", RELOADS, began);
	ck_assert_uint_ge(agent->loading.failures, FLOOD);
	stop();
}
END_TEST

START_TEST(readiness)
{
	unsigned int lines;
	int64_t began;
	uint64_t id = 0;

	start(&usual);
	listen_to_log(LOG_LEVEL_INFO);
	began = loop_now();
	while (id < FLOOD) {
		agent->ready = false; /* as if it had not been */
		load(&usual, ++id);
		ck_assert(agent->ready);
	}
	expect_few("ready", 5, began);
	do {
		let_a_second_pass();
		agent->ready = false;
		load(&usual, ++id);
	} while (!all_told("ready", (unsigned int)id));
	/* What it came to is told in the end, though nothing happens then. */
	lines = told("ready").lines;
	agent->ready = agent->ready_told = false;
	load(&usual, ++id);
	ck_assert_uint_eq(told("ready").lines, lines);
	TURN_UNTIL(told("ready").lines > lines);
	ck_assert(all_told("ready", (unsigned int)id));
	stop();
}
END_TEST

START_TEST(bad_frames)
{
	int64_t began;
	unsigned int n;

	start(&usual);
	listen_to_log(LOG_LEVEL_DEBUG);
	began = loop_now();
	for (n = 0; n < FLOOD; n++) {
		peer_close(&a);
		join(&a, main_path);
		peer_empty(&a, 0x7777, 1);
		expect_error(&a, 1, IPC_ERR_TYPE);
	}
	expect_few("frame", 10, began);
	ck_assert_uint_eq(counters()->frames_bad, n);
	stop();
}
END_TEST

static void
accept_what_is_no_client(void)
{
	int ends[2];

	ck_assert_int_eq(pipe(ends), 0);
	client_accepted(agent->dispatch->ports[0], ends[0]);
	close(ends[1]);
}

START_TEST(what_is_no_client)
{
	int64_t began;
	unsigned int n;

	start(&usual);
	listen_to_log(LOG_LEVEL_DEBUG);
	began = loop_now();
	for (n = 0; n < FLOOD; n++)
		accept_what_is_no_client();
	expect_few("accept", 10, began);
	do {
		let_a_second_pass();
		accept_what_is_no_client();
	} while (!all_told("accept", ++n));
	ck_assert_uint_eq(counters()->connections_refused, n);
	stop();
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("log_flood");
	TCase *tc = tcase_create("log_flood");

	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, reloads);
	tcase_add_test(tc, reloads_that_fail);
	tcase_add_test(tc, readiness);
	tcase_add_test(tc, bad_frames);
	tcase_add_test(tc, what_is_no_client);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
