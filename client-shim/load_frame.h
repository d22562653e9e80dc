/*
 * The frame of a check of one rule, put together once: from one check to the
 * next only the ids and the number in the key change. Of load.c.
 */
#ifndef CLIENT_SHIM_LOAD_FRAME_H
#define CLIENT_SHIM_LOAD_FRAME_H

#include "client-shim/load.h"
#include "proto/ipc.h"

#define LOAD_FRAME_MAX \
	(IPC_HEAD_LEN + IPC_CHECK_BASE_LEN + 2 * (2 + IPC_MAX_NAME))

struct random_pool;

struct load_frame {
	size_t len;
	uint8_t *number; /* in bytes; NULL: the key has none */
	size_t digits;
	uint64_t keys;
	uint64_t next; /* sequential: the number that is in bytes */
	enum load_order order;
	uint64_t state; /* of the random numbers */
	struct random_pool *random;
	uint8_t bytes[LOAD_FRAME_MAX];
};

/* Digits of the last of so many numbers from 0 on. */
size_t load_frame_digits(uint64_t keys);
/* Bytes of the key when its number is in place; 0 for none. */
size_t load_frame_key_len(const struct load_options *options);
/*
 * options are good: names no longer than IPC_MAX_NAME, a number in the key if
 * there are several. f stays where it is. 0, or RLA_ECRYPTO without
 * randomness; then, too, load_frame_free() is right.
 */
int load_frame_init(struct load_frame *f, const struct load_options *options);
void load_frame_free(struct load_frame *f);
/* Writes f->len bytes: a check with this request id, an operation id of its
 * own and the next key. 0 or RLA_ECRYPTO. */
int load_frame_put(struct load_frame *f, uint64_t id, uint8_t *out);

#endif
