/*
 * A bounded little-endian cursor with a sticky error. A decoder reads
 * straight through and asks reader_ok() once at its end: after the first
 * read past the end every read returns zero or NULL. Borrows the bytes.
 *
 * Inline, since every datagram and frame is read with it field by field:
 * known widths become one comparison and one load each. Invariant: a bad
 * reader has nothing left, so that a read of a byte or more need only compare.
 */
#ifndef PROTO_READER_H
#define PROTO_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct reader {
	const uint8_t *at;
	const uint8_t *end;
	bool bad;
};

void reader_init(struct reader *r, const void *bytes, size_t len);

static inline size_t
reader_left(const struct reader *r)
{
	return (size_t)(r->end - r->at);
}

static inline bool
reader_ok(const struct reader *r)
{
	return !r->bad;
}

/* reader_ok() and nothing left over. */
static inline bool
reader_done(const struct reader *r)
{
	return !r->bad && r->at == r->end;
}

/* What was read makes no sense: as if the bytes ended here. */
static inline void
reader_fail(struct reader *r)
{
	r->at = r->end;
	r->bad = true;
}

/* Moves over len bytes; fails when there are fewer. All reads go here. */
static inline bool
reader_skip(struct reader *r, size_t len)
{
	if (reader_left(r) < len || (len == 0 && r->bad)) {
		reader_fail(r);
		return false;
	}
	r->at += len;
	return true;
}

/* Borrowed bytes; NULL when there are fewer than len (len 0: not NULL). */
static inline const uint8_t *
reader_bytes(struct reader *r, size_t len)
{
	const uint8_t *p = r->at;

	return reader_skip(r, len) ? p : NULL;
}

static inline uint8_t
reader_u8(struct reader *r)
{
	const uint8_t *p = r->at;

	return reader_skip(r, 1) ? p[0] : 0;
}

static inline uint16_t
reader_u16(struct reader *r)
{
	const uint8_t *p = r->at;

	return reader_skip(r, 2) ? (uint16_t)(p[0] | p[1] << 8) : 0;
}

static inline uint32_t
reader_u32(struct reader *r)
{
	const uint8_t *p = r->at;

	if (!reader_skip(r, 4))
		return 0;
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
	       (uint32_t)p[3] << 24;
}

static inline uint64_t
reader_u64(struct reader *r)
{
	const uint8_t *p = r->at;

	if (!reader_skip(r, 8))
		return 0;
	return p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 |
	       (uint64_t)p[3] << 24 | (uint64_t)p[4] << 32 |
	       (uint64_t)p[5] << 40 | (uint64_t)p[6] << 48 |
	       (uint64_t)p[7] << 56;
}

/* Copies len bytes; zeros out when there are fewer. */
static inline void
reader_copy(struct reader *r, void *out, size_t len)
{
	const uint8_t *p = r->at;

	if (reader_skip(r, len))
		memcpy(out, p, len);
	else
		memset(out, 0, len);
}

/* A reader over the next len bytes, bad when there are fewer. */
static inline struct reader
reader_sub(struct reader *r, size_t len)
{
	const uint8_t *p = r->at;

	if (!reader_skip(r, len))
		return (struct reader){r->end, r->end, true};
	return (struct reader){p, p + len, false};
}

#endif
