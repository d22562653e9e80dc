/*
 * Several servers: over the relay that sends to as many and waits for all,
 * with one seal, one id, and an open for each answer. completion_delivery,
 * which sends again to those that had not answered when one was selected, is
 * work that the relay has not got: those rows only inform.
 */
#include "tests/bench/bench.h"

#include <stdlib.h>

#define CHECKS 10000
#define CRYPTO 5000

static const unsigned counts[] = {3, 5};
static const size_t windows[] = {50, 1000};

#define COUNTS  (sizeof(counts) / sizeof(counts[0]))
#define WINDOWS (sizeof(windows) / sizeof(windows[0]))

enum { RELAY, AGENT, DELIVERING, KINDS };

static const char *const names[KINDS] = {"relay", "agent", "agent delivering"};

struct many {
	struct lab_responder responder;
	struct lab_relay relay;
	struct lab_agent agent, delivering;
	struct side sides[WINDOWS][KINDS];
};

struct servers {
	struct many many[COUNTS];
};

static void
many_close(struct bench *b, struct many *many)
{
	for (size_t i = 0; i < WINDOWS; i++)
		for (size_t k = 0; k < KINDS; k++)
			side_close(&many->sides[i][k]);
	if (many->agent.pid > 0)
		lab_stop_agent(&b->lab, &many->agent);
	if (many->delivering.pid > 0)
		lab_stop_agent(&b->lab, &many->delivering);
}

static int
many_open(struct bench *b, struct many *many, unsigned count)
{
	const struct lab_wanted wanted = {.servers = count};
	const struct lab_special none = {0};
	const struct lab_special delivering = {.policy = LAB_POLICY_DELIVERY};

	if (lab_start_responder(&b->lab, &wanted, &many->responder) != 0 ||
	    lab_start_relay(&b->lab, &many->responder, false, &many->relay) !=
		0 ||
	    lab_start_agent(&b->lab, &many->responder, &none, &many->agent) !=
		0 ||
	    lab_start_agent(
		&b->lab, &many->responder, &delivering, &many->delivering) != 0)
		return -1;
	for (size_t i = 0; i < WINDOWS; i++) {
		const struct shape shape = {.window = windows[i]};

		if (side_open(&many->sides[i][RELAY], many->relay.pid,
			many->relay.socket, &shape) != 0 ||
		    side_open(&many->sides[i][AGENT], many->agent.pid,
			many->agent.socket, &shape) != 0 ||
		    side_open(&many->sides[i][DELIVERING], many->delivering.pid,
			many->delivering.socket, &shape) != 0)
			return -1;
	}
	return 0;
}

static void
servers_close(struct bench *b, void *state)
{
	struct servers *servers = state;

	for (size_t i = 0; i < COUNTS; i++)
		many_close(b, &servers->many[i]);
	free(servers);
}

static void *
servers_open(struct bench *b)
{
	struct servers *servers = calloc(1, sizeof(*servers));

	for (size_t i = 0; servers != NULL && i < COUNTS; i++) {
		if (many_open(b, &servers->many[i], counts[i]) == 0)
			continue;
		servers_close(b, servers);
		servers = NULL;
	}
	return servers;
}

/* Row number n of those with and of those without delivery. */
static int
measure(struct bench *b, struct many *many, size_t i, size_t n)
{
	const unsigned count = many->responder.count;
	struct crypto_costs costs;
	double floor, us[KINDS];
	char name[REPORT_NAME];

	if (crypto_measure(b->crypto, CRYPTO, &costs) != 0 ||
	    side_compare(many->sides[i], KINDS, bench_checks(b, CHECKS), us) !=
		0)
		return -1;
	floor = us[RELAY] + costs.id + costs.seal + count * costs.open;
	report_add(&b->report, ROW_SERVERS_3_50 + n, us[AGENT] / floor);
	report_add(&b->report, ROW_DELIVERY_3_50 + n, us[DELIVERING] / floor);
	for (size_t k = 0; k < KINDS; k++) {
		snprintf(name, sizeof(name), "CPU of %s, %u servers, x %zu",
		    names[k], count, windows[i]);
		report_figure(&b->report, name, "us", us[k]);
	}
	return 0;
}

static int
servers_round(struct bench *b, void *state)
{
	struct servers *servers = state;

	for (size_t k = 0; k < COUNTS; k++)
		for (size_t i = 0; i < WINDOWS; i++)
			if (measure(b, &servers->many[k], i, k * WINDOWS + i) !=
			    0)
				return -1;
	return 0;
}

const struct group group_servers = {"servers", ROW_SERVERS_3_50,
    ROW_DELIVERY_5_1000, 7, servers_open, servers_round, servers_close};
