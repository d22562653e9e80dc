/*
 * The encoder's cursor: little-endian, bounded, with a sticky overflow. After
 * the first write that does not fit nothing more is written. Borrows the
 * buffer.
 */
#ifndef PROTO_WRITER_H
#define PROTO_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct writer {
	uint8_t *start;
	uint8_t *at;
	uint8_t *end;
	bool full;
};

void writer_init(struct writer *w, void *buf, size_t cap);
void writer_u8(struct writer *w, uint8_t v);
void writer_u16(struct writer *w, uint16_t v);
void writer_u32(struct writer *w, uint32_t v);
void writer_u64(struct writer *w, uint64_t v);
void writer_bytes(struct writer *w, const void *bytes, size_t len);
void writer_zeros(struct writer *w, size_t len);
/* Room for len bytes that the caller fills, or NULL when it overflows. */
uint8_t *writer_space(struct writer *w, size_t len);
/* Overwrites what was written at offset at before; for length fields. */
void writer_patch_u16(struct writer *w, size_t at, uint16_t v);
void writer_patch_u32(struct writer *w, size_t at, uint32_t v);
size_t writer_len(const struct writer *w);
bool writer_ok(const struct writer *w);

#endif
