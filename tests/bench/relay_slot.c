/*
 * The checks under way. Each has a request of its own, sealed at the start,
 * which may go out any number of times: the responder remembers nothing.
 */
#include "tests/bench/relay.h"

void
relay_slots_init(struct relay_slots *s)
{
	uint32_t i;

	for (i = 0; i < RELAY_SLOTS; i++)
		s->free[i] = RELAY_SLOTS - 1 - i;
	s->free_count = RELAY_SLOTS;
}

struct relay_slot *
relay_slots_take(struct relay_slots *s)
{
	uint32_t number;

	if (s->free_count == 0)
		return NULL;
	number = s->free[--s->free_count];
	s->fresh[s->fresh_count++] = number;
	return &s->at[number];
}

static unsigned
server_of(const struct relay *r, uint64_t id)
{
	unsigned i;

	for (i = 0; i < r->server_count && r->servers[i].id != id; i++)
		;
	return i;
}

struct relay_slot *
relay_slots_answer(
    struct relay *r, const uint8_t *datagram, size_t len, bool *first)
{
	struct relay_slots *s = &r->slots;
	struct relay_slot *slot;
	uint32_t number;
	unsigned server;
	uint64_t id;

	if (!presealed_match(&s->sealed, datagram, len, &number, &id))
		return NULL;
	slot = &s->at[number];
	server = server_of(r, id);
	if (server == r->server_count || !(slot->waits & 1u << server))
		return NULL;
	slot->waits &= (uint16_t) ~(1u << server);
	if (slot->waits == 0)
		s->free[s->free_count++] = number;
	*first = server == 0;
	return slot;
}

uint32_t
relay_slots_again(struct relay_slots *s)
{
	uint32_t i;

	s->fresh_count = 0;
	for (i = 0; i < RELAY_SLOTS; i++)
		if (s->at[i].waits != 0)
			s->fresh[s->fresh_count++] = i;
	return s->fresh_count;
}
