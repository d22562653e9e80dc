/*
 * A tenant's life: every kind of key in both profiles, reports, the steady
 * state without allocation, and ending with work under way.
 */
#include "daemon/tenant.h"

#include "proto/err.h"
#include "tests/unit/allocations.h"
#include "tests/unit/tenant_fixture.h"

static const struct {
	enum auth_type auth;
	enum profile profile;
} kinds[] = {
    {AUTH_NONE, PROFILE_V1},
    {AUTH_NONE, PROFILE_V2},
    {AUTH_COOKIE, PROFILE_V1},
    {AUTH_COOKIE, PROFILE_V2},
    {AUTH_AES, PROFILE_V1},
    {AUTH_AES, PROFILE_V2},
};
#define KINDS ((int)(sizeof(kinds) / sizeof(*kinds)))

static struct outcome out;
static struct fake_request q, r;

static void
start_kind(int i)
{
	start_tenant(&(struct shape){
	    .auth = kinds[i].auth, .profile = kinds[i].profile});
}

START_TEST(every_kind_of_key_decides)
{
	start_kind(_i);
	ask(1, &out);
	take(0, &q);
	ck_assert_uint_eq(q.rate.guard_count, 1);
	ck_assert_uint_eq(q.rate.guards[0].ttl_ms, 1000);
	ck_assert_uint_eq(q.rate.guards[0].max_samples, 10);
	ck_assert_uint_eq(q.rate.resources[0].tokens, 2);
	fake_server_allow(&server[0], &q);
	TURN_UNTIL(out.calls == 1);
	ck_assert_int_eq(out.res.end, POLICY_SELECTED);
	ck_assert_uint_eq(out.res.server_id, FIRST_ID);
	stop_tenant();
}
END_TEST

static void
make_report(struct pdu_report *report)
{
	memset(report, 0, sizeof(*report));
	report->count = 1;
	report->samples[0] = (struct pdu_sample){
	    .ttl_ms = 5000,
	    .max_samples = 100,
	    .min_samples = 5,
	    .observed_ms = 123,
	};
	memset(report->samples[0].id, 0x77, ID_LEN);
}

/* To every server, once, each datagram with a unique id of its own. */
START_TEST(reports)
{
	struct pdu_report report;
	uint32_t sent = 0;

	start_kind(_i);
	make_report(&report);
	ck_assert_int_eq(tenant_report(tenant, &report, &sent), 0);
	ck_assert_uint_eq(sent, SERVERS);
	memset(&r, 0, sizeof(r));
	for (unsigned int i = 0; i < SERVERS; i++) {
		take(i, &q);
		ck_assert_uint_eq(q.type, PDU_LATENCY_REPORT);
		ck_assert_uint_eq(q.report.count, 1);
		ck_assert_uint_eq(q.report.samples[0].observed_ms, 123);
		ck_assert_uint_eq(q.report.samples[0].id[15], 0x77);
		ck_assert_uint_eq(q.head.unique_id[6] & 0xF0, 0x40);
		ck_assert_uint_eq(q.head.unique_id[8] & 0xC0, 0x80);
		ck_assert_mem_ne(q.head.unique_id, r.head.unique_id, 16);
		ck_assert(!q.head.keep_port && !q.head.mgmt);
		r = q;
	}
	settle();
	for (unsigned int i = 0; i < SERVERS; i++)
		ck_assert_uint_eq(fake_server_count(&server[i], &q), 0);
	ck_assert_uint_eq(counters()->reports_sent, SERVERS);
	ck_assert_uint_eq(counters()->requests_sent, 0);
	ck_assert_uint_eq(tenant_inflight(tenant), 0);
	stop_tenant();
}
END_TEST

START_TEST(a_report_that_cannot_be_sent)
{
	struct pdu_report report;
	uint32_t sent = 9;

	start_tenant(&(struct shape){
	    .auth = AUTH_COOKIE,
	    .servers = "[{\"id\":\"101\",\"address\":\"255.255.255.255:%u\"},"
		       "{\"id\":\"102\",\"address\":\"127.0.0.1:%u\"}]",
	});
	make_report(&report);
	report.count = PDU_MAX_REPORTS + 1;
	ck_assert_int_eq(tenant_report(tenant, &report, &sent), RLA_ETOOBIG);
	ck_assert_uint_eq(sent, 0);
	report.count = 1;
	ck_assert_int_eq(tenant_report(tenant, &report, &sent), 0);
	take(1, &q);
	ck_assert_uint_eq(counters()->reports_sent, 1);
	ck_assert_uint_eq(counters()->send_errors, 1);
	stop_tenant();
}
END_TEST

START_TEST(a_report_without_a_server)
{
	const struct discovery *d;
	struct pdu_report report;
	uint32_t sent = 9;

	start_tenant(&(struct shape){.auth = AUTH_COOKIE,
	    .dns = "{\"name\":\"none.example\",\"forced_min_ms\":30000,"
		   "\"nameservers\":[\"127.0.0.1:1\"]}"});
	d = tenant_discovery(tenant);
	TURN_UNTIL(discovery_state(d) == DISCOVERY_UNAVAILABLE);
	make_report(&report);
	ck_assert_int_eq(tenant_report(tenant, &report, &sent), RLA_ENOENT);
	ck_assert_uint_eq(sent, 0);
	/* The retry is due by its own pace; nobody hurries it. */
	ck_assert_uint_eq(discovery_counters(d)->forced, 0);
	ck_assert_int_ne(discovery_next(d), POLICY_NEVER);
	ck_assert(!tenant_ready(tenant));
	ck_assert_uint_eq(tenant_members(tenant)->count, 0);
	stop_tenant();
}
END_TEST

static unsigned int told;

static void
on_ready(void *arg)
{
	ck_assert(tenant_ready(arg));
	told++;
}

START_TEST(readiness_is_told)
{
	char err[TENANT_ERR_MAX];
	struct credential cred;

	make_key(AUTH_AES, &cred);
	loop = loop_new();
	randoms = random_pool_new();
	config = make_config(&(struct shape){
	    .servers = "[{\"id\":\"5\",\"address\":\"127.0.0.1:9\"}]"});
	tenant = tenant_new(loop, randoms, &config->tenants[0], 1, err);
	tenant_on_ready(tenant, on_ready, tenant);
	ck_assert_uint_eq(told, 0);
	TURN_UNTIL(told == 1);
	settle();
	ck_assert_uint_eq(told, 1);
	ck_assert_uint_eq(tenant_members(tenant)->count, 1);
	ck_assert_uint_eq(tenant_members(tenant)->list[0].server_id, 5);
	ck_assert_ptr_eq(tenant_config(tenant), &config->tenants[0]);
	tenant_free(tenant);
	tenant_free(NULL);
	loop_free(loop);
	random_pool_free(randoms);
	config_unref(config);
}
END_TEST

#define MANY 2000

static struct outcome many[MANY];

/* Is an answer to come, be it one that no longer decides? */
static bool
outstanding(void)
{
	const struct tenant_counters *n = counters();

	return tenant_inflight(tenant) > 0 ||
	       n->answers + n->answers_late + n->answers_duplicate <
		   n->requests_sent;
}

/* Asks for all of them at once, and answers each from every server. */
static void
flight(uint32_t from)
{
	uint8_t id[16] = {[6] = 0x40, [8] = 0x80};
	int64_t limit = loop_now() + LIMIT_US;
	struct tenant_op *op;
	struct pdu_rate rate;
	uint32_t number;

	make_rate(&rate, 1, 1);
	memset(many, 0, sizeof(many));
	for (uint32_t i = 0; i < MANY; i++) {
		number = from + i;
		memcpy(id, &number, sizeof(number));
		if (ask_with(&rate, id, loop_now(), POLICY_NEVER, &many[i],
			&op) != 0)
			abort();
	}
	if (tenant_inflight(tenant) != MANY)
		abort();
	/* Nothing of Check in here: it allocates. */
	while (outstanding() && loop_now() < limit) {
		loop_turn(loop);
		for (unsigned int i = 0; i < SERVERS; i++) {
			while (fake_server_take(&server[i], &q))
				fake_server_allow(&server[i], &q);
		}
	}
	if (outstanding())
		abort();
}

/* The second flight finds all that it needs. */
START_TEST(the_steady_state_allocates_nothing)
{
	unsigned long before;

	start_kind(_i);
	flight(1);
	before = allocations;
	flight(1000000);
	before = allocations - before;
	ck_assert_uint_eq(before, 0);
	for (unsigned int i = 0; i < MANY; i++) {
		ck_assert_uint_eq(many[i].calls, 1);
		ck_assert_int_eq(many[i].res.end, POLICY_SELECTED);
	}
	ck_assert_uint_eq(counters()->selected, 2 * MANY);
	stop_tenant();
}
END_TEST

/* In flight, cancelled with sends queued, decided with delivery queued: each
 * has given its reference to the snapshot back. */
START_TEST(the_end_with_work_under_way)
{
	struct members *members;

	start_kind(_i);
	members = members_ref((struct members *)tenant_members(tenant));
	memset(many, 0, sizeof(many));
	for (uint32_t i = 0; i < 600; i++) /* over the send queue */
		ask(i, &many[i]);
	TURN_UNTIL(fake_server_take(&server[0], &q));
	fake_server_allow(&server[0], &q);
	for (uint32_t i = 600; i < 1200; i++)
		ask(i, &many[i]);
	for (uint32_t i = 1200; i < 1300; i++)
		tenant_cancel(ask(i, &many[i]));
	TURN_UNTIL(counters()->selected == 1);
	for (uint32_t i = 1400; i < 1500; i++)
		ask(i, &many[i]);
	for (uint32_t i = 1300; i < 1400; i++)
		tenant_cancel(ask(i, &many[i]));
	/* The test, the tenant, its discovery, those in flight, and some that
	 * are over but still have sends in the queue. */
	ck_assert_uint_gt(members->refs, 3 + 1299);
	stop_tenant();
	ck_assert_uint_eq(members->refs, 1);
	members_unref(members);
	for (uint32_t i = 0; i < 1500; i++)
		ck_assert_uint_eq(many[i].calls,
		    (i >= 1200 && i < 1400) || many[i].calls == 1);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("tenant");
	TCase *tc = tcase_create("tenant");

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, every_kind_of_key_decides, 0, KINDS);
	tcase_add_loop_test(tc, reports, 0, KINDS);
	tcase_add_test(tc, a_report_that_cannot_be_sent);
	tcase_add_test(tc, a_report_without_a_server);
	tcase_add_test(tc, readiness_is_told);
	tcase_add_loop_test(tc, the_steady_state_allocates_nothing, 0, KINDS);
	tcase_add_loop_test(tc, the_end_with_work_under_way, 0, KINDS);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
