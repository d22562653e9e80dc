/*
 * daemon/io/http on socket pairs: requests come whole and once, answers in
 * order, now or later; who goes is told of once; every way to end.
 */
#include "daemon/io/http.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/harness.h"

#define LIMIT_US INT64_C(20000000)
#define GET      "GET /a?b HTTP/1.1\r\nHost: x\r\n\r\n"

#define TURN_UNTIL(condition)                                          \
	do {                                                           \
		int64_t limit_ = loop_now() + LIMIT_US;                \
		while (!(condition)) {                                 \
			if (loop_now() > limit_)                       \
				ck_abort_msg("never: %s", #condition); \
			loop_turn(loop);                               \
		}                                                      \
	} while (0)

static struct loop *loop;
static struct http *http;
static struct http_conn *conn;
static struct agent_counters counters;
static int peer;
static bool answers_now, takes_long;
static int requests, gones, closeds;
static struct http_request last;
static char target[64], form[64], header[64];
static size_t header_count, header_len;
static char came[8192];
static size_t came_len;

static void
answer(unsigned int status)
{
	const struct http_answer a = {
	    .status = status,
	    .body = "body\n",
	    .len = 5,
	    .field_count = 1,
	    .fields = {{"X-Field", "value"}},
	};

	http_answer(conn, &a);
}

static void
on_request(void *user, const struct http_request *req)
{
	const char *value;

	ck_assert_ptr_eq(user, &peer);
	requests++;
	last = *req;
	snprintf(target, sizeof(target), "%s", req->target);
	snprintf(form, sizeof(form), "%.*s", (int)req->form_len,
	    req->form != NULL ? req->form : "");
	header_count = http_header(conn, "x-key", &value, &header_len);
	if (header_count > 0)
		snprintf(header, sizeof(header), "%s", value);
	for (int64_t from = loop_now(); takes_long && loop_now() < from + 2000;)
		continue;
	if (answers_now)
		answer(200);
}

static void
on_gone(void *user)
{
	ck_assert_ptr_eq(user, &peer);
	ck_assert_int_eq(closeds, 0);
	gones++;
}

static void
on_closed(void *user)
{
	ck_assert_ptr_eq(user, &peer);
	closeds++;
}

static const struct http_hooks hooks = {on_request, on_gone, on_closed};

static void
setup(void)
{
	int fds[2];

	memset(&counters, 0, sizeof(counters));
	requests = gones = closeds = 0;
	came_len = 0;
	answers_now = true;
	takes_long = false;
	loop = loop_new();
	http = http_new(loop, &hooks, &counters);
	ck_assert_ptr_nonnull(http);
	ck_assert_int_eq(
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	peer = fds[1];
	conn = http_accept(http, fds[0], &peer);
	ck_assert_ptr_nonnull(conn);
}

static void
teardown(void)
{
	http_free(http);
	loop_free(loop);
	close(peer);
}

static void
say(const char *text)
{
	ck_assert_int_eq(write(peer, text, strlen(text)), (int)strlen(text));
}

/* What came until now; is the connection still there? */
static bool
hear(void)
{
	ssize_t n;

	while (
	    (n = read(peer, came + came_len, sizeof(came) - came_len - 1)) > 0)
		came_len += (size_t)n;
	came[came_len] = '\0';
	return n < 0 && errno == EAGAIN;
}

/* The same, of which only the length is kept. */
static bool
hear_some(size_t *len)
{
	ssize_t n = read(peer, came, sizeof(came));

	*len += n > 0 ? (size_t)n : 0;
	return n > 0 || (n < 0 && errno == EAGAIN);
}

static int
count(const char *part)
{
	int n = 0;

	hear();
	for (const char *at = came; (at = strstr(at, part)) != NULL; at++)
		n++;
	return n;
}

START_TEST(test_now)
{
	say(GET);
	TURN_UNTIL(count("body\n") == 1);
	ck_assert_int_eq(requests, 1);
	ck_assert_str_eq(target, "/a?b");
	ck_assert_int_eq(last.method, HTTP_GET);
	ck_assert(!last.is_form);
	ck_assert_int_eq(count("HTTP/1.1 200 OK\r\n"), 1);
	ck_assert_int_eq(count("X-Field: value\r\n"), 1);
	ck_assert_int_eq(count("Content-Length: 5\r\n"), 1);
	ck_assert_int_eq(count("Connection: close"), 0);
	ck_assert_uint_eq(counters.http_2xx, 1);
	ck_assert(http_idle(http));
	/* A query of many parts costs no memory. */
	say("GET /?");
	for (int i = 0; i < 200; i++)
		say("&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&");
	say(" HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
	TURN_UNTIL(count("body\n") == 2);
	ck_assert(hear());
}
END_TEST

/* Pipelined requests wait for the answer before theirs. */
/* Requests that are there, and take their time, leave turns to others. */
START_TEST(test_turns)
{
	int before;

	takes_long = true;
	for (int i = 0; i < 40; i++)
		say(GET);
	while (count("body\n") < 40) {
		before = requests;
		loop_turn(loop);
		ck_assert_int_le(requests - before, 2);
	}
	ck_assert_int_eq(requests, 40);
}
END_TEST

START_TEST(test_later)
{
	answers_now = false;
	say(GET GET "HEAD /c HTTP/1.1\r\nHost: x\r\n\r\n");
	TURN_UNTIL(requests == 1);
	for (int i = 0; i < 20; i++)
		loop_turn(loop);
	ck_assert_int_eq(requests, 1);
	ck_assert_int_eq(count("HTTP"), 0);
	ck_assert(!http_idle(http));
	answer(200);
	TURN_UNTIL(requests == 2);
	answer(404);
	TURN_UNTIL(requests == 3);
	ck_assert_int_eq(last.method, HTTP_HEAD);
	answer(503);
	TURN_UNTIL(count("HTTP/1.1 503") == 1);
	ck_assert_int_eq(count("body\n"), 2);
	TURN_UNTIL(http_idle(http));
	ck_assert_uint_eq(counters.http_2xx, 1);
	ck_assert_uint_eq(counters.http_4xx, 1);
	ck_assert_uint_eq(counters.http_5xx, 1);
}
END_TEST

START_TEST(test_bodies)
{
	say("POST /f HTTP/1.1\r\nHost: x\r\nX-Key: one\r\nContent-Length: 3\r\n"
	    "Content-Type: application/x-www-form-urlencoded\r\n\r\na=");
	for (int i = 0; i < 20; i++)
		loop_turn(loop);
	ck_assert_int_eq(requests, 0);
	ck_assert(!http_idle(http));
	say("b");
	TURN_UNTIL(requests == 1);
	ck_assert(last.is_form);
	ck_assert_str_eq(form, "a=b");
	ck_assert_uint_eq(header_count, 1);
	ck_assert_uint_eq(header_len, 3);
	ck_assert_str_eq(header, "one");
	say("POST /f HTTP/1.1\r\nHost: x\r\nX-Key: one\r\nx-key: two\r\n"
	    "Content-Length: 3\r\nContent-Type: text/plain\r\n\r\na=b");
	TURN_UNTIL(requests == 2);
	ck_assert(!last.is_form);
	ck_assert_uint_eq(header_count, 2);
	ck_assert_str_eq(header, "one");
	say("PUT /f HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
	    "1\r\nx\r\n0\r\n\r\n");
	TURN_UNTIL(requests == 3);
	ck_assert_int_eq(last.method, HTTP_OTHER);
	ck_assert_uint_eq(header_count, 0);
}
END_TEST

/* The request is given up before the connection is over; nothing is said. */
START_TEST(test_gone)
{
	answers_now = false;
	say(GET);
	TURN_UNTIL(requests == 1);
	if (_i == 0) {
		close(peer);
		peer = -1;
	} else {
		shutdown(peer, SHUT_WR);
	}
	TURN_UNTIL(closeds == 1);
	ck_assert_int_eq(gones, 1);
	ck_assert_uint_eq(counters.http_bad, 0);
	ck_assert_uint_eq(counters.http_2xx, 0);
	if (_i == 1)
		ck_assert_int_eq(count("HTTP"), 0);
}
END_TEST

START_TEST(test_broken_off)
{
	say("GET / HT");
	for (int i = 0; i < 20; i++)
		loop_turn(loop);
	close(peer);
	peer = -1;
	TURN_UNTIL(closeds == 1);
	ck_assert_int_eq(gones, 0);
	ck_assert_int_eq(requests, 0);
	ck_assert_uint_eq(counters.http_bad, 1);
}
END_TEST

START_TEST(test_refused_by_the_library)
{
	say("GET / HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n");
	TURN_UNTIL(closeds == 1);
	ck_assert_int_eq(requests, 0);
	ck_assert_int_eq(count("HTTP/1.1 400"), 1);
	ck_assert_uint_eq(counters.http_4xx, 1);
	ck_assert_uint_eq(counters.http_bad, 1);
}
END_TEST

START_TEST(test_leave)
{
	if (_i == 0) {
		http_leave(conn);
		TURN_UNTIL(closeds == 1);
		ck_assert(!hear());
		return;
	}
	answers_now = false;
	say(GET GET);
	TURN_UNTIL(requests == 1);
	http_leave(conn);
	ck_assert(hear());
	answer(200);
	TURN_UNTIL(closeds == 1);
	ck_assert_int_eq(count("Connection: close\r\n"), 1);
	ck_assert_int_eq(count("body\n"), 1);
	ck_assert_int_eq(requests, 1);
}
END_TEST

/* After an answer that did not say so: it is made, or being sent. */
START_TEST(test_leave_late)
{
	static const char body[1 << 20];
	const struct http_answer long_one = {
	    .status = 200, .body = body, .len = sizeof(body)};
	size_t len = 0;

	answers_now = false;
	say(GET GET);
	TURN_UNTIL(requests == 1);
	http_answer(conn, &long_one);
	if (_i == 1)
		TURN_UNTIL(hear_some(&len) && len > 0);
	http_leave(conn);
	TURN_UNTIL(!hear_some(&len));
	ck_assert_uint_gt(len, sizeof(body));
	TURN_UNTIL(closeds == 1);
	ck_assert_int_eq(requests, 1);
	ck_assert_uint_eq(counters.http_slow, 0);
}
END_TEST

/* What has come in is asked for, and answered. */
START_TEST(test_drain)
{
	answers_now = _i == 0;
	say(GET);
	http_drain(http);
	ck_assert_int_eq(requests, 1);
	if (!answers_now) {
		ck_assert(!http_idle(http));
		answer(200);
	}
	TURN_UNTIL(closeds == 1);
	ck_assert_int_eq(count("Connection: close\r\n"), 1);
	ck_assert(http_idle(http));
}
END_TEST

/* Who has been accepted and has said nothing yet may ask once; whoever is idle
 * after a request is not waited for. */
START_TEST(test_drain_fresh)
{
	http_drain(http);
	ck_assert(http_expecting(http));
	loop_turn(loop);
	ck_assert(hear());
	say("GET /a?b HTTP/1.1\r\n");
	loop_turn(loop);
	ck_assert(http_expecting(http));
	say("Host: x\r\n\r\n");
	TURN_UNTIL(closeds == 1);
	hear();
	ck_assert_int_eq(requests, 1);
	ck_assert_int_eq(count("HTTP/1.1 200 OK\r\n"), 1);
	ck_assert_int_eq(count("Connection: close\r\n"), 1);
	ck_assert(!http_expecting(http));
}
END_TEST

START_TEST(test_drain_fresh_over)
{
	http_drain(http);
	http_drain_fresh(http);
	ck_assert(!http_expecting(http));
	TURN_UNTIL(closeds == 1);
	ck_assert_int_eq(requests, 0);
}
END_TEST

START_TEST(test_drain_idle)
{
	say(GET);
	TURN_UNTIL(hear() && count("body\n") == 1);
	loop_turn(loop);
	http_drain(http);
	ck_assert(!http_expecting(http));
	TURN_UNTIL(closeds == 1);
}
END_TEST

START_TEST(test_free)
{
	answers_now = false;
	say(GET);
	TURN_UNTIL(requests == 1);
	http_free(http);
	http = NULL;
	ck_assert_int_eq(gones, 1);
	ck_assert_int_eq(closeds, 1);
	ck_assert(!hear());
	ck_assert_int_eq(count("HTTP"), 0);
}
END_TEST

/* It says why, and does not reset who is still sending. */
START_TEST(test_refuse)
{
	int fds[2];

	ck_assert_int_eq(
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	close(peer);
	TURN_UNTIL(closeds == 1);
	peer = fds[1];
	http_refuse(http, fds[0], "for a reason");
	say(GET);
	loop_turn(loop);
	say(GET);
	ck_assert_int_eq(count("HTTP/1.1 503 "), 1);
	ck_assert_int_eq(count("\r\n\r\nfor a reason\n"), 1);
	ck_assert_int_eq(count("Content-Length: 13\r\n"), 1);
	ck_assert(!hear());
	ck_assert_int_eq(requests, 0);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("http");
	TCase *tc = tcase_create("http");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, test_now);
	tcase_add_test(tc, test_turns);
	tcase_add_test(tc, test_later);
	tcase_add_test(tc, test_bodies);
	tcase_add_loop_test(tc, test_gone, 0, 2);
	tcase_add_test(tc, test_broken_off);
	tcase_add_test(tc, test_refused_by_the_library);
	tcase_add_loop_test(tc, test_leave, 0, 2);
	tcase_add_loop_test(tc, test_leave_late, 0, 2);
	tcase_add_loop_test(tc, test_drain, 0, 2);
	tcase_add_test(tc, test_drain_fresh);
	tcase_add_test(tc, test_drain_fresh_over);
	tcase_add_test(tc, test_drain_idle);
	tcase_add_test(tc, test_free);
	tcase_add_test(tc, test_refuse);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
