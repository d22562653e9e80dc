/*
 * What the two files share that draw rlctl top: rlctl_top_draw.c (lines, the
 * head, and who gets how many rows) and rlctl_top_tables.c.
 */
#ifndef RLCTL_TOP_DRAW_H
#define RLCTL_TOP_DRAW_H

#include "client-shim/rlctl_top.h"

enum top_section {
	TOP_RULES,
	TOP_SERVERS,
	TOP_LIMITERS,
	TOP_KEYS,
	TOP_SECTIONS
};

struct top_canvas {
	FILE *to;
	const struct top_view *view;
	struct top_shape shape; /* height 0: plain text */
	int rows;               /* so far */
	size_t counts[TOP_SECTIONS];
	size_t room[TOP_SECTIONS]; /* rows that are drawn of each */
};

/* The next line, and its end; no more of them than there are rows. */
void top_begin_line(const struct top_canvas *c, struct top_line *l);
void top_end_line(struct top_canvas *c, const struct top_line *l, bool bold);
void top_draw_gap(struct top_canvas *c);

/* Cells; of strings "-" for what is none, and of rates while they are not
 * known. */
void top_put_cell(struct top_line *l, const char *text, int width);
void top_put_string(struct top_line *l, const struct json_t *string, int width);
void top_put_field(
    struct top_line *l, const struct json_t *from, const char *name, int width);
void top_put_rate(
    struct top_line *l, const struct top_view *v, double rate, int width);
void top_put_share(struct top_line *l, const struct top_view *v, double part,
    double whole, int width);

/* rlctl_top_tables.c; a gap, a title and so many rows as there is room. */
void top_draw_rules(struct top_canvas *c);
void top_draw_servers(struct top_canvas *c);
void top_draw_limiters(struct top_canvas *c);
void top_draw_keys(struct top_canvas *c);

#endif
