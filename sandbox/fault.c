/* The rows of the table, and one roll of all dice. */
#include "sandbox/fault.h"

#include "proto/err.h"
#include "sandbox/number.h"

/*
 * The bits of a server_id below its start time. Servers of a cluster never
 * start in the same second, so an id that differs here alone is nobody's.
 */
#define LISTENER_AND_NODE 0x7FFFFF

#define TEXT(value)    TEXT_OF(value)
#define TEXT_OF(value) #value

static const struct {
	const char *name;
	enum fault_kind kind;
} rows[] = {
#define FAULT_ROW(id, name, kind, help) [id] = {name, kind},
    FAULTS(FAULT_ROW)
#undef FAULT_ROW
};

const char *
fault_name(enum fault f)
{
	return rows[f].name;
}

const char *
fault_refusal(enum fault f)
{
	switch (rows[f].kind) {
	case FAULT_PROBABILITY:
		return "not a number from 0 to 1";
	case FAULT_DURATION:
		return "not a number from 0 to " TEXT(FAULT_MAX_DELAY);
	case FAULT_OFFSET:
		break;
	}
	return "not a number from -4294967295 to 4294967295";
}

int
fault_parse(enum fault f, const char *text, double *out)
{
	const int64_t most = FAULT_MAX_CLOCK;
	uint64_t ms;
	int64_t offset;

	switch (rows[f].kind) {
	case FAULT_PROBABILITY:
		return number_probability(text, out);
	case FAULT_DURATION:
		if (number_parse(text, 0, FAULT_MAX_DELAY, &ms) < 0)
			return RLA_EINVAL;
		*out = (double)ms;
		return 0;
	case FAULT_OFFSET:
		break;
	}
	if (number_signed(text, -most, most, &offset) < 0)
		return RLA_EINVAL;
	*out = (double)offset;
	return 0;
}

void
fault_dice_init(struct fault_dice *d, uint64_t seed, uint32_t server)
{
	uint64_t f;

	for (f = 0; f < FAULT_COUNT; f++)
		prng_init(&d->streams[f], seed, f << 32 | server);
}

static bool
chance(struct fault_dice *d, const struct faults *f, enum fault which)
{
	return prng_chance(&d->streams[which], f->values[which]);
}

/* Always draws, so that a roll takes as many numbers whatever is on. */
static uint32_t
delay(struct fault_dice *d, const struct faults *f)
{
	uint32_t jitter = (uint32_t)f->values[FAULT_JITTER];

	return (uint32_t)f->values[FAULT_DELAY] +
	       prng_below(&d->streams[FAULT_JITTER], jitter + 1);
}

void
fault_roll(struct fault_dice *d, const struct faults *f, struct fault_plan *out)
{
	uint32_t bits;

	out->lose = chance(d, f, FAULT_DROP);
	out->delay_ms = delay(d, f);
	out->copy_ms = delay(d, f);
	out->duplicate = chance(d, f, FAULT_DUPLICATE);
	out->corrupt = chance(d, f, FAULT_CORRUPT);
	out->damage = prng_next(&d->streams[FAULT_CORRUPT]);
	bits = 1 + prng_below(&d->streams[FAULT_WRONG_ID], LISTENER_AND_NODE);
	out->wrong_id = chance(d, f, FAULT_WRONG_ID) ? bits : 0;
	out->rebind = chance(d, f, FAULT_REBIND);
}

int64_t
fault_clock_ms(const struct faults *f)
{
	return (int64_t)f->values[FAULT_CLOCK_OFFSET];
}
