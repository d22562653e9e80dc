/*
 * The simulation behind estimate.h: one operation after another, each on its
 * own clock from 0. Since all answers take the same time, those in flight are
 * a queue in the order of their sending.
 */
#include "daemon/core/estimate.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

/* Every server answers every transmission. */
#define MAX_FLIGHTS (POLICY_MAX_SERVERS * (POLICY_MAX_REPLAYS + 1))

struct flight {
	int64_t at;
	uint32_t server;
};

struct sim {
	const struct estimate_input *in;
	struct estimate *out;
	uint64_t random;
	int64_t *latencies; /* out->decided of them */
	int64_t now;
	uint32_t head; /* the next to arrive */
	uint32_t tail;
	struct flight flights[MAX_FLIGHTS];
};

/* splitmix64: good enough to decide on losses, and the same everywhere. */
static uint64_t
draw(struct sim *s)
{
	uint64_t z = s->random += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* 53 random bits are exact in a double: 0 never loses, 1 always does. */
static bool
lost(struct sim *s)
{
	return (double)(draw(s) >> 11) <
	       s->in->loss * (double)(UINT64_C(1) << 53);
}

/* Puts the answers that will arrive behind the queue, in random order. */
static void
transmit(struct sim *s, uint64_t targets)
{
	const uint32_t first = s->tail;
	struct flight swap;
	uint32_t i, k;

	for (i = 0; i < s->in->servers; i++) {
		if ((targets >> i & 1) == 0)
			continue;
		s->out->requests++;
		if (lost(s) || lost(s))
			continue;
		assert(s->tail < MAX_FLIGHTS);
		s->flights[s->tail++] =
		    (struct flight){.at = s->now + s->in->rtt_us, .server = i};
	}
	for (i = s->tail - first; i > 1; i--) {
		k = (uint32_t)(draw(s) % i);
		swap = s->flights[first + k];
		s->flights[first + k] = s->flights[first + i - 1];
		s->flights[first + i - 1] = swap;
	}
}

static void
complete(struct sim *s, const struct policy_action *act)
{
	struct estimate *out = s->out;

	if (act->end != POLICY_SELECTED)
		return;
	s->latencies[out->decided++] = s->now;
	out->by_round[act->round]++;
	if (act->server == 0)
		out->by_oldest++;
}

/* To be forgotten: what comes back changes nothing. */
static void
deliver(struct sim *s, uint64_t targets)
{
	for (; targets != 0; targets &= targets - 1) {
		s->out->requests++;
		s->out->deliveries++;
	}
}

/* Carries out what the policy wants now. False when the operation is over. */
static bool
pump(struct sim *s, struct policy_op *op)
{
	struct policy_action act;

	for (;;) {
		act = policy_op_next(op, s->now);
		switch (act.act) {
		case POLICY_NOTHING:
			return true;
		case POLICY_SEND:
			transmit(s, act.targets);
			policy_op_sent(op, act.targets);
			break;
		case POLICY_DELIVER:
			deliver(s, act.targets);
			break;
		case POLICY_MISSED:
			break;
		case POLICY_COMPLETE:
			complete(s, &act);
			return false;
		}
	}
}

static void
run(struct sim *s)
{
	struct policy_op op;
	int64_t due;

	s->now = 0;
	s->head = 0;
	s->tail = 0;
	policy_op_init(
	    &op, s->in->plan, s->in->servers, 0, 0, POLICY_NEVER, s->now);
	while (pump(s, &op)) {
		due = policy_op_timeout(&op);
		if (s->head < s->tail && s->flights[s->head].at <= due) {
			s->now = s->flights[s->head].at;
			policy_op_answer(&op, s->flights[s->head++].server);
		} else {
			s->now = due;
		}
		policy_op_advance(&op, s->now);
	}
}

static int
by_time(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void
summarise(struct sim *s)
{
	const int64_t n = s->out->decided;
	int64_t sum = 0;

	if (n == 0)
		return;
	for (int64_t i = 0; i < n; i++)
		sum += s->latencies[i];
	s->out->mean_us = sum / n;
	qsort(s->latencies, (size_t)n, sizeof(*s->latencies), by_time);
	s->out->p99_us = s->latencies[n - n / 100 - 1];
}

int
estimate_run(const struct estimate_input *in, struct estimate *out)
{
	struct sim *s = malloc(sizeof(*s));
	int64_t *latencies = calloc(in->operations, sizeof(*latencies));

	assert(in->servers >= 1 && in->servers <= POLICY_MAX_SERVERS);
	assert(in->rtt_us >= 0 && in->rtt_us <= ESTIMATE_MAX_RTT_US);
	assert(in->loss >= 0 && in->loss <= 1);
	assert(
	    in->operations >= 1 && in->operations <= ESTIMATE_MAX_OPERATIONS);
	if (s == NULL || latencies == NULL) {
		free(s);
		free(latencies);
		return -1;
	}
	s->in = in;
	s->out = out;
	s->random = in->seed;
	s->latencies = latencies;
	*out = (struct estimate){.operations = in->operations};
	for (uint32_t i = 0; i < in->operations; i++)
		run(s);
	summarise(s);
	free(latencies);
	free(s);
	return 0;
}
