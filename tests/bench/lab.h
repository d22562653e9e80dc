/*
 * Where a benchmark runs: a temporary folder with a fresh key, and the
 * programs under test on loopback, at ports and paths of their own. Owns
 * every process that it started and ends each by its own pid, whatever
 * happens: lab_close() does it, and the kernel when the bench itself dies.
 */
#ifndef TESTS_BENCH_LAB_H
#define TESTS_BENCH_LAB_H

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "client-shim/rlshim.h"
#include "proto/credential.h"

/* No wait for another process is longer. */
#define LAB_PATIENCE_MS 20000

/* The agent's rule: one resource, which always has a token left. */
#define LAB_RULE      "bench"
#define LAB_BUCKET    "bench:" /* the key follows */
#define LAB_WINDOW_MS 1000
#define LAB_LIMIT     1000000000
#define LAB_TTL_MS    1800 /* the horizon: three units of 600 ms */

#define LAB_PATH          96
#define LAB_MAX_PROCESSES 64
#define LAB_MAX_SERVERS   5

struct lab {
	char dir[64];
	char key_path[LAB_PATH];
	char parts[PATH_MAX]; /* the folder of the bench's own programs */
	struct credential cred;
	unsigned started; /* numbers the files */
	size_t count;
	pid_t pids[LAB_MAX_PROCESSES];
};

struct lab_wanted {
	unsigned servers; /* 1 to LAB_MAX_SERVERS */
	unsigned hold_ms; /* before each answer */
	bool oldest_dead; /* it ignores what it gets */
};

struct lab_server {
	uint64_t id;
	uint16_t port; /* of 127.0.0.1 */
};

struct lab_responder {
	pid_t pid;
	unsigned count;
	struct lab_server servers[LAB_MAX_SERVERS]; /* oldest first */
};

struct lab_relay {
	pid_t pid;
	char socket[LAB_PATH];
};

/* What is special about an agent; all zero: nothing. */
struct lab_special {
	const char *preload; /* a library */
	const char *counts;  /* and the file that it gets in BENCH_COUNTS */
	const char *policy;  /* members of the object; NULL: LAB_POLICY */
};

/* A horizon of LAB_TTL_MS, whether what is lost is sent again or not. */
#define LAB_POLICY "\"unit_ms\": 600, \"completion_delivery\": false"
#define LAB_POLICY_NO_REPLAY                                 \
	"\"unit_ms\": 600, \"completion_delivery\": false, " \
	"\"replay_count\": 0, \"final_receive_units\": 2"
/* The default in all but the unit. */
#define LAB_POLICY_DELIVERY "\"unit_ms\": 600, \"completion_delivery\": true"

struct lab_agent {
	pid_t pid;
	char socket[LAB_PATH];
	struct rl_client *client; /* connected once */
};

/*
 * Prints one line on stderr, with errno's text unless that is 0; none once a
 * signal came, since what ends then has not failed. Returns -1.
 */
int lab_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* SIGINT, SIGTERM and SIGHUP only set a flag: then every wait ends. */
void lab_catch_signals(void);
int lab_signal(void); /* the number, 0: none came */

/* All return 0 or -1, having said why. */
int lab_open(struct lab *lab);
/* Ends what runs, removes the folder. */
void lab_close(struct lab *lab);
/* Each returns when its program is up. */
int lab_start_responder(struct lab *lab, const struct lab_wanted *wanted,
    struct lab_responder *out);
/* Relays to all servers of the responder; with gso over UDP GSO. */
int lab_start_relay(struct lab *lab, const struct lab_responder *responder,
    bool gso, struct lab_relay *out);
/* Checks that relays sent again so far, since a datagram was lost; their runs
 * have failed. */
unsigned lab_sent_again(const struct lab *lab);
/*
 * An agent that knows this responder by its addresses, with limits that no
 * row meets. It can decide when this returns.
 */
int lab_start_agent(struct lab *lab, const struct lab_responder *responder,
    const struct lab_special *special, struct lab_agent *out);
void lab_stop_agent(struct lab *lab, struct lab_agent *agent);
/* A file of the bench's own folder: tests/bench of the build. */
void lab_part(const struct lab *lab, const char *name, char out[PATH_MAX]);
/* A file in the lab's folder, for what a daemon writes. A descriptor or -1. */
int lab_log(struct lab *lab, char path[LAB_PATH]);
/* A child with these descriptors for stdout and stderr, and set, or NULL, in
 * its environment. */
pid_t lab_spawn(
    struct lab *lab, char *const argv[], char *const set[], int out, int err);
/*
 * A program with its stderr in a pipe, whose end *err is the caller's. One
 * that cannot be executed writes why and ends with status 127.
 */
pid_t lab_start_tool(struct lab *lab, char *const argv[], int *err);
/* Dead, or a signal came: then there is nothing to wait for. */
bool lab_is_over(pid_t pid);
/* Sends the signal, SIGKILL for those that hold nothing, and waits. */
void lab_end(struct lab *lab, pid_t pid, int number);
/* A line without its end. Returns its length, 0 at the end of the file. */
ssize_t lab_read_line(int fd, char *line, size_t cap);

#endif
