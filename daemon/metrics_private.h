/*
 * What the files of the metrics module share: metrics.c (the whole, the agent
 * itself), metrics_rules.c, metrics_tenants.c (and their servers),
 * metrics_limiters.c, metrics_process.c, metrics_sources.c (which counter is
 * which metric) and metrics_write.c (the format). Nobody else includes this.
 */
#ifndef DAEMON_METRICS_PRIVATE_H
#define DAEMON_METRICS_PRIVATE_H

#include "daemon/metrics.h"
#include "daemon/metrics_sources.h"
#include "daemon/metrics_write.h"

void metrics_of_rules(struct metrics_writer *w, const struct agent *a);
/* All that has the label tenant, save rules. */
void metrics_of_tenants(
    struct metrics_writer *w, const struct agent *a, int64_t now);
void metrics_of_limiters(
    struct metrics_writer *w, const struct agent *a, int64_t now);
void metrics_of_process(struct metrics_writer *w, const struct agent *a);
/* One by one, where the kernel does not tell their number; -1: not known. */
int64_t metrics_count_descriptors(void);

#endif
