/*
 * Gateways: every key with good and bad values, by the exact line that a bad
 * one gives, the defaults, and that no two want the same place.
 */
#include "daemon/config.h"

#include "tests/unit/config_edit.h"

#define G       "gateway.front"
#define IS      G ".listen: must be unix:PATH, 127.0.0.1:PORT or [::1]:PORT"
#define NO_PORT IS ", with a port from 1 to 65535"
#define PUBLIC  IS ": whoever reaches it may ask, so other hosts must not"
#define NEAR                                                          \
	G ".listen: is too near to that of listener main: PATH.lock " \
	  "and PATH.new are taken, too"

START_TEST(test_gateways)
{
	static const struct edit edits[] = {
	    {"gateway", "{}", NULL},
	    {"gateway", "[]", "gateway: must be an object"},
	    {"gateway", "{\"front\":{}}", G ".listen: is missing"},
	    {G, "{\"listen\":\"127.0.0.1:80\"}", NULL},
	    {G, "{\"listen\":\"127.9.8.7:65535\"}", NULL},
	    {G, "{\"listen\":\"[::1]:1\"}", NULL},
	    {G, "{\"listen\":\"[0::0:1]:1\"}", NULL},
	    {G, "{\"listen\":80}", G ".listen: must be a string"},
	    {G, "{\"listen\":\"127.0.0.1\"}", NO_PORT},
	    {G, "{\"listen\":\"127.0.0.1:0\"}", NO_PORT},
	    {G, "{\"listen\":\"127.0.0.1:65536\"}", NO_PORT},
	    {G, "{\"listen\":\"localhost:80\"}", NO_PORT},
	    {G, "{\"listen\":\"::1:80\"}", NO_PORT},
	    {G, "{\"listen\":\"/run/x\"}", NO_PORT},
	    {G, "{\"listen\":\"[::ffff:127.0.0.1]:80\"}", NO_PORT},
	    {G, "{\"listen\":\"0.0.0.0:80\"}", PUBLIC},
	    {G, "{\"listen\":\"192.0.2.1:80\"}", PUBLIC},
	    {G, "{\"listen\":\"[::]:80\"}", PUBLIC},
	    {G, "{\"listen\":\"[::2]:80\"}", PUBLIC},
	    {G, "{\"listen\":\"unix:http.sock\"}",
		G ".listen: must be the absolute path of a file"},
	    {G, "{\"listen\":\"unix:\"}",
		G ".listen: must be the absolute path of a file"},
	    {G, "{\"listen\":\"unix:/run/x/agent.sock\"}",
		G ".listen: is the path of listener main, too"},
	    {G, "{\"listen\":\"unix:/run/x/./agent.sock.lock\"}", NEAR},
	    {G, "{\"listen\":\"unix:/run/x/control.sock\"}",
		G ".listen: is the path of the control socket, too"},
	    {"gateway.local.listen", "\"127.0.0.1:8080\"",
		"gateway.local.listen: is the address of gateway front, too"},
	    {G ".listen", "\"127.0.0.1:8081\"", NULL},
	    {G ".mode", "\"0600\"", G ".mode: only a Unix socket has one"},
	    {G ".group", "\"root\"", G ".group: only a Unix socket has one"},
	    {G ".group", "null", NULL},
	    {G ".rules", "[]", NULL},
	    {G ".rules", "[1]", G ".rules[0]: must be a string"},
	    RANGE(G ".deny_status", G ".deny_status", 400, 599, 399, 600),
	    RANGE(
		G ".max_connections", G ".max_connections", 1, 65536, 0, 65537),
	    {G ".key_header", "null", NULL},
	    {G ".key_header", "\"X-Api_Key\"", NULL},
	    {G ".key_header", "\"\"",
		G ".key_header: must be 1..64 bytes long"},
	    {G ".key_header", "\"X Key\"",
		G ".key_header: must be the name of a header"},
	    {G ".key_header", "\"X-Key:\"",
		G ".key_header: must be the name of a header"},
	    {G ".adhoc", "true", G ".adhoc: unknown key"},
	};

	RUN(edits);
}
END_TEST

static struct config *
with_gateway(const char *gateway, char err[CONFIG_ERR_MAX])
{
	char text[512];

	snprintf(text, sizeof(text),
	    "{\"tenants\":{\"t\":{\"key\":" ENV(
		"RATELIMITLY_AUTH_KEY") "}},\"gateway\":{%s}}",
	    gateway);
	return fixture_parse(text, err);
}

START_TEST(test_defaults)
{
	char err[CONFIG_ERR_MAX];
	struct config *c =
	    with_gateway("\"a\":{\"listen\":\"unix:/run//x/./h\"},"
			 "\"b\":{\"listen\":\"[0:0:0::1]:80\"}",
		err);
	const struct config_gateway *g;

	ck_assert_msg(c != NULL, "%s", err);
	ck_assert_uint_eq(c->gateway_count, 2);
	g = &c->gateways[0];
	ck_assert_str_eq(g->name, "a");
	ck_assert_str_eq(g->address, "/run/x/h");
	ck_assert(!g->tcp);
	ck_assert_uint_eq(g->mode, 0660);
	ck_assert_uint_eq(g->gid, (gid_t)-1);
	ck_assert_uint_eq(g->deny_status, 429);
	ck_assert_uint_eq(g->max_connections, 256);
	ck_assert_ptr_null(g->key_header);
	ck_assert(config_allows(&g->rules, "anything", 8));
	g = &c->gateways[1];
	ck_assert(g->tcp);
	ck_assert_str_eq(g->address, "[::1]:80");
	ck_assert_uint_eq(g->at.port, 80);
	ck_assert_uint_eq(c->warning_count, 0);
	config_unref(c);
}
END_TEST

START_TEST(test_patterns_that_match_nothing)
{
	char err[CONFIG_ERR_MAX];
	struct config *c = with_gateway(
	    "\"a\":{\"listen\":\"127.0.0.1:80\",\"rules\":[\"no*\"]}", err);

	ck_assert_msg(c != NULL, "%s", err);
	ck_assert_uint_eq(c->warning_count, 1);
	ck_assert_ptr_nonnull(strstr(
	    c->warnings[0], "gateway.a.rules[0]: matches none of the rules"));
	config_unref(c);
}
END_TEST

/* Over TCP the kernel does not tell who asks; over a Unix socket it does. */
START_TEST(test_rules_that_need_a_user)
{
	char err[CONFIG_ERR_MAX], text[1024];
	struct config *c;

	snprintf(text, sizeof(text),
	    "{\"tenants\":{\"t\":{\"key\":" ENV(
		"RATELIMITLY_AUTH_KEY") "}},"
					"\"trackers\":{\"of-{gid}\":{}},"
					"\"rules\":{\"key\":{\"resources\":[{\"bucket\":\"b{key}\"}]},"
					"\"user\":{\"resources\":[{\"bucket\":\"{{{key}{uid}\"}]},"
					"\"group\":{\"guards\":[{\"tracker\":\"of-{gid}\"}]}},"
					"\"gateway\":{"
					"\"a\":{\"listen\":\"127.0.0.1:80\",\"rules\":[\"u*\"]},"
					"\"b\":{\"listen\":\"127.0.0.1:81\",\"rules\":[\"g*\"]},"
					"\"c\":{\"listen\":\"127.0.0.1:82\",\"rules\":[\"k*\"]},"
					"\"d\":{\"listen\":\"unix:/run/x/h\"}}}");
	c = fixture_parse(text, err);
	ck_assert_msg(c != NULL, "%s", err);
	ck_assert_uint_eq(c->warning_count, 2);
	ck_assert_ptr_nonnull(strstr(c->warnings[0],
	    "gateway.a.rules: rule user needs {uid} or {gid}, "));
	ck_assert_ptr_nonnull(strstr(c->warnings[1],
	    "gateway.b.rules: rule group needs {uid} or {gid}, "));
	config_unref(c);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("config_gateway");
	TCase *tc = tcase_create("gateways");

	tcase_set_timeout(tc, 60);
	tcase_add_unchecked_fixture(tc, fixture_keys, NULL);
	tcase_add_test(tc, test_gateways);
	tcase_add_test(tc, test_defaults);
	tcase_add_test(tc, test_patterns_that_match_nothing);
	tcase_add_test(tc, test_rules_that_need_a_user);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
