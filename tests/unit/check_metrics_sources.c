/*
 * No counter is forgotten: each field of each struct of counters is exactly one
 * sample, but for those that another metric tells, which are named here; each
 * source is of a metric with that label, and called as its counter is.
 */
#include "daemon/metrics_sources.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/counters.h"
#include "daemon/core/peer.h"
#include "daemon/discovery.h"
#include "daemon/io/dns.h"
#include "daemon/io/udp.h"
#include "daemon/transport.h"
#include "tests/unit/harness.h"

/* rl_agent_decisions_total and rl_agent_permitted_total tell these. */
static const size_t told_of_agent[] = {
#define TOLD(field) offsetof(struct agent_counters, field)
    TOLD(allowed), TOLD(denied), TOLD(failed), TOLD(cancelled), TOLD(permitted),
    TOLD(source_server), TOLD(source_empty), TOLD(source_policy),
    TOLD(source_shadow), TOLD(source_local), TOLD(failed_validation),
    TOLD(failed_unknown_rule), TOLD(failed_unauthorised),
    TOLD(failed_discovery), TOLD(failed_transport), TOLD(failed_timeout),
    TOLD(failed_overloaded), TOLD(failed_interrupted)};
/* A local limiter never waits. */
static const size_t told_of_local[] = {
    offsetof(struct limiter_counters, waits)};

static const struct {
	const char *name;
	size_t size;
	const struct metrics_sources *lists[5];
	const size_t *told;
	size_t told_count;
} structs[] = {
    {"agent_counters", sizeof(struct agent_counters),
	{&metrics_agent_log, &metrics_agent_clients, &metrics_agent_checks,
	    &metrics_agent_reports, &metrics_agent_limiters},
	told_of_agent, sizeof(told_of_agent) / sizeof(told_of_agent[0])},
    {"tenant_counters", sizeof(struct tenant_counters), {&metrics_tenant}, NULL,
	0},
    {"transport_counters", sizeof(struct transport_counters),
	{&metrics_transport}, NULL, 0},
    {"udp_counters", sizeof(struct udp_counters), {&metrics_udp}, NULL, 0},
    {"discovery_counters", sizeof(struct discovery_counters),
	{&metrics_discovery}, NULL, 0},
    {"dns_counters", sizeof(struct dns_counters), {&metrics_dns}, NULL, 0},
    {"limiter_counters", sizeof(struct limiter_counters), {&metrics_limiter},
	NULL, 0},
    {"local limiter_counters", sizeof(struct limiter_counters),
	{&metrics_local}, told_of_local, 1},
    {"error_control_counters", sizeof(struct error_control_counters),
	{&metrics_error_control}, NULL, 0},
};
#define STRUCTS ((int)(sizeof(structs) / sizeof(structs[0])))

static const struct metrics_sources *const all[] = {&metrics_agent_log,
    &metrics_agent_clients, &metrics_agent_checks, &metrics_agent_reports,
    &metrics_agent_limiters, &metrics_tenant, &metrics_transport, &metrics_udp,
    &metrics_discovery, &metrics_dns, &metrics_peer, &metrics_peer_trouble,
    &metrics_limiter, &metrics_local, &metrics_error_control};
#define ALL ((int)(sizeof(all) / sizeof(all[0])))

static unsigned int
count_in(const struct metrics_sources *list, size_t offset)
{
	unsigned int n = 0;

	for (size_t i = 0; list != NULL && i < list->count; i++)
		n += list->list[i].offset == offset;
	return n;
}

START_TEST(each_counter_is_one_sample)
{
	for (size_t at = 0; at < structs[_i].size; at += sizeof(uint64_t)) {
		unsigned int n = 0;

		for (int k = 0; k < 5; k++)
			n += count_in(structs[_i].lists[k], at);
		for (size_t k = 0; k < structs[_i].told_count; k++)
			n += structs[_i].told[k] == at;
		ck_assert_msg(n == 1,
		    "%s: the counter at %zu is %u samples; it needs a row in "
		    "daemon/metrics_sources.c",
		    structs[_i].name, at, n);
	}
}
END_TEST

/* Its label is the last of the metric's; alike ones stand together, apart from
 * each other. */
START_TEST(sources_fit_their_metrics)
{
	const struct metrics_sources *list = all[_i];
	const struct metrics_source *s, *before = NULL;

	for (size_t i = 0; i < list->count; i++, before = s) {
		const char *last, *labels;

		s = &list->list[i];
		labels = metric_rows[s->metric].labels;
		last = strrchr(labels, ',');
		last = last != NULL ? last + 1 : labels;
		ck_assert_int_eq(
		    metric_rows[s->metric].type, METRIC_TYPE_COUNTER);
		ck_assert_msg(s->more == NULL ||
				  (strncmp(s->more, last, strlen(last)) == 0 &&
				      s->more[strlen(last)] == '='),
		    "%s: %s", metric_rows[s->metric].name, s->more);
		if (before == NULL)
			continue;
		ck_assert_int_ge(s->metric, before->metric);
		ck_assert_msg(s->metric != before->metric ||
				  (s->more != NULL && before->more != NULL &&
				      strcmp(s->more, before->more) != 0),
		    "%s twice", metric_rows[s->metric].name);
	}
}
END_TEST

/* A counter and the sample of it, where the words differ. */
static const char *const other_words[][2] = {
    {"decisions_unsaid", "rl_agent_log_decisions_left_out_total"},
    {"frames_bad", "malformed"}, {"frames_slow", "unfinished"},
    {"http_refused", "rl_agent_http_connections_refused_total"},
    {"reports", "taken"}, {"answers", "in_flight"},
    {"rebind_asked", "rl_agent_rebinds_asked_total"}, {"timeouts", "timeout"}};

static bool
is_called(const char *counter, const struct metrics_source *s)
{
	char label[64] = "";
	size_t len;

	for (size_t i = 0; i < sizeof(other_words) / sizeof(other_words[0]);
	     i++) {
		if (strcmp(other_words[i][0], counter) == 0)
			return strstr(s->more != NULL
					  ? s->more
					  : metric_rows[s->metric].name,
				   other_words[i][1]) != NULL;
	}
	if (s->more == NULL)
		return strstr(metric_rows[s->metric].name, counter) != NULL;
	/* NAME="VALUE": the value ends the counter's name. */
	ck_assert_int_eq(sscanf(s->more, "%*[^\"]\"%63[^\"]", label), 1);
	len = strlen(label);
	return strlen(counter) >= len &&
	       strcmp(counter + strlen(counter) - len, label) == 0;
}

static const struct {
	const struct counter_row *rows;
	const struct metrics_sources *sources;
} tables[] = {
    {agent_counter_rows, &metrics_agent_log},
    {agent_counter_rows, &metrics_agent_clients},
    {agent_counter_rows, &metrics_agent_checks},
    {agent_counter_rows, &metrics_agent_reports},
    {agent_counter_rows, &metrics_agent_limiters},
    {tenant_counter_rows, &metrics_tenant},
    {limiter_counter_rows, &metrics_limiter},
    {limiter_counter_rows, &metrics_local},
    {error_control_counter_rows, &metrics_error_control},
};
#define TABLES ((int)(sizeof(tables) / sizeof(tables[0])))

START_TEST(sources_are_called_as_their_counters)
{
	const struct metrics_sources *list = tables[_i].sources;

	for (size_t i = 0; i < list->count; i++) {
		const struct metrics_source *s = &list->list[i];
		const struct counter_row *row = tables[_i].rows;

		while (row->name != NULL && row->offset != s->offset)
			row++;
		ck_assert_ptr_nonnull(row->name);
		ck_assert_msg(is_called(row->name, s), "%s is not %s{%s}",
		    row->name, metric_rows[s->metric].name,
		    s->more != NULL ? s->more : "");
	}
}
END_TEST

/* A peer has no table of names. */
static const struct {
	enum metric metric;
	const char *more;
	size_t offset;
} of_peer[] = {
#define PEER(field) offsetof(struct peer, field)
    {METRIC_SERVER_SELECTED, NULL, PEER(selected)},
    {METRIC_SERVER_SENT, NULL, PEER(sent)},
    {METRIC_SERVER_REPLAYS, NULL, PEER(replays)},
    {METRIC_SERVER_DELIVERIES, NULL, PEER(deliveries)},
    {METRIC_SERVER_ANSWERS, NULL, PEER(answered)},
    {METRIC_SERVER_OVERDUE, NULL, PEER(overdue)},
    {METRIC_SERVER_MISSED, NULL, PEER(missed_rounds)},
    {METRIC_SERVER_INVALID, "auth", PEER(invalid[PEER_AUTH].count)},
    {METRIC_SERVER_INVALID, "malformed", PEER(invalid[PEER_MALFORMED].count)},
    {METRIC_SERVER_INVALID, "content", PEER(invalid[PEER_CONTENT].count)},
    {METRIC_SERVER_INVALID, "source", PEER(invalid[PEER_SOURCE].count)},
    {METRIC_SERVER_SEND_ERRORS, NULL, PEER(send_errors.count)},
    {METRIC_SERVER_REFUSED, NULL, PEER(refused.count)}};
#define OF_PEER (sizeof(of_peer) / sizeof(of_peer[0]))

START_TEST(sources_of_a_peer)
{
	size_t n = metrics_peer.count;

	ck_assert_uint_eq(n + metrics_peer_trouble.count, OF_PEER);
	for (size_t i = 0; i < OF_PEER; i++) {
		const struct metrics_source *s =
		    i < n ? &metrics_peer.list[i]
			  : &metrics_peer_trouble.list[i - n];

		ck_assert_int_eq(s->metric, of_peer[i].metric);
		ck_assert_uint_eq(s->offset, of_peer[i].offset);
		ck_assert_int_eq(s->more != NULL, of_peer[i].more != NULL);
		ck_assert(s->more == NULL ||
			  strstr(s->more, of_peer[i].more) != NULL);
	}
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("metrics_sources");
	TCase *tc = tcase_create("metrics_sources");

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, each_counter_is_one_sample, 0, STRUCTS);
	tcase_add_loop_test(tc, sources_fit_their_metrics, 0, ALL);
	tcase_add_loop_test(
	    tc, sources_are_called_as_their_counters, 0, TABLES);
	tcase_add_test(tc, sources_of_a_peer);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
