/*
 * The keys that are denied most, through a whole agent: which denials count,
 * who may ask for them, what the document says, and what a reload forgets.
 */
#include "daemon/status_top.h"

#include <jansson.h>

#include "tests/unit/reload_fixture.h"

#define KEYED(name)                                         \
	"\"" name "\":{\"tenant\":\"slow\",\"resources\":[" \
	"{\"bucket\":\"" name "-{key}\"}]}"
#define FIXED                                            \
	"\"fixed\":{\"tenant\":\"slow\",\"resources\":[" \
	"{\"bucket\":\"fixed\"}]}"
#define WATCH                                                 \
	"\"watch\":{\"tenant\":\"slow\",\"mode\":\"shadow\"," \
	"\"resources\":[{\"bucket\":\"w\"}],"                 \
	"\"guards\":[{\"tracker\":\"of-{key}\",\"below_ms\":9}]}"
#define KEEP(n) ",\"metrics\":{\"top_denied_keys\":" n "}"

static const struct shape three = {
    .rules = KEYED("one") "," KEYED("two") "," FIXED "," WATCH,
    .sections = KEEP("3")};

static json_t *root;
static uint64_t last_id;

static void
fin(void)
{
	json_decref(root);
	root = NULL;
	stop();
}

static void
denied(const char *rule, const char *key)
{
	base.number++;
	peer_check(&a, ++last_id, &base, rule, key);
	take(0);
	deny(&server[0]);
	next(&a);
	ck_assert_uint_eq(reply.type, IPC_DECISION);
	peer_decision(&reply, &decision);
	ck_assert_uint_eq(decision.outcome, IPC_DENIED);
}

static void
times(unsigned int n, const char *rule, const char *key)
{
	while (n-- > 0)
		denied(rule, key);
}

/* The rules of the document are this JSON. */
static void
shows(const char *want)
{
	static char text[512 * 1024];
	json_error_t error;
	size_t len = 0;
	char *got;

	peer_empty(&control, IPC_TOP, ++last_id);
	do {
		next(&control);
		if (reply.type == IPC_WELCOME) {
			reply.flags = IPC_FLAG_MORE;
			continue; /* of a reload */
		}
		ck_assert_uint_eq(reply.type, IPC_DOCUMENT);
		ck_assert_uint_lt(len + reply.len, sizeof(text));
		memcpy(text + len, reply.payload, reply.len);
		len += reply.len;
	} while ((reply.flags & IPC_FLAG_MORE) != 0);
	json_decref(root);
	root = json_loadb(
	    text, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
	ck_assert_msg(root != NULL, "%s", error.text);
	got = json_dumps(json_object_get(root, "rules"), JSON_COMPACT);
	if (want != NULL)
		ck_assert_str_eq(got, want);
	free(got);
}

START_TEST(denials_by_rule_and_key)
{
	start(&three);
	shows("[]");
	ck_assert_uint_eq(json_object_size(root), 4);
	ck_assert_int_eq(
	    json_integer_value(json_object_get(root, "generation")), 1);
	ck_assert_int_eq(
	    json_integer_value(json_object_get(root, "top_denied_keys")), 3);
	ck_assert_int_eq(
	    json_integer_value(json_object_get(root, "half_life_ms")), 300000);
	times(2, "two", "eu");
	times(3, "two", "us");
	times(1, "one", "");
	shows("[{\"rule\":\"one\",\"denied\":1,\"keys\":["
	      "{\"key\":\"\",\"denied\":1,\"error\":0}]},"
	      "{\"rule\":\"two\",\"denied\":5,\"keys\":["
	      "{\"key\":\"us\",\"denied\":3,\"error\":0},"
	      "{\"key\":\"eu\",\"denied\":2,\"error\":0}]}]");
	fin();
}
END_TEST

/* In mode shadow, too, and by a tracker's name; not without a key, nor one that
 * no name is made of, nor of what was allowed. */
START_TEST(which_denials_count)
{
	start(&three);
	denied("watch", "eu");
	denied("fixed", "eu");
	denied("fixed", NULL);
	base.number++;
	peer_check(&a, ++last_id, &base, "one", "eu");
	take(0);
	fake_server_allow(&server[0], &q);
	expect_decision(
	    &a, last_id, IPC_ALLOWED, true, IPC_SOURCE_SERVER, IPC_REASON_OK);
	peer_check(&a, ++last_id, &(struct peer_base){.number = 77}, "one",
	    "of-no-token");
	expect_failed(&a, last_id, false, IPC_REASON_VALIDATION);
	shows("[{\"rule\":\"watch\",\"denied\":1,\"keys\":["
	      "{\"key\":\"eu\",\"denied\":1,\"error\":0}]}]");
	fin();
}
END_TEST

START_TEST(more_keys_than_places)
{
	start(&three);
	times(4, "one", "a");
	times(2, "one", "b");
	times(2, "one", "c");
	times(1, "one", "d");
	times(1, "one", "d");
	shows(NULL);
	ck_assert_int_eq(
	    json_integer_value(json_object_get(
		json_array_get(json_object_get(root, "rules"), 0), "denied")),
	    10);
	fin();
	start(&three);
	times(1, "one", "a");
	times(2, "one", "b");
	times(3, "one", "c");
	times(3, "one", "d");
	shows("[{\"rule\":\"one\",\"denied\":9,\"keys\":["
	      "{\"key\":\"d\",\"denied\":4,\"error\":1},"
	      "{\"key\":\"c\",\"denied\":3,\"error\":0},"
	      "{\"key\":\"b\",\"denied\":2,\"error\":0}]}]");
	fin();
}
END_TEST

START_TEST(keys_of_any_bytes)
{
	struct topk *t;

	start(&three);
	t = agent->setup->denied[1]; /* fixed, one, two, watch */
	topk_add(t, "\xff\0~", 3, loop_now());
	topk_add(t, "\xc3\xa9\0\x1b", 4, loop_now());
	topk_add(t, "\xc3\xa9\0\x1b", 4, loop_now());
	shows("[{\"rule\":\"one\",\"denied\":3,\"keys\":["
	      "{\"key\":\"\u00e9\\u0000\\u001B\",\"denied\":2,\"error\":0},"
	      "{\"key\":\"\\\\xff\\\\x00~\",\"denied\":1,\"error\":0}]}]");
	fin();
}
END_TEST

static json_t *
made(int64_t after)
{
	json_error_t error;
	char *text = status_top(agent->setup, loop_now() + after);

	ck_assert_ptr_nonnull(text);
	json_decref(root);
	root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
	ck_assert_msg(root != NULL, "%s", error.text);
	free(text);
	return json_object_get(root, "rules");
}

/* To a half, and, below a half, away; whole numbers that hide no one. */
START_TEST(it_fades)
{
	const json_t *key;

	start(&three);
	times(4, "one", "eu");
	key = json_array_get(
	    json_object_get(json_array_get(made(TOPK_HALF_US), 0), "keys"), 0);
	ck_assert_int_eq(json_integer_value(json_object_get(key, "denied")), 2);
	key = json_array_get(
	    json_object_get(
		json_array_get(made(2 * TOPK_HALF_US + TOPK_STEP_US), 0),
		"keys"),
	    0);
	ck_assert_int_eq(json_integer_value(json_object_get(key, "denied")), 1);
	ck_assert_uint_eq(json_array_size(made(4 * TOPK_HALF_US)), 0);
	fin();
}
END_TEST

/* Keys can be personal. */
START_TEST(operators_alone_may_ask)
{
	start(&three);
	denied("one", "eu");
	peer_empty(&a, IPC_TOP, ++last_id);
	expect_done(&a, last_id, IPC_REASON_UNAUTHORISED);
	ck_assert_ptr_nonnull(strstr(reply.text, "control socket"));
	writer_zeros(peer_begin(&a, IPC_TOP, ++last_id), 1);
	peer_end(&a);
	expect_error(&a, last_id, IPC_ERR_MALFORMED);
	fin();
}
END_TEST

START_TEST(nothing_is_kept_unless_told)
{
	start(&(struct shape){.rules = KEYED("one")});
	denied("one", "eu");
	ck_assert_ptr_null(agent->setup->denied);
	shows("[]");
	ck_assert_int_eq(
	    json_integer_value(json_object_get(root, "top_denied_keys")), 0);
	fin();
	start(&three);
	ck_assert_ptr_null(agent->setup->denied[0]); /* no {key} in fixed */
	ck_assert_ptr_nonnull(agent->setup->denied[1]);
	ck_assert_ptr_nonnull(agent->setup->denied[3]);
	fin();
}
END_TEST

/* As many: they go on, also for what was asked before. */
START_TEST(they_go_on_by_the_names_of_rules)
{
	start(&three);
	denied("one", "eu");
	denied("two", "us");
	base.number++;
	peer_check(&a, ++last_id, &base, "two", "us"); /* begun before */
	take(0);
	load(&(struct shape){.rules = KEYED("aaa") "," KEYED("two"),
		 .sections = KEEP("3")},
	    ++last_id);
	expect_welcome(&a, 2);
	deny(&server[0]);
	expect_decision(
	    &a, 3, IPC_DENIED, false, IPC_SOURCE_SERVER, IPC_REASON_RESOURCE);
	shows("[{\"rule\":\"two\",\"denied\":2,\"keys\":["
	      "{\"key\":\"us\",\"denied\":2,\"error\":0}]}]");
	load(&three, ++last_id); /* one is another one now */
	expect_welcome(&a, 3);
	shows("[{\"rule\":\"two\",\"denied\":2,\"keys\":["
	      "{\"key\":\"us\",\"denied\":2,\"error\":0}]}]");
	denied("one", "eu");
	fin();
}
END_TEST

START_TEST(what_a_reload_forgets)
{
	start(&three);
	denied("one", "eu");
	load(&(struct shape){.rules = three.rules, .sections = KEEP("4")},
	    ++last_id);
	expect_welcome(&a, 2);
	shows("[]");
	denied("one", "eu");
	load(&(struct shape){.rules = "\"one\":{\"tenant\":\"slow\","
				      "\"resources\":[{\"bucket\":\"b\"}]}",
		 .sections = KEEP("4")},
	    ++last_id); /* no key in its names */
	expect_welcome(&a, 3);
	shows("[]");
	denied("one", "eu");
	load(&(struct shape){.rules = three.rules, .sections = KEEP("4")},
	    ++last_id);
	expect_welcome(&a, 4);
	denied("one", "eu");
	load(&(struct shape){.rules = three.rules}, ++last_id);
	expect_welcome(&a, 5);
	ck_assert_ptr_null(agent->setup->denied);
	denied("one", "eu");
	shows("[]");
	load(&three, ++last_id);
	expect_welcome(&a, 6);
	shows("[]");
	TURN_UNTIL(agent->retired == NULL);
	fin();
}
END_TEST

/* The whole document has a bound, which the rules that denied share. */
START_TEST(a_bounded_document)
{
	static char rules[16 * 1024];
	const json_t *list;
	char key[16];
	size_t len = 0;

	for (int i = 0; i < 60; i++)
		len += (size_t)snprintf(rules + len, sizeof(rules) - len,
		    "%s\"r%02d\":{\"tenant\":\"slow\",\"resources\":["
		    "{\"bucket\":\"{key}\"}]}",
		    i > 0 ? "," : "", i);
	start(&(struct shape){.rules = rules, .sections = KEEP("1000")});
	for (int i = 0; i < 5; i++) {
		for (int k = 0; k < 1100; k++) {
			len = (size_t)snprintf(key, sizeof(key), "k%04d", k);
			topk_add(agent->setup->denied[i], key, len, loop_now());
		}
	}
	list = made(0);
	ck_assert_uint_eq(json_array_size(list), 5);
	for (size_t i = 0; i < 5; i++)
		ck_assert_uint_eq(json_array_size(json_object_get(
				      json_array_get(list, i), "keys")),
		    STATUS_TOP_KEYS / 5);
	fin();
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("status_top");
	TCase *tc = tcase_create("top");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, denials_by_rule_and_key);
	tcase_add_test(tc, which_denials_count);
	tcase_add_test(tc, more_keys_than_places);
	tcase_add_test(tc, keys_of_any_bytes);
	tcase_add_test(tc, it_fades);
	tcase_add_test(tc, operators_alone_may_ask);
	tcase_add_test(tc, nothing_is_kept_unless_told);
	tcase_add_test(tc, they_go_on_by_the_names_of_rules);
	tcase_add_test(tc, what_a_reload_forgets);
	tcase_add_test(tc, a_bounded_document);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
