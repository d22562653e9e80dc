/*
 * When the checks of an open loop are to be asked: evenly, at a rate, whatever
 * the agent does. Of load.c. Arithmetic only, exact for the longest run: the
 * n-th check is due n / rate after the beginning, so that n of them take just
 * so long.
 */
#ifndef CLIENT_SHIM_LOAD_PACE_H
#define CLIENT_SHIM_LOAD_PACE_H

#include <stdint.h>

struct load_pace {
	uint32_t rate;  /* a second; 0: there is no pace, nothing is due */
	int64_t began;  /* ns */
	uint64_t due;   /* by the time that was told last */
	uint64_t asked; /* of those that are due */
};

/* How many become due in so long, in ns. */
uint64_t load_pace_count(uint32_t rate, int64_t ns);

void load_pace_begin(struct load_pace *p, uint32_t rate, int64_t now);
/* It is now; time does not run back. */
void load_pace_tell(struct load_pace *p, int64_t now);
/* The time at which the next one to be asked is due, or was. */
int64_t load_pace_next(const struct load_pace *p);

#endif
