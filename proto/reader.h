/*
 * A bounded little-endian cursor with a sticky error. A decoder reads
 * straight through and asks reader_ok() once at its end: after the first
 * read past the end every read returns zero or NULL. Borrows the bytes.
 */
#ifndef PROTO_READER_H
#define PROTO_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct reader {
	const uint8_t *at;
	const uint8_t *end;
	bool bad;
};

void reader_init(struct reader *r, const void *bytes, size_t len);
uint8_t reader_u8(struct reader *r);
uint16_t reader_u16(struct reader *r);
uint32_t reader_u32(struct reader *r);
uint64_t reader_u64(struct reader *r);
/* Borrowed bytes; NULL when there are fewer than len (len 0: not NULL). */
const uint8_t *reader_bytes(struct reader *r, size_t len);
/* Copies len bytes; zeros out when there are fewer. */
void reader_copy(struct reader *r, void *out, size_t len);
/* A reader over the next len bytes, bad when there are fewer. */
struct reader reader_sub(struct reader *r, size_t len);
size_t reader_left(const struct reader *r);
bool reader_ok(const struct reader *r);
/* reader_ok() and nothing left over. */
bool reader_done(const struct reader *r);

#endif
