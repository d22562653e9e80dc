/*
 * The rival: a redis-server over a Unix socket with a token bucket in Lua,
 * which is what people use who have no agent, and an application that asks
 * it. Its work is one EVALSHA a decision. Each answer must be "allowed";
 * anything else fails the run.
 */
#ifndef TESTS_BENCH_REDIS_H
#define TESTS_BENCH_REDIS_H

#include <stddef.h>
#include <sys/types.h>

#include "tests/bench/lab.h"

#define REDIS_SHA_LEN   40
#define REDIS_MAX_DEPTH 128
#define REDIS_MAX_KEYS  10000000

struct redis {
	pid_t pid;
	char socket[96];
	char sha[REDIS_SHA_LEN + 1]; /* of the script */
};

/*
 * Starts one in the lab's folder, which ends with the lab, without any
 * persistence. Returns 0; 1: there is no redis-server in PATH; -1, having
 * said why.
 */
int redis_start(struct lab *lab, struct redis *out);

struct redis_load;

/*
 * That many connections, asking for so many keys in turn. NULL, having said
 * why.
 */
struct redis_load *redis_open(
    const struct redis *redis, size_t connections, unsigned keys);
void redis_close(struct redis_load *l); /* takes NULL */
/*
 * Asks and collects that many decisions, with depth of them in flight on each
 * connection as long as there are enough. 0 or -1.
 */
int redis_run(struct redis_load *l, size_t depth, size_t decisions);

/* For the load: a blocking connection. -1 with errno. */
int redis_connect(const struct redis *redis);

#endif
