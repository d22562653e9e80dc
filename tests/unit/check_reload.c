/*
 * Loading the configuration again, with a whole agent and a real file: what is
 * in force afterwards, what goes on as it began, and that a file that is not
 * good changes nothing.
 */
#include "daemon/reload.h"

#include <signal.h>
#include <sys/stat.h>

#include "daemon/core/ratelimiter.h"
#include "tests/unit/reload_fixture.h"

static struct ipc_peer b;

START_TEST(a_new_rule_is_for_what_comes_after)
{
	struct fake_request first;
	uint8_t hash[CONFIG_HASH_LEN];

	start(&usual);
	memcpy(hash, agent->setup->config->hash, sizeof(hash));
	ask(&a, 1, "plain");
	take(0);
	first = q;
	load(&other, 1);
	ck_assert_uint_eq(agent->setup->generation, 2);
	ck_assert_mem_ne(agent->setup->config->hash, hash, sizeof(hash));
	expect_welcome(&a, 2);
	ask(&a, 2, "plain");
	take(0);
	ck_assert_uint_eq(q.rate.resources[0].window_ms, 500);
	deny(&server[0]);
	expect_decision(
	    &a, 2, IPC_DENIED, false, IPC_SOURCE_SERVER, IPC_REASON_RESOURCE);
	ck_assert_str_eq(decision.limit, "second");
	q = first; /* ends as it began, name and all */
	ck_assert_uint_ne(q.rate.resources[0].window_ms, 500);
	deny(&server[0]);
	expect_decision(
	    &a, 1, IPC_DENIED, false, IPC_SOURCE_SERVER, IPC_REASON_RESOURCE);
	ck_assert_str_eq(decision.limit, "plain");
	ask(&a, 3, "checkout"); /* is gone */
	expect_failed(&a, 3, false, IPC_REASON_UNKNOWN_RULE);
	TURN_UNTIL(agent->retired == NULL);
	stop();
}
END_TEST

/* Tenants that did not change go on: same object, same port. */
START_TEST(an_unchanged_tenant_stays)
{
	struct tenant *tenant;

	start(&usual);
	tenant = agent->setup->tenants[0];
	load(&other, 1);
	ck_assert_ptr_eq(agent->setup->tenants[0], tenant);
	TURN_UNTIL(agent->retired == NULL);
	ask(&a, 1, "plain");
	expect_welcome(&a, 2);
	take(0);
	fake_server_allow(&server[0], &q);
	expect_decision(
	    &a, 1, IPC_ALLOWED, true, IPC_SOURCE_SERVER, IPC_REASON_OK);
	stop();
}
END_TEST

static const struct {
	struct shape shape;
	const char *text;
} bad[] = {
    {{.rules = "\"r\":{\"tenant\":\"slow\",\"resources\":[{\"bucket\":\"x\","
	       "\"limit\":0}]}"},
	"rl-agent.json: rules.r.resources[0].limit: must be 1..4294967295"},
    {{.tenants = "\"t\":{\"key\":{\"env\":\"RLA_NO_SUCH\"}}"},
	"tenants.t.key: variable RLA_NO_SUCH: is not set"},
    {{.listener = ",\"group\":\"no-such-group-here\""},
	"listeners.main.group: no group has this name"},
    /* Fails late: one listener can be opened, the other cannot. */
    {{.listeners = ",\"b\":{\"path\":\"%s/b.sock\"},"
		   "\"c\":{\"path\":\"%s/rl-agent.json\"}"},
	"rl-agent.json: listeners.c.path: "},
};

START_TEST(a_bad_file_changes_nothing)
{
	struct config *config;

	start(&usual);
	config = agent->setup->config;
	refuse(&bad[_i].shape, 1, bad[_i].text);
	ck_assert_uint_eq(agent->setup->generation, 1);
	ck_assert_ptr_eq(agent->setup->config, config);
	ck_assert_uint_eq(agent->loading.failures, 1);
	ck_assert_int_ne(access(extra_path, F_OK), 0);
	ask(&a, 1, "plain");
	take(0);
	fake_server_allow(&server[0], &q);
	expect_decision(/* and no WELCOME came */
	    &a, 1, IPC_ALLOWED, true, IPC_SOURCE_SERVER, IPC_REASON_OK);
	load(&usual, 2);
	ck_assert_str_eq(agent->loading.error, "");
	ck_assert_uint_eq(agent->setup->generation, 2);
	stop();
}
END_TEST

static mode_t
mode_of(const char *path)
{
	struct stat st;

	ck_assert_int_eq(lstat(path, &st), 0);
	return st.st_mode & 0777;
}

/* In force, and yet there is something to mind. */
START_TEST(a_remark_for_who_asked)
{
	start(&usual);
	load(&(struct shape){.listener = ",\"rules\":[\"ordre\"]"}, 1);
	ck_assert_msg(
	    strstr(reply.text, "rl-agent.json: listeners.main.rules[0]: "
			       "matches none of the rules") != NULL,
	    "%s", reply.text);
	load(&usual, 2);
	ck_assert_str_eq(reply.text, "");
	stop();
}
END_TEST

START_TEST(listeners_come_and_go)
{
	start(&usual);
	load(&(struct shape){.listener = ",\"mode\":\"0600\"",
		 .listeners = ",\"b\":{\"path\":\"%s/b.sock\"}"},
	    1);
	expect_welcome(&a, 2);
	expect_alive(&a, 1);
	ck_assert_uint_eq(mode_of(main_path), 0600);
	join(&b, extra_path);
	ask(&b, 1, "plain");
	take(0);
	load(&usual, 2);
	expect_welcome(&a, 3);
	expect_alive(&a, 2);
	ck_assert_uint_eq(mode_of(main_path), 0660);
	ck_assert_int_ne(access(extra_path, F_OK), 0);
	expect_go_away(&b, 1);
	peer_empty(&b, IPC_PING, 2); /* is not read any more */
	settle();
	fake_server_allow(&server[0], &q);
	expect_decision(
	    &b, 1, IPC_ALLOWED, true, IPC_SOURCE_SERVER, IPC_REASON_OK);
	expect_closed(&b);
	peer_close(&b);
	stop();
}
END_TEST

/* The same socket by another name of its folder: it stays. */
START_TEST(a_listener_by_another_name)
{
	char link[128], listeners[256];

	start(&usual);
	snprintf(link, sizeof(link), "%s/link", folder);
	ck_assert_int_eq(symlink(folder, link), 0);
	load(
	    &(struct shape){.listeners = ",\"b\":{\"path\":\"%s/b.sock\"}"}, 1);
	join(&b, extra_path);
	snprintf(listeners, sizeof(listeners),
	    ",\"b\":{\"path\":\"%s/b.sock\"}", link);
	load(&(struct shape){.listeners = listeners}, 2);
	expect_welcome(&b, 3);
	expect_alive(&b, 1);
	load(&usual, 3);
	expect_go_away(&b, 1);
	ck_assert_int_ne(access(extra_path, F_OK), 0);
	peer_close(&b);
	stop();
}
END_TEST

START_TEST(who_may_not_any_more_is_sent_away)
{
	start(&usual);
	ask(&a, 1, "plain");
	take(0);
	load(&(struct shape){.listener = ",\"uids\":[4294967294]"}, 1);
	expect_go_away(&a, 1);
	join(&b, control_path); /* the control socket knows no such list */
	fake_server_allow(&server[0], &q);
	expect_decision(
	    &a, 1, IPC_ALLOWED, true, IPC_SOURCE_SERVER, IPC_REASON_OK);
	expect_closed(&a);
	peer_open(&a, main_path);
	peer_hello(&a);
	expect_error(&a, 0, IPC_ERR_UNAUTHORISED);
	peer_close(&b);
	stop();
}
END_TEST

/* One that is idle, and one that has not even said HELLO. */
START_TEST(idle_clients_are_closed_at_once)
{
	start(&usual);
	peer_open(&b, main_path);
	settle();
	load(&(struct shape){.listener = ",\"uids\":[4294967294]"}, 1);
	expect_go_away(&a, 0);
	expect_closed(&a);
	expect_go_away(&b, 0);
	expect_closed(&b);
	peer_close(&b);
	stop();
}
END_TEST

START_TEST(the_control_socket_can_move)
{
	char path[96], section[160];

	start(&usual);
	snprintf(path, sizeof(path), "%s/c2.sock", folder);
	snprintf(
	    section, sizeof(section), ",\"control\":{\"path\":\"%s\"}", path);
	load(&(struct shape){.sections = section}, 1); /* on the old one */
	ck_assert_int_ne(access(control_path, F_OK), 0);
	expect_alive(&control, 2);
	join(&b, path);
	expect_alive(&b, 2);
	peer_close(&b);
	load(&usual, 3);
	ck_assert_int_eq(access(control_path, F_OK), 0);
	stop();
}
END_TEST

START_TEST(a_socket_does_not_change_its_kind)
{
	char section[160];

	start(&usual);
	snprintf(section, sizeof(section), ",\"control\":{\"path\":\"%s\"}",
	    main_path);
	refuse(&(struct shape){.sections = section}, 1,
	    "is the path of listener main, too");
	snprintf(section, sizeof(section), ",\"control\":{\"path\":\"%s/x\"}",
	    folder);
	refuse(&(struct shape){.sections = section,
		   .listeners = ",\"b\":{\"path\":\"%s/control.sock\"}"},
	    2, "in one step");
	ck_assert_int_eq(access(control_path, F_OK), 0);
	stop();
}
END_TEST

START_TEST(a_hangup_loads_again)
{
	start(&usual);
	write_file(&other);
	ck_assert_int_eq(raise(SIGHUP), 0);
	expect_welcome(&a, 2);
	ck_assert_int_eq(raise(SIGHUP), 0); /* unchanged: all the same */
	expect_welcome(&a, 3);
	stop();
}
END_TEST

START_TEST(a_changed_file_is_seen)
{
	start(&usual);
	ck_assert(agent->loading.watching);
	write_file(&other);
	expect_welcome(&a, 2);
	write_text("{}");
	TURN_UNTIL(agent->loading.error[0] != '\0');
	ck_assert_uint_eq(agent->setup->generation, 2);
	write_file(&usual);
	expect_welcome(&a, 3);
	ck_assert_str_eq(agent->loading.error, "");
	stop();
}
END_TEST

/* The file is as it was: the error is gone, and nothing is loaded. */
START_TEST(a_mistake_that_is_taken_back)
{
	start(&usual);
	write_text("{}");
	TURN_UNTIL(agent->loading.error[0] != '\0');
	write_file(&usual);
	TURN_UNTIL(agent->loading.error[0] == '\0');
	ck_assert_uint_eq(agent->setup->generation, 1);
	stop();
}
END_TEST

START_TEST(not_while_draining)
{
	start(&usual);
	ask(&a, 1, "plain");
	take(0);
	peer_empty(&control, IPC_DRAIN, 1);
	expect_go_away(&a, 1);
	ask_reload(2, IPC_REASON_DRAINING);
	ck_assert(!peer_take(&control, &reply));
	fake_server_allow(&server[0], &q);
	expect_decision(
	    &a, 1, IPC_ALLOWED, true, IPC_SOURCE_SERVER, IPC_REASON_OK);
	ck_assert_int_eq(agent_run(agent), 0); /* it ends by itself */
	expect_done(&control, 1, IPC_REASON_OK);
	stop();
}
END_TEST

/* Quit while it drains: what was waited for did not come about. */
START_TEST(a_drain_that_is_cut_short)
{
	start(&usual);
	ask(&a, 1, "plain");
	take(0);
	peer_empty(&control, IPC_DRAIN, 1);
	expect_go_away(&a, 1);
	peer_empty(&control, IPC_QUIT, 2);
	expect_done(&control, 2, IPC_REASON_OK);
	expect_done(&control, 1, IPC_REASON_DRAINING);
	stop();
}
END_TEST

START_TEST(drain_and_reload_are_for_operators)
{
	start(&usual);
	peer_empty(&a, IPC_RELOAD, 1);
	expect_done(&a, 1, IPC_REASON_UNAUTHORISED);
	peer_empty(&a, IPC_DRAIN, 2);
	expect_done(&a, 2, IPC_REASON_UNAUTHORISED);
	ck_assert_uint_eq(agent->setup->generation, 1);
	ck_assert(!agent->draining);
	stop();
}
END_TEST

/* A reload that decides nothing anew leaves the hash: a resend goes on. */
START_TEST(a_resend_is_adopted_over_a_reload)
{
	struct peer_base again;

	start(&usual);
	ask(&a, 1, "plain");
	take(0);
	load(&(struct shape){.listener = ",\"mode\":\"0600\""}, 1);
	join(&b, main_path);
	again = base;
	again.hash = agent->setup->config->hash;
	again.age_us = 1000;
	peer_check(&b, 1, &again, "plain", NULL);
	settle();
	fake_server_allow(&server[0], &q);
	expect_decision(
	    &b, 1, IPC_ALLOWED, true, IPC_SOURCE_SERVER, IPC_REASON_OK);
	ck_assert_uint_eq(fake_server_count(&server[0], &q), 0);
	peer_close(&b);
	stop();
}
END_TEST

/* Caps hold for what comes after. */
START_TEST(limits_change)
{
	start(&usual);
	ask(&a, 1, "plain");
	take(0);
	load(&(struct shape){.limits = "\"max_inflight\":1"}, 1);
	expect_welcome(&a, 2);
	ask(&a, 2, "plain");
	expect_failed(&a, 2, false, IPC_REASON_OVERLOADED);
	load(&usual, 2);
	expect_welcome(&a, 3);
	ask(&a, 3, "plain");
	take(0);
	fake_server_allow(&server[0], &q);
	expect_decision(
	    &a, 3, IPC_ALLOWED, true, IPC_SOURCE_SERVER, IPC_REASON_OK);
	stop();
}
END_TEST

/* What is over a cap already takes nobody else's place. */
START_TEST(a_lower_cap_shuts_nobody_else_out)
{
	static struct ipc_peer many[80];
	size_t i;

	start(&usual);
	for (i = 0; i < 80; i++)
		join(&many[i], main_path);
	load(&(struct shape){.listener = ",\"max_connections\":1",
		 .listeners = ",\"b\":{\"path\":\"%s/b.sock\","
			      "\"max_connections\":1}"},
	    1);
	join(&b, extra_path);
	peer_close(&b);
	join(&b, control_path);
	peer_close(&b);
	peer_open(&b, main_path);
	peer_hello(&b);
	expect_error(&b, 0, IPC_ERR_BUSY);
	peer_close(&b);
	for (i = 0; i < 80; i++)
		peer_close(&many[i]);
	stop();
}
END_TEST

static uint64_t
counted(const char *rule, size_t offset)
{
	const struct config_rule *r =
	    config_rule(agent->setup->config, rule, strlen(rule));
	uint64_t n;

	ck_assert_ptr_nonnull(r);
	memcpy(&n, (const char *)setup_counters(agent->setup, r) + offset,
	    sizeof(n));
	return n;
}
/* The tally of a rule, or of ad-hoc checks of a tenant. */
static const struct tally *
tally_of(const char *rule, const char *tenant)
{
	const struct setup *s = agent->setup;
	const struct tally *t = setup_tally(s,
	    rule != NULL ? config_rule(s->config, rule, strlen(rule)) : NULL,
	    config_tenant(s->config, tenant, strlen(tenant)));

	ck_assert_ptr_nonnull(t);
	return t;
}

#define COUNTED(rule, field) \
	counted(rule, offsetof(struct rule_counters, field))

START_TEST(counts_of_rules_go_on)
{
	start(&usual);
	ask(&a, 1, "plain");
	take(0);
	fake_server_allow(&server[0], &q);
	expect_decision(
	    &a, 1, IPC_ALLOWED, true, IPC_SOURCE_SERVER, IPC_REASON_OK);
	ask(&a, 2, "plain"); /* begun before, decided after */
	take(0);
	load(&other, 1);
	expect_welcome(&a, 2);
	deny(&server[0]);
	expect_decision(
	    &a, 2, IPC_DENIED, false, IPC_SOURCE_SERVER, IPC_REASON_RESOURCE);
	ck_assert_uint_eq(COUNTED("plain", checks), 2);
	ck_assert_uint_eq(COUNTED("plain", allowed), 1);
	ck_assert_uint_eq(COUNTED("plain", denied), 1);
	ck_assert_uint_eq(tally_total(tally_of("plain", "slow")), 2);
	ck_assert_uint_eq(tally_of("plain", "slow")->permitted, 1);
	stop();
}
END_TEST

/* So do those of ad-hoc checks, but a rule that has moved to another tenant
 * begins anew; one that is gone is forgotten. */
START_TEST(tallies_go_on)
{
	static const struct shape moved = {
	    .rules = "\"plain\":{\"tenant\":\"quick\"},"
		     "\"quick\":{\"tenant\":\"quick\"}"};

	start(&usual);
	ask(&a, 1, "empty");
	next(&a);
	ask(&a, 2, "nosuch");
	next(&a);
	peer_adhoc(&a, 3, &once, "slow", 0, 0);
	next(&a);
	ask(&a, 4, "plain");
	take(0);
	fake_server_allow(&server[0], &q);
	next(&a);
	ck_assert_uint_eq(tally_total(tally_of("empty", "slow")), 1);
	load(&moved, 1);
	expect_welcome(&a, 2);
	ck_assert_uint_eq(tally_total(tally_of("plain", "quick")), 0);
	ck_assert_uint_eq(COUNTED("plain", checks), 1);
	ck_assert_uint_eq(tally_total(tally_of(NULL, "slow")), 1);
	ck_assert_uint_eq(tally_total(tally_of(NULL, "quick")), 0);
	ck_assert_uint_eq(
	    tally_total(setup_tally(agent->setup, NULL, NULL)), 1);
	stop();
}
END_TEST

#define MAIL(rate) ",\"limiters\":{\"mail\":{\"permits_per_second\":" rate "}}"

static struct limiters_shown
mail(const struct setup *s)
{
	const struct config_limiter *l = config_limiter(s->config, "mail", 4);

	ck_assert_ptr_nonnull(l);
	return limiters_show(s->limiters, l, loop_now());
}

/* What is owed goes on, and a rate changes when its file is in force. */
START_TEST(limiters_go_on)
{
	const struct shape slow = {.sections = MAIL("0.001")};
	const struct config_limiter *l;
	int64_t wait;

	start(&slow);
	l = config_limiter(agent->setup->config, "mail", 4);
	ck_assert_int_eq(
	    limiters_acquire(agent->setup->limiters, l,
		(struct limiters_key){NULL, 0}, 1, 0, loop_now(), &wait),
	    LIMITERS_GRANTED);
	ask(&a, 1, "plain"); /* keeps what it began under */
	take(0);
	refuse(&(struct shape){.sections = MAIL("1"),
		   .listeners = ",\"c\":{\"path\":\"%s/rl-agent.json\"}"},
	    1, "listeners.c.path");
	ck_assert_int_eq(mail(agent->setup).rate, RATELIMITER_MIN_RATE);
	load(&(struct shape){.sections = MAIL("1")}, 2);
	expect_welcome(&a, 2);
	ck_assert_int_eq(mail(agent->setup).rate, RATELIMITER_ONE);
	ck_assert_int_gt(mail(agent->setup).owed_us, 900000000);
	ck_assert_int_le(mail(agent->setup).owed_us, 1000000000);
	ck_assert_ptr_nonnull(agent->retired);
	ck_assert_int_eq(mail(agent->retired).rate, RATELIMITER_ONE);
	fake_server_allow(&server[0], &q);
	expect_decision(
	    &a, 1, IPC_ALLOWED, true, IPC_SOURCE_SERVER, IPC_REASON_OK);
	TURN_UNTIL(agent->retired == NULL);
	ck_assert_int_gt(mail(agent->setup).owed_us, 900000000);
	load(&usual, 3); /* without it */
	stop();
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("reload");
	TCase *tc = tcase_create("reload");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, a_new_rule_is_for_what_comes_after);
	tcase_add_test(tc, an_unchanged_tenant_stays);
	tcase_add_loop_test(
	    tc, a_bad_file_changes_nothing, 0, sizeof(bad) / sizeof(bad[0]));
	tcase_add_test(tc, a_remark_for_who_asked);
	tcase_add_test(tc, listeners_come_and_go);
	tcase_add_test(tc, a_listener_by_another_name);
	tcase_add_test(tc, who_may_not_any_more_is_sent_away);
	tcase_add_test(tc, idle_clients_are_closed_at_once);
	tcase_add_test(tc, the_control_socket_can_move);
	tcase_add_test(tc, a_socket_does_not_change_its_kind);
	tcase_add_test(tc, a_hangup_loads_again);
	tcase_add_test(tc, a_changed_file_is_seen);
	tcase_add_test(tc, a_mistake_that_is_taken_back);
	tcase_add_test(tc, not_while_draining);
	tcase_add_test(tc, a_drain_that_is_cut_short);
	tcase_add_test(tc, drain_and_reload_are_for_operators);
	tcase_add_test(tc, a_resend_is_adopted_over_a_reload);
	tcase_add_test(tc, limits_change);
	tcase_add_test(tc, a_lower_cap_shuts_nobody_else_out);
	tcase_add_test(tc, counts_of_rules_go_on);
	tcase_add_test(tc, tallies_go_on);
	tcase_add_test(tc, limiters_go_on);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
