/* A cursor over the query; everything is checked before it is believed. */
#include "sandbox/dnsq.h"

#include <string.h>

#define HEADER_LEN   12
#define MAX_LABEL    63
#define OPCODE_QUERY 0
#define TYPE_OPT     41

/* A big-endian cursor with a sticky error, as proto's is little-endian. */
struct cursor {
	const uint8_t *at;
	size_t left;
	bool bad;
};

static uint32_t
take(struct cursor *c, size_t bytes)
{
	uint32_t v = 0;

	if (c->bad || c->left < bytes) {
		c->bad = true;
		return 0;
	}
	c->left -= bytes;
	while (bytes-- > 0)
		v = v << 8 | *c->at++;
	return v;
}

static void
skip(struct cursor *c, size_t bytes)
{
	if (c->bad || c->left < bytes) {
		c->bad = true;
		return;
	}
	c->at += bytes;
	c->left -= bytes;
}

/* An uncompressed name; nobody compresses the first name of a packet. */
static void
take_name(struct cursor *c, struct dnsq *q)
{
	uint8_t len;

	q->name_len = 0;
	do {
		len = (uint8_t)take(c, 1);
		if (c->bad || len > MAX_LABEL || c->left < len ||
		    q->name_len + 1 + len > sizeof(q->name)) {
			c->bad = true;
			return;
		}
		q->name[q->name_len++] = len;
		memcpy(q->name + q->name_len, c->at, len);
		q->name_len += len;
		skip(c, len);
	} while (len > 0);
}

/* The one additional record that we take: OPT, owned by the root. */
static void
take_opt(struct cursor *c, struct dnsq *q)
{
	uint32_t flags;

	if (take(c, 1) != 0 || take(c, 2) != TYPE_OPT)
		c->bad = true;
	q->udp_size = (uint16_t)take(c, 2);
	flags = take(c, 4);
	skip(c, take(c, 2));
	q->edns = !c->bad;
	q->bad_version = (flags >> 16 & 0xFF) != 0;
	q->dnssec_ok = (flags & 0x8000) != 0;
}

bool
dnsq_scan(const uint8_t *query, size_t len, struct dnsq *q)
{
	struct cursor c = {query, len, false};
	uint32_t flags, counts[4];
	size_t i;

	memset(q, 0, sizeof(*q));
	if (len < HEADER_LEN)
		return false;
	q->id = (uint16_t)take(&c, 2);
	flags = take(&c, 2);
	for (i = 0; i < 4; i++)
		counts[i] = take(&c, 2);
	if (flags & 0x8000)
		return false;
	q->rd = (flags & 0x0100) != 0;
	q->cd = (flags & 0x0010) != 0;
	if ((flags >> 11 & 15) != OPCODE_QUERY) {
		q->rcode = DNSQ_NOTIMP;
		return true;
	}
	q->rcode = DNSQ_FORMERR;
	if (counts[0] != 1 || counts[1] != 0 || counts[2] != 0 || counts[3] > 1)
		return true;
	take_name(&c, q);
	q->type = (uint16_t)take(&c, 2);
	q->class = (uint16_t)take(&c, 2);
	if (counts[3] == 1)
		take_opt(&c, q);
	if (c.bad || c.left > 0) {
		q->edns = false;
		return true;
	}
	q->asked = true;
	q->rcode = DNSQ_NOERROR;
	return true;
}
