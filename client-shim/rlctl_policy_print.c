/*
 * A tenant's policy as an operator reads it: when what happens, then what the
 * estimate says. All times count from the moment that a caller asked.
 */
#include "client-shim/rlctl_policy.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

static json_int_t
number(const json_t *from, const char *name)
{
	return json_integer_value(json_object_get(from, name));
}

/* Preference is over as soon as it begins: then nobody is waited for. */
static void
print_preference(const json_t *interval)
{
	const json_int_t until = number(interval, "prefer_until_ms");

	if (until == number(interval, "start_ms"))
		fputs("take the first answer, ", stdout);
	else
		printf("prefer the oldest until %" JSON_INTEGER_FORMAT " ms, ",
		    until);
}

static void
print_rounds(const json_t *tenant)
{
	const json_t *rounds = json_object_get(tenant, "rounds");
	const json_t *final = json_object_get(tenant, "final"), *round;
	const size_t count = json_array_size(rounds);
	const char *next;

	for (size_t k = 0; k < count; k++) {
		round = json_array_get(rounds, k);
		next = k + 1 < count         ? "next round"
		       : json_is_null(final) ? "give up"
					     : "final receive";
		printf("  round %zu: send at %" JSON_INTEGER_FORMAT " ms, ", k,
		    number(round, "start_ms"));
		print_preference(round);
		printf("%s at %" JSON_INTEGER_FORMAT " ms\n", next,
		    number(round, "end_ms"));
	}
	if (json_is_null(final)) {
		puts("  final receive: none");
		return;
	}
	printf("  final receive: from %" JSON_INTEGER_FORMAT " ms, ",
	    number(final, "start_ms"));
	print_preference(final);
	printf("give up at %" JSON_INTEGER_FORMAT " ms\n",
	    number(final, "end_ms"));
}

static void
print_limits(const json_t *tenant)
{
	const json_t *limit = json_object_get(tenant, "dedup_limit_ms");
	const json_t *policy = json_object_get(tenant, "policy");
	const json_int_t horizon = number(tenant, "horizon_ms");
	const json_int_t after = number(policy, "suspect_after");

	printf("  horizon: %" JSON_INTEGER_FORMAT
	       " ms, the deduplication TTL of its requests\n",
	    horizon);
	printf("  key: format %s, ",
	    json_string_value(json_object_get(tenant, "key_format")));
	if (json_is_null(limit))
		puts("no deduplication limit");
	else
		printf("deduplication limit %" JSON_INTEGER_FORMAT
		       " ms, slack %" JSON_INTEGER_FORMAT " ms\n",
		    json_integer_value(limit),
		    json_integer_value(limit) - horizon);
	printf("  completion delivery: %s\n",
	    json_is_true(json_object_get(policy, "completion_delivery"))
		? "on"
		: "off");
	if (after == 0)
		puts("  adaptive preference: off");
	else
		printf("  adaptive preference: on, after %" JSON_INTEGER_FORMAT
		       " misses in a row\n",
		    after);
}

/* At most 10^6 operations: of a part, three digits are never all or none. */
static void
print_share(const char *what, uint32_t part, uint32_t whole)
{
	printf("%s%.*f %%", what, part == 0 || part == whole ? 0 : 3,
	    100.0 * part / whole);
}

static void
print_by_round(const struct estimate_input *in, const struct estimate *e)
{
	const struct policy_plan *plan = in->plan;
	const bool has_final =
	    plan->horizon_us > plan->round_end_us[plan->rounds - 1];

	fputs("    decided in ", stdout);
	for (uint32_t k = 0; k < plan->rounds; k++) {
		printf("%sround %u", k > 0 ? ", " : "", k);
		print_share(": ", e->by_round[k], e->decided);
	}
	if (has_final)
		print_share(
		    ", final receive: ", e->by_round[plan->rounds], e->decided);
	putchar('\n');
}

static void
print_estimate(const struct estimate_input *in, const struct estimate *e)
{
	printf("  estimate: %u simulated operations, --rtt %.15g --loss "
	       "%.15g\n",
	    e->operations, (double)in->rtt_us / 1000, in->loss);
	print_share("    decided: ", e->decided, e->operations);
	putchar('\n');
	if (e->decided == 0)
		return;
	printf("    latency of the decided: mean %.15g ms, p99 %.15g ms\n",
	    (double)e->mean_us / 1000, (double)e->p99_us / 1000);
	printf("    request datagrams per decision: %.2f, of them %.2f "
	       "completion delivery\n",
	    (double)e->requests / e->decided,
	    (double)e->deliveries / e->decided);
	print_share("    decided by the oldest: ", e->by_oldest, e->decided);
	putchar('\n');
	print_by_round(in, e);
}

void
rlctl_policy_print(const json_t *tenant, const struct estimate_input *in,
    const struct estimate *estimate)
{
	const json_t *servers = json_object_get(tenant, "servers");
	const json_int_t count = json_integer_value(servers);

	printf(
	    "tenant %s: ", json_string_value(json_object_get(tenant, "name")));
	if (json_is_null(servers))
		puts("no server known yet");
	else
		printf("%" JSON_INTEGER_FORMAT " server%s known\n", count,
		    count == 1 ? "" : "s");
	print_rounds(tenant);
	print_limits(tenant);
	if (estimate != NULL)
		print_estimate(in, estimate);
	else
		puts("  estimate: none, for no server is known");
}
