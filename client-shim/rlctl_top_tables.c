/*
 * The tables of rlctl top. A name keeps a bounded part of a line; a column that
 * does not fit a narrow screen is left out with those behind it.
 */
#include "client-shim/rlctl_top_draw.h"

#include <jansson.h>
#include <string.h>

#include "client-shim/rlctl_table.h"

#define NAME_MAX_WIDTH 40
/* Columns of a number, of a smaller one, and of two times. */
#define NUMBER 9
#define SMALL  8
#define TIMES  11

static void
millis(char out[16], const json_t *from, const char *name)
{
	const double ms = (double)rlctl_table_number(from, name) / 1e3;

	if (rlctl_table_known(from, name))
		snprintf(out, 16, "%.*f", ms < 10 ? 2 : ms < 100 ? 1 : 0, ms);
	else
		snprintf(out, 16, "-");
}

static void
put_round_trip(struct top_line *l, const json_t *server, int width)
{
	char p50[16], p99[16];

	millis(p50, server, "rtt_p50_us");
	millis(p99, server, "rtt_p99_us");
	if (rlctl_table_known(server, "rtt_p50_us"))
		top_line_put(l, width, true, "%s/%s", p50, p99);
	else
		top_line_put(l, width, true, "-");
}

/* Columns of the widest of these, within bounds. */
static int
fit(int widest, const json_t *string, int most)
{
	int w = 1;

	if (json_is_string(string))
		w = top_line_width(
		    json_string_value(string), json_string_length(string));
	if (w > most)
		w = most;
	return w > widest ? w : widest;
}

/* A name keeps a third of a narrow screen, and the numbers the rest. */
static int
most_of_name(const struct top_canvas *c)
{
	if (c->shape.width == 0 || c->shape.width >= 3 * NAME_MAX_WIDTH)
		return NAME_MAX_WIDTH;
	return c->shape.width / 3 > 12 ? c->shape.width / 3 : 12;
}

static void
draw_rest(struct top_canvas *c, enum top_section s)
{
	struct top_line l;

	if (c->room[s] == c->counts[s])
		return;
	top_begin_line(c, &l);
	top_line_put(&l, 0, false, "... %zu more", c->counts[s] - c->room[s]);
	top_end_line(c, &l, false);
}

void
top_draw_gap(struct top_canvas *c)
{
	struct top_line l;

	top_begin_line(c, &l);
	top_end_line(c, &l, false);
}

static void
title_rules(struct top_canvas *c, int name)
{
	struct top_line l;

	top_begin_line(c, &l);
	top_line_cell(&l, "rule", 4, name, false);
	top_put_cell(&l, "checks/s", NUMBER);
	top_put_cell(&l, "allowed", NUMBER);
	top_put_cell(&l, "denied", NUMBER);
	top_put_cell(&l, "failed", NUMBER);
	top_put_cell(&l, "would-deny", NUMBER + 1);
	top_put_cell(&l, "checks", NUMBER + 1);
	top_end_line(c, &l, true);
}

static void
draw_rule(struct top_canvas *c, const struct top_rule *r, int name)
{
	const struct top_view *v = c->view;
	char total[RLCTL_TABLE_CELL];
	struct top_line l;

	top_begin_line(c, &l);
	top_put_field(&l, r->is, "name", name);
	top_put_rate(&l, v, r->checks, NUMBER);
	top_put_share(&l, v, r->allowed, r->checks, NUMBER);
	top_put_share(&l, v, r->denied, r->checks, NUMBER);
	top_put_share(&l, v, r->failed, r->checks, NUMBER);
	top_put_share(&l, v, r->would_deny, r->checks, NUMBER + 1);
	rlctl_table_put_count(
	    total, json_object_get(r->is, "counters"), "checks");
	top_put_cell(&l, total, NUMBER + 1);
	top_end_line(c, &l, false);
}

void
top_draw_rules(struct top_canvas *c)
{
	const struct top_view *v = c->view;
	struct top_line l;
	int name = 4;
	size_t i;

	top_draw_gap(c);
	if (v->rule_count == 0) {
		top_begin_line(c, &l);
		top_line_put(&l, 0, false, "no rule is configured");
		top_end_line(c, &l, false);
		return;
	}
	for (i = 0; i < v->rule_count; i++)
		name = fit(name, json_object_get(v->rules[i].is, "name"),
		    most_of_name(c));
	title_rules(c, name);
	for (i = 0; i < c->room[TOP_RULES]; i++)
		draw_rule(c, &v->rules[i], name);
	draw_rest(c, TOP_RULES);
}

/* Columns of the first cells of a table of servers. */
struct server_widths {
	int tenant, server, state;
};

static void
title_servers(struct top_canvas *c, const struct server_widths *w)
{
	struct top_line l;

	top_begin_line(c, &l);
	top_line_cell(&l, "tenant", 6, w->tenant, false);
	top_line_cell(&l, "server", 6, w->server, false);
	top_line_cell(&l, "state", 5, w->state, false);
	top_put_cell(&l, "p50/p99 ms", TIMES);
	top_put_cell(&l, "selected", SMALL);
	top_put_cell(&l, "asked/s", SMALL);
	top_put_cell(&l, "missed/s", SMALL);
	top_put_cell(&l, "late/s", SMALL);
	top_line_cell(&l, "address", 7, 0, false);
	top_end_line(c, &l, true);
}

static void
draw_server(struct top_canvas *c, const struct top_server *s,
    const struct server_widths *w)
{
	const bool suspected =
	    json_is_true(json_object_get(s->is, "suspected"));
	const struct top_view *v = c->view;
	struct top_line l;

	top_begin_line(c, &l);
	top_put_field(&l, s->is, "tenant", w->tenant);
	top_put_field(&l, s->is, "server_id", w->server);
	top_line_put(&l, w->state, false, "%s%s",
	    rlctl_table_text(s->is, "diagnosis"), suspected ? "*" : "");
	put_round_trip(&l, s->is, TIMES);
	top_put_share(&l, v, s->share, s->share < 0 ? 0 : 1, SMALL);
	top_put_rate(&l, v, s->sent, SMALL);
	top_put_rate(&l, v, s->missed, SMALL);
	top_put_rate(&l, v, s->late, SMALL);
	top_put_string(
	    &l, json_array_get(json_object_get(s->is, "addresses"), 0), 0);
	top_end_line(c, &l, false);
}

void
top_draw_servers(struct top_canvas *c)
{
	const struct top_view *v = c->view;
	struct server_widths w = {6, 6, 5};
	struct top_line l;
	size_t i;

	top_draw_gap(c);
	if (v->server_count == 0) {
		top_begin_line(c, &l);
		top_line_put(&l, 0, false, "no server is known");
		top_end_line(c, &l, false);
		return;
	}
	for (i = 0; i < v->server_count; i++) {
		const json_t *s = v->servers[i].is;

		w.tenant = fit(w.tenant, json_object_get(s, "tenant"), 16);
		w.server = fit(w.server, json_object_get(s, "server_id"), 20);
		w.state = fit(w.state, json_object_get(s, "diagnosis"), 15);
	}
	title_servers(c, &w);
	for (i = 0; i < c->room[TOP_SERVERS]; i++)
		draw_server(c, &v->servers[i], &w);
	draw_rest(c, TOP_SERVERS);
}

static void
draw_limiter(struct top_canvas *c, const struct top_limiter *m, int name)
{
	const struct top_view *v = c->view;
	struct top_line l;

	top_begin_line(c, &l);
	top_put_field(&l, m->is, "name", name);
	top_line_cell(&l, m->kind, strlen(m->kind), 13, false);
	top_put_rate(&l, v, m->granted, NUMBER);
	top_put_rate(&l, v, m->waits, NUMBER);
	if (strcmp(m->kind, "error control") == 0)
		top_line_put(&l, NUMBER, true, "-");
	else
		top_put_rate(&l, v, m->refused, NUMBER);
	top_line_put(
	    &l, NUMBER, true, "%lld", rlctl_table_number(m->is, "keys"));
	top_end_line(c, &l, false);
}

void
top_draw_limiters(struct top_canvas *c)
{
	const struct top_view *v = c->view;
	struct top_line l;
	int name = 7;
	size_t i;

	top_draw_gap(c);
	for (i = 0; i < v->limiter_count; i++)
		name = fit(name, json_object_get(v->limiters[i].is, "name"),
		    most_of_name(c));
	top_begin_line(c, &l);
	top_line_cell(&l, "limiter", 7, name, false);
	top_line_cell(&l, "kind", 4, 13, false);
	top_put_cell(&l, "granted/s", NUMBER);
	top_put_cell(&l, "waits/s", NUMBER);
	top_put_cell(&l, "refused/s", NUMBER);
	top_put_cell(&l, "keys", NUMBER);
	top_end_line(c, &l, true);
	for (i = 0; i < c->room[TOP_LIMITERS]; i++)
		draw_limiter(c, &v->limiters[i], name);
	draw_rest(c, TOP_LIMITERS);
}

static void
draw_key(struct top_canvas *c, const struct top_key *k, int rule)
{
	struct top_line l;
	char error[32];

	top_begin_line(c, &l);
	top_line_put(&l, NUMBER, true, "%lld", (long long)k->denied);
	snprintf(error, sizeof(error), "-%lld", (long long)k->error);
	top_put_cell(&l, k->error > 0 ? error : "", NUMBER);
	if (k->of > 0)
		top_line_put(&l, NUMBER, true, "%.1f%%",
		    100.0 * (double)k->denied / (double)k->of);
	else
		top_line_put(&l, NUMBER, true, "-");
	top_put_string(&l, k->rule, rule);
	top_put_string(&l, k->key, 0);
	top_end_line(c, &l, false);
}

void
top_draw_keys(struct top_canvas *c)
{
	const struct top_view *v = c->view;
	struct top_line l;
	int rule = 4;
	size_t i;

	top_draw_gap(c);
	for (i = 0; i < v->key_count; i++)
		rule = fit(rule, v->keys[i].rule, most_of_name(c));
	top_begin_line(c, &l);
	top_put_cell(&l, "denied", NUMBER);
	top_put_cell(&l, "error", NUMBER);
	top_put_cell(&l, "of rule", NUMBER);
	top_line_cell(&l, "rule", 4, rule, false);
	top_line_put(&l, 0, false, "key");
	top_end_line(c, &l, true);
	for (i = 0; i < c->room[TOP_KEYS]; i++)
		draw_key(c, &v->keys[i], rule);
	draw_rest(c, TOP_KEYS);
}
