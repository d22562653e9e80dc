/* See tally.h. The place of a kind is one look into a table of bytes. */
#include "daemon/tally.h"

#include <assert.h>

#define OUTCOMES (IPC_CANCELLED + 1)
#define SOURCES  (IPC_SOURCE_SHADOW + 1)
#define REASONS  (IPC_REASON_CANCELLED + 1)

#define NUMBER(outcome, source, reason, common) \
	NUMBER_##outcome##_##source##_##reason,
enum { TALLY_KINDS(NUMBER) };

#define KIND(outcome, source, reason, common) \
	{IPC_##outcome, IPC_SOURCE_##source, IPC_REASON_##reason, common},
const struct tally_kind tally_kinds[] = {TALLY_KINDS(KIND)};

/* One more than its number; 0: none. */
#define PLACE(outcome, source, reason, common)                      \
	[IPC_##outcome][IPC_SOURCE_##source][IPC_REASON_##reason] = \
	    NUMBER_##outcome##_##source##_##reason + 1,
static const uint8_t places[OUTCOMES][SOURCES][REASONS] = {TALLY_KINDS(PLACE)};

int
tally_find(unsigned int outcome, unsigned int source, unsigned int reason)
{
	if (outcome >= OUTCOMES || source >= SOURCES || reason >= REASONS)
		return -1;
	return places[outcome][source][reason] - 1;
}

void
tally_note(struct tally *t, const struct ipc_decision *d)
{
	const int kind = tally_find(d->outcome, d->source, d->reason);

	assert(kind >= 0);
	if (kind >= 0)
		t->kinds[kind]++;
	t->permitted += d->permit;
	latency_note(&t->latency, (int64_t)d->elapsed_us);
}

uint64_t
tally_total(const struct tally *t)
{
	uint64_t total = 0;

	for (int i = 0; i < TALLY_KIND_COUNT; i++)
		total += t->kinds[i];
	return total;
}
