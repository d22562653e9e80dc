/*
 * The policy of a tenant: every key with good and bad values, by the exact line
 * that a bad one gives; policies as a whole, and against the key's limit.
 */
#include "daemon/config.h"

#include "tests/unit/config_edit.h"

#define P        "tenants.main.policy"
#define TOO_LONG "must not be longer than the replay_gap of the same round"
#define OVERFLOW                                                      \
	": its horizon of more than 4294967295 ms is over the key's " \
	"deduplication limit of 300 ms"

START_TEST(test_policy)
{
	static const struct edit edits[] = {
	    {P ".unit_ms", "100", NULL}, /* 300 ms: the key's limit */
	    {P ".unit_ms", "101",
		P ": its horizon of 303 ms is over the key's deduplication "
		  "limit of 300 ms"},
	    {P ".unit_ms", "0", P ".unit_ms: " U32_RANGE "0"},
	    {P ".unit_ms", "4294967295", P OVERFLOW},
	    {P ".replay_count", "0", NULL},
	    {P ".replay_count", "32", P ".replay_count: must be 0..31, not 32"},
	    {P ".replay_gap", "{\"fixed\":2}", NULL},
	    {P ".replay_gap", "{\"fixed\":0}",
		P ".replay_gap.fixed: " U32_RANGE "0"},
	    {P ".replay_gap",
		"{\"linear\":{\"initial\":1,\"step\":0,\"max\":2}}", NULL},
	    {P ".replay_gap",
		"{\"exponential\":{\"initial\":1,\"factor\":2,\"max\":4}}",
		NULL},
	    {P ".replay_gap", "{\"linear\":{\"initial\":1,\"max\":2}}",
		P ".replay_gap.linear.step: is missing"},
	    {P ".replay_gap",
		"{\"linear\":{\"initial\":0,\"step\":1,\"max\":2}}",
		P ".replay_gap.linear.initial: " U32_RANGE "0"},
	    {P ".replay_gap",
		"{\"linear\":{\"initial\":1,\"factor\":1,\"max\":2}}",
		P ".replay_gap.linear.factor: unknown key"},
	    {P ".replay_gap",
		"{\"linear\":{\"initial\":3,\"step\":1,\"max\":2}}",
		P
		".replay_gap.linear.max: must be at least initial: it is 2, but initial is 3"},
	    {P ".replay_gap",
		"{\"exponential\":{\"initial\":3,\"factor\":1,\"max\":2}}",
		P
		".replay_gap.exponential.max: must be at least initial: it is 2, but initial is 3"},
	    {P ".replay_gap",
		"{\"linear\":{\"initial\":1,\"step\":1,\"max\":0}}",
		P ".replay_gap.linear.max: " U32_RANGE "0"},
	    {P ".replay_gap",
		"{\"linear\":{\"initial\":1,\"step\":4294967295,"
		"\"max\":2}}",
		NULL},
	    {P ".replay_gap",
		"{\"exponential\":{\"initial\":1,\"factor\":4294967295,"
		"\"max\":4294967296}}",
		P ".replay_gap.exponential.max: " U32_RANGE "4294967296"},
	    {P ".replay_gap",
		"{\"exponential\":{\"initial\":1,\"factor\":0,\"max\":4}}",
		P ".replay_gap.exponential.factor: " U32_RANGE "0"},
	    {P ".replay_gap", "{\"fixed\":1,\"linear\":{}}",
		P ".replay_gap: must hold exactly one of fixed, linear and "
		  "exponential"},
	    {P ".replay_gap", "{\"_\":1}",
		P ".replay_gap: must hold exactly one of fixed, linear and "
		  "exponential"},
	    {P ".replay_gap", "{\"quadratic\":{}}",
		P ".replay_gap.quadratic: unknown key"},
	    {P ".replay_gap", "1", P ".replay_gap: must be an object"},
	    {P ".preference", "{\"fixed\":0}", NULL},
	    {P ".preference", "\"first-round\"", NULL},
	    {P ".preference", "\"last-round\"",
		P ".preference: must be \"first-round\" or a schedule object"},
	    {P ".preference", "{\"fixed\":2}",
		P ".preference: " TOO_LONG
		  ": in round 0 it is 2 units, but the gap is 1"},
	    {P ".preference", "{\"fixed\":4294967295}",
		P ".preference: " TOO_LONG
		  ": in round 0 it is 4294967295 units, but the gap is 1"},
	    {P ".preference",
		"{\"linear\":{\"initial\":0,\"step\":0,\"max\":0}}", NULL},
	    {P ".preference",
		"{\"exponential\":{\"initial\":0,\"factor\":9,\"max\":9}}",
		NULL},
	    {P ".preference",
		"{\"linear\":{\"initial\":2,\"step\":0,\"max\":1}}",
		P
		".preference.linear.max: must be at least initial: it is 1, but initial is 2"},
	    {P ".preference",
		"{\"exponential\":{\"initial\":2,\"factor\":1,\"max\":1}}",
		P
		".preference.exponential.max: must be at least initial: it is 1, but initial is 2"},
	    {P ".preference",
		"{\"exponential\":{\"initial\":1,\"factor\":0,\"max\":1}}",
		P ".preference.exponential.factor: " U32_RANGE "0"},
	    {P ".preference", "\"FIRST-ROUND\"",
		P ".preference: must be \"first-round\" or a schedule object"},
	    {P ".preference", "[1]",
		P ".preference: must be \"first-round\" or a schedule object"},
	    {P ".preference", "{\"first-round\":1}",
		P ".preference.first-round: unknown key"},
	    {P ".final_receive_units", "0", NULL},
	    {P ".final_receive_units", "-1",
		P ".final_receive_units: must be 0..4294967295, not -1"},
	    {P ".final_preference_units", "1", NULL},
	    {P ".final_preference_units", "2",
		P ".final_preference_units: must be 0 to "
		  "final_receive_units: it is 2, but final_receive_units is 1"},
	    BOOLEAN(P ".completion_delivery", P ".completion_delivery"),
	    {P ".suspect_after", "0", NULL},
	    {P ".suspect_after", "4294967295", NULL},
	    {P ".suspect_after", "-1",
		P ".suspect_after: must be 0..4294967295, not -1"},
	};

	RUN(edits);
}
END_TEST

/* What values mean together: policies as a whole. The key allows 300 ms. */
START_TEST(test_policies)
{
	static const struct edit edits[] = {
	    /* P(k) over B(k) in a later round alone; then never. */
	    {P,
		"{\"replay_count\":2,\"preference\":{\"linear\":{"
		"\"initial\":0,\"step\":1,\"max\":2}}}",
		P ".preference: " TOO_LONG
		  ": in round 2 it is 2 units, but the gap is 1"},
	    {P,
		"{\"replay_count\":1,\"preference\":{\"linear\":{"
		"\"initial\":0,\"step\":1,\"max\":2}}}",
		NULL},
	    {P,
		"{\"replay_count\":2,\"replay_gap\":{\"exponential\":{"
		"\"initial\":2,\"factor\":2,\"max\":3}},"
		"\"preference\":{\"exponential\":{\"initial\":1,"
		"\"factor\":2,\"max\":4}}}",
		P ".preference: " TOO_LONG
		  ": in round 2 it is 4 units, but the gap is 3"},
	    {P,
		"{\"replay_count\":2,\"replay_gap\":{\"exponential\":{"
		"\"initial\":2,\"factor\":2,\"max\":3}},"
		"\"preference\":{\"exponential\":{\"initial\":1,"
		"\"factor\":2,\"max\":3}}}",
		NULL},
	    /* The preset, with every other part. */
	    {P,
		"{\"preference\":\"first-round\",\"replay_count\":0,"
		"\"final_receive_units\":0}",
		NULL},
	    {P,
		"{\"preference\":\"first-round\",\"replay_count\":3,"
		"\"replay_gap\":{\"linear\":{\"initial\":2,\"step\":1,"
		"\"max\":4}},\"suspect_after\":1}",
		NULL},
	    {P,
		"{\"preference\":\"first-round\","
		"\"final_preference_units\":0}",
		NULL},
	    {P,
		"{\"preference\":\"first-round\","
		"\"final_preference_units\":1}",
		P ".final_preference_units: must be 0 with the first-round "
		  "preference: it is 1"},
	    {P, "{\"final_receive_units\":0,\"final_preference_units\":1}",
		P ".final_preference_units: must be 0 to "
		  "final_receive_units: it is 1, but final_receive_units is 0"},
	    /* 20 (1 + 2 + 4 + 7) + 20 is 300; a unit more is not. */
	    {P,
		"{\"replay_count\":3,\"replay_gap\":{\"exponential\":{"
		"\"initial\":1,\"factor\":2,\"max\":7}}}",
		NULL},
	    {P,
		"{\"replay_count\":3,\"replay_gap\":{\"exponential\":{"
		"\"initial\":1,\"factor\":2,\"max\":8}}}",
		P ": its horizon of 320 ms is over the key's deduplication "
		  "limit of 300 ms"},
	    {P, "{\"final_receive_units\":13}", NULL},
	    {P, "{\"final_receive_units\":14}",
		P ": its horizon of 320 ms is over the key's deduplication "
		  "limit of 300 ms"},
	    /* The most that fits 32 bits, and what does not. */
	    {P,
		"{\"unit_ms\":1,\"replay_count\":0,"
		"\"final_receive_units\":4294967294}",
		P ": its horizon of 4294967295 ms is over the key's "
		  "deduplication limit of 300 ms"},
	    {P,
		"{\"unit_ms\":1,\"replay_count\":0,"
		"\"final_receive_units\":4294967295}",
		P OVERFLOW},
	    {P,
		"{\"unit_ms\":4294967295,\"replay_count\":31,"
		"\"replay_gap\":{\"fixed\":4294967295},"
		"\"final_receive_units\":4294967295}",
		P OVERFLOW},
	    {P,
		"{\"unit_ms\":65536,\"replay_count\":0,"
		"\"replay_gap\":{\"fixed\":65536}}",
		P OVERFLOW},
	    {P,
		"{\"unit_ms\":1,\"replay_count\":31,"
		"\"replay_gap\":{\"exponential\":{\"initial\":1,"
		"\"factor\":4294967295,\"max\":4294967295}}}",
		P OVERFLOW},
	    {P, "null", P ": must be an object"},
	};

	RUN(edits);
}
END_TEST

/* A key without a limit takes any horizon that the wire can say. */
START_TEST(test_a_key_without_a_limit)
{
	char text[CREDENTIAL_TEXT_MAX], err[CONFIG_ERR_MAX];
	struct credential cred = {
	    .auth = AUTH_COOKIE,
	    .format = KEY_UNVERSIONED,
	    .key_id = 1,
	    .quotas = {1, 1, 1, 1, 0, UINT32_MAX},
	};
	struct config *c;

	ck_assert_int_eq(credential_format(&cred, text, sizeof(text)), 0);
	setenv("RLA_TEST_ENDLESS", text, 1);
	c = fixture_parse(
	    "{\"tenants\":{\"t\":{\"key\":" ENV(
		"RLA_TEST_ENDLESS") ",\"policy\":{\"unit_ms\":4294967295,"
				    "\"replay_count\":0,"
				    "\"final_receive_units\":0}}}}",
	    err);
	ck_assert_msg(c != NULL, "%s", err);
	ck_assert_uint_eq(c->tenants[0].plan.ttl_ms, UINT32_MAX);
	ck_assert_uint_eq(config_max_horizon_ms(c), UINT32_MAX);
	config_unref(c);
	ck_assert_ptr_null(fixture_parse(
	    "{\"tenants\":{\"t\":{\"key\":" ENV(
		"RLA_TEST_ENDLESS") ",\"policy\":{\"unit_ms\":4294967295}}}}",
	    err));
	ck_assert_str_eq(err,
	    "t.json: tenants.t.policy: its horizon of more than 4294967295 ms "
	    "is over the protocol's limit of 4294967295 ms");
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("config_policy");
	TCase *tc = tcase_create("policies");

	tcase_set_timeout(tc, 60);
	tcase_add_unchecked_fixture(tc, fixture_keys, NULL);
	tcase_add_test(tc, test_policy);
	tcase_add_test(tc, test_policies);
	tcase_add_test(tc, test_a_key_without_a_limit);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
