/*
 * Answers that a right client has to ignore. Some damage is done to what a
 * server says, before it is sealed: authentic, and wrong. Some is done to the
 * datagram on its way. Without AES nothing vouches for most of the bytes, and
 * only what a client can check by itself is damaged. Pure: bytes and a prng.
 */
#ifndef SANDBOX_DAMAGE_H
#define SANDBOX_DAMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "proto/credential.h"
#include "proto/packet.h"
#include "sandbox/prng.h"

/* X(id, name); the manual page tells what each is, in this order. */
#define DAMAGES(X)                       \
	X(DAMAGE_BIT, "bit")             \
	X(DAMAGE_CUT, "cut")             \
	X(DAMAGE_TAIL, "tail")           \
	X(DAMAGE_AUTH, "auth")           \
	X(DAMAGE_OPERATION, "operation") \
	X(DAMAGE_TYPE, "type")           \
	X(DAMAGE_SIZE, "size")           \
	X(DAMAGE_COUNT, "count")         \
	X(DAMAGE_EMPTY, "empty")         \
	X(DAMAGE_BLOCK, "block")         \
	X(DAMAGE_ID, "id")               \
	X(DAMAGE_ORDER, "order")

enum damage {
#define DAMAGE_ENUM(id, name) id,
	DAMAGES(DAMAGE_ENUM)
#undef DAMAGE_ENUM
};

#define DAMAGE_PLUS_ONE(id, name) +1
enum { DAMAGE_KINDS = DAMAGES(DAMAGE_PLUS_ONE) };
#undef DAMAGE_PLUS_ONE

/* A response PDU of the sandbox's own, and how it is going to be sealed. */
struct damage_answer {
	enum auth_type auth;
	enum profile profile;
	size_t len;
	uint8_t pdu[PACKET_MAX];
};

const char *damage_name(enum damage d);
/* One of those that this answer can suffer, each as likely. */
enum damage damage_choose(struct prng *how, const struct damage_answer *a);
/* Before the sealing: changes the PDU or the head, where this damage does. */
void damage_content(enum damage d, struct prng *how, struct damage_answer *a,
    struct packet_head *head);
/* After it: changes the datagram, of at most PACKET_MAX bytes, or not. */
void damage_datagram(enum damage d, struct prng *how,
    const struct damage_answer *a, uint8_t datagram[PACKET_MAX], size_t *len);

#endif
