/* The pool: fresh bytes over refills and forks, UUIDv4 bits, exact lengths. */
#include "proto/random.h"

#include <string.h>
#include <sys/wait.h>

#include "tests/unit/harness.h"

#define UUID_LEN 16

static struct random_pool *pool;

static void
set_up(void)
{
	pool = random_pool_new();
	ck_assert_ptr_nonnull(pool);
}

static void
tear_down(void)
{
	random_pool_free(pool);
}

static int
by_bytes(const void *a, const void *b)
{
	return memcmp(a, b, UUID_LEN);
}

/* Far more than a pool holds, so refills are crossed many times. */
START_TEST(uuids_are_unique)
{
	enum { COUNT = 50000 };
	uint8_t(*ids)[UUID_LEN] = calloc(COUNT, UUID_LEN);
	int i;

	ck_assert_ptr_nonnull(ids);
	for (i = 0; i < COUNT; i++) {
		ck_assert_int_eq(random_uuid(pool, ids[i]), 0);
		ck_assert_uint_eq(ids[i][6] >> 4, 4);
		ck_assert_uint_eq(ids[i][8] >> 6, 2);
	}
	qsort(ids, COUNT, UUID_LEN, by_bytes);
	for (i = 1; i < COUNT; i++)
		ck_assert_mem_ne(ids[i - 1], ids[i], UUID_LEN);
	free(ids);
}
END_TEST

/* Every length around the refill: filled to its end, not past it. */
START_TEST(lengths)
{
	enum { MOST = 5000 };
	static uint8_t buf[MOST + 1], zeros[64];
	size_t len;

	for (len = 0; len <= MOST; len += len < 70 ? 1 : 173) {
		memset(buf, 0, sizeof buf);
		ck_assert_int_eq(random_bytes(pool, buf, len), 0);
		ck_assert_uint_eq(buf[len], 0);
		/* Sixteen zeros in a row have odds of 2^-128. */
		if (len >= 16) {
			ck_assert_mem_ne(buf, zeros, 16);
			ck_assert_mem_ne(buf + len - 16, zeros, 16);
		}
	}
}
END_TEST

/* Each bit of a UUID but the fixed six is near one half. */
START_TEST(bits_are_balanced)
{
	enum { COUNT = 20000 };
	int ones[128] = {0}, i, bit;
	uint8_t id[UUID_LEN];

	for (i = 0; i < COUNT; i++) {
		ck_assert_int_eq(random_uuid(pool, id), 0);
		for (bit = 0; bit < 128; bit++)
			ones[bit] += id[bit / 8] >> bit % 8 & 1;
	}
	for (bit = 0; bit < 128; bit++) {
		bool fixed = (bit / 8 == 6 && bit % 8 >= 4) ||
			     (bit / 8 == 8 && bit % 8 >= 6);

		/* Ten standard deviations: sqrt(COUNT) / 2 is 71. */
		if (!fixed)
			ck_assert_msg(abs(ones[bit] - COUNT / 2) < 710,
			    "bit %d was set %d times", bit, ones[bit]);
	}
}
END_TEST

START_TEST(fork_draws_afresh)
{
	uint8_t ours[UUID_LEN], theirs[UUID_LEN];
	int fds[2], status;
	pid_t pid;

	/* There are fresh bytes in the pool when the child is made. */
	ck_assert_int_eq(random_uuid(pool, ours), 0);
	ck_assert_int_eq(pipe(fds), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		if (random_uuid(pool, theirs) != 0 ||
		    write(fds[1], theirs, UUID_LEN) != UUID_LEN)
			_exit(1);
		_exit(0);
	}
	ck_assert_int_eq(random_uuid(pool, ours), 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(read(fds[0], theirs, UUID_LEN), UUID_LEN);
	ck_assert_mem_ne(ours, theirs, UUID_LEN);
	close(fds[0]);
	close(fds[1]);
}
END_TEST

START_TEST(free_takes_null)
{
	random_pool_free(NULL);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("random");
	TCase *tc = tcase_create("random");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_test(tc, uuids_are_unique);
	tcase_add_test(tc, lengths);
	tcase_add_test(tc, bits_are_balanced);
	tcase_add_test(tc, fork_draws_afresh);
	tcase_add_test(tc, free_takes_null);
	suite_add_tcase(s, tc);
	return harness_run(s);
}
