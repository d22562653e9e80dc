/*
 * The document of LIMITERS: every field that rlctl(1) names, fresh and used,
 * for whoever asks, and that a long one is not made again and again.
 */
#include "daemon/status_limiters.h"

#include <jansson.h>

#include "daemon/core/ratelimiter.h"
#include "tests/unit/agent_fixture.h"

#define LIMITERS                                                   \
	",\"limiters\":{\"mail\":{\"permits_per_second\":0.1,"     \
	"\"max_burst_seconds\":1.5,\"max_keys\":7},\"usual\":{}}," \
	"\"error_controls\":{\"smtp\":{\"burst\":1,"               \
	"\"min_delay_ms\":999999,\"max_delay_ms\":1999998,"        \
	"\"max_keys\":2}}"
#define LOCAL_RULES                                                           \
	"\"l\":{\"tenant\":\"slow\",\"resources\":[{\"bucket\":\"b\"}],"      \
	"\"on_failure\":{\"local\":{\"permits_per_second\":0.25,"             \
	"\"max_burst_seconds\":100}}},"                                       \
	"\"lk\":{\"tenant\":\"slow\",\"resources\":[{\"bucket\":\"{key}\"}]," \
	"\"on_failure\":{\"local\":{}}},"                                     \
	"\"open\":{\"tenant\":\"slow\"}"

static struct ipc_peer a;
static json_t *root;

static void
start(void)
{
	start_agent(&(struct shape){.rules = LOCAL_RULES,
	    .sections = LIMITERS,
	    .listeners = ",\"narrow\":{\"path\":\"%s/n.sock\","
			 "\"limiters\":[\"u*\"],\"error_controls\":[]}"});
}

static void
stop(void)
{
	json_decref(root);
	root = NULL;
	stop_agent();
}

static void
make(const struct config_listener *by)
{
	char *text = status_limiters(agent->setup, by, loop_now());
	json_error_t error;

	ck_assert_ptr_nonnull(text);
	json_decref(root);
	root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
	ck_assert_msg(root != NULL, "%s: %s", error.text, text);
	/* For people, too: not :0.10000000000000001, */
	ck_assert_ptr_nonnull(strstr(text, "permits_per_second\":0.1,"));
	free(text);
}

static json_t *
one(const char *list, size_t i)
{
	return json_array_get(json_object_get(root, list), i);
}

/* The value of a name, or the whole with NULL, is this JSON, in this order. */
static void
same(const json_t *from, const char *name, const char *want)
{
	char *got =
	    json_dumps(name != NULL ? json_object_get(from, name) : from,
		JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));

	ck_assert_msg(got != NULL, "no %s", name);
	ck_assert_str_eq(got, want);
	free(got);
}

/* A wait that began during this test. */
static void
waits(const json_t *from, int64_t us)
{
	const json_t *wait = json_object_get(from, "wait_us");

	ck_assert(json_is_integer(wait));
	ck_assert_int_le(json_integer_value(wait), us);
	ck_assert_int_ge(json_integer_value(wait), us - LIMIT_US);
}

static struct limiters_key
key(const char *text)
{
	return (struct limiters_key){.bytes = text, .len = strlen(text)};
}

#define NOTHING                                                  \
	"\"counters\":{\"granted\":0,\"permits\":0,\"waits\":0," \
	"\"refused\":0,\"overloaded\":0,\"evictions\":0}}"

START_TEST(fresh)
{
	start();
	make(NULL);
	ck_assert_uint_eq(json_object_size(root), 4);
	same(root, "generation", "1");
	/* Stored is 0.0 until time has passed. */
	for (size_t i = 0; i < 2; i++) {
		ck_assert(json_is_real(
		    json_object_get(one("limiters", i), "stored")));
		json_object_set_new(
		    one("limiters", i), "stored", json_integer(0));
	}
	json_object_set_new(one("rules", 0), "stored", json_integer(0));
	same(root, "limiters",
	    "[{\"name\":\"mail\",\"permits_per_second\":0.1,"
	    "\"max_burst_seconds\":1.5,\"stored\":0,\"wait_us\":0,"
	    "\"keys\":0,\"max_keys\":7,"
	    "\"configured_permits_per_second\":0.1,\"offered\":null," NOTHING
	    ",{\"name\":\"usual\",\"permits_per_second\":10.0,"
	    "\"max_burst_seconds\":1.0,\"stored\":0,\"wait_us\":0,"
	    "\"keys\":0,\"max_keys\":10000,"
	    "\"configured_permits_per_second\":10.0,"
	    "\"offered\":null," NOTHING "]");
	same(root, "error_controls",
	    "[{\"name\":\"smtp\",\"burst\":1,\"burst_left\":1,"
	    "\"min_delay_ms\":999999,\"max_delay_ms\":1999998,"
	    "\"delay_ms\":999999.0,\"wait_us\":0,\"keys\":0,\"max_keys\":2,"
	    "\"offered\":null,\"counters\":{\"begins\":0,\"delays\":0,"
	    "\"successes\":0,\"overloaded\":0,\"evictions\":0}}]");
	same(root, "rules",
	    "[{\"name\":\"l\",\"permits_per_second\":0.25,"
	    "\"max_burst_seconds\":100.0,\"stored\":0,\"wait_us\":0,"
	    "\"keys\":0,\"max_keys\":10000," NOTHING
	    ",{\"name\":\"lk\",\"permits_per_second\":10.0,"
	    "\"max_burst_seconds\":1.0,\"stored\":null,\"wait_us\":null,"
	    "\"keys\":0,\"max_keys\":10000," NOTHING "]");
	stop();
}
END_TEST

static void
use_limiters(void)
{
	const struct config *c = agent->setup->config;
	const struct config_limiter *mail = config_limiter(c, "mail", 4);
	struct limiters *ls = agent->setup->limiters;
	const struct limiters_key none = {0};
	int64_t wait;

	limiters_acquire(
	    ls, mail, none, 50, RATELIMITER_MAX_WAIT_US, loop_now(), &wait);
	limiters_acquire(
	    ls, mail, none, 20, RATELIMITER_MAX_WAIT_US, loop_now(), &wait);
	limiters_acquire(ls, mail, none, 1, 0, loop_now(), &wait);
	limiters_acquire(ls, mail, key("k"), 1, 0, loop_now(), &wait);
	limiters_set_rate(ls, mail, RATELIMITER_ONE / 4);
	limiters_local_acquire(
	    ls, config_rule(c, "l", 1), none, 25, loop_now(), &wait);
}

static void
use_error_control(void)
{
	const struct config_error_control *smtp =
	    config_error_control(agent->setup->config, "smtp", 4);
	struct limiters *ls = agent->setup->limiters;
	const struct limiters_key none = {0};
	int64_t wait;

	for (int i = 0; i < 3; i++)
		limiters_error_begin(ls, smtp, none, loop_now(), &wait);
	limiters_error_success(ls, smtp, none, loop_now());
	limiters_error_begin(ls, smtp, key("k"), loop_now(), &wait);
}

START_TEST(used)
{
	json_t *mail, *smtp;

	start();
	use_limiters();
	use_error_control();
	make(NULL);
	mail = one("limiters", 0);
	same(mail, "permits_per_second", "0.25");
	same(mail, "configured_permits_per_second", "0.1");
	same(mail, "stored", "0.0");
	waits(mail, 700 * INT64_C(1000000));
	same(mail, "keys", "1");
	same(mail, "counters",
	    "{\"granted\":3,\"permits\":71,\"waits\":1,\"refused\":1,"
	    "\"overloaded\":0,\"evictions\":0}");
	smtp = one("error_controls", 0);
	same(smtp, "burst_left", "1");
	same(smtp, "delay_ms", "999999.0");
	same(smtp, "keys", "1");
	same(smtp, "counters",
	    "{\"begins\":4,\"delays\":2,\"successes\":1,\"overloaded\":0,"
	    "\"evictions\":0}");
	waits(one("rules", 0), 100 * INT64_C(1000000));
	same(json_object_get(one("rules", 0), "counters"), "permits", "25");
	stop();
}
END_TEST

START_TEST(who_is_offered_it)
{
	start();
	make(&agent->setup->config->listeners[0]);
	same(one("limiters", 0), "offered", "true");
	same(one("error_controls", 0), "offered", "true");
	make(&agent->setup->config->listeners[1]);
	same(one("limiters", 0), "offered", "false");
	same(one("limiters", 1), "offered", "true");
	same(one("error_controls", 0), "offered", "false");
	stop();
}
END_TEST

static const char *
many_limiters(void)
{
	static char text[32 * 1024];
	size_t len = 0;

	len += (size_t)snprintf(text, sizeof(text), ",\"limiters\":{");
	for (int i = 0; i < 400; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
		    "%s\"limiter-%04d\":{}", i > 0 ? "," : "", i);
	snprintf(text + len, sizeof(text) - len, "}");
	return text;
}

/* The whole document. */
static void
ask(uint64_t id)
{
	static char text[512 * 1024];
	json_error_t error;
	size_t len = 0;

	peer_empty(&a, IPC_LIMITERS, id);
	do {
		next(&a);
		ck_assert_uint_eq(reply.type, IPC_DOCUMENT);
		ck_assert_uint_lt(len + reply.len, sizeof(text));
		memcpy(text + len, reply.payload, reply.len);
		len += reply.len;
	} while ((reply.flags & IPC_FLAG_MORE) != 0);
	json_decref(root);
	root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &error);
	ck_assert_msg(root != NULL, "%s", error.text);
}

/* Who asks again at once gets the same; not what another was offered, nor for
 * long. */
START_TEST(a_long_one_is_kept_for_a_while)
{
	const char *kept;
	int64_t until, asked;

	start_agent(&(struct shape){.sections = many_limiters()});
	join(&a, main_path);
	ask(1);
	ck_assert_uint_eq(
	    json_array_size(json_object_get(root, "limiters")), 400);
	kept = agent->limiters.text;
	ck_assert_ptr_nonnull(kept);
	until = agent->limiters.until;
	asked = loop_now();
	ask(2);
	/* Made anew it is kept from when it is there. */
	ck_assert(
	    agent->limiters.until == until ||
	    (loop_now() >= until && agent->limiters.until >= asked + 100000));
	same(one("limiters", 0), "offered", "true");
	peer_close(&a);
	join(&a, control_path);
	ask(3);
	same(one("limiters", 0), "offered", "null");
	ck_assert_ptr_null(agent->rules.text);
	peer_close(&a);
	stop();
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("status_limiters");
	TCase *tc = tcase_create("limiters");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, fresh);
	tcase_add_test(tc, used);
	tcase_add_test(tc, who_is_offered_it);
	tcase_add_test(tc, a_long_one_is_kept_for_a_while);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
