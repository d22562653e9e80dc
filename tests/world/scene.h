/*
 * What a script plays on: one real tenant, the servers of its world, and the
 * operations that were asked of it. Whatever the script expects, every
 * datagram that leaves is opened as a server would, and must keep the rules
 * that hold for all (scene_watch.c).
 */
#ifndef TESTS_WORLD_SCENE_H
#define TESTS_WORLD_SCENE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/tenant.h"
#include "proto/nonce.h"
#include "proto/packet.h"
#include "tests/world/words.h"

#define SCENE_SERVERS  8 /* ids SCENE_FIRST_ID and so on, oldest first */
#define SCENE_FIRST_ID 101
#define SCENE_KEY_ID   77
#define SCENE_KEYS     4 /* ids SCENE_KEY_ID and so on */
#define SCENE_TENANTS  8 /* one after the other */
#define SCENE_OPS      512
#define SCENE_NAME_LEN 16
#define SCENE_SENT     4096

/* How an operation's caller goes on inside its completion. */
enum scene_then { THEN_NOTHING, THEN_REPORT, THEN_CHECK };

struct scene;

struct scene_op {
	struct scene *scene;
	char name[SCENE_NAME_LEN];
	uint8_t id[PACKET_UNIQUE_LEN];
	struct pdu_rate rate; /* as asked */
	int64_t start;        /* loop_now() time */
	uint64_t stamp;       /* wall time of its encoding */
	uint64_t members;     /* bits of servers */
	unsigned int key;     /* that it was asked under */
	struct tenant_op *op;
	int error;       /* of tenant_check() */
	bool error_told; /* the script expects it */

	uint8_t first[PACKET_MAX]; /* its datagram */
	size_t first_len;
	uint32_t port[SCENE_SERVERS];  /* that its last request came from */
	uint32_t addr[SCENE_SERVERS];  /* and the address that it came to */
	uint64_t heard[SCENE_SERVERS]; /* event of its first valid answer */
	unsigned int calls;            /* of done */
	bool calls_told; /* the script expects it, or that there is none */
	enum scene_then then;
	struct tenant_result result;
	int64_t at; /* clock of the completion */
};

/* One datagram that left, as a server sees it. */
struct scene_sent {
	struct scene_op *op; /* NULL: a report */
	unsigned int server;
	uint32_t addr;
	uint32_t port;
	bool fresh; /* the first of its operation; with op */
	bool taken; /* the script expects it */
};

struct scene {
	struct words w;
	bool timers_first; /* what the loop reports first in a turn */
	bool manual;       /* turns only when the script says so */

	struct policy policy;
	struct credential cred;
	struct config_tenant config;
	struct members_target targets[SCENE_SERVERS];

	struct loop *loop;
	struct random_pool *random;
	uint32_t max_ops;
	struct tenant *tenant; /* NULL: not started, or closed */
	struct tenant *old;    /* the one before, from a reload on; or NULL */
	struct config_tenant configs[SCENE_TENANTS]; /* that they borrow */
	unsigned int config_count;
	bool zone;                           /* their servers come from DNS */
	unsigned int key;                    /* of the tenant */
	struct packet_key *keys[SCENE_KEYS]; /* the servers' copies, or NULL */
	struct nonce *nonce;
	struct tenant_counters counted; /* at the last "expect counted" */
	struct tenant_counters old_counted;

	struct scene_op ops[SCENE_OPS];
	size_t op_count;
	struct scene_sent sent[SCENE_SENT];
	size_t sent_count;
	struct scene_op report; /* stands for the last report datagram */
	int report_error;
	uint32_t report_sent;
	unsigned int reports;
	bool reports_told;
	size_t report_samples;
	unsigned int expects;
};

void scene_init(struct scene *s, bool timers_first);
/* Frees everything; what is left over at the end is a fault. */
void scene_end(struct scene *s);
/* Whatever still runs goes, for good. */
void scene_fini(struct scene *s);

/* scene_setup.c: commands before the start. */
void scene_policy(struct scene *s);
void scene_addresses(struct scene *s);
void scene_members(struct scene *s);
void scene_dns(struct scene *s);
void scene_tenant(struct scene *s);

/* scene_tenant.c: tenants that come, take over and go. */
/* The first one. */
void scene_start(struct scene *s);
void scene_reload(struct scene *s);
void scene_drain(struct scene *s);
void scene_free(struct scene *s);
void scene_close(struct scene *s);
/* The key of that number. */
struct credential scene_cred(const struct scene *s, unsigned int key);
/* What follows is of the old tenant, until it is swapped again. */
void scene_swap(struct scene *s);

/* scene.c: commands on the running tenant. */
void scene_check(struct scene *s);
void scene_cancel(struct scene *s);
void scene_report(struct scene *s);
void scene_at(struct scene *s);
void scene_stall(struct scene *s);
/* One turn of the loop. */
void scene_turn(struct scene *s);
/* Turns until nothing is left to do at this time, unless they are manual. */
void scene_settle(struct scene *s);

/* What was done and not expected: a fault, once the clock moves on. */
void scene_nothing_left(struct scene *s);

/* The operation of the next word, or NULL and a fault. */
struct scene_op *scene_op(struct scene *s);
struct scene_op *scene_op_of(struct scene *s, const uint8_t *unique_id);
/* The server of the next word. */
unsigned int scene_server(struct scene *s);
/* "S" or "S/A"; *addr is MEMBERS_MAX_ADDRS when it has none. */
unsigned int scene_place(struct scene *s, uint32_t *addr);
/* A set of servers, bits. */
uint64_t scene_servers(struct scene *s);
/* A port: p1, p2 and so on. */
uint32_t scene_port(struct scene *s);
/* The name of an errno; 0 for "ok". */
int scene_error(struct scene *s);

/* scene_watch.c: takes in what has left since, and judges it. */
void scene_watch(struct scene *s);

#endif
