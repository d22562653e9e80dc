/*
 * When to ask for the servers and what to make of the answer. At most one
 * round runs; else the timer waits for the next one. The snapshot in force is
 * replaced only by a usable one, or by an empty one that DNS has said twice.
 *
 * Spreads go upwards, by up to a tenth: a question that comes before the TTL
 * is over only gets the rest of that TTL from a caching resolver.
 */
#include "daemon/discovery.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/errorrate.h"
#include "daemon/discovery_round.h"
#include "daemon/io/dns.h"
#include "daemon/log.h"

#define MS_US     INT64_C(1000)
#define RETRY_MAX (30000 * MS_US)
#define DNS_TRIES 2 /* rounds over the nameservers */

#define LINES_BURST 5
#define LINES_MIN   (1000 * MS_US)
#define LINES_MAX   (60000 * MS_US)

struct discovery {
	struct loop *loop;
	struct random_pool *random;
	const struct config_tenant *tenant;
	discovery_fn *fn;
	void *arg;
	struct loop_task report;       /* of static servers */
	struct dns *dns;               /* NULL: static servers */
	struct loop_timer *timer;      /* NULL: static servers */
	struct discovery_round *round; /* NULL: none runs */
	struct errorrate pace;         /* of retries */
	struct members *members;       /* in force; NULL: never any */
	bool answered;                 /* a round is over */
	bool empty_once;               /* DNS said so; to be confirmed */
	bool forced;                   /* the next round is */
	int64_t began;                 /* the last round */
	int64_t next;
	struct errorrate lines; /* paces the log */
	uint64_t unsaid;        /* lines that it kept back */
	struct discovery_counters counters;
	char error[DISCOVERY_ERROR_MAX];
};

static void on_round(void *arg, const struct discovery_result *result);

/* Uniform in 0..max; 0 when the pool fails: only the spread is lost. */
static int64_t
spread(struct discovery *d, int64_t max)
{
	uint64_t random = 0;

	if (random_bytes(d->random, &random, sizeof random) != 0)
		return 0;
	return (int64_t)(random % ((uint64_t)max + 1));
}

static void
schedule(struct discovery *d, int64_t when)
{
	d->next = when;
	loop_timer_set(d->timer, when);
}

/*
 * Each failure is a begin without a success. Forced rounds may fail before a
 * delay is over and would queue behind it, hence the bound.
 */
static int64_t
retry_delay(struct discovery *d)
{
	int64_t delay = errorrate_begin(&d->pace, loop_now());

	if (delay > d->pace.max_us)
		delay = d->pace.max_us;
	return delay + spread(d, delay / 10);
}

/*
 * Afresh instead of by errorrate_success(): one complete answer ends an
 * outage, so the next one starts at the minimum, and no delay that was handed
 * out before is left to wait for.
 */
static void
reset_pace(struct discovery *d)
{
	int64_t min = d->tenant->dns.forced_min_ms * MS_US;

	if (min < MS_US)
		min = MS_US;
	errorrate_init(&d->pace, 0, min, min > RETRY_MAX ? min : RETRY_MAX);
}

/* min(refresh, max(TTL, forced_min)) and up to a tenth more. */
static int64_t
refresh_delay(struct discovery *d, uint32_t ttl)
{
	const struct config_dns *dns = &d->tenant->dns;
	int64_t delay = (int64_t)ttl * 1000 * MS_US;

	if (delay < dns->forced_min_ms * MS_US)
		delay = dns->forced_min_ms * MS_US;
	if (delay > dns->refresh_ms * MS_US)
		delay = dns->refresh_ms * MS_US;
	return delay + spread(d, delay / 10);
}

/* Whoever answers DNS for us decides how often this is called. */
static bool
may_say(struct discovery *d)
{
	return errorrate_try(&d->lines, loop_now(), &d->unsaid);
}

static void
say_error(struct discovery *d)
{
	if (!may_say(d))
		return;
	log_warning("discovery",
	    "tenant=\"%s\" servers=%u unsaid=%" PRIu64 " error=\"%s\"",
	    d->tenant->name, d->members != NULL ? d->members->count : 0,
	    d->unsaid, d->error);
	d->unsaid = 0;
}

static void
say_members(struct discovery *d, uint32_t dropped)
{
	if (!may_say(d))
		return;
	log_info("members",
	    "tenant=\"%s\" servers=%u dropped=%u unsaid=%" PRIu64,
	    d->tenant->name, d->members->count, dropped, d->unsaid);
	d->unsaid = 0;
}

static void
fail(struct discovery *d, const char *error)
{
	d->answered = true;
	d->counters.failures++;
	snprintf(d->error, sizeof d->error, "%s", error);
	say_error(d);
	schedule(d, loop_now() + retry_delay(d));
}

static void
begin_round(void *arg)
{
	struct discovery *d = arg;

	d->began = loop_now();
	d->next = POLICY_NEVER;
	d->forced = false;
	d->counters.refreshes++;
	d->round = discovery_round_new(
	    d->dns, d->tenant->dns.name, d->members, on_round, d);
	if (d->round == NULL)
		fail(d, "cannot ask for SRV records: no memory or no name");
}

/* Frees what the result of the round lends, too. */
static void
end_round(struct discovery *d)
{
	discovery_round_free(d->round);
	d->round = NULL;
}

static bool
have_members(const struct discovery *d)
{
	return d->members != NULL && d->members->count > 0;
}

/* Takes next. Reporting is the last act: the callee may free d. */
static void
install(struct discovery *d, struct members *next, uint32_t dropped)
{
	bool equal = members_equal(d->members, next);

	members_unref(d->members);
	d->members = next;
	d->counters.dropped += dropped;
	if (equal)
		return;
	d->counters.changes++;
	say_members(d, dropped);
	d->fn(d->arg, next);
}

static void
found(struct discovery *d, const struct discovery_result *result)
{
	uint32_t dropped = 0;
	struct members *next =
	    members_build(result->targets, result->count, d->members, &dropped);
	int64_t delay = refresh_delay(d, result->ttl), retry;
	bool partial = result->partial;

	end_round(d);
	if (next == NULL) {
		fail(d, "no memory for the servers");
		return;
	}
	d->answered = true;
	d->empty_once = false;
	d->error[0] = '\0';
	if (partial) {
		retry = retry_delay(d);
		if (retry < delay)
			delay = retry;
	} else {
		reset_pace(d);
	}
	schedule(d, loop_now() + delay);
	install(d, next, dropped);
}

/* DNS says that there is no server: believed when it is said again. */
static void
empty(struct discovery *d, const struct discovery_result *result)
{
	struct members *none;
	bool confirmed = d->empty_once;

	fail(d, result->error);
	d->empty_once = true;
	end_round(d);
	if (!confirmed || !have_members(d))
		return;
	none = members_build(NULL, 0, NULL, NULL);
	if (none != NULL)
		install(d, none, 0);
}

static void
on_round(void *arg, const struct discovery_result *result)
{
	struct discovery *d = arg;

	d->counters.bad_targets += result->bad_targets;
	d->counters.missing_addresses += result->missing_addresses;
	switch (result->verdict) {
	case DISCOVERY_FOUND:
		found(d, result);
		return;
	case DISCOVERY_EMPTY:
		empty(d, result);
		return;
	case DISCOVERY_FAILED:
		fail(d, result->error);
		end_round(d);
		return;
	}
}

static void
report_static(void *arg)
{
	struct discovery *d = arg;

	d->counters.changes++;
	d->fn(d->arg, d->members);
}

static bool
start_static(struct discovery *d)
{
	d->members = members_build(
	    d->tenant->servers, d->tenant->server_count, NULL, NULL);
	if (d->members == NULL)
		return false;
	loop_defer(d->loop, &d->report);
	return true;
}

static bool
start_dns(struct discovery *d)
{
	const struct config_dns *config = &d->tenant->dns;
	const struct dns_options options = {
	    .nameservers = config->nameservers,
	    .nameserver_count = config->nameserver_count,
	    .random = d->random,
	    .timeout_ms = config->timeout_ms,
	    .tries = DNS_TRIES,
	    .require_ad = config->require_ad,
	};

	d->dns = dns_new(d->loop, &options);
	d->timer = loop_timer_new(d->loop, begin_round, d);
	if (d->dns == NULL || d->timer == NULL)
		return false;
	reset_pace(d);
	begin_round(d);
	return true;
}

struct discovery *
discovery_new(struct loop *loop, struct random_pool *random,
    const struct config_tenant *tenant, discovery_fn *fn, void *arg)
{
	struct discovery *d = calloc(1, sizeof *d);
	bool started;

	if (d == NULL)
		return NULL;
	d->loop = loop;
	d->random = random;
	d->tenant = tenant;
	d->fn = fn;
	d->arg = arg;
	d->next = POLICY_NEVER;
	errorrate_init(&d->lines, LINES_BURST, LINES_MIN, LINES_MAX);
	loop_task_init(&d->report, report_static, d);
	started = tenant->server_count > 0 ? start_static(d) : start_dns(d);
	if (!started) {
		discovery_free(d);
		return NULL;
	}
	return d;
}

void
discovery_free(struct discovery *d)
{
	if (d == NULL)
		return;
	loop_cancel(d->loop, &d->report);
	loop_timer_free(d->timer);
	discovery_round_free(d->round);
	dns_free(d->dns);
	members_unref(d->members);
	free(d);
}

/*
 * A round that runs, one that is forced already and one that is due sooner
 * serve this wish too.
 */
void
discovery_force(struct discovery *d)
{
	const struct config_dns *dns = &d->tenant->dns;
	int64_t now = loop_now(), when;

	if (d->dns == NULL || d->round != NULL || d->forced)
		return;
	when = d->began + dns->forced_min_ms * MS_US;
	if (when < now)
		when = now;
	when += spread(d, dns->jitter_ms * MS_US);
	if (when >= d->next)
		return;
	d->forced = true;
	d->counters.forced++;
	schedule(d, when);
}

enum discovery_state
discovery_state(const struct discovery *d)
{
	if (d->dns == NULL)
		return DISCOVERY_STATIC;
	if (have_members(d))
		return DISCOVERY_READY;
	return d->answered ? DISCOVERY_UNAVAILABLE : DISCOVERY_RUNNING;
}

const struct discovery_counters *
discovery_counters(const struct discovery *d)
{
	return &d->counters;
}

const char *
discovery_error(const struct discovery *d)
{
	return d->error;
}

int64_t
discovery_next(const struct discovery *d)
{
	return d->next;
}

const struct dns_counters *
discovery_dns(const struct discovery *d)
{
	return d->dns != NULL ? dns_counters(d->dns) : NULL;
}
