/*
 * When operations are judged: what was answered, at the end of each batch of
 * datagrams; what is due, by the tenant's one timer.
 */
#include "daemon/tenant_private.h"

#include "daemon/core/container.h"

/* Turns of reading before deadlines that are due are judged all the same. */
#define PUT_OFF_MAX 16
/* Deadlines judged in one turn, each of which may send to every server. */
#define EXPIRE_MAX 256

/*
 * The timer may be early, never late: arming it again for each operation that
 * ends would cost more than a rare spare wake-up.
 */
void
tenant_rearm(struct tenant *t)
{
	struct heap_entry *first = heap_first(&t->timers);

	if (first == NULL || t->armed <= first->when)
		return;
	t->armed = first->when;
	loop_timer_set(t->timer, t->armed);
}

void
tenant_judge(void *arg)
{
	struct tenant *t = arg;
	struct tenant_op *op;
	int64_t now = tenant_now(t);

	while ((op = t->dirty) != NULL) {
		t->dirty = op->next_dirty;
		op->dirty = false;
		tenant_op_pump(op, now);
		tenant_op_release(op);
	}
	t->now = 0;
	tenant_rearm(t);
}

/*
 * What is readable goes before a deadline that is due as well, be it because
 * the process was stopped meanwhile. The rest of a long queue is read in
 * turns of its own, so many at the most that a flood cannot put off every
 * deadline for ever. A crowd of deadlines is judged in turns, too.
 */
void
tenant_expire(void *arg)
{
	struct tenant *t = arg;
	unsigned int left = EXPIRE_MAX;
	struct heap_entry *e;
	struct tenant_op *op;
	int64_t now;

	t->armed = POLICY_NEVER;
	if (transport_drain(t->transport) && t->put_off++ < PUT_OFF_MAX) {
		t->armed = loop_now();
		loop_timer_set(t->timer, t->armed);
		return;
	}
	now = loop_now();
	while ((e = heap_first(&t->timers)) != NULL && e->when <= now) {
		if (left-- == 0) {
			t->put_off = PUT_OFF_MAX; /* they have waited */
			tenant_rearm(t);
			return;
		}
		op = container_of(e, struct tenant_op, timer);
		if (op->late) {
			tenant_op_hear_on(op, now);
			continue;
		}
		tenant_op_pump(op, now);
		tenant_op_release(op);
	}
	t->put_off = 0;
	tenant_rearm(t);
}
