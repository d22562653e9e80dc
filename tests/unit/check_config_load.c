/*
 * A configuration as a whole: reading the file, what is not JSON, warnings,
 * the hash, the environment, and mutated files, which must give a
 * configuration or one line, never anything else.
 */
#include "daemon/config.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/config_edit.h"

#define TENANT_DNS(name, dns)                                                 \
	"{\"tenants\":{\"t\":{\"key\":" ENV(name) ",\"dns\":{\"name\":\"" dns \
						  "\"}}}}"
#define TENANT(name) "{\"tenants\":{\"t\":{\"key\":" ENV(name) "}}"

static void
fails(const char *text, const char *error)
{
	char err[CONFIG_ERR_MAX];

	ck_assert_ptr_null(fixture_parse(text, err));
	ck_assert_str_eq(err, error);
}

/* The words are jansson's, and another version may choose others. */
static void
fails_at(const char *text, const char *where)
{
	char err[CONFIG_ERR_MAX];

	ck_assert_ptr_null(fixture_parse(text, err));
	ck_assert_msg(
	    strncmp(err, where, strlen(where)) == 0, "%s: %s", where, err);
	ck_assert_msg(
	    strlen(err) >= strlen(where) + (where[strlen(where) - 1] == ' '),
	    "no reason: %s", err);
	ck_assert_msg(strstr(err, "secret") == NULL, "quoted: %s", err);
}

START_TEST(test_what_is_not_json)
{
	fails("", "t.json: is empty");
	fails(" \r\n\t", "t.json: is empty");
	fails("null", "t.json:1:4: '{' expected");
	fails_at("{\n  \"log\": {},\n  \"log\": {}\n}",
	    "t.json:3:7: duplicate object key \"log\"");
	fails_at("{\"a\\\"b\":1,\"a\\\"b\":2}",
	    "t.json:1:16: duplicate object key \"a\\\"b\"");
	fails_at("{\"tenants\":{\"a\":{\"key\":{\"env\":\"A\",\"env\":1}}}}",
	    "t.json:1:39: duplicate object key \"env\"");
	fails_at("{\n // secret\n}", "t.json:2:2: ");
	fails_at("{\"log\": \"a\" \"secret\"}", "t.json:1:20: ");
	fails_at("{\"log\": {},}", "t.json:1:12: ");
	fails_at("{} {}", "t.json:1:4: ");
	fails_at("{\"a\": 99999999999999999999}", "t.json:1:26: ");
	fails_at("{\"a\": 1e400}", "t.json:1:11: ");
	fails_at("{\"a\": \"\\u0000\"}", "t.json:1:");
	fails_at("{\"a\": \"\xff\"}", "t.json:1:");
	fails("[]", "t.json: must be an object");
}
END_TEST

/* A key that was taken for a name, and more text than a line has room for. */
START_TEST(test_what_is_shown_of_a_value)
{
	char text[512], name[200], want[400];

	for (size_t i = 0; i < sizeof(name); i++)
		name[i] = i % 20 == 19 ? '-' : 'n';
	name[199] = '\0';
	snprintf(text, sizeof(text), TENANT_DNS("RATELIMITLY_AUTH_KEY", "_%s"),
	    name);
	snprintf(want, sizeof(want),
	    "t.json: tenants.t.dns.name: must be a DNS name, not \"_%.63s...\"",
	    name);
	fails(text, want);
	fails(TENANT_DNS("RATELIMITLY_AUTH_KEY", "rl-aes1qqsecret secret"),
	    "t.json: tenants.t.dns.name: must be a DNS name, not "
	    "\"rl-aes1... secret\"");
	/* A double click on a key takes what is behind the "-". */
	fails(TENANT_DNS(
		  "RATELIMITLY_AUTH_KEY", "aes1qyrsqqqqqqqqqqqqqqqqqqqqqqqqq/"),
	    "t.json: tenants.t.dns.name: must be a DNS name, not 34 bytes of "
	    "text");
	fails(TENANT_DNS("RATELIMITLY_AUTH_KEY", "a\\u001b[1m"),
	    "t.json: tenants.t.dns.name: must be a DNS name, not \"a?[1m\"");
	memset(name, 'k', 100);
	name[100] = '\0';
	snprintf(text, sizeof(text), "{\"%s\":1,\"%s\":2}", name, name);
	snprintf(want, sizeof(want),
	    "t.json:1:208: duplicate object key \"%.64s...\"", name);
	fails(text, want);
}
END_TEST

START_TEST(test_reading)
{
	char dir[] = "/tmp/rl-check-load-XXXXXX", path[64];
	char err[CONFIG_ERR_MAX], expected[CONFIG_ERR_MAX];
	struct config *c;
	int fd;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/c.json", dir);
	ck_assert_ptr_null(config_load(path, err));
	snprintf(
	    expected, sizeof(expected), "%s: No such file or directory", path);
	ck_assert_str_eq(err, expected);
	ck_assert_ptr_null(config_load(dir, err));
	snprintf(expected, sizeof(expected), "%s: Is a directory", dir);
	ck_assert_str_eq(err, expected);

	fd = open(path, O_WRONLY | O_CREAT, 0600);
	ck_assert_int_eq(write(fd, base, strlen(base)), strlen(base));
	c = config_load(path, err);
	ck_assert_msg(c != NULL, "%s", err);
	ck_assert_str_eq(c->source, path);
	config_unref(c);
	ck_assert_int_eq(ftruncate(fd, 4194305), 0);
	ck_assert_ptr_null(config_load(path, err));
	snprintf(expected, sizeof(expected), "%s: File too large", path);
	ck_assert_str_eq(err, expected);
	close(fd);
	unlink(path);
	rmdir(dir);
}
END_TEST

static void
warns(const char *text, const char *const *lines, size_t count)
{
	char err[CONFIG_ERR_MAX];
	struct config *c = fixture_parse(text, err);

	ck_assert_msg(c != NULL, "%s", err);
	ck_assert_uint_eq(c->warning_count, count);
	for (size_t i = 0; i < count; i++)
		ck_assert_str_eq(c->warnings[i], lines[i]);
	config_unref(c);
}

START_TEST(test_what_the_key_refuses_is_a_warning)
{
	static const char *const buffer[] = {
	    "t.json: rules.r.guards[1]: its tracker's buffer_size of 65 is "
	    "over the key's limit of 64: every check will fail"};
	static const char *const window[] = {
	    "t.json: rules.r.resources[1].window_ms: 1025 ms is over the "
	    "key's limit of 1024 ms: every check will fail"};
	static const char guards[] =
	    ",\"trackers\":{\"a\":{\"buffer_size\":64},"
	    "\"b\":{\"buffer_size\":65}},"
	    "\"rules\":{\"r\":{\"guards\":[{\"tracker\":\"a\"},"
	    "{\"tracker\":\"b\"}]}}}";
	static const char resources[] =
	    ",\"rules\":{\"r\":{\"resources\":["
	    "{\"bucket\":\"a\",\"window_ms\":1024},"
	    "{\"bucket\":\"b\",\"window_ms\":1025}]}}}";
	char text[1024];

	snprintf(
	    text, sizeof(text), "%s%s", TENANT("RATELIMITLY_AUTH_KEY"), guards);
	warns(text, buffer, 1);
	/* Profile v2 has no buffer_size, unversioned keys no window. */
	snprintf(text, sizeof(text), "%s%s", TENANT("RLA_TEST_NONE"), guards);
	warns(text, NULL, 0);
	snprintf(
	    text, sizeof(text), "%s%s", TENANT("RLA_TEST_WINDOW"), resources);
	warns(text, window, 1);
	snprintf(text, sizeof(text), "%s%s", TENANT("RATELIMITLY_AUTH_KEY"),
	    resources);
	warns(text, NULL, 0);
}
END_TEST

START_TEST(test_what_can_never_be_is_a_warning)
{
	static const char tokens[] =
	    "t.json: rules.r.resources[1].tokens: 4 is over the limit of 3: "
	    "every check will be denied";
	static const char *const lines[] = {
	    tokens,
	    "t.json: listeners.main.rules[1]: matches none of the rules",
	    "t.json: listeners.main.trackers[0]: matches none of the trackers",
	    "t.json: listeners.main.limiters[0]: matches none of the limiters",
	    "t.json: listeners.main.error_controls[1]: matches none of the "
	    "error_controls",
	    "t.json: listeners.other.limiters[1]: matches none of the limiters",
	};
	char text[1024];

	snprintf(text, sizeof(text),
	    "%s,\"rules\":{\"r\":{\"resources\":["
	    "{\"bucket\":\"a\",\"limit\":3,\"tokens\":3},"
	    "{\"bucket\":\"a\",\"limit\":3,\"tokens\":4}]}},"
	    "\"limiters\":{\"mail\":{}},\"error_controls\":{\"smtp\":{}},"
	    "\"listeners\":{\"main\":{\"rules\":[\"r\",\"r?\",\"*\"],"
	    "\"trackers\":[\"t*\"],\"limiters\":[\"smtp\"],"
	    "\"error_controls\":[\"s*\",\"mail\",\"*\"]},"
	    "\"other\":{\"path\":\"/x/y\",\"rules\":[],\"trackers\":[],"
	    "\"limiters\":[\"mai[l-n]\",\"r\"],\"error_controls\":[]}}}",
	    TENANT("RATELIMITLY_AUTH_KEY"));
	warns(text, lines, sizeof(lines) / sizeof(*lines));
}
END_TEST

START_TEST(test_more_than_any_datagram_is_a_warning)
{
	static const char *const line[] = {
	    "t.json: rules.r: its request has more than a datagram of 1200 "
	    "bytes holds: every check will fail"};
	char text[2048];
	size_t len = (size_t)snprintf(text, sizeof(text),
	    "%s,\"trackers\":{\"t\":{}},\"rules\":{\"r\":{\"guards\":["
	    "{\"tracker\":\"t\"},{\"tracker\":\"t\"}],\"resources\":["
	    "{\"bucket\":\"b\"}",
	    TENANT("RLA_TEST_NONE"));

	for (int i = 1; i < 40; i++)
		len += (size_t)snprintf(
		    text + len, sizeof(text) - len, ",{\"bucket\":\"b\"}");
	snprintf(text + len, sizeof(text) - len, "]}}}");
	warns(text, line, 1);
}
END_TEST

/* What could hang who reads it is not read again. */
START_TEST(test_only_a_regular_file_is_read_again)
{
	char dir[] = "/tmp/rl-check-load-XXXXXX", path[64];
	char err[CONFIG_ERR_MAX], expected[CONFIG_ERR_MAX];

	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/fifo", dir);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	ck_assert_ptr_null(config_load_again(path, err));
	snprintf(expected, sizeof(expected), "%s: is not a regular file", path);
	ck_assert_str_eq(err, expected);
	unlink(path);
	rmdir(dir);
}
END_TEST

/* 40 resources without authentication fit, with a cookie 39 do. */
START_TEST(test_what_a_datagram_refuses_is_a_warning)
{
	static const char *const line[] = {
	    "t.json: rules.r: its request of 1208 bytes does not fit a "
	    "datagram of 1200: every check will fail"};
	char text[2048];
	size_t len;

	for (int cookie = 0; cookie < 2; cookie++) {
		len = (size_t)snprintf(text, sizeof(text),
		    "%s,\"rules\":{\"r\":{\"resources\":[{\"bucket\":\"b\"}",
		    cookie ? TENANT("RATELIMITLY_AUTH_KEY")
			   : TENANT("RLA_TEST_NONE"));
		for (int i = 1; i < 40; i++)
			len += (size_t)snprintf(text + len, sizeof(text) - len,
			    ",{\"bucket\":\"b\"}");
		snprintf(text + len, sizeof(text) - len, "]}}}");
		warns(text, line, cookie ? 1 : 0);
		snprintf(
		    text + len, sizeof(text) - len, ",{\"bucket\":\"b\"}]}}}");
		fails(text, "t.json: rules.r.resources: must have 0..40 "
			    "entries, not 41");
	}
}
END_TEST

static void
hash(const char *text, uint8_t out[CONFIG_HASH_LEN])
{
	char err[CONFIG_ERR_MAX];
	struct config *c = fixture_parse(text, err);

	ck_assert_msg(c != NULL, "%s: %s", text, err);
	memcpy(out, c->hash, CONFIG_HASH_LEN);
	config_unref(c);
}

/* Texts of the same hash, whether by their form or by what they are about. */
START_TEST(test_equal_hashes)
{
#define NAMED ",\"trackers\":{\"{listener}\":{}}"
#define HASHED                                                      \
	"\"tenants\":{\"t\":{\"on_failure\":\"open\",\"key\":" ENV( \
	    "RLA_TEST_HASH") "}},\"rules\":{\"a\":{},\"b\":{}}"
	static const char *const texts[] = {
	    "{" HASHED "}",
	    "{ \"rules\" : {\"b\": {}, \"a\": {\"_\": 1}},\n\"_x\": [2.5], "
	    "\"tenants\":{\"t\":{\"key\":" ENV(
		"RLA_TEST_HASH") ",\"on_failure\":\"op\\u0065n\"}}}",
	    "{" HASHED ",\"log\":{\"level\":\"debug\"}}",
	    "{" HASHED ",\"limits\":{\"max_inflight\":7}}",
	    "{" HASHED ",\"control\":{\"mode\":\"0660\"}}",
	    /* No check goes by these. */
	    "{" HASHED ",\"limiters\":{}}",
	    "{" HASHED ",\"limiters\":{\"mail\":{}}}",
	    "{" HASHED ",\"limiters\":{\"mail\":{\"permits_per_second\":7}}}",
	    "{" HASHED ",\"error_controls\":{\"smtp\":{}}}",
	    "{" HASHED ",\"error_controls\":{\"smtp\":{\"burst\":0}}}",
	    "{" HASHED ",\"listeners\":{\"web\":{\"limiters\":[],"
	    "\"error_controls\":[\"x\"]}}}",
	    "{" HASHED ",\"listeners\":{\"web\":{},\"x\":{\"path\":\"/x/y\"}}}",
	    "{" HASHED ",\"listeners\":{\"web\":{\"trackers\":[]}}}",
	    "{" HASHED
	    ",\"listeners\":{\"web\":{\"mode\":\"0600\",\"max_inflight\":7,"
	    "\"max_connections\":7,\"rules\":[\"a\"],\"adhoc\":false,\"uids\":[7],\"gids\":[7]}}}",
	};
	uint8_t a[CONFIG_HASH_LEN], b[CONFIG_HASH_LEN];

	setenv("RLA_TEST_HASH", KEY_V1, 1);
	hash(texts[0], a);
	for (size_t i = 1; i < sizeof(texts) / sizeof(*texts); i++) {
		hash(texts[i], b);
		ck_assert_msg(
		    memcmp(a, b, sizeof(a)) == 0, "differs: %s", texts[i]);
	}
	/* Named by its listener: the default one is one that is written. */
	hash("{" HASHED NAMED "}", a);
	hash("{" HASHED NAMED ",\"listeners\":{\"main\":{\"mode\":\"0600\","
	     "\"path\":\"/run//rl-agent/./agent.sock\",\"max_inflight\":7}}}",
	    b);
	ck_assert_mem_eq(a, b, sizeof(a));
}
END_TEST

#define RULE(text) ",\"rules\":{\"a\":{},\"b\":{" text "}}}"

START_TEST(test_other_hashes)
{
	static const char *const texts[] = {
	    "{" HASHED "}",
	    TENANT("RLA_TEST_HASH") ",\"rules\":{\"a\":{},\"b\":{}}}",
	    TENANT("RLA_TEST_HASH") ",\"rules\":{\"a\":{},\"c\":{}}}",
	    TENANT("RLA_TEST_HASH") RULE("\"mode\":\"shadow\""),
	    TENANT("RLA_TEST_HASH") RULE("\"on_failure\":\"closed\""),
	    TENANT("RLA_TEST_HASH") RULE("\"on_failure\":{\"local\":{}}"),
	    TENANT("RLA_TEST_HASH") RULE("\"on_failure\":{\"local\":"
					 "{\"permits_per_second\":7}}"),
	    TENANT("RLA_TEST_HASH") RULE("\"on_failure\":{\"local\":"
					 "{\"max_keys\":7}}"),
	    TENANT("RLA_TEST_HASH") RULE("\"resources\":["
					 "{\"bucket\":\"x\"}]"),
	    TENANT("RLA_TEST_HASH") RULE("\"resources\":["
					 "{\"bucket\":\"x\",\"tokens\":2}]"),
	    /* Another order of limits is another request. */
	    TENANT("RLA_TEST_HASH") RULE("\"resources\":[{\"bucket\":\"x\"},"
					 "{\"bucket\":\"y\"}]"),
	    TENANT("RLA_TEST_HASH") RULE("\"resources\":[{\"bucket\":\"y\"},"
					 "{\"bucket\":\"x\"}]"),
	    "{" HASHED ",\"trackers\":{\"x\":{}}}",
	    "{" HASHED ",\"trackers\":{\"x\":{\"ttl_ms\":7}}}",
	    /* Other listeners, after one of which a tracker is named. */
	    "{" HASHED NAMED "}",
	    "{" HASHED NAMED ",\"listeners\":{\"web\":{}}}",
	    "{" HASHED NAMED ",\"listeners\":{\"main\":{\"path\":\"/x/y\"}}}",
	    "{" HASHED NAMED
	    ",\"listeners\":{\"main\":{},\"x\":{\"path\":\"/x/y\"}}}",
	};
	enum { COUNT = sizeof(texts) / sizeof(*texts) };
	uint8_t hashes[COUNT + 2][CONFIG_HASH_LEN];

	setenv("RLA_TEST_HASH", KEY_V1, 1);
	for (size_t i = 0; i < COUNT; i++)
		hash(texts[i], hashes[i]);
	/* Another key under the same name. */
	setenv("RLA_TEST_HASH", KEY_AES, 1);
	hash(texts[0], hashes[COUNT]);
	setenv("RLA_TEST_HASH", KEY_WINDOW, 1);
	hash(texts[0], hashes[COUNT + 1]);
	for (size_t i = 0; i < COUNT + 2; i++) {
		for (size_t k = 0; k < i; k++)
			ck_assert_msg(
			    memcmp(hashes[i], hashes[k], CONFIG_HASH_LEN) != 0,
			    "equal: %zu and %zu", k, i);
	}
}
END_TEST

static const char *const variables[] = {"RATELIMITLY_AUTH_KEY",
    "RATELIMITLY_TENANT", "RATELIMITLY_NAMESERVERS", "RL_AGENT_SOCKET"};

static void
environment(const char *values[4], const char *error)
{
	char err[CONFIG_ERR_MAX] = "";
	struct config *c;

	for (int i = 0; i < 4; i++) {
		unsetenv(variables[i]);
		if (values[i] != NULL)
			setenv(variables[i], values[i], 1);
	}
	c = config_from_environment(err);
	ck_assert_str_eq(err, error);
	ck_assert_int_eq(c == NULL, error[0] != '\0');
	config_unref(c);
}

#define ENVIRONMENT(error, ...) \
	environment((const char *[4]){__VA_ARGS__}, error)

START_TEST(test_environment)
{
	char err[CONFIG_ERR_MAX];
	struct config *c;

	ENVIRONMENT("environment: variable RATELIMITLY_AUTH_KEY: is not set",
	    NULL, NULL, NULL, NULL);
	ENVIRONMENT("environment: variable RATELIMITLY_AUTH_KEY: not a Bech32 "
		    "key (case, character or checksum)",
	    "x" KEY_V1, NULL, NULL, NULL);
	ENVIRONMENT("environment: RATELIMITLY_TENANT: must be a DNS name, not "
		    "\"a b\"",
	    KEY_V1, "a b", NULL, NULL);
	ENVIRONMENT("environment: RATELIMITLY_TENANT: is not text in UTF-8",
	    KEY_V1, "\xff", NULL, NULL);
	ENVIRONMENT("environment: RATELIMITLY_NAMESERVERS[1]: must be "
		    "ADDRESS, ADDRESS:PORT or [V6]:PORT, not \"x\"",
	    KEY_V1, NULL, "192.0.2.1,x", NULL);
	ENVIRONMENT("environment: RL_AGENT_SOCKET: must be the absolute path "
		    "of a file",
	    KEY_V1, NULL, NULL, "agent.sock");
	ENVIRONMENT("", KEY_V1, "", "", "");
	ENVIRONMENT("", KEY_V1, "x.example", " 192.0.2.1, ::1\t[::2]:54,",
	    "/run/y/a.sock");

	c = config_from_environment(err);
	ck_assert_msg(c != NULL, "%s", err);
	ck_assert_str_eq(c->source, "environment");
	ck_assert_uint_eq(c->tenant_count, 1);
	ck_assert_str_eq(c->tenants[0].name, "default");
	ck_assert_str_eq(c->tenants[0].dns.name, "x.example");
	ck_assert_uint_eq(c->tenants[0].dns.nameserver_count, 3);
	ck_assert_uint_eq(c->tenants[0].dns.nameservers[1].port, 53);
	ck_assert_uint_eq(c->tenants[0].dns.nameservers[2].port, 54);
	ck_assert_uint_eq(c->rule_count, 0);
	ck_assert_uint_eq(c->listener_count, 1);
	ck_assert_str_eq(c->listeners[0].path, "/run/y/a.sock");
	ck_assert(c->listeners[0].adhoc);
	ck_assert_str_eq(c->control.path, "/run/y/control.sock");
	ck_assert_ptr_eq(config_ref(c), c);
	config_unref(c);
	ck_assert_uint_eq(c->refs, 1);
	config_unref(c);
	config_unref(NULL);
}
END_TEST

/* Either a configuration or one line. */
static void
load_any(const char *text, size_t len)
{
	char err[CONFIG_ERR_MAX] = "";
	struct config *c = config_parse(text, len, "t.json", err);

	ck_assert_int_eq(c == NULL, err[0] != '\0');
	ck_assert_uint_lt(strlen(err), CONFIG_ERR_MAX);
	for (const char *p = err; *p != '\0'; p++)
		ck_assert_msg((unsigned char)*p >= 0x20 && *p != 0x7f,
		    "control character in: %s", err);
	config_unref(c);
}

START_TEST(test_mutations)
{
	static const char *const tokens[] = {"\"", "{", "}", "[", "]", ":", ",",
	    "null", "true", "-1", "0", "1e9", "4294967296", "\"\"", "{\"a\":1}",
	    "[1]", "\"{key\"", "\xff", "\\u0000", "_", "*"};
	uint64_t seed = harness_seed();
	size_t size = strlen(base), at, cut, len;
	const char *token;
	char *text = malloc(2 * size);

	for (int run = 0; run < 20000; run++) {
		memcpy(text, base, size);
		len = size;
		for (uint32_t k = 0; k <= harness_below(&seed, 3); k++) {
			at = harness_below(&seed, (uint32_t)len);
			cut = harness_below(&seed, 9);
			cut = cut < len - at ? cut : len - at;
			token = tokens[harness_below(
			    &seed, sizeof(tokens) / sizeof(*tokens))];
			memmove(text + at + strlen(token), text + at + cut,
			    len - at - cut);
			memcpy(text + at, token, strlen(token));
			len = len - cut + strlen(token);
		}
		load_any(text, len);
	}
	for (len = 0; len < size; len++)
		load_any(base, len);
	free(text);
}
END_TEST

/* Long names and long lines stay within the error's bounds. */
START_TEST(test_long_names)
{
	static char text[8192], name[4096];

	memset(name, 'n', sizeof(name) - 1);
	snprintf(text, sizeof(text), "{\"%s\":1}", name);
	load_any(text, strlen(text));
	snprintf(text, sizeof(text), "{\"tenants\":{\"%s\":{}}}", name);
	load_any(text, strlen(text));
	for (size_t i = 0; i + 1 < sizeof(name); i++)
		name[i] = i % 2 == 0 ? '\xc3' : '\xa9';
	snprintf(text, sizeof(text), "{\"%s\":1}", name);
	load_any(text, strlen(text));
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("config_load");
	TCase *tc = tcase_create("load");

	tcase_set_timeout(tc, 60);
	tcase_add_unchecked_fixture(tc, fixture_keys, NULL);
	tcase_add_test(tc, test_what_is_not_json);
	tcase_add_test(tc, test_reading);
	tcase_add_test(tc, test_what_is_shown_of_a_value);
	tcase_add_test(tc, test_what_the_key_refuses_is_a_warning);
	tcase_add_test(tc, test_what_a_datagram_refuses_is_a_warning);
	tcase_add_test(tc, test_what_can_never_be_is_a_warning);
	tcase_add_test(tc, test_more_than_any_datagram_is_a_warning);
	tcase_add_test(tc, test_only_a_regular_file_is_read_again);
	tcase_add_test(tc, test_equal_hashes);
	tcase_add_test(tc, test_other_hashes);
	tcase_add_test(tc, test_environment);
	tcase_add_test(tc, test_mutations);
	tcase_add_test(tc, test_long_names);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
