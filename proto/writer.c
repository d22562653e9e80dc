/* The bounded encoder's cursor: what is known only at the end. */
#include "proto/writer.h"

#include <assert.h>

void
writer_patch_u16(struct writer *w, size_t at, uint16_t v)
{
	if (w->full)
		return;
	assert(at + 2 <= writer_len(w));
	writer_put_u16(w->start + at, v);
}

void
writer_patch_u32(struct writer *w, size_t at, uint32_t v)
{
	if (w->full)
		return;
	assert(at + 4 <= writer_len(w));
	writer_put_u32(w->start + at, v);
}
