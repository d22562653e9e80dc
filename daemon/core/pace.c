/* See the header: a least time of two periods, and a window that halves and
 * grows, by rounds of answers. */
#include "daemon/core/pace.h"

/* In each round; the larger, the sooner users with unequal windows are even. */
#define STEP (PACE_LEAST / 2)

void
pace_path_init(struct pace_path *p, int64_t now)
{
	*p = (struct pace_path){
	    .least = {INT64_MAX, INT64_MAX},
	    .since = now,
	};
}

static void
forget(struct pace_path *p, int64_t now)
{
	if (now - p->since < PACE_PERIOD_US)
		return;
	p->least[1] = p->least[0];
	p->least[0] = INT64_MAX;
	p->since = now;
}

enum pace
pace_path_judge(struct pace_path *p, int64_t took, bool quiet, int64_t now)
{
	int64_t least;

	if (quiet)
		forget(p, now);
	if (took < p->least[0])
		p->least[0] = took;
	least = p->least[0] < p->least[1] ? p->least[0] : p->least[1];
	return took - least > least + PACE_SLACK_US ? PACE_LATE : PACE_EVEN;
}

void
pace_window_init(struct pace_window *w)
{
	*w = (struct pace_window){.size = PACE_LEAST, .brisk = UINT32_MAX};
}

static void
shrink(struct pace_window *w, uint32_t inflight)
{
	const uint32_t used = inflight < w->size ? inflight : w->size;

	w->brisk = used / 2 > PACE_LEAST ? used / 2 : PACE_LEAST;
	w->size = PACE_LEAST;
}

/* What is not used says nothing of what more would do. */
static void
grow(struct pace_window *w, uint32_t inflight)
{
	if (inflight < w->size / 2)
		return;
	if (w->size >= w->brisk)
		w->size += STEP;
	else if (w->size > w->brisk / 2)
		w->size = w->brisk;
	else
		w->size *= 2;
}

void
pace_window_note(struct pace_window *w, enum pace pace, int64_t began,
    uint32_t inflight, int64_t now)
{
	if (pace == PACE_UNKNOWN)
		return;
	w->fresh = now + PACE_FRESH_US;
	if (began < w->changed)
		return;
	w->seen++;
	w->late += pace == PACE_LATE;
	if (w->seen < PACE_ROUND)
		return;
	if (w->late > w->seen / 2)
		shrink(w, inflight);
	else
		grow(w, inflight);
	w->seen = w->late = 0;
	w->changed = now;
}

bool
pace_window_open(const struct pace_window *w, uint32_t inflight, int64_t now)
{
	return inflight < w->size || now >= w->fresh;
}
