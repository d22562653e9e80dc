/*
 * What the files of the tenant module share: tenant.c (life, state, reports),
 * tenant_start.c and tenant_op.c (operations), tenant_turn.c (when they are
 * judged), tenant_send.c (their datagrams out), tenant_receive.c (datagrams
 * in), tenant_address.c (which addresses) and tenant_say.c (the log). Nobody
 * else includes this.
 */
#ifndef DAEMON_TENANT_PRIVATE_H
#define DAEMON_TENANT_PRIVATE_H

#include "daemon/core/errorrate.h"
#include "daemon/core/heap.h"
#include "daemon/core/slab.h"
#include "daemon/core/table.h"
#include "daemon/tenant.h"
#include "proto/nonce.h"
#include "proto/packet.h"

/* What a small operation slot holds; most requests are small. */
#define OP_SMALL_BLOCKS   4
#define OP_SMALL_DATAGRAM 256

/* A PDU as received, decrypted: no answer of the protocol is longer. */
#define TENANT_SCRATCH 2048

/* token.serial of sends that decide nothing. */
#define SEND_DELIVERY UINT64_MAX

/* Enough for the number of an address. */
#define TENANT_ADDR_BITS 3

/* Decided operations that still listen for the servers that are missing. */
#define TENANT_MAX_LATE 16384

/*
 * With tens of thousands in flight an operation is long out of the processor's
 * caches when its answer comes, so what is used then stands together, in front
 * of the rest, and is kept small.
 */
struct tenant_op {
	struct table_entry entry; /* keyed by the unique id */
	struct heap_entry timer;
	struct policy_op policy;
	struct tenant *tenant;
	struct members *members; /* the snapshot, one reference */
	tenant_done_fn *done;
	void *arg;
	struct tenant_op *next_dirty;
	struct transport_port *port; /* of its first transmission; held */
	uint64_t heard;    /* servers whose valid answer came, late or not */
	uint64_t timely;   /* of these, before the horizon */
	uint64_t asked;    /* servers that the kernel took a datagram for */
	uint64_t repeated; /* whose answer tells no round trip */
	uint64_t stamp;    /* of the request; 0: servers may know another one */
	int64_t sent_at;   /* first transmission; with port */
	uint16_t sending;  /* all sends without a result: keep the slot */
	uint16_t owed;     /* copies sent less answers that came */
	uint8_t round;     /* of the transmission that awaiting counts */
	uint8_t awaiting;  /* its sends without a result */
	uint8_t guard_count;
	uint8_t resource_count;
	bool dirty; /* on the tenant's list */
	bool over;  /* done has run */
	bool late;  /* and it is kept to hear the rest */
	bool told;  /* note_silence() has run */
	bool large; /* which slab it came from */
	uint16_t datagram_len;
	uint64_t taken; /* targets that the kernel took in this round */
	uint64_t first[TENANT_ADDR_BITS]; /* addresses, by tenant_address.c */
	/* Guards, then resources; behind them, in this slot, the datagram. */
	struct tenant_block blocks[];
};

_Static_assert((POLICY_MAX_REPLAYS + 2) * POLICY_MAX_SERVERS <= UINT16_MAX &&
		   POLICY_MAX_SERVERS <= UINT8_MAX,
    "all sends of an operation are counted in few bits");

struct tenant {
	struct loop *loop;
	struct random_pool *random;
	const struct config_tenant *config;
	struct packet_key *key;
	struct nonce *nonce; /* NULL unless the key is AES */
	struct discovery *discovery;
	struct members *members; /* empty before the first snapshot */
	struct transport *transport;
	struct table in_flight; /* live operations and late ones */
	uint32_t live;
	struct heap timers;
	struct loop_timer *timer;
	int64_t armed;    /* POLICY_NEVER: not */
	uint32_t put_off; /* turns in a row that only read */
	int64_t now;      /* of the batch that is taken in; 0: none is */
	int64_t wall_at;  /* when the next was read */
	uint64_t wall_ms;
	struct slab small;
	struct slab large;
	uint32_t max_ops;
	struct tenant_op *dirty; /* to be judged */
	struct loop_task judge;  /* when no callback of ours will do it */
	loop_fn *ready_fn;
	void *ready_arg;
	bool closing;
	struct {
		struct loop_timer *timer; /* set while it is */
		int64_t last;             /* operation without an answer */
		uint32_t row;             /* of these, while it is not */
		bool is;
	} silent; /* tenant_silent.c */
	struct tenant_counters counters;
	struct errorrate silence; /* paces the log of silence */
	uint64_t silence_unsaid;
	bool silence_told;          /* and its end is not */
	struct errorrate suspicion; /* and that of suspicions */
	uint64_t suspicion_unsaid;
	struct errorrate server_lines; /* and that of silent servers */
	struct clock_watch clock;
	struct pace_path path;
	struct peers peers; /* as members->list */
	uint8_t scratch[TENANT_SCRATCH];
};

/* Fills the datagram of a PDU, stamped with the wall clock. Returns 0,
 * RLA_ETOOBIG or RLA_ECRYPTO. */
int tenant_seal(struct tenant *t, const uint8_t *unique_id, uint64_t stamp,
    const uint8_t *pdu, size_t pdu_len, uint8_t *out, size_t cap,
    size_t *out_len);
/* loop_now(), read once for all datagrams of a batch and what they decide. */
int64_t tenant_now(const struct tenant *t);
/* The wall clock, read once for each now, which is the present time. */
uint64_t tenant_wall_ms(struct tenant *t, int64_t now);
/* The record of a server of the operation's snapshot, or NULL when it has
 * departed since. */
struct peer *tenant_op_peer(struct tenant_op *op, uint32_t server);
/* tenant_address.c; servers are places in the operation's snapshot or, for
 * those of a tenant, in the current one. */
/* At the first transmission. */
void tenant_address_begin(struct tenant_op *op);
/* Which address has its turn in that round. */
uint32_t tenant_address(
    const struct tenant_op *op, uint32_t server, uint32_t round);
/* By the kernel or by ICMP. */
void tenant_address_refused(struct tenant *t, uint32_t server, uint32_t addr);
/* It did not answer the operation in time. */
void tenant_address_silent(struct tenant_op *op, uint32_t server);
/* It did, in the operation's current round. */
void tenant_address_answered(struct tenant_op *op, uint32_t server);
/* After peers_follow(): what was learnt is of the same endpoints. */
void tenant_address_follow(
    struct tenant *t, const struct members *old, const struct members *next);

/* tenant_send.c */
void tenant_op_transmit(
    struct tenant_op *op, uint64_t targets, uint32_t round, int64_t now);
void tenant_op_deliver(struct tenant_op *op, uint64_t targets);
bool tenant_wanted(void *arg, struct udp_token token);
void tenant_sent(void *arg, struct udp_token token, int error);
void tenant_refused(void *arg, const struct endpoint *to, int error);

/* tenant_op.c */
void tenant_op_mark(struct tenant_op *op);
/* Judges one operation and carries out what the policy wants. */
void tenant_op_pump(struct tenant_op *op, int64_t now);
/* The same for one that was judged at now already. */
void tenant_op_act(struct tenant_op *op, int64_t now);
/* To be judged when the callbacks of this turn are over. */
void tenant_op_defer(struct tenant_op *op);
/* Gives the slot back once nothing refers to it any more. */
void tenant_op_release(struct tenant_op *op);
/* Ends the listening of a late operation. */
void tenant_op_bury(struct tenant_op *op);
/* The sealed request. */
uint8_t *tenant_op_datagram(struct tenant_op *op);
/* Is there an answer to come, if nothing is lost? Servers answer each copy;
 * what the network doubled may hide the answer of another server in the count,
 * which is why they are looked at one by one, too. */
bool tenant_op_owed(const struct tenant_op *op);
/* All was heard that will be: notes who was silent. */
void tenant_op_conclude(struct tenant_op *op, int64_t now);
/* Ends the listening of a late operation that nothing is owed any more, which
 * may be gone then. Returns whether it did. */
bool tenant_op_settle(struct tenant_op *op);
/* The timer of a late operation rings: to the horizon, when the deadline of its
 * round woke it. The operation may be gone then. */
void tenant_op_hear_on(struct tenant_op *op, int64_t now);
/* Drops every operation without its callback; for the tenant's end. */
void tenant_op_drop_all(struct tenant *t);
/* A live or a late operation. */
struct tenant_op *tenant_op_find(struct tenant *t, const uint8_t unique_id[16]);

/* tenant_turn.c */
/* Sees to it that the timer is not later than the first that is due. */
void tenant_rearm(struct tenant *t);
void tenant_judge(void *arg);  /* everything dirty */
void tenant_expire(void *arg); /* the timer */

/* tenant_receive.c */
void tenant_receive(void *arg, const uint8_t *bytes, size_t len, bool truncated,
    const struct endpoint *from, bool current);

/* tenant_silent.c */
/* No server answered an operation until its horizon, or could be sent to. */
void tenant_silent_more(struct tenant *t, int64_t now);
/* One answered in time, or they are others now. */
void tenant_silent_over(struct tenant *t);
void tenant_silent_forget(void *arg); /* the timer */

/* tenant_say.c: lines of the log, paced; call them as often as it happens. */
/* No server answered an operation, or could be sent to. */
void tenant_say_silence(struct tenant *t);
/* This server did not answer an operation that another one did. */
void tenant_say_unanswered(struct tenant *t, struct peer *peer);
/* It answered in time; peer may be NULL: it has departed. */
void tenant_say_answered(struct tenant *t, struct peer *peer);
/* A suspicion was raised or cleared; counted, too. */
void tenant_say_suspect(struct tenant *t, const struct peer *peer, bool is);

#endif
