/* What rlctl bench measured, as lines and as JSON. */
#include "client-shim/rlctl_bench.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "proto/ipc.h"

static const struct {
	const char *title;
	const char *field;
	double share;
} percentiles[] = {
    {"min", "min", 0},
    {"p50", "p50", 0.5},
    {"p90", "p90", 0.9},
    {"p99", "p99", 0.99},
    {"p99.9", "p99_9", 0.999},
    {"max", "max", 1},
};

#define PERCENTILES (sizeof(percentiles) / sizeof(percentiles[0]))

static uint64_t
by_server(const struct load_result *r)
{
	return r->checks - r->empty - r->policy - r->local - r->shadow;
}

static double
per_second(uint64_t n, int64_t us)
{
	return us > 0 ? (double)n * 1e6 / (double)us : 0;
}

static double
rate_kept(const struct load_result *r)
{
	return per_second(r->asked, r->asking_us);
}

static json_t *
count(uint64_t n)
{
	return json_integer((json_int_t)n);
}

/* To a tenth: more digits than that tell nothing. */
static json_t *
tenths(double v)
{
	return json_real((double)(int64_t)(v * 10 + 0.5) / 10);
}

/* Arguments are any bytes; JSON text is UTF-8. */
static json_t *
name(const char *text)
{
	json_t *out = text != NULL ? json_string(text) : NULL;

	return out != NULL ? out : json_null();
}

/* A line that may have an agent's text in it; null for none alone. */
static json_t *
line(const char *text)
{
	json_t *out = text != NULL ? json_string(text) : json_null();

	return out != NULL ? out : json_string("not UTF-8; stderr has it");
}

static json_t *
reasons_json(const struct load_result *r)
{
	json_t *out = json_object();
	int i;

	for (i = 0; i < LOAD_REASONS; i++)
		if (r->reasons[i] > 0)
			json_object_set_new(out,
			    ipc_reason_name((enum ipc_reason)i),
			    count(r->reasons[i]));
	return out;
}

static json_t *
latency_json(const struct load *load)
{
	json_t *out = json_object();
	size_t i;

	for (i = 0; i < PERCENTILES; i++)
		json_object_set_new(out, percentiles[i].field,
		    load_result(load)->checks > 0
			? tenths(load_latency(load, percentiles[i].share))
			: json_null());
	return out;
}

static json_t *
request_json(const struct rlctl_bench *b)
{
	const struct load_options *o = &b->load;

	return json_pack("{so so sI ss si si si so so sI sb so}", "rule",
	    name(o->rule), "key", name(o->key), "keys", (json_int_t)o->keys,
	    "order", o->order == LOAD_RANDOM ? "random" : "sequential",
	    "tokens", (int)o->tokens, "connections", (int)o->connections,
	    "window", (int)o->window, "rate",
	    o->rate > 0 ? count(o->rate) : json_null(), "deadline_ms",
	    o->deadline_ms > 0 ? count(o->deadline_ms) : json_null(), "warmup",
	    (json_int_t)b->warmup, "interrupted", b->interrupted, "error",
	    line(b->error));
}

static void
print_json(const struct rlctl_bench *b, const struct load *load)
{
	const struct load_result *r = load_result(load);
	json_t *out = request_json(b);

	json_object_set_new(out, "elapsed_us", json_integer(r->elapsed_us));
	json_object_set_new(out, "asked", count(r->asked));
	json_object_set_new(out, "unasked", count(r->unasked));
	json_object_set_new(out, "rate_kept",
	    b->load.rate > 0 ? tenths(rate_kept(r)) : json_null());
	json_object_set_new(out, "checks", count(r->checks));
	json_object_set_new(
	    out, "per_second", tenths(per_second(r->checks, r->elapsed_us)));
	json_object_set_new(out, "permitted", count(r->permitted));
	json_object_set_new(out, "outcomes",
	    json_pack("{so so so so}", "allowed", count(r->allowed), "denied",
		count(r->denied), "failed", count(r->failed), "cancelled",
		count(r->cancelled)));
	json_object_set_new(out, "sources",
	    json_pack("{so so so so so}", "server", count(by_server(r)),
		"empty", count(r->empty), "policy", count(r->policy), "local",
		count(r->local), "shadow", count(r->shadow)));
	json_object_set_new(out, "reasons", reasons_json(r));
	json_object_set_new(
	    out, "first_failure", line(load_first_failure(load)));
	json_object_set_new(out, "latency_us", latency_json(load));
	rlctl_print_json(out);
	json_decref(out);
}

static void
print_reasons(const struct load_result *r)
{
	const char *between = "reasons     ";
	int i;

	for (i = IPC_REASON_OK + 1; i < LOAD_REASONS; i++) {
		if (r->reasons[i] == 0)
			continue;
		printf("%s%s %" PRIu64, between,
		    ipc_reason_name((enum ipc_reason)i), r->reasons[i]);
		between = ", ";
	}
	if (*between == ',')
		putchar('\n');
}

static void
print_latency(const struct load *load)
{
	const char *between = "latency ms  ";
	size_t i;

	if (load_result(load)->checks == 0)
		return;
	for (i = 0; i < PERCENTILES; i++) {
		printf("%s%s %.3f", between, percentiles[i].title,
		    load_latency(load, percentiles[i].share) / 1000);
		between = ", ";
	}
	putchar('\n');
}

static const char *
cut_short(const struct rlctl_bench *b, const struct load_result *r)
{
	if (b->error != NULL)
		return ", ended by an error";
	if (r->given_up)
		return ", given up";
	return b->interrupted ? ", interrupted" : "";
}

static void
print_rate(const struct load_result *r, uint32_t rate)
{
	if (rate == 0)
		return;
	printf("rate        %" PRIu32 " per second, %.1f kept", rate,
	    rate_kept(r));
	if (r->unasked > 0)
		printf("; had no room until the end %" PRIu64, r->unasked);
	putchar('\n');
}

static void
print_text(const struct rlctl_bench *b, const struct load *load)
{
	const struct load_result *r = load_result(load);

	printf("checks      %" PRIu64 " in %.3f s%s, %.0f per second\n",
	    r->checks, (double)r->elapsed_us / 1e6, cut_short(b, r),
	    per_second(r->checks, r->elapsed_us));
	print_rate(r, b->load.rate);
	printf("in flight   %s%zu on %zu connection%s\n",
	    b->load.rate > 0 ? "at most " : "",
	    b->load.window * b->load.connections, b->load.connections,
	    b->load.connections == 1 ? "" : "s");
	printf("outcomes    allowed %" PRIu64 ", denied %" PRIu64
	       ", failed %" PRIu64 ", cancelled %" PRIu64 "; permitted %" PRIu64
	       "\n",
	    r->allowed, r->denied, r->failed, r->cancelled, r->permitted);
	printf("decided by  server %" PRIu64 ", empty %" PRIu64
	       ", policy %" PRIu64 ", local %" PRIu64 ", shadow %" PRIu64 "\n",
	    by_server(r), r->empty, r->policy, r->local, r->shadow);
	print_reasons(r);
	print_latency(load);
}

void
rlctl_bench_print(const struct rlctl *ctl, const struct rlctl_bench *bench,
    const struct load *load)
{
	if (ctl->json)
		print_json(bench, load);
	else
		print_text(bench, load);
}
