/*
 * The document of POLICY: every field that rlctl(1) names, the policy as the
 * configuration has it, and its deadlines in numbers worked out by hand.
 */
#include "daemon/status.h"

#include <jansson.h>

#include "tests/unit/agent_fixture.h"

static json_t *root;

/* Asks again; the only tenant of the document, which root owns. */
static json_t *
ask(void)
{
	json_error_t error;
	char *text = status_policy(agent);

	json_decref(root);
	ck_assert_ptr_nonnull(text);
	root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
	ck_assert_msg(root != NULL, "%s: %s", error.text, text);
	ck_assert_ptr_null(strstr(text, "rl-cookie"));
	free(text);
	ck_assert_uint_eq(json_object_size(root), 1);
	return json_array_get(json_object_get(root, "tenants"), 0);
}

#define SERVERS                                                \
	"\"servers\":[{\"id\":\"1\",\"address\":\"[::1]:9\"}," \
	"{\"id\":\"2\",\"address\":\"127.0.0.1:9\"}]"

/* A tenant of this key, with more of its configuration. */
static json_t *
tenant(const char *key, const char *more)
{
	static char text[1024];

	snprintf(text, sizeof(text), "\"t\":{\"key\":{\"env\":\"%s\"}%s%s}",
	    key, *more != '\0' ? "," : "", more);
	new_agent(&(struct shape){.tenants = text, .rules = ""});
	return ask();
}

static void
done(void)
{
	json_decref(root);
	root = NULL;
	stop_agent();
}

/* The value of a name, or the whole with NULL, is this JSON, in this order. */
static void
same(const json_t *from, const char *name, const char *want)
{
	char *got =
	    json_dumps(name != NULL ? json_object_get(from, name) : from,
		JSON_COMPACT | JSON_ENCODE_ANY);

	ck_assert_msg(got != NULL, "no %s", name);
	ck_assert_str_eq(got, want);
	free(got);
}

START_TEST(the_defaults)
{
	json_t *t;

	tenant("RLA_TEST_KEY", SERVERS);
	settle(); /* static servers are reported in a turn of the loop */
	t = ask();
	same(t, NULL,
	    "{\"name\":\"t\",\"servers\":2,\"policy\":{\"unit_ms\":20,"
	    "\"replay_count\":1,\"replay_gap\":{\"fixed\":1},"
	    "\"preference\":{\"fixed\":1},\"final_receive_units\":1,"
	    "\"final_preference_units\":0,\"completion_delivery\":true,"
	    "\"suspect_after\":0},\"horizon_ms\":60,"
	    "\"dedup_limit_ms\":null,\"key_format\":\"unversioned\","
	    "\"rounds\":[{\"round\":0,\"start_ms\":0,"
	    "\"prefer_until_ms\":20,\"end_ms\":20},{\"round\":1,"
	    "\"start_ms\":20,\"prefer_until_ms\":40,\"end_ms\":40}],"
	    "\"final\":{\"start_ms\":40,\"prefer_until_ms\":40,"
	    "\"end_ms\":60}}");
	done();
}
END_TEST

/* B is 2, 4, 5 and P 0, 1, 2 units of 7 ms. */
START_TEST(growing_schedules)
{
	json_t *t = tenant("RLA_TEST_KEY",
	    SERVERS ",\"policy\":{\"unit_ms\":7,\"replay_count\":2,"
		    "\"replay_gap\":{\"exponential\":{\"initial\":2,"
		    "\"factor\":2,\"max\":5}},\"preference\":{\"linear\":{"
		    "\"initial\":0,\"step\":1,\"max\":3}},"
		    "\"final_receive_units\":4,"
		    "\"final_preference_units\":3,"
		    "\"completion_delivery\":false,\"suspect_after\":9}");

	same(t, "policy",
	    "{\"unit_ms\":7,\"replay_count\":2,\"replay_gap\":{"
	    "\"exponential\":{\"initial\":2,\"factor\":2,\"max\":5}},"
	    "\"preference\":{\"linear\":{\"initial\":0,\"step\":1,"
	    "\"max\":3}},\"final_receive_units\":4,"
	    "\"final_preference_units\":3,\"completion_delivery\":false,"
	    "\"suspect_after\":9}");
	same(t, "rounds",
	    "[{\"round\":0,\"start_ms\":0,\"prefer_until_ms\":0,"
	    "\"end_ms\":14},{\"round\":1,\"start_ms\":14,"
	    "\"prefer_until_ms\":21,\"end_ms\":42},{\"round\":2,"
	    "\"start_ms\":42,\"prefer_until_ms\":56,\"end_ms\":77}]");
	same(t, "final",
	    "{\"start_ms\":77,\"prefer_until_ms\":98,\"end_ms\":105}");
	same(t, "horizon_ms", "105");
	done();
}
END_TEST

START_TEST(first_round_without_a_final_interval)
{
	json_t *t = tenant("RLA_TEST_KEY",
	    SERVERS ",\"policy\":{\"preference\":\"first-round\","
		    "\"final_receive_units\":0}");

	same(json_object_get(t, "policy"), "preference", "\"first-round\"");
	same(t, "rounds",
	    "[{\"round\":0,\"start_ms\":0,\"prefer_until_ms\":20,"
	    "\"end_ms\":20},{\"round\":1,\"start_ms\":20,"
	    "\"prefer_until_ms\":20,\"end_ms\":40}]");
	same(t, "final", "null");
	done();
}
END_TEST

START_TEST(the_longest_horizon)
{
	json_t *t = tenant("RLA_TEST_KEY",
	    SERVERS ",\"policy\":{\"unit_ms\":4294967295,"
		    "\"replay_count\":0,\"final_receive_units\":0}");

	same(t, "rounds",
	    "[{\"round\":0,\"start_ms\":0,"
	    "\"prefer_until_ms\":4294967295,\"end_ms\":4294967295}]");
	same(t, "horizon_ms", "4294967295");
	done();
}
END_TEST

/* 0 means no limit in the unversioned format, and there alone. */
START_TEST(limits_of_the_key)
{
	struct credential cred = {
	    .auth = AUTH_COOKIE,
	    .format = KEY_UNVERSIONED,
	    .key_id = 78,
	    .quotas = {1024, 1024, 1024, 64, 60, UINT32_MAX},
	};
	char text[CREDENTIAL_TEXT_MAX];
	json_t *t;

	ck_assert_int_eq(credential_format(&cred, text, sizeof(text)), 0);
	setenv("RLA_TEST_LIMITED", text, 1);
	t = tenant("RLA_TEST_LIMITED", SERVERS);
	same(t, "dedup_limit_ms", "60");
	same(t, "key_format", "\"unversioned\"");
	done();
	cred.format = KEY_FORMAT_1;
	cred.quotas.dedup_ttl_ms = 2000;
	ck_assert_int_eq(credential_format(&cred, text, sizeof(text)), 0);
	setenv("RLA_TEST_LIMITED", text, 1);
	t = tenant("RLA_TEST_LIMITED", SERVERS);
	same(t, "dedup_limit_ms", "2000");
	same(t, "key_format", "\"1\"");
	done();
}
END_TEST

/* Not known is null, known to be none is 0. */
START_TEST(servers_that_are_not_known)
{
	json_t *t =
	    tenant("RLA_TEST_KEY", "\"dns\":{\"name\":\"none.example\","
				   "\"nameservers\":[\"127.0.0.1:1\"]}");

	same(t, "servers", "null");
	TURN_UNTIL(discovery_state(tenant_discovery(
		       agent->setup->tenants[0])) == DISCOVERY_UNAVAILABLE);
	same(ask(), "servers", "0");
	done();
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("status_policy");
	TCase *tc = tcase_create("policy");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, the_defaults);
	tcase_add_test(tc, growing_schedules);
	tcase_add_test(tc, first_round_without_a_final_interval);
	tcase_add_test(tc, the_longest_horizon);
	tcase_add_test(tc, limits_of_the_key);
	tcase_add_test(tc, servers_that_are_not_known);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
