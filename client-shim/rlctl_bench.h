/* What rlctl bench was asked for, and how it prints what came of it. */
#ifndef RLCTL_BENCH_H
#define RLCTL_BENCH_H

#include <stdint.h>

#include "client-shim/load.h"
#include "client-shim/rlctl.h"

struct rlctl_bench {
	struct load_options load;
	uint64_t checks;     /* 0: bounded by the time alone */
	int64_t duration_us; /* 0: bounded by the number alone */
	uint64_t warmup;
	int interrupted;
	const char *error; /* that ended it; NULL: none */
};

/* To stdout, in the form that was asked for. */
void rlctl_bench_print(const struct rlctl *ctl, const struct rlctl_bench *bench,
    const struct load *load);

#endif
