/*
 * daemon/io/bufs: what is given back comes out again, and no more is kept
 * than the cap says.
 */
#include "daemon/io/bufs.h"

#include <string.h>

#include "tests/unit/harness.h"

#define SIZE 16384

START_TEST(what_is_given_back_is_used_again)
{
	struct bufs bufs;
	void *a, *b;

	bufs_init(&bufs, SIZE, 4);
	a = bufs_get(&bufs);
	b = bufs_get(&bufs);
	ck_assert_ptr_nonnull(a);
	ck_assert_ptr_nonnull(b);
	ck_assert_ptr_ne(a, b);
	memset(a, 1, SIZE);
	memset(b, 2, SIZE);
	bufs_put(&bufs, a);
	bufs_put(&bufs, b);
	bufs_put(&bufs, NULL);
	ck_assert_uint_eq(bufs.unused, 2);
	ck_assert_ptr_eq(bufs_get(&bufs), b);
	ck_assert_ptr_eq(bufs_get(&bufs), a);
	ck_assert_uint_eq(bufs.unused, 0);
	bufs_put(&bufs, a);
	bufs_put(&bufs, b);
	bufs_fini(&bufs);
	ck_assert_uint_eq(bufs.unused, 0);
	bufs_fini(&bufs);
}
END_TEST

START_TEST(the_cap_holds)
{
	struct bufs bufs;
	void *all[100];

	bufs_init(&bufs, SIZE, 4);
	for (int i = 0; i < 100; i++) {
		all[i] = bufs_get(&bufs);
		ck_assert_ptr_nonnull(all[i]);
	}
	for (int i = 0; i < 100; i++)
		bufs_put(&bufs, all[i]);
	ck_assert_uint_eq(bufs.unused, 4);
	for (int i = 3; i >= 0; i--) /* the first four that came back */
		ck_assert_ptr_eq(bufs_get(&bufs), all[i]);
	for (int i = 0; i < 4; i++)
		bufs_put(&bufs, all[i]);
	bufs_fini(&bufs); /* the sanitizer counts the other 96 */
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("bufs");
	TCase *tc = tcase_create("bufs");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, what_is_given_back_is_used_again);
	tcase_add_test(tc, the_cap_holds);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
