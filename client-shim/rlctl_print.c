/* A decision as rlctl check prints it: text, or one line of JSON. */
#include "client-shim/rlctl.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *
name_json(const char *name, size_t len)
{
	json_t *s = json_stringn(name, len);
	char *escaped, *to;
	size_t i;

	if (s != NULL)
		return s;
	/* Not UTF-8: JSON cannot carry it but escaped. */
	escaped = to = malloc(4 * len + 1);
	if (escaped == NULL)
		return json_null();
	for (i = 0; i < len; i++)
		to += sprintf(to,
		    name[i] >= ' ' && name[i] <= '~' ? "%c" : "\\x%02x",
		    (unsigned char)name[i]);
	s = json_string(escaped);
	free(escaped);
	return s;
}

static void
detail_json(json_t *out, const struct rl_detail *detail)
{
	json_t *resources = json_array(), *guards = json_array();
	const struct rl_resource_result *r;
	const struct rl_guard_result *g;
	size_t i;

	for (i = 0; i < detail->resource_count; i++) {
		r = &detail->resources[i];
		json_array_append_new(resources,
		    json_pack("{s:o, s:I, s:I, s:I, s:I, s:I}", "bucket",
			name_json(r->bucket, r->bucket_len), "window_ms",
			(json_int_t)r->window_ms, "limit", (json_int_t)r->limit,
			"tokens", (json_int_t)r->tokens, "deficit",
			(json_int_t)r->deficit, "actual_rate",
			(json_int_t)r->actual_rate));
	}
	for (i = 0; i < detail->guard_count; i++) {
		g = &detail->guards[i];
		json_array_append_new(guards,
		    json_pack("{s:o, s:I, s:I, s:b}", "tracker",
			name_json(g->tracker, g->tracker_len), "below_ms",
			(json_int_t)g->below_ms, "current_ms",
			(json_int_t)g->current_ms, "passed", g->passed));
	}
	json_object_set_new(out, "resources", resources);
	json_object_set_new(out, "guards", guards);
}

static json_t *
decision_json(const struct rl_decision *d)
{
	return json_pack("{s:s, s:b, s:s, s:s, s:o, s:o, s:o, s:o, "
			 "s:I, s:o}",
	    "outcome", rl_outcome_name(d->outcome), "permit", d->permit,
	    "source", rl_source_name(d->source), "reason",
	    rl_reason_name(d->reason), "limit",
	    d->limit_len > 0 ? name_json(d->limit, d->limit_len) : json_null(),
	    "retry_after_ms",
	    d->retry_after_ms > 0 ? json_integer(d->retry_after_ms)
				  : json_null(),
	    "server_id",
	    d->has_server ? json_sprintf("%" PRIu64, d->server_id)
			  : json_null(),
	    "round", d->has_server ? json_integer(d->round) : json_null(),
	    "elapsed_us", (json_int_t)d->elapsed_us, "text",
	    d->text[0] != '\0' ? name_json(d->text, strlen(d->text))
			       : json_null());
}

static void
print_line(FILE *to, json_t *out)
{
	json_dumpf(out, to, JSON_COMPACT);
	fputc('\n', to);
	json_decref(out);
}

static void
print_json(
    FILE *to, const struct rl_decision *d, const struct rl_detail *detail)
{
	json_t *out = decision_json(d);

	if (out != NULL && detail != NULL)
		detail_json(out, detail);
	print_line(to, out);
}

void
rlctl_print_wait(FILE *to, const struct rl_decision *d)
{
	const int known = d->wait_us > 0 || d->outcome == RL_ALLOWED ||
			  d->outcome == RL_DENIED;
	json_t *out = decision_json(d);

	if (out != NULL)
		json_object_set_new(out, "wait_us",
		    known ? json_integer((json_int_t)d->wait_us) : json_null());
	print_line(to, out);
}

static const char *
title(enum rl_outcome outcome)
{
	switch (outcome) {
	case RL_ALLOWED:
		return "Allowed";
	case RL_DENIED:
		return "Denied";
	case RL_FAILED:
		return "Failed";
	case RL_CANCELLED:
		return "Cancelled";
	}
	return "Failed";
}

/*
 * Names are any bytes; a terminal gets what is printable. Bytes that are no
 * UTF-8, and the C1 control characters, which are, could steer it.
 */
void
rlctl_write_name(FILE *to, const char *name, size_t len)
{
	json_t *utf8 = json_stringn(name, len);
	unsigned char c, next;
	size_t i;

	for (i = 0; i < len; i++) {
		c = (unsigned char)name[i];
		next = i + 1 < len ? (unsigned char)name[i + 1] : 0;
		if (c == 0xC2 && next < 0xA0) {
			fputc('?', to);
			i++;
		} else if (c < ' ' || c == 0x7f || (c >= 0x80 && !utf8)) {
			fputc('?', to);
		} else {
			fputc(c, to);
		}
	}
	json_decref(utf8);
}

void
rlctl_print_name(const char *name, size_t len)
{
	rlctl_write_name(stdout, name, len);
}

static void
print_detail(FILE *to, const struct rl_detail *detail)
{
	const struct rl_resource_result *r;
	const struct rl_guard_result *g;
	size_t i;

	for (i = 0; i < detail->resource_count; i++) {
		r = &detail->resources[i];
		fputs("  bucket ", to);
		rlctl_write_name(to, r->bucket, r->bucket_len);
		fprintf(to,
		    ": %s, asked %u, short of %u, rate %u of %u in %u ms\n",
		    r->deficit == 0 ? "granted" : "denied", r->tokens,
		    r->deficit, r->actual_rate, r->limit, r->window_ms);
	}
	for (i = 0; i < detail->guard_count; i++) {
		g = &detail->guards[i];
		fputs("  tracker ", to);
		rlctl_write_name(to, g->tracker, g->tracker_len);
		fprintf(to, ": %s, %u ms, must be below %u ms\n",
		    g->passed ? "passed" : "denied", g->current_ms,
		    g->below_ms);
	}
}

static void
print_text(
    FILE *to, const struct rl_decision *d, const struct rl_detail *detail)
{
	fprintf(to, "%s%s: permit=%s source=%s reason=%s", title(d->outcome),
	    d->source == RL_SOURCE_SHADOW ? ", but the rule only watches" : "",
	    d->permit ? "yes" : "no", rl_source_name(d->source),
	    rl_reason_name(d->reason));
	if (d->limit_len > 0) {
		fputs(" limit=", to);
		rlctl_write_name(to, d->limit, d->limit_len);
	}
	if (d->retry_after_ms > 0)
		fprintf(to, " retry_after_ms=%u", d->retry_after_ms);
	if (d->has_server)
		fprintf(
		    to, " server=%" PRIu64 " round=%u", d->server_id, d->round);
	fprintf(to, " elapsed_us=%" PRIu64, d->elapsed_us);
	if (d->text[0] != '\0') {
		fputs(" (", to);
		rlctl_write_name(to, d->text, strlen(d->text));
		fputc(')', to);
	}
	fputc('\n', to);
	if (detail != NULL)
		print_detail(to, detail);
}

void
rlctl_print(FILE *to, const struct rlctl *ctl,
    const struct rl_decision *decision, const struct rl_detail *detail)
{
	if (ctl->json)
		print_json(to, decision, detail);
	else
		print_text(to, decision, detail);
}
