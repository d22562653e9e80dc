/*
 * Growth schedules. Every product is formed in 64 bits and clamped before it
 * can grow further, so no field combination overflows.
 */
#include "daemon/core/schedule.h"

static uint32_t
clamp(uint64_t units, uint32_t max)
{
	return units < max ? (uint32_t)units : max;
}

static uint32_t
exponential_units(const struct schedule *s, uint32_t k)
{
	uint64_t units = s->initial;

	/* At least doubles per turn, so at most 32 turns whatever k is. */
	if (s->growth > 1 && units > 0) {
		while (k-- > 0 && units < s->max)
			units *= s->growth;
	}
	return clamp(units, s->max);
}

uint32_t
schedule_units(const struct schedule *s, uint32_t k)
{
	switch (s->kind) {
	case SCHEDULE_FIXED:
		return s->initial;
	case SCHEDULE_LINEAR:
		/* (2^32 - 1)^2 + 2^32 - 1 still fits. */
		return clamp(s->initial + (uint64_t)k * s->growth, s->max);
	case SCHEDULE_EXPONENTIAL:
		return exponential_units(s, k);
	}
	return s->initial;
}
