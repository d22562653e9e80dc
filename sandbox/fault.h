/*
 * The faults of one server: one table gives their names as options and as
 * commands, their ranges and their help. Dice, one stream of the seed for each
 * fault, say what befalls a datagram. Every datagram that comes in rolls all
 * of them, so that a fault which is turned on moves no other.
 */
#ifndef SANDBOX_FAULT_H
#define SANDBOX_FAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "sandbox/prng.h"

#define FAULT_MAX_DELAY 60000      /* ms; of a delay and of a jitter */
#define FAULT_MAX_CLOCK UINT32_MAX /* ms, either way */

enum fault_kind {
	FAULT_PROBABILITY, /* 0 to 1 */
	FAULT_DURATION,    /* whole ms, 0 to FAULT_MAX_DELAY */
	FAULT_OFFSET,      /* whole ms, -FAULT_MAX_CLOCK to FAULT_MAX_CLOCK */
};

/* X(id, name, kind, help). The manual page keeps this order. */
#define FAULTS(X)                                                         \
	X(FAULT_DROP, "drop", FAULT_PROBABILITY,                          \
	    "  --drop P              ignore a valid datagram with this "  \
	    "probability\n")                                              \
	X(FAULT_DELAY, "delay", FAULT_DURATION,                           \
	    "  --delay MS            hold every answer back so long\n")   \
	X(FAULT_JITTER, "jitter", FAULT_DURATION,                         \
	    "  --jitter MS           and by up to so much longer, each "  \
	    "by its own\n")                                               \
	X(FAULT_DUPLICATE, "duplicate", FAULT_PROBABILITY,                \
	    "  --duplicate P         send an answer twice\n")             \
	X(FAULT_CORRUPT, "corrupt", FAULT_PROBABILITY,                    \
	    "  --corrupt P           damage an answer so that no client " \
	    "may take it\n")                                              \
	X(FAULT_WRONG_ID, "wrong-id", FAULT_PROBABILITY,                  \
	    "  --wrong-id P          answer with a server id that is "    \
	    "nobody's\n")                                                 \
	X(FAULT_REBIND, "rebind", FAULT_PROBABILITY,                      \
	    "  --rebind P            ask for another source port\n")      \
	X(FAULT_CLOCK_OFFSET, "clock-offset", FAULT_OFFSET,               \
	    "  --clock-offset MS     its clock is ahead by so much; "     \
	    "behind, if negative\n")

enum fault {
#define FAULT_ENUM(id, name, kind, help) id,
	FAULTS(FAULT_ENUM)
#undef FAULT_ENUM
};

#define FAULT_PLUS_ONE(id, name, kind, help) +1
enum { FAULT_COUNT = FAULTS(FAULT_PLUS_ONE) };
#undef FAULT_PLUS_ONE

/* By enum fault; a double holds every whole number of ms exactly. */
struct faults {
	double values[FAULT_COUNT];
};

struct fault_dice {
	struct prng streams[FAULT_COUNT];
};

/* What befalls one datagram, or the answer to it. All zero: nothing. */
struct fault_plan {
	bool lose; /* ignore it, as though the network had lost it */
	bool duplicate;
	bool corrupt;
	bool rebind;
	uint32_t wrong_id; /* of the id in the answer, changed bits; 0: none */
	uint64_t damage;   /* the seed of the damage, with corrupt */
	uint32_t delay_ms; /* of the answer */
	uint32_t copy_ms;  /* of the second one, with duplicate */
};

const char *fault_name(enum fault f);
/* What fault_parse() refuses: "not a number from 0 to 1". */
const char *fault_refusal(enum fault f);
/* Returns 0 or RLA_EINVAL. */
int fault_parse(enum fault f, const char *text, double *out);

/* server: its index, for streams of its own. */
void fault_dice_init(struct fault_dice *d, uint64_t seed, uint32_t server);
void fault_roll(
    struct fault_dice *d, const struct faults *f, struct fault_plan *out);
/* What has to be added to the wall clock. */
int64_t fault_clock_ms(const struct faults *f);

#endif
