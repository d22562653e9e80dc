/*
 * The scripted agent. Sockets block here, with a receive timeout that turns
 * a shim that says nothing into a failed test.
 */
#include "tests/unit/fake_agent.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_S 20

void
fake_init(struct fake *f)
{
	memset(f, 0, sizeof(*f));
	snprintf(f->dir, sizeof(f->dir), "/tmp/check_rlshim.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(f->dir));
	snprintf(f->path, sizeof(f->path), "%s/agent.sock", f->dir);
	ck_assert_int_eq(sem_init(&f->step, 0, 0), 0);
	ck_assert_int_eq(sem_init(&f->go, 0, 0), 0);
	f->listener = -1;
	f->hash = 0xA1;
	f->default_deadline_ms = 20000;
	f->max_frame = IPC_MAX_FRAME;
	f->seen = calloc(FAKE_SEEN, sizeof(*f->seen));
	ck_assert_ptr_nonnull(f->seen);
}

void
fake_listen(struct fake *f)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	struct timeval patience = {.tv_sec = PATIENCE_S};

	memcpy(sun.sun_path, f->path, strlen(f->path));
	f->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_ge(f->listener, 0);
	ck_assert_int_eq(setsockopt(f->listener, SOL_SOCKET, SO_RCVTIMEO,
			     &patience, sizeof(patience)),
	    0);
	ck_assert_int_eq(
	    bind(f->listener, (struct sockaddr *)&sun, sizeof(sun)), 0);
	ck_assert_int_eq(listen(f->listener, 64), 0);
}

static void *
fake_main(void *arg)
{
	struct fake *f = arg;

	f->script(f);
	return NULL;
}

void
fake_start_later(struct fake *f, void (*script)(struct fake *f))
{
	f->script = script;
	ck_assert_int_eq(pthread_create(&f->thread, NULL, fake_main, f), 0);
}

void
fake_start(struct fake *f, void (*script)(struct fake *f))
{
	fake_listen(f);
	fake_start_later(f, script);
}

void
fake_reached(struct fake *f)
{
	sem_post(&f->step);
}

static void
sem_patiently(sem_t *sem, const char *complaint)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PATIENCE_S;
	while (sem_timedwait(sem, &until) != 0)
		ck_assert_msg(errno == EINTR, "%s", complaint);
}

void
fake_await(struct fake *f)
{
	sem_patiently(&f->step, "the script does not get there");
}

void
fake_let(struct fake *f)
{
	sem_post(&f->go);
}

void
fake_hold(struct fake *f)
{
	sem_patiently(&f->go, "the test does not get there");
}

void
fake_join(struct fake *f)
{
	if (f->script != NULL)
		pthread_join(f->thread, NULL);
	f->script = NULL;
}

void
fake_vanish(struct fake *f)
{
	unlink(f->path);
	if (f->listener >= 0)
		close(f->listener);
	f->listener = -1;
}

void
fake_stop(struct fake *f)
{
	int conn;

	fake_join(f);
	for (conn = 0; conn < f->conn_count; conn++)
		fake_close(f, conn);
	fake_vanish(f);
	rmdir(f->dir);
	sem_destroy(&f->step);
	sem_destroy(&f->go);
	free(f->seen);
}

int
fake_accept(struct fake *f)
{
	struct timeval patience = {.tv_sec = PATIENCE_S};
	int fd;

	fd = accept4(f->listener, NULL, NULL, SOCK_CLOEXEC);
	ck_assert_msg(fd >= 0, "nobody connects: %s", strerror(errno));
	ck_assert_int_lt(f->conn_count, FAKE_CONNS);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	f->conns[f->conn_count] = fd;
	return f->conn_count++;
}

void
fake_close(struct fake *f, int conn)
{
	if (f->conns[conn] >= 0)
		close(f->conns[conn]);
	f->conns[conn] = -1;
}

void
fake_write(struct fake *f, int conn, const void *bytes, size_t len)
{
	const uint8_t *p = bytes;
	ssize_t n;

	while (len > 0) {
		n = send(f->conns[conn], p, len, MSG_NOSIGNAL);
		if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
			return; /* a client may have gone at any time */
		ck_assert_msg(n > 0, "send: %s", strerror(errno));
		p += n;
		len -= (size_t)n;
	}
}

static void
read_all(struct fake *f, int conn, uint8_t *out, size_t len)
{
	ssize_t n;

	while (len > 0) {
		n = recv(f->conns[conn], out, len, 0);
		ck_assert_msg(n > 0, "connection %d: %s", conn,
		    n == 0 ? "closed" : strerror(errno));
		out += n;
		len -= (size_t)n;
	}
}

/* Decodes what was read: the shim must never send what is not valid. */
static void
decode(struct fake_message *m, struct reader *r)
{
	union {
		struct ipc_hello hello;
		struct ipc_check check;
		struct ipc_check_adhoc adhoc;
		struct ipc_report report;
		struct ipc_report_adhoc report_adhoc;
		struct ipc_report_rule report_rule;
		struct ipc_explain explain;
		struct ipc_ping ping;
		struct ipc_wait wait;
		struct ipc_acquire acquire;
		struct ipc_try_acquire try_acquire;
		struct ipc_error_control error;
		struct ipc_set_rate rate;
	} out;
	int rc = -1;

	switch (m->head.type) {
	case IPC_HELLO:
		rc = ipc_dec_hello(r, &out.hello);
		break;
	case IPC_CHECK:
		rc = ipc_dec_check(r, &out.check);
		m->base = out.check.base;
		break;
	case IPC_CHECK_ADHOC:
		rc = ipc_dec_check_adhoc(r, &out.adhoc);
		m->base = out.adhoc.base;
		break;
	case IPC_REPORT:
		rc = ipc_dec_report(r, &out.report);
		break;
	case IPC_REPORT_ADHOC:
		rc = ipc_dec_report_adhoc(r, &out.report_adhoc);
		break;
	case IPC_REPORT_RULE:
		rc = ipc_dec_report_rule(r, &out.report_rule);
		break;
	case IPC_EXPLAIN:
		rc = ipc_dec_explain(r, &out.explain);
		break;
	case IPC_PING:
		rc = ipc_dec_ping(r, &out.ping);
		break;
	case IPC_WAIT:
		rc = ipc_dec_wait(r, &out.wait);
		break;
	case IPC_ACQUIRE:
		rc = ipc_dec_acquire(r, &out.acquire);
		break;
	case IPC_TRY_ACQUIRE:
		rc = ipc_dec_try_acquire(r, &out.try_acquire);
		break;
	case IPC_ERROR_BEGIN:
	case IPC_ERROR_SUCCESS:
		rc = ipc_dec_error_control(r, &out.error);
		break;
	case IPC_SET_RATE:
		rc = ipc_dec_set_rate(r, &out.rate);
		break;
	default:
		rc = ipc_dec_empty(r);
		break;
	}
	ck_assert_msg(
	    rc == 0, "type %#x does not decode: %d", m->head.type, rc);
}

struct fake_message *
fake_read(struct fake *f, int conn, enum ipc_type type)
{
	uint8_t frame[IPC_MAX_FRAME];
	struct fake_message *m;
	struct reader r;
	uint32_t length;

	ck_assert_uint_lt(f->seen_count, FAKE_SEEN);
	m = &f->seen[f->seen_count];
	read_all(f, conn, frame, sizeof(length));
	reader_init(&r, frame, sizeof(length));
	length = reader_u32(&r);
	ck_assert_uint_ge(length, IPC_HEAD_LEN);
	ck_assert_uint_le(length, IPC_MAX_FRAME);
	read_all(f, conn, frame + 4, length - 4);
	ck_assert_int_eq(ipc_frame(frame, length, &m->head, &r), IPC_MESSAGE);
	ck_assert_msg(
	    m->head.type == type, "type %#x, not %#x", m->head.type, type);
	ck_assert_uint_eq(m->head.flags, 0);
	ck_assert_uint_ne(m->head.id, 0);
	m->conn = conn;
	m->payload_len = reader_left(&r);
	memcpy(m->payload, r.at, m->payload_len);
	decode(m, &r);
	f->seen_count++;
	return m;
}

bool
fake_at_end(struct fake *f, int conn)
{
	uint8_t byte;
	ssize_t n = recv(f->conns[conn], &byte, 1, 0);

	return n == 0 || (n < 0 && errno == ECONNRESET);
}

static struct ipc_str
str(const char *s)
{
	return (struct ipc_str){(const uint8_t *)s, (uint16_t)strlen(s)};
}

void
fake_welcome(struct fake *f, int conn, uint64_t id)
{
	uint8_t buf[1024];
	struct writer w;
	struct ipc_welcome welcome = {.version = IPC_VERSION,
	    .max_frame = f->max_frame,
	    .max_inflight = 16384,
	    .default_deadline_ms = f->default_deadline_ms,
	    .generation = 1,
	    .agent = str("fake")};

	memset(welcome.config_hash, f->hash, IPC_HASH_LEN);
	writer_init(&w, buf, sizeof(buf));
	ck_assert_int_eq(ipc_enc_welcome(&w, id, &welcome), 0);
	fake_write(f, conn, buf, writer_len(&w));
}

int
fake_greet(struct fake *f)
{
	int conn = fake_accept(f);

	fake_welcome(f, conn, fake_read(f, conn, IPC_HELLO)->head.id);
	return conn;
}

void
fake_decide(struct fake *f, int conn, uint64_t id, enum ipc_outcome outcome,
    bool permit, enum ipc_source source, enum ipc_reason reason)
{
	struct ipc_decision decision;
	uint8_t buf[1024];
	struct writer w;

	memset(&decision, 0, sizeof(decision));
	decision.outcome = (uint8_t)outcome;
	decision.permit = permit;
	decision.source = (uint8_t)source;
	decision.reason = (uint8_t)reason;
	decision.text = str("the fake said so");
	writer_init(&w, buf, sizeof(buf));
	ck_assert_int_eq(ipc_enc_decision(&w, id, &decision), 0);
	fake_write(f, conn, buf, writer_len(&w));
}

void
fake_allow(struct fake *f, int conn, uint64_t id)
{
	fake_decide(
	    f, conn, id, IPC_ALLOWED, true, IPC_SOURCE_SERVER, IPC_REASON_OK);
}

void
fake_deny(struct fake *f, int conn, uint64_t id)
{
	fake_decide(f, conn, id, IPC_DENIED, false, IPC_SOURCE_SERVER,
	    IPC_REASON_RESOURCE);
}

void
fake_error(struct fake *f, int conn, uint64_t id, enum ipc_error_code code)
{
	struct ipc_error error = {(uint16_t)code, str("the fake's error")};
	uint8_t buf[1024];
	struct writer w;

	writer_init(&w, buf, sizeof(buf));
	ck_assert_int_eq(ipc_enc_error(&w, id, &error), 0);
	fake_write(f, conn, buf, writer_len(&w));
	fake_close(f, conn);
}

void
fake_go_away(struct fake *f, int conn, uint64_t last_id)
{
	struct ipc_go_away go_away = {last_id, str("the fake goes")};
	uint8_t buf[1024];
	struct writer w;

	writer_init(&w, buf, sizeof(buf));
	ck_assert_int_eq(ipc_enc_go_away(&w, 0, &go_away), 0);
	fake_write(f, conn, buf, writer_len(&w));
}

void
fake_done(struct fake *f, int conn, uint64_t id, enum ipc_reason reason,
    const char *text)
{
	struct ipc_done done = {(uint16_t)reason, str(text)};
	uint8_t buf[1024];
	struct writer w;

	writer_init(&w, buf, sizeof(buf));
	ck_assert_int_eq(ipc_enc_done(&w, id, &done), 0);
	fake_write(f, conn, buf, writer_len(&w));
}

void
fake_delay(struct fake *f, int conn, uint64_t id, enum ipc_reason reason,
    uint64_t wait_us)
{
	struct ipc_delay delay = {
	    (uint16_t)reason, wait_us, str("the fake said so")};
	uint8_t buf[1024];
	struct writer w;

	writer_init(&w, buf, sizeof(buf));
	ck_assert_int_eq(ipc_enc_delay(&w, id, &delay), 0);
	fake_write(f, conn, buf, writer_len(&w));
}

void
fake_reported(struct fake *f, int conn, uint64_t id, enum ipc_reason reason)
{
	struct ipc_reported reported = {(uint8_t)reason, 1, str("")};
	uint8_t buf[1024];
	struct writer w;

	writer_init(&w, buf, sizeof(buf));
	ck_assert_int_eq(ipc_enc_reported(&w, id, &reported), 0);
	fake_write(f, conn, buf, writer_len(&w));
}

void
fake_document(
    struct fake *f, int conn, uint64_t id, const char *json, bool more)
{
	uint8_t buf[IPC_MAX_FRAME];
	struct writer w;

	writer_init(&w, buf, sizeof(buf));
	ck_assert_int_eq(ipc_enc_document(&w, id, json, strlen(json), more), 0);
	fake_write(f, conn, buf, writer_len(&w));
}
