/*
 * What to make of an answer, and when to ask again. At most one round runs;
 * else the timer waits for the next one. The snapshot in force is replaced
 * only by a usable one, or by an empty one that DNS has said twice.
 */
#include "daemon/discovery.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/discovery_log.h"
#include "daemon/discovery_pace.h"
#include "daemon/discovery_round.h"
#include "daemon/io/dns.h"
#include "daemon/io/resolvconf.h"

#define MS_US     INT64_C(1000)
#define DNS_TRIES 2              /* rounds over the nameservers */
#define WATCH     (1000 * MS_US) /* between two looks at resolv.conf */

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
	struct discovery_pace pace;
	struct members *members; /* in force; NULL: never any */
	bool answered;           /* a round is over */
	bool empty_once;         /* DNS said so; to be confirmed */
	int64_t empty_until;     /* when caches forget that answer */
	bool forced;             /* the next round is */
	bool failing;            /* the last round did; next is a retry */
	int64_t failing_since;   /* with failing: the first in a row */
	int64_t began;           /* the last round */
	int64_t found_at;        /* the last one that named servers; or 0 */
	int64_t next;
	bool stopped; /* no round any more */
	struct discovery_log log;
	struct discovery_counters counters;
	char error[DISCOVERY_ERROR_MAX];
};

static void on_round(void *arg, const struct discovery_result *result);

/*
 * While a retry is due, resolv.conf is looked at now and then: an outage often
 * ends with another nameserver. When all is well each query reads it anyway.
 */
static void
arm(struct discovery *d)
{
	int64_t when = d->next, look = loop_now() + WATCH;

	if (d->failing && d->tenant->dns.nameserver_count == 0 && look < when)
		when = look;
	loop_timer_set(d->timer, when);
}

static void
schedule(struct discovery *d, int64_t when)
{
	d->next = when;
	arm(d);
}

/* How many servers. */
static uint32_t
known(const struct discovery *d)
{
	return d->members != NULL ? d->members->count : 0;
}

static void
fail(struct discovery *d, const char *error)
{
	d->answered = true;
	if (!d->failing)
		d->failing_since = loop_now();
	d->failing = true;
	d->counters.failures++;
	snprintf(d->error, sizeof d->error, "%s", error);
	discovery_log_error(&d->log, known(d), d->error);
	schedule(d, loop_now() + discovery_pace_retry(&d->pace, loop_now()));
}

static void
begin_round(struct discovery *d)
{
	d->began = loop_now();
	d->next = POLICY_NEVER;
	d->forced = false;
	d->counters.refreshes++;
	d->round = discovery_round_new(
	    d->dns, d->tenant->dns.name, d->members, on_round, d);
	if (d->round == NULL)
		fail(d, "cannot ask for SRV records: no memory or no name");
}

static void
on_timer(void *arg)
{
	struct discovery *d = arg;
	int64_t now = loop_now(), soonest;

	if (now >= d->next) {
		begin_round(d);
		return;
	}
	if (dns_changed(d->dns)) {
		/* Other nameservers: the old ones earned this pause. */
		discovery_pace_recover(&d->pace);
		soonest = discovery_pace_soonest(&d->pace, d->began, now);
		if (soonest < d->next)
			d->next = soonest;
	}
	arm(d);
}

/* Frees what the result of the round lends, too. */
static void
end_round(struct discovery *d)
{
	discovery_round_free(d->round);
	d->round = NULL;
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
	discovery_pace_fulfil(&d->pace);
	discovery_log_members(&d->log, next->count, dropped);
	d->fn(d->arg, next);
}

static void
found(struct discovery *d, const struct discovery_result *result)
{
	uint32_t dropped = 0;
	struct members *next =
	    members_build(result->targets, result->count, d->members, &dropped);
	int64_t delay = discovery_pace_refresh(&d->pace, result->ttl), retry;
	bool partial = result->partial;

	end_round(d);
	if (next == NULL) {
		fail(d, "no memory for the servers");
		return;
	}
	d->answered = true;
	d->failing = false;
	d->empty_once = false;
	d->error[0] = '\0';
	d->found_at = loop_now();
	if (partial) {
		retry = discovery_pace_retry(&d->pace, loop_now());
		if (retry < delay)
			delay = retry;
	} else {
		discovery_pace_recover(&d->pace);
	}
	schedule(d, loop_now() + delay);
	discovery_log_ok(&d->log, next->count);
	install(d, next, dropped);
}

/* Another question in less time may get the same answer from a cache. */
static int64_t
cached_until(const struct discovery *d, uint32_t ttl_s)
{
	int64_t ttl = (int64_t)ttl_s * 1000 * MS_US;
	int64_t most = (int64_t)d->tenant->dns.refresh_ms * MS_US;

	return loop_now() + (ttl < most ? ttl : most);
}

/* DNS says that there is no server: believed when it is said again, and not by
 * a cache that repeats it. */
static void
empty(struct discovery *d, const struct discovery_result *result)
{
	struct members *none;
	bool confirmed = d->empty_once && loop_now() >= d->empty_until;

	fail(d, result->error);
	if (!d->empty_once)
		d->empty_until = cached_until(d, result->ttl);
	d->empty_once = true;
	end_round(d);
	if (!confirmed || known(d) == 0)
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
start_dns(struct discovery *d, const char *resolv_conf)
{
	const struct config_dns *config = &d->tenant->dns;
	const struct dns_options options = {
	    .nameservers = config->nameservers,
	    .nameserver_count = config->nameserver_count,
	    .random = d->random,
	    .timeout_ms = config->timeout_ms,
	    .tries = DNS_TRIES,
	    .require_ad = config->require_ad,
	    .resolv_conf = resolv_conf,
	};

	d->dns = dns_new(d->loop, &options);
	d->timer = loop_timer_new(d->loop, on_timer, d);
	if (d->dns == NULL || d->timer == NULL)
		return false;
	discovery_pace_init(&d->pace, config, d->random);
	begin_round(d);
	return true;
}

struct discovery *
discovery_new(struct loop *loop, struct random_pool *random,
    const struct config_tenant *tenant, discovery_fn *fn, void *arg)
{
	return discovery_new_with(
	    loop, random, tenant, RESOLVCONF_PATH, fn, arg);
}

struct discovery *
discovery_new_with(struct loop *loop, struct random_pool *random,
    const struct config_tenant *tenant, const char *resolv_conf,
    discovery_fn *fn, void *arg)
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
	discovery_log_init(&d->log, tenant->name);
	loop_task_init(&d->report, report_static, d);
	started = tenant->server_count > 0 ? start_static(d)
					   : start_dns(d, resolv_conf);
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

void
discovery_known(struct discovery *d, struct members *members)
{
	if (d->dns == NULL) {
		/* It says the same, and so has nothing to report. */
		if (members_equal(d->members, members))
			loop_cancel(d->loop, &d->report);
		return;
	}
	members_ref(members);
	members_unref(d->members);
	d->members = members;
	if (d->round != NULL)
		discovery_round_known(d->round, members);
}

void
discovery_stop(struct discovery *d)
{
	if (d->dns == NULL)
		return;
	d->stopped = true;
	d->next = POLICY_NEVER;
	loop_timer_stop(d->timer);
	end_round(d);
}

/*
 * A round that runs, one that is forced already and one that is due sooner
 * serve this wish too; so does a retry, whose pace nobody may force.
 */
void
discovery_force(struct discovery *d)
{
	int64_t when;

	if (d->dns == NULL || d->round != NULL || d->forced || d->failing ||
	    d->stopped)
		return;
	when = discovery_pace_wish(&d->pace, d->began, loop_now());
	if (when >= d->next)
		return;
	d->forced = true;
	d->counters.forced++;
	when = discovery_pace_grant(&d->pace, when);
	if (when < d->next)
		schedule(d, when);
}

enum discovery_state
discovery_state(const struct discovery *d)
{
	if (d->dns == NULL)
		return DISCOVERY_STATIC;
	if (known(d) > 0)
		return DISCOVERY_READY;
	return d->answered ? DISCOVERY_UNAVAILABLE : DISCOVERY_RUNNING;
}

const char *
discovery_state_name(enum discovery_state state)
{
	switch (state) {
	case DISCOVERY_STATIC:
		return "static";
	case DISCOVERY_RUNNING:
		return "discovering";
	case DISCOVERY_READY:
		return "ready";
	case DISCOVERY_UNAVAILABLE:
		return "unavailable";
	}
	return "unknown";
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
discovery_failing_since(const struct discovery *d)
{
	return d->failing ? d->failing_since : 0;
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

int64_t
discovery_found_at(const struct discovery *d)
{
	return d->found_at;
}
