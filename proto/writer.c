/* The bounded encoder's cursor; writer_space() alone moves it. */
#include "proto/writer.h"

#include <assert.h>
#include <string.h>

static void
put_le(uint8_t *p, uint64_t v, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		p[i] = (uint8_t)(v >> (8 * i));
}

static void
write_le(struct writer *w, uint64_t v, size_t len)
{
	uint8_t *p = writer_space(w, len);

	if (p != NULL)
		put_le(p, v, len);
}

void
writer_init(struct writer *w, void *buf, size_t cap)
{
	w->start = w->at = buf;
	w->end = w->start + cap;
	w->full = false;
}

uint8_t *
writer_space(struct writer *w, size_t len)
{
	uint8_t *p;

	if (w->full || (size_t)(w->end - w->at) < len) {
		w->full = true;
		return NULL;
	}
	p = w->at;
	w->at += len;
	return p;
}

void
writer_u8(struct writer *w, uint8_t v)
{
	write_le(w, v, 1);
}

void
writer_u16(struct writer *w, uint16_t v)
{
	write_le(w, v, 2);
}

void
writer_u32(struct writer *w, uint32_t v)
{
	write_le(w, v, 4);
}

void
writer_u64(struct writer *w, uint64_t v)
{
	write_le(w, v, 8);
}

void
writer_bytes(struct writer *w, const void *bytes, size_t len)
{
	uint8_t *p;

	if (len == 0)
		return;
	p = writer_space(w, len);
	if (p != NULL)
		memcpy(p, bytes, len);
}

void
writer_zeros(struct writer *w, size_t len)
{
	uint8_t *p = writer_space(w, len);

	if (p != NULL)
		memset(p, 0, len);
}

void
writer_patch_u16(struct writer *w, size_t at, uint16_t v)
{
	if (w->full)
		return;
	assert(at + 2 <= writer_len(w));
	put_le(w->start + at, v, 2);
}

void
writer_patch_u32(struct writer *w, size_t at, uint32_t v)
{
	if (w->full)
		return;
	assert(at + 4 <= writer_len(w));
	put_le(w->start + at, v, 4);
}

size_t
writer_len(const struct writer *w)
{
	return (size_t)(w->at - w->start);
}

bool
writer_ok(const struct writer *w)
{
	return !w->full;
}
