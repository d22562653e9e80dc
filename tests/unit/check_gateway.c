/*
 * Gateways of a whole agent: whatever becomes of connections, requests,
 * servers and configurations, in whatever order, each request is answered once
 * or cut off, and nothing stays counted, referred to or in flight.
 */
#include "daemon/gateway.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "daemon/dispatch_private.h"
#include "tests/unit/agent_fixture.h"

#define GET(target) "GET " target " HTTP/1.1\r\nHost: x\r\n\r\n"
#define WEB         "\"web\":{\"listen\":\"unix:%s/web.sock\"}"
/* The table of listeners ends where that of gateways begins. */
#define GATEWAYS(list) "},\"gateway\":{" list

static const struct shape one = {.listeners = GATEWAYS(WEB)};

static int
web_open(const char *name)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int fd;

	snprintf(
	    to.sun_path, sizeof(to.sun_path), "%.60s/%s.sock", folder, name);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	ck_assert_int_ge(fd, 0);
	if (connect(fd, (const struct sockaddr *)&to, sizeof(to)) == 0)
		return fd;
	close(fd);
	return -1;
}

static bool
web_send(int fd, const char *text, size_t len)
{
	return send(fd, text, len, MSG_NOSIGNAL) == (ssize_t)len;
}

/* All that comes until the end of the connection. */
static const char *
web_rest(int fd)
{
	static char text[4096];
	size_t len = 0;
	ssize_t n;

	while (len < sizeof(text) - 1) {
		n = recv(fd, text + len, sizeof(text) - 1 - len, 0);
		if (n == 0 || (n < 0 && errno != EAGAIN))
			break;
		if (n > 0)
			len += (size_t)n;
		else if (agent != NULL)
			loop_turn(agent->loop);
	}
	text[len] = '\0';
	return text;
}

static uint32_t
connections_of(size_t index)
{
	struct dispatch_port port;

	ck_assert(dispatch_port(agent->dispatch, index, &port));
	return port.connections;
}

/* What has come in when the agent quits is told that it does. */
START_TEST(quit_answers_what_has_come)
{
	int asked, waits;

	start_agent(&one);
	asked = web_open("web");
	waits = web_open("web");
	TURN_UNTIL(connections_of(2) == 2);
	ck_assert(
	    web_send(waits, GET("/check/plain"), strlen(GET("/check/plain"))));
	TURN_UNTIL(dispatch_inflight(agent->dispatch) == 1);
	ck_assert(
	    web_send(asked, GET("/check/plain"), strlen(GET("/check/plain"))));
	agent_quit(agent);
	ck_assert_uint_eq(dispatch_inflight(agent->dispatch), 0);
	stop_agent();
	agent = NULL;
	ck_assert_ptr_nonnull(strstr(web_rest(waits), " 503 "));
	ck_assert_ptr_nonnull(strstr(web_rest(asked), " 503 "));
	close(asked);
	close(waits);
}
END_TEST

#define WEBS   6
#define PEERS  3
#define STEPS  400
#define WORLDS 30

static uint64_t rng;
static int webs[WEBS];
static struct ipc_peer peers[PEERS];
static bool peer_is_there[PEERS];
static uint64_t last_id;

static void
web_close(unsigned int i)
{
	if (webs[i] >= 0)
		close(webs[i]);
	webs[i] = -1;
}

static void
web_step(unsigned int i)
{
	static const char *const texts[] = {
	    GET("/check/checkout?key=k"),
	    GET("/check/checkout?key=k&tokens=3"),
	    GET("/check/quick"),
	    GET("/check/shut") GET("/check/plain") GET("/metrics"),
	    GET("/check/empty"),
	    GET("/check/none"),
	    GET("/readyz"),
	    "POST /check/checkout HTTP/1.1\r\nHost: x\r\n"
	    "Content-Type: application/x-www-form-urlencoded\r\n"
	    "Transfer-Encoding: chunked\r\n\r\n5\r\nkey=k\r\n0\r\n\r\n",
	    "no HTTP at all\r\n\r\n",
	};
	const char *text =
	    texts[harness_below(&rng, sizeof(texts) / sizeof(texts[0]))];
	size_t len = strlen(text);
	char sink[8192];

	if (webs[i] < 0)
		webs[i] = web_open(harness_below(&rng, 3) > 0 ? "web" : "side");
	if (webs[i] < 0)
		return;
	switch (harness_below(&rng, 8)) {
	case 0:
		web_close(i);
		return;
	case 1:
		shutdown(webs[i], SHUT_WR);
		return;
	case 2:
		if (recv(webs[i], sink, sizeof(sink), 0) == 0)
			web_close(i);
		return;
	case 3: /* a part of it, the rest of which never comes, or does */
		len = harness_below(&rng, (uint32_t)len);
		break;
	default:
		break;
	}
	if (!web_send(webs[i], text, len))
		web_close(i);
}

static void
peer_step(unsigned int i)
{
	static const char *const rules[] = {"checkout", "quick", "plain"};
	struct ipc_peer *p = &peers[i];
	const struct peer_base base = {
	    .number = (uint32_t)++last_id, .tokens = 1};

	if (!peer_is_there[i]) {
		peer_is_there[i] = peer_reach(p, main_path);
		if (peer_is_there[i])
			peer_hello(p);
	} else if (harness_below(&rng, 8) == 0) {
		peer_close(p);
		peer_is_there[i] = false;
	} else if (harness_below(&rng, 3) == 0) {
		peer_empty(p, IPC_CANCEL, last_id - harness_below(&rng, 4));
	} else {
		peer_check(
		    p, last_id, &base, rules[harness_below(&rng, 3)], "k");
		while (peer_take(p, &reply))
			continue;
	}
}

/* The second gateway comes and goes, and so does a tenant's policy. */
static void
reload_step(void)
{
	static const char *const gateways[] = {
	    GATEWAYS(WEB),
	    GATEWAYS(WEB ",\"side\":{\"listen\":\"unix:%s/side.sock\"}"),
	    GATEWAYS("\"side\":{\"listen\":\"unix:%s/side.sock\","
		     "\"max_connections\":2}"),
	    "",
	};
	char err[AGENT_ERR_MAX] = "";
	struct config *config = make_config(&(struct shape){
	    .listeners = gateways[harness_below(&rng, 4)],
	    .limits = harness_below(&rng, 2) > 0 ? "\"max_inflight_per_uid\":3"
						 : NULL});
	struct setup *next = agent_prepare(agent, config, err);

	ck_assert_msg(next != NULL, "%s", err);
	ck_assert_msg(agent_follow(agent, next, err) == 0, "%s", err);
	config_unref(config);
}

static void
step(void)
{
	switch (harness_below(&rng, 16)) {
	case 0:
		reload_step();
		return;
	case 1:
	case 2:
	case 3:
		peer_step(harness_below(&rng, PEERS));
		return;
	case 4:
	case 5:
		while (fake_server_take(&server[0], &q)) {
			if (harness_below(&rng, 2) > 0)
				fake_server_allow(&server[0], &q);
		}
		return;
	case 6:
	case 7:
	case 8:
		loop_turn(agent->loop);
		return;
	default:
		web_step(harness_below(&rng, WEBS));
		return;
	}
}

static bool
nothing_is_left(void)
{
	const struct dispatch *d = agent->dispatch;
	struct dispatch_port port;

	for (size_t i = 0; dispatch_port(d, i, &port); i++) {
		if (port.connections != 0 || port.inflight != 0)
			return false;
	}
	return d->requests.count == 0 && d->uses.count == 0 &&
	       d->clients == NULL && agent->retired == NULL &&
	       agent->setup->refs == 0 && gateway_idle(agent->gateway);
}

static void
leave(void)
{
	for (unsigned int i = 0; i < WEBS; i++)
		web_close(i);
	for (unsigned int i = 0; i < PEERS; i++) {
		if (peer_is_there[i])
			peer_close(&peers[i]);
		peer_is_there[i] = false;
	}
}

/* One world: it ends by its clients, or under their feet. */
START_TEST(random_lives)
{
	rng += (uint64_t)_i;
	for (unsigned int i = 0; i < WEBS; i++)
		webs[i] = -1;
	start_agent(&one);
	for (unsigned int i = 0; i < STEPS; i++)
		step();
	if (_i % 3 == 0) {
		leave();
		TURN_UNTIL(nothing_is_left());
	} else if (_i % 3 == 1) {
		agent_quit(agent);
		ck_assert_uint_eq(dispatch_inflight(agent->dispatch), 0);
	}
	stop_agent();
	leave();
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("gateway");
	TCase *tc = tcase_create("gateway");

	rng = harness_seed();
	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, quit_answers_what_has_come);
	tcase_add_loop_test(tc, random_lives, 0, WORLDS);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
