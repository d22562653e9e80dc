/*
 * What the tests of connections share: the agent's side, a service that logs
 * frames and does what a test tells it, and the application's side, a peer at
 * the other end of a socket pair. Tests only; one pool per test.
 */
#ifndef TESTS_UNIT_CONN_FIXTURE_H
#define TESTS_UNIT_CONN_FIXTURE_H

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>

#include <poll.h>

#include "daemon/io/conn.h"
#include "tests/unit/harness.h"

#define SEC     INT64_C(1000000)
#define LOG_MAX 32768

#define TURN_UNTIL(condition)                                              \
	do {                                                               \
		int64_t limit_ = loop_now() + 20 * SEC;                    \
		while (!(condition)) {                                     \
			ck_assert_msg(                                     \
			    loop_now() < limit_, "never: %s", #condition); \
			loop_turn(loop);                                   \
		}                                                          \
	} while (0)

static struct loop *loop;
static struct conn_pool *pool;

/* The agent's side */

struct service {
	unsigned int frames;
	unsigned int closed;
	size_t payload_bytes;
	uint64_t ids[LOG_MAX];
	int64_t times[LOG_MAX]; /* conn_now() */
	struct conn *last_closed;
	bool replies; /* one frame, same id */
	size_t reply_len;
	uint64_t act_at;            /* the id at which to act */
	void (*act)(struct conn *); /* from inside the hook */
	void (*on_closed)(struct conn *);
	uid_t sated; /* who takes no frame, with sates */
	bool sates;
	unsigned int meal; /* frames after which it is so; 0: none */
	unsigned int asked;
};

static struct service service;

/* Lets that much time go by, on the clock of the code under test. */
static inline void
pass(int64_t us)
{
	int64_t until = loop_now() + us;

	while (loop_now() < until)
		poll(NULL, 0, 1);
}

static inline void
put_frame(
    struct writer *w, uint16_t type, uint64_t id, const void *bytes, size_t len)
{
	writer_u32(w, (uint32_t)(IPC_HEAD_LEN + len));
	writer_u16(w, type);
	writer_u16(w, 0);
	writer_u64(w, id);
	if (bytes != NULL)
		writer_bytes(w, bytes, len);
	else
		writer_zeros(w, len);
}

static inline void
reply(struct conn *conn, uint64_t id, size_t len)
{
	struct writer *w = conn_begin(conn);

	ck_assert_ptr_nonnull(w);
	ck_assert_uint_ge((size_t)(w->end - w->at), IPC_MAX_FRAME);
	put_frame(w, IPC_PONG, id, NULL, len);
	conn_commit(conn);
}

static inline void
on_frame(void *arg, struct conn *conn, const struct ipc_head *head,
    struct reader *payload)
{
	struct service *s = arg;
	bool same = true;

	ck_assert(!conn_closing(conn));
	ck_assert_uint_eq(
	    reader_left(payload), head->length - (size_t)IPC_HEAD_LEN);
	ck_assert_uint_lt(s->frames, LOG_MAX);
	s->times[s->frames] = conn_now(conn);
	s->ids[s->frames++] = head->id;
	s->payload_bytes += reader_left(payload);
	while (reader_left(payload) > 0) /* each frame is its id, repeated */
		same = reader_u8(payload) == (uint8_t)head->id && same;
	ck_assert(same);
	if (s->replies)
		reply(conn, head->id, s->reply_len);
	if (s->act != NULL && head->id == s->act_at)
		s->act(conn);
}

static inline void
on_closed(void *arg, struct conn *conn)
{
	struct service *s = arg;

	ck_assert(conn_closing(conn));
	s->closed++;
	s->last_closed = conn;
	reply(conn, 99, 10); /* goes nowhere */
	conn_close(conn);
	conn_error(conn, 0, IPC_ERR_BUSY, "twice");
	if (s->on_closed != NULL)
		s->on_closed(conn);
}

static inline bool
on_hungry(void *arg, struct conn *conn)
{
	struct service *s = arg;

	s->asked++;
	return !s->sates || conn_peer(conn)->uid != s->sated ||
	       s->frames < s->meal;
}

static const struct conn_hooks hooks = {
    .frame = on_frame, .closed = on_closed, .hungry = on_hungry};

/* The application's side */

struct peer {
	int fd;
	int far; /* the agent's end */
	struct conn *conn;
	uint8_t in[2 * IPC_MAX_FRAME];
	size_t in_len;
	unsigned int frames;
	uint64_t last_id;
	bool eof;
	int error;     /* of reading */
	uint16_t code; /* of an ERROR */
	char text[IPC_MAX_TEXT + 1];
};

static inline void
setup(void)
{
	memset(&service, 0, sizeof(service));
	loop = loop_new();
	ck_assert_ptr_nonnull(loop);
	pool = conn_pool_new(loop);
	ck_assert_ptr_nonnull(pool);
}

/* libevent then aborts on an event that is assigned while it is pending. */
static inline void
setup_checked(void)
{
	event_enable_debug_mode();
	setup();
}

static inline void
teardown(void)
{
	conn_pool_free(pool);
	loop_free(loop);
}

static inline void
peer_open(struct peer *p)
{
	int fds[2];
	int flags = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;

	memset(p, 0, sizeof(*p));
	ck_assert_int_eq(socketpair(AF_UNIX, flags, 0, fds), 0);
	p->fd = fds[0];
	p->far = fds[1];
	p->conn = conn_new(pool, fds[1], &hooks, &service);
	ck_assert_ptr_nonnull(p->conn);
}

static inline void
peer_close(struct peer *p)
{
	close(p->fd);
	p->fd = -1;
}

static inline size_t
frame(uint8_t *out, uint64_t id, size_t len)
{
	uint8_t payload[IPC_MAX_FRAME];
	struct writer w;

	memset(payload, (uint8_t)id, sizeof(payload));
	writer_init(&w, out, IPC_MAX_FRAME);
	put_frame(&w, IPC_PING, id, payload, len);
	ck_assert(writer_ok(&w));
	return writer_len(&w);
}

/* All of it, turning the loop while the kernel is full. */
static inline void
peer_write(struct peer *p, const void *bytes, size_t len)
{
	const uint8_t *at = bytes;

	while (len > 0) {
		ssize_t n = send(p->fd, at, len, MSG_NOSIGNAL);

		if (n < 0) {
			ck_assert_int_eq(errno, EAGAIN);
			loop_turn(loop);
			continue;
		}
		at += n;
		len -= (size_t)n;
	}
}

static inline void
peer_frame(struct peer *p, uint64_t id, size_t len)
{
	uint8_t bytes[IPC_MAX_FRAME];

	peer_write(p, bytes, frame(bytes, id, len));
}

static inline void
peer_take(struct peer *p, const struct ipc_head *head, struct reader *payload)
{
	p->frames++;
	p->last_id = head->id;
	if (head->type == IPC_ERROR) {
		p->code = reader_u16(payload);
		ck_assert_uint_eq(reader_u16(payload), 0);
		reader_copy(payload, p->text, reader_u16(payload));
		ck_assert(reader_done(payload));
	}
}

/* What is there now. Returns the bytes read. */
static inline size_t
peer_read(struct peer *p)
{
	struct ipc_head head;
	struct reader payload;
	size_t at = 0;
	ssize_t n;

	n = recv(p->fd, p->in + p->in_len, sizeof(p->in) - p->in_len, 0);
	if (n == 0)
		p->eof = true;
	if (n < 0 && errno != EAGAIN)
		p->error = errno;
	if (n <= 0)
		return 0;
	p->in_len += (size_t)n;
	while (ipc_frame(p->in + at, p->in_len - at, &head, &payload) ==
	       IPC_MESSAGE) {
		peer_take(p, &head, &payload);
		at += head.length;
	}
	p->in_len -= at;
	memmove(p->in, p->in + at, p->in_len);
	return (size_t)n;
}

/* Until the end of the stream. */
static inline void
peer_finish(struct peer *p)
{
	TURN_UNTIL((peer_read(p), p->eof || p->error != 0));
}

#endif
