/* The names, from the one table. */
#include "sandbox/counters.h"

const char *
counter_name(enum counter c)
{
	static const char *const names[] = {
#define COUNTER_NAME(id, name) [id] = name,
	    COUNTERS(COUNTER_NAME)
#undef COUNTER_NAME
	};

	return names[c];
}
