/*
 * The protocol mind of one server: a datagram in, what happened and maybe an
 * answer out. It owns the state and the remembered answers of every key. No
 * I/O; both clocks are arguments, so tests own time.
 */
#ifndef SANDBOX_ENGINE_H
#define SANDBOX_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/packet.h"
#include "proto/pdu.h"
#include "sandbox/counters.h"
#include "sandbox/damage.h"
#include "sandbox/fault.h"
#include "sandbox/keyring.h"
#include "sandbox/state.h"

/* Most remembered answers of one key. */
#define ENGINE_MAX_ANSWERS (1u << 17)

struct engine;

struct engine_input {
	const uint8_t *bytes;
	size_t len;
	int64_t now_ms;  /* monotonic */
	int64_t wall_ms; /* since the Unix epoch, as the server sees it */
	struct fault_plan plan;
};

enum engine_event {
	ENGINE_REQUEST,
	ENGINE_DUPLICATE,
	ENGINE_REPORT,
	ENGINE_IGNORED,
};

struct engine_result {
	enum engine_event event;
	enum counter reason;       /* ENGINE_IGNORED: why */
	bool has_head;             /* head was there, authentic or not */
	struct packet_head head;   /* the datagram's own */
	bool allowed;              /* ENGINE_REQUEST, ENGINE_DUPLICATE */
	struct state_result state; /* ENGINE_REQUEST; else of a refusal */
	struct pdu_rate rate;      /* ENGINE_REQUEST; its label borrows */
	struct pdu_report report;  /* ENGINE_REPORT */
	uint8_t answer[PACKET_MAX];
	size_t answer_len;  /* 0: silence */
	uint64_t answer_id; /* the server_id in it */
	enum damage damage; /* of a corrupt one */
};

/* Borrows the keyring. NULL without memory or crypto. */
struct engine *engine_new(const struct keyring *ring, uint64_t server_id,
    uint64_t hash_seed, uint32_t tolerance_ms);
void engine_free(struct engine *e);
/* *out is good until the next call, or until the input's bytes change. */
void engine_handle(
    struct engine *e, const struct engine_input *in, struct engine_result *out);
/* Counts what happened here; the owner counts what it sends. */
struct counters *engine_counters(struct engine *e);
uint64_t engine_server_id(const struct engine *e);

#endif
