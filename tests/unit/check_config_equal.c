/*
 * What a reload goes by: is anything different, does a tenant serve on, would
 * it find the same servers; and the files that a configuration comes from.
 * Each member is changed by itself, so that none is forgotten.
 */
#include "daemon/config.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/config_edit.h"

static char dir[] = "/tmp/rl-check-equal-XXXXXX";

static const char *
in_dir(const char *name)
{
	static char path[2][128];
	static int turn;

	turn = !turn;
	snprintf(path[turn], sizeof(path[turn]), "%s/%s", dir, name);
	return path[turn];
}

static void
setup(void)
{
	fixture_keys();
	strcpy(strrchr(dir, '-') + 1, "XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	setenv("CREDENTIALS_DIRECTORY", dir, 1);
}

static void
teardown(void)
{
	static const char *const names[] = {"c.json", "a.key", "b.key"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		unlink(in_dir(names[i]));
	ck_assert_int_eq(rmdir(dir), 0);
}

static void
write_file(const char *name, const char *text, mode_t mode)
{
	int fd = open(in_dir(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	ck_assert_int_eq(fchmod(fd, mode), 0);
	close(fd);
}

static struct config *
load(const char *text)
{
	char err[CONFIG_ERR_MAX];
	struct config *c;

	write_file("c.json", text, 0600);
	c = config_load(in_dir("c.json"), err);
	ck_assert_msg(c != NULL, "%s", err);
	return c;
}

static struct config *
parse(const char *text)
{
	char err[CONFIG_ERR_MAX];
	struct config *c = fixture_parse(text, err);

	ck_assert_msg(c != NULL, "%s: %s", text, err);
	return c;
}

#define FILES                                                                     \
	"{\"tenants\":{\"c\":{\"key\":" ENV(                                      \
	    "RATELIMITLY_AUTH_KEY") "},"                                          \
				    "\"b\":{\"key\":{\"file\":\"b.key\"}},"       \
				    "\"a\":{\"key\":{\"credential\":\"a.key\"}}," \
				    "\"d\":{\"key\":{\"file\":\"./b.key\"}},"     \
				    "\"e\":{\"key\":{\"file\":\"b.key\"}}}"

START_TEST(test_files)
{
	struct config *c;
	char again[CONFIG_ERR_MAX];

	write_file("a.key", KEY_V1 "\n", 0400);
	write_file("b.key", KEY_AES "\n", 0400);
	c = load(FILES "}");
	ck_assert(c->from_file);
	ck_assert_uint_eq(c->file_count, 4);
	ck_assert_str_eq(c->files[0], c->source);
	ck_assert_str_eq(c->files[0], in_dir("c.json"));
	/* As opened, in the order of the tenants' names, each once. */
	ck_assert_str_eq(c->files[1], in_dir("a.key"));
	ck_assert_str_eq(c->files[2], in_dir("b.key"));
	snprintf(again, sizeof(again), "%s/./b.key", dir);
	ck_assert_str_eq(c->files[3], again);
	config_unref(c);

	/* What is no file cannot be loaded again. */
	c = parse("{\"tenants\":{\"t\":{\"key\":" ENV("RLA_TEST_AES") "}}}");
	ck_assert(!c->from_file);
	ck_assert_uint_eq(c->file_count, 0);
	config_unref(c);
	c = config_from_environment(again);
	ck_assert_ptr_nonnull(c);
	ck_assert(!c->from_file);
	ck_assert_uint_eq(c->file_count, 0);
	config_unref(c);
}
END_TEST

/* From python3: hashlib.blake2s(text).digest()[:16] */
START_TEST(test_file_hash)
{
	static const char text[] =
	    "{\"tenants\":{\"t\":{\"key\":" ENV("RATELIMITLY_AUTH_KEY") "}}}\n";
	static const uint8_t expected[CONFIG_HASH_LEN] = {0x33, 0xd0, 0x3e,
	    0xb1, 0xf8, 0x72, 0xaa, 0xbd, 0xcf, 0x79, 0x05, 0x52, 0x97, 0x04,
	    0xfc, 0xfc};
	struct config *c = parse(text);

	ck_assert_mem_eq(c->file_hash, expected, CONFIG_HASH_LEN);
	config_unref(c);
	c = load(text);
	ck_assert_mem_eq(c->file_hash, expected, CONFIG_HASH_LEN);
	config_unref(c);
}
END_TEST

static void
both(struct config *a, struct config *b, bool equal)
{
	ck_assert_int_eq(config_equal(a, b), equal);
	ck_assert_int_eq(config_equal(b, a), equal);
	config_unref(b);
}

START_TEST(test_the_same_again)
{
	struct config *a;

	write_file("a.key", KEY_V1, 0400);
	write_file("b.key", KEY_AES, 0400);
	a = load(FILES "}");
	ck_assert(config_equal(a, a));
	both(a, load(FILES "}"), true);
	/* The hash shown is that of the text that is there. */
	both(a, load(FILES "} "), false);
	both(a, load(FILES ",\"log\":{\"level\":\"debug\"}}"), false);
	both(a, load(FILES ",\"rules\":{\"r\":{\"tenant\":\"a\"}}}"), false);
	/* The same text, but what it names is another. */
	write_file("b.key", KEY_V1, 0400);
	both(a, load(FILES "}"), false);
	write_file("b.key", KEY_AES "\n", 0400);
	both(a, load(FILES "}"), true);
	write_file("b.key", KEY_AES, 0440);
	both(a, load(FILES "}"), false);
	write_file("b.key", KEY_AES, 0400);
	setenv("RATELIMITLY_AUTH_KEY", KEY_NONE, 1);
	both(a, load(FILES "}"), false);
	fixture_keys();
	both(a, load(FILES "}"), true);
	config_unref(a);
}
END_TEST

static struct config *
load_with(const char *more)
{
	char text[256];

	snprintf(text, sizeof(text), "{\"tenants\":{\"t\":{\"key\":%s}}%s}",
	    ENV("RLA_TEST_AES"), more);
	return load(text);
}

/* A reload with only one of these changed is a change; but checks mean what
 * they did, so those that are sent again go on. */
START_TEST(test_limiters)
{
#define L(more)     ",\"limiters\":{\"m\":{" more "}}"
#define E(more)     ",\"error_controls\":{\"s\":{" more "}}"
#define ALLOW(more) ",\"listeners\":{\"main\":{" more "}}"
	static const char *const texts[] = {"", L(""),
	    L("\"permits_per_second\":7"), L("\"max_burst_seconds\":7"),
	    L("\"max_keys\":7"), ",\"limiters\":{\"n\":{}}", E(""),
	    E("\"burst\":7"), E("\"min_delay_ms\":7"),
	    E("\"max_delay_ms\":700"), E("\"max_keys\":7"),
	    ",\"error_controls\":{\"t\":{}}", ALLOW(""),
	    ALLOW("\"limiters\":[]"), ALLOW("\"error_controls\":[]")};
	struct config *a, *b;

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		a = load_with(texts[i]);
		both(a, load_with(texts[i]), true);
		for (size_t k = 0; k < i; k++) {
			b = load_with(texts[k]);
			ck_assert_mem_eq(a->hash, b->hash, CONFIG_HASH_LEN);
			both(a, b, false);
		}
		config_unref(a);
	}
}
END_TEST

START_TEST(test_what_text_does_not_tell)
{
	static const char text[] = "{\"tenants\":{\"t\":{\"key\":" ENV(
	    "RLA_TEST_AES") "}},"
			    "\"listeners\":{\"a\":{\"group\":\"root\"}}}";
	char err[CONFIG_ERR_MAX];
	struct config *a = parse(text), *b = parse(text);

	ck_assert(config_equal(a, b));
	b->listeners[0].gid++; /* /etc/group was edited */
	ck_assert(!config_equal(a, b));
	b->listeners[0].gid--;
	b->from_file = true;
	ck_assert(!config_equal(a, b));
	config_unref(b);
	b = config_parse(text, strlen(text), "u.json", err);
	ck_assert_ptr_nonnull(b);
	ck_assert(!config_equal(a, b));
	config_unref(b);
	config_unref(a);
	a = config_from_environment(err);
	b = config_from_environment(err);
	ck_assert(config_equal(a, b));
	config_unref(b);
	setenv("RL_AGENT_SOCKET", "/run/z/a.sock", 1);
	b = config_from_environment(err);
	unsetenv("RL_AGENT_SOCKET");
	ck_assert(!config_equal(a, b));
	config_unref(b);
	config_unref(a);
}
END_TEST

/* One tenant: its text, what it needs that is not the same as of the plain
 * one, and what does for both. */
struct other {
	const char *text;
	bool equal;
	bool same_servers;
};

#define T(key, more) "{\"key\":" ENV(key) more "}"
#define V1(more)     T("RATELIMITLY_AUTH_KEY", more)
#define DNS(more)    V1(",\"dns\":{" more "}")
#define POLICY(more) V1(",\"policy\":{" more "}")
#define GAP(form, growth, max)                                         \
	POLICY("\"replay_gap\":{\"" form "\":{\"initial\":1,\"" growth \
	       ",\"max\":" max "}}")

static const struct other others[] = {
    {V1(""), true, true},
    /* As written is not as meant. */
    {V1(",\"profile\":\"v1\",\"strict_source\":true,\"servers\":[]"), true,
	true},
    {DNS("\"name\":\"c-2.p0.ratelimitly.com\",\"refresh_ms\":300000"), true,
	true},
    {POLICY("\"unit_ms\":20,\"preference\":{\"fixed\":1}"), true, true},
    /* For ad-hoc requests, which are not begun by the tenant. */
    {V1(",\"on_failure\":\"closed\""), true, true},
    {T("RLA_TEST_AES", ""), false, false},
    {T("RLA_TEST_AES", ",\"dns\":{\"name\":\"c-2.p0.ratelimitly.com\"}"), false,
	true},
    {V1(",\"profile\":\"v2\""), false, true},
    {V1(",\"strict_source\":false"), false, true},
    {DNS("\"name\":\"x.example\""), false, false},
    {DNS("\"nameservers\":[\"192.0.2.1\"]"), false, false},
    {DNS("\"require_ad\":true"), false, false},
    {DNS("\"refresh_ms\":1000"), false, true},
    {DNS("\"forced_min_ms\":7"), false, true},
    {DNS("\"jitter_ms\":7"), false, true},
    {DNS("\"timeout_ms\":7"), false, true},
    {V1(",\"servers\":[{\"id\":\"1\",\"address\":\"192.0.2.1:1\"}]"), false,
	false},
    {POLICY("\"unit_ms\":21"), false, true},
    {POLICY("\"replay_count\":2"), false, true},
    {POLICY("\"replay_gap\":{\"fixed\":2}"), false, true},
    {GAP("linear", "step\":0", "1"), false, true},
    {GAP("linear", "step\":1", "1"), false, true},
    {GAP("linear", "step\":1", "2"), false, true},
    {GAP("exponential", "factor\":1", "1"), false, true},
    {POLICY("\"preference\":{\"fixed\":0}"), false, true},
    {POLICY("\"preference\":\"first-round\""), false, true},
    {POLICY("\"final_receive_units\":2"), false, true},
    {POLICY("\"final_preference_units\":1"), false, true},
    {POLICY("\"completion_delivery\":false"), false, true},
    {POLICY("\"suspect_after\":3"), false, true},
};
#define OTHERS (sizeof(others) / sizeof(*others))

static struct config *
one_tenant(const char *tenant)
{
	char text[512];

	snprintf(text, sizeof(text), "{\"tenants\":{\"t\":%s}}", tenant);
	return parse(text);
}

START_TEST(test_tenants)
{
	struct config *c[OTHERS];
	const struct config_tenant *a, *b;

	for (size_t i = 0; i < OTHERS; i++) {
		c[i] = one_tenant(others[i].text);
		a = c[0]->tenants;
		b = c[i]->tenants;
		ck_assert_msg(config_tenant_equal(a, b) == others[i].equal,
		    "%s", others[i].text);
		ck_assert_msg(
		    config_tenant_same_servers(a, b) == others[i].same_servers,
		    "servers: %s", others[i].text);
		/* Nor are those that differ from it like each other. */
		for (size_t k = 0; k < i; k++) {
			a = c[k]->tenants;
			ck_assert_msg(config_tenant_equal(a, b) ==
					  (others[i].equal && others[k].equal),
			    "%s: %s", others[i].text, others[k].text);
			ck_assert(config_tenant_equal(a, b) ==
				  config_tenant_equal(b, a));
			ck_assert(config_tenant_same_servers(a, b) ==
				  config_tenant_same_servers(b, a));
		}
	}
	for (size_t i = 0; i < OTHERS; i++)
		config_unref(c[i]);
}
END_TEST

/* What no two texts differ in alone. */
START_TEST(test_parts_of_a_key)
{
	struct config *c = one_tenant(V1("")), *d = one_tenant(V1(""));
	const struct config_tenant *a = c->tenants;
	struct config_tenant *b = d->tenants;
	uint32_t *const quotas[] = {&b->cred.quotas.rate_buckets,
	    &b->cred.quotas.latency_trackers, &b->cred.quotas.metrics_labels,
	    &b->cred.quotas.latency_buffer, &b->cred.quotas.dedup_ttl_ms,
	    &b->cred.quotas.rate_window_ms};

	ck_assert(config_tenant_equal(a, b));
	for (size_t i = 0; i < sizeof(quotas) / sizeof(*quotas); i++) {
		++*quotas[i];
		ck_assert(!config_tenant_equal(a, b));
		--*quotas[i];
	}
	for (size_t i = 0; i < CREDENTIAL_SECRET_LEN; i++) {
		b->cred.secret[i] ^= 1;
		ck_assert(!config_tenant_equal(a, b));
		b->cred.secret[i] ^= 1;
	}
	b->cred.key_id++;
	ck_assert(!config_tenant_equal(a, b));
	b->cred.key_id--;
	b->cred.format = KEY_FORMAT_1;
	ck_assert(!config_tenant_equal(a, b));
	b->cred.format = KEY_UNVERSIONED;
	b->cred.auth = AUTH_AES;
	ck_assert(!config_tenant_equal(a, b));
	b->cred.auth = AUTH_COOKIE;
	b->name[0] = 'u';
	ck_assert(!config_tenant_equal(a, b));
	ck_assert(config_tenant_same_servers(a, b));
	config_unref(c);
	config_unref(d);
}
END_TEST

/* Servers and nameservers, member by member. */
START_TEST(test_addresses)
{
#define SERVERS(list)  V1(",\"servers\":[" list "]")
#define S(id, address) "{\"id\":\"" id "\",\"address\":\"" address "\"}"
#define NS(list)       DNS("\"nameservers\":[" list "]")
	static const char *const texts[] = {SERVERS(S("1", "192.0.2.1:1")),
	    SERVERS(S("2", "192.0.2.1:1")), SERVERS(S("1", "192.0.2.2:1")),
	    SERVERS(S("1", "192.0.2.1:2")),
	    SERVERS(S("1", "192.0.2.1:1") "," S("1", "192.0.2.2:1")),
	    SERVERS(S("1", "192.0.2.1:1") "," S("2", "192.0.2.2:1")),
	    NS("\"192.0.2.1\""), NS("\"192.0.2.1:54\""), NS("\"192.0.2.2\""),
	    NS("\"192.0.2.1\",\"192.0.2.2\""),
	    NS("\"192.0.2.2\",\"192.0.2.1\"")};
	enum { COUNT = sizeof(texts) / sizeof(*texts) };
	struct config *a, *b;

	for (size_t i = 0; i < COUNT; i++) {
		a = one_tenant(texts[i]);
		for (size_t k = 0; k < COUNT; k++) {
			b = one_tenant(texts[k]);
			ck_assert_msg(config_tenant_same_servers(
					  a->tenants, b->tenants) == (i == k),
			    "%s: %s", texts[i], texts[k]);
			ck_assert(config_tenant_equal(a->tenants, b->tenants) ==
				  (i == k));
			config_unref(b);
		}
		config_unref(a);
	}
	/* The name means nothing to servers that are not looked up. */
	a = one_tenant(SERVERS(S("1", "192.0.2.1:1")));
	b = one_tenant(
	    T("RLA_TEST_AES", ",\"servers\":[" S("1", "192.0.2.1:1") "]"));
	ck_assert_str_ne(a->tenants->dns.name, b->tenants->dns.name);
	ck_assert(config_tenant_same_servers(a->tenants, b->tenants));
	ck_assert(!config_tenant_equal(a->tenants, b->tenants));
	config_unref(a);
	config_unref(b);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("config_equal");
	TCase *tc = tcase_create("equal");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, test_files);
	tcase_add_test(tc, test_file_hash);
	tcase_add_test(tc, test_the_same_again);
	tcase_add_test(tc, test_limiters);
	tcase_add_test(tc, test_what_text_does_not_tell);
	tcase_add_test(tc, test_tenants);
	tcase_add_test(tc, test_parts_of_a_key);
	tcase_add_test(tc, test_addresses);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
