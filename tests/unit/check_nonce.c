/*
 * Nonces never repeat: not in a run, over the wrap of the counter, after a
 * fork on either side of it, nor in the next generator. A fork is any way to
 * copy a process: with the C library or behind its back, with the pid that
 * tells copies apart or without. Randomness is judged by duplicates alone.
 */
#include "proto/nonce.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
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

/*
 * Nonces of several processes, in memory that they share. Each process draws
 * into a part of its own.
 */
#define MANY_MAX 65536

struct many {
	_Atomic uint32_t count;
	uint8_t list[MANY_MAX][NONCE_LEN];
};

static struct many *
many_new(void)
{
	struct many *m = mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	ck_assert(m != MAP_FAILED);
	return m;
}

/* Called by children, too: no assertions. */
static void
many_draw(struct many *m, uint32_t n)
{
	uint32_t at = m->count;

	for (uint32_t i = 0; i < n; i++) {
		if (at + i >= MANY_MAX || nonce_next(gen, m->list[at + i]) != 0)
			_exit(1);
	}
	m->count = at + n;
}

static int
compare(const void *a, const void *b)
{
	return memcmp(a, b, NONCE_LEN);
}

static void
many_differ(struct many *m, uint32_t expected)
{
	ck_assert_uint_eq(m->count, expected);
	qsort(m->list, m->count, NONCE_LEN, compare);
	for (uint32_t i = 1; i < m->count; i++)
		ck_assert_mem_ne(m->list[i - 1], m->list[i], NONCE_LEN);
	munmap(m, sizeof(*m));
}

static void
end_of(pid_t pid)
{
	int status = -1;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

/* Another process of the family; it goes on like its parent, a level deeper.
 * One is at work at a time. */
static void
family(struct many *m, uint64_t *seed, int depth)
{
	int status;
	pid_t pid;

	if (harness_below(seed, 3) == 0) { /* draws over the wrap */
		many_draw(m, 1); /* a child has no counter before its first */
		nonce_seek(gen, UINT32_MAX - harness_below(seed, 40));
		many_draw(m, 79);
	} else {
		many_draw(m, 80);
	}
	for (int i = 0; i < 2 && depth > 0; i++) {
		harness_random(seed);
		pid = fork();
		if (pid == 0) {
			family(m, seed, depth - 1);
			_exit(0);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
			_exit(1);
		many_draw(m, 20);
	}
}

/* 63 processes, each begun from what its parent had drawn so far. */
START_TEST(family_of_forks)
{
	uint64_t seed = harness_seed();
	struct many *m = many_new();
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		family(m, &seed, 5);
		_exit(0);
	}
	end_of(pid);
	many_draw(m, 100);
	many_differ(m, 63 * 80 + 62 * 20 + 100);
}
END_TEST

/* Behind the C library: no handler of pthread_atfork() runs. */
static pid_t
bare_clone(unsigned long flags)
{
	return (pid_t)syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
}

static void
bare_child(struct many *m, unsigned long flags)
{
	pid_t pid = bare_clone(flags);

	if (pid == 0) {
		many_draw(m, 100);
		_exit(0);
	}
	ck_assert_int_gt(pid, 0);
	end_of(pid);
}

START_TEST(clone_without_handlers)
{
	struct many *m = many_new();

	many_draw(m, 100);
	for (int i = 0; i < 20; i++) {
		bare_child(m, 0);
		many_draw(m, 10);
	}
	many_differ(m, 100 + 20 * 110);
}
END_TEST

static int
draw_shared(void *m)
{
	many_draw(m, 100);
	return 0;
}

/* As vfork() has it, the memory is one: then the counter goes on in both. */
START_TEST(shared_memory)
{
	static uint8_t stack[256 * 1024] __attribute__((aligned(64)));
	struct many *m = many_new();
	uint8_t first[PREFIX_LEN], p[PREFIX_LEN];
	uint32_t at = next(first);
	pid_t pid = clone(draw_shared, stack + sizeof(stack),
	    CLONE_VM | CLONE_VFORK | SIGCHLD, m);

	ck_assert_int_gt(pid, 0);
	end_of(pid);
	ck_assert_uint_eq(next(p), at + 101);
	ck_assert_mem_eq(p, first, PREFIX_LEN);
	many_draw(m, 100);
	many_differ(m, 200);
}
END_TEST

/*
 * Both children and their parent are number 1, each of a pid namespace, so
 * nothing that looks at the process id sees a difference.
 */
static void
namespaces(struct many *m)
{
	int status;

	many_draw(m, 1);
	for (int i = 0; i < 2; i++) {
		pid_t pid = bare_clone(CLONE_NEWPID);

		if (pid == 0) {
			many_draw(m, 100);
			_exit(0);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
			_exit(1);
	}
	many_draw(m, 100);
	_exit(0);
}

START_TEST(same_pid_in_namespaces)
{
	struct many *m = many_new();
	int status = -1;
	pid_t pid = bare_clone(CLONE_NEWUSER | CLONE_NEWPID);

	if (pid < 0 && (errno == EPERM || errno == ENOSPC || errno == EINVAL)) {
		printf("# no pid namespaces here: %s\n", strerror(errno));
		munmap(m, sizeof(*m));
		return;
	}
	if (pid == 0)
		namespaces(m);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	many_draw(m, 100);
	many_differ(m, 401);
}
END_TEST

/* Two keys, or one key twice, are two generators: nothing is shared. */
START_TEST(generators_at_once)
{
	enum { GENERATORS = 32 };
	struct nonce *all[GENERATORS];
	struct many *m = many_new();

	for (int i = 0; i < GENERATORS; i++) {
		all[i] = nonce_new();
		ck_assert_ptr_nonnull(all[i]);
	}
	for (int i = 0; i < 100 * GENERATORS; i++) {
		ck_assert_int_eq(
		    nonce_next(all[i % GENERATORS], m->list[m->count]), 0);
		m->count++;
	}
	for (int i = 0; i < GENERATORS; i++)
		nonce_free(all[i]);
	many_differ(m, 100 * GENERATORS);
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
	tcase_add_test(tc, generators_at_once);
	tcase_add_test(tc, fork_draws_afresh);
	tcase_add_test(tc, family_of_forks);
	tcase_add_test(tc, clone_without_handlers);
	tcase_add_test(tc, shared_memory);
	tcase_add_test(tc, same_pid_in_namespaces);
	tcase_add_test(tc, free_takes_null);
	suite_add_tcase(s, tc);
	return harness_run(s);
}
