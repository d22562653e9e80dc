/*
 * Which address of a server to send to. Operations begin with the one that
 * answered last, and each round takes the next one in turn. What an operation
 * began with is kept in it, so that whatever is learnt meanwhile, and another
 * snapshot too, leaves its turns alone.
 *
 * Evidence: an answer speaks for the address of its round; a refusal, by the
 * kernel or by ICMP, and silence for a whole operation speak against the one
 * that operations begin with. None excludes an address for good.
 */
#include "daemon/tenant_private.h"

_Static_assert(MEMBERS_MAX_ADDRS <= 1 << TENANT_ADDR_BITS,
    "the number of an address fits the bits that operations keep");

static bool
has_snapshot(const struct tenant_op *op)
{
	return op->members == op->tenant->members;
}

/* The address that the operation began with. */
static uint32_t
first_of(const struct tenant_op *op, uint32_t server)
{
	uint32_t first = 0;

	for (uint32_t i = 0; i < TENANT_ADDR_BITS; i++)
		first |= (uint32_t)(op->first[i] >> server & 1) << i;
	return first;
}

uint32_t
tenant_address(const struct tenant_op *op, uint32_t server, uint32_t round)
{
	const uint32_t count = op->members->list[server].addr_count;

	return count == 1 ? 0 : (first_of(op, server) + round) % count;
}

void
tenant_address_begin(struct tenant_op *op)
{
	const struct peers *peers = &op->tenant->peers;
	uint64_t first;

	if (!has_snapshot(op))
		return;
	for (uint32_t i = 0; i < peers->count; i++) {
		first = peers->list[i].first_addr;
		if (first == 0) /* mostly, and the bits are clear */
			continue;
		for (uint32_t k = 0; k < TENANT_ADDR_BITS; k++)
			op->first[k] |= (first >> k & 1) << i;
	}
}

void
tenant_address_refused(struct tenant *t, uint32_t server, uint32_t addr)
{
	struct peer *peer = &t->peers.list[server];

	if (peer->first_addr == addr)
		peer->first_addr =
		    (addr + 1) % t->members->list[server].addr_count;
}

void
tenant_address_silent(struct tenant_op *op, uint32_t server)
{
	if (has_snapshot(op))
		tenant_address_refused(
		    op->tenant, server, first_of(op, server));
}

void
tenant_address_answered(struct tenant_op *op, uint32_t server)
{
	if (has_snapshot(op) && op->members->list[server].addr_count > 1)
		op->tenant->peers.list[server].first_addr =
		    tenant_address(op, server, op->round);
}

/* The place of an endpoint in the list of a member; 0 when it is not there. */
static uint32_t
place_of(const struct member *m, const struct endpoint *addr)
{
	for (uint32_t i = 0; i < m->addr_count; i++) {
		if (endpoint_equal(&m->addrs[i], addr))
			return i;
	}
	return 0;
}

void
tenant_address_follow(
    struct tenant *t, const struct members *old, const struct members *next)
{
	struct peer *peer;
	int at;

	for (uint32_t i = 0; i < next->count; i++) {
		peer = &t->peers.list[i];
		at = members_find(old, peer->server_id);
		peer->first_addr =
		    at < 0 ? 0
			   : place_of(&next->list[i],
				 &old->list[at].addrs[peer->first_addr]);
	}
}
