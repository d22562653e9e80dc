/*
 * Equality of endpoints, written down once. Only what a family uses is
 * compared: the rest of addr may hold anything.
 */
#include "daemon/core/endpoint.h"

#include <string.h>

bool
endpoint_equal(const struct endpoint *a, const struct endpoint *b)
{
	if (a->family != b->family || a->port != b->port)
		return false;
	if (a->family == 4)
		return memcmp(a->addr, b->addr, 4) == 0;
	return a->scope == b->scope && memcmp(a->addr, b->addr, 16) == 0;
}
