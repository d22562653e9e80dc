/*
 * A growth schedule in units: fixed, linear or exponential (r-client
 * specification, section 9.3.1). Pure arithmetic; values saturate at max.
 */
#ifndef DAEMON_CORE_SCHEDULE_H
#define DAEMON_CORE_SCHEDULE_H

#include <stdint.h>

enum schedule_kind { SCHEDULE_FIXED, SCHEDULE_LINEAR, SCHEDULE_EXPONENTIAL };

struct schedule {
	enum schedule_kind kind;
	uint32_t initial; /* units; the value of a fixed schedule */
	uint32_t growth;  /* linear: step; exponential: factor, at least 1 */
	uint32_t max;     /* units; at least initial; fixed: ignored */
};

/* Units of round k; never overflows. */
uint32_t schedule_units(const struct schedule *s, uint32_t k);

#endif
