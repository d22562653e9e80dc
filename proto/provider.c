/*
 * Looks algorithms up in the tables that a provider shows to the library.
 * Keeps no state.
 */
#include "proto/provider.h"

#include <openssl/crypto.h>
#include <openssl/provider.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

/* names is a list, separated by colons. */
static bool
is_named(const char *names, const char *name)
{
	const size_t want = strlen(name);
	size_t len;

	for (;;) {
		len = strcspn(names, ":");
		if (len == want && strncasecmp(names, name, len) == 0)
			return true;
		if (names[len] == '\0')
			return false;
		names += len + 1;
	}
}

void
provider_functions(const OSSL_PROVIDER *provider, int operation,
    const char *name, provider_take_fn *take, void *arg)
{
	const OSSL_ALGORITHM *all, *a;
	const OSSL_DISPATCH *f;
	int no_cache;

	all = OSSL_PROVIDER_query_operation(provider, operation, &no_cache);
	if (all == NULL)
		return;
	for (a = all; a->algorithm_names != NULL; a++) {
		if (!is_named(a->algorithm_names, name))
			continue;
		for (f = a->implementation; f->function_id != 0; f++)
			take(arg, f);
		break;
	}
	/* Only now: it tells the provider that all was copied. */
	OSSL_PROVIDER_unquery_operation(provider, operation, all);
}

const char *
provider_library(void)
{
	return OpenSSL_version(OPENSSL_VERSION_STRING);
}
