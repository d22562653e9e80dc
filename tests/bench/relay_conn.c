/*
 * Connections: frames in, frames out. A frame that is cut at the end of a
 * read waits in its connection for the rest.
 */
#include "tests/bench/relay.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG     4096
#define FIRST_BYTES 256
#define ID_AT       8 /* of the request, in a frame */
#define DEADLINE_MS 2800

static int
watch(struct relay *r, int op, int fd, uint32_t events, uint32_t index)
{
	struct epoll_event event = {events, {.u32 = index}};

	return epoll_ctl(r->epoll, op, fd, &event);
}

static void
make_decisions(struct relay *r)
{
	struct ipc_decision decision = {.outcome = IPC_ALLOWED,
	    .permit = 1,
	    .source = IPC_SOURCE_SERVER,
	    .reason = IPC_REASON_OK,
	    .has = IPC_HAS_SERVER,
	    .server_id = r->servers[0].id,
	    .limit = ipc_text(""),
	    .text = ipc_text("")};
	struct writer w;

	writer_init(&w, r->conns.allowed, sizeof(r->conns.allowed));
	(void)ipc_enc_decision(&w, 0, &decision);
	decision.outcome = IPC_FAILED;
	decision.permit = 0;
	decision.source = IPC_SOURCE_POLICY;
	decision.reason = IPC_REASON_TRANSPORT;
	writer_init(&w, r->conns.lost, sizeof(r->conns.lost));
	(void)ipc_enc_decision(&w, 0, &decision);
}

int
relay_conns_init(struct relay *r, const char *path)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	size_t i;
	int fd;

	for (i = 0; i < RELAY_CONNS; i++)
		r->conns.at[i].fd = -1;
	make_decisions(r);
	errno = ENAMETOOLONG;
	if (strlen(path) >= sizeof(at.sun_path))
		return relay_fail(path);
	strcpy(at.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) != 0 ||
	    listen(fd, BACKLOG) != 0 ||
	    watch(r, EPOLL_CTL_ADD, fd, EPOLLIN, RELAY_LISTENER) != 0)
		return relay_fail(path);
	r->conns.listener = fd;
	return 0;
}

static void
close_conn(struct relay_conn *c)
{
	close(c->fd);
	c->fd = -1;
}

/* Where there is none; one too many is closed again. */
static void
adopt(struct relay *r, int fd)
{
	struct relay_conn *c;
	uint32_t i;

	for (i = 0; i < RELAY_CONNS && r->conns.at[i].fd >= 0; i++)
		;
	if (i == RELAY_CONNS || watch(r, EPOLL_CTL_ADD, fd, EPOLLIN, i) != 0) {
		close(fd);
		return;
	}
	c = &r->conns.at[i];
	c->fd = fd;
	c->serial++;
	c->greeted = c->blocked = false;
	c->out_len = c->rest_len = 0;
}

void
relay_conns_accept(struct relay *r)
{
	int fd;

	while ((fd = accept4(r->conns.listener, NULL, NULL,
		    SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0)
		adopt(r, fd);
}

/* Room for len more bytes to send, or NULL. Queues the connection. */
static uint8_t *
space(struct relay *r, struct relay_conn *c, size_t len)
{
	size_t cap = c->out_cap > 0 ? c->out_cap : FIRST_BYTES;
	uint8_t *out;

	while (cap - c->out_len < len)
		cap *= 2;
	if (cap > c->out_cap) {
		out = realloc(c->out, cap);
		if (out == NULL)
			return NULL;
		c->out = out;
		c->out_cap = cap;
	}
	if (!c->queued) {
		c->queued = true;
		r->conns.queued[r->conns.queued_count++] =
		    (uint16_t)(c - r->conns.at);
	}
	out = c->out + c->out_len;
	c->out_len += len;
	return out;
}

/* A frame that is made once a connection, or seldom. */
static bool
put(struct relay *r, struct relay_conn *c, const struct writer *w)
{
	uint8_t *out = space(r, c, writer_len(w));

	if (!writer_ok(w) || out == NULL)
		return false;
	memcpy(out, w->start, writer_len(w));
	return true;
}

static bool
welcome(struct relay *r, struct relay_conn *c, uint64_t id)
{
	struct ipc_welcome welcome = {.version = IPC_VERSION,
	    .max_frame = IPC_MAX_FRAME,
	    .max_inflight = RELAY_SLOTS,
	    .default_deadline_ms = DEADLINE_MS,
	    .generation = 1,
	    .agent = ipc_text("relay")};
	uint8_t frame[RELAY_FRAME];
	struct writer w;

	if (c->greeted)
		return false;
	c->greeted = true;
	writer_init(&w, frame, sizeof(frame));
	return ipc_enc_welcome(&w, id, &welcome) == 0 && put(r, c, &w);
}

static bool
pong(struct relay *r, struct relay_conn *c, uint64_t id, struct reader *payload)
{
	uint8_t frame[RELAY_FRAME];
	struct ipc_ping ping;
	struct writer w;

	writer_init(&w, frame, sizeof(frame));
	return ipc_dec_ping(payload, &ping) == 0 &&
	       ipc_enc_pong(&w, id, &ping) == 0 && put(r, c, &w);
}

static bool
check(struct relay *r, struct relay_conn *c, uint64_t id)
{
	struct relay_slot *slot = relay_slots_take(&r->slots);

	if (slot == NULL) {
		fputs("relay: too many checks under way\n", stderr);
		return false;
	}
	slot->request = id;
	slot->conn = (uint16_t)(c - r->conns.at);
	slot->serial = c->serial;
	slot->waits = (uint16_t)((1u << r->server_count) - 1);
	return true;
}

/* False: this is no client for it. */
static bool
take_frame(struct relay *r, struct relay_conn *c, const struct ipc_head *head,
    struct reader *payload)
{
	switch (head->type) {
	case IPC_CHECK:
		return c->greeted && check(r, c, head->id);
	case IPC_HELLO:
		return welcome(r, c, head->id);
	case IPC_PING:
		return c->greeted && pong(r, c, head->id, payload);
	case IPC_CANCEL:
		return c->greeted;
	}
	fprintf(
	    stderr, "relay: a frame of type 0x%04x\n", (unsigned)head->type);
	return false;
}

static bool
take_frames(struct relay *r, struct relay_conn *c, size_t len)
{
	const uint8_t *in = r->conns.in;
	enum ipc_framing framing;
	struct reader payload;
	struct ipc_head head;
	size_t at = 0;

	while ((framing = ipc_frame(in + at, len - at, &head, &payload)) ==
	       IPC_MESSAGE) {
		if (!take_frame(r, c, &head, &payload))
			return false;
		at += head.length;
	}
	c->rest_len = len - at;
	if (framing == IPC_BAD || c->rest_len > sizeof(c->rest))
		return false;
	memcpy(c->rest, in + at, c->rest_len);
	return true;
}

void
relay_conn_read(struct relay *r, uint32_t index)
{
	struct relay_conn *c = &r->conns.at[index];
	uint8_t *in = r->conns.in;
	ssize_t n;

	if (c->fd < 0)
		return;
	memcpy(in, c->rest, c->rest_len);
	n = recv(c->fd, in + c->rest_len, RELAY_READ - c->rest_len, 0);
	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0 || !take_frames(r, c, c->rest_len + (size_t)n))
		close_conn(c);
}

void
relay_conn_decide(struct relay *r, const struct relay_slot *slot)
{
	struct relay_conn *c = &r->conns.at[slot->conn];
	uint8_t *out;

	if (c->fd < 0 || c->serial != slot->serial)
		return;
	out = space(r, c, RELAY_DECISION);
	if (out == NULL) {
		close_conn(c);
		return;
	}
	memcpy(
	    out, r->lossy ? r->conns.lost : r->conns.allowed, RELAY_DECISION);
	memcpy(out + ID_AT, &slot->request, sizeof(slot->request));
}

/* What does not go out waits until the kernel takes more. */
static void
write_conn(struct relay *r, struct relay_conn *c)
{
	ssize_t n = send(c->fd, c->out, c->out_len, MSG_NOSIGNAL);
	uint32_t index = (uint32_t)(c - r->conns.at);
	bool blocked;

	if (n < 0 && errno != EAGAIN) {
		close_conn(c);
		return;
	}
	if (n > 0) {
		c->out_len -= (size_t)n;
		memmove(c->out, c->out + n, c->out_len);
	}
	blocked = c->out_len > 0;
	if (blocked == c->blocked)
		return;
	c->blocked = blocked;
	(void)watch(r, EPOLL_CTL_MOD, c->fd,
	    blocked ? EPOLLIN | EPOLLOUT : EPOLLIN, index);
}

void
relay_conn_resume(struct relay *r, uint32_t index)
{
	struct relay_conn *c = &r->conns.at[index];

	if (c->fd >= 0 && c->out_len > 0)
		write_conn(r, c);
}

void
relay_conns_flush(struct relay *r)
{
	struct relay_conn *c;
	size_t i;

	for (i = 0; i < r->conns.queued_count; i++) {
		c = &r->conns.at[r->conns.queued[i]];
		c->queued = false;
		if (c->fd >= 0 && !c->blocked)
			write_conn(r, c);
	}
	r->conns.queued_count = 0;
}
