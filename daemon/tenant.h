/*
 * One tenant: its key, membership, sockets and operations. Turns the actions
 * of the core policy into datagrams, and datagrams into its events. Every
 * operation completes exactly once, through its done callback.
 */
#ifndef DAEMON_TENANT_H
#define DAEMON_TENANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/config.h"
#include "daemon/clock.h"
#include "daemon/core/counters.h"
#include "daemon/core/pace.h"
#include "daemon/core/peer.h"
#include "daemon/core/policy.h"
#include "daemon/discovery.h"
#include "daemon/io/loop.h"
#include "daemon/transport.h"
#include "proto/pdu.h"
#include "proto/random.h"

#define TENANT_ERR_MAX 256

/* How long to listen for the rest after a decision at the horizon. */
#define TENANT_LISTEN_US 100000

struct tenant;
struct tenant_op;

/* What the selected server said of one block. */
struct tenant_block {
	uint8_t id[ID_LEN]; /* as asked */
	uint32_t first;     /* guard: threshold in ms; resource: actual rate */
	uint32_t second; /* guard: current latency in ms; resource: deficit */
};

struct tenant_result {
	enum policy_end end;
	uint32_t round;
	int64_t now;        /* when it was decided, loop_now() time */
	enum pace pace;     /* what its time tells of queues on the way */
	uint64_t server_id; /* with POLICY_SELECTED, like all below */
	bool guards_pass;
	bool resources_pass;
	size_t guard_count;
	size_t resource_count;
	const struct tenant_block *guards; /* borrowed for the call */
	const struct tenant_block *resources;
};

/* Once per operation; the operation is gone afterwards. */
typedef void tenant_done_fn(void *arg, const struct tenant_result *result);

/*
 * Opens the sockets and starts discovery. Borrows all but err for its life.
 * NULL with err set when no socket of any family can be had, the crypto
 * library lacks what the key needs, or memory is short.
 */
struct tenant *tenant_new(struct loop *loop, struct random_pool *random,
    const struct config_tenant *config, uint32_t max_ops,
    char err[TENANT_ERR_MAX]);
/*
 * Right after tenant_new(): the servers that another tenant knows are known to
 * this one, too, until its own discovery says otherwise. Both find them in the
 * same way (config_tenant_same_servers()). How they are reached goes along, and
 * if the key and the profile are the same, that they have answered, too.
 */
void tenant_inherit(struct tenant *tenant, const struct tenant *other);
/* Another cap on operations in flight; those over a lower one go on. */
void tenant_limit(struct tenant *tenant, uint32_t max_ops);
/*
 * Would tenant_free() lose nothing: no operation in flight or still listening
 * for late answers, no datagram that waits for the kernel? So it is, while the
 * loop runs, TENANT_LISTEN_US after the horizon of the last operation, or the
 * horizon's length after the last report.
 */
bool tenant_idle(const struct tenant *tenant);
/* Operations in flight go without their callback. Takes NULL. */
void tenant_free(struct tenant *tenant);

/* fn runs when a decision becomes possible, or stops to be. */
void tenant_on_ready(struct tenant *tenant, loop_fn *fn, void *arg);
/* Is a usable server known? */
bool tenant_ready(const struct tenant *tenant);
/* And do they answer, as far as operations of late tell? */
bool tenant_decides(const struct tenant *tenant);

struct tenant_check {
	struct pdu_rate *rate;    /* borrowed; its dedup_ttl_ms is set here */
	const uint8_t *unique_id; /* UUIDv4, 16 bytes */
	bool resent;      /* it may have been asked before, by another agent */
	int64_t now;      /* loop_now(), read with what asks for it */
	int64_t start;    /* when the caller first asked, loop_now() time */
	int64_t deadline; /* absolute; POLICY_NEVER without one */
};

/*
 * Starts an operation. Returns 0 and sets *op before done can run, which may
 * be before this returns. On an error done does not run: RLA_EBUSY (the cap),
 * RLA_EINVAL (the unique id is in flight), RLA_ETOOBIG or RLA_ECRYPTO; then
 * nothing is sent.
 */
int tenant_check(struct tenant *tenant, const struct tenant_check *check,
    tenant_done_fn *done, void *arg, struct tenant_op **op);
/* The arg of the operation in flight with this unique id, or NULL. */
void *tenant_find(struct tenant *tenant, const uint8_t unique_id[16]);
/* Completes it as cancelled, unless its decision is being made already. */
void tenant_cancel(struct tenant_op *op);

/* Sends the samples once to every known server. *sent counts the servers.
 * Returns 0, RLA_ENOENT (no server), RLA_ETOOBIG, RLA_ECRYPTO or RLA_ESYS. */
int tenant_report(
    struct tenant *tenant, const struct pdu_report *report, uint32_t *sent);

/* Has any server ever answered, however late? */
bool tenant_heard(const struct tenant *tenant);

const struct config_tenant *tenant_config(const struct tenant *tenant);
const struct tenant_counters *tenant_counters(const struct tenant *tenant);
const struct discovery *tenant_discovery(const struct tenant *tenant);
/* Operations that are not decided yet. */
uint32_t tenant_inflight(const struct tenant *tenant);
/* The current snapshot, empty before the first. Borrowed. */
const struct members *tenant_members(const struct tenant *tenant);

/* In the order of that snapshot. Borrowed, as are the next two. */
const struct peers *tenant_peers(const struct tenant *tenant);
const struct clock_watch *tenant_clock(const struct tenant *tenant);
const struct transport *tenant_transport(const struct tenant *tenant);

/* The transport states of section 6.1; before the first, there is no tenant,
 * and after the last, none any more. */
enum tenant_state {
	TENANT_DISCOVERING,
	TENANT_READY,
	TENANT_UNAVAILABLE,
	TENANT_REBIND_PENDING,
	TENANT_REBINDING,
	TENANT_CLOSING,
};
enum tenant_state tenant_state(const struct tenant *tenant);
/* "Discovering", "Ready", ... */
const char *tenant_state_name(enum tenant_state state);
/* The caller starts no operation from here on; what is in flight goes on, over
 * the port and to the servers that there are: DNS is asked no more. */
void tenant_close(struct tenant *tenant);

#endif
