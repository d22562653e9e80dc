/* Remembered answers: their time, their cap, reservations. */
#include "sandbox/dedup.h"

#include <string.h>

#include "tests/unit/harness.h"

static const uint8_t *
id_of(uint32_t n)
{
	static uint8_t id[16];

	memcpy(id, &n, sizeof n);
	return id;
}

static void
remember(
    struct dedup *d, uint32_t n, int64_t now, uint32_t ttl, const char *text)
{
	struct dedup_entry *e;

	e = dedup_reserve(d, id_of(n), strlen(text));
	ck_assert_ptr_nonnull(e);
	dedup_commit(d, e, now, ttl, (const uint8_t *)text, strlen(text), true);
}

START_TEST(remembers_the_answer_for_its_ttl)
{
	const struct dedup_entry *e;
	struct dedup d;

	dedup_init(&d, 10, 1);
	ck_assert_ptr_null(dedup_find(&d, 0, id_of(1)));
	remember(&d, 1, 1000, 60, "answer");
	e = dedup_find(&d, 1059, id_of(1));
	ck_assert_ptr_nonnull(e);
	ck_assert_uint_eq(e->len, 6);
	ck_assert_mem_eq(e->pdu, "answer", 6);
	ck_assert(e->allowed);
	ck_assert_ptr_null(dedup_find(&d, 1059, id_of(2)));
	/* At its deadline a client may not send any more. */
	ck_assert_ptr_null(dedup_find(&d, 1060, id_of(1)));
	ck_assert_uint_eq(d.map.count, 0);
	dedup_fini(&d);
}
END_TEST

START_TEST(a_hit_does_not_prolong_it)
{
	struct dedup d;

	dedup_init(&d, 10, 1);
	remember(&d, 1, 0, 100, "a");
	ck_assert_ptr_nonnull(dedup_find(&d, 99, id_of(1)));
	ck_assert_ptr_null(dedup_find(&d, 100, id_of(1)));
	remember(&d, 1, 100, 100, "b");
	ck_assert_int_eq(dedup_find(&d, 199, id_of(1))->pdu[0], 'b');
	dedup_fini(&d);
}
END_TEST

START_TEST(full_means_no_place_never_a_lost_answer)
{
	struct dedup_entry *e;
	struct dedup d;

	dedup_init(&d, 2, 1);
	remember(&d, 1, 0, 100, "a");
	e = dedup_reserve(&d, id_of(2), 1);
	ck_assert_ptr_nonnull(e);
	ck_assert_ptr_null(dedup_reserve(&d, id_of(3), 1));
	ck_assert_ptr_nonnull(dedup_find(&d, 99, id_of(1)));
	dedup_abandon(&d, e);
	ck_assert_ptr_null(dedup_find(&d, 99, id_of(2)));
	remember(&d, 3, 99, 100, "c");
	ck_assert_ptr_null(dedup_reserve(&d, id_of(4), 1));
	dedup_reap(&d, 100); /* the first one goes */
	remember(&d, 4, 100, 100, "d");
	ck_assert_ptr_nonnull(dedup_find(&d, 198, id_of(3)));
	dedup_fini(&d);
}
END_TEST

START_TEST(a_reservation_does_not_expire)
{
	struct dedup_entry *e;
	struct dedup d;

	dedup_init(&d, 2, 1);
	e = dedup_reserve(&d, id_of(1), 4);
	dedup_reap(&d, INT64_MAX - 1);
	dedup_commit(&d, e, 5, UINT32_MAX, (const uint8_t *)"x", 1, false);
	ck_assert(!dedup_find(&d, 4000000000, id_of(1))->allowed);
	dedup_abandon(&d, NULL);
	dedup_fini(&d);
}
END_TEST

START_TEST(thousands_come_and_go)
{
	struct dedup d;
	uint32_t i;

	dedup_init(&d, 1000, 1);
	for (i = 0; i < 20000; i++) {
		ck_assert_ptr_null(dedup_find(&d, i, id_of(i)));
		remember(&d, i, i, 900, "some answer");
		ck_assert_uint_le(d.map.count, 900);
	}
	ck_assert_ptr_nonnull(dedup_find(&d, i, id_of(i - 899)));
	ck_assert_ptr_null(dedup_find(&d, i, id_of(i - 900)));
	dedup_fini(&d);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("sandbox_dedup");
	TCase *tc = tcase_create("dedup");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, remembers_the_answer_for_its_ttl);
	tcase_add_test(tc, a_hit_does_not_prolong_it);
	tcase_add_test(tc, full_means_no_place_never_a_lost_answer);
	tcase_add_test(tc, a_reservation_does_not_expire);
	tcase_add_test(tc, thousands_come_and_go);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
