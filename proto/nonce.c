/*
 * The nonce generator of one key. A nonce is
 *
 *   0  prefix, random  8
 *   8  counter         4
 *
 * Invariant: a pair of prefix and counter is handed out once. next counts in
 * 64 bits, so the last counter of a prefix cannot be mistaken for its first.
 * Zeroed memory is a generator without a prefix: that is how a forked child
 * sees it.
 *
 * Prefixes come from the kernel, for the reason that random.h gives.
 */
#include "proto/nonce.h"

#include <assert.h>
#include <stdbool.h>

#include "proto/err.h"
#include "proto/forkpage.h"
#include "proto/random.h"
#include "proto/writer.h"

#define PREFIX_LEN 8

struct nonce {
	bool drawn;
	uint64_t next;
	uint8_t prefix[PREFIX_LEN];
};

static int
draw_prefix(struct nonce *n)
{
	n->drawn = false;
	if (random_fresh(n->prefix, PREFIX_LEN) != 0)
		return RLA_ECRYPTO;
	n->next = 0;
	n->drawn = true;
	return 0;
}

struct nonce *
nonce_new(void)
{
	struct nonce *n = forkpage_new(sizeof *n);

	if (n != NULL && draw_prefix(n) != 0) {
		nonce_free(n);
		return NULL;
	}
	return n;
}

void
nonce_free(struct nonce *n)
{
	forkpage_free(n, sizeof *n);
}

int
nonce_next(struct nonce *n, uint8_t out[NONCE_LEN])
{
	struct writer w;

	if ((!n->drawn || n->next > UINT32_MAX) && draw_prefix(n) != 0)
		return RLA_ECRYPTO;
	writer_init(&w, out, NONCE_LEN);
	writer_bytes(&w, n->prefix, PREFIX_LEN);
	writer_u32(&w, (uint32_t)n->next++);
	return 0;
}

void
nonce_seek(struct nonce *n, uint32_t counter)
{
	/* Going back would hand out a nonce twice. */
	assert(counter >= n->next);
	n->next = counter;
}
