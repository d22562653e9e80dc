/*
 * The cryptography that one decision cannot do without, and nothing else, with
 * contexts that are warm: the project's own codec, in this process.
 */
#ifndef TESTS_BENCH_CRYPTO_H
#define TESTS_BENCH_CRYPTO_H

#include "proto/credential.h"

struct crypto;

/* Processor time of each, in microseconds. */
struct crypto_costs {
	double id;   /* of a bucket */
	double seal; /* a request, with its nonce */
	double open; /* a response */
};

/* NULL, having said why. */
struct crypto *crypto_open(const struct credential *cred);
void crypto_close(struct crypto *c); /* takes NULL */
/* The means of that many. 0, or -1 having said why. */
int crypto_measure(
    struct crypto *c, unsigned times, struct crypto_costs *costs);

#endif
