/*
 * Content-defined ids (r-client specification, section 5.2 to 5.4, and the two
 * profiles). What is hashed, in this order:
 *
 *   domain, with its NUL | name length u32 | name | settings, u32 each
 *
 *   ratelimitly.resource.v1         window_ms, limit
 *   ratelimitly.latency-tracker.v1  ttl_ms, max_samples, buffer_size,
 *                                   min_samples
 *   ratelimitly.latency-tracker.v2  ttl_ms, max_samples, min_samples
 *
 * One digest context is reused for every id.
 */
#include "proto/id.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "proto/blake2s.h"
#include "proto/err.h"
#include "proto/writer.h"

#define SETTINGS_MAX 4

struct id_hash {
	struct blake2s *digest;
};

/* A domain is an array so that sizeof counts its NUL, which is hashed. */
static const char bucket_domain[] = "ratelimitly.resource.v1";
static const char tracker_domain_v1[] = "ratelimitly.latency-tracker.v1";
static const char tracker_domain_v2[] = "ratelimitly.latency-tracker.v2";

struct id_hash *
id_hash_new(void)
{
	struct id_hash *h = calloc(1, sizeof *h);

	if (h == NULL)
		return NULL;
	h->digest = blake2s_new();
	if (h->digest == NULL) {
		id_hash_free(h);
		return NULL;
	}
	return h;
}

void
id_hash_free(struct id_hash *h)
{
	if (h == NULL)
		return;
	blake2s_free(h->digest);
	free(h);
}

static int
finish(struct id_hash *h, uint8_t out[ID_LEN])
{
	uint8_t digest[BLAKE2S_LEN];

	if (!blake2s_end(h->digest, digest))
		return RLA_ECRYPTO;
	memcpy(out, digest, ID_LEN);
	return 0;
}

static int
hash_named(struct id_hash *h, const char *domain, size_t domain_len,
    const void *name, size_t len, const uint32_t *settings, size_t count,
    uint8_t out[ID_LEN])
{
	uint8_t head[sizeof tracker_domain_v1 + 4], tail[4 * SETTINGS_MAX];
	struct writer w, v;
	size_t i;

	assert(len <= UINT32_MAX && count <= SETTINGS_MAX);
	writer_init(&w, head, sizeof head);
	writer_bytes(&w, domain, domain_len);
	writer_u32(&w, (uint32_t)len);
	writer_init(&v, tail, sizeof tail);
	for (i = 0; i < count; i++)
		writer_u32(&v, settings[i]);
	assert(writer_ok(&w) && writer_ok(&v));
	if (!blake2s_begin(h->digest) ||
	    !blake2s_update(h->digest, head, writer_len(&w)) ||
	    !blake2s_update(h->digest, name, len) ||
	    !blake2s_update(h->digest, tail, writer_len(&v)))
		return RLA_ECRYPTO;
	return finish(h, out);
}

int
id_bucket(struct id_hash *h, const void *name, size_t len, uint32_t window_ms,
    uint32_t limit, uint8_t out[ID_LEN])
{
	const uint32_t settings[] = {window_ms, limit};

	return hash_named(h, bucket_domain, sizeof bucket_domain, name, len,
	    settings, 2, out);
}

int
id_tracker(struct id_hash *h, enum profile profile, const void *name,
    size_t len, uint32_t ttl_ms, uint32_t max_samples, uint32_t buffer_size,
    uint32_t min_samples, uint8_t out[ID_LEN])
{
	const uint32_t v1[] = {ttl_ms, max_samples, buffer_size, min_samples};
	const uint32_t v2[] = {ttl_ms, max_samples, min_samples};

	switch (profile) {
	case PROFILE_V1:
		return hash_named(h, tracker_domain_v1,
		    sizeof tracker_domain_v1, name, len, v1, 4, out);
	case PROFILE_V2:
		return hash_named(h, tracker_domain_v2,
		    sizeof tracker_domain_v2, name, len, v2, 3, out);
	}
	return RLA_ECRYPTO;
}

int
id_digest(struct id_hash *h, const void *bytes, size_t len, uint8_t out[ID_LEN])
{
	if (!blake2s_begin(h->digest) || !blake2s_update(h->digest, bytes, len))
		return RLA_ECRYPTO;
	return finish(h, out);
}
