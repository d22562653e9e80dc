/*
 * Runs the sections of wire.json that belong to the pure core: server ids and
 * their labels, policy horizons and schedules.
 */
#include "tests/vectors/vectors.h"

#include <string.h>

#include "daemon/core/members.h"
#include "daemon/core/policy.h"
#include "daemon/core/schedule.h"
#include "proto/credential.h"
#include "tests/unit/harness.h"

static size_t
run_server_ids(const json_t *section, const json_t *root)
{
	char host[128];
	uint64_t id;
	json_t *v;
	size_t i;

	(void)root;
	json_array_foreach(section, i, v)
	{
		const char *label = vectors_str(v, "label");

		ck_assert_int_eq(
		    members_parse_label(label, strlen(label), &id), 0);
		ck_assert(id == vectors_u64(v, "server_id"));
		ck_assert(members_start_time(id) == vectors_u64(v, "start_s"));
		ck_assert_uint_eq(
		    members_listener(id), vectors_u32(v, "listener_id"));
		ck_assert_uint_eq(members_node(id), vectors_u32(v, "node_id"));
		/* As it stands in an SRV record. */
		snprintf(host, sizeof host, "S%s.rl1.example.com.", label + 1);
		id = 0;
		ck_assert_int_eq(
		    members_parse_label(host, strlen(host), &id), 0);
		ck_assert(id == vectors_u64(v, "server_id"));
	}
	return i;
}

static size_t
run_labels_invalid(const json_t *section, const json_t *root)
{
	char host[128];
	uint64_t id;
	json_t *v;
	size_t i;

	(void)root;
	json_array_foreach(section, i, v)
	{
		const char *label = vectors_str(v, "label");

		ck_assert_msg(
		    members_parse_label(label, strlen(label), &id) == -1,
		    "%s accepted", label);
		snprintf(host, sizeof host, "%s.example.com", label);
		ck_assert_int_eq(
		    members_parse_label(host, strlen(host), &id), -1);
	}
	return i;
}

/* "fixed:B", "linear:INITIAL:STEP:MAX", "exponential:INITIAL:FACTOR:MAX" */
static struct schedule
schedule_of(const char *text)
{
	struct schedule s = {0};
	char kind[16];
	int n;

	n = sscanf(
	    text, "%15[a-z]:%u:%u:%u", kind, &s.initial, &s.growth, &s.max);
	if (n == 2 && strcmp(kind, "fixed") == 0)
		s.kind = SCHEDULE_FIXED;
	else if (n == 4 && strcmp(kind, "linear") == 0)
		s.kind = SCHEDULE_LINEAR;
	else if (n == 4 && strcmp(kind, "exponential") == 0)
		s.kind = SCHEDULE_EXPONENTIAL;
	else
		ck_abort_msg("schedule %s is not understood", text);
	return s;
}

static size_t
run_horizons(const json_t *section, const json_t *root)
{
	struct credential key = {.format = KEY_FORMAT_1};
	struct policy_plan plan;
	struct policy p;
	json_t *v;
	size_t i;

	(void)root;
	json_array_foreach(section, i, v)
	{
		uint32_t horizon = vectors_u32(v, "horizon");

		policy_defaults(&p);
		p.unit_ms = vectors_u32(v, "unit");
		p.replay_count = vectors_u32(v, "replays");
		p.gap = schedule_of(vectors_str(v, "gap"));
		p.final_units = vectors_u32(v, "final");
		ck_assert_int_eq(policy_plan_init(&plan, &p, NULL), 0);
		ck_assert(plan.horizon_us == (int64_t)horizon * 1000);
		ck_assert_uint_eq(plan.ttl_ms, horizon);
		ck_assert_uint_eq(plan.rounds, p.replay_count + 1);
		/* A horizon is sound by itself; it is the key's maximum that
		 * refuses it when the configuration is loaded. */
		key.quotas.dedup_ttl_ms = horizon;
		ck_assert(credential_allows_ttl(&key, plan.ttl_ms));
		if (json_object_get(v, "reject_if_dedup_ttl_ms_max") != NULL) {
			key.quotas.dedup_ttl_ms =
			    vectors_u32(v, "reject_if_dedup_ttl_ms_max");
			ck_assert(!credential_allows_ttl(&key, plan.ttl_ms));
		}
	}
	return i;
}

static size_t
run_schedules(const json_t *section, const json_t *root)
{
	json_t *v;
	size_t i;

	(void)root;
	json_array_foreach(section, i, v)
	{
		struct schedule s = schedule_of(vectors_str(v, "schedule"));

		ck_assert_uint_eq(schedule_units(&s, vectors_u32(v, "round")),
		    vectors_u32(v, "units"));
		ck_assert_uint_eq(schedule_units(&s, 0), s.initial);
	}
	return i;
}

static const struct vectors_job jobs[] = {
    {"server_ids", run_server_ids},
    {"server_id_labels_invalid", run_labels_invalid},
    {"policy_horizons_ms", run_horizons},
    {"policy_schedule_units", run_schedules},
};
#define JOBS (sizeof jobs / sizeof jobs[0])

static json_t *root;

static void
set_up(void)
{
	root = vectors_load("wire.json");
}

static void
tear_down(void)
{
	json_decref(root);
}

START_TEST(every_section_has_an_owner)
{
	vectors_check_wire_jobs(root, VECTORS_CORE, jobs, JOBS);
}
END_TEST

START_TEST(section)
{
	vectors_run(root, &jobs[_i]);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("vectors_core");
	TCase *tc = tcase_create("core");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_test(tc, every_section_has_an_owner);
	tcase_add_loop_test(tc, section, 0, JOBS);
	suite_add_tcase(s, tc);
	return harness_run(s);
}
