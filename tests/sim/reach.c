/* Sums and texts of what was reached. */
#include "tests/sim/reach.h"

#include <inttypes.h>
#include <stddef.h>

#define REACH_TEXT(id, text) text,
static const char *const texts[] = {REACH_LIST(REACH_TEXT)};
#undef REACH_TEXT

void
reach_add(struct reach *to, const struct reach *from)
{
	for (size_t i = 0; i < REACH_CLASSES; i++)
		to->count[i] += from->count[i];
}

void
reach_print(const struct reach *r, const char *prefix, FILE *f)
{
	for (size_t i = 0; i < REACH_CLASSES; i++)
		fprintf(
		    f, "%s%12" PRIu64 " %s\n", prefix, r->count[i], texts[i]);
}

const char *
reach_missing(const struct reach *r)
{
	for (size_t i = 0; i < REACH_CLASSES; i++) {
		if (r->count[i] == 0)
			return texts[i];
	}
	return NULL;
}
