/*
 * An algorithm's functions at its provider, below OpenSSL's EVP layer. For
 * messages as short as ours that layer costs as much as the algorithm does,
 * and OpenSSL 3.0's allocates a context for every digest. The functions and
 * their arguments are documented, for those who write providers, in
 * provider-digest(7) and provider-cipher(7); how to find them, in
 * OSSL_PROVIDER_query_operation(3).
 */
#ifndef PROTO_PROVIDER_H
#define PROTO_PROVIDER_H

struct ossl_dispatch_st; /* OSSL_DISPATCH */
struct ossl_provider_st; /* OSSL_PROVIDER */

/* Is shown one function at a time, and copies what it wants of it. */
typedef void provider_take_fn(void *arg, const struct ossl_dispatch_st *f);

/*
 * Shows the functions of the algorithm, by any of its names; none when the
 * provider has no such algorithm. Only the pointers that take copies are good
 * for longer: the provider may drop its tables when this returns. They last as
 * long as the provider does, which an EVP_MD or EVP_CIPHER that was fetched
 * from it keeps alive.
 */
void provider_functions(const struct ossl_provider_st *provider, int operation,
    const char *name, provider_take_fn *take, void *arg);

/* The version of the crypto library, as "3.0.0"; static. */
const char *provider_library(void);

#endif
