/*
 * See fake_udp.h. The bounds are those of daemon/io/udp.c, since callers live
 * with them: so many datagrams in a batch, batches in a turn, sends queued.
 */
#include "tests/world/fake_udp.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/world/fake_loop.h"

#define BATCH     32
#define ROUNDS    16
#define QUEUE     256
#define RULES_MAX 64
#define PORT_BASE 40000

struct in {
	struct in *next;
	struct endpoint from; /* of a refusal: to */
	int refused;          /* an errno: no datagram, but a refusal */
	size_t len;
	bool truncated;
	uint64_t *read;
	uint8_t bytes[2048];
};

struct out {
	struct udp_token token;
	int64_t expires;
	struct fake_sent sent;
};

struct udp {
	struct udp *next;
	struct loop *loop;
	const struct udp_hooks *hooks;
	void *arg;
	int family;
	uint32_t name;
	unsigned int in_hook;
	bool reading;
	bool flushing;
	bool active; /* will be read in this turn */
	bool blocked;
	bool ending;
	struct loop_task flush;
	struct loop_timer *expiry;
	struct in *first;
	struct out queue[QUEUE];
	size_t waiting;
	struct udp_counters counters;
};

struct rule {
	struct endpoint to;
	int error;
};

static struct {
	struct udp *open;
	uint32_t opened;
	unsigned int receiving; /* depth of receive callbacks, of any socket */
	uint64_t event;
	int open_error[2]; /* of families 4 and 6 */
	int any_error;
	struct rule rules[RULES_MAX];
	size_t rule_count;
	struct fake_sent *sent;
	size_t sent_count;
} net;

void
fake_udp_reset(void)
{
	assert(net.open == NULL);
	free(net.sent);
	memset(&net, 0, sizeof(net));
}

uint64_t
fake_udp_event(void)
{
	return net.event;
}

static struct udp *
find(uint32_t name)
{
	struct udp *udp = net.open;

	while (udp != NULL && udp->name != name)
		udp = udp->next;
	return udp;
}

/* Sending */

static void
record(const struct fake_sent *sent)
{
	net.sent = realloc(net.sent, (net.sent_count + 1) * sizeof(*net.sent));
	if (net.sent == NULL)
		abort();
	net.sent[net.sent_count] = *sent;
	net.sent[net.sent_count].left = ++net.event;
	net.sent[net.sent_count++].clock = fake_loop_clock();
}

static void
answer(struct udp *udp, struct udp_token token, int error)
{
	if (error == ETIME)
		udp->counters.send_expired++;
	else if (error != 0 && error != ECANCELED)
		udp->counters.send_errors++;
	udp->in_hook++;
	udp->hooks->sent(udp->arg, token, error);
	udp->in_hook--;
}

/* Its slot is free before its hook runs. */
static void
finish(struct udp *udp, size_t at, int error)
{
	struct udp_token token = udp->queue[at].token;

	if (error == 0) {
		record(&udp->queue[at].sent);
		udp->counters.sent++;
		udp->counters.sent_bytes += udp->queue[at].sent.len;
	}
	udp->waiting--;
	memmove(&udp->queue[at], &udp->queue[at + 1],
	    (udp->waiting - at) * sizeof(*udp->queue));
	answer(udp, token, error);
}

static void
expire(struct udp *udp)
{
	size_t at = 0;

	while (at < udp->waiting) {
		if (udp->queue[at].expires <= loop_now())
			finish(udp, at, ETIME);
		else
			at++;
	}
}

static void
discard(struct udp *udp)
{
	size_t at = 0;

	while (at < udp->waiting) {
		if (udp->hooks->wanted != NULL &&
		    !udp->hooks->wanted(udp->arg, udp->queue[at].token))
			finish(udp, at, ECANCELED);
		else
			at++;
	}
}

static int
error_of(const struct endpoint *to)
{
	for (size_t i = 0; i < net.rule_count; i++) {
		if (endpoint_equal(&net.rules[i].to, to))
			return net.rules[i].error;
	}
	return net.any_error;
}

/* What the hooks append meanwhile leaves in the next turn. */
static void
flush(void *arg)
{
	struct udp *udp = arg;
	size_t rounds;
	int64_t first = FAKE_NEVER;

	if (udp->flushing)
		return;
	udp->flushing = true;
	discard(udp);
	expire(udp);
	rounds = udp->waiting;
	if (udp->blocked && rounds > 0)
		udp->counters.send_blocked++;
	while (!udp->blocked && rounds-- > 0)
		finish(udp, 0, error_of(&udp->queue[0].sent.to));
	udp->flushing = false;
	for (size_t i = 0; i < udp->waiting; i++) {
		if (udp->queue[i].expires < first)
			first = udp->queue[i].expires;
	}
	loop_timer_set(udp->expiry, first);
	if (!udp->blocked && udp->waiting > 0)
		loop_defer(udp->loop, &udp->flush);
}

static int
refusal(struct udp *udp, const struct endpoint *to, size_t len)
{
	if (udp->ending)
		return ECANCELED;
	if (len > FAKE_DATAGRAM_MAX)
		return EMSGSIZE;
	if (to->family != udp->family)
		return EAFNOSUPPORT;
	if (udp->waiting == QUEUE)
		flush(udp);
	return udp->waiting == QUEUE ? ENOBUFS : 0;
}

void
udp_send(struct udp *udp, const struct endpoint *to, const void *bytes,
    size_t len, int64_t expires, struct udp_token token)
{
	int error = refusal(udp, to, len);
	struct out *out;

	if (error != 0) {
		answer(udp, token, error);
		return;
	}
	out = &udp->queue[udp->waiting++];
	out->token = token;
	out->expires = expires;
	out->sent =
	    (struct fake_sent){.port = udp->name, .to = *to, .len = len};
	memcpy(out->sent.bytes, bytes, len);
	loop_defer(udp->loop, &udp->flush);
}

size_t
fake_udp_sent_count(void)
{
	return net.sent_count;
}

const struct fake_sent *
fake_udp_sent(size_t i)
{
	return &net.sent[i];
}

void
fake_udp_fail(const struct endpoint *to, int error)
{
	size_t i = 0;

	if (to == NULL) {
		net.any_error = error;
		net.rule_count = 0;
		return;
	}
	while (i < net.rule_count && !endpoint_equal(&net.rules[i].to, to))
		i++;
	if (i == RULES_MAX)
		abort();
	net.rules[i] = (struct rule){.to = *to, .error = error};
	if (i == net.rule_count)
		net.rule_count++;
}

bool
fake_udp_block(uint32_t port, bool blocked)
{
	struct udp *udp = find(port);

	if (udp == NULL)
		return false;
	udp->blocked = blocked;
	if (!blocked)
		loop_defer(udp->loop, &udp->flush);
	return true;
}

/* Receiving */

/* Behind what waits to be read already; NULL when there is no such port. */
static struct in *
incoming(uint32_t port, const struct endpoint *from)
{
	struct udp *udp = find(port);
	struct in **at, *in;

	if (udp == NULL)
		return NULL;
	in = calloc(1, sizeof(*in));
	if (in == NULL)
		abort();
	in->from = *from;
	for (at = &udp->first; *at != NULL; at = &(*at)->next)
		;
	*at = in;
	return in;
}

bool
fake_udp_deliver(uint32_t port, const struct endpoint *from,
    const uint8_t *bytes, size_t len, bool truncated, uint64_t *read)
{
	struct in *in = incoming(port, from);

	if (in == NULL)
		return false;
	assert(len <= sizeof(in->bytes));
	in->len = len;
	in->truncated = truncated;
	in->read = read;
	memcpy(in->bytes, bytes, len);
	return true;
}

bool
fake_udp_refuse(uint32_t port, const struct endpoint *to, int error)
{
	struct in *in = incoming(port, to);

	if (in != NULL)
		in->refused = error;
	return in != NULL;
}

static void
read_refusal(struct udp *udp, const struct in *in)
{
	udp->counters.refused++;
	udp->hooks->refused(udp->arg, &in->from, in->refused);
}

static void
read_datagram(struct udp *udp, const struct in *in)
{
	net.event++;
	if (in->read != NULL && *in->read == 0)
		*in->read = net.event;
	udp->counters.received++;
	udp->counters.received_bytes += in->len;
	if (in->truncated)
		udp->counters.truncated++;
	udp->hooks->datagram(
	    udp->arg, in->bytes, in->len, in->truncated, &in->from);
}

static void
read_one(struct udp *udp)
{
	struct in *in = udp->first;

	udp->first = in->next;
	if (in->refused != 0)
		read_refusal(udp, in);
	else
		read_datagram(udp, in);
	free(in);
}

bool
udp_drain(struct udp *udp)
{
	unsigned int rounds = ROUNDS, n = BATCH;

	assert(!udp->reading);
	udp->reading = true;
	udp->in_hook++;
	net.receiving++;
	while (n == BATCH && rounds-- > 0) {
		for (n = 0; n < BATCH && udp->first != NULL; n++)
			read_one(udp);
		if (n > 0)
			udp->hooks->batch(udp->arg);
	}
	net.receiving--;
	udp->in_hook--;
	udp->reading = false;
	return n == BATCH;
}

bool
fake_udp_readable(void)
{
	for (struct udp *udp = net.open; udp != NULL; udp = udp->next) {
		if (udp->first != NULL)
			return true;
	}
	return false;
}

static struct udp *
oldest_active(void)
{
	struct udp *oldest = NULL;

	for (struct udp *udp = net.open; udp != NULL; udp = udp->next) {
		if (udp->active && (oldest == NULL || udp->name < oldest->name))
			oldest = udp;
	}
	return oldest;
}

/* Callbacks may close sockets: look again after each. */
void
fake_udp_read(void)
{
	struct udp *udp;

	for (udp = net.open; udp != NULL; udp = udp->next)
		udp->active = udp->first != NULL;
	while ((udp = oldest_active()) != NULL) {
		udp->active = false;
		(void)udp_drain(udp);
	}
}

/* Life */

void
fake_udp_fail_open(int family, int error)
{
	net.open_error[family == 6] = error;
}

bool
fake_udp_is_open(uint32_t port)
{
	return find(port) != NULL;
}

uint32_t
fake_udp_opened(void)
{
	return net.opened;
}

struct udp *
udp_new(struct loop *loop, int family, const struct udp_hooks *hooks, void *arg)
{
	struct udp *udp;

	if (net.receiving > 0)
		fake_loop_blame("a socket is opened in a receive callback");
	errno = family == 4 || family == 6 ? net.open_error[family == 6]
					   : EAFNOSUPPORT;
	if (errno != 0)
		return NULL;
	udp = calloc(1, sizeof(*udp));
	if (udp == NULL)
		return NULL;
	udp->loop = loop;
	udp->family = family;
	udp->hooks = hooks;
	udp->arg = arg;
	udp->name = ++net.opened;
	udp->expiry = loop_timer_new(loop, flush, udp);
	loop_task_init(&udp->flush, flush, udp);
	udp->next = net.open;
	net.open = udp;
	return udp;
}

void
udp_free(struct udp *udp)
{
	struct udp **at = &net.open;
	struct in *in;

	if (udp == NULL)
		return;
	assert(udp->in_hook == 0);
	if (net.receiving > 0)
		fake_loop_blame("a socket is closed in a receive callback");
	udp->ending = true;
	while (udp->waiting > 0)
		finish(udp, 0, ECANCELED);
	while ((in = udp->first) != NULL) {
		udp->first = in->next;
		free(in);
	}
	while (*at != udp)
		at = &(*at)->next;
	*at = udp->next;
	loop_cancel(udp->loop, &udp->flush);
	loop_timer_free(udp->expiry);
	free(udp);
}

uint16_t
udp_port(const struct udp *udp)
{
	return (uint16_t)(PORT_BASE + udp->name);
}

uint32_t
udp_waiting(const struct udp *udp)
{
	return (uint32_t)udp->waiting;
}

const struct udp_counters *
udp_counters(struct udp *udp)
{
	return &udp->counters;
}

void
udp_counters_add(struct udp_counters *sum, const struct udp_counters *one)
{
#define ADD(name, help) sum->name += one->name;
	UDP_COUNTERS(ADD)
#undef ADD
}
