/*
 * What the unit and vector programs share: running a suite with TAP on
 * stdout, and reproducible random numbers for property tests. Tests only;
 * include it after the header under test.
 */
#ifndef TESTS_UNIT_HARNESS_H
#define TESTS_UNIT_HARNESS_H

#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <sys/random.h>

/* Runs and frees the suite; the exit status of main(). */
static inline int
harness_run(Suite *suite)
{
	SRunner *sr = srunner_create(suite);
	int failed;

	/* The TAP is the report; Check's own summary would mix with it. */
	setenv("CK_VERBOSITY", "silent", 0);
	srunner_set_tap(sr, "-");
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/*
 * The seed of a property test: TEST_SEED, else a fresh one. Printed as a TAP
 * remark, so that a failure can be run again.
 */
static inline uint64_t
harness_seed(void)
{
	const char *given = getenv("TEST_SEED");
	uint64_t seed = 0;

	if (given != NULL)
		seed = strtoull(given, NULL, 0);
	else if (getrandom(&seed, sizeof seed, 0) != sizeof seed)
		abort(); /* not ck_assert: main() may ask before any test */
	printf("# TEST_SEED=%llu\n", (unsigned long long)seed);
	fflush(stdout);
	return seed;
}

/* splitmix64 */
static inline uint64_t
harness_random(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* Uniform enough below n. */
static inline uint32_t
harness_below(uint64_t *state, uint32_t n)
{
	return (uint32_t)(harness_random(state) % n);
}

static inline void
harness_fill(uint64_t *state, void *out, size_t len)
{
	uint8_t *p = out;
	size_t i;

	for (i = 0; i < len; i++)
		p[i] = (uint8_t)harness_random(state);
}

#endif
