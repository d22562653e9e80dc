/* Suspicion is nothing but a count of misses in a row; see the header. */
#include "daemon/core/suspect.h"

void
suspect_init(struct suspect *s)
{
	*s = (struct suspect){0};
}

bool
suspect_is(const struct suspect *s, uint32_t after)
{
	return after > 0 && s->missed >= after;
}

bool
suspect_missed(struct suspect *s, uint32_t after, int64_t start)
{
	const bool was = suspect_is(s, after);

	if (s->heard && s->answered_at >= start)
		return false;
	if (s->missed < UINT32_MAX)
		s->missed++;
	return !was && suspect_is(s, after);
}

bool
suspect_answered(struct suspect *s, uint32_t after, int64_t now)
{
	const bool was = suspect_is(s, after);

	s->heard = true;
	s->answered_at = now;
	s->missed = 0;
	return was;
}
