/* The codec and the cipher of the project, before the clock starts. */
#include "tests/bench/presealed.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "proto/err.h"
#include "proto/nonce.h"
#include "proto/packet.h"
#include "proto/pdu.h"
#include "proto/random.h"
#include "proto/reader.h"
#include "proto/writer.h"
#include "tests/bench/lab.h"

/* In the tenant TLV, see proto/packet.c. */
#define SERVER_ID_AT 4
#define UNIQUE_ID_AT 12

static int
encode(const struct key *key, uint8_t pdu[PACKET_MAX], size_t *len)
{
	static const char name[] = LAB_BUCKET "k000";
	static struct pdu_rate rate;
	struct pdu_resource *resource = &rate.resources[0];
	struct id_hash *hash = id_hash_new();
	int rc = RLA_ECRYPTO;

	rate.dedup_ttl_ms = LAB_TTL_MS;
	rate.resource_count = 1;
	resource->window_ms = LAB_WINDOW_MS;
	resource->limit = LAB_LIMIT;
	resource->tokens = 1;
	if (hash != NULL)
		rc = id_bucket(hash, name, sizeof(name) - 1, LAB_WINDOW_MS,
		    LAB_LIMIT, resource->id);
	id_hash_free(hash);
	if (rc == 0)
		rc = pdu_encode_request(
		    key->profile, &rate, pdu, PACKET_MAX, len);
	return rc;
}

static int
seal_all(struct presealed *p, const struct key *key, struct random_pool *random,
    const uint8_t *pdu, size_t pdu_len)
{
	struct packet_head head = {.key_id = key->cred.key_id,
	    .time_stamp = (uint64_t)time(NULL) * 1000};
	uint8_t nonce[NONCE_LEN];
	struct writer w;
	size_t len;
	uint32_t i;
	int rc = 0;

	for (i = 0; i < p->count && rc == 0; i++) {
		rc = random_uuid(random, head.unique_id);
		writer_init(&w, head.unique_id, 4);
		writer_u32(&w, i);
		if (rc == 0)
			rc = nonce_next(key->nonce, nonce);
		if (rc == 0)
			rc = packet_seal(key->packet, &head, nonce, pdu,
			    pdu_len, p->bytes + i * p->len, p->len, &len);
	}
	return rc;
}

int
presealed_make(struct presealed *p, const struct key *key, uint32_t count)
{
	struct random_pool *random = random_pool_new();
	uint8_t pdu[PACKET_MAX];
	size_t pdu_len;
	int rc = random != NULL ? encode(key, pdu, &pdu_len) : RLA_ECRYPTO;

	if (rc == 0) {
		p->count = count;
		p->len = packet_overhead(key->cred.auth) + pdu_len;
		p->bytes = malloc(count * p->len);
		rc = p->bytes != NULL ? seal_all(p, key, random, pdu, pdu_len)
				      : RLA_ENOMEM;
	}
	random_pool_free(random);
	return rc;
}

void
presealed_free(struct presealed *p)
{
	free(p->bytes);
	p->bytes = NULL;
}

const uint8_t *
presealed_at(const struct presealed *p, uint32_t number)
{
	return p->bytes + number * p->len;
}

bool
presealed_match(const struct presealed *p, const uint8_t *datagram, size_t len,
    uint32_t *number, uint64_t *server_id)
{
	struct reader r;

	if (len < PACKET_TENANT_LEN)
		return false;
	reader_init(&r, datagram + SERVER_ID_AT, UNIQUE_ID_AT);
	*server_id = reader_u64(&r);
	*number = reader_u32(&r);
	return *number < p->count &&
	       memcmp(datagram + UNIQUE_ID_AT,
		   presealed_at(p, *number) + UNIQUE_ID_AT,
		   PACKET_UNIQUE_LEN) == 0;
}
