/*
 * Tenants over a reload: keys that rotate, and a configuration that waits for
 * its servers until it is in force.
 */
#include "tests/unit/reload_fixture.h"
#include "tests/unit/fakedns.h"

#define NEW_KEY                                                         \
	"\"slow\":{\"key\":{\"env\":\"RLA_TEST_KEY_2\"},"               \
	"\"policy\":{\"unit_ms\":10000,\"completion_delivery\":false}," \
	"\"servers\":[{\"id\":\"101\",\"address\":\"127.0.0.1:%u\"}]}," \
	"\"quick\":{\"key\":{\"env\":\"RLA_TEST_KEY\"},"                \
	"\"policy\":{\"unit_ms\":3},\"on_failure\":\"closed\","         \
	"\"servers\":[{\"id\":\"201\",\"address\":\"127.0.0.1:%u\"}]}"

/* The same server with another key: it shares the socket. */
static struct fake_server
with_key(struct credential *cred)
{
	struct fake_server other_key = server[0];
	char text[CREDENTIAL_TEXT_MAX];

	*cred = (struct credential){
	    .auth = AUTH_COOKIE,
	    .format = KEY_UNVERSIONED,
	    .key_id = 78,
	    .quotas = {1024, 1024, 1024, 64, 0, UINT32_MAX},
	};
	memset(cred->secret, 0xA5, sizeof(cred->secret));
	ck_assert_int_eq(credential_format(cred, text, sizeof(text)), 0);
	setenv("RLA_TEST_KEY_2", text, 1);
	other_key.key = packet_key_new(cred);
	ck_assert_ptr_nonnull(other_key.key);
	return other_key;
}

START_TEST(a_key_rotates_without_loss)
{
	struct fake_server renewed;
	struct fake_request first;
	struct credential cred;

	start(&usual);
	renewed = with_key(&cred);
	ask(&a, 1, "plain");
	take(0);
	first = q;
	load(&(struct shape){.tenants = NEW_KEY}, 1);
	expect_welcome(&a, 2);
	ask(&a, 2, "plain");
	TURN_UNTIL(fake_server_take(&renewed, &q));
	ck_assert_uint_eq(q.head.key_id, 78);
	fake_server_allow(&renewed, &q);
	expect_decision(
	    &a, 2, IPC_ALLOWED, true, IPC_SOURCE_SERVER, IPC_REASON_OK);
	ck_assert_ptr_nonnull(agent->retired);
	fake_server_allow(&server[0], &first); /* under the old key */
	expect_decision(
	    &a, 1, IPC_ALLOWED, true, IPC_SOURCE_SERVER, IPC_REASON_OK);
	TURN_UNTIL(agent->retired == NULL);
	packet_key_free(renewed.key);
	stop();
}
END_TEST

/* Two keys of one server: what is sealed with one is no answer for the
 * other, however right the rest. */
START_TEST(an_answer_under_the_wrong_key_is_none)
{
	struct fake_server renewed;
	struct credential cred;

	start(&usual);
	renewed = with_key(&cred);
	load(&(struct shape){.tenants = NEW_KEY}, 1);
	expect_welcome(&a, 2);
	ask(&a, 1, "plain");
	TURN_UNTIL(fake_server_take(&renewed, &q));
	fake_server_allow(&server[0], &q);
	TURN_UNTIL(
	    tenant_counters(agent->setup->tenants[1])->invalid_auth == 1);
	ck_assert(!peer_take(&a, &reply));
	fake_server_allow(&renewed, &q);
	expect_decision(
	    &a, 1, IPC_ALLOWED, true, IPC_SOURCE_SERVER, IPC_REASON_OK);
	packet_key_free(renewed.key);
	stop();
}
END_TEST

/* A tenant that finds nobody is waited for, and the old rules hold. */
#define WITH_DNS                                                   \
	TENANTS ",\"lost\":{\"key\":{\"env\":\"RLA_TEST_KEY\"},"   \
		"\"dns\":{\"name\":\"x.example\",\"nameservers\":" \
		"[\"127.0.0.1:9\"],\"timeout_ms\":60000}}"

START_TEST(the_next_one_replaces_one_that_waits)
{
	start(&usual);
	write_file(&(struct shape){.tenants = WITH_DNS});
	peer_empty(&control, IPC_RELOAD, 1);
	settle();
	ck_assert_uint_eq(agent->setup->generation, 1);
	write_file(&other);
	peer_empty(&control, IPC_RELOAD, 2);
	for (unsigned int i = 0; i < 2; i++) {
		do
			next(&control);
		while (reply.type == IPC_WELCOME);
		ck_assert_uint_eq(reply.type, IPC_DONE);
		ck_assert_uint_eq(reply.number, IPC_REASON_OK);
	}
	ck_assert_uint_eq(agent->setup->generation, 2);
	ck_assert_uint_eq(agent->setup->config->tenant_count, 2);
	stop();
}
END_TEST

START_TEST(a_bad_one_replaces_one_that_waits_too)
{
	start(&usual);
	write_file(&(struct shape){.tenants = WITH_DNS});
	peer_empty(&control, IPC_RELOAD, 1);
	settle();
	write_text("{");
	peer_empty(&control, IPC_RELOAD, 2);
	for (unsigned int i = 0; i < 2; i++) {
		next(&control);
		ck_assert_uint_eq(reply.type, IPC_DONE);
		ck_assert_uint_eq(reply.number, IPC_REASON_VALIDATION);
	}
	ck_assert_uint_eq(agent->setup->generation, 1);
	stop();
}
END_TEST

/* The last answer of DNS comes in the turn that is too late for it. */
static void
answer_late(void *arg, const struct fakedns_query *query, struct dnsreply *r)
{
	const int64_t *until = arg;

	if (query->type == 33)
		dnsreply_srv(r, NULL, 60, 9, "s-7.x.example");
	else if (query->type == 1)
		dnsreply_address(r, NULL, 60, "127.0.0.1");
	while (query->type == 28 && loop_now() < *until)
		sched_yield();
}

START_TEST(ready_in_the_last_turn)
{
	char tenants[1024];
	int64_t until;
	struct fakedns *dns;

	start(&usual);
	dns = fakedns_new(agent->loop, 4, answer_late, &until);
	ck_assert_ptr_nonnull(dns);
	snprintf(tenants, sizeof(tenants),
	    TENANTS ",\"late\":{\"key\":{\"env\":\"RLA_TEST_KEY\"},"
		    "\"dns\":{\"name\":\"x.example\",\"nameservers\":"
		    "[\"127.0.0.1:%u\"],\"timeout_ms\":60000}}",
	    server[0].port, server[1].port, fakedns_endpoint(dns).port);
	until = loop_now() + RELOAD_READY_US + 500000;
	load(&(struct shape){.tenants = tenants}, 1);
	settle();
	ck_assert_uint_eq(agent->setup->generation, 2);
	ck_assert(dispatch_is_ready(agent->dispatch));
	fakedns_free(dns);
	stop();
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("reload_tenants");
	TCase *tc = tcase_create("reload_tenants");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, a_key_rotates_without_loss);
	tcase_add_test(tc, an_answer_under_the_wrong_key_is_none);
	tcase_add_test(tc, the_next_one_replaces_one_that_waits);
	tcase_add_test(tc, a_bad_one_replaces_one_that_waits_too);
	tcase_add_test(tc, ready_in_the_last_turn);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
