/*
 * Bytes choose a policy, who is suspected and the life of one operation; the
 * oracle predicts every step of it. Any disagreement is a crash.
 */
#include "tests/unit/policy_oracle.h"

#include <stdio.h>
#include <stdlib.h>

struct bytes {
	const uint8_t *at;
	size_t left;
};

/* Exhausted input picks zero for ever, so every input is a whole run. */
static uint32_t
pick_byte(void *arg, uint32_t bound)
{
	struct bytes *b = arg;
	uint32_t v = 0;

	for (uint32_t n = bound; n > 1 && b->left > 0; n >>= 8) {
		v = v << 8 | *b->at++;
		b->left--;
	}
	return v % bound;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes b = {.at = data, .left = size};
	const char *broken = oracle_run(pick_byte, &b, 40, NULL);

	if (broken != NULL) {
		fprintf(stderr, "policy: does not hold: %s\n", broken);
		abort();
	}
	return 0;
}
