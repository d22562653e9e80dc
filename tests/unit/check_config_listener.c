/*
 * Listeners: every key with good and bad values, by the exact line that a bad
 * one gives, the defaults, the names that a listener allows, and paths, of
 * which no two may lead to one file.
 */
#include "daemon/config.h"

#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/config_edit.h"

#define L "listeners.main"

/* 100 bytes of a path. */
#define S50  "/345678901234567890123456789012345678901234567890a"
#define S100 S50 S50

#define NEAR                                                            \
	"listeners.second.path: is too near to that of listener main: " \
	"PATH.lock and PATH.new are taken, too"

START_TEST(test_listeners)
{
	static const struct edit edits[] = {
	    {"listeners", NULL, NULL},
	    {"listeners", "{}", "listeners: must have 1..64 entries, not 0"},
	    {L ".path", "null", L ".path: must be a string"},
	    {L ".path", "\"agent.sock\"",
		L ".path: must be the absolute path of a file"},
	    {L ".path", "\"/run/x/\"",
		L ".path: must be the absolute path of a file"},
	    {L ".path", "\"" S100 "1234567\"", NULL},
	    {L ".path", "\"" S100 "12345678\"",
		L ".path: must be 2..107 bytes long"},
	    {L ".path", "\"/run/x/second.sock\"",
		"listeners.second.path: is the path of listener main, too"},
	    {L ".path", "\"/run/x/control.sock\"",
		"control.path: is the path of listener main, too"},
	    {L ".path", "\"/run/x/.\"",
		L ".path: must be the absolute path of a file"},
	    {L ".path", "\"/run/x/..\"",
		L ".path: must be the absolute path of a file"},
	    {L ".path", "\"/.\"",
		L ".path: must be the absolute path of a file"},
	    {L ".path", "\"//\"",
		L ".path: must be the absolute path of a file"},
	    {L ".path", "\"/run/x/.a\"", NULL},
	    {L ".path", "\"/run//x/./second.sock\"",
		"listeners.second.path: is the path of listener main, too"},
	    {L ".path", "\"//run/x/.//control.sock\"",
		"control.path: is the path of listener main, too"},
	    {L ".path", "\"/run/x/second.sock.lock\"", NEAR},
	    {L ".path", "\"/run/x/second.sock.new\"", NEAR},
	    {"listeners.second.path", "\"/run/x/agent.sock.lock\"", NEAR},
	    {"listeners.second.path", "\"/run/x/agent.sock.old\"", NULL},
	    {"listeners.second.path", "\"/run/y/agent.sock.lock\"", NULL},
	    {L ".mode", "\"0600\"", NULL},
	    {L ".mode", "\"777\"", NULL},
	    {L ".mode", "660",
		L ".mode: must be a string of octal digits, as in \"0660\""},
	    {L ".mode", "\"0680\"",
		L ".mode: must be a string of octal digits, as in \"0660\""},
	    {L ".mode", "\"1660\"",
		L ".mode: must be a string of octal digits, as in \"0660\""},
	    {L ".mode", "\"66\"",
		L ".mode: must be a string of octal digits, as in \"0660\""},
	    {L ".group", "null", NULL},
	    {L ".group", "\"root\"", NULL},
	    {L ".group", "\"no-such-group-here\"",
		L ".group: no group has this name"},
	    {L ".group", "0", L ".group: must be a string"},
	    {L ".rules", "[]", NULL},
	    {L ".rules", "[\"a*\",\"b\"]", NULL},
	    {L ".rules", "\"*\"", L ".rules: must be an array"},
	    {L ".rules", "[\"a\",\"\"]",
		L ".rules[1]: must be 1..255 bytes long"},
	    {L ".trackers", "[1]", L ".trackers[0]: must be a string"},
	    {L ".limiters", "[\"*\"]", NULL},
	    {L ".limiters", "[]", NULL},
	    {L ".limiters", "[\"a*\",\"b\"]", NULL},
	    {L ".limiters", "null", L ".limiters: must be an array"},
	    {L ".limiters", "[7]", L ".limiters[0]: must be a string"},
	    {L ".error_controls", "[\"a\"]", NULL},
	    {L ".error_controls", "[\"a\\u0001\"]",
		L ".error_controls[0]: must not hold control characters"},
	    {L ".error_controls", "{}", L ".error_controls: must be an array"},
	    BOOLEAN(L ".adhoc", L ".adhoc"),
	    {L ".uids", "[0,4294967294]", NULL},
	    {L ".uids", "[0,4294967295]",
		L ".uids[1]: must be 0..4294967294, not 4294967295"},
	    {L ".gids", "[\"wheel\"]", L ".gids[0]: must be an integer"},
	    RANGE(
		L ".max_connections", L ".max_connections", 1, 65536, 0, 65537),
	    RANGE(L ".max_inflight", L ".max_inflight", 1, 1048576, 0, 1048577),
	    {L ".backlog", "1", L ".backlog: unknown key"},
	};

	RUN(edits);
}
END_TEST

static struct config *
two_listeners(const char *first, const char *second, char *err)
{
	char text[512];

	snprintf(text, sizeof(text),
	    "{\"tenants\":{\"t\":{\"key\":" ENV(
		"RATELIMITLY_AUTH_KEY") "}},"
					"\"listeners\":{\"a\":{\"path\":\"%s\"},"
					"\"b\":{\"path\":\"%s\"}},"
					"\"control\":{\"path\":\"/run/x/c\"}}",
	    first, second);
	return fixture_parse(text, err);
}

/* A listener is known by its path, so one file has one. */
START_TEST(test_paths_are_shortened)
{
	static const char *const pairs[][2] = {{"/run/x/a", "/run/x/a"},
	    {"//run/x/a", "/run/x/a"}, {"/run///x/././a", "/run/x/a"},
	    {"/./a", "/a"}, {"/a", "/a"},
	    {"/run/.x/..y/...", "/run/.x/..y/..."},
	    {"/run/x/../a", "/run/x/../a"}};
	char err[CONFIG_ERR_MAX];
	struct config *c;

	for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
		c = two_listeners(pairs[i][0], "/run/y/b", err);
		ck_assert_msg(c != NULL, "%s", err);
		ck_assert_str_eq(c->listeners[0].path, pairs[i][1]);
		config_unref(c);
	}
}
END_TEST

/* Folders that are one: by a link, and by the way back out of another. */
START_TEST(test_paths_through_links)
{
	char dir[] = "/tmp/rl-check-link-XXXXXX";
	char real[64], link[64], a[80], b[80], back[96];
	char err[CONFIG_ERR_MAX];
	struct config *c;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(real, sizeof(real), "%s/real", dir);
	snprintf(link, sizeof(link), "%s/link", dir);
	snprintf(a, sizeof(a), "%s/s", real);
	snprintf(b, sizeof(b), "%s/s", link);
	snprintf(back, sizeof(back), "%s/../real/s", real);
	ck_assert_int_eq(mkdir(real, 0700), 0);
	ck_assert_int_eq(symlink("real", link), 0);
	ck_assert_ptr_null(two_listeners(a, b, err));
	ck_assert_str_eq(
	    err, "t.json: listeners.b.path: is the path of listener a, too");
	ck_assert_ptr_null(two_listeners(back, b, err));
	ck_assert_str_eq(
	    err, "t.json: listeners.b.path: is the path of listener a, too");
	/* Another folder now, and one that is not there. */
	ck_assert_int_eq(unlink(link), 0);
	ck_assert_int_eq(mkdir(link, 0700), 0);
	c = two_listeners(a, b, err);
	ck_assert_msg(c != NULL, "%s", err);
	config_unref(c);
	ck_assert_int_eq(rmdir(link), 0);
	c = two_listeners(a, b, err);
	ck_assert_msg(c != NULL, "%s", err);
	config_unref(c);
	ck_assert_int_eq(rmdir(real), 0);
	ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

START_TEST(test_default_listener)
{
	char err[CONFIG_ERR_MAX];
	struct config *c = fixture_parse(
	    "{\"tenants\":{\"t\":{\"key\":" ENV(
		"RATELIMITLY_AUTH_KEY") "}},\"rules\":{\"r\":{}}}",
	    err);
	const struct config_listener *l;

	ck_assert_msg(c != NULL, "%s", err);
	ck_assert_uint_eq(c->listener_count, 1);
	l = c->listeners;
	ck_assert_str_eq(l->name, "main");
	ck_assert_str_eq(l->path, "/run/rl-agent/agent.sock");
	ck_assert_uint_eq(l->mode, 0660);
	ck_assert_ptr_null(l->group);
	ck_assert(l->adhoc);
	ck_assert_uint_eq(l->uid_count + l->gid_count, 0);
	ck_assert_uint_eq(l->max_connections, 1024);
	ck_assert_uint_eq(l->max_inflight, 16384);
	ck_assert(config_allows(&l->rules, "r", 1));
	ck_assert(config_allows(&l->trackers, "a\0b", 3));
	ck_assert(config_allows(&l->limiters, "mail", 4));
	ck_assert(config_allows(&l->error_controls, "smtp", 4));
	ck_assert_str_eq(c->control.path, "/run/rl-agent/control.sock");
	/* With one tenant a rule need not name it, nor hold anything. */
	ck_assert_uint_eq(c->rules[0].tenant, 0);
	ck_assert_uint_eq(c->rules[0].resource_count, 0);
	config_unref(c);
}
END_TEST

/* Each list is of its own kind of names. */
START_TEST(test_what_a_listener_allows)
{
	char err[CONFIG_ERR_MAX];
	struct config *c = fixture_parse(
	    "{\"tenants\":{\"t\":{\"key\":" ENV(
		"RATELIMITLY_AUTH_KEY") "}},\"listeners\":{\"a\":{"
					"\"rules\":[\"r\"],\"trackers\":[],"
					"\"limiters\":[\"l*\"],"
					"\"error_controls\":[\"e\",\"f\"]}}}",
	    err);
	const struct config_listener *l;

	ck_assert_msg(c != NULL, "%s", err);
	l = c->listeners;
	ck_assert_uint_eq(l->rules.count, 1);
	ck_assert_uint_eq(l->trackers.count, 0);
	ck_assert_uint_eq(l->limiters.count, 1);
	ck_assert_uint_eq(l->error_controls.count, 2);
	ck_assert(config_allows(&l->limiters, "lmtp", 4));
	ck_assert(!config_allows(&l->limiters, "e", 1));
	ck_assert(config_allows(&l->error_controls, "f", 1));
	ck_assert(!config_allows(&l->error_controls, "l", 1));
	ck_assert(!config_allows(&l->rules, "e", 1));
	config_unref(c);
}
END_TEST

START_TEST(test_patterns)
{
	char *list[] = {
	    (char *)"mail-*", (char *)"a[0-9]", (char *)"caf\u00e9"};
	struct config_patterns p = {3, list};

	ck_assert(config_allows(&p, "mail-in", 7));
	ck_assert(config_allows(&p, "mail-", 5));
	ck_assert(!config_allows(&p, "mail", 4));
	ck_assert(config_allows(&p, "a7", 2));
	ck_assert(!config_allows(&p, "a77", 3));
	ck_assert(!config_allows(&p, "mail-\0", 6));
	ck_assert(!config_allows(&p, "", 0));
	p.count = 0;
	ck_assert(!config_allows(&p, "mail-in", 7));
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("config_listener");
	TCase *tc = tcase_create("listeners");

	tcase_set_timeout(tc, 60);
	tcase_add_unchecked_fixture(tc, fixture_keys, NULL);
	tcase_add_test(tc, test_listeners);
	tcase_add_test(tc, test_paths_are_shortened);
	tcase_add_test(tc, test_paths_through_links);
	tcase_add_test(tc, test_default_listener);
	tcase_add_test(tc, test_what_a_listener_allows);
	tcase_add_test(tc, test_patterns);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
