/*
 * One loop over poll(): fill the windows, write, read, count. A frame of a
 * check is a template of which only the ids and the key change.
 */
#include "tests/bench/flow.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "proto/ipc.h"
#include "proto/random.h"
#include "tests/bench/lab.h"

#define BUFFER_LEN (64 * 1024)

/* Where in a frame of CHECK the changing fields are. */
#define CHECK_ID  8
#define CHECK_UID IPC_HEAD_LEN
#define CHECK_KEY                                       \
	(IPC_HEAD_LEN + 52 + 2 + sizeof(LAB_RULE) - 1 + \
	    2) /* after its length */
#define CHECK_LEN (CHECK_KEY + LAB_KEY_LEN)

struct lane {
	int fd;
	bool greeted;
	bool ponged;
	uint64_t id; /* last one used */
	size_t in_flight;
	size_t out_at; /* written up to here */
	size_t out_len;
	size_t in_len;
	uint8_t out[BUFFER_LEN];
	uint8_t in[BUFFER_LEN];
};

struct flow {
	struct random_pool *random;
	size_t in_flight; /* of all lanes */
	size_t done;
	unsigned key;
	uint8_t check[CHECK_LEN];
	size_t count;
	struct pollfd *polls;
	struct lane *lanes;
};

static void
make_template(uint8_t out[CHECK_LEN])
{
	struct writer w;

	writer_init(&w, out, CHECK_LEN);
	writer_u32(&w, CHECK_LEN);
	writer_u16(&w, IPC_CHECK);
	writer_u16(&w, 0);
	writer_u64(&w, 0);
	writer_zeros(&w, IPC_ID_LEN + IPC_HASH_LEN);
	writer_u64(&w, 0); /* age */
	writer_u32(&w, 0); /* deadline: the default */
	writer_u32(&w, IPC_OPT_KEY);
	writer_u32(&w, 1); /* tokens */
	writer_u16(&w, sizeof(LAB_RULE) - 1);
	writer_bytes(&w, LAB_RULE, sizeof(LAB_RULE) - 1);
	writer_u16(&w, LAB_KEY_LEN);
	writer_zeros(&w, LAB_KEY_LEN);
}

static void
put_head(struct writer *w, uint32_t payload, enum ipc_type type, uint64_t id)
{
	writer_u32(w, IPC_HEAD_LEN + payload);
	writer_u16(w, (uint16_t)type);
	writer_u16(w, 0);
	writer_u64(w, id);
}

static void
put_hello(struct lane *lane)
{
	struct writer w;

	writer_init(&w, lane->out, sizeof(lane->out));
	put_head(&w, 10, IPC_HELLO, ++lane->id);
	writer_u32(&w, IPC_MAGIC);
	writer_u16(&w, IPC_VERSION);
	writer_u16(&w, IPC_VERSION);
	writer_u16(&w, 0);
	lane->out_len = writer_len(&w);
}

/* False without room for it. */
static bool
put_ping(struct lane *lane)
{
	struct writer w;

	writer_init(
	    &w, lane->out + lane->out_len, sizeof(lane->out) - lane->out_len);
	put_head(&w, 0, IPC_PING, lane->id + 1);
	if (!writer_ok(&w))
		return false;
	lane->id++;
	lane->out_len += writer_len(&w);
	return true;
}

static int
put_check(struct flow *f, struct lane *lane)
{
	uint8_t *at = lane->out + lane->out_len;
	struct writer w;

	memcpy(at, f->check, CHECK_LEN);
	writer_init(&w, at + CHECK_ID, 8);
	writer_u64(&w, ++lane->id);
	lab_key(f->key++, (char *)at + CHECK_KEY);
	if (random_uuid(f->random, at + CHECK_UID) != 0)
		return lab_fail("no randomness");
	lane->out_len += CHECK_LEN;
	lane->in_flight++;
	f->in_flight++;
	return 0;
}

static int
lane_write(struct lane *lane)
{
	ssize_t n = send(lane->fd, lane->out + lane->out_at,
	    lane->out_len - lane->out_at, MSG_NOSIGNAL);

	if (n < 0)
		return errno == EAGAIN ? 0 : lab_fail("write to the agent");
	lane->out_at += (size_t)n;
	if (lane->out_at == lane->out_len)
		lane->out_at = lane->out_len = 0;
	return 0;
}

/* What fits: in the window, and in the kernel's buffer and ours. */
static int
fill_lane(struct flow *f, struct lane *lane, size_t window, size_t *wanted)
{
	while (*wanted > 0 && lane->in_flight < window) {
		if (sizeof(lane->out) - lane->out_len < CHECK_LEN &&
		    lane_write(lane) != 0)
			return -1;
		if (sizeof(lane->out) - lane->out_len < CHECK_LEN)
			break;
		if (put_check(f, lane) != 0)
			return -1;
		--*wanted;
	}
	return 0;
}

static int
fill(struct flow *f, size_t window, size_t *wanted)
{
	size_t i;

	for (i = 0; i < f->count; i++)
		if (fill_lane(f, &f->lanes[i], window, wanted) != 0)
			return -1;
	return 0;
}

static int
on_decision(struct flow *f, struct lane *lane, struct reader *r)
{
	uint8_t outcome = reader_u8(r), reason;

	(void)reader_u8(r); /* permit: it follows */
	(void)reader_u8(r); /* source: the server, when allowed */
	reason = reader_u8(r);
	errno = 0;
	if (!reader_ok(r) || outcome != IPC_ALLOWED ||
	    reason != IPC_REASON_OK || lane->in_flight == 0)
		return lab_fail("a check was %s (%s), not allowed",
		    ipc_outcome_name((enum ipc_outcome)outcome),
		    ipc_reason_name((enum ipc_reason)reason));
	lane->in_flight--;
	f->in_flight--;
	f->done++;
	return 0;
}

static int
on_frame(struct flow *f, struct lane *lane, const struct ipc_head *head,
    struct reader *payload)
{
	switch (head->type) {
	case IPC_DECISION:
		return on_decision(f, lane, payload);
	case IPC_WELCOME:
		lane->greeted = true;
		return 0;
	case IPC_PONG:
		lane->ponged = true;
		return 0;
	}
	errno = 0;
	return lab_fail("the agent sent a frame of type 0x%04x", head->type);
}

static int
take_frames(struct flow *f, struct lane *lane)
{
	enum ipc_framing framing;
	struct reader payload;
	struct ipc_head head;
	size_t at = 0;

	while ((framing = ipc_frame(lane->in + at, lane->in_len - at, &head,
		    &payload)) == IPC_MESSAGE) {
		if (on_frame(f, lane, &head, &payload) != 0)
			return -1;
		at += head.length;
	}
	errno = 0;
	if (framing == IPC_BAD)
		return lab_fail("the agent sent no frame");
	lane->in_len -= at;
	memmove(lane->in, lane->in + at, lane->in_len);
	return 0;
}

static int
lane_read(struct flow *f, struct lane *lane)
{
	ssize_t n = recv(lane->fd, lane->in + lane->in_len,
	    sizeof(lane->in) - lane->in_len, 0);

	if (n < 0)
		return errno == EAGAIN ? 0 : lab_fail("read from the agent");
	errno = 0;
	if (n == 0)
		return lab_fail("the agent closed a connection");
	lane->in_len += (size_t)n;
	return take_frames(f, lane);
}

/* Writes what there is, then waits for something to read or to write to. */
static int
turn(struct flow *f)
{
	size_t i;
	int n;

	for (i = 0; i < f->count; i++) {
		if (f->lanes[i].out_len > 0 && lane_write(&f->lanes[i]) != 0)
			return -1;
		f->polls[i].events = POLLIN;
		if (f->lanes[i].out_len > 0)
			f->polls[i].events |= POLLOUT;
	}
	errno = EINTR;
	n = lab_signal() ? -1 : poll(f->polls, f->count, LAB_PATIENCE_MS);
	if (n <= 0) {
		if (n == 0)
			errno = ETIMEDOUT;
		return lab_fail("wait for the agent");
	}
	for (i = 0; i < f->count; i++)
		if (f->polls[i].revents & (POLLIN | POLLHUP | POLLERR) &&
		    lane_read(f, &f->lanes[i]) != 0)
			return -1;
	return 0;
}

static int
lane_open(struct lane *lane, const char *path)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};

	errno = ENAMETOOLONG;
	if (strlen(path) >= sizeof(to.sun_path))
		return lab_fail("%s", path);
	strcpy(to.sun_path, path);
	lane->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (lane->fd < 0 ||
	    connect(lane->fd, (struct sockaddr *)&to, sizeof(to)) != 0 ||
	    fcntl(lane->fd, F_SETFL, O_NONBLOCK) != 0)
		return lab_fail("connect to the agent");
	put_hello(lane);
	return 0;
}

/*
 * One after another, so that the agent never greets two at once: what it
 * keeps for a burst of work is not the cost of a connection.
 */
static int
open_lanes(struct flow *f, const char *path, size_t connections)
{
	struct lane *lane;

	while (f->count < connections) {
		lane = &f->lanes[f->count];
		lane->fd = -1;
		f->count++;
		if (lane_open(lane, path) != 0)
			return -1;
		f->polls[f->count - 1].fd = lane->fd;
		while (!lane->greeted)
			if (turn(f) != 0)
				return -1;
	}
	return 0;
}

struct flow *
flow_open(const char *socket, size_t connections)
{
	struct flow *f = calloc(1, sizeof(*f));

	if (f == NULL)
		return NULL;
	make_template(f->check);
	f->random = random_pool_new();
	f->polls = calloc(connections, sizeof(*f->polls));
	f->lanes = calloc(connections, sizeof(*f->lanes));
	if (f->random != NULL && f->polls != NULL && f->lanes != NULL &&
	    open_lanes(f, socket, connections) == 0)
		return f;
	flow_close(f);
	return NULL;
}

void
flow_close(struct flow *f)
{
	size_t i;

	if (f == NULL)
		return;
	for (i = 0; i < f->count; i++)
		if (f->lanes[i].fd >= 0)
			close(f->lanes[i].fd);
	random_pool_free(f->random);
	free(f->polls);
	free(f->lanes);
	free(f);
}

int
flow_run(struct flow *f, size_t window, size_t decisions)
{
	size_t wanted = decisions;

	f->done = 0;
	while (f->done < decisions)
		if (fill(f, window, &wanted) != 0 || turn(f) != 0)
			return -1;
	return 0;
}

int
flow_load(struct flow *f, size_t decisions)
{
	struct lane *lane = &f->lanes[0];
	size_t wanted = decisions;
	bool pinged = false;

	f->done = 0;
	lane->ponged = false;
	while (!lane->ponged) {
		if (fill(f, decisions, &wanted) != 0)
			return -1;
		if (wanted == 0 && !pinged)
			pinged = put_ping(lane);
		if (turn(f) != 0)
			return -1;
	}
	errno = 0;
	return f->done == 0 ? 0 : lab_fail("an answer came too early");
}

int
flow_drain(struct flow *f)
{
	while (f->in_flight > 0)
		if (turn(f) != 0)
			return -1;
	return 0;
}
