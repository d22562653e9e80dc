/*
 * An application of a test, on the agent's socket without the shim: frames
 * put together and taken apart by hand, so that they may be wrong in any way.
 */
#ifndef TESTS_UNIT_IPC_PEER_H
#define TESTS_UNIT_IPC_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/ipc.h"

#define PEER_NAME (IPC_MAX_NAME + 1)

struct ipc_peer {
	int fd;
	bool eof;
	uint8_t in[128 * 1024];
	size_t len;
	struct writer w;
	uint8_t frame[2 * IPC_MAX_FRAME];
};

/* A frame that came. */
struct reply {
	uint16_t type;
	uint16_t flags;
	uint64_t id;
	size_t len; /* of the payload */
	uint8_t payload[IPC_MAX_FRAME];
	/* By type: of DELAY, DONE, ERROR, REPORTED; GO_AWAY's last_id. */
	uint64_t number;
	uint64_t wait_us; /* of DELAY */
	uint8_t sent;
	char text[IPC_MAX_TEXT + 1];
};

struct peer_decision {
	uint8_t outcome, permit, source, reason;
	uint16_t round, has;
	uint32_t retry_after_ms;
	uint64_t server_id, elapsed_us;
	char limit[PEER_NAME];
	char text[IPC_MAX_TEXT + 1];
	uint16_t guards, resources;
	uint32_t below_ms, current_ms; /* of the first guard */
	uint8_t passed;
	char guard[PEER_NAME];
	uint32_t window_ms, limit_tokens, tokens, deficit, actual;
	char resource[PEER_NAME]; /* all of the last resource */
};

/* What stands at the start of a check; zero: first sent, for one token. */
struct peer_base {
	uint32_t number; /* goes into the operation id */
	bool not_uuid;
	const uint8_t *hash;
	uint64_t age_us;
	uint32_t deadline_ms;
	uint32_t options;
	uint32_t tokens;
};

/* Non-blocking; the connect itself needs no agent that runs. */
void peer_open(struct ipc_peer *p, const char *path);
/* False when it is refused. */
bool peer_reach(struct ipc_peer *p, const char *path);
void peer_close(struct ipc_peer *p);

/* A frame: begin, write into p->w, end. */
struct writer *peer_begin(struct ipc_peer *p, uint16_t type, uint64_t id);
void peer_end(struct ipc_peer *p);
void peer_str(struct ipc_peer *p, const char *text);
/* Any bytes. False when the socket takes no more, or is closed. */
bool peer_write(struct ipc_peer *p, const void *bytes, size_t len);

void peer_hello(struct ipc_peer *p);
void peer_empty(struct ipc_peer *p, uint16_t type, uint64_t id);
void peer_wait(struct ipc_peer *p, uint64_t id, uint32_t timeout_ms);
void peer_base(struct ipc_peer *p, const struct peer_base *base);
/* key NULL: none. */
void peer_check(struct ipc_peer *p, uint64_t id, const struct peer_base *base,
    const char *rule, const char *key);
/* So many guards "g0", ... and resources "r0", ... */
void peer_adhoc(struct ipc_peer *p, uint64_t id, const struct peer_base *base,
    const char *tenant, unsigned int guards, unsigned int resources);

/* key NULL: none. */
void peer_acquire(struct ipc_peer *p, uint64_t id, const char *limiter,
    const char *key, uint32_t permits);
void peer_try_acquire(struct ipc_peer *p, uint64_t id, const char *limiter,
    const char *key, uint32_t permits, uint64_t max_wait_us);
void peer_error_begin(
    struct ipc_peer *p, uint64_t id, const char *control, const char *key);
void peer_error_success(
    struct ipc_peer *p, uint64_t id, const char *control, const char *key);
/* In 10^-12 permits a second. */
void peer_set_rate(
    struct ipc_peer *p, uint64_t id, const char *limiter, uint64_t rate);

/* Takes a frame if one is there. Afterwards p->eof says if it was the last. */
bool peer_take(struct ipc_peer *p, struct reply *out);
void peer_decision(const struct reply *r, struct peer_decision *out);

#endif
