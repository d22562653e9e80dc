/*
 * What the tests of the load generator share: a load against a scripted agent,
 * and scripts. Tests only.
 */
#ifndef TESTS_UNIT_LOAD_FIXTURE_H
#define TESTS_UNIT_LOAD_FIXTURE_H

#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "client-shim/load.h"
#include "tests/unit/fake_agent.h"
#include "tests/unit/harness.h"

#define LOAD_SLOT(id) ((id)&0xffff)

static struct fake fake;
static char err[LOAD_ERR_MAX];

static inline struct load_options
load_options(size_t connections, size_t window)
{
	return (struct load_options){.socket = fake.path,
	    .rule = "r",
	    .key = "k",
	    .keys = 1,
	    .tokens = 1,
	    .connections = connections,
	    .window = window};
}

static inline struct load *
open_load(const struct load_options *options)
{
	struct load *load = load_open(options, err);

	ck_assert_msg(load != NULL, "%s", err);
	return load;
}

/* A load against the script, with its options. */
static inline struct load *
start_load(void (*script)(struct fake *f), const struct load_options *options)
{
	fake_start(&fake, script);
	return open_load(options);
}

static inline void
end_load(struct load *load)
{
	load_close(load);
	fake_stop(&fake);
}

static inline void
ran(int rc)
{
	ck_assert_msg(rc == 0, "%s", err);
}

static inline void
failed_with(int rc, const char *want)
{
	ck_assert_int_eq(rc, -1);
	ck_assert_str_eq(err, want);
}

/* For scripts. */

static inline uint64_t
read_check(struct fake *f, int conn)
{
	if (f->seen_count == FAKE_SEEN)
		f->seen_count = 0;
	return fake_read(f, conn, IPC_CHECK)->head.id;
}

static inline bool
closed(struct fake *f, int conn)
{
	uint8_t byte;

	return recv(f->conns[conn], &byte, 1, MSG_PEEK) <= 0;
}

static inline void
pong(struct fake *f, int conn, uint64_t id)
{
	const struct ipc_ping nothing = {{NULL, 0}};
	uint8_t buf[64];
	struct writer w;

	writer_init(&w, buf, sizeof(buf));
	ck_assert_int_eq(ipc_enc_pong(&w, id, &nothing), 0);
	fake_write(f, conn, buf, writer_len(&w));
}

/* One that permits, as bytes; how many. */
static inline size_t
put_decision(uint8_t *out, size_t cap, uint64_t id)
{
	const struct ipc_decision d = {
	    .permit = 1, .text = ipc_text("in pieces")};
	struct writer w;

	writer_init(&w, out, cap);
	ck_assert_int_eq(ipc_enc_decision(&w, id, &d), 0);
	return writer_len(&w);
}

/* Greets so many, and allows whatever they ask until all are closed. */
static inline void
serve(struct fake *f, int connections)
{
	struct pollfd polls[FAKE_CONNS];
	int i, open = connections;

	for (i = 0; i < connections; i++) {
		polls[i].events = POLLIN;
		polls[i].fd = f->conns[fake_greet(f)];
	}
	while (open > 0) {
		ck_assert_int_gt(poll(polls, (nfds_t)connections, 20000), 0);
		for (i = 0; i < connections; i++) {
			if (polls[i].fd < 0 || polls[i].revents == 0)
				continue;
			if (closed(f, i)) {
				polls[i].fd = -1;
				open--;
			} else {
				fake_allow(f, i, read_check(f, i));
			}
		}
	}
}

/* Until the other side has read all. */
static inline void
until_read(struct fake *f, int conn)
{
	int left = 1;

	while (left > 0) {
		if (ioctl(f->conns[conn], SIOCOUTQ, &left) != 0)
			ck_abort_msg("SIOCOUTQ: %s", strerror(errno));
		if (left > 0)
			poll(NULL, 0, 1);
	}
}

#endif
