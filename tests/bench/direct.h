/*
 * The floor: a client linked into the application, which speaks the server's
 * protocol itself, with the project's own codec, and does nothing else: no
 * replay, no failure policy, no discovery, no sharing of the key.
 */
#ifndef TESTS_BENCH_DIRECT_H
#define TESTS_BENCH_DIRECT_H

#include "tests/bench/lab.h"

struct direct;

/* NULL, having said why. */
struct direct *direct_open(
    const struct credential *cred, const struct lab_sandbox *sandbox);
void direct_close(struct direct *d); /* takes NULL */
/* One check of key number n, to its answer. 0 when allowed, else -1. */
int direct_check(struct direct *d, unsigned n);
/*
 * The processor time of the cryptography of one decision, and of nothing
 * else: one id, one seal, one open; the mean of that many.
 */
int direct_crypto(struct direct *d, unsigned times, double *us);

#endif
