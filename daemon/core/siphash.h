/*
 * SipHash-2-4: a hash of bytes that a stranger may have chosen, under a key
 * that he does not know: he cannot choose collisions.
 */
#ifndef DAEMON_CORE_SIPHASH_H
#define DAEMON_CORE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

/* bytes may be NULL when len is 0. The same on every machine. */
uint64_t siphash(const uint64_t seed[2], const void *bytes, size_t len);

#endif
