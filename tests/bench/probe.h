/* What the kernel tells of another process. All return 0 or -1. */
#ifndef TESTS_BENCH_PROBE_H
#define TESTS_BENCH_PROBE_H

#include <sys/types.h>

/* Processor time used so far, user and system. */
int probe_cpu(pid_t pid, double *us);
/*
 * Anonymous memory in RAM, in bytes. Exact where /proc lets us read
 * smaps_rollup; else RssAnon, which may lag by some pages.
 */
int probe_memory(pid_t pid, double *bytes);

#endif
