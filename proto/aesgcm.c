/*
 * See aesgcm.h. struct aesgcm owns the provider's contexts, which hold the
 * key, and the fetched cipher, which keeps the provider.
 */
#include "proto/aesgcm.h"

#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/provider.h>
#include <stdlib.h>
#include <string.h>

#include "proto/provider.h"

static const char name[] = "AES-256-GCM";

struct aesgcm {
	EVP_CIPHER *cipher;
	void *seal;
	void *open;
	OSSL_FUNC_cipher_newctx_fn *new_ctx;
	OSSL_FUNC_cipher_freectx_fn *free_ctx;
	OSSL_FUNC_cipher_encrypt_init_fn *init_seal;
	OSSL_FUNC_cipher_decrypt_init_fn *init_open;
	OSSL_FUNC_cipher_update_fn *update;
	OSSL_FUNC_cipher_final_fn *final;
	OSSL_FUNC_cipher_get_ctx_params_fn *get_params;
};

static void
take(void *arg, const OSSL_DISPATCH *f)
{
	struct aesgcm *g = arg;

	switch (f->function_id) {
	case OSSL_FUNC_CIPHER_NEWCTX:
		g->new_ctx = OSSL_FUNC_cipher_newctx(f);
		break;
	case OSSL_FUNC_CIPHER_FREECTX:
		g->free_ctx = OSSL_FUNC_cipher_freectx(f);
		break;
	case OSSL_FUNC_CIPHER_ENCRYPT_INIT:
		g->init_seal = OSSL_FUNC_cipher_encrypt_init(f);
		break;
	case OSSL_FUNC_CIPHER_DECRYPT_INIT:
		g->init_open = OSSL_FUNC_cipher_decrypt_init(f);
		break;
	case OSSL_FUNC_CIPHER_UPDATE:
		g->update = OSSL_FUNC_cipher_update(f);
		break;
	case OSSL_FUNC_CIPHER_FINAL:
		g->final = OSSL_FUNC_cipher_final(f);
		break;
	case OSSL_FUNC_CIPHER_GET_CTX_PARAMS:
		g->get_params = OSSL_FUNC_cipher_get_ctx_params(f);
		break;
	}
}

static bool
find_functions(struct aesgcm *g, const OSSL_PROVIDER *provider)
{
	provider_functions(provider, OSSL_OP_CIPHER, name, take, g);
	return g->new_ctx != NULL && g->free_ctx != NULL &&
	       g->init_seal != NULL && g->init_open != NULL &&
	       g->update != NULL && g->final != NULL && g->get_params != NULL;
}

static bool
open_cipher(struct aesgcm *g, const uint8_t key[AESGCM_KEY_LEN])
{
	const OSSL_PROVIDER *provider;
	void *of_provider;

	g->cipher = EVP_CIPHER_fetch(NULL, name, NULL);
	if (g->cipher == NULL)
		return false;
	provider = EVP_CIPHER_get0_provider(g->cipher);
	if (!find_functions(g, provider))
		return false;
	of_provider = OSSL_PROVIDER_get0_provider_ctx(provider);
	g->seal = g->new_ctx(of_provider);
	g->open = g->new_ctx(of_provider);
	return g->seal != NULL && g->open != NULL &&
	       g->init_seal(g->seal, key, AESGCM_KEY_LEN, NULL, 0, NULL) == 1 &&
	       g->init_open(g->open, key, AESGCM_KEY_LEN, NULL, 0, NULL) == 1;
}

void
aesgcm_free(struct aesgcm *g)
{
	if (g == NULL)
		return;
	/* The provider wipes what it frees. */
	if (g->seal != NULL)
		g->free_ctx(g->seal);
	if (g->open != NULL)
		g->free_ctx(g->open);
	EVP_CIPHER_free(g->cipher);
	free(g);
}

/* Additional data is what is given without room for a result. A stream cipher
 * has a result of the same length, and no more at the end. */
static bool
run(struct aesgcm *g, void *ctx, struct aesgcm_aad aad, const uint8_t *in,
    size_t len, uint8_t *out)
{
	size_t n;

	return (aad.len == 0 || g->update(ctx, NULL, &n, aad.len, aad.bytes,
				    aad.len) == 1) &&
	       (len == 0 ||
		   (g->update(ctx, out, &n, len, in, len) == 1 && n == len)) &&
	       g->final(ctx, NULL, &n, 0) == 1;
}

bool
aesgcm_seal(struct aesgcm *g, const uint8_t nonce[AESGCM_NONCE_LEN],
    struct aesgcm_aad aad, const uint8_t *in, size_t len, uint8_t *out,
    uint8_t tag[AESGCM_TAG_LEN])
{
	OSSL_PARAM ask[] = {OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG,
				tag, AESGCM_TAG_LEN),
	    OSSL_PARAM_END};

	return g->init_seal(g->seal, NULL, 0, nonce, AESGCM_NONCE_LEN, NULL) ==
		   1 &&
	       run(g, g->seal, aad, in, len, out) &&
	       g->get_params(g->seal, ask) == 1;
}

bool
aesgcm_open(struct aesgcm *g, const uint8_t nonce[AESGCM_NONCE_LEN],
    struct aesgcm_aad aad, const uint8_t *in, size_t len, uint8_t *out,
    const uint8_t tag[AESGCM_TAG_LEN])
{
	/* The library takes the tag as not const, but only copies it. */
	const OSSL_PARAM expect[] = {
	    OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG,
		(void *)(uintptr_t)tag, AESGCM_TAG_LEN),
	    OSSL_PARAM_END};

	return g->init_open(
		   g->open, NULL, 0, nonce, AESGCM_NONCE_LEN, expect) == 1 &&
	       run(g, g->open, aad, in, len, out);
}

/*
 * A provider that does not do what its documents say would show as servers that
 * never answer. What is sealed here is forgotten, so that its nonce is free.
 */
static bool
works(struct aesgcm *g)
{
	static const uint8_t nonce[AESGCM_NONCE_LEN], text[24] = "sealed";
	const struct aesgcm_aad aad = {.bytes = nonce, .len = sizeof nonce};
	uint8_t sealed[sizeof text], opened[sizeof text], tag[AESGCM_TAG_LEN];
	bool ok;

	ok = aesgcm_seal(g, nonce, aad, text, sizeof text, sealed, tag) &&
	     aesgcm_open(g, nonce, aad, sealed, sizeof sealed, opened, tag) &&
	     memcmp(opened, text, sizeof text) == 0;
	tag[0] ^= 1;
	ok = ok &&
	     !aesgcm_open(g, nonce, aad, sealed, sizeof sealed, opened, tag);
	OPENSSL_cleanse(sealed, sizeof sealed);
	OPENSSL_cleanse(tag, sizeof tag);
	return ok;
}

struct aesgcm *
aesgcm_new(const uint8_t key[AESGCM_KEY_LEN])
{
	struct aesgcm *g = calloc(1, sizeof *g);

	if (g != NULL && !(open_cipher(g, key) && works(g))) {
		aesgcm_free(g);
		return NULL;
	}
	return g;
}
