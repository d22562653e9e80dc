/*
 * What a client checks, and so what can be damaged without AES: the type of
 * the tenant TLV, the operation, the auth TLV, type, size and counts of the
 * PDU, and the ids of its blocks. With AES every bit counts.
 */
#include "sandbox/damage.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "proto/pdu.h"
#include "proto/writer.h"

/* Offsets in a datagram and in a PDU (r-client specification, 5.1 and 7). */
#define UNIQUE_OFFSET    12
#define PDU_TYPE_OFFSET  0
#define PDU_SIZE_OFFSET  2
#define PDU_COUNT_OFFSET 8
#define RESOURCE_LEN     28

#define NONE_TYPE   0x414E
#define NONE_SIZE   4
#define COOKIE_TYPE 0x4143
#define COOKIE_SIZE 36

#define TAIL_MAX 64

const char *
damage_name(enum damage d)
{
	static const char *const names[] = {
#define DAMAGE_NAME(id, name) [id] = name,
	    DAMAGES(DAMAGE_NAME)
#undef DAMAGE_NAME
	};

	return names[d];
}

/* Bytes by which the datagram may still grow. */
static size_t
room(const struct damage_answer *a)
{
	return PACKET_MAX - packet_overhead(a->auth) - a->len;
}

static void
decode(const struct damage_answer *a, struct pdu_rate *rate)
{
	int rc = pdu_decode_response(a->profile, a->pdu, a->len, rate);

	assert(rc == 0);
	(void)rc;
}

static void
encode(struct damage_answer *a, const struct pdu_rate *rate)
{
	int rc = pdu_encode_response(
	    a->profile, rate, a->pdu, sizeof(a->pdu), &a->len);

	assert(rc == 0);
	(void)rc;
}

/* A resource that is not the first one, or 0 when all are the same. */
static size_t
other_resource(const struct pdu_rate *rate)
{
	size_t i;

	for (i = 1; i < rate->resource_count; i++)
		if (memcmp(rate->resources[0].id, rate->resources[i].id,
			ID_LEN) != 0)
			return i;
	return 0;
}

static size_t
other_guard(const struct pdu_rate *rate)
{
	size_t i;

	for (i = 1; i < rate->guard_count; i++)
		if (memcmp(rate->guards[0].id, rate->guards[i].id, ID_LEN) != 0)
			return i;
	return 0;
}

/* Can this answer be damaged so, and never pass for a good one? */
static bool
applies(
    enum damage d, const struct damage_answer *a, const struct pdu_rate *rate)
{
	size_t blocks = rate->guard_count + rate->resource_count;

	switch (d) {
	case DAMAGE_BIT:
	case DAMAGE_CUT:
	case DAMAGE_OPERATION:
	case DAMAGE_TYPE:
	case DAMAGE_SIZE:
	case DAMAGE_COUNT:
		return true;
	case DAMAGE_TAIL: /* elsewhere what follows the PDU is ignored */
		return a->auth == AUTH_AES && room(a) > 0;
	case DAMAGE_AUTH:
		return a->auth != AUTH_NONE ||
		       room(a) >= COOKIE_SIZE - NONE_SIZE;
	case DAMAGE_EMPTY:
	case DAMAGE_ID:
		return blocks > 0;
	case DAMAGE_BLOCK:
		return blocks < PDU_MAX_BLOCKS && room(a) >= RESOURCE_LEN;
	case DAMAGE_ORDER:
		break;
	}
	return other_guard(rate) > 0 || other_resource(rate) > 0;
}

enum damage
damage_choose(struct prng *how, const struct damage_answer *a)
{
	enum damage can[DAMAGE_KINDS];
	struct pdu_rate rate;
	uint32_t n = 0;
	int d;

	decode(a, &rate);
	for (d = 0; d < DAMAGE_KINDS; d++)
		if (applies((enum damage)d, a, &rate))
			can[n++] = (enum damage)d;
	return can[prng_below(how, n)];
}

/* Never the same byte. */
static void
change_byte(struct prng *how, uint8_t *bytes, size_t len)
{
	size_t at = prng_below(how, (uint32_t)len);

	bytes[at] ^= (uint8_t)(1 + prng_below(how, UINT8_MAX));
}

static void
flip_bit(struct prng *how, uint8_t *bytes, size_t len)
{
	size_t bit = prng_below(how, (uint32_t)len * 8);

	bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
}

static void
change_type(struct prng *how, uint8_t *pdu)
{
	static const uint16_t types[] = {
	    PDU_RATE_REQUEST, PDU_LATENCY_REPORT, 0};
	uint16_t type = types[prng_below(how, 3)];

	pdu[PDU_TYPE_OFFSET] = (uint8_t)type;
	pdu[PDU_TYPE_OFFSET + 1] = (uint8_t)(type >> 8);
}

static void
change_id(struct prng *how, struct pdu_rate *rate)
{
	size_t i = prng_below(
	    how, (uint32_t)(rate->guard_count + rate->resource_count));

	if (i < rate->guard_count)
		change_byte(how, rate->guards[i].id, ID_LEN);
	else
		change_byte(
		    how, rate->resources[i - rate->guard_count].id, ID_LEN);
}

static void
swap_blocks(struct pdu_rate *rate)
{
	size_t i = other_resource(rate);
	struct pdu_resource resource;
	struct pdu_guard guard;

	if (i > 0) {
		resource = rate->resources[0];
		rate->resources[0] = rate->resources[i];
		rate->resources[i] = resource;
		return;
	}
	i = other_guard(rate);
	guard = rate->guards[0];
	rate->guards[0] = rate->guards[i];
	rate->guards[i] = guard;
}

static void
add_block(struct prng *how, struct pdu_rate *rate)
{
	struct pdu_resource *r = &rate->resources[rate->resource_count++];
	size_t i;

	*r = (struct pdu_resource){.window_ms = 1000, .limit = 1};
	for (i = 0; i < ID_LEN; i++)
		r->id[i] = (uint8_t)prng_next(how);
}

void
damage_content(enum damage d, struct prng *how, struct damage_answer *a,
    struct packet_head *head)
{
	struct pdu_rate rate;

	decode(a, &rate);
	switch (d) {
	case DAMAGE_BIT:
	case DAMAGE_CUT:
	case DAMAGE_TAIL:
	case DAMAGE_AUTH:
		return;
	case DAMAGE_OPERATION:
		change_byte(how, head->unique_id, PACKET_UNIQUE_LEN);
		return;
	case DAMAGE_TYPE:
		change_type(how, a->pdu);
		return;
	case DAMAGE_SIZE:
		flip_bit(how, a->pdu + PDU_SIZE_OFFSET, 2);
		return;
	case DAMAGE_COUNT:
		flip_bit(how, a->pdu + PDU_COUNT_OFFSET, 4);
		return;
	case DAMAGE_EMPTY:
		rate.guard_count = rate.resource_count = 0;
		break;
	case DAMAGE_BLOCK:
		add_block(how, &rate);
		break;
	case DAMAGE_ID:
		change_id(how, &rate);
		break;
	case DAMAGE_ORDER:
		swap_blocks(&rate);
		break;
	}
	encode(a, &rate);
}

/* One bit: with AES anywhere, else where a client looks. */
static void
flip_checked_bit(struct prng *how, const struct damage_answer *a,
    uint8_t *datagram, size_t len)
{
	const size_t overhead = packet_overhead(a->auth);
	const struct {
		size_t at, len;
	} checked[] = {
	    {0, 2},
	    {UNIQUE_OFFSET, PACKET_UNIQUE_LEN},
	    {PACKET_TENANT_LEN, overhead - PACKET_TENANT_LEN},
	    {overhead + PDU_TYPE_OFFSET, 4}, /* and the size */
	    {overhead + PDU_COUNT_OFFSET, 4},
	};
	uint32_t i;

	if (a->auth == AUTH_AES) {
		flip_bit(how, datagram, len);
		return;
	}
	i = prng_below(how, sizeof(checked) / sizeof(checked[0]));
	flip_bit(how, datagram + checked[i].at, checked[i].len);
}

/*
 * The whole truth, but not authenticated as the key demands: in the clear, or,
 * for a key without a secret, with a cookie of zeros.
 */
static size_t
change_auth(const struct damage_answer *a, uint8_t datagram[PACKET_MAX])
{
	struct writer w;

	writer_init(
	    &w, datagram + PACKET_TENANT_LEN, PACKET_MAX - PACKET_TENANT_LEN);
	if (a->auth == AUTH_NONE) {
		writer_u16(&w, COOKIE_TYPE);
		writer_u16(&w, COOKIE_SIZE);
		writer_zeros(&w, COOKIE_SIZE - NONE_SIZE);
	} else {
		writer_u16(&w, NONE_TYPE);
		writer_u16(&w, NONE_SIZE);
	}
	writer_bytes(&w, a->pdu, a->len);
	assert(writer_ok(&w));
	return PACKET_TENANT_LEN + writer_len(&w);
}

static size_t
add_tail(struct prng *how, const struct damage_answer *a, uint8_t *end)
{
	size_t most = room(a) < TAIL_MAX ? room(a) : TAIL_MAX;
	size_t n = 1 + prng_below(how, (uint32_t)most), i;

	for (i = 0; i < n; i++)
		end[i] = (uint8_t)prng_next(how);
	return n;
}

void
damage_datagram(enum damage d, struct prng *how, const struct damage_answer *a,
    uint8_t datagram[PACKET_MAX], size_t *len)
{
	switch (d) {
	case DAMAGE_BIT:
		flip_checked_bit(how, a, datagram, *len);
		return;
	case DAMAGE_CUT:
		*len = 1 + prng_below(how, (uint32_t)*len - 1);
		return;
	case DAMAGE_TAIL:
		*len += add_tail(how, a, datagram + *len);
		return;
	case DAMAGE_AUTH:
		*len = change_auth(a, datagram);
		return;
	case DAMAGE_OPERATION:
	case DAMAGE_TYPE:
	case DAMAGE_SIZE:
	case DAMAGE_COUNT:
	case DAMAGE_EMPTY:
	case DAMAGE_BLOCK:
	case DAMAGE_ID:
	case DAMAGE_ORDER:
		return;
	}
}
