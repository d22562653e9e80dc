/*
 * Tenants: every key with good and bad values, what the API key resolves,
 * several of them, static servers and the text of addresses.
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
		"tenants.main.on_failure.local: only a rule can have a local "
		"limiter"},
	    {"tenants.main.on_failure", "{}",
		"tenants.main.on_failure: must be one of \"open\", "
		"\"closed\""},
	    {"tenants.main.on_failure", "{\"remote\":{}}",
		"tenants.main.on_failure.remote: unknown key"},
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

/* Three of them, each with a key, a way to its servers and a policy of its own;
 * rules that go to each, and guards that share a tracker. */
static const char several[] =
    "{\"tenants\":{"
    "\"a\":{\"key\":" ENV(
	"RATELIMITLY_AUTH_KEY") ",\"dns\":{"
				"\"name\":\"a.example\",\"nameservers\":[\"192.0.2.1\"]},"
				"\"policy\":{\"unit_ms\":7}},"
				"\"b\":{\"key\":" ENV(
				    "RLA_TEST_AES") ",\"dns\":{\"jitter_ms\":5},"
						    "\"on_failure\":\"closed\",\"policy\":{\"replay_count\":0}},"
						    "\"c\":{\"key\":" ENV(
							"RLA_TEST_AES") ","
									"\"servers\":[{\"id\":\"1\",\"address\":\"192.0.2.1:1\"}]}},"
									"\"trackers\":{\"db\":{\"ttl_ms\":9},\"web\":{}},"
									"\"rules\":{"
									"\"r1\":{\"tenant\":\"c\",\"guards\":[{\"tracker\":\"db\"},"
									"{\"tracker\":\"web\"},{\"tracker\":\"db\",\"below_ms\":7}]},"
									"\"r2\":{\"tenant\":\"a\",\"guards\":[{\"tracker\":\"db\"}]},"
									"\"r3\":{\"tenant\":\"b\"}}}";

START_TEST(test_several_tenants)
{
	char err[CONFIG_ERR_MAX];
	struct config *c = fixture_parse(several, err);
	const struct config_tenant *t;
	const struct config_rule *r;

	ck_assert_msg(c != NULL, "%s", err);
	t = c->tenants;
	ck_assert_uint_eq(c->tenant_count, 3);
	ck_assert_uint_eq(t[0].cred.key_id, 2);
	ck_assert_uint_eq(t[1].cred.key_id, 3);
	ck_assert_mem_ne(t[0].cred.secret, t[1].cred.secret, 32);
	ck_assert_str_eq(t[0].dns.name, "a.example");
	ck_assert_str_eq(t[1].dns.name, "c-3.p0.ratelimitly.com");
	ck_assert_uint_eq(t[0].dns.nameserver_count, 1);
	ck_assert_uint_eq(t[1].dns.nameserver_count, 0);
	ck_assert_uint_eq(t[0].dns.jitter_ms, 0);
	ck_assert_uint_eq(t[1].dns.jitter_ms, 5);
	ck_assert_uint_eq(t[0].plan.ttl_ms, 21);
	ck_assert_uint_eq(t[1].plan.ttl_ms, 40);
	ck_assert_uint_eq(t[2].plan.ttl_ms, 60);
	ck_assert_uint_eq(config_max_horizon_ms(c), 60);
	ck_assert_int_eq(t[0].on_failure, FAILURE_OPEN);
	ck_assert_int_eq(t[1].on_failure, FAILURE_CLOSED);
	ck_assert_uint_eq(t[1].server_count, 0);
	ck_assert_uint_eq(t[2].server_count, 1);
	r = c->rules;
	ck_assert_uint_eq(r[0].tenant, 2);
	ck_assert_uint_eq(r[1].tenant, 0);
	ck_assert_uint_eq(r[2].tenant, 1);
	ck_assert_uint_eq(r[0].guard_count, 3);
	ck_assert_str_eq(c->trackers[r[0].guards[0].tracker].name, "db");
	ck_assert_str_eq(c->trackers[r[0].guards[1].tracker].name, "web");
	ck_assert_uint_eq(r[0].guards[2].tracker, r[0].guards[0].tracker);
	ck_assert_uint_eq(r[1].guards[0].tracker, r[0].guards[0].tracker);
	ck_assert_uint_eq(r[0].guards[0].below_ms, 100);
	ck_assert_uint_eq(r[0].guards[2].below_ms, 7);
	config_unref(c);
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
	tcase_add_test(tc, test_several_tenants);
	tcase_add_test(tc, test_what_the_key_resolves);
	tcase_add_test(tc, test_servers_are_merged);
	tcase_add_test(tc, test_server_caps);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
