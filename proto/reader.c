/* The bounded cursor: how it begins. */
#include "proto/reader.h"

void
reader_init(struct reader *r, const void *bytes, size_t len)
{
	static const uint8_t nothing[1];

	r->at = bytes != NULL ? bytes : nothing;
	r->end = r->at + (bytes != NULL ? len : 0);
	r->bad = bytes == NULL && len > 0;
}
