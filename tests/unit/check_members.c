/*
 * Membership snapshots: order, merging, addresses that are kept, the cap, and
 * the label that carries a server's id.
 */
#include "daemon/core/members.h"

#include <string.h>

#include "tests/unit/harness.h"

static struct endpoint
v4(uint8_t last, uint16_t port)
{
	struct endpoint e = {.family = 4, .port = port};

	memcpy(e.addr, (uint8_t[]){192, 0, 2, last}, 4);
	return e;
}

static struct endpoint
v6(uint8_t last, uint32_t scope)
{
	struct endpoint e = {.family = 6, .port = 29292, .scope = scope};

	e.addr[0] = 0xfe;
	e.addr[1] = 0x80;
	e.addr[15] = last;
	return e;
}

static struct members_target
target(uint64_t id, uint32_t count, uint8_t first)
{
	struct members_target t = {.server_id = id, .addr_count = count};

	for (uint32_t i = 0; i < count; i++)
		t.addrs[i] = v4((uint8_t)(first + i), 29292);
	return t;
}

static struct members *
build(const struct members_target *t, size_t count)
{
	struct members *m = members_build(t, count, NULL, NULL);

	ck_assert_ptr_nonnull(m);
	ck_assert_uint_eq(m->refs, 1);
	return m;
}

START_TEST(ordered_oldest_first_by_plain_id)
{
	/* The sign bit is nothing special. */
	struct members_target t[] = {target(UINT64_C(1) << 63, 1, 1),
	    target(7, 1, 2), target(UINT64_MAX, 1, 3), target(0, 1, 4)};
	struct members *m = build(t, 4);

	ck_assert_uint_eq(m->count, 4);
	ck_assert_uint_eq(m->list[0].server_id, 0);
	ck_assert_uint_eq(m->list[1].server_id, 7);
	ck_assert_uint_eq(m->list[2].server_id, UINT64_C(1) << 63);
	ck_assert_uint_eq(m->list[3].server_id, UINT64_MAX);
	ck_assert_uint_eq(m->list[3].addrs[0].addr[3], 3);
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(members_find(m, m->list[i].server_id), i);
	ck_assert_int_eq(members_find(m, 8), -1);
	members_unref(m);
}
END_TEST

START_TEST(nothing_makes_an_empty_snapshot)
{
	struct members *m = build(NULL, 0);

	ck_assert_uint_eq(m->count, 0);
	ck_assert_int_eq(members_find(m, 0), -1);
	members_unref(m);
	members_unref(NULL);
}
END_TEST

START_TEST(one_server_in_two_records_is_merged)
{
	struct members_target t[] = {
	    target(5, 2, 10), target(3, 1, 1), target(5, 2, 11)};
	struct members *m = build(t, 3);

	ck_assert_uint_eq(m->count, 2);
	ck_assert_uint_eq(m->list[1].server_id, 5);
	/* 10 and 11, then 12 of the second: 11 is no news. */
	ck_assert_uint_eq(m->list[1].addr_count, 3);
	for (int i = 0; i < 3; i++)
		ck_assert_uint_eq(m->list[1].addrs[i].addr[3], 10 + i);
	members_unref(m);
}
END_TEST

START_TEST(merging_stops_at_the_most_addresses)
{
	struct members_target t[] = {target(5, 6, 1), target(5, 8, 101)};
	struct members *m = build(t, 2);

	ck_assert_uint_eq(m->list[0].addr_count, MEMBERS_MAX_ADDRS);
	ck_assert_uint_eq(m->list[0].addrs[7].addr[3], 102);
	members_unref(m);
}
END_TEST

START_TEST(ports_and_scopes_tell_addresses_apart)
{
	struct members_target t = {.server_id = 1, .addr_count = 6};
	struct members *m;

	t.addrs[0] = v4(1, 1000);
	t.addrs[1] = v4(1, 1001);
	t.addrs[2] = v6(1, 2);
	t.addrs[3] = v6(1, 3);
	t.addrs[4] = v4(1, 1000);
	t.addrs[4].addr[9] = 0xEE; /* unused by IPv4 */
	t.addrs[5] = v6(1, 3);
	m = build(&t, 1);
	ck_assert_uint_eq(m->list[0].addr_count, 4);
	members_unref(m);
}
END_TEST

START_TEST(a_target_without_addresses_keeps_the_old_ones)
{
	struct members_target before[] = {target(3, 2, 1), target(5, 1, 9)};
	struct members_target after[] = {target(3, 0, 0), target(4, 0, 0)};
	struct members *old = build(before, 2);
	struct members *m = members_build(after, 2, old, NULL);

	ck_assert_uint_eq(m->count, 1); /* 4 was never known, 5 is gone */
	ck_assert_uint_eq(m->list[0].server_id, 3);
	ck_assert_uint_eq(m->list[0].addr_count, 2);
	members_unref(old);
	ck_assert_uint_eq(m->list[0].addrs[1].addr[3], 2);
	members_unref(m);
}
END_TEST

START_TEST(fresh_addresses_replace_the_old_ones)
{
	struct members_target before = target(3, 2, 1);
	struct members_target after[] = {target(3, 0, 0), target(3, 1, 50)};
	struct members *old = build(&before, 1);
	struct members *m = members_build(after, 2, old, NULL);

	ck_assert_uint_eq(m->list[0].addr_count, 1);
	ck_assert_uint_eq(m->list[0].addrs[0].addr[3], 50);
	members_unref(old);
	members_unref(m);
}
END_TEST

START_TEST(over_the_cap_the_oldest_stay)
{
	static struct members_target t[2 * (MEMBERS_MAX + 3)];
	uint32_t dropped = 99;
	struct members *m;

	/* Youngest first, each twice, and one that has no address. */
	for (uint32_t i = 0; i < MEMBERS_MAX + 3; i++) {
		t[2 * i] = target(1000 - i, i == 5 ? 0 : 1, (uint8_t)i);
		t[2 * i + 1] = t[2 * i];
	}
	m = members_build(t, 2 * (MEMBERS_MAX + 3), NULL, &dropped);
	ck_assert_uint_eq(m->count, MEMBERS_MAX);
	ck_assert_uint_eq(dropped, 2);
	ck_assert_uint_eq(m->list[0].server_id, 1000 - MEMBERS_MAX - 2);
	ck_assert_int_eq(members_find(m, 1000), -1);
	members_unref(m);
	m = members_build(t, 4, NULL, &dropped);
	ck_assert_uint_eq(dropped, 0);
	members_unref(m);
}
END_TEST

START_TEST(references_keep_a_snapshot)
{
	struct members_target t = target(1, 1, 1);
	struct members *m = build(&t, 1);

	ck_assert_ptr_eq(members_ref(m), m);
	members_unref(m);
	ck_assert_uint_eq(m->refs, 1);
	ck_assert_uint_eq(m->list[0].server_id, 1);
	members_unref(m);
}
END_TEST

START_TEST(equal_whatever_the_order_of_addresses)
{
	struct members_target t = target(1, 3, 1), turned = t, other = t;
	struct members_target more[] = {t, target(2, 1, 9)};
	struct members *a = build(&t, 1), *b, *c, *d, *e;

	turned.addrs[0] = t.addrs[2];
	turned.addrs[2] = t.addrs[0];
	other.addrs[1].port++;
	b = build(&turned, 1);
	c = build(&other, 1);
	d = build(more, 2);
	t.server_id = 2;
	e = build(&t, 1);
	ck_assert(members_equal(a, a));
	ck_assert(members_equal(a, b));
	ck_assert(!members_equal(a, c));
	ck_assert(!members_equal(a, d));
	ck_assert(!members_equal(a, e));
	ck_assert(!members_equal(a, NULL));
	ck_assert(!members_equal(NULL, a));
	ck_assert(members_equal(NULL, NULL));
	members_unref(a);
	members_unref(b);
	members_unref(c);
	members_unref(d);
	members_unref(e);
}
END_TEST

START_TEST(an_address_more_or_less_is_a_change)
{
	struct members_target two = target(1, 2, 1), one = target(1, 1, 1);
	struct members *a = build(&two, 1), *b = build(&one, 1);

	ck_assert(!members_equal(a, b));
	ck_assert(!members_equal(b, a));
	members_unref(a);
	members_unref(b);
}
END_TEST

static const struct {
	const char *name;
	int ret;
	uint64_t id;
} labels[] = {
    {"s-1015809.rl1.example.com.", 0, 1015809},
    {"S-7", 0, 7},
    {"s-0", 0, 0},
    {"s-0.example", 0, 0},
    {"s-18446744073709551615.x", 0, UINT64_MAX},
    {"s-18446744073709551616.x", -1, 0},
    {"s-99999999999999999999", -1, 0},
    {"s-184467440737095516150", -1, 0},
    {"s-", -1, 0},
    {"s-.example", -1, 0},
    {"s", -1, 0},
    {"", -1, 0},
    {".", -1, 0},
    {"s-01", -1, 0},
    {"s-00", -1, 0},
    {"s-+1", -1, 0},
    {"s--1", -1, 0},
    {"s- 1", -1, 0},
    {"s-1 .example", -1, 0},
    {"s-12a", -1, 0},
    {"s-0x10", -1, 0},
    {"s_12", -1, 0},
    {"t-12", -1, 0},
    {"as-12", -1, 0},
    {"rl.s-12", -1, 0},
    {"s-1\\.5.example", -1, 0},
};

START_TEST(labels_parse_strictly)
{
	uint64_t id = 42;

	ck_assert_msg(members_parse_label(labels[_i].name,
			  strlen(labels[_i].name), &id) == labels[_i].ret,
	    "%s", labels[_i].name);
	ck_assert_uint_eq(id, labels[_i].ret == 0 ? labels[_i].id : 42);
}
END_TEST

START_TEST(a_label_ends_with_its_length)
{
	uint64_t id = 42;

	ck_assert_int_eq(members_parse_label("s-1234", 4, &id), 0);
	ck_assert_uint_eq(id, 12);
	ck_assert_int_eq(members_parse_label("s-12", 2, &id), -1);
	ck_assert_int_eq(members_parse_label("s-1\0.x", 6, &id), -1);
	ck_assert_int_eq(members_parse_label("s-05", 3, &id), 0);
	ck_assert_uint_eq(id, 0);
}
END_TEST

START_TEST(an_id_has_three_parts)
{
	/* 121 s after the epoch of 2025, listener 2, node 1 ... */
	uint64_t id = UINT64_C(121) << 23 | 2 << 15 | 1;

	ck_assert_uint_eq(members_start_time(id), 1735689600 + 121);
	ck_assert_uint_eq(members_listener(id), 2);
	ck_assert_uint_eq(members_node(id), 1);
	/* ... and each part at its widest leaves the others alone. */
	ck_assert_uint_eq(members_listener(UINT64_C(0xFF) << 15), 0xFF);
	ck_assert_uint_eq(members_node(UINT64_C(0xFF) << 15), 0);
	ck_assert_uint_eq(members_node(0x7FFF), 0x7FFF);
	ck_assert_uint_eq(members_listener(0x7FFF), 0);
	ck_assert_uint_eq(members_start_time(0x7FFFFF), 1735689600);
	ck_assert_uint_eq(
	    members_start_time(UINT64_MAX), 1735689600 + (UINT64_MAX >> 23));
	/* The published example. */
	ck_assert_uint_eq(members_start_time(1015809), 1735689600);
	ck_assert_uint_eq(members_listener(1015809), 31);
	ck_assert_uint_eq(members_node(1015809), 1);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("members");
	TCase *tc = tcase_create("members");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, ordered_oldest_first_by_plain_id);
	tcase_add_test(tc, nothing_makes_an_empty_snapshot);
	tcase_add_test(tc, one_server_in_two_records_is_merged);
	tcase_add_test(tc, merging_stops_at_the_most_addresses);
	tcase_add_test(tc, ports_and_scopes_tell_addresses_apart);
	tcase_add_test(tc, a_target_without_addresses_keeps_the_old_ones);
	tcase_add_test(tc, fresh_addresses_replace_the_old_ones);
	tcase_add_test(tc, over_the_cap_the_oldest_stay);
	tcase_add_test(tc, references_keep_a_snapshot);
	tcase_add_test(tc, equal_whatever_the_order_of_addresses);
	tcase_add_test(tc, an_address_more_or_less_is_a_change);
	tcase_add_loop_test(
	    tc, labels_parse_strictly, 0, sizeof(labels) / sizeof(labels[0]));
	tcase_add_test(tc, a_label_ends_with_its_length);
	tcase_add_test(tc, an_id_has_three_parts);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
