/*
 * What the files of the load generator share: load.c opens a load, load_run.c
 * runs it, load_checks.c asks and takes answers on one connection.
 *
 * A check in flight has a slot of its connection; its request id is
 * (sequence << SLOT_BITS) | slot, so that the ids of a connection increase, as
 * the protocol wants it, and an answer finds its slot without a search.
 */
#ifndef CLIENT_SHIM_LOAD_PRIVATE_H
#define CLIENT_SHIM_LOAD_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client-shim/load.h"
#include "client-shim/load_frame.h"
#include "client-shim/load_histogram.h"
#include "client-shim/load_lane.h"
#include "client-shim/load_pace.h"

#define LOAD_SLOT_BITS   16    /* LOAD_MAX_WINDOW */
#define LOAD_PATIENCE_MS 20000 /* beyond the deadline of a check */

struct load_slot {
	uint64_t id;   /* 0: free */
	int64_t since; /* ns: written, or due when there is a rate */
};

struct load_conn {
	struct load_lane lane;
	bool greeted;
	bool watched;      /* for room to write */
	uint64_t sequence; /* of the last request */
	size_t idle;       /* free slots: the first of these in free[] */
	uint16_t *free;
	struct load_slot *slots;
};

struct load {
	int epoll;
	size_t window;
	uint32_t patience_ms; /* 0: none was given */
	bool (*stop)(void *arg);
	void *stop_arg;
	char *err; /* of the call */

	uint64_t wanted;       /* checks still to be asked */
	uint32_t rate;         /* of runs; 0: what there is room for */
	struct load_pace pace; /* of this run; filling and draining have none */
	int timer;             /* with a rate; else -1 */
	int64_t timer_at;      /* ns; 0: it is not set */
	int64_t asking;        /* ns: when this run last had something to ask */
	size_t next;           /* the connection whose turn it is */
	size_t in_flight;
	size_t pings;          /* unanswered */
	uint32_t deadline_ms;  /* of a check */
	bool default_deadline; /* it is what the agent says */
	int64_t until;         /* ns: when wanted ends; 0: by number alone */
	int64_t heard;         /* ns: when what is being taken was read */
	int64_t moved;         /* ns: when the agent last gave an answer */
	int64_t answered; /* ns: when it last decided; 0: not in this run */
	bool stopped;

	size_t count; /* of connections */
	struct load_conn *conns;
	uint16_t *free;          /* of all of them */
	struct load_slot *slots; /* of all of them */
	struct load_frame frame;
	struct load_result result;
	char first_failure[IPC_MAX_TEXT + 1]; /* empty: none */
	struct load_histogram latency;
	uint8_t in[LOAD_BUFFER];
	uint8_t out[LOAD_BUFFER];
};

int64_t load_now(void); /* ns */

/* These return 0, or -1 with a line in l->err. */

/* A turn of the loop: waits once, takes what came, asks what may be asked. */
int load_turn(struct load *l);

/* As many as are due, but at most, and the window and socket allow. */
int load_checks_ask(struct load *l, struct load_conn *c, uint64_t most);
/* Reads once, and takes the frames that are there. */
int load_checks_read(struct load *l, struct load_conn *c);
int load_checks_ping(struct load *l, struct load_conn *c);

/* How many of those wanted are to be asked as soon as there is room. */
uint64_t load_checks_due(const struct load *l);

#endif
