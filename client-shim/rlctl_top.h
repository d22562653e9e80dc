/*
 * What the files of rlctl top share: rlctl_top.c (the command and its turns),
 * rlctl_top_fetch.c (documents of the agent), rlctl_top_view.c (what happened
 * between two of them), rlctl_top_draw.c and rlctl_top_tables.c (a view as
 * text), rlctl_top_json.c (as JSON), rlctl_top_line.c (lines that are safe to
 * show) and rlctl_top_term.c (the terminal and signals).
 */
#ifndef RLCTL_TOP_H
#define RLCTL_TOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "client-shim/rlctl.h"

struct json_t;

#define TOP_TEXT_MAX 512

enum top_sort { TOP_BY_CHECKS, TOP_BY_DENIED, TOP_BY_FAILED, TOP_BY_NAME };

/* What the agent said at one time. All but status NULL: it does not say. */
struct top_sample {
	int64_t asked; /* microseconds, of this process */
	int64_t told;
	struct json_t *status; /* NULL: there is no agent, see trouble */
	struct json_t *rules;
	struct json_t *servers;
	struct json_t *limiters;
	struct json_t *keys; /* NULL: see keys_trouble */
	/* Entries of the last sample's lists by their names. */
	struct json_t *rule_index;
	struct json_t *server_index;
	struct json_t *limiter_index;
	char trouble[TOP_TEXT_MAX];
	char keys_trouble[TOP_TEXT_MAX];
};

struct top_source;

/* The clients, on both sockets. Exits 64 for what cannot be a path. */
struct top_source *top_source_open(const struct rlctl *ctl);
void top_source_close(struct top_source *source);
/* Asks for all of it. The sample is the caller's to top_sample_fini(). */
void top_fetch(struct top_source *source, struct top_sample *out);
void top_sample_fini(struct top_sample *s);
/* The name of an entry of servers in server_index, and of limiters. */
#define TOP_NAME_MAX 600
void top_server_name(char out[TOP_NAME_MAX], const struct json_t *server);
void top_limiter_name(
    char out[TOP_NAME_MAX], const char *kind, const struct json_t *limiter);

/* Of each second between two samples. */
struct top_rule {
	const struct json_t *is;
	double checks, allowed, denied, failed, cancelled, would_deny;
};

struct top_server {
	const struct json_t *is;
	double sent, answered, selected, missed, late;
	double share; /* of the selections of its tenant; -1: there were none */
};

struct top_limiter {
	const struct json_t *is;
	const char *kind; /* "limiter", "error control" or "local of rule" */
	/* For an error control begins, delays and nothing. */
	double granted, waits, refused;
};

struct top_key {
	const struct json_t *rule; /* strings */
	const struct json_t *key;
	int64_t denied, error, of; /* of: what the rule denied */
};

/* Borrows both samples. */
struct top_view {
	const struct top_sample *now;
	bool known;     /* the rates: there are two samples of one agent */
	bool restarted; /* it is another agent than before */
	double seconds; /* between them, by the agent's clock */
	double decisions, allowed, denied, failed, cancelled, would_deny;
	struct top_rule *rules;
	size_t rule_count;
	struct top_server *servers;
	size_t server_count;
	struct top_limiter *limiters;
	size_t limiter_count;
	struct top_key *keys; /* the most denied first */
	size_t key_count;
};

/* then: NULL or without an agent for the first one. False: no memory. */
bool top_view_make(struct top_view *v, const struct top_sample *now,
    const struct top_sample *then, enum top_sort sort);
void top_view_fini(struct top_view *v);
/* Did the agent start again between them? False while there is none. */
bool top_is_another(
    const struct top_sample *now, const struct top_sample *then);

/* One line of JSON, with what stood in the way when there is no agent. */
void top_json(FILE *to, const struct top_view *v);

/* A screen of so many columns and rows; 0: as many as it takes, and plain. */
struct top_shape {
	int width;
	int height;
};
/* restarts: how often another agent was found so far. */
void top_draw(FILE *to, const struct top_view *v, struct top_shape shape,
    const char *socket, unsigned int restarts);

/*
 * A line of cells, a blank between any two. What could steer a terminal, hide
 * or turn text around becomes "?", and no character is cut in half. A cell that
 * does not fit the line ends it.
 */
struct top_line {
	char text[4096];
	size_t len;
	int at;    /* columns so far */
	int width; /* 0: no end */
	bool full;
};
void top_line_init(struct top_line *l, int width);
/* width 0: as wide as it is, cut at the end of the line. right: aligned. What
 * is longer ends in "...". */
void top_line_cell(
    struct top_line *l, const char *bytes, size_t len, int width, bool right);
void top_line_put(struct top_line *l, int width, bool right, const char *fmt,
    ...) __attribute__((format(printf, 4, 5)));
/* Columns that it takes when it is shown. */
int top_line_width(const char *bytes, size_t len);

/* What made top_term_wait() return. */
enum top_event { TOP_DUE, TOP_RESIZED, TOP_QUIT };

/*
 * Signals; and, when live, the terminal, whose state comes back whatever ends
 * the process, but for SIGKILL. source: whose calls a signal interrupts.
 */
void top_term_open(struct top_source *source, bool live);
void top_term_close(void);
struct top_shape top_term_shape(void);
/* All of the screen. */
void top_term_show(const char *text, size_t len);
/* Until then (top_now()), or something else happens. */
enum top_event top_term_wait(int64_t until);
/* The signal that ends it, 0: none. */
int top_term_signal(void);
int64_t top_now(void);

/* Called by a signal handler. */
void top_source_interrupt(struct top_source *source);

#endif
