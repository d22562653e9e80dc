/*
 * Tenants: every key with good and bad values, what the API key resolves, the
 * policy against it, static servers and the text of addresses.
 */
#include "daemon/config.h"

#include "tests/unit/config_edit.h"

START_TEST(test_tenants)
{
	static const struct edit edits[] = {
	    {"tenants", NULL, "tenants: is missing"},
	    {"tenants", "{}", "tenants: must have 1..64 entries, not 0"},
	    {"tenants", "{\"_main\":{}}",
		"tenants: must have 1..64 entries, not 0"},
	    {"tenants.main.key", NULL, "tenants.main.key: is missing"},
	    {"tenants.main.profile", "\"auto\"", NULL},
	    {"tenants.main.profile", "\"v1\"", NULL},
	    {"tenants.main.profile", "\"v2\"", NULL},
	    {"tenants.main.profile", "\"v3\"",
		"tenants.main.profile: must be one of \"auto\", \"v1\", "
		"\"v2\""},
	    {"tenants.main.profile", "2",
		"tenants.main.profile: must be one of \"auto\", \"v1\", "
		"\"v2\""},
	    {"tenants.main.strict_source", "null", NULL},
	    {"tenants.main.strict_source", "true", NULL},
	    {"tenants.main.strict_source", "\"yes\"",
		"tenants.main.strict_source: must be true, false or null"},
	    {"tenants.main.on_failure", "\"open\"", NULL},
	    {"tenants.main.on_failure", "null",
		"tenants.main.on_failure: must be one of \"open\", "
		"\"closed\""},
	    {"tenants.main.on_failure", "{\"local\":{}}",
		"tenants.main.on_failure.local: not yet supported"},
	    {"tenants.main.DNS", "{}", "tenants.main.DNS: unknown key"},
	    {"tenants.other.dns", "{\"name\":null,\"nameservers\":[]}", NULL},
	    {"tenants.other.dns", "{\"name\":\"x.example\"}",
		"tenants.other.servers: cannot be given together with "
		"dns.name"},
	    {"tenants.other.dns", "{\"nameservers\":[\"192.0.2.1\"]}",
		"tenants.other.servers: cannot be given together with "
		"dns.nameservers"},
	    {"tenants.other.servers", "[]", NULL},
	    {"tenants.other.servers.0.id", "7",
		"tenants.other.servers[0].id: must be a string"},
	    {"tenants.other.servers.0.id", "\"18446744073709551615\"", NULL},
	    {"tenants.other.servers.0.id", "\"18446744073709551616\"",
		"tenants.other.servers[0].id: must be a string of decimal "
		"digits that fits 64 bits"},
	    {"tenants.other.servers.0.id", "\"07\"",
		"tenants.other.servers[0].id: must be a string of decimal "
		"digits that fits 64 bits"},
	    {"tenants.other.servers.0.address", NULL,
		"tenants.other.servers[0].address: is missing"},
	    {"tenants.other.servers.0.address", "\"192.0.2.1\"",
		"tenants.other.servers[0].address: must be ADDRESS:PORT or "
		"[V6]:PORT, not \"192.0.2.1\""},
	    {"tenants.other.servers.0.port", "1",
		"tenants.other.servers[0].port: unknown key"},
	    {"tenants.other.servers",
		"[{\"id\":\"7\",\"address\":\"[::1]:1\"},"
		"{\"id\":\"7\",\"address\":\"[::1]:2\"}]",
		NULL},
	    {"tenants.other.servers",
		"[{\"id\":\"7\",\"address\":\"[::1]:1\"},"
		"{\"id\":\"7\",\"address\":\"[0::1]:1\"}]",
		"tenants.other.servers[1].address: is given twice"},
	};

	RUN(edits);
}
END_TEST

START_TEST(test_dns)
{
	static const struct edit edits[] = {
	    {"tenants.main.dns.name", "null", NULL},
	    {"tenants.main.dns.name", "\"c-1.p0.example\"", NULL},
	    {"tenants.main.dns.name", "\"c-1.p0.example.\"", NULL},
	    {"tenants.main.dns.name", "\"\"",
		"tenants.main.dns.name: must be a DNS name, not "
		"\"\""},
	    {"tenants.main.dns.name", "\"a..b\"",
		"tenants.main.dns.name: must be a DNS name, not "
		"\"a..b\""},
	    {"tenants.main.dns.name", "\".\"",
		"tenants.main.dns.name: must be a DNS name, not "
		"\".\""},
	    {"tenants.main.dns.name", "\"a b\"",
		"tenants.main.dns.name: must be a DNS name, not "
		"\"a b\""},
	    {"tenants.main.dns.name", "4",
		"tenants.main.dns.name: must be a string"},
	    RANGE("tenants.main.dns.refresh_ms", "tenants.main.dns.refresh_ms",
		1000, 86400000, 999, 86400001),
	    RANGE("tenants.main.dns.forced_min_ms",
		"tenants.main.dns.forced_min_ms", 1, 30000, 0, 30001),
	    RANGE("tenants.main.dns.jitter_ms", "tenants.main.dns.jitter_ms", 0,
		60000, -1, 60001),
	    RANGE("tenants.main.dns.timeout_ms", "tenants.main.dns.timeout_ms",
		1, 60000, 0, 60001),
	    BOOLEAN(
		"tenants.main.dns.require_ad", "tenants.main.dns.require_ad"),
	    {"tenants.main.dns.nameservers",
		"[\"192.0.2.1\",\"192.0.2.1:5353\",\"[2001:db8::1]:53\"]",
		NULL},
	    {"tenants.main.dns.nameservers", "[\"192.0.2.1\",\"ns.example\"]",
		"tenants.main.dns.nameservers[1]: must be ADDRESS, "
		"ADDRESS:PORT or [V6]:PORT, not \"ns.example\""},
	    {"tenants.main.dns.nameservers", "[53]",
		"tenants.main.dns.nameservers[0]: must be a string"},
	    {"tenants.main.dns.nameservers",
		"[\"::1\",\"::2\",\"::3\",\"::4\",\"::5\",\"::6\",\"::7\","
		"\"::8\",\"::9\"]",
		"tenants.main.dns.nameservers: must have 0..8 entries, not "
		"9"},
	    {"tenants.main.dns.servers", "[]",
		"tenants.main.dns.servers: unknown key"},
	};

	RUN(edits);
}
END_TEST

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

START_TEST(test_what_the_key_resolves)
{
	char err[CONFIG_ERR_MAX];
	struct config *c = fixture_parse(
	    "{\"tenants\":{\"aes\":{\"key\":" ENV(
		"RLA_TEST_AES") "},"
				"\"cookie\":{\"key\":" ENV(
				    "RATELIMITLY_AUTH_KEY") "},"
							    "\"forced\":{\"key\":" ENV(
								"RLA_TEST_NONE") ",\"profile\":\"v1\",\"strict_source\":false,"
										 "\"dns\":{\"name\":\"x.example\"}},"
										 "\"none\":{\"key\":" ENV(
										     "RLA_TEST_NONE") "}}}",
	    err);
	const struct config_tenant *t;

	ck_assert_msg(c != NULL, "%s", err);
	ck_assert_uint_eq(c->warning_count, 1);
	ck_assert_str_eq(c->warnings[0],
	    "t.json: tenants.forced.profile: v1, but the key's format goes "
	    "with v2: guards and reports will be ignored if that is wrong");
	t = config_tenant(c, "aes", 3);
	ck_assert_int_eq(t->profile, PROFILE_V1);
	ck_assert(!t->strict_source);
	ck_assert_str_eq(t->dns.name, "c-3.p0.ratelimitly.com");
	ck_assert_uint_eq(t->dns.refresh_ms, 300000);
	ck_assert_uint_eq(t->dns.forced_min_ms, 1000);
	ck_assert_uint_eq(t->dns.jitter_ms, 0);
	ck_assert_uint_eq(t->dns.timeout_ms, 1000);
	ck_assert(!t->dns.require_ad);
	ck_assert_uint_eq(t->dns.nameserver_count, 0);
	ck_assert_int_eq(t->on_failure, FAILURE_OPEN);
	ck_assert_uint_eq(t->plan.ttl_ms, 60);
	t = config_tenant(c, "cookie", 6);
	ck_assert_int_eq(t->profile, PROFILE_V1);
	ck_assert(t->strict_source);
	t = config_tenant(c, "none", 4);
	ck_assert_int_eq(t->profile, PROFILE_V2);
	ck_assert(t->strict_source);
	t = config_tenant(c, "forced", 6);
	ck_assert_int_eq(t->profile, PROFILE_V1);
	ck_assert(!t->strict_source);
	ck_assert_str_eq(t->dns.name, "x.example");
	config_unref(c);
}
END_TEST

START_TEST(test_servers_are_merged)
{
	char err[CONFIG_ERR_MAX];
	struct config *c = fixture_parse(
	    "{\"tenants\":{\"t\":{\"key\":" ENV(
		"RATELIMITLY_AUTH_KEY") ",\"servers\":[{\"id\":\"9\",\"address\":\"192.0.2.9:1\"},"
					"{\"id\":\"0\",\"address\":\"[2001:db8::1]:2\"},"
					"{\"id\":\"9\",\"address\":\"192.0.2.9:3\"}]}}}",
	    err);
	const struct config_tenant *t;

	ck_assert_msg(c != NULL, "%s", err);
	t = c->tenants;
	ck_assert_uint_eq(t->server_count, 2);
	ck_assert_uint_eq(t->servers[0].server_id, 9);
	ck_assert_uint_eq(t->servers[0].addr_count, 2);
	ck_assert_uint_eq(t->servers[0].addrs[1].port, 3);
	ck_assert_uint_eq(t->servers[1].server_id, 0);
	ck_assert_uint_eq(t->servers[1].addrs[0].family, 6);
	config_unref(c);
}
END_TEST

/* 64 ids and 8 addresses of one are the most. */
START_TEST(test_server_caps)
{
	static const struct {
		unsigned ids, addresses;
		const char *error;
	} cases[] = {
	    {64, 1, ""},
	    {65, 1, "[64].id: is one server too many"},
	    {1, 8, ""},
	    {1, 9, "[8].address: is one too many for its server"},
	    {64, 8, ""},
	};
	char err[CONFIG_ERR_MAX], expected[256];
	json_t *list;
	char *servers, *text;
	struct config *c;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		list = json_array();
		for (unsigned k = 0; k < cases[i].ids * cases[i].addresses;
		     k++) {
			char id[16], address[32];

			snprintf(id, sizeof(id), "%u", k % cases[i].ids);
			snprintf(
			    address, sizeof(address), "192.0.2.1:%u", k + 1);
			json_array_append_new(
			    list, json_pack("{s:s,s:s}", "id", id, "address",
				      address));
		}
		servers = json_dumps(list, 0);
		text = edited(
		    &(struct edit){"tenants.other.servers", servers, NULL});
		c = fixture_parse(text, err);
		snprintf(expected, sizeof(expected), "%s%s",
		    cases[i].error[0] ? "t.json: tenants.other.servers" : "",
		    cases[i].error);
		ck_assert_str_eq(err, expected);
		ck_assert_int_eq(c == NULL, cases[i].error[0] != '\0');
		config_unref(c);
		free(text);
		free(servers);
		json_decref(list);
	}
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("config_tenant");
	TCase *tc = tcase_create("keys");

	tcase_set_timeout(tc, 60);
	tcase_add_unchecked_fixture(tc, fixture_keys, NULL);
	tcase_add_test(tc, test_tenants);
	tcase_add_test(tc, test_dns);
	tcase_add_test(tc, test_policy);
	tcase_add_test(tc, test_policies);
	tcase_add_test(tc, test_a_key_without_a_limit);
	tcase_add_test(tc, test_what_the_key_resolves);
	tcase_add_test(tc, test_servers_are_merged);
	tcase_add_test(tc, test_server_caps);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
