/*
 * A tenant's policy as an operator reads it: when what happens, then what the
 * estimate says. All times count from the moment that a caller asked.
 */
#include "client-shim/rlctl_policy.h"

#include <jansson.h>
#include <stdio.h>

#include "client-shim/rlctl.h"

/* Every deadline of a plan is a whole number of units, and so of ms. */
static long long
ms(int64_t us)
{
	return us / 1000;
}

/* Preference is over as soon as it begins: then nobody is waited for. */
static void
print_preference(int64_t start, int64_t until)
{
	if (until == start)
		fputs("take the first answer, ", stdout);
	else
		printf("prefer the oldest until %lld ms, ", ms(until));
}

static void
print_rounds(const struct policy_plan *plan)
{
	const int64_t last_end = plan->round_end_us[plan->rounds - 1];
	const bool has_final = plan->horizon_us > last_end;
	const char *next = "next round";
	int64_t start = 0;

	for (uint32_t k = 0; k < plan->rounds; k++) {
		if (k + 1 == plan->rounds)
			next = has_final ? "final receive" : "give up";
		printf("  round %u: send at %lld ms, ", k, ms(start));
		print_preference(start, plan->prefer_end_us[k]);
		start = plan->round_end_us[k];
		printf("%s at %lld ms\n", next, ms(start));
	}
	if (!has_final) {
		puts("  final receive: none");
		return;
	}
	printf("  final receive: from %lld ms, ", ms(last_end));
	print_preference(last_end, plan->final_prefer_end_us);
	printf("give up at %lld ms\n", ms(plan->horizon_us));
}

static void
print_limits(const json_t *tenant, const struct policy_plan *plan)
{
	const json_t *limit = json_object_get(tenant, "dedup_limit_ms");

	printf(
	    "  horizon: %lld ms, for which servers are asked to remember its "
	    "requests\n",
	    ms(plan->horizon_us));
	fputs("  key: format ", stdout);
	rlctl_print_field(tenant, "key_format");
	fputs(", ", stdout);
	if (json_is_null(limit))
		puts("no deduplication limit");
	else
		printf("deduplication limit %" JSON_INTEGER_FORMAT
		       " ms, %lld ms above the horizon\n",
		    json_integer_value(limit),
		    json_integer_value(limit) - ms(plan->horizon_us));
	printf("  completion delivery: %s\n",
	    plan->completion_delivery ? "on" : "off");
	if (plan->suspect_after == 0)
		puts("  adaptive preference: off");
	else
		printf("  adaptive preference: on, after %u misses in a row; "
		       "not part of the estimate\n",
		    plan->suspect_after);
}

/* Of 20000 operations the least part is 0.005 %. */
static void
print_share(const char *what, uint32_t part, uint32_t whole)
{
	printf("%s%.3f %%", what, 100.0 * part / whole);
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
	printf("  estimate: %u simulated operations, --rtt %.15g --loss %.15g "
	       "--servers %u\n",
	    e->operations, (double)in->rtt_us / 1000, in->loss, in->servers);
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

	fputs("tenant ", stdout);
	rlctl_print_field(tenant, "name");
	fputs(": ", stdout);
	if (json_is_null(servers))
		puts("no server known yet");
	else
		printf("%" JSON_INTEGER_FORMAT " server%s known\n", count,
		    count == 1 ? "" : "s");
	print_rounds(in->plan);
	print_limits(tenant, in->plan);
	if (estimate != NULL)
		print_estimate(in, estimate);
	else
		puts("  estimate: none, for no server is known; give --servers "
		     "N");
}
