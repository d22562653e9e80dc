/*
 * What the files of http share: http.c (connections and their times),
 * http_request.c (from head to answer), http_head.c (what a head may be) and
 * http_linger.c (the end of one whose peer may still be sending). Nobody else
 * includes this.
 */
#ifndef DAEMON_IO_HTTP_PRIVATE_H
#define DAEMON_IO_HTTP_PRIVATE_H

#include <sys/queue.h>

#include <event2/event.h>
#include <event2/event_struct.h>
#include <microhttpd.h>

#include "daemon/io/http.h"

enum http_state {
	HTTP_STATE_IDLE,
	HTTP_STATE_READING, /* a request has begun */
	HTTP_STATE_ASKED,   /* it is whole, and not answered */
	HTTP_STATE_SENDING, /* its answer */
};

/* A request, from its first line on; the library frees it, as the end of it. */
struct http_job {
	struct http_request is;
	struct http_conn *conn;
	struct MHD_Response *response; /* not queued yet */
	unsigned int status;           /* of the answer; 0: none */
	size_t body;                   /* bytes that came */
	bool headed;                   /* its head was looked at */
	bool asked;
	bool suspended;
	bool kept; /* the connection is, after the answer */
	bool dead; /* nobody is there to answer */
	char form[HTTP_FORM_MAX];
	char target[]; /* ends with NUL */
};

struct http_conn {
	struct http *http;
	void *user;
	struct MHD_Connection *mhd; /* NULL: not yet */
	int fd;                     /* the library's */
	struct event event;         /* something comes in, or the end */
	struct loop_timer *timer;
	enum http_state state;
	struct http_job *job; /* the request under way */
	bool fresh;           /* no request of it has begun */
	bool gone;            /* the peer sends no more */
	bool leaving;
	bool cut; /* we have ended it */
	TAILQ_ENTRY(http_conn) link;
};

TAILQ_HEAD(http_conns, http_conn);
TAILQ_HEAD(http_lingers, http_linger);

struct http {
	struct loop *loop;
	const struct http_hooks *hooks;
	struct agent_counters *counters;
	struct MHD_Daemon *mhd;
	struct event readable; /* its descriptors */
	struct loop_timer *again;
	struct loop_task run;
	struct http_conn *adding; /* to the library, right now */
	struct http_conns conns;
	struct http_lingers lingers;
	uint32_t linger_count;
	bool draining;
};

/* http.c */
/* Its time begins anew. */
void http_enter(struct http_conn *conn, enum http_state state);
/* Both directions end; the library sees it in its turn. */
void http_cut(struct http_conn *conn);

/* http_request.c */
/* Callbacks of the library. */
void *http_job_begin(void *arg, const char *target, struct MHD_Connection *mhd);
enum MHD_Result http_job_handle(void *arg, struct MHD_Connection *mhd,
    const char *url, const char *method, const char *version, const char *data,
    size_t *len, void **job);
void http_job_end(void *arg, struct MHD_Connection *mhd, void **job,
    enum MHD_RequestTerminationCode code);
/* The peer of the request under way is gone. */
void http_job_abandon(struct http_job *job);

/* http_head.c */
/* Every field has a name that is a token and a value of one line. */
bool http_head_is_plain(struct MHD_Connection *mhd);

/* http_linger.c */
/* Closing it at once would reset it under a peer that is still sending, and
 * what it was sent last might never be read. */
void http_linger(struct http *http, int fd);
void http_linger_free_all(struct http *http);

#endif
