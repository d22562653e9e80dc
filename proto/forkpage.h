/*
 * Memory that a forked child finds zeroed, for state that two processes must
 * never continue from: nonces and pools of random bytes. A zeroed state has
 * to mean "draw afresh" to its owner.
 */
#ifndef PROTO_FORKPAGE_H
#define PROTO_FORKPAGE_H

#include <stddef.h>

/*
 * Zeroed memory of len bytes, in pages of its own. NULL without memory, and
 * also when the kernel cannot wipe on fork: repeating is worse than failing.
 */
void *forkpage_new(size_t len);
/* Wipes and releases what forkpage_new(len) returned; takes NULL. */
void forkpage_free(void *page, size_t len);

#endif
