/*
 * Nonces never repeat: not in a run, over the wrap of the counter, after a
 * fork on either side of it, nor in the next generator.
 */
#include "proto/nonce.h"

#include <string.h>
#include <sys/wait.h>

#include "tests/unit/harness.h"

#define PREFIX_LEN 8

static struct nonce *gen;

static void
set_up(void)
{
	gen = nonce_new();
	ck_assert_ptr_nonnull(gen);
}

static void
tear_down(void)
{
	nonce_free(gen);
}

static uint32_t
next(uint8_t prefix[PREFIX_LEN])
{
	uint8_t n[NONCE_LEN + 1];

	n[NONCE_LEN] = 0xaa;
	ck_assert_int_eq(nonce_next(gen, n), 0);
	ck_assert_uint_eq(n[NONCE_LEN], 0xaa);
	memcpy(prefix, n, PREFIX_LEN);
	return (uint32_t)n[8] | (uint32_t)n[9] << 8 | (uint32_t)n[10] << 16 |
	       (uint32_t)n[11] << 24;
}

START_TEST(counts_under_one_prefix)
{
	uint8_t first[PREFIX_LEN], p[PREFIX_LEN];
	uint32_t i;

	ck_assert_uint_eq(next(first), 0);
	for (i = 1; i < 100000; i++) {
		ck_assert_uint_eq(next(p), i);
		ck_assert_mem_eq(p, first, PREFIX_LEN);
	}
}
END_TEST

START_TEST(new_prefix_at_the_wrap)
{
	uint8_t first[PREFIX_LEN], p[PREFIX_LEN], q[PREFIX_LEN];

	next(first);
	nonce_seek(gen, UINT32_MAX - 1);
	ck_assert_uint_eq(next(p), UINT32_MAX - 1);
	ck_assert_mem_eq(p, first, PREFIX_LEN);
	ck_assert_uint_eq(next(p), UINT32_MAX);
	ck_assert_mem_eq(p, first, PREFIX_LEN);
	/* The counter starts again, but under a prefix of its own. */
	ck_assert_uint_eq(next(p), 0);
	ck_assert_mem_ne(p, first, PREFIX_LEN);
	ck_assert_uint_eq(next(q), 1);
	ck_assert_mem_eq(q, p, PREFIX_LEN);
	/* And so at every wrap. */
	nonce_seek(gen, UINT32_MAX);
	ck_assert_uint_eq(next(q), UINT32_MAX);
	ck_assert_mem_eq(q, p, PREFIX_LEN);
	ck_assert_uint_eq(next(q), 0);
	ck_assert_mem_ne(q, p, PREFIX_LEN);
	ck_assert_mem_ne(q, first, PREFIX_LEN);
}
END_TEST

START_TEST(generators_differ)
{
	enum { GENERATORS = 64 };
	uint8_t seen[GENERATORS][PREFIX_LEN];
	int i, j;

	for (i = 0; i < GENERATORS; i++) {
		nonce_free(gen);
		gen = nonce_new();
		ck_assert_ptr_nonnull(gen);
		ck_assert_uint_eq(next(seen[i]), 0);
		for (j = 0; j < i; j++)
			ck_assert_mem_ne(seen[i], seen[j], PREFIX_LEN);
	}
}
END_TEST

/* Forks once more, then both write their first two nonces. Never returns. */
static void
child(int fd)
{
	uint8_t n[2 * NONCE_LEN];
	pid_t pid = fork();

	if (pid < 0 || (pid > 0 && waitpid(pid, NULL, 0) != pid))
		_exit(1);
	if (nonce_next(gen, n) != 0 || nonce_next(gen, n + NONCE_LEN) != 0)
		_exit(1);
	if (write(fd, n, sizeof n) != (ssize_t)sizeof n)
		_exit(1);
	_exit(0);
}

START_TEST(fork_draws_afresh)
{
	uint8_t parent[PREFIX_LEN], p[PREFIX_LEN];
	uint8_t got[2][2 * NONCE_LEN];
	int fds[2], status;
	pid_t pid;

	next(parent);
	next(parent);
	ck_assert_int_eq(pipe(fds), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		child(fds[1]);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(read(fds[0], got, sizeof got), sizeof got);
	/* Child and grandchild: prefixes of their own, counted from 0. */
	ck_assert_mem_ne(got[0], parent, PREFIX_LEN);
	ck_assert_mem_ne(got[1], parent, PREFIX_LEN);
	ck_assert_mem_ne(got[0], got[1], PREFIX_LEN);
	ck_assert_mem_eq(got[0] + 8, "\0\0\0\0", 4);
	ck_assert_mem_eq(got[0] + NONCE_LEN, got[0], PREFIX_LEN);
	ck_assert_mem_eq(got[0] + NONCE_LEN + 8, "\1\0\0\0", 4);
	/* The parent goes on where it was. */
	ck_assert_uint_eq(next(p), 2);
	ck_assert_mem_eq(p, parent, PREFIX_LEN);
	close(fds[0]);
	close(fds[1]);
}
END_TEST

START_TEST(free_takes_null)
{
	nonce_free(NULL);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("nonce");
	TCase *tc = tcase_create("nonce");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_test(tc, counts_under_one_prefix);
	tcase_add_test(tc, new_prefix_at_the_wrap);
	tcase_add_test(tc, generators_differ);
	tcase_add_test(tc, fork_draws_afresh);
	tcase_add_test(tc, free_takes_null);
	suite_add_tcase(s, tc);
	return harness_run(s);
}
