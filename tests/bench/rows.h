/*
 * The rows of the table, in its order, and their goals. A group measures those
 * that stand together here; bench.c lists the groups.
 */
#ifndef TESTS_BENCH_ROWS_H
#define TESTS_BENCH_ROWS_H

#include "tests/bench/report.h"

enum row {
	/* rows_cpu.c */
	ROW_CPU_1X50,
	ROW_CPU_1X1000,
	ROW_CPU_50X1,
	ROW_CPU_1000X1,
	ROW_GSO_1X50,
	ROW_GSO_1X1000,
	ROW_GSO_50X1,
	ROW_GSO_1000X1,
	ROW_DATAGRAMS,
	/* rows_held.c */
	ROW_HELD_4000,
	ROW_HELD_60000,
	/* rows_keys.c */
	ROW_KEYS,
	/* rows_servers.c */
	ROW_SERVERS_3_50,
	ROW_SERVERS_3_1000,
	ROW_SERVERS_5_50,
	ROW_SERVERS_5_1000,
	ROW_DELIVERY_3_50,
	ROW_DELIVERY_3_1000,
	ROW_DELIVERY_5_50,
	ROW_DELIVERY_5_1000,
	/* rows_latency.c */
	ROW_P50,
	ROW_P99,
	/* rows_redis.c */
	ROW_REDIS_64X1,
	ROW_REDIS_64X16,
	ROW_REDIS_3_64X1,
	ROW_REDIS_3_64X16,
	/* rows_flood.c */
	ROW_FLOOD,
	/* rows_dead.c */
	ROW_DEAD,
	ROW_DEAD_SPECIFIED,
	/* rows_memory.c */
	ROW_MEMORY_IDLE,
	ROW_MEMORY_CONNECTION,
	ROW_MEMORY_OPERATION,
	/* rows_allocations.c */
	ROW_ALLOCATIONS,
	ROW_ALLOCATIONS_MILLION,
	/* rows_calls.c */
	ROW_CALLS,
	ROWS,
};

extern const struct report_goal row_goals[ROWS];

#endif
