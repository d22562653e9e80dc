/*
 * A view of rlctl top as text: the head, and a table for each list that there
 * is. On a terminal they share its rows, and each line ends with its columns.
 */
#include "client-shim/rlctl_top_draw.h"

#include <jansson.h>
#include <string.h>

#include "client-shim/rlctl_table.h"

/* What stood on a line goes before it is written: at the last column the
 * cursor stays on what was written. */
#define FIRST "\033[H\033[K"
#define NEXT  "\r\n\033[K"
#define LAST  "\r\n\033[J"
#define BOLD  "\033[1m"
#define PLAIN "\033[m"

void
top_end_line(struct top_canvas *c, const struct top_line *l, bool bold)
{
	if (c->shape.height == 0) {
		fprintf(c->to, "%s\n", l->text);
		return;
	}
	if (c->rows == c->shape.height)
		return;
	fputs(c->rows++ > 0 ? NEXT : FIRST, c->to);
	if (bold)
		fputs(BOLD, c->to);
	fputs(l->text, c->to);
	if (bold)
		fputs(PLAIN, c->to);
}

void
top_begin_line(const struct top_canvas *c, struct top_line *l)
{
	top_line_init(l, c->shape.width);
}

void
top_put_string(struct top_line *l, const json_t *string, int width)
{
	if (json_is_string(string))
		top_line_cell(l, json_string_value(string),
		    json_string_length(string), width, false);
	else
		top_line_cell(l, "-", 1, width, false);
}

void
top_put_field(
    struct top_line *l, const json_t *from, const char *name, int width)
{
	top_put_string(l, json_object_get(from, name), width);
}

/* In so many digits that it stays readable; "-" while it is not known. */
void
top_put_rate(
    struct top_line *l, const struct top_view *v, double rate, int width)
{
	if (!v->known)
		top_line_put(l, width, true, "-");
	else if (rate < 9.995)
		top_line_put(l, width, true, "%.2f", rate);
	else if (rate < 99.95)
		top_line_put(l, width, true, "%.1f", rate);
	else if (rate < 999999.5)
		top_line_put(l, width, true, "%.0f", rate);
	else
		top_line_put(l, width, true, "%.1fM", rate / 1e6);
}

void
top_put_share(struct top_line *l, const struct top_view *v, double part,
    double whole, int width)
{
	if (!v->known || whole <= 0)
		top_line_put(l, width, true, "-");
	else
		top_line_put(l, width, true, "%.1f%%", 100 * part / whole);
}

void
top_put_cell(struct top_line *l, const char *text, int width)
{
	top_line_cell(l, text, strlen(text), width, true);
}

/* "3 d 04:05:06" */
static void
format_span(char out[32], long long ms)
{
	const long long s = ms / 1000;

	if (s < 86400)
		snprintf(out, 32, "%02lld:%02lld:%02lld", s / 3600, s / 60 % 60,
		    s % 60);
	else
		snprintf(out, 32, "%lld d %02lld:%02lld:%02lld", s / 86400,
		    s / 3600 % 24, s / 60 % 60, s % 60);
}

static void
draw_agent(struct top_canvas *c, unsigned int restarts)
{
	const json_t *status = c->view->now->status;
	char span[32];
	struct top_line l;

	format_span(span, rlctl_table_number(status, "uptime_ms"));
	top_begin_line(c, &l);
	top_line_put(&l, 0, false,
	    "rl-agent %.40s: %s, up %s, configuration %lld",
	    rlctl_table_text(status, "version"),
	    json_is_true(json_object_get(status, "draining")) ? "draining"
	    : json_is_true(json_object_get(status, "ready"))  ? "ready"
							      : "not ready",
	    span, rlctl_table_number(status, "generation"));
	if (restarts == 1)
		top_line_put(&l, 0, false, "(it started again meanwhile)");
	else if (restarts > 1)
		top_line_put(&l, 0, false,
		    "(it started again meanwhile, %u times)", restarts);
	top_end_line(c, &l, true);
}

static void
draw_decisions(struct top_canvas *c)
{
	const struct top_view *v = c->view;
	struct top_line l;

	top_begin_line(c, &l);
	top_put_cell(&l, "decisions/s", 0);
	top_put_rate(&l, v, v->decisions, 0);
	top_line_put(&l, 0, false, " in flight %lld",
	    rlctl_table_number(v->now->status, "inflight"));
	top_put_cell(&l, " denied", 0);
	top_put_share(&l, v, v->denied, v->decisions, 0);
	top_put_cell(&l, " failed", 0);
	top_put_share(&l, v, v->failed, v->decisions, 0);
	top_put_cell(&l, " would-deny", 0);
	top_put_share(&l, v, v->would_deny, v->decisions, 0);
	top_end_line(c, &l, false);
}

/* What became of the last reload, when it was bad, and why there are no keys,
 * when there could be. */
static void
draw_remarks(struct top_canvas *c)
{
	const struct top_sample *s = c->view->now;
	const json_t *error =
	    json_object_get(json_object_get(s->status, "reload"), "error");
	struct top_line l;

	if (json_is_string(error)) {
		top_begin_line(c, &l);
		top_line_put(&l, 0, false, "the last reload failed:");
		top_put_string(&l, error, 0);
		top_end_line(c, &l, false);
	}
	if (s->keys == NULL && s->keys_trouble[0] != '\0') {
		top_begin_line(c, &l);
		top_line_put(
		    &l, 0, false, "no denied keys: %s", s->keys_trouble);
		top_end_line(c, &l, false);
	}
}

/* Two rows of each section are its gap and its title, and one is the least of
 * it; what is left over goes to the first that want it. */
static void
share_rows(struct top_canvas *c)
{
	long left = c->shape.height - c->rows;
	size_t wanted, s;
	bool grew = true;

	for (s = 0; s < TOP_SECTIONS; s++) {
		c->room[s] = c->shape.height == 0 ? c->counts[s] : 0;
		if (c->counts[s] > 0 || s < TOP_LIMITERS)
			left -= 2;
	}
	while (c->shape.height > 0 && left > 0 && grew) {
		grew = false;
		for (s = 0; s < TOP_SECTIONS && left > 0; s++) {
			/* The last row of one that is cut tells of the rest. */
			wanted = c->counts[s] - c->room[s];
			if (wanted == 0)
				continue;
			c->room[s]++;
			left--;
			grew = true;
		}
	}
	for (s = 0; s < TOP_SECTIONS && c->shape.height > 0; s++) {
		if (c->room[s] > 0 && c->room[s] < c->counts[s])
			c->room[s]--;
	}
}

static void
draw_sections(struct top_canvas *c)
{
	c->counts[TOP_RULES] = c->view->rule_count;
	c->counts[TOP_SERVERS] = c->view->server_count;
	c->counts[TOP_LIMITERS] = c->view->limiter_count;
	c->counts[TOP_KEYS] = c->view->key_count;
	share_rows(c);
	top_draw_rules(c);
	top_draw_servers(c);
	if (c->counts[TOP_LIMITERS] > 0)
		top_draw_limiters(c);
	if (c->counts[TOP_KEYS] > 0)
		top_draw_keys(c);
}

static void
draw_trouble(struct top_canvas *c, const char *socket)
{
	const char *trouble = c->view->now->trouble;
	struct top_line l;

	top_begin_line(c, &l);
	top_line_put(&l, 0, false, "no agent at");
	top_line_cell(&l, socket, strlen(socket), 0, false);
	top_end_line(c, &l, true);
	top_begin_line(c, &l);
	top_line_cell(&l, trouble, strlen(trouble), 0, false);
	top_end_line(c, &l, false);
	top_begin_line(c, &l);
	top_line_put(&l, 0, false, "it is asked again");
	top_end_line(c, &l, false);
}

void
top_draw(FILE *to, const struct top_view *v, struct top_shape shape,
    const char *socket, unsigned int restarts)
{
	struct top_canvas c = {.to = to, .view = v, .shape = shape};

	if (v->now->status != NULL) {
		draw_agent(&c, restarts);
		draw_decisions(&c);
		draw_remarks(&c);
		draw_sections(&c);
	} else {
		draw_trouble(&c, socket);
	}
	if (c.rows < shape.height)
		fputs(LAST, to);
}
