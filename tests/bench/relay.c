/* The program: see relay.h. */
#include "tests/bench/relay.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sysexits.h>

#include "sandbox/number.h"

#define EVENTS      1024
#define PATIENCE    1000 /* ms without any event: a datagram was lost */
#define MAX_BATCHES 16   /* received in one turn */
#define SERVER_MAX  48   /* characters of ID@PORT */

struct options {
	const char *key_file;
	const char *socket;
	bool gso;
};

int
relay_fail(const char *what)
{
	fprintf(stderr, "relay: %s: %s\n", what, strerror(errno));
	return -1;
}

/* ID@PORT. 0 or -1. */
static int
add_server(struct relay *r, const char *text)
{
	const char *port = strchr(text, '@');
	char id[SERVER_MAX];
	uint64_t id_number, port_number;

	if (port == NULL || port - text >= SERVER_MAX ||
	    r->server_count == RELAY_SERVERS)
		return -1;
	memcpy(id, text, (size_t)(port - text));
	id[port - text] = '\0';
	if (number_parse(id, 0, UINT64_MAX, &id_number) != 0 ||
	    number_parse(port + 1, 1, UINT16_MAX, &port_number) != 0)
		return -1;
	r->servers[r->server_count++] = (struct relay_server){
	    id_number, wire_loopback((uint16_t)port_number)};
	return 0;
}

static int
parse_options(struct relay *r, struct options *o, int argc, char **argv)
{
	static const struct option options[] = {
	    {"key-file", required_argument, NULL, 'k'},
	    {"socket", required_argument, NULL, 's'},
	    {"server", required_argument, NULL, 'r'},
	    {"gso", no_argument, NULL, 'g'}, {0}};
	int c, bad = 0;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'k')
			o->key_file = optarg;
		else if (c == 's')
			o->socket = optarg;
		else if (c == 'r')
			bad |= add_server(r, optarg);
		else if (c == 'g')
			o->gso = true;
		else
			bad = -1;
	}
	if (bad == 0 && o->key_file != NULL && o->socket != NULL &&
	    r->server_count > 0 && optind == argc)
		return 0;
	fputs("usage: relay --key-file FILE --socket PATH --server ID@PORT... "
	      "[--gso]\n",
	    stderr);
	return -1;
}

static int
seal_requests(struct relay *r, const char *key_file)
{
	static struct keyring ring;
	char why[KEYRING_WHY];
	int rc;

	keyring_init(&ring);
	if (keyring_load(&ring, key_file, NULL, why) != 0) {
		fprintf(stderr, "relay: %s\n", why);
		return -1;
	}
	rc = presealed_make(&r->slots.sealed, &ring.keys[0], RELAY_SLOTS);
	keyring_fini(&ring);
	if (rc != 0)
		fputs("relay: the requests cannot be sealed\n", stderr);
	return rc;
}

static int
set_up(struct relay *r, const struct options *o)
{
	struct epoll_event event = {EPOLLIN, {.u32 = RELAY_UDP}};
	uint16_t port;
	int fd;

	if (seal_requests(r, o->key_file) != 0)
		return -1;
	relay_slots_init(&r->slots);
	r->epoll = epoll_create1(EPOLL_CLOEXEC);
	fd = wire_open(&port);
	if (r->epoll < 0 || fd < 0 ||
	    epoll_ctl(r->epoll, EPOLL_CTL_ADD, fd, &event) != 0)
		return relay_fail("a socket");
	wire_in_init(&r->in, false);
	wire_out_init(&r->out, fd, o->gso);
	return relay_conns_init(r, o->socket);
}

static unsigned
receive_batch(struct relay *r)
{
	unsigned n = wire_receive(&r->in, r->out.fd), i;
	const struct relay_slot *slot;
	bool first;

	for (i = 0; i < n; i++) {
		slot = relay_slots_answer(
		    r, r->in.bytes[i], r->in.msgs[i].msg_len, &first);
		if (slot != NULL && first)
			relay_conn_decide(r, slot);
	}
	return n;
}

/* As many as one read of a connection may have asked for, so that answers
 * never pile up while checks come in. */
static void
receive(struct relay *r)
{
	unsigned left = MAX_BATCHES;

	while (left-- > 0 && receive_batch(r) == WIRE_BATCH)
		;
}

/* All new requests to one server, then to the next: batches to one place. */
static void
send_requests(struct relay *r)
{
	struct relay_slots *s = &r->slots;
	unsigned server;
	uint32_t i;

	for (server = 0; server < r->server_count; server++)
		for (i = 0; i < s->fresh_count; i++)
			if (s->at[s->fresh[i]].waits & 1u << server)
				wire_add(&r->out,
				    presealed_at(&s->sealed, s->fresh[i]),
				    s->sealed.len, &r->servers[server].address);
	wire_flush(&r->out);
	s->fresh_count = 0;
}

static void
handle(struct relay *r, const struct epoll_event *event)
{
	switch (event->data.u32) {
	case RELAY_UDP:
		receive(r);
		return;
	case RELAY_LISTENER:
		relay_conns_accept(r);
		return;
	}
	if (event->events & EPOLLOUT)
		relay_conn_resume(r, event->data.u32);
	if (event->events & ~(uint32_t)EPOLLOUT)
		relay_conn_read(r, event->data.u32);
}

static void
send_again(struct relay *r)
{
	fprintf(stderr, "relay: %u checks sent again\n",
	    (unsigned)relay_slots_again(&r->slots));
	r->lossy = true;
}

static int
serve(struct relay *r)
{
	static struct epoll_event events[EVENTS];
	int n, i;

	for (;;) {
		n = epoll_wait(r->epoll, events, EVENTS,
		    r->slots.free_count < RELAY_SLOTS ? PATIENCE : -1);
		if (n < 0 && errno != EINTR)
			return relay_fail("epoll");
		for (i = 0; i < n; i++)
			handle(r, &events[i]);
		if (n == 0)
			send_again(r);
		else if (r->slots.free_count == RELAY_SLOTS)
			r->lossy = false;
		send_requests(r);
		relay_conns_flush(r);
	}
}

int
main(int argc, char **argv)
{
	static struct options options;
	static struct relay r;

	if (parse_options(&r, &options, argc, argv) != 0)
		return EX_USAGE;
	if (set_up(&r, &options) != 0)
		return 1;
	puts("ready");
	if (fflush(stdout) != 0)
		return relay_fail("standard output");
	return serve(&r) == 0 ? 0 : 1;
}
