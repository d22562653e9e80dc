/*
 * A request: its head is judged, its body counted and, of a form, kept; the
 * owner is asked, and answers now or while the library has it suspended. What
 * the library refuses by itself never comes here, but for its end.
 */
#include "daemon/io/http_private.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define FORM_TYPE "application/x-www-form-urlencoded"
/* A body that is read for nothing but to say that it is too long. */
#define BODY_IGNORED_MAX (16 * HTTP_BODY_MAX)

static struct http_conn *
conn_of(struct MHD_Connection *mhd)
{
	const union MHD_ConnectionInfo *info =
	    MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info->socket_context;
}

/*
 * We read the query ourselves. The library would, too, with memory for each
 * parameter, and loses its way when that is used up: it gets none to read. What
 * it calls constant is a part of its read buffer, where it writes next.
 */
static void
hide_query(const char *target)
{
	char *mark = target != NULL ? strchr(target, '?') : NULL;

	if (mark != NULL)
		mark[1] = '\0';
}

void *
http_job_begin(void *arg, const char *target, struct MHD_Connection *mhd)
{
	struct http_conn *c = conn_of(mhd);
	const size_t len = target != NULL ? strlen(target) : 0;
	struct http_job *job = malloc(sizeof(*job) + len + 1);

	(void)arg;
	if (c->state != HTTP_STATE_READING)
		http_enter(c, HTTP_STATE_READING);
	if (job == NULL)
		return NULL;
	memset(job, 0, offsetof(struct http_job, form));
	if (len > 0)
		memcpy(job->target, target, len);
	job->target[len] = '\0';
	job->is.target = job->target;
	hide_query(target);
	job->conn = c;
	c->job = job;
	return job;
}

struct found {
	const char *name;
	size_t count;
	const char *value; /* of the first */
	size_t len;
};

static enum MHD_Result
look(void *arg, enum MHD_ValueKind kind, const char *name, size_t name_len,
    const char *value, size_t len)
{
	struct found *f = arg;

	(void)kind;
	if (name_len != strlen(f->name) || strcasecmp(name, f->name) != 0)
		return MHD_YES;
	if (f->count++ == 0) {
		f->value = value != NULL ? value : "";
		f->len = value != NULL ? len : 0;
	}
	return MHD_YES;
}

size_t
http_header(const struct http_conn *c, const char *name, const char **value,
    size_t *len)
{
	struct found f = {.name = name};

	MHD_get_connection_values_n(c->mhd, MHD_HEADER_KIND, look, &f);
	*value = f.value;
	*len = f.len;
	return f.count;
}

static enum http_method
method_of(const char *name)
{
	if (strcmp(name, "GET") == 0)
		return HTTP_GET;
	if (strcmp(name, "HEAD") == 0)
		return HTTP_HEAD;
	return strcmp(name, "POST") == 0 ? HTTP_POST : HTTP_OTHER;
}

static bool
has_form(const struct http_conn *c)
{
	const size_t want = strlen(FORM_TYPE);
	const char *type;
	size_t len;

	return http_header(c, "Content-Type", &type, &len) == 1 &&
	       len >= want && strncasecmp(type, FORM_TYPE, want) == 0 &&
	       (len == want || strchr("; \t", type[want]) != NULL);
}

/* None without memory. */
static void
set_response(struct http_job *job, const struct http_answer *a)
{
	const struct http_conn *c = job->conn;
	struct MHD_Response *r = MHD_create_response_from_buffer(
	    a->len, (void *)(uintptr_t)a->body, MHD_RESPMEM_MUST_COPY);
	bool good = r != NULL;

	job->status = a->status;
	job->kept = !a->last && !c->leaving && !c->http->draining;
	for (size_t i = 0; i < a->field_count && good; i++)
		good = MHD_add_response_header(
			   r, a->fields[i].name, a->fields[i].value) == MHD_YES;
	if (good && !job->kept)
		good = MHD_add_response_header(r, "Connection", "close") ==
		       MHD_YES;
	if (good)
		job->response = r;
	else if (r != NULL)
		MHD_destroy_response(r);
}

/* MHD_NO ends the connection. */
static enum MHD_Result
queue(struct http_job *job)
{
	struct http_conn *c = job->conn;
	enum MHD_Result rc;

	http_enter(c, HTTP_STATE_SENDING);
	rc = MHD_queue_response(c->mhd, job->status, job->response);
	MHD_destroy_response(job->response);
	job->response = NULL;
	return rc;
}

/* Before it is asked, for what came. */
static enum MHD_Result
refuse(struct http_job *job, unsigned int status, const char *text)
{
	const struct http_answer a = {
	    .status = status,
	    .last = true,
	    .body = text,
	    .len = strlen(text),
	    .field_count = 2,
	    .fields = {{"Content-Type", "text/plain; charset=utf-8"},
		{"Cache-Control", "no-store"}},
	};

	job->asked = true;
	set_response(job, &a);
	return job->response != NULL ? queue(job) : MHD_NO;
}

static enum MHD_Result
refuse_length(struct http_job *job)
{
	return refuse(job, MHD_HTTP_CONTENT_TOO_LARGE,
	    "the body is longer than 65536 bytes\n");
}

_Static_assert(HTTP_BODY_MAX == 65536, "the text above");

static bool
is_plain(const char *target)
{
	for (; *target != '\0'; target++) {
		if ((unsigned char)*target <= ' ' || *target == 0x7f)
			return false;
	}
	return true;
}

/* What the library would not refuse, or not with an answer. */
static enum MHD_Result
judge_line(struct http_job *job, const char *version)
{
	const char *host;
	size_t len;

	if (!is_plain(job->target))
		return refuse(job, MHD_HTTP_BAD_REQUEST,
		    "the target holds a blank or a control character\n");
	if (strcmp(version, "HTTP/1.0") != 0 &&
	    http_header(job->conn, "Host", &host, &len) != 1)
		return refuse(
		    job, MHD_HTTP_BAD_REQUEST, "Host: must be there, once\n");
	if (!http_head_is_plain(job->conn->mhd))
		return refuse(job, MHD_HTTP_BAD_REQUEST,
		    "a field's name is no token, or it is folded\n");
	return MHD_YES;
}

/*
 * Two readers that disagree on where a body ends take its rest for another
 * request: what is not plain is refused. The library has read the number.
 */
static enum MHD_Result
judge_body(struct http_job *job)
{
	const struct http_conn *c = job->conn;
	const char *length, *coding;
	size_t length_len, coding_len;
	const size_t lengths =
	    http_header(c, "Content-Length", &length, &length_len);
	const size_t codings =
	    http_header(c, "Transfer-Encoding", &coding, &coding_len);

	if (lengths + codings > 1)
		return refuse(job, MHD_HTTP_BAD_REQUEST,
		    "the length of the body is told more than once\n");
	if (codings == 1 && strcasecmp(coding, "chunked") != 0)
		return refuse(job, MHD_HTTP_BAD_REQUEST,
		    "Transfer-Encoding: only chunked is known\n");
	if (lengths == 1 && (strspn(length, "0123456789") != length_len ||
				strtoull(length, NULL, 10) > HTTP_BODY_MAX))
		return refuse_length(job);
	job->is.is_form = job->is.method == HTTP_POST && has_form(c);
	return MHD_YES;
}

static enum MHD_Result
take_body(struct http_job *job, const char *data, size_t *len)
{
	const size_t room = HTTP_FORM_MAX;

	if (job->body < room)
		memcpy(job->form + job->body, data,
		    *len < room - job->body ? *len : room - job->body);
	job->body += *len;
	*len = 0;
	return job->body <= BODY_IGNORED_MAX ? MHD_YES : MHD_NO;
}

/* The answer may be there when this returns. */
static enum MHD_Result
ask(struct http_job *job)
{
	struct http_conn *c = job->conn;

	if (job->body > HTTP_BODY_MAX)
		return refuse_length(job);
	job->asked = true;
	if (job->is.is_form) {
		job->is.form_len = job->body;
		job->is.form = job->body <= HTTP_FORM_MAX ? job->form : NULL;
	}
	http_enter(c, HTTP_STATE_ASKED);
	c->http->hooks->request(c->user, &job->is);
	if (job->dead)
		return MHD_NO;
	if (job->response != NULL)
		return queue(job);
	if (c->gone) {
		http_job_abandon(job);
		return MHD_NO;
	}
	job->suspended = true;
	MHD_suspend_connection(c->mhd);
	return MHD_YES;
}

enum MHD_Result
http_job_handle(void *arg, struct MHD_Connection *mhd, const char *url,
    const char *method, const char *version, const char *data, size_t *len,
    void **context)
{
	struct http_job *job = *context;

	(void)arg;
	(void)mhd;
	(void)url;
	if (job == NULL || job->dead || job->conn->cut)
		return MHD_NO;
	if (!job->headed) {
		job->headed = true;
		job->is.method = method_of(method);
		if (judge_line(job, version) != MHD_YES)
			return MHD_NO;
		return job->asked ? MHD_YES : judge_body(job);
	}
	if (*len > 0)
		return take_body(job, data, len);
	if (!job->asked)
		return ask(job);
	return job->response != NULL ? queue(job) : MHD_NO;
}

static void
resume(struct http_job *job)
{
	if (!job->suspended)
		return;
	job->suspended = false;
	MHD_resume_connection(job->conn->mhd);
	/* The library has no descriptor that would tell it. */
	loop_defer(job->conn->http->loop, &job->conn->http->run);
}

void
http_answer(struct http_conn *c, const struct http_answer *a)
{
	struct http_job *job = c->job;

	set_response(job, a);
	job->dead = job->response == NULL;
	resume(job);
}

void
http_job_abandon(struct http_job *job)
{
	struct http_conn *c = job->conn;

	if (job->dead || job->response != NULL)
		return;
	job->dead = true;
	c->http->hooks->gone(c->user);
	resume(job);
}

static void
count(struct agent_counters *n, unsigned int status)
{
	switch (status / 100) {
	case 2:
		n->http_2xx++;
		return;
	case 4:
		n->http_4xx++;
		return;
	case 5:
		n->http_5xx++;
		return;
	default:
		return;
	}
}

/* Of a request that the library has refused by itself, or 0. */
static unsigned int
own_status(struct MHD_Connection *mhd)
{
	const union MHD_ConnectionInfo *info =
	    MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_HTTP_STATUS);

	return info != NULL ? info->http_status : 0;
}

void
http_job_end(void *arg, struct MHD_Connection *mhd, void **context,
    enum MHD_RequestTerminationCode code)
{
	struct http_job *job = *context;
	struct http_conn *c = conn_of(mhd);
	struct agent_counters *n = ((struct http *)arg)->counters;

	(void)code;
	*context = NULL;
	c->job = NULL;
	if (job != NULL && job->status != 0) {
		count(n, job->status);
	} else if (job != NULL && !job->asked && !c->cut) {
		count(n, own_status(mhd));
		n->http_bad++;
	}
	http_enter(c, HTTP_STATE_IDLE);
	if (job != NULL && job->kept && c->leaving)
		http_cut(c); /* the answer did not say so yet */
	if (job != NULL && job->response != NULL)
		MHD_destroy_response(job->response);
	free(job);
}
