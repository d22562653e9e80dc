/* Token bucket arithmetic; every product fits 64 bits, see bucket.h. */
#include "sandbox/bucket.h"

#include <assert.h>

static uint64_t
full_level(const struct bucket *b)
{
	return (uint64_t)b->limit * b->window_ms;
}

void
bucket_init(
    struct bucket *b, uint32_t window_ms, uint32_t limit, int64_t now_ms)
{
	assert(window_ms > 0 && limit > 0);
	b->window_ms = window_ms;
	b->limit = limit;
	b->level = full_level(b);
	b->at_ms = now_ms;
}

bool
bucket_matches(const struct bucket *b, uint32_t window_ms, uint32_t limit)
{
	return b->window_ms == window_ms && b->limit == limit;
}

void
bucket_refill(struct bucket *b, int64_t now_ms)
{
	uint64_t room = full_level(b) - b->level;
	int64_t passed = now_ms - b->at_ms;

	if (passed <= 0)
		return;
	b->at_ms = now_ms;
	/* The first test keeps the product of the second within 64 bits. */
	if (passed >= b->window_ms || (uint64_t)passed * b->limit >= room)
		b->level += room;
	else
		b->level += (uint64_t)passed * b->limit;
}

uint32_t
bucket_available(const struct bucket *b)
{
	return (uint32_t)(b->level / b->window_ms);
}

uint32_t
bucket_rate(const struct bucket *b)
{
	return b->limit - bucket_available(b);
}

void
bucket_take(struct bucket *b, uint64_t tokens)
{
	assert(tokens <= bucket_available(b));
	b->level -= tokens * b->window_ms;
}

int64_t
bucket_full_at(const struct bucket *b)
{
	uint64_t room = full_level(b) - b->level;

	return b->at_ms +
	       (int64_t)(room / b->limit + (room % b->limit != 0 ? 1 : 0));
}
