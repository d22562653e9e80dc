/*
 * The start of an operation: a slot of the right size, the datagram, sealed
 * once for all servers and rounds, the tables, and the first transmission.
 */
#include "daemon/tenant_private.h"

#include <string.h>

#include "proto/err.h"

static struct tenant_op *
op_new(struct tenant *t, const struct pdu_rate *rate, size_t datagram_len)
{
	size_t blocks = rate->guard_count + rate->resource_count;
	bool large =
	    blocks > OP_SMALL_BLOCKS || datagram_len > OP_SMALL_DATAGRAM;
	struct tenant_op *op;
	size_t i, n = 0;

	op = slab_get(large ? &t->large : &t->small);
	if (op == NULL)
		return NULL;
	memset(op, 0, sizeof(*op));
	heap_entry_init(&op->timer);
	op->tenant = t;
	op->large = large;
	op->guard_count = (uint8_t)rate->guard_count;
	op->resource_count = (uint8_t)rate->resource_count;
	for (i = 0; i < rate->guard_count; i++)
		memcpy(op->blocks[n++].id, rate->guards[i].id, ID_LEN);
	for (i = 0; i < rate->resource_count; i++)
		memcpy(op->blocks[n++].id, rate->resources[i].id, ID_LEN);
	return op;
}

static int
op_encode(struct tenant *t, const struct tenant_check *check, uint64_t stamp,
    uint8_t datagram[PACKET_MAX], size_t *len)
{
	uint8_t pdu[PACKET_MAX];
	size_t pdu_len;
	int err;

	check->rate->dedup_ttl_ms = t->config->plan.ttl_ms;
	err = pdu_encode_request(
	    t->config->profile, check->rate, pdu, sizeof(pdu), &pdu_len);
	if (err != 0)
		return err;
	return tenant_seal(t, check->unique_id, stamp, pdu, pdu_len, datagram,
	    PACKET_MAX, len);
}

/* Bits of the current snapshot, with the adaptive preference alone. */
static uint64_t
suspected(const struct tenant *t)
{
	const uint32_t after = t->config->plan.suspect_after;
	uint64_t bits = 0;

	for (uint32_t i = 0; after > 0 && i < t->members->count; i++) {
		if (suspect_is(&t->peers.list[i].suspect, after))
			bits |= (uint64_t)1 << i;
	}
	return bits;
}

int
tenant_check(struct tenant *t, const struct tenant_check *check,
    tenant_done_fn *done, void *arg, struct tenant_op **out)
{
	uint8_t datagram[PACKET_MAX];
	struct tenant_op *op = tenant_op_find(t, check->unique_id);
	const int64_t now = check->now;
	const uint64_t stamp = tenant_wall_ms(t, now);
	size_t len;
	int err;

	if (op != NULL && !op->late)
		return RLA_EINVAL;
	if (t->live >= t->max_ops)
		return RLA_EBUSY;
	if (op != NULL) /* decided, but its caller never heard of it */
		tenant_op_bury(op);
	err = op_encode(t, check, stamp, datagram, &len);
	if (err != 0)
		return err;
	op = op_new(t, check->rate, len);
	if (op == NULL)
		return RLA_EBUSY;
	memcpy(tenant_op_datagram(op), datagram, len);
	op->datagram_len = (uint16_t)len;
	op->stamp = check->resent ? 0 : stamp;
	memcpy(op->entry.key, check->unique_id, TABLE_KEY_LEN);
	if (heap_reserve(&t->timers, t->in_flight.count + 1) != 0 ||
	    table_insert(&t->in_flight, &op->entry) != 0) {
		slab_put(op->large ? &t->large : &t->small, op);
		return RLA_EBUSY;
	}
	op->members = members_ref(t->members);
	op->done = done;
	op->arg = arg;
	t->live++;
	t->counters.operations++;
	if (op->members->count == 0)
		discovery_force(t->discovery);
	policy_op_init(&op->policy, &t->config->plan, op->members->count,
	    suspected(t), check->start, check->deadline, now);
	*out = op;
	tenant_op_act(op, now);
	tenant_op_release(op);
	tenant_rearm(t);
	return 0;
}
