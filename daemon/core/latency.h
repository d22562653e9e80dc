/*
 * How long something took, for ever counted: a histogram of fixed buckets,
 * which a reader may subtract from an earlier look at it. Small: 136 bytes, and
 * noting a sample is a few comparisons and two additions. Pure. All zero is an
 * empty one. (core/histogram.h is the finer one, of the last minutes.)
 */
#ifndef DAEMON_CORE_LATENCY_H
#define DAEMON_CORE_LATENCY_H

#include <stdint.h>

/* X(bound in us, the same in seconds as text), ascending. */
#define LATENCY_BOUNDS(X) \
	X(250, "0.00025") \
	X(500, "0.0005")  \
	X(1000, "0.001")  \
	X(2500, "0.0025") \
	X(5000, "0.005")  \
	X(10000, "0.01")  \
	X(25000, "0.025") \
	X(50000, "0.05")  \
	X(100000, "0.1")  \
	X(250000, "0.25") \
	X(500000, "0.5")  \
	X(1000000, "1")   \
	X(2500000, "2.5") \
	X(5000000, "5")   \
	X(10000000, "10")

#define LATENCY_ONE(us, text) +1
enum { LATENCY_BUCKETS = LATENCY_BOUNDS(LATENCY_ONE) };

struct latency {
	uint64_t counts[LATENCY_BUCKETS + 1]; /* the last: above all bounds */
	uint64_t sum_us;
};

/* The text of a bound: how much falls into the bucket at most. */
extern const char *const latency_bound_texts[LATENCY_BUCKETS];

/* Negative ones count as 0: time that was read in another order. */
void latency_note(struct latency *l, int64_t us);

#endif
