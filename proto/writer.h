/*
 * The encoder's cursor: little-endian, bounded, with a sticky overflow. After
 * the first write that does not fit nothing more is written. Borrows the
 * buffer.
 *
 * Inline, since every datagram and frame is written with it field by field:
 * known widths become one comparison and one store each. Invariant: a full
 * writer has no room, so that a write of a byte or more need only compare.
 */
#ifndef PROTO_WRITER_H
#define PROTO_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct writer {
	uint8_t *start;
	uint8_t *at;
	uint8_t *end;
	bool full;
};

/* Overwrites what was written at offset at before; for length fields. */
void writer_patch_u16(struct writer *w, size_t at, uint16_t v);
void writer_patch_u32(struct writer *w, size_t at, uint32_t v);

static inline void
writer_init(struct writer *w, void *buf, size_t cap)
{
	w->start = w->at = buf;
	w->end = w->start + cap;
	w->full = false;
}

static inline size_t
writer_len(const struct writer *w)
{
	return (size_t)(w->at - w->start);
}

static inline bool
writer_ok(const struct writer *w)
{
	return !w->full;
}

/* What is to be written has no encoding: as if it did not fit. */
static inline void
writer_fail(struct writer *w)
{
	w->end = w->at;
	w->full = true;
}

/* Moves over len bytes; fails without room for them. All writes go here. */
static inline bool
writer_skip(struct writer *w, size_t len)
{
	if ((size_t)(w->end - w->at) < len || (len == 0 && w->full)) {
		writer_fail(w);
		return false;
	}
	w->at += len;
	return true;
}

/* Room for len bytes that the caller fills, or NULL when it overflows. */
static inline uint8_t *
writer_space(struct writer *w, size_t len)
{
	uint8_t *p = w->at;

	return writer_skip(w, len) ? p : NULL;
}

static inline void
writer_u8(struct writer *w, uint8_t v)
{
	uint8_t *p = w->at;

	if (writer_skip(w, 1))
		p[0] = v;
}

static inline void
writer_put_u16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
}

static inline void
writer_u16(struct writer *w, uint16_t v)
{
	uint8_t *p = w->at;

	if (writer_skip(w, 2))
		writer_put_u16(p, v);
}

static inline void
writer_put_u32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
	p[2] = (uint8_t)(v >> 16);
	p[3] = (uint8_t)(v >> 24);
}

static inline void
writer_u32(struct writer *w, uint32_t v)
{
	uint8_t *p = w->at;

	if (writer_skip(w, 4))
		writer_put_u32(p, v);
}

static inline void
writer_u64(struct writer *w, uint64_t v)
{
	uint8_t *p = w->at;

	if (writer_skip(w, 8)) {
		writer_put_u32(p, (uint32_t)v);
		writer_put_u32(p + 4, (uint32_t)(v >> 32));
	}
}

static inline void
writer_bytes(struct writer *w, const void *bytes, size_t len)
{
	uint8_t *p = w->at;

	if (len > 0 && writer_skip(w, len))
		memcpy(p, bytes, len);
}

static inline void
writer_zeros(struct writer *w, size_t len)
{
	uint8_t *p = w->at;

	if (writer_skip(w, len))
		memset(p, 0, len);
}

#endif
