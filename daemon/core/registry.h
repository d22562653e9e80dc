/*
 * Instances by key, a bounded number of them: the keyed limiters of one name.
 * What was least recently used makes room first, but never one that is busy: a
 * limiter that owes a wait, an error control that holds a delay. With every
 * one busy there is no room, and the caller says so. Owns its instances; a
 * secret seed keeps those who choose keys from choosing collisions.
 *
 * Finding and making room cost a hash and the logarithm of the number, however
 * many are busy: of those that stop being busy between two calls, the first 16
 * are looked at in one call, the others in the next ones. Slots are kept and
 * used again: no allocation once the number in use has stopped growing.
 */
#ifndef DAEMON_CORE_REGISTRY_H
#define DAEMON_CORE_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REGISTRY_KEY_MAX 1024 /* bytes */

struct registry;

/*
 * size: of an instance's bytes, aligned as malloc() aligns. cap: the most
 * instances, from 1. NULL without memory; little before the first instance.
 */
struct registry *registry_new(
    size_t size, uint32_t cap, const uint64_t seed[2]);
void registry_free(struct registry *r); /* takes NULL */
/* Fewer than there are: for each new one that comes several go, and none comes
 * while those that may not go are too many. */
void registry_set_cap(struct registry *r, uint32_t cap);

/*
 * The instance of a key, used now; made when there is none, with *fresh set
 * and its bytes zero. NULL when there is no room or no memory. Valid until the
 * next call that may make one.
 */
void *registry_get(
    struct registry *r, const void *key, size_t len, int64_t now, bool *fresh);
/* Not made, not counted as used; NULL when there is none. */
void *registry_find(const struct registry *r, const void *key, size_t len);
/* It is busy until then: a moment of the past means that it is not. */
void registry_busy(struct registry *r, void *instance, int64_t until);

uint32_t registry_count(const struct registry *r);
/* Instances that made room for others, since the start. */
uint64_t registry_evictions(const struct registry *r);

#endif
