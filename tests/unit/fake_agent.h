/*
 * A scripted agent for the tests of the shim: a thread behind a socket in a
 * directory of its own, which runs a function that accepts, reads and
 * answers with the agent's own codec. It owns its descriptors; what it read
 * stays in seen[] for the test to look at after fake_stop(). Tests only.
 */
#ifndef TESTS_UNIT_FAKE_AGENT_H
#define TESTS_UNIT_FAKE_AGENT_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/ipc.h"

#define FAKE_SEEN  64
#define FAKE_CONNS 16

struct fake_message {
	struct ipc_head head;
	int conn; /* of which accepted connection, from 0 */
	uint8_t payload[IPC_MAX_FRAME];
	size_t payload_len;
	struct ipc_check_base base; /* of a check */
};

struct fake {
	char dir[64];
	char path[96];
	int listener;
	int conns[FAKE_CONNS];
	int conn_count;
	pthread_t thread;
	void (*script)(struct fake *f);
	sem_t step; /* the script got there */
	sem_t go;   /* the test lets it go on */

	uint8_t hash; /* the config_hash announced: 16 times this */
	uint32_t default_deadline_ms;
	uint32_t max_frame;

	struct fake_message *seen;
	size_t seen_count;
};

/* A directory, and no agent yet. */
void fake_init(struct fake *f);
void fake_listen(struct fake *f);
/* Listens and runs the script in a thread. */
void fake_start(struct fake *f, void (*script)(struct fake *f));
/* The same without listening: the script does that. */
void fake_start_later(struct fake *f, void (*script)(struct fake *f));
/* The script calls the one, the test waits in the other. */
void fake_reached(struct fake *f);
void fake_await(struct fake *f);
/* The other way round: the test lets, the script holds. */
void fake_let(struct fake *f);
void fake_hold(struct fake *f);
/* Waits for the end of the script. */
void fake_join(struct fake *f);
/* Joins, closes and removes all. */
void fake_stop(struct fake *f);

/* For scripts. Each fails the test when it cannot. */
int fake_accept(struct fake *f);
/* Accepts, reads HELLO, answers WELCOME. */
int fake_greet(struct fake *f);
void fake_welcome(struct fake *f, int conn, uint64_t id);
/* The next frame, which must be of this type. */
struct fake_message *fake_read(struct fake *f, int conn, enum ipc_type type);
/* True when the peer closed and nothing was left unread. */
bool fake_at_end(struct fake *f, int conn);
void fake_write(struct fake *f, int conn, const void *bytes, size_t len);
void fake_decide(struct fake *f, int conn, uint64_t id,
    enum ipc_outcome outcome, bool permit, enum ipc_source source,
    enum ipc_reason reason);
void fake_allow(struct fake *f, int conn, uint64_t id);
void fake_deny(struct fake *f, int conn, uint64_t id);
void fake_error(
    struct fake *f, int conn, uint64_t id, enum ipc_error_code code);
void fake_go_away(struct fake *f, int conn, uint64_t last_id);
void fake_done(struct fake *f, int conn, uint64_t id, enum ipc_reason reason,
    const char *text);
void fake_delay(struct fake *f, int conn, uint64_t id, enum ipc_reason reason,
    uint64_t wait_us);
void fake_reported(
    struct fake *f, int conn, uint64_t id, enum ipc_reason reason);
void fake_document(
    struct fake *f, int conn, uint64_t id, const char *json, bool more);
void fake_close(struct fake *f, int conn);
/* Stops listening and removes the socket. */
void fake_vanish(struct fake *f);

#endif
