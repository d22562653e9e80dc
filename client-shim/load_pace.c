/*
 * Whole seconds and the rest apart: neither n times a second in ns nor a time
 * in ns times a rate fits in 64 bits.
 */
#include "client-shim/load_pace.h"

#define SECOND UINT64_C(1000000000) /* in ns */

uint64_t
load_pace_count(uint32_t rate, int64_t ns)
{
	const uint64_t time = (uint64_t)ns;

	return time / SECOND * rate + time % SECOND * rate / SECOND;
}

void
load_pace_begin(struct load_pace *p, uint32_t rate, int64_t now)
{
	*p = (struct load_pace){.rate = rate, .began = now};
}

void
load_pace_tell(struct load_pace *p, int64_t now)
{
	p->due = load_pace_count(p->rate, now - p->began);
}

/* Rounded up: at that time it is due, and not a nanosecond before. */
int64_t
load_pace_next(const struct load_pace *p)
{
	const uint64_t n = p->asked + 1, rate = p->rate;

	return p->began + (int64_t)(n / rate * SECOND +
				    (n % rate * SECOND + rate - 1) / rate);
}
