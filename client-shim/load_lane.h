/*
 * One connection of a load, as bytes: what the socket did not take of what was
 * written, and the beginning of a frame whose end has not come. Of load.c. The
 * buffer to read into is the load's; a lane has memory of its own only while
 * something waits in it.
 */
#ifndef CLIENT_SHIM_LOAD_LANE_H
#define CLIENT_SHIM_LOAD_LANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client-shim/load.h"
#include "proto/ipc.h"

#define LOAD_BUFFER (64 * 1024)

struct load_lane {
	int fd;      /* -1: none */
	bool broken; /* nothing that is written goes out any more */
	uint8_t *unsent;
	size_t unsent_len;
	uint8_t *rest;
	size_t rest_len; /* below IPC_MAX_FRAME */
};

/* Fills err as printf() does, and returns -1. */
int load_fail(char err[LOAD_ERR_MAX], const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Connects, waiting so long for a place, and sends HELLO with this id. All
 * here returns 0, or -1 with a line in err; close it then, too. */
int load_lane_connect(struct load_lane *lane, const char *path,
    uint32_t patience_ms, uint64_t id, char err[LOAD_ERR_MAX]);
void load_lane_close(struct load_lane *lane);
/*
 * All of it is written sooner or later. That the agent has closed is no error
 * here: what it said last is still to be read.
 */
int load_lane_send(struct load_lane *lane, const void *bytes, size_t len,
    char err[LOAD_ERR_MAX]);
void load_lane_flush(struct load_lane *lane); /* what is unsent */
/*
 * Once: buffer then begins with what was kept, and *len is all of it, or 0
 * when nothing came. The end of the connection is an error.
 */
int load_lane_read(struct load_lane *lane, uint8_t buffer[LOAD_BUFFER],
    size_t *len, char err[LOAD_ERR_MAX]);
/* What is no whole frame, for the next time. */
int load_lane_keep(struct load_lane *lane, const uint8_t *bytes, size_t len,
    char err[LOAD_ERR_MAX]);

#endif
