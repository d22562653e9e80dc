/* The datagrams that are under way: a binary heap, earliest first. */
#include "tests/sim/driver_private.h"

#include <stdlib.h>

static bool
before(const struct driver_queue *q, size_t a, size_t b)
{
	return network_order(&q->list[a], &q->list[b]) < 0;
}

static void
swap(struct driver_queue *q, size_t a, size_t b)
{
	const struct network_datagram g = q->list[a];

	q->list[a] = q->list[b];
	q->list[b] = g;
}

void
driver_queue_put(struct driver_queue *q, const struct network_datagram *g)
{
	size_t i = q->count;

	if (q->count == q->room) {
		q->room = q->room > 0 ? 2 * q->room : 256;
		q->list = reallocarray(q->list, q->room, sizeof(*q->list));
		if (q->list == NULL)
			abort();
	}
	q->list[q->count++] = *g;
	for (; i > 0 && before(q, i, (i - 1) / 2); i = (i - 1) / 2)
		swap(q, i, (i - 1) / 2);
}

struct network_datagram
driver_queue_take(struct driver_queue *q)
{
	const struct network_datagram first = q->list[0];
	size_t i = 0, child = 1;

	q->list[0] = q->list[--q->count];
	while (child < q->count) {
		if (child + 1 < q->count && before(q, child + 1, child))
			child++;
		if (!before(q, child, i))
			break;
		swap(q, i, child);
		i = child;
		child = 2 * i + 1;
	}
	return first;
}
