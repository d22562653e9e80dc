/* Checks and answers of one connection of a load. */
#include "client-shim/load_private.h"

#include <stdio.h>
#include <time.h>

/* Of a decision's payload behind reason, at least. */
#define DECISION_REST (2 + 2 + 4 + 8 + 8 + 2 + 2)

#define SLOT_MASK ((UINT64_C(1) << LOAD_SLOT_BITS) - 1)

int64_t
load_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static uint64_t
next_id(struct load_conn *c, size_t slot)
{
	return ++c->sequence << LOAD_SLOT_BITS | slot;
}

/*
 * A latency begins here: once all of them are put together, at the send. With a
 * rate it begins when the check is due, whatever has kept it until now: a stall
 * of the agent is then felt by all that come in its time, and not only by those
 * that are in flight.
 */
static void
stamp(struct load *l, struct load_conn *c, size_t n)
{
	int64_t since = load_now();

	while (n-- > 0) {
		if (l->pace.rate > 0) {
			since = load_pace_next(&l->pace);
			l->pace.asked++;
		}
		c->slots[c->free[c->idle + n]].since = since;
	}
}

/* So many in one send. */
static int
ask_batch(struct load *l, struct load_conn *c, size_t n)
{
	size_t i, slot;

	for (i = 0; i < n; i++) {
		slot = c->free[--c->idle];
		c->slots[slot].id = next_id(c, slot);
		if (load_frame_put(&l->frame, c->slots[slot].id,
			l->out + i * l->frame.len) != 0)
			return load_fail(l->err, "no randomness");
	}
	l->in_flight += n;
	l->result.asked += n;
	stamp(l, c, n);
	return load_lane_send(&c->lane, l->out, n * l->frame.len, l->err);
}

uint64_t
load_checks_due(const struct load *l)
{
	const uint64_t due = l->pace.due - l->pace.asked;

	return l->pace.rate > 0 && due < l->wanted ? due : l->wanted;
}

int
load_checks_ask(struct load *l, struct load_conn *c, uint64_t most)
{
	const size_t fit = sizeof(l->out) / l->frame.len;
	const uint64_t due = load_checks_due(l);
	uint64_t n;

	if (most > due)
		most = due;
	if (most > c->idle)
		most = c->idle;
	while (most > 0 && c->lane.unsent_len == 0) {
		n = most < fit ? most : fit;
		if (ask_batch(l, c, (size_t)n) != 0)
			return -1;
		most -= n;
		l->wanted -= n;
	}
	return 0;
}

int
load_checks_ping(struct load *l, struct load_conn *c)
{
	uint8_t frame[IPC_HEAD_LEN];
	struct writer w;

	writer_init(&w, frame, sizeof(frame));
	writer_u32(&w, sizeof(frame));
	writer_u16(&w, IPC_PING);
	writer_u16(&w, 0);
	writer_u64(&w, next_id(c, 0));
	l->pings++;
	return load_lane_send(&c->lane, frame, sizeof(frame), l->err);
}

static void
count_source(struct load_result *result, enum ipc_source source)
{
	switch (source) {
	case IPC_SOURCE_SERVER:
		break;
	case IPC_SOURCE_EMPTY:
		result->empty++;
		break;
	case IPC_SOURCE_POLICY:
		result->policy++;
		break;
	case IPC_SOURCE_LOCAL:
		result->local++;
		break;
	case IPC_SOURCE_SHADOW:
		result->shadow++;
		break;
	}
}

static void
count_outcome(struct load_result *result, enum ipc_outcome outcome)
{
	switch (outcome) {
	case IPC_ALLOWED:
		result->allowed++;
		break;
	case IPC_DENIED:
		result->denied++;
		break;
	case IPC_FAILED:
		result->failed++;
		break;
	case IPC_CANCELLED:
		result->cancelled++;
		break;
	}
}

/* Why, or for want of a text the name of the reason. */
static bool
keep_failure(struct load *l, enum ipc_reason reason, struct reader *r)
{
	const uint8_t *text;
	size_t len;

	(void)reader_bytes(r, 2 + 2 + 4 + 8 + 8); /* up to limit */
	(void)reader_bytes(r, reader_u16(r));
	len = reader_u16(r);
	text = reader_bytes(r, len);
	if (text == NULL || len > IPC_MAX_TEXT)
		return false;
	snprintf(l->first_failure, sizeof(l->first_failure), "%.*s", (int)len,
	    (const char *)text);
	if (l->first_failure[0] == '\0')
		snprintf(l->first_failure, sizeof(l->first_failure), "%s",
		    ipc_reason_name(reason));
	return true;
}

static int
on_decision(struct load *l, struct load_conn *c, uint64_t id, struct reader *r)
{
	const uint8_t outcome = reader_u8(r), permit = reader_u8(r);
	const uint8_t source = reader_u8(r), reason = reader_u8(r);
	const size_t at = (size_t)(id & SLOT_MASK);

	if (reader_left(r) < DECISION_REST || outcome > IPC_CANCELLED ||
	    permit > 1 || source > IPC_SOURCE_SHADOW || reason >= LOAD_REASONS)
		return load_fail(
		    l->err, "the agent sent a decision that is none");
	if (at >= l->window || id == 0 || c->slots[at].id != id)
		return load_fail(
		    l->err, "the agent decided what is not in flight");
	if (outcome >= IPC_FAILED && l->first_failure[0] == '\0' &&
	    !keep_failure(l, (enum ipc_reason)reason, r))
		return load_fail(
		    l->err, "the agent sent a decision that is none");
	load_histogram_add(&l->latency, l->heard - c->slots[at].since);
	c->slots[at].id = 0;
	c->free[c->idle++] = (uint16_t)at;
	l->in_flight--;
	l->answered = l->heard;
	l->moved = l->heard;
	l->result.checks++;
	l->result.permitted += permit;
	l->result.reasons[reason]++;
	count_outcome(&l->result, (enum ipc_outcome)outcome);
	count_source(&l->result, (enum ipc_source)source);
	return 0;
}

/* The first one, or of a new configuration. */
static int
on_welcome(struct load *l, struct load_conn *c, struct reader *r)
{
	uint32_t default_ms;

	(void)reader_bytes(r, 2 + 2 + 4 + 4); /* up to max_inflight */
	default_ms = reader_u32(r);
	if (!reader_ok(r))
		return load_fail(l->err, "the agent's welcome is cut short");
	if (l->default_deadline)
		l->deadline_ms = default_ms;
	if (!c->greeted)
		l->moved = l->heard;
	c->greeted = true;
	return 0;
}

static int
on_pong(struct load *l)
{
	if (l->pings == 0)
		return load_fail(l->err, "the agent answered no ping");
	l->pings--;
	l->moved = l->heard;
	return 0;
}

/* What the agent says at its end: a text, and what is known beside it. */
static int
on_end(struct load *l, const char *what, struct reader *r, const char *hint)
{
	const uint16_t len = reader_u16(r);
	const uint8_t *text = reader_bytes(r, len);

	if (text == NULL || len > IPC_MAX_TEXT)
		return load_fail(l->err, "%s%s", what, hint);
	return load_fail(
	    l->err, "%s: %.*s%s", what, (int)len, (const char *)text, hint);
}

static int
on_go_away(struct load *l, struct reader *r)
{
	(void)reader_u64(r); /* the last request that it answers */
	return on_end(l, "the agent ends, or sends this away", r, "");
}

static int
on_error(struct load *l, struct reader *r)
{
	const uint16_t code = reader_u16(r);

	(void)reader_u16(r); /* zero */
	return on_end(l, "the agent refuses", r,
	    code == IPC_ERR_BUSY ? " (its limits are max_connections and "
				   "max_connections_per_uid)"
				 : "");
}

static int
on_frame(struct load *l, struct load_conn *c, const struct ipc_head *head,
    struct reader *payload)
{
	switch (head->type) {
	case IPC_DECISION:
		return on_decision(l, c, head->id, payload);
	case IPC_WELCOME:
		return on_welcome(l, c, payload);
	case IPC_PONG:
		return on_pong(l);
	case IPC_GO_AWAY:
		return on_go_away(l, payload);
	case IPC_ERROR:
		return on_error(l, payload);
	}
	return load_fail(
	    l->err, "the agent sent a frame of type 0x%04x", head->type);
}

/* Has nothing but refusals come since the beginning, and enough of them? */
static bool
all_refused(const struct load *l)
{
	const uint64_t *reasons = l->result.reasons;
	const uint64_t refused = reasons[IPC_REASON_VALIDATION] +
				 reasons[IPC_REASON_UNKNOWN_RULE] +
				 reasons[IPC_REASON_UNAUTHORISED];
	const size_t room = l->count * l->window;
	const uint64_t enough = room < LOAD_GIVE_UP ? room : LOAD_GIVE_UP;

	return l->result.checks >= enough && l->result.checks == refused;
}

int
load_checks_read(struct load *l, struct load_conn *c)
{
	enum ipc_framing framing;
	struct reader payload;
	struct ipc_head head;
	size_t at = 0, len;

	if (load_lane_read(&c->lane, l->in, &len, l->err) != 0)
		return -1;
	if (len == 0)
		return 0;
	l->heard = load_now();
	while ((framing = ipc_frame(l->in + at, len - at, &head, &payload)) ==
	       IPC_MESSAGE) {
		if (on_frame(l, c, &head, &payload) != 0)
			return -1;
		at += head.length;
	}
	if (l->wanted > 0 && all_refused(l)) {
		l->wanted = 0;
		l->result.given_up = true;
	}
	if (framing == IPC_BAD)
		return load_fail(l->err, "the agent sent no frame");
	return load_lane_keep(&c->lane, l->in + at, len - at, l->err);
}
