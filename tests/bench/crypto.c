/* One request and its answer, done again and again. */
#include "tests/bench/crypto.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "proto/id.h"
#include "proto/nonce.h"
#include "proto/packet.h"
#include "proto/pdu.h"
#include "proto/random.h"
#include "tests/bench/lab.h"

#define BUCKET LAB_BUCKET "k000"

struct crypto {
	enum profile profile;
	struct packet_key *key;
	struct nonce *nonce;
	struct id_hash *hash;
	struct packet_head head;
	struct pdu_rate request;
	uint8_t pdu[PACKET_MAX]; /* of the request, in clear text */
	size_t pdu_len;
	uint8_t answer[PACKET_MAX]; /* sealed */
	size_t answer_len;
	uint8_t bytes[PACKET_MAX];
};

static int
bucket_id(struct crypto *c, uint8_t out[ID_LEN])
{
	return id_bucket(
	    c->hash, BUCKET, sizeof(BUCKET) - 1, LAB_WINDOW_MS, LAB_LIMIT, out);
}

static int
seal(struct crypto *c, const uint8_t *pdu, size_t pdu_len, uint8_t *out,
    size_t *len)
{
	uint8_t nonce[NONCE_LEN];

	if (nonce_next(c->nonce, nonce) != 0)
		return -1;
	return packet_seal(
	    c->key, &c->head, nonce, pdu, pdu_len, out, PACKET_MAX, len);
}

/* The request in clear text, and its answer as a server would seal it. */
static int
prepare(struct crypto *c)
{
	uint8_t pdu[PACKET_MAX];
	size_t len;

	c->request.dedup_ttl_ms = LAB_TTL_MS;
	c->request.resource_count = 1;
	c->request.resources[0].window_ms = LAB_WINDOW_MS;
	c->request.resources[0].limit = LAB_LIMIT;
	c->request.resources[0].tokens = 1;
	if (random_fresh(c->head.unique_id, sizeof(c->head.unique_id)) != 0 ||
	    bucket_id(c, c->request.resources[0].id) != 0 ||
	    pdu_encode_request(c->profile, &c->request, c->pdu, PACKET_MAX,
		&c->pdu_len) != 0 ||
	    pdu_encode_response(
		c->profile, &c->request, pdu, sizeof(pdu), &len) != 0)
		return -1;
	return seal(c, pdu, len, c->answer, &c->answer_len);
}

struct crypto *
crypto_open(const struct credential *cred)
{
	struct crypto *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->profile = credential_profile(cred);
	c->head.key_id = cred->key_id;
	c->key = packet_key_new(cred);
	c->nonce = nonce_new();
	c->hash = id_hash_new();
	if (c->key != NULL && c->nonce != NULL && c->hash != NULL &&
	    prepare(c) == 0)
		return c;
	crypto_close(c);
	errno = 0;
	lab_fail("the cryptography fails");
	return NULL;
}

void
crypto_close(struct crypto *c)
{
	if (c == NULL)
		return;
	id_hash_free(c->hash);
	nonce_free(c->nonce);
	packet_key_free(c->key);
	free(c);
}

static int
do_id(struct crypto *c)
{
	return bucket_id(c, c->bytes);
}

static int
do_seal(struct crypto *c)
{
	size_t len;

	return seal(c, c->pdu, c->pdu_len, c->bytes, &len);
}

static int
do_open(struct crypto *c)
{
	struct packet_view view;
	const uint8_t *pdu;
	size_t len;

	if (packet_peek(c->answer, c->answer_len, &view) != 0)
		return -1;
	return packet_open(
	    c->key, &view, c->bytes, sizeof(c->bytes), &pdu, &len);
}

static double
thread_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static int
measure(
    struct crypto *c, int (*once)(struct crypto *c), unsigned times, double *us)
{
	double start = thread_us();
	int bad = 0;

	for (unsigned i = 0; i < times; i++)
		bad |= once(c);
	*us = (thread_us() - start) / times;
	errno = 0;
	return bad == 0 ? 0 : lab_fail("the cryptography fails");
}

int
crypto_measure(struct crypto *c, unsigned times, struct crypto_costs *costs)
{
	if (measure(c, do_id, times, &costs->id) != 0 ||
	    measure(c, do_seal, times, &costs->seal) != 0 ||
	    measure(c, do_open, times, &costs->open) != 0)
		return -1;
	return 0;
}
