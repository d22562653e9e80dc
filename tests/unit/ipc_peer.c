/* See ipc_peer.h; proto/IPC.md is what it is written by. */
#include "tests/unit/ipc_peer.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

bool
peer_reach(struct ipc_peer *p, const char *path)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};

	memset(p, 0, sizeof(*p));
	snprintf(un.sun_path, sizeof(un.sun_path), "%s", path);
	p->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_ge(p->fd, 0);
	if (connect(p->fd, (const struct sockaddr *)&un, sizeof(un)) != 0) {
		close(p->fd);
		return false;
	}
	ck_assert_int_eq(fcntl(p->fd, F_SETFL, O_NONBLOCK), 0);
	return true;
}

void
peer_open(struct ipc_peer *p, const char *path)
{
	if (!peer_reach(p, path))
		ck_abort_msg("%s: %s", path, strerror(errno));
}

void
peer_close(struct ipc_peer *p)
{
	close(p->fd);
	p->fd = -1;
}

struct writer *
peer_begin(struct ipc_peer *p, uint16_t type, uint64_t id)
{
	writer_init(&p->w, p->frame, sizeof(p->frame));
	writer_u32(&p->w, 0);
	writer_u16(&p->w, type);
	writer_u16(&p->w, 0);
	writer_u64(&p->w, id);
	return &p->w;
}

bool
peer_write(struct ipc_peer *p, const void *bytes, size_t len)
{
	ssize_t n = send(p->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);

	return n >= 0 && (size_t)n == len;
}

void
peer_end(struct ipc_peer *p)
{
	ck_assert(writer_ok(&p->w));
	writer_patch_u32(&p->w, 0, (uint32_t)writer_len(&p->w));
	ck_assert(peer_write(p, p->frame, writer_len(&p->w)));
}

void
peer_str(struct ipc_peer *p, const char *text)
{
	writer_u16(&p->w, (uint16_t)strlen(text));
	writer_bytes(&p->w, text, strlen(text));
}

void
peer_hello(struct ipc_peer *p)
{
	struct writer *w = peer_begin(p, 0x0001, 0);

	writer_u32(w, 0x50494C52);
	writer_u16(w, 1);
	writer_u16(w, 1);
	peer_str(p, "test");
	peer_end(p);
}

void
peer_empty(struct ipc_peer *p, uint16_t type, uint64_t id)
{
	peer_begin(p, type, id);
	peer_end(p);
}

void
peer_wait(struct ipc_peer *p, uint64_t id, uint32_t timeout_ms)
{
	writer_u32(peer_begin(p, 0x0040, id), timeout_ms);
	peer_end(p);
}

void
peer_base(struct ipc_peer *p, const struct peer_base *base)
{
	static const uint8_t zeros[16];
	uint8_t id[16] = {[6] = 0x4F, [8] = 0xBF};

	memcpy(id, &base->number, sizeof(base->number));
	if (base->not_uuid)
		id[6] = 0x1F;
	writer_bytes(&p->w, id, sizeof(id));
	writer_bytes(&p->w, base->hash != NULL ? base->hash : zeros, 16);
	writer_u64(&p->w, base->age_us);
	writer_u32(&p->w, base->deadline_ms);
	writer_u32(&p->w, base->options);
	writer_u32(&p->w, base->tokens);
}

void
peer_check(struct ipc_peer *p, uint64_t id, const struct peer_base *base,
    const char *rule, const char *key)
{
	struct peer_base b = *base;

	if (key != NULL)
		b.options |= 2;
	peer_begin(p, 0x0010, id);
	peer_base(p, &b);
	peer_str(p, rule);
	peer_str(p, key != NULL ? key : "");
	peer_end(p);
}

void
peer_adhoc(struct ipc_peer *p, uint64_t id, const struct peer_base *base,
    const char *tenant, unsigned int guards, unsigned int resources)
{
	struct writer *w = peer_begin(p, 0x0011, id);
	char name[16];

	peer_base(p, base);
	peer_str(p, tenant);
	peer_str(p, "label");
	writer_u16(w, (uint16_t)guards);
	writer_u16(w, (uint16_t)resources);
	for (unsigned int i = 0; i < guards; i++) {
		writer_u32(w, 1000); /* ttl, max, buffer, min, below */
		writer_u32(w, 10);
		writer_u32(w, 16);
		writer_u32(w, 1);
		writer_u32(w, 50);
		snprintf(name, sizeof(name), "g%u", i);
		peer_str(p, name);
	}
	for (unsigned int i = 0; i < resources; i++) {
		writer_u32(w, 1000); /* window, limit, tokens */
		writer_u32(w, 10);
		writer_u32(w, 1);
		snprintf(name, sizeof(name), "r%u", i);
		peer_str(p, name);
	}
	peer_end(p);
}

/* The end of a request that may have a key; its options stand before. */
static void
name_and_key(struct ipc_peer *p, const char *name, const char *key)
{
	writer_u32(&p->w, key != NULL ? 2 : 0);
	peer_str(p, name);
	peer_str(p, key != NULL ? key : "");
	peer_end(p);
}

void
peer_acquire(struct ipc_peer *p, uint64_t id, const char *limiter,
    const char *key, uint32_t permits)
{
	writer_u32(peer_begin(p, 0x0050, id), permits);
	name_and_key(p, limiter, key);
}

void
peer_try_acquire(struct ipc_peer *p, uint64_t id, const char *limiter,
    const char *key, uint32_t permits, uint64_t max_wait_us)
{
	struct writer *w = peer_begin(p, 0x0051, id);

	writer_u64(w, max_wait_us);
	writer_u32(w, permits);
	name_and_key(p, limiter, key);
}

void
peer_error_begin(
    struct ipc_peer *p, uint64_t id, const char *control, const char *key)
{
	peer_begin(p, 0x0052, id);
	name_and_key(p, control, key);
}

void
peer_error_success(
    struct ipc_peer *p, uint64_t id, const char *control, const char *key)
{
	peer_begin(p, 0x0053, id);
	name_and_key(p, control, key);
}

void
peer_set_rate(
    struct ipc_peer *p, uint64_t id, const char *limiter, uint64_t rate)
{
	writer_u64(peer_begin(p, 0x0063, id), rate);
	peer_str(p, limiter);
	peer_end(p);
}

static void
receive(struct ipc_peer *p)
{
	ssize_t n;

	if (p->eof || p->len == sizeof(p->in))
		return;
	n = recv(p->fd, p->in + p->len, sizeof(p->in) - p->len, MSG_DONTWAIT);
	if (n > 0)
		p->len += (size_t)n;
	else if (n == 0 || errno != EAGAIN)
		p->eof = true;
}

static void
text(struct reader *r, char *out, size_t cap)
{
	uint16_t len = reader_u16(r);
	const uint8_t *bytes = reader_bytes(r, len);

	ck_assert_msg(bytes != NULL && len < cap, "a bad string came");
	memcpy(out, bytes, len);
	out[len] = '\0';
}

/* The parts that these have in common: DELAY, DONE, ERROR, REPORTED and
 * GO_AWAY. */
static void
verdict(struct reply *out)
{
	struct reader r;

	reader_init(&r, out->payload, out->len);
	if (out->type == IPC_GO_AWAY) {
		out->number = reader_u64(&r);
	} else if (out->type == IPC_REPORTED) {
		out->number = reader_u8(&r);
		out->sent = reader_u8(&r);
		reader_u16(&r);
	} else {
		out->number = reader_u16(&r);
		ck_assert_uint_eq(reader_u16(&r), 0);
		if (out->type == IPC_DELAY)
			out->wait_us = reader_u64(&r);
	}
	text(&r, out->text, sizeof(out->text));
	ck_assert(reader_done(&r));
}

bool
peer_take(struct ipc_peer *p, struct reply *out)
{
	struct reader r;
	uint32_t length;

	receive(p);
	if (p->len < IPC_HEAD_LEN)
		return false;
	reader_init(&r, p->in, p->len);
	length = reader_u32(&r);
	ck_assert_uint_ge(length, IPC_HEAD_LEN);
	ck_assert_uint_le(length, IPC_MAX_FRAME);
	if (p->len < length)
		return false;
	out->type = reader_u16(&r);
	out->flags = reader_u16(&r);
	out->id = reader_u64(&r);
	out->len = length - IPC_HEAD_LEN;
	memcpy(out->payload, p->in + IPC_HEAD_LEN, out->len);
	p->len -= length;
	memmove(p->in, p->in + length, p->len);
	if (out->type == IPC_DELAY || out->type == IPC_DONE ||
	    out->type == IPC_ERROR || out->type == IPC_REPORTED ||
	    out->type == IPC_GO_AWAY)
		verdict(out);
	return true;
}

static void
detail(struct reader *r, struct peer_decision *d)
{
	char name[PEER_NAME];
	uint32_t below, current;
	uint8_t passed;

	d->guards = reader_u16(r);
	d->resources = reader_u16(r);
	for (unsigned int i = 0; i < d->guards; i++) {
		below = reader_u32(r);
		current = reader_u32(r);
		passed = reader_u8(r);
		text(r, name, sizeof(name));
		if (i > 0)
			continue;
		d->below_ms = below;
		d->current_ms = current;
		d->passed = passed;
		memcpy(d->guard, name, sizeof(name));
	}
	for (unsigned int i = 0; i < d->resources; i++) {
		d->window_ms = reader_u32(r);
		d->limit_tokens = reader_u32(r);
		d->tokens = reader_u32(r);
		d->deficit = reader_u32(r);
		d->actual = reader_u32(r);
		text(r, d->resource, sizeof(d->resource));
	}
}

void
peer_decision(const struct reply *in, struct peer_decision *d)
{
	struct reader r;

	ck_assert_uint_eq(in->type, 0x8010);
	memset(d, 0, sizeof(*d));
	reader_init(&r, in->payload, in->len);
	d->outcome = reader_u8(&r);
	d->permit = reader_u8(&r);
	d->source = reader_u8(&r);
	d->reason = reader_u8(&r);
	d->round = reader_u16(&r);
	d->has = reader_u16(&r);
	d->retry_after_ms = reader_u32(&r);
	d->server_id = reader_u64(&r);
	d->elapsed_us = reader_u64(&r);
	text(&r, d->limit, sizeof(d->limit));
	text(&r, d->text, sizeof(d->text));
	if ((d->has & 1) != 0)
		detail(&r, d);
	ck_assert(reader_done(&r));
}
