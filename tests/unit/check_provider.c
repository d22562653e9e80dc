/*
 * Algorithms by any of their names, in any case, and by nothing less. What is
 * shown of them is shown before the provider may drop its tables.
 */
#include "proto/provider.h"

#include <openssl/core_dispatch.h>
#include <openssl/evp.h>
#include <openssl/provider.h>
#include <string.h>

#include "tests/unit/harness.h"

static EVP_MD *md;
static const OSSL_PROVIDER *provider;

static void
set_up(void)
{
	md = EVP_MD_fetch(NULL, "BLAKE2S-256", NULL);
	ck_assert_ptr_nonnull(md);
	provider = EVP_MD_get0_provider(md);
}

static void
tear_down(void)
{
	EVP_MD_free(md);
}

static void
note_update(void *arg, const OSSL_DISPATCH *f)
{
	void (**update)(void) = arg;

	if (f->function_id == OSSL_FUNC_DIGEST_UPDATE)
		*update = f->function;
}

typedef void function(void);

/* Its function that takes bytes, or NULL. */
static function *
digest(const char *name)
{
	function *update = NULL;

	provider_functions(
	    provider, OSSL_OP_DIGEST, name, note_update, &update);
	return update;
}

START_TEST(names)
{
	function *f = digest("BLAKE2S-256");

	ck_assert(f != NULL);
	ck_assert(digest("blake2s-256") == f);
	ck_assert(digest("1.3.6.1.4.1.1722.12.2.2.8") == f);
	ck_assert(digest("SHA2-256") != f);
	ck_assert(digest("SHA2-256") != NULL);
}
END_TEST

static void
never(void *arg, const OSSL_DISPATCH *f)
{
	(void)arg;
	ck_abort_msg("function %d", f->function_id);
}

START_TEST(no_such_name)
{
	ck_assert(digest("") == NULL);
	ck_assert(digest("BLAKE2S") == NULL);
	ck_assert(digest("BLAKE2S-2567") == NULL);
	ck_assert(digest("BLAKE2S-256:BLAKE2s256") == NULL);
	ck_assert(digest("AES-256-GCM") == NULL);
	provider_functions(
	    provider, OSSL_OP_CIPHER, "BLAKE2S-256", never, NULL);
	provider_functions(provider, 77, "BLAKE2S-256", never, NULL);
}
END_TEST

static void
count(void *arg, const OSSL_DISPATCH *f)
{
	int *updates = arg;

	*updates += f->function_id == OSSL_FUNC_CIPHER_UPDATE;
}

START_TEST(functions)
{
	int updates = 0;

	provider_functions(
	    provider, OSSL_OP_CIPHER, "AES-256-GCM", count, &updates);
	ck_assert_int_eq(updates, 1);
}
END_TEST

/* A provider of one digest, whose tables are good between the query and its
 * end, as provider-base(7) allows. */

static OSSL_DISPATCH shown[2];
static OSSL_ALGORITHM offered[2];

static int
its_update(void *ctx, const unsigned char *bytes, size_t len)
{
	(void)ctx;
	(void)bytes;
	(void)len;
	return 1;
}

static const OSSL_ALGORITHM *
query(void *ctx, int operation, int *no_cache)
{
	(void)ctx;
	*no_cache = 0;
	if (operation != OSSL_OP_DIGEST)
		return NULL;
	shown[0] = (OSSL_DISPATCH){
	    OSSL_FUNC_DIGEST_UPDATE, (void (*)(void))its_update};
	offered[0] = (OSSL_ALGORITHM){"PASSING", "provider=passing", shown, ""};
	return offered;
}

static void
unquery(void *ctx, int operation, const OSSL_ALGORITHM *algorithms)
{
	(void)ctx;
	(void)operation;
	ck_assert_ptr_eq(algorithms, offered);
	memset(shown, 0, sizeof(shown));
	memset(offered, 0, sizeof(offered));
}

static int
its_init(const OSSL_CORE_HANDLE *core, const OSSL_DISPATCH *in,
    const OSSL_DISPATCH **out, void **ctx)
{
	static const OSSL_DISPATCH base[] = {
	    {OSSL_FUNC_PROVIDER_QUERY_OPERATION, (void (*)(void))query},
	    {OSSL_FUNC_PROVIDER_UNQUERY_OPERATION, (void (*)(void))unquery},
	    {0, NULL},
	};
	static char any;

	(void)core;
	(void)in;
	*out = base;
	*ctx = &any;
	return 1;
}

START_TEST(before_the_tables_go)
{
	OSSL_LIB_CTX *library = OSSL_LIB_CTX_new();
	function *update = NULL;
	OSSL_PROVIDER *passing;

	ck_assert_int_eq(
	    OSSL_PROVIDER_add_builtin(library, "passing", its_init), 1);
	passing = OSSL_PROVIDER_load(library, "passing");
	ck_assert_ptr_nonnull(passing);
	provider_functions(
	    passing, OSSL_OP_DIGEST, "passing", note_update, &update);
	ck_assert(update == (function *)its_update);
	ck_assert_ptr_null(offered[0].algorithm_names);
	OSSL_PROVIDER_unload(passing);
	OSSL_LIB_CTX_free(library);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("provider");
	TCase *tc = tcase_create("provider");

	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_test(tc, names);
	tcase_add_test(tc, no_such_name);
	tcase_add_test(tc, functions);
	tcase_add_test(tc, before_the_tables_go);
	suite_add_tcase(s, tc);
	return harness_run(s);
}
