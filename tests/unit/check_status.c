/*
 * The documents of STATUS and SERVERS: every field that rlctl(1) names, in
 * the types that it has, whatever state the agent is in.
 */
#include "daemon/status.h"

#include <errno.h>
#include <jansson.h>

#include "daemon/core/counters.h"
#include "tests/unit/agent_fixture.h"

static struct ipc_peer a;

static json_t *
parsed(char *text)
{
	json_error_t error;
	json_t *json;

	ck_assert_ptr_nonnull(text);
	json = json_loads(text, JSON_REJECT_DUPLICATES, &error);
	ck_assert_msg(json != NULL, "%s: %s", error.text, text);
	ck_assert_ptr_null(strstr(text, "rl-cookie"));
	free(text);
	return json;
}

static json_t *
field(json_t *json, const char *name, json_type type)
{
	json_t *value = json_object_get(json, name);

	ck_assert_msg(value != NULL, "no %s", name);
	ck_assert_msg(json_typeof(value) == type ||
			  (type == JSON_TRUE && json_is_false(value)),
	    "%s: type %d", name, (int)json_typeof(value));
	return value;
}

/* Exactly these: a field that is new here is new in rlctl(1), too. */
static void
fields(json_t *json, const char *const *names)
{
	size_t n;

	for (n = 0; names[n] != NULL; n++)
		ck_assert_msg(
		    json_object_get(json, names[n]) != NULL, "no %s", names[n]);
	ck_assert_uint_eq(json_object_size(json), n);
}

static void
all_counters(json_t *json, const struct counter_row *rows)
{
	size_t n;

	for (n = 0; rows[n].name != NULL; n++)
		field(json, rows[n].name, JSON_INTEGER);
	ck_assert_uint_eq(json_object_size(json), n);
}

static const char *
string(json_t *json, const char *name)
{
	return json_string_value(field(json, name, JSON_STRING));
}

START_TEST(status)
{
	static const char *const top[] = {"version", "ready", "unready",
	    "draining", "uptime_ms", "generation", "config_hash", "file_hash",
	    "config", "reload", "inflight", "log_dropped", "listeners",
	    "gateway", "tenants", "counters", NULL};
	static const char *const reload[] = {
	    "error", "failures", "in_force_ms", "watching", "ending", NULL};
	static const char *const tenant[] = {"name", "diagnosis", "key_id",
	    "auth", "profile", "ready", "servers", "inflight", "horizon_ms",
	    "dns_name", "discovery", "transport", "counters", "udp4", "udp6",
	    NULL};
	json_t *json, *t;

	start_agent(&(struct shape){0});
	json = parsed(status_document(agent));
	fields(json, top);
	ck_assert_str_eq(string(json, "version"), PACKAGE_VERSION);
	ck_assert_str_eq(string(json, "config"), "t.json");
	ck_assert_uint_eq(strlen(string(json, "config_hash")), 32);
	ck_assert(json_is_true(field(json, "ready", JSON_TRUE)));
	ck_assert_int_ge(
	    json_integer_value(field(json, "uptime_ms", JSON_INTEGER)), 0);
	fields(field(json, "reload", JSON_OBJECT), reload);
	all_counters(field(json, "counters", JSON_OBJECT), agent_counter_rows);
	t = json_array_get(field(json, "tenants", JSON_ARRAY), 0);
	fields(t, tenant);
	ck_assert_str_eq(string(t, "diagnosis"), "unasked");
	ck_assert_str_eq(string(t, "auth"), "cookie");
	ck_assert_str_eq(string(t, "profile"), "v1");
	ck_assert(json_is_null(json_object_get(t, "dns_name")));
	ck_assert_str_eq(
	    string(field(t, "discovery", JSON_OBJECT), "state"), "static");
	ck_assert(json_is_null(json_object_get(
	    field(t, "discovery", JSON_OBJECT), "next_refresh_ms")));
	all_counters(field(t, "counters", JSON_OBJECT), tenant_counter_rows);
	json_decref(json);
	agent_drain(agent);
	json = parsed(status_document(agent));
	ck_assert(json_is_true(field(json, "draining", JSON_TRUE)));
	json_decref(json);
	stop_agent();
}
END_TEST

START_TEST(a_tenant_without_servers)
{
	const struct discovery *discovery;
	json_t *json, *t, *d;
	int64_t first;

	new_agent(&(struct shape){
	    .tenants = "\"t\":{\"key\":{\"env\":\"RLA_TEST_KEY\"},\"dns\":{"
		       "\"name\":\"none.example\",\"forced_min_ms\":1,"
		       "\"nameservers\":[\"127.0.0.1:1\"]}}",
	    .rules = ""});
	discovery = tenant_discovery(agent->setup->tenants[0]);
	ck_assert_int_eq(discovery_failing_since(discovery), 0);
	TURN_UNTIL(discovery_state(discovery) == DISCOVERY_UNAVAILABLE);
	first = loop_now();
	TURN_UNTIL(discovery_counters(discovery)->failures > 2);
	ck_assert_int_le(discovery_failing_since(discovery), first);
	json = parsed(status_document(agent));
	ck_assert(json_is_false(field(json, "ready", JSON_TRUE)));
	t = json_array_get(field(json, "tenants", JSON_ARRAY), 0);
	ck_assert_str_eq(string(t, "dns_name"), "none.example");
	ck_assert_str_eq(string(t, "diagnosis"), "dns");
	d = field(t, "discovery", JSON_OBJECT);
	ck_assert_str_eq(string(d, "state"), "unavailable");
	ck_assert_str_ne(string(d, "error"), "");
	ck_assert_int_ge(
	    json_integer_value(field(d, "next_refresh_ms", JSON_INTEGER)), 0);
	json_decref(json);
	json = parsed(status_servers(agent));
	ck_assert_uint_eq(
	    json_array_size(field(json, "servers", JSON_ARRAY)), 0);
	t = json_array_get(field(json, "tenants", JSON_ARRAY), 0);
	ck_assert_str_eq(string(t, "diagnosis"), "dns");
	ck_assert_str_eq(string(t, "discovery"), "unavailable");
	ck_assert_str_ne(string(t, "dns_error"), "");
	ck_assert_ptr_nonnull(
	    strstr(string(t, "diagnosis_text"), string(t, "dns_error")));
	ck_assert_int_ge(
	    json_integer_value(field(t, "dns_failing_ms", JSON_INTEGER)), 0);
	ck_assert_int_lt(
	    json_integer_value(field(t, "dns_failing_ms", JSON_INTEGER)),
	    LIMIT_US / 1000);
	json_decref(json);
	stop_agent();
}
END_TEST

START_TEST(servers)
{
	static const char *const names[] = {"tenant", "server_id", "rank",
	    "started", "listener", "node", "addresses", "diagnosis",
	    "diagnosis_text", "suspected", "sent", "answered", "selected",
	    "overdue", "missed_rounds", "unanswered", "rtt_us", "rtt_p50_us",
	    "rtt_p90_us", "rtt_p99_us", "ever_answered", "last_answer_ms",
	    "refused", "refused_error", "last_refused_ms", "send_errors",
	    "send_error", "last_send_error_ms", "invalid_auth",
	    "invalid_malformed", "invalid_content", "invalid_source",
	    "last_invalid_ms", "clock_ms", "clock_within_ms", NULL};
	json_t *json, *s, *addresses;

	start_agent(&(struct shape){
	    .tenants = "\"t\":{\"key\":{\"env\":\"RLA_TEST_KEY\"},"
		       "\"policy\":{\"unit_ms\":10000},\"servers\":["
		       "{\"id\":\"18446744073709551615\","
		       "\"address\":\"[2001:db8::1]:1234\"},"
		       "{\"id\":\"101\",\"address\":\"127.0.0.1:%u\"},"
		       "{\"id\":\"18446744073709551615\","
		       "\"address\":\"192.0.2.7:1234\"}]}",
	    .rules = "\"r\":{\"tenant\":\"t\","
		     "\"resources\":[{\"bucket\":\"b\"}]}"});
	join(&a, main_path);
	peer_check(&a, 1, &once, "r", NULL);
	take(0);
	fake_server_allow(&server[0], &q);
	next(&a);
	json = parsed(status_servers(agent));
	ck_assert_uint_eq(
	    json_array_size(field(json, "servers", JSON_ARRAY)), 2);
	s = json_array_get(field(json, "servers", JSON_ARRAY), 0);
	fields(s, names);
	ck_assert_str_eq(string(s, "server_id"), "101");
	ck_assert_int_gt(
	    json_integer_value(field(s, "rtt_us", JSON_INTEGER)), 0);
	ck_assert_int_gt(
	    json_integer_value(field(s, "rtt_p99_us", JSON_INTEGER)), 0);
	field(s, "last_answer_ms", JSON_INTEGER);
	ck_assert(json_is_true(field(s, "ever_answered", JSON_TRUE)));
	/* The stamps of the test's servers are made up. */
	ck_assert_str_eq(string(s, "diagnosis"), "clock-off");
	s = json_array_get(field(json, "servers", JSON_ARRAY), 1);
	ck_assert_str_eq(string(s, "server_id"), "18446744073709551615");
	ck_assert_int_eq(json_integer_value(field(s, "rank", JSON_INTEGER)), 1);
	ck_assert(json_is_null(json_object_get(s, "rtt_us")));
	ck_assert(json_is_null(json_object_get(s, "rtt_p50_us")));
	ck_assert(json_is_null(json_object_get(s, "last_answer_ms")));
	ck_assert(json_is_false(field(s, "ever_answered", JSON_TRUE)));
	addresses = field(s, "addresses", JSON_ARRAY);
	ck_assert_uint_eq(json_array_size(addresses), 2);
	ck_assert_str_eq(json_string_value(json_array_get(addresses, 0)),
	    "[2001:db8::1]:1234");
	ck_assert_str_eq(
	    json_string_value(json_array_get(addresses, 1)), "192.0.2.7:1234");
	json_decref(json);
	stop_agent();
}
END_TEST

/* What came of what happened to a server, each event once. */
START_TEST(a_server_in_trouble)
{
	json_t *json, *s, *t;
	struct peer *peer;

	start_agent(&(struct shape){0});
	peer = peers_find(
	    (struct peers *)(uintptr_t)tenant_peers(agent->setup->tenants[1]),
	    101);
	ck_assert_ptr_nonnull(peer);
	peer_sent(peer, loop_now());
	peer_refused(peer, ECONNREFUSED, loop_now());
	peer_send_error(peer, EPERM, loop_now());
	peer_invalid(peer, PEER_SOURCE, loop_now());
	peer_invalid(peer, PEER_SOURCE, loop_now());
	peer->clock = (struct peer_clock){
	    .known = true, .offset_ms = -4000, .within_ms = 2};
	json = parsed(status_servers(agent));
	s = json_array_get(field(json, "servers", JSON_ARRAY), 1);
	ck_assert_str_eq(string(s, "server_id"), "101");
	ck_assert_str_eq(string(s, "diagnosis"), "refused");
	ck_assert_ptr_nonnull(
	    strstr(string(s, "diagnosis_text"), string(s, "refused_error")));
	ck_assert_str_eq(string(s, "refused_error"), "Connection refused");
	ck_assert_str_eq(string(s, "send_error"), "Operation not permitted");
	field(s, "last_refused_ms", JSON_INTEGER);
	field(s, "last_send_error_ms", JSON_INTEGER);
	field(s, "last_invalid_ms", JSON_INTEGER);
	ck_assert_int_eq(
	    json_integer_value(json_object_get(s, "invalid_source")), 2);
	ck_assert_int_eq(
	    json_integer_value(json_object_get(s, "invalid_auth")), 0);
	ck_assert_int_eq(
	    json_integer_value(json_object_get(s, "clock_ms")), -4000);
	t = json_array_get(field(json, "tenants", JSON_ARRAY), 1);
	ck_assert_str_eq(string(t, "name"), "slow");
	ck_assert_str_eq(string(t, "diagnosis"), "refused");
	ck_assert_int_eq(json_integer_value(json_object_get(
			     json_object_get(t, "clock"), "offset_ms")),
	    -3999);
	json_decref(json);
	stop_agent();
}
END_TEST

START_TEST(tenants_of_servers)
{
	static const char *const names[] = {"name", "diagnosis",
	    "diagnosis_text", "discovery", "dns_error", "dns_failing_ms",
	    "ever_answered", "last_answer_ms", "invalid_truncated",
	    "invalid_malformed", "invalid_auth", "invalid_operation",
	    "invalid_server", "invalid_content", "invalid_source", "clock",
	    NULL};
	static const char *const clock_names[] = {
	    "synchronised", "stepped_ms", "offset_ms", NULL};
	json_t *json, *t;

	start_agent(&(struct shape){0});
	json = parsed(status_servers(agent));
	ck_assert_uint_eq(
	    json_array_size(field(json, "tenants", JSON_ARRAY)), 2);
	t = json_array_get(field(json, "tenants", JSON_ARRAY), 0);
	fields(t, names);
	ck_assert_str_eq(string(t, "diagnosis"), "unasked");
	ck_assert_str_eq(string(t, "discovery"), "static");
	ck_assert(json_is_null(json_object_get(t, "dns_error")));
	ck_assert(json_is_null(json_object_get(t, "dns_failing_ms")));
	t = field(t, "clock", JSON_OBJECT);
	fields(t, clock_names);
	ck_assert(json_is_null(json_object_get(t, "stepped_ms")));
	ck_assert(json_is_null(json_object_get(t, "offset_ms")));
	json_decref(json);
	stop_agent();
}
END_TEST

/* The name of a file may be any bytes. */
START_TEST(a_file_name_that_is_not_utf8)
{
	json_t *json;

	start_agent(&(struct shape){0});
	free(agent->setup->config->source);
	agent->setup->config->source = strdup("/etc/\xff\x01.json");
	json = parsed(status_document(agent));
	ck_assert_str_eq(string(json, "config"), "/etc/??.json");
	json_decref(json);
	stop_agent();
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("status");
	TCase *tc = tcase_create("status");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, status);
	tcase_add_test(tc, a_tenant_without_servers);
	tcase_add_test(tc, servers);
	tcase_add_test(tc, a_server_in_trouble);
	tcase_add_test(tc, tenants_of_servers);
	tcase_add_test(tc, a_file_name_that_is_not_utf8);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
