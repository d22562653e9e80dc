/*
 * The bounded cursor. take() is the only place that moves it, so it is the
 * only place that can be wrong about the end.
 */
#include "proto/reader.h"

#include <string.h>

static const uint8_t *
take(struct reader *r, size_t len)
{
	const uint8_t *p;

	if (r->bad || (size_t)(r->end - r->at) < len) {
		r->bad = true;
		return NULL;
	}
	p = r->at;
	r->at += len;
	return p;
}

static uint64_t
take_le(struct reader *r, size_t len)
{
	const uint8_t *p = take(r, len);
	uint64_t v = 0;

	if (p == NULL)
		return 0;
	while (len-- > 0)
		v = v << 8 | p[len];
	return v;
}

void
reader_init(struct reader *r, const void *bytes, size_t len)
{
	static const uint8_t nothing[1];

	r->at = bytes != NULL ? bytes : nothing;
	r->end = r->at + (bytes != NULL ? len : 0);
	r->bad = bytes == NULL && len > 0;
}

uint8_t
reader_u8(struct reader *r)
{
	return (uint8_t)take_le(r, 1);
}

uint16_t
reader_u16(struct reader *r)
{
	return (uint16_t)take_le(r, 2);
}

uint32_t
reader_u32(struct reader *r)
{
	return (uint32_t)take_le(r, 4);
}

uint64_t
reader_u64(struct reader *r)
{
	return take_le(r, 8);
}

const uint8_t *
reader_bytes(struct reader *r, size_t len)
{
	return take(r, len);
}

void
reader_copy(struct reader *r, void *out, size_t len)
{
	const uint8_t *p = take(r, len);

	if (p != NULL)
		memcpy(out, p, len);
	else
		memset(out, 0, len);
}

struct reader
reader_sub(struct reader *r, size_t len)
{
	struct reader sub;
	const uint8_t *p = take(r, len);

	reader_init(&sub, p, p != NULL ? len : 0);
	sub.bad = p == NULL;
	return sub;
}

size_t
reader_left(const struct reader *r)
{
	return r->bad ? 0 : (size_t)(r->end - r->at);
}

bool
reader_ok(const struct reader *r)
{
	return !r->bad;
}

bool
reader_done(const struct reader *r)
{
	return !r->bad && r->at == r->end;
}
