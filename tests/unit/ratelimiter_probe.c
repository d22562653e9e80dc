/*
 * A RateLimiter on a clock of its own, for check_ratelimiter_model.py and for
 * hands. Reads one call a line from stdin, and answers each acquire and try
 * with "granted WAIT" or "refused WAIT", in microseconds:
 *
 *   limiter RATE BURST NOW     a new one; 10^-12 a second, microseconds
 *   idle MICROSECONDS          the clock goes on
 *   acquire PERMITS
 *   try PERMITS MAX_WAIT
 *   rate RATE BURST
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/ratelimiter.h"

static struct ratelimiter limiter;
static int64_t now;

static void
acquire(int64_t permits, int64_t max_wait_us)
{
	int64_t wait;
	bool granted = ratelimiter_acquire(
	    &limiter, (uint32_t)permits, max_wait_us, now, &wait);

	printf("%s %" PRId64 "\n", granted ? "granted" : "refused", wait);
}

/* n numbers came with the word. */
static bool
call(const char *word, int n, const int64_t v[3])
{
	if (strcmp(word, "limiter") == 0 && n == 3)
		ratelimiter_init(&limiter, v[0], v[1], now = v[2]);
	else if (strcmp(word, "idle") == 0 && n == 1)
		now += v[0];
	else if (strcmp(word, "acquire") == 0 && n == 1)
		acquire(v[0], RATELIMITER_MAX_WAIT_US);
	else if (strcmp(word, "try") == 0 && n == 2)
		acquire(v[0], v[1]);
	else if (strcmp(word, "rate") == 0 && n == 2)
		ratelimiter_set(&limiter, v[0], v[1], now);
	else
		return false;
	return true;
}

int
main(void)
{
	char line[128], word[16];
	int64_t v[3];

	while (fgets(line, sizeof(line), stdin) != NULL) {
		int n = sscanf(line, "%15s %" SCNd64 " %" SCNd64 " %" SCNd64,
		    word, &v[0], &v[1], &v[2]);

		if (!call(word, n - 1, v)) {
			fprintf(stderr, "ratelimiter_probe: %s", line);
			return 1;
		}
	}
	return 0;
}
