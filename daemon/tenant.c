/*
 * A tenant's life: key, sockets, discovery, the statistics of its servers, and
 * latency reports, which are sent once and forgotten.
 */
#include "daemon/tenant_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/err.h"

/* Of the log of silence: a line, then ten seconds, doubling to ten minutes. */
#define LINES_MIN INT64_C(10000000)
#define LINES_MAX INT64_C(600000000)

static const struct udp_hooks hooks = {
    .datagram = tenant_receive,
    .batch = tenant_judge,
    .sent = tenant_sent,
};

int
tenant_seal(struct tenant *t, const uint8_t *unique_id, const uint8_t *pdu,
    size_t pdu_len, uint8_t *out, size_t cap, size_t *out_len)
{
	struct packet_head head = {
	    .key_id = t->config->cred.key_id,
	    .time_stamp = loop_wall_ms(),
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

int
tenant_send(struct tenant *t, const struct endpoint *to, const uint8_t *bytes,
    size_t len, int64_t expires, struct udp_token token)
{
	struct udp *udp = to->family == 4 ? t->udp4 : t->udp6;

	if (udp == NULL)
		return EAFNOSUPPORT;
	udp_send(udp, to, bytes, len, expires, token);
	return 0;
}

struct tenant_server *
tenant_stat(struct tenant *t, uint64_t server_id)
{
	int at = members_find(t->members, server_id);

	return at >= 0 ? &t->stats[at] : NULL;
}

void
tenant_avoid(struct tenant *t, const struct member *m, uint32_t addr)
{
	struct tenant_server *s = tenant_stat(t, m->server_id);

	if (s != NULL && s->first_addr % m->addr_count == addr)
		s->first_addr = (addr + 1) % m->addr_count;
}

/* Statistics of the next snapshot's servers; those of departed ones go. */
static void
stats_follow(struct tenant *t, const struct members *members)
{
	struct tenant_server next[MEMBERS_MAX];
	const struct tenant_server *old;
	uint32_t i;

	memset(next, 0, sizeof(next));
	for (i = 0; i < members->count; i++) {
		old = tenant_stat(t, members->list[i].server_id);
		if (old != NULL)
			next[i] = *old;
		next[i].server_id = members->list[i].server_id;
	}
	memcpy(t->stats, next, sizeof(next));
}

static void
install(void *arg, struct members *members)
{
	struct tenant *t = arg;
	bool was = tenant_ready(t);

	stats_follow(t, members);
	members_unref(t->members);
	t->members = members_ref(members);
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
	int why;

	t->udp4 = udp_new(t->loop, 4, &hooks, t);
	why = errno;
	t->udp6 = udp_new(t->loop, 6, &hooks, t);
	if (t->udp4 != NULL || t->udp6 != NULL)
		return 0;
	snprintf(err, TENANT_ERR_MAX, "tenant %s: no UDP socket: %s",
	    t->config->name, strerror(why));
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
	if (t->members == NULL || t->timer == NULL)
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
	errorrate_init(&t->lines, 0, LINES_MIN, LINES_MAX);
	loop_task_init(&t->judge, tenant_judge, t);
	slab_init(&t->small,
	    sizeof(struct tenant_op) +
		OP_SMALL_BLOCKS * sizeof(struct tenant_block) +
		OP_SMALL_DATAGRAM,
	    64, max_ops + TENANT_MAX_LATE);
	slab_init(&t->large,
	    sizeof(struct tenant_op) +
		PDU_MAX_BLOCKS * sizeof(struct tenant_block) + PACKET_MAX,
	    8, max_ops + TENANT_MAX_LATE);
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
	udp_free(t->udp4); /* answers for what is queued: ECANCELED */
	udp_free(t->udp6);
	loop_cancel(t->loop, &t->judge);
	loop_timer_free(t->timer);
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
	uint8_t datagram[PACKET_MAX], id[PACKET_UNIQUE_LEN];
	struct udp_token token = {.serial = m->server_id};
	uint32_t i;
	size_t len;
	int err;

	err = random_uuid(t->random, id);
	if (err == 0)
		err = tenant_seal(
		    t, id, pdu, pdu_len, datagram, sizeof(datagram), &len);
	for (i = 0; i < m->addr_count && err == 0; i++) {
		token.index = (t->stats[server].first_addr + i) % m->addr_count;
		if (tenant_send(t, &m->addrs[token.index], datagram, len,
			POLICY_NEVER, token) != 0)
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
	uint32_t i;

	for (i = 0; i < t->members->count; i++) {
		if (t->stats[i].last_answer > 0)
			return true;
	}
	return false;
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

void
tenant_server(
    const struct tenant *t, uint64_t server_id, struct tenant_server *out)
{
	int at = members_find(t->members, server_id);

	memset(out, 0, sizeof(*out));
	out->server_id = server_id;
	if (at >= 0)
		*out = t->stats[at];
}

const struct udp_counters *
tenant_udp(const struct tenant *t, int family)
{
	const struct udp *udp = family == 4 ? t->udp4 : t->udp6;

	return udp != NULL ? udp_counters(udp) : NULL;
}
