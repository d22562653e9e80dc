/*
 * See blake2s.h. struct blake2s owns the provider's context, and the fetched
 * digest, which keeps the provider.
 */
#include "proto/blake2s.h"

#include <openssl/core_dispatch.h>
#include <openssl/evp.h>
#include <openssl/provider.h>
#include <stdlib.h>

#include "proto/provider.h"

static const char name[] = "BLAKE2S-256";

struct blake2s {
	EVP_MD *md;
	void *ctx;
	OSSL_FUNC_digest_newctx_fn *new_ctx;
	OSSL_FUNC_digest_freectx_fn *free_ctx;
	OSSL_FUNC_digest_init_fn *init;
	OSSL_FUNC_digest_update_fn *update;
	OSSL_FUNC_digest_final_fn *final;
};

static void
take(void *arg, const OSSL_DISPATCH *f)
{
	struct blake2s *b = arg;

	switch (f->function_id) {
	case OSSL_FUNC_DIGEST_NEWCTX:
		b->new_ctx = OSSL_FUNC_digest_newctx(f);
		break;
	case OSSL_FUNC_DIGEST_FREECTX:
		b->free_ctx = OSSL_FUNC_digest_freectx(f);
		break;
	case OSSL_FUNC_DIGEST_INIT:
		b->init = OSSL_FUNC_digest_init(f);
		break;
	case OSSL_FUNC_DIGEST_UPDATE:
		b->update = OSSL_FUNC_digest_update(f);
		break;
	case OSSL_FUNC_DIGEST_FINAL:
		b->final = OSSL_FUNC_digest_final(f);
		break;
	}
}

static bool
find_functions(struct blake2s *b, const OSSL_PROVIDER *provider)
{
	provider_functions(provider, OSSL_OP_DIGEST, name, take, b);
	return b->new_ctx != NULL && b->free_ctx != NULL && b->init != NULL &&
	       b->update != NULL && b->final != NULL;
}

static bool
open_digest(struct blake2s *b)
{
	const OSSL_PROVIDER *provider;

	b->md = EVP_MD_fetch(NULL, name, NULL);
	if (b->md == NULL || EVP_MD_get_size(b->md) != BLAKE2S_LEN)
		return false;
	provider = EVP_MD_get0_provider(b->md);
	if (!find_functions(b, provider))
		return false;
	b->ctx = b->new_ctx(OSSL_PROVIDER_get0_provider_ctx(provider));
	return b->ctx != NULL;
}

struct blake2s *
blake2s_new(void)
{
	struct blake2s *b = calloc(1, sizeof *b);

	if (b != NULL && !open_digest(b)) {
		blake2s_free(b);
		return NULL;
	}
	return b;
}

void
blake2s_free(struct blake2s *b)
{
	if (b == NULL)
		return;
	if (b->ctx != NULL)
		b->free_ctx(b->ctx);
	EVP_MD_free(b->md);
	free(b);
}

bool
blake2s_begin(struct blake2s *b)
{
	return b->init(b->ctx, NULL) == 1;
}

bool
blake2s_update(struct blake2s *b, const void *bytes, size_t len)
{
	return len == 0 || b->update(b->ctx, bytes, len) == 1;
}

bool
blake2s_end(struct blake2s *b, uint8_t out[BLAKE2S_LEN])
{
	size_t len;

	return b->final(b->ctx, out, &len, BLAKE2S_LEN) == 1 &&
	       len == BLAKE2S_LEN;
}
