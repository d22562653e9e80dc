/*
 * A tenant's life: key, sockets, discovery, what is known of its servers, and
 * latency reports, which are sent once and forgotten.
 */
#include "daemon/tenant_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/err.h"

/* Of lines in the log: after the first ones ten seconds, doubling to ten
 * minutes. */
#define LINES_MIN       INT64_C(10000000)
#define LINES_MAX       INT64_C(600000000)
#define SUSPICION_BURST 8
#define SERVERS_BURST   8

static const struct transport_hooks hooks = {
    .datagram = tenant_receive,
    .batch = tenant_judge,
    .wanted = tenant_wanted,
    .sent = tenant_sent,
    .refused = tenant_refused,
};

int
tenant_seal(struct tenant *t, const uint8_t *unique_id, uint64_t stamp,
    const uint8_t *pdu, size_t pdu_len, uint8_t *out, size_t cap,
    size_t *out_len)
{
	struct packet_head head = {
	    .key_id = t->config->cred.key_id,
	    .time_stamp = stamp,
	};
	uint8_t nonce[NONCE_LEN] = {0};
	int err;

	memcpy(head.unique_id, unique_id, sizeof(head.unique_id));
	if (t->nonce != NULL) {
		err = nonce_next(t->nonce, nonce);
		if (err != 0)
			return err;
	}
	return packet_seal(
	    t->key, &head, nonce, pdu, pdu_len, out, cap, out_len);
}

int64_t
tenant_now(const struct tenant *t)
{
	return t->now != 0 ? t->now : loop_now();
}

uint64_t
tenant_wall_ms(struct tenant *t, int64_t now)
{
	if (t->wall_at != now) {
		t->wall_at = now;
		t->wall_ms = loop_wall_ms();
	}
	return t->wall_ms;
}

static void
install(void *arg, struct members *members)
{
	struct tenant *t = arg;
	bool was = tenant_ready(t);

	peers_follow(&t->peers, members);
	tenant_address_follow(t, t->members, members);
	members_unref(t->members);
	t->members = members_ref(members);
	tenant_silent_over(t);
	if (t->ready_fn != NULL && was != tenant_ready(t))
		t->ready_fn(t->ready_arg);
}

static int
open_key(struct tenant *t, char err[TENANT_ERR_MAX])
{
	t->key = packet_key_new(&t->config->cred);
	if (t->key == NULL) {
		snprintf(err, TENANT_ERR_MAX,
		    "tenant %s: the crypto library lacks what the key needs",
		    t->config->name);
		return -1;
	}
	if (t->config->cred.auth != AUTH_AES)
		return 0;
	t->nonce = nonce_new();
	if (t->nonce == NULL) {
		snprintf(err, TENANT_ERR_MAX, "tenant %s: no nonces: %s",
		    t->config->name, strerror(errno));
		return -1;
	}
	return 0;
}

static int
open_sockets(struct tenant *t, char err[TENANT_ERR_MAX])
{
	t->transport = transport_new(t->loop, &hooks, t);
	if (t->transport != NULL)
		return 0;
	snprintf(err, TENANT_ERR_MAX, "tenant %s: no UDP socket: %s",
	    t->config->name, strerror(errno));
	return -1;
}

static int
open_tables(struct tenant *t)
{
	uint64_t seed[2];

	if (random_bytes(t->random, seed, sizeof(seed)) != 0)
		return -1;
	table_init(&t->in_flight, seed);
	t->members = members_build(NULL, 0, NULL, NULL);
	t->timer = loop_timer_new(t->loop, tenant_expire, t);
	t->silent.timer = loop_timer_new(t->loop, tenant_silent_forget, t);
	if (t->members == NULL || t->timer == NULL || t->silent.timer == NULL)
		return -1;
	t->discovery = discovery_new(t->loop, t->random, t->config, install, t);
	return t->discovery != NULL ? 0 : -1;
}

struct tenant *
tenant_new(struct loop *loop, struct random_pool *random,
    const struct config_tenant *config, uint32_t max_ops,
    char err[TENANT_ERR_MAX])
{
	struct tenant *t = calloc(1, sizeof(*t));

	snprintf(err, TENANT_ERR_MAX, "tenant %s: out of memory or randomness",
	    config->name);
	if (t == NULL)
		return NULL;
	t->loop = loop;
	t->random = random;
	t->config = config;
	t->max_ops = max_ops;
	t->armed = POLICY_NEVER;
	heap_init(&t->timers);
	pace_path_init(&t->path, loop_now());
	errorrate_init(&t->silence, 0, LINES_MIN, LINES_MAX);
	errorrate_init(&t->suspicion, SUSPICION_BURST, LINES_MIN, LINES_MAX);
	errorrate_init(&t->server_lines, SERVERS_BURST, LINES_MIN, LINES_MAX);
	loop_task_init(&t->judge, tenant_judge, t);
	slab_init(&t->small,
	    sizeof(struct tenant_op) +
		OP_SMALL_BLOCKS * sizeof(struct tenant_block) +
		OP_SMALL_DATAGRAM,
	    64, UINT32_MAX); /* max_ops bounds them */
	slab_init(&t->large,
	    sizeof(struct tenant_op) +
		PDU_MAX_BLOCKS * sizeof(struct tenant_block) + PACKET_MAX,
	    8, UINT32_MAX);
	if (open_key(t, err) != 0 || open_sockets(t, err) != 0 ||
	    open_tables(t) != 0) {
		tenant_free(t);
		return NULL;
	}
	return t;
}

void
tenant_free(struct tenant *t)
{
	if (t == NULL)
		return;
	discovery_free(t->discovery);
	transport_free(t->transport); /* answers for what is queued */
	loop_cancel(t->loop, &t->judge);
	loop_timer_free(t->timer);
	loop_timer_free(t->silent.timer);
	tenant_op_drop_all(t);
	members_unref(t->members);
	table_fini(&t->in_flight);
	heap_fini(&t->timers);
	slab_fini(&t->small);
	slab_fini(&t->large);
	packet_key_free(t->key);
	nonce_free(t->nonce);
	free(t);
}

/* Is an answer to the one a sign that servers answer the other one as well? */
static bool
same_client(const struct config_tenant *a, const struct config_tenant *b)
{
	return a->profile == b->profile && a->cred.auth == b->cred.auth &&
	       a->cred.key_id == b->cred.key_id &&
	       memcmp(a->cred.secret, b->cred.secret, sizeof(a->cred.secret)) ==
		   0;
}

/* Both are of one snapshot. Counts begin anew, as those of the tenant do. */
static void
inherit_peers(struct peers *to, const struct peers *from, bool heard)
{
	struct peer *peer;

	for (uint32_t i = 0; i < from->count; i++) {
		peer = &to->list[i];
		peer->first_addr = from->list[i].first_addr;
		peer->suspect = from->list[i].suspect;
		peer->silence_told = from->list[i].silence_told;
		if (!heard)
			continue;
		peer->last_answer = from->list[i].last_answer;
		peer->last_in_time = from->list[i].last_in_time;
		peer->clock = from->list[i].clock;
	}
	if (heard)
		to->last_answer = from->last_answer;
}

void
tenant_inherit(struct tenant *t, const struct tenant *other)
{
	discovery_known(t->discovery, other->members);
	install(t, other->members);
	inherit_peers(
	    &t->peers, &other->peers, same_client(t->config, other->config));
	t->clock = other->clock;
	t->silence_told = other->silence_told;
}

void
tenant_limit(struct tenant *t, uint32_t max_ops)
{
	t->max_ops = max_ops;
}

void
tenant_on_ready(struct tenant *t, loop_fn *fn, void *arg)
{
	t->ready_fn = fn;
	t->ready_arg = arg;
}

bool
tenant_ready(const struct tenant *t)
{
	return t->members->count > 0;
}

/*
 * To the server's first address that has a socket. Each datagram of a report
 * has a unique id of its own. *sent counts it.
 */
static int
report_to(struct tenant *t, uint32_t server, const uint8_t *pdu, size_t pdu_len,
    uint32_t *sent)
{
	const struct member *m = &t->members->list[server];
	const struct peer *peer = &t->peers.list[server];
	uint8_t datagram[PACKET_MAX], id[PACKET_UNIQUE_LEN];
	struct udp_token token = {.serial = m->server_id};
	/* A sample that waits longer for the kernel is no news. */
	int64_t expires = loop_now() + t->config->plan.horizon_us;
	uint32_t i;
	size_t len;
	int err;

	err = random_uuid(t->random, id);
	if (err == 0)
		err = tenant_seal(t, id, loop_wall_ms(), pdu, pdu_len, datagram,
		    sizeof(datagram), &len);
	for (i = 0; i < m->addr_count && err == 0; i++) {
		token.index = (peer->first_addr + i) % m->addr_count;
		if (transport_send(t->transport, &m->addrs[token.index],
			datagram, len, expires, token) != 0)
			continue;
		(*sent)++;
		break;
	}
	return err;
}

int
tenant_report(struct tenant *t, const struct pdu_report *report, uint32_t *sent)
{
	uint8_t pdu[PACKET_MAX];
	size_t pdu_len;
	uint32_t i;
	int err;

	*sent = 0;
	if (t->members->count == 0) {
		discovery_force(t->discovery);
		return RLA_ENOENT;
	}
	err = pdu_encode_report(
	    t->config->profile, report, pdu, sizeof(pdu), &pdu_len);
	for (i = 0; i < t->members->count && err == 0; i++)
		err = report_to(t, i, pdu, pdu_len, sent);
	if (*sent > 0)
		return 0;
	return err != 0 ? err : RLA_ESYS;
}

bool
tenant_heard(const struct tenant *t)
{
	return t->peers.last_answer > 0;
}

const struct config_tenant *
tenant_config(const struct tenant *t)
{
	return t->config;
}

const struct tenant_counters *
tenant_counters(const struct tenant *t)
{
	return &t->counters;
}

const struct discovery *
tenant_discovery(const struct tenant *t)
{
	return t->discovery;
}

uint32_t
tenant_inflight(const struct tenant *t)
{
	return t->live;
}

const struct members *
tenant_members(const struct tenant *t)
{
	return t->members;
}

const struct peers *
tenant_peers(const struct tenant *t)
{
	return &t->peers;
}

const struct clock_watch *
tenant_clock(const struct tenant *t)
{
	return &t->clock;
}

const struct transport *
tenant_transport(const struct tenant *t)
{
	return t->transport;
}

bool
tenant_idle(const struct tenant *t)
{
	return t->in_flight.count == 0 && transport_idle(t->transport);
}

void
tenant_close(struct tenant *t)
{
	t->closing = true;
	discovery_stop(t->discovery);
	transport_stay(t->transport);
}

/* While no server is known, discovery is what counts. */
static enum tenant_state
unready_state(const struct tenant *t)
{
	switch (discovery_state(t->discovery)) {
	case DISCOVERY_UNAVAILABLE: /* until the retry timer */
		return discovery_next(t->discovery) == POLICY_NEVER
			   ? TENANT_DISCOVERING
			   : TENANT_UNAVAILABLE;
	case DISCOVERY_STATIC: /* about to be reported */
	case DISCOVERY_RUNNING:
	case DISCOVERY_READY:
		return TENANT_DISCOVERING;
	}
	return TENANT_DISCOVERING;
}

enum tenant_state
tenant_state(const struct tenant *t)
{
	if (t->closing)
		return TENANT_CLOSING;
	if (!tenant_ready(t))
		return unready_state(t);
	switch (transport_state(t->transport)) {
	case TRANSPORT_READY:
		return TENANT_READY;
	case TRANSPORT_REBIND_PENDING:
		return TENANT_REBIND_PENDING;
	case TRANSPORT_REBINDING:
		return TENANT_REBINDING;
	}
	return TENANT_READY;
}

const char *
tenant_state_name(enum tenant_state state)
{
	switch (state) {
	case TENANT_DISCOVERING:
		return "Discovering";
	case TENANT_READY:
		return "Ready";
	case TENANT_UNAVAILABLE:
		return "Unavailable";
	case TENANT_REBIND_PENDING:
		return "RebindPending";
	case TENANT_REBINDING:
		return "Rebinding";
	case TENANT_CLOSING:
		return "Closing";
	}
	return "unknown";
}
