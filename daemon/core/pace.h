/*
 * How much one user may have under way beside others: as much as does not make
 * everybody wait. The time that an answer takes tells of the queues on its way,
 * here, in the network and in the servers, so no figure of this machine or of
 * any server is needed. Pure: the owner keeps a path for each tenant, a window
 * for each user, and passes the clock.
 *
 * Invariant: no answers, no limit. Dead servers hold nobody back, and a window
 * is never below PACE_LEAST.
 */
#ifndef DAEMON_CORE_PACE_H
#define DAEMON_CORE_PACE_H

#include <stdbool.h>
#include <stdint.h>

/* What a user may always have under way, and what is under way on a path whose
 * queues are as good as empty. */
#define PACE_LEAST 16
/* What took twice the least has waited as long as it worked; a difference below
 * this is the scheduler's, though. */
#define PACE_SLACK_US 500
/* The least time of an answer is forgotten after one to two of these. */
#define PACE_PERIOD_US 5000000
/* A window that heard nothing for so long limits nothing. */
#define PACE_FRESH_US 1000000
/* Answers that are judged together: the more part of them counts. */
#define PACE_ROUND 8

enum pace {
	PACE_UNKNOWN, /* it tells nothing */
	PACE_EVEN,
	PACE_LATE, /* most of the time was waiting */
};

/* The way to the servers of a tenant and back. */
struct pace_path {
	int64_t least[2]; /* of this period, and of the one before */
	int64_t since;    /* when it began */
};

void pace_path_init(struct pace_path *p, int64_t now);
/*
 * An answer took so long. quiet: there was so little under way that it had
 * nothing to wait for; only then the least of the past may be forgotten, lest
 * after a long crowd the crowd be the measure.
 */
enum pace pace_path_judge(
    struct pace_path *p, int64_t took, bool quiet, int64_t now);

/* What one user may have under way. */
struct pace_window {
	uint32_t size;
	uint32_t brisk; /* up to here it grows fast */
	uint32_t seen;  /* answers of this round */
	uint32_t late;  /* of these */
	int64_t changed;
	int64_t fresh; /* until then it limits */
};

void pace_window_init(struct pace_window *w);
/*
 * What began then is over, with so many under way, itself among them. Only
 * what began after the last change tells of its effect. A crowded window falls
 * to the least at once, so that the queues empty and the least time shows, and
 * goes up fast to half of where it was, then slowly.
 */
void pace_window_note(struct pace_window *w, enum pace pace, int64_t began,
    uint32_t inflight, int64_t now);
/* May one more begin? */
bool pace_window_open(
    const struct pace_window *w, uint32_t inflight, int64_t now);

#endif
