/*
 * Where a benchmark runs: a temporary folder with a fresh key, and the
 * programs under test on loopback, at ports and paths of their own. Owns
 * every process that it started and ends each by its own pid, whatever
 * happens: lab_close() does it, and the kernel when the bench itself dies.
 */
#ifndef TESTS_BENCH_LAB_H
#define TESTS_BENCH_LAB_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "client-shim/rlshim.h"
#include "proto/credential.h"

/* No wait for another process is longer. */
#define LAB_PATIENCE_MS 20000

/*
 * The agent's rule: one resource, which always has a token left. Names of
 * keys are LAB_KEY_LEN characters.
 */
#define LAB_RULE      "bench"
#define LAB_BUCKET    "bench:" /* the key follows */
#define LAB_KEY_LEN   4
#define LAB_KEYS      1000
#define LAB_WINDOW_MS 1000
#define LAB_LIMIT     1000000000
#define LAB_TTL_MS    1800 /* the horizon: three units of LAB_UNIT_MS */
#define LAB_UNIT_MS   600

#define LAB_MAX_PROCESSES 16
#define LAB_MAX_SERVERS   3

struct lab {
	char dir[64];
	char key_path[96];
	struct credential cred;
	unsigned started; /* numbers the files */
	size_t count;
	pid_t pids[LAB_MAX_PROCESSES];
};

struct lab_wanted {
	unsigned servers;  /* 1 to LAB_MAX_SERVERS */
	unsigned delay_ms; /* before each answer */
	bool oldest_dead;  /* it ignores what it gets */
};

struct lab_server {
	uint64_t id;
	uint16_t port; /* of 127.0.0.1 */
};

struct lab_sandbox {
	pid_t pid;
	unsigned count;
	struct lab_server servers[LAB_MAX_SERVERS]; /* oldest first */
};

/* What is special about an agent; all zero: nothing. */
struct lab_special {
	const char *preload;    /* a library */
	const char *counts;     /* and the file that it gets in BENCH_COUNTS */
	unsigned unit_ms;       /* 0: LAB_UNIT_MS */
	unsigned suspect_after; /* of its policy */
};

struct lab_agent {
	pid_t pid;
	char socket[96];
	struct rl_client *client; /* connected once */
};

/* Prints one line on stderr, with errno's text unless that is 0. Returns -1. */
int lab_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* SIGINT, SIGTERM and SIGHUP only set a flag: then every wait ends. */
void lab_catch_signals(void);
int lab_signal(void); /* the number, 0: none came */

/* All return 0 or -1, having said why. */
int lab_open(struct lab *lab);
/* Ends what runs, removes the folder. */
void lab_close(struct lab *lab);
/* Returns when it is up. */
int lab_start_sandbox(
    struct lab *lab, const struct lab_wanted *wanted, struct lab_sandbox *out);
/*
 * An agent that knows this sandbox by its addresses, with limits that no row
 * meets. Returns when it can decide.
 */
int lab_start_agent(struct lab *lab, const struct lab_sandbox *sandbox,
    const struct lab_special *special, struct lab_agent *out);
void lab_stop_agent(struct lab *lab, struct lab_agent *agent);
/* A child with these descriptors for stdout and stderr, and set, or NULL, in
 * its environment. */
pid_t lab_spawn(
    struct lab *lab, char *const argv[], char *const set[], int out, int err);
/*
 * A program with its stderr in a pipe, whose end *err is the caller's. One
 * that cannot be executed writes why and ends with status 127.
 */
pid_t lab_start_tool(struct lab *lab, char *const argv[], int *err);
/* Sends the signal, SIGKILL for those that hold nothing, and waits. */
void lab_end(struct lab *lab, pid_t pid, int number);
/* A line without its end. Returns its length, 0 at the end of the file. */
ssize_t lab_read_line(int fd, char *line, size_t cap);
/* The name of key number n, without a NUL. */
void lab_key(unsigned n, char out[LAB_KEY_LEN]);

#endif
