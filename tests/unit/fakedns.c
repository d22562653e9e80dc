/* A nameserver for tests, on UDP and TCP of one port. */
#include "tests/unit/fakedns.h"

#include <assert.h>
#include <ctype.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_CONNS 64

struct fakedns {
	struct loop *loop;
	fakedns_fn *fn;
	void *arg;
	struct endpoint endpoint;
	int udp;
	int tcp; /* listening; -1 */
	struct event *readable;
	struct event *acceptable;
	size_t conn_count;
	struct bufferevent *conns[MAX_CONNS];
};

static void
put16(uint8_t *at, uint16_t v)
{
	at[0] = (uint8_t)(v >> 8);
	at[1] = (uint8_t)v;
}

static uint16_t
get16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

/* False for what is no question of one name. */
static bool
parse_query(struct fakedns_query *query)
{
	size_t at = DNSREPLY_HEADER, used = 0, label;

	if (query->len < DNSREPLY_HEADER + 5)
		return false;
	while (at < query->len && (label = query->bytes[at]) != 0) {
		if (label > 63 || at + 1 + label >= query->len)
			return false;
		if (used > 0)
			query->name[used++] = '.';
		for (size_t i = 1; i <= label; i++)
			query->name[used++] =
			    (char)tolower(query->bytes[at + i]);
		at += 1 + label;
	}
	query->name[used] = '\0';
	if (at + 5 > query->len)
		return false;
	query->question_len = at + 5 - DNSREPLY_HEADER;
	query->id = get16(query->bytes);
	query->flags = get16(query->bytes + 2);
	query->type = get16(query->bytes + at + 1);
	query->edns = get16(query->bytes + 10) == 1;
	return true;
}

void
fakedns_send(const struct fakedns_query *query, const void *bytes, size_t len)
{
	sendto(query->server->udp, bytes, len, 0,
	    (const struct sockaddr *)&query->from, query->from_len);
}

static void
on_datagram(evutil_socket_t fd, short what, void *arg)
{
	struct fakedns *server = arg;
	struct fakedns_query query = {
	    .server = server, .from_len = sizeof query.from};
	struct dnsreply *reply;
	uint8_t buf[2048];
	ssize_t n = recvfrom(fd, buf, sizeof buf, 0,
	    (struct sockaddr *)&query.from, &query.from_len);

	(void)what;
	if (n < 0)
		return;
	query.bytes = buf;
	query.len = (size_t)n;
	if (!parse_query(&query))
		return;
	reply = malloc(sizeof *reply);
	dnsreply_init(
	    reply, query.id, query.bytes + DNSREPLY_HEADER, query.question_len);
	server->fn(server->arg, &query, reply);
	if (!reply->silent)
		fakedns_send(&query, reply->bytes, reply->len);
	free(reply);
}

static void
drop_conn(struct fakedns *server, struct bufferevent *conn)
{
	for (size_t i = 0; i < server->conn_count; i++) {
		if (server->conns[i] == conn)
			server->conns[i] = server->conns[--server->conn_count];
	}
	bufferevent_free(conn);
}

static void
on_closed(struct bufferevent *conn, short what, void *arg)
{
	(void)what;
	drop_conn(arg, conn);
}

/* The half that was written is out: now break off. */
static void
on_flushed(struct bufferevent *conn, void *arg)
{
	drop_conn(arg, conn);
}

/* Two writes, so that the reader has to put the frame together. */
static void
reply_tcp(struct fakedns *server, struct bufferevent *conn,
    const struct dnsreply *reply)
{
	uint8_t head[2];

	put16(head, (uint16_t)reply->len);
	bufferevent_write(conn, head, 2);
	bufferevent_write(
	    conn, reply->bytes, reply->broken ? reply->len / 2 : reply->len);
	if (reply->broken)
		bufferevent_setcb(conn, NULL, on_flushed, on_closed, server);
}

static void
on_stream(struct bufferevent *conn, void *arg)
{
	struct fakedns *server = arg;
	struct fakedns_query query = {.server = server, .tcp = true};
	struct evbuffer *in = bufferevent_get_input(conn);
	struct dnsreply *reply;
	uint8_t *bytes = evbuffer_pullup(in, -1);

	if (evbuffer_get_length(in) < 2 ||
	    evbuffer_get_length(in) < 2u + get16(bytes))
		return;
	query.bytes = bytes + 2;
	query.len = get16(bytes);
	if (!parse_query(&query))
		return;
	reply = malloc(sizeof *reply);
	dnsreply_init(
	    reply, query.id, query.bytes + DNSREPLY_HEADER, query.question_len);
	server->fn(server->arg, &query, reply);
	if (!reply->silent)
		reply_tcp(server, conn, reply);
	free(reply);
}

static void
on_connection(evutil_socket_t fd, short what, void *arg)
{
	struct fakedns *server = arg;
	int conn = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct bufferevent *bev;

	(void)what;
	if (conn < 0)
		return;
	assert(server->conn_count < MAX_CONNS);
	bev = bufferevent_socket_new(
	    loop_base(server->loop), conn, BEV_OPT_CLOSE_ON_FREE);
	bufferevent_setcb(bev, on_stream, NULL, on_closed, server);
	bufferevent_enable(bev, EV_READ | EV_WRITE);
	server->conns[server->conn_count++] = bev;
}

static socklen_t
loopback(const struct endpoint *e, struct sockaddr_storage *out)
{
	struct sockaddr_in *in = (struct sockaddr_in *)out;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;

	memset(out, 0, sizeof *out);
	if (e->family == 4) {
		in->sin_family = AF_INET;
		in->sin_port = htons(e->port);
		memcpy(&in->sin_addr, e->addr, 4);
		return sizeof *in;
	}
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(e->port);
	memcpy(&in6->sin6_addr, e->addr, 16);
	return sizeof *in6;
}

static int
bind_socket(struct endpoint *e, int type)
{
	struct sockaddr_storage addr;
	socklen_t len = loopback(e, &addr);
	int fd = socket(addr.ss_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	if (bind(fd, (struct sockaddr *)&addr, len) != 0) {
		close(fd);
		return -1;
	}
	getsockname(fd, (struct sockaddr *)&addr, &len);
	e->port = ntohs(((struct sockaddr_in *)&addr)->sin_port);
	return fd;
}

/* One port for both; what is free for UDP may be taken for TCP. */
static bool
bind_both(struct fakedns *server)
{
	for (int i = 0; i < 64; i++) {
		server->endpoint.port = 0;
		server->udp = bind_socket(&server->endpoint, SOCK_DGRAM);
		if (server->udp < 0)
			return false;
		server->tcp = bind_socket(&server->endpoint, SOCK_STREAM);
		if (server->tcp >= 0)
			return listen(server->tcp, 64) == 0;
		close(server->udp);
	}
	return false;
}

struct fakedns *
fakedns_new(struct loop *loop, int family, fakedns_fn *fn, void *arg)
{
	struct fakedns *server = calloc(1, sizeof *server);

	*server = (struct fakedns){
	    .loop = loop,
	    .fn = fn,
	    .arg = arg,
	    .endpoint = {.family = (uint8_t)family},
	};
	if (family == 4)
		memcpy(server->endpoint.addr, "\x7f\0\0\1", 4);
	else
		server->endpoint.addr[15] = 1;
	if (!bind_both(server)) {
		free(server);
		return NULL;
	}
	server->readable = event_new(loop_base(loop), server->udp,
	    EV_READ | EV_PERSIST, on_datagram, server);
	server->acceptable = event_new(loop_base(loop), server->tcp,
	    EV_READ | EV_PERSIST, on_connection, server);
	event_add(server->readable, NULL);
	event_add(server->acceptable, NULL);
	return server;
}

void
fakedns_close_tcp(struct fakedns *server)
{
	if (server->tcp < 0)
		return;
	event_free(server->acceptable);
	close(server->tcp);
	server->tcp = -1;
}

void
fakedns_free(struct fakedns *server)
{
	if (server == NULL)
		return;
	while (server->conn_count > 0)
		drop_conn(server, server->conns[0]);
	fakedns_close_tcp(server);
	event_free(server->readable);
	close(server->udp);
	free(server);
}

struct endpoint
fakedns_endpoint(const struct fakedns *server)
{
	return server->endpoint;
}
