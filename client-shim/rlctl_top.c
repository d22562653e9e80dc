/*
 * rlctl top: asks again and again, and shows what happened in between; on a
 * terminal as a screen that stays in its place, else one text after another.
 */
#include "client-shim/rlctl_top.h"

#include <getopt.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client-shim/rlctl_options.h"

#define HOUR_MS 3600000

struct top {
	struct rlctl *ctl;
	struct top_source *source;
	uint32_t interval_ms;
	uint32_t count; /* of screens, 0: no end */
	enum top_sort sort;
	bool batch;
	uint32_t shown; /* screens so far */
	unsigned int restarts;
	struct top_sample now;
	struct top_sample then; /* of an agent, the last one but now */
};

static enum top_sort
sort_option(const char *text)
{
	static const char *const words[] = {
	    "checks", "denied", "failed", "name"};

	for (int i = 0; i < 4; i++) {
		if (strcmp(text, words[i]) == 0)
			return (enum top_sort)i;
	}
	exit(rlctl_fail(RLCTL_USAGE,
	    "--sort: must be checks, denied, failed or name, not \"%s\"",
	    text));
}

static void
take_option(struct top *t, int c)
{
	switch (c) {
	case 'i':
		t->interval_ms =
		    rlctl_number("--interval", optarg, 100, HOUR_MS);
		break;
	case 'n':
		t->count = rlctl_number("--count", optarg, 0, UINT32_MAX);
		break;
	case '1':
		t->count = 1;
		t->batch = true;
		break;
	case 'b':
		t->batch = true;
		break;
	case 's':
		t->sort = sort_option(optarg);
		break;
	case 't':
		t->ctl->timeout_ms = rlctl_options_timeout(optarg);
		break;
	case 'j':
		t->ctl->json = 1;
		break;
	default:
		exit(RLCTL_USAGE); /* getopt has said why */
	}
}

/* Can it show a screen that stays in its place? */
static bool
is_terminal(void)
{
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && term != NULL && *term != '\0' &&
	       strcmp(term, "dumb") != 0;
}

static void
parse(struct top *t, int argc, char **argv)
{
	static const struct option longs[] = {
	    {"interval", required_argument, NULL, 'i'},
	    {"count", required_argument, NULL, 'n'},
	    {"once", no_argument, NULL, '1'}, {"batch", no_argument, NULL, 'b'},
	    {"sort", required_argument, NULL, 's'},
	    {"timeout", required_argument, NULL, 't'},
	    {"json", no_argument, NULL, 'j'}, {NULL, 0, NULL, 0}};
	int c;

	while ((c = getopt_long(argc, argv, "b", longs, NULL)) != -1)
		take_option(t, c);
	rlctl_no_more("top", argc, argv);
	if (t->ctl->json || !is_terminal())
		t->batch = true;
}

/* All at once: a screen that is half written flickers. */
static void
show_screen(const struct top *t, const struct top_view *v)
{
	char *text = NULL;
	size_t len;
	FILE *to = open_memstream(&text, &len);

	if (to == NULL)
		return;
	top_draw(to, v, top_term_shape(), rlctl_socket(t->ctl), t->restarts);
	fclose(to);
	top_term_show(text, len);
	free(text);
}

/* Returns RLCTL_OK, or an error with its line. */
static int
show(struct top *t)
{
	const struct top_shape plain = {0, 0};
	struct top_view v;

	if (!top_view_make(&v, &t->now, &t->then, t->sort))
		return rlctl_fail(RLCTL_ERROR, "top: out of memory");
	if (!t->batch) {
		show_screen(t, &v);
	} else if (t->ctl->json) {
		top_json(stdout, &v);
	} else {
		if (t->shown > 0)
			putchar('\n');
		top_draw(stdout, &v, plain, rlctl_socket(t->ctl), t->restarts);
	}
	top_view_fini(&v);
	return t->batch ? rlctl_written("top") : RLCTL_OK;
}

/* The next sample, in the place of the last one; then stays that of an agent
 * while there is none. */
static void
fetch(struct top *t)
{
	if (t->now.status != NULL) {
		top_sample_fini(&t->then);
		t->then = t->now;
	} else {
		top_sample_fini(&t->now);
	}
	top_fetch(t->source, &t->now);
	if (top_is_another(&t->now, &t->then))
		t->restarts++;
}

/* Until the next one is due; a screen of another size is drawn at once. */
static enum top_event
wait_until(struct top *t, int64_t due)
{
	enum top_event event;

	while ((event = top_term_wait(due)) == TOP_RESIZED)
		show(t);
	return event;
}

/* The first sample is shown on a screen, but has no rates: it does not count.
 */
static int
turns(struct top *t)
{
	int64_t due = top_now();
	int status = RLCTL_OK;

	if (!t->batch)
		status = show(t);
	while (status == RLCTL_OK && (t->count == 0 || t->shown < t->count)) {
		due += (int64_t)t->interval_ms * 1000;
		if (due < top_now())
			due = top_now();
		if (wait_until(t, due) == TOP_QUIT)
			break;
		fetch(t);
		if (top_term_signal() != 0)
			break;
		status = show(t);
		t->shown++;
	}
	return status;
}

/* As if SIGTERM had not been caught; Ctrl-C and q are ways to end it. */
static void
end_by_signal(void)
{
	const int signo = top_term_signal();

	if (signo != 0 && signo != SIGINT)
		raise(signo);
}

int
rlctl_top(struct rlctl *ctl, int argc, char **argv)
{
	struct top t = {.ctl = ctl, .interval_ms = 1000};
	int status;

	parse(&t, argc, argv);
	t.source = top_source_open(ctl);
	top_fetch(t.source, &t.now);
	if (t.now.status == NULL) {
		status = rlctl_fail(RLCTL_ERROR, "top: %s", t.now.trouble);
	} else {
		top_term_open(t.source, !t.batch);
		status = turns(&t);
		top_term_close();
		end_by_signal();
	}
	top_sample_fini(&t.now);
	top_sample_fini(&t.then);
	top_source_close(t.source);
	return status;
}
