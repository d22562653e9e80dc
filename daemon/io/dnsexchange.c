/*
 * One question to one nameserver. Phases: idle, UDP (fd and event), TCP
 * (bufferevent); one timer bounds each. Reporting the result is always the
 * last thing that a callback does, because the callee may free the exchange.
 */
#include "daemon/io/dnsexchange.h"

#include <assert.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/io/address.h"
#include "proto/err.h"

#define BATCH       32   /* datagrams of one wake-up */
#define DATAGRAM    4096 /* more than was announced */
#define TCP_HEADER  2
#define TCP_MESSAGE 65535

struct dnsexchange {
	struct dnsexchange_env env;
	dnsexchange_fn *fn;
	void *arg;
	struct dnswire_question question;
	struct endpoint server;
	struct loop_timer *timer;
	int fd;                  /* of UDP; -1 */
	struct event *readable;  /* of UDP; NULL */
	struct bufferevent *tcp; /* NULL */
	bool malformed;          /* an answer to the question, but broken */
	struct dnsfault fault;   /* of the result that is to be reported */
};

static void stop(struct dnsexchange *x);
static void on_timeout(void *arg);

struct dnsexchange *
dnsexchange_new(
    const struct dnsexchange_env *env, dnsexchange_fn *fn, void *arg)
{
	struct dnsexchange *x = calloc(1, sizeof *x);

	if (x == NULL)
		return NULL;
	x->env = *env;
	x->fn = fn;
	x->arg = arg;
	x->fd = -1;
	x->timer = loop_timer_new(env->loop, on_timeout, x);
	if (x->timer == NULL) {
		free(x);
		return NULL;
	}
	return x;
}

void
dnsexchange_free(struct dnsexchange *x)
{
	if (x == NULL)
		return;
	stop(x);
	loop_timer_free(x->timer);
	free(x);
}

static void
stop_udp(struct dnsexchange *x)
{
	if (x->readable != NULL)
		event_free(x->readable);
	x->readable = NULL;
	if (x->fd >= 0)
		close(x->fd);
	x->fd = -1;
}

/* Back to idle. */
static void
stop(struct dnsexchange *x)
{
	stop_udp(x);
	if (x->tcp != NULL)
		bufferevent_free(x->tcp);
	x->tcp = NULL;
	loop_timer_stop(x->timer);
}

/* x may be gone when this returns. */
static void
finish(struct dnsexchange *x, enum dnsexchange_result result)
{
	stop(x);
	x->fn(x->arg, result);
}

static void
fail(struct dnsexchange *x, enum dnsexchange_result result,
    enum dnsfault_kind kind, int code)
{
	x->fault = (struct dnsfault){kind, code};
	finish(x, result);
}

static void
arm(struct dnsexchange *x)
{
	loop_timer_set(
	    x->timer, loop_now() + (int64_t)x->env.timeout_ms * 1000);
}

static void
spend(struct dnsexchange *x)
{
	x->env.counters->queries++;
	--*x->env.left;
}

/* A connected UDP socket; -1 with errno. */
static int
open_udp(const struct endpoint *server)
{
	union address to;
	socklen_t len = address_to_sockaddr(server, &to);
	int fd = socket(
	    to.any.sa_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	if (connect(fd, &to.any, len) != 0) {
		close(fd);
		return -1;
	}
	return fd;
}

/*
 * Counts what a response is worth. Returns true when it ends the exchange,
 * with the result.
 */
static bool
weigh(struct dnsexchange *x, enum dnswire_verdict verdict,
    enum dnsexchange_result *result)
{
	struct dns_counters *counters = x->env.counters;

	switch (verdict) {
	case DNSWIRE_ANSWER:
		counters->answers++;
		*result = DNSEXCHANGE_ANSWER;
		return true;
	case DNSWIRE_ALIAS:
		counters->answers++;
		*result = DNSEXCHANGE_ALIAS;
		return true;
	case DNSWIRE_NO_EDNS:
		counters->failures++;
		*result = DNSEXCHANGE_NO_EDNS;
		return true;
	case DNSWIRE_FAILED:
		counters->failures++;
		x->fault =
		    (struct dnsfault){DNSFAULT_RCODE, x->env.answer->rcode};
		*result = DNSEXCHANGE_FAILED;
		return true;
	case DNSWIRE_UNAUTHENTIC:
		counters->malformed++;
		x->fault = (struct dnsfault){DNSFAULT_UNAUTHENTIC, 0};
		*result = DNSEXCHANGE_BAD;
		return true;
	case DNSWIRE_MALFORMED:
		x->malformed = true;
		counters->malformed++;
		return false;
	case DNSWIRE_MISMATCH:
		counters->malformed++;
		return false;
	case DNSWIRE_TRUNCATED:
		return false;
	}
	return false;
}

/* A complete message; TCP has no forgers to wait out. */
static void
take_tcp(struct dnsexchange *x, const uint8_t *msg, size_t len)
{
	enum dnsexchange_result result;
	enum dnswire_verdict verdict =
	    dnswire_read(&x->question, msg, len, true, x->env.answer);

	if (weigh(x, verdict, &result))
		finish(x, result);
	else
		fail(x, DNSEXCHANGE_BAD, DNSFAULT_MALFORMED, 0);
}

static void
on_tcp_read(struct bufferevent *tcp, void *arg)
{
	struct evbuffer *in = bufferevent_get_input(tcp);
	uint8_t head[TCP_HEADER], *bytes;
	size_t need;

	if (evbuffer_copyout(in, head, TCP_HEADER) < TCP_HEADER)
		return;
	need = (size_t)(head[0] << 8 | head[1]);
	if (evbuffer_get_length(in) < TCP_HEADER + need)
		return;
	bytes = evbuffer_pullup(in, (ev_ssize_t)(TCP_HEADER + need));
	if (bytes != NULL)
		take_tcp(arg, bytes + TCP_HEADER, need);
	else /* no memory */
		fail(arg, DNSEXCHANGE_FAILED, DNSFAULT_TCP, 0);
}

/* The connection failed or ended before the answer was complete. */
static void
on_tcp_event(struct bufferevent *tcp, short what, void *arg)
{
	struct dnsexchange *x = arg;

	(void)tcp;
	if ((what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)) == 0)
		return;
	x->env.counters->failures++;
	fail(x, DNSEXCHANGE_FAILED, DNSFAULT_TCP, 0);
}

/*
 * A stream on its way to the server; NULL when that fails at once. libevent
 * must do the connecting itself: else it writes to a connection that was
 * refused and draws SIGPIPE. Its socket would lack CLOEXEC, so ours is lent.
 */
static struct bufferevent *
open_tcp(const struct dnsexchange *x)
{
	union address to;
	socklen_t len = address_to_sockaddr(&x->server, &to);
	struct bufferevent *tcp;
	int fd = socket(
	    to.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return NULL;
	tcp = bufferevent_socket_new(
	    loop_base(x->env.loop), fd, BEV_OPT_CLOSE_ON_FREE);
	if (tcp == NULL) {
		close(fd);
		return NULL;
	}
	/* No callbacks are set yet: it may report a failure from inside. */
	if (bufferevent_socket_connect(tcp, &to.any, (int)len) != 0) {
		bufferevent_free(tcp);
		return NULL;
	}
	return tcp;
}

/* False when it failed at once; finish() clears up. */
static bool
start_tcp(struct dnsexchange *x)
{
	uint8_t query[TCP_HEADER + DNSWIRE_QUERY_MAX];
	size_t len = dnswire_query(&x->question, query + TCP_HEADER);

	if (*x->env.left == 0)
		return false;
	x->tcp = open_tcp(x);
	if (x->tcp == NULL)
		return false;
	query[0] = (uint8_t)(len >> 8);
	query[1] = (uint8_t)len;
	bufferevent_setcb(x->tcp, on_tcp_read, NULL, on_tcp_event, x);
	bufferevent_setwatermark(
	    x->tcp, EV_READ, TCP_HEADER, TCP_HEADER + TCP_MESSAGE);
	if (bufferevent_write(x->tcp, query, TCP_HEADER + len) != 0 ||
	    bufferevent_enable(x->tcp, EV_READ | EV_WRITE) != 0)
		return false;
	spend(x);
	x->env.counters->tcp++;
	arm(x);
	return true;
}

/* True when the datagram ended the UDP phase; x may be gone then. */
static bool
take_datagram(struct dnsexchange *x, const uint8_t *msg, size_t len)
{
	enum dnsexchange_result result;
	enum dnswire_verdict verdict;

	verdict = dnswire_read(&x->question, msg, len, false, x->env.answer);
	if (verdict == DNSWIRE_TRUNCATED) {
		stop_udp(x);
		if (!start_tcp(x)) {
			x->env.counters->failures++;
			fail(x, DNSEXCHANGE_FAILED, DNSFAULT_TCP, 0);
		}
		return true;
	}
	if (!weigh(x, verdict, &result))
		return false;
	finish(x, result);
	return true;
}

/* Reads what is there, within bounds. Returns as take_datagram(). */
static bool
drain(struct dnsexchange *x)
{
	uint8_t buf[DATAGRAM];
	ssize_t n;

	for (int i = 0; i < BATCH; i++) {
		n = recv(x->fd, buf, sizeof buf, MSG_TRUNC);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return false;
		if (n < 0) {
			/* ECONNREFUSED and its like: nobody is there. */
			fail(x, DNSEXCHANGE_UNREACHABLE, DNSFAULT_UNREACHABLE,
			    errno);
			return true;
		}
		if ((size_t)n > sizeof buf)
			x->env.counters->malformed++;
		else if (take_datagram(x, buf, (size_t)n))
			return true;
	}
	return false;
}

static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	drain(arg);
}

static void
on_timeout(void *arg)
{
	struct dnsexchange *x = arg;

	/* The answer may be there already, behind a busy turn of the loop. */
	if (x->fd >= 0 && drain(x))
		return;
	x->env.counters->timeouts++;
	if (x->malformed)
		fail(x, DNSEXCHANGE_BAD, DNSFAULT_MALFORMED, 0);
	else
		fail(x, DNSEXCHANGE_TIMEOUT, DNSFAULT_SILENT, 0);
}

/* Opens the socket and sends; what is left over on failure stop() ends. */
static int
start_udp(struct dnsexchange *x)
{
	uint8_t query[DNSWIRE_QUERY_MAX];
	size_t len = dnswire_query(&x->question, query);

	if (*x->env.left == 0)
		return RLA_EBUSY;
	x->fd = open_udp(&x->server);
	if (x->fd < 0)
		return RLA_ESYS;
	x->readable = event_new(loop_base(x->env.loop), x->fd,
	    EV_READ | EV_PERSIST, on_readable, x);
	if (x->readable == NULL || event_add(x->readable, NULL) != 0)
		return RLA_ENOMEM;
	if (send(x->fd, query, len, 0) != (ssize_t)len)
		return RLA_ESYS;
	spend(x);
	arm(x);
	return 0;
}

int
dnsexchange_start(struct dnsexchange *x, const struct dnswire_question *q,
    const struct endpoint *server)
{
	int rc;

	assert(x->fd < 0 && x->tcp == NULL);
	x->question = *q;
	x->server = *server;
	x->malformed = false;
	rc = start_udp(x);
	if (rc != 0) {
		x->fault = (struct dnsfault){DNSFAULT_UNREACHABLE, errno};
		stop(x);
	}
	return rc;
}

struct dnsfault
dnsexchange_fault(const struct dnsexchange *x)
{
	return x->fault;
}
