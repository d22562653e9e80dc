/*
 * HTTP/1.1: connections that somebody else accepted, whole requests in, one
 * answer out for each. Knows nothing of what is asked. libmicrohttpd parses and
 * writes; it runs in our loop, and all limits in time are ours, so whatever
 * trickles in cannot prolong them: a request has to be there, and its answer
 * has to be taken, HTTP_REQUEST_US after its first byte; a connection without
 * one may be idle for HTTP_IDLE_US.
 *
 * A peer that stops sending (half-close) has closed: what it asked for and was
 * not answered yet is given up.
 */
#ifndef DAEMON_IO_HTTP_H
#define DAEMON_IO_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/counters.h"
#include "daemon/io/loop.h"

#define HTTP_REQUEST_US INT64_C(10000000)
#define HTTP_IDLE_US    INT64_C(60000000)
/* Of a connection, for the head of a request and that of its answer. */
#define HTTP_MEMORY     131072
#define HTTP_BODY_MAX   65536 /* over it: 413 */
#define HTTP_FORM_MAX   8192  /* bytes of a body that are kept */
#define HTTP_MAX_FIELDS 12

struct http;
struct http_conn;

enum http_method { HTTP_GET, HTTP_HEAD, HTTP_POST, HTTP_OTHER };

/* Borrowed for the call. */
struct http_request {
	enum http_method method;
	const char *target; /* path and query, as they were sent */
	bool is_form;       /* a POST of application/x-www-form-urlencoded */
	size_t form_len;    /* of it */
	const char *form;   /* NULL when it is longer than HTTP_FORM_MAX */
};

struct http_field {
	const char *name;
	const char *value;
};

/* Copied. Date, Content-Length and Connection are added. */
struct http_answer {
	unsigned int status;
	bool last; /* the connection is closed afterwards */
	const char *body;
	size_t len;
	size_t field_count;
	struct http_field fields[HTTP_MAX_FIELDS];
};

/* user is the connection's. */
struct http_hooks {
	/* To be answered with http_answer(), now or later. */
	void (*request)(void *user, const struct http_request *req);
	/* The peer is gone: the request is not to be answered any more. */
	void (*gone)(void *user);
	/* The connection is over. Once, and the last. */
	void (*closed)(void *user);
};

/* Borrows all, counts in counters. NULL without memory or descriptors. */
struct http *http_new(struct loop *loop, const struct http_hooks *hooks,
    struct agent_counters *counters);
/* Closes all connections. Not from a hook. Takes NULL. */
void http_free(struct http *http);

/* Takes fd. NULL without memory; fd is closed then, and no hook runs. */
struct http_conn *http_accept(struct http *http, int fd, void *user);
/* Instead: says why in an answer of status 503, and closes fd. */
void http_refuse(struct http *http, int fd, const char *why);
/* Of its request that is not answered yet, once. */
void http_answer(struct http_conn *conn, const struct http_answer *answer);
/* The connection is closed after the answer under way, or at once. */
void http_leave(struct http_conn *conn);

/*
 * A header of the request that the request hook is running for: how often it
 * is there, and with once or more, the first one's value.
 */
size_t http_header(const struct http_conn *conn, const char *name,
    const char **value, size_t *len);

/*
 * What has come in until now is taken, and all connections leave, but for those
 * without a request so far: they were accepted, and the first one may be on its
 * way. Not from a hook.
 */
void http_drain(struct http *http);
/* Is there one of those, or a request that is not whole? */
bool http_expecting(const struct http *http);
/* Those leave, too. Not from a hook. */
void http_drain_fresh(struct http *http);
/* Is an answer on its way that the kernel has not all of? */
bool http_sending(const struct http_conn *conn);
/* Is every request that has begun answered, and the answer with the kernel? */
bool http_idle(const struct http *http);

#endif
