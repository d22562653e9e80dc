/*
 * Whether a decision is possible now: a server is known, and the last
 * operations were not all left without an answer. Silence is forgotten after a
 * while without operations, since only they can tell that it is over: who keeps
 * checks away from an agent that is not ready would keep them away for ever.
 */
#include "daemon/tenant_private.h"

/* Operations in a row, each waited for until its horizon: fewer may be loss. */
#define SILENT_ROW 10
#define SILENT_US  INT64_C(30000000)

bool
tenant_decides(const struct tenant *t)
{
	return tenant_ready(t) && !t->silent.is;
}

static void
become(struct tenant *t, bool silent)
{
	t->silent.row = 0;
	if (t->silent.is == silent)
		return;
	t->silent.is = silent;
	if (t->ready_fn != NULL && tenant_ready(t))
		t->ready_fn(t->ready_arg);
}

void
tenant_silent_more(struct tenant *t, int64_t now)
{
	t->silent.last = now;
	if (t->silent.is || ++t->silent.row < SILENT_ROW)
		return;
	loop_timer_set(t->silent.timer, now + SILENT_US);
	become(t, true);
}

void
tenant_silent_over(struct tenant *t)
{
	if (t->silent.is)
		loop_timer_stop(t->silent.timer);
	become(t, false);
}

/* When the last one is long ago. */
void
tenant_silent_forget(void *arg)
{
	struct tenant *t = arg;
	const int64_t until = t->silent.last + SILENT_US;

	if (until > loop_now())
		loop_timer_set(t->silent.timer, until);
	else
		become(t, false);
}
