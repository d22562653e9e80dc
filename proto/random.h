/*
 * Random bytes from the kernel, drawn in bulk: a system call for each request
 * id would cost too much. The crypto library's generator is not used: a fork
 * copies it, and it notices that by the process id, so that two children that
 * are both number 1, each of a pid namespace of its own, would draw the same.
 */
#ifndef PROTO_RANDOM_H
#define PROTO_RANDOM_H

#include <stddef.h>
#include <stdint.h>

/* From the kernel, at once. Returns 0 or RLA_ECRYPTO. */
int random_fresh(void *out, size_t len);

struct random_pool;

struct random_pool *random_pool_new(void);
/* Wipes what is left. */
void random_pool_free(struct random_pool *pool);
/* Returns 0 or RLA_ECRYPTO. */
int random_bytes(struct random_pool *pool, void *out, size_t len);
/* A UUIDv4: random with the version and variant bits. 0 or RLA_ECRYPTO. */
int random_uuid(struct random_pool *pool, uint8_t out[16]);

#endif
