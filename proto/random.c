/*
 * A pool of random bytes, refilled in bulk. Each byte is handed out once and
 * wiped from the pool. The pool's memory is zeroed in a forked child, so that
 * left is 0 there and the child draws its own bytes: a request id that parent
 * and child share would be deduplicated into one request.
 */
#include "proto/random.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <string.h>
#include <sys/random.h>

#include "proto/err.h"
#include "proto/forkpage.h"

#define POOL_LEN 2048

struct random_pool {
	size_t left; /* the last left bytes are fresh */
	uint8_t bytes[POOL_LEN];
};

struct random_pool *
random_pool_new(void)
{
	return forkpage_new(sizeof(struct random_pool));
}

void
random_pool_free(struct random_pool *pool)
{
	forkpage_free(pool, sizeof *pool);
}

/* More than 256 bytes may come in parts. */
int
random_fresh(void *out, size_t len)
{
	uint8_t *at = out;
	ssize_t n;

	while (len > 0) {
		n = getrandom(at, len, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return RLA_ECRYPTO;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

int
random_bytes(struct random_pool *pool, void *out, size_t len)
{
	uint8_t *fresh;

	if (len > POOL_LEN)
		return random_fresh(out, len);
	if (len > pool->left) {
		pool->left = 0;
		if (random_fresh(pool->bytes, POOL_LEN) != 0)
			return RLA_ECRYPTO;
		pool->left = POOL_LEN;
	}
	if (len == 0)
		return 0;
	fresh = pool->bytes + POOL_LEN - pool->left;
	memcpy(out, fresh, len);
	OPENSSL_cleanse(fresh, len);
	pool->left -= len;
	return 0;
}

int
random_uuid(struct random_pool *pool, uint8_t out[16])
{
	int rc = random_bytes(pool, out, 16);

	if (rc != 0)
		return rc;
	out[6] = (uint8_t)((out[6] & 0x0f) | 0x40); /* version 4 */
	out[8] = (uint8_t)((out[8] & 0x3f) | 0x80); /* variant 10 */
	return 0;
}
