/*
 * The running tenant: what is asked of it, and time. The clock moves from one
 * timer to the next, as it would for a loop that is always on time; a stall is
 * said by the script.
 */
#include "tests/world/scene.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/err.h"
#include "tests/world/fake_dns.h"
#include "tests/world/fake_log.h"
#include "tests/world/fake_loop.h"
#include "tests/world/fake_udp.h"

#define TURNS_MAX 1000 /* of a loop that comes to rest */

/* Words that name something. */

struct scene_op *
scene_op_of(struct scene *s, const uint8_t *unique_id)
{
	for (size_t i = s->op_count; i-- > 0;) {
		if (memcmp(s->ops[i].id, unique_id, PACKET_UNIQUE_LEN) == 0 &&
		    s->ops[i].error == 0)
			return &s->ops[i];
	}
	return NULL;
}

static struct scene_op *
op_named(struct scene *s, const char *name)
{
	for (size_t i = 0; i < s->op_count; i++) {
		if (strcmp(s->ops[i].name, name) == 0)
			return &s->ops[i];
	}
	return NULL;
}

struct scene_op *
scene_op(struct scene *s)
{
	const char *name = words_next(&s->w);
	struct scene_op *op = op_named(s, name);

	if (op == NULL)
		words_fault(&s->w, "no operation is named \"%s\"", name);
	return op;
}

unsigned int
scene_server(struct scene *s)
{
	return (unsigned int)words_number(&s->w, SCENE_SERVERS - 1);
}

unsigned int
scene_place(struct scene *s, uint32_t *addr)
{
	const char *text = words_next(&s->w);
	unsigned int server = 0;
	char tail = '\0';
	int n;

	*addr = MEMBERS_MAX_ADDRS;
	n = sscanf(text, "%u/%" SCNu32 "%c", &server, addr, &tail);
	if (server >= SCENE_SERVERS || n < 1 || n > 2 ||
	    (n == 1) != (strchr(text, '/') == NULL) ||
	    (n == 2 && *addr >= s->targets[server].addr_count)) {
		words_fault(&s->w, "no such server or address: \"%s\"", text);
		return 0;
	}
	return server;
}

uint64_t
scene_servers(struct scene *s)
{
	uint64_t set = 0;

	if (!words_have_number(&s->w))
		words_fault(&s->w, "expected servers");
	while (words_have_number(&s->w))
		set |= UINT64_C(1) << scene_server(s);
	return set;
}

uint32_t
scene_port(struct scene *s)
{
	const char *text = "";
	char *end = NULL;
	unsigned long n = 0;

	if (words_accept_prefix(&s->w, "p", &text))
		n = strtoul(text, &end, 10);
	if (n == 0 || n > UINT32_MAX || *end != '\0')
		words_fault(&s->w, "expected a port: p1, p2, ...");
	return (uint32_t)n;
}

int
scene_error(struct scene *s)
{
	static const struct {
		const char *name;
		int error;
	} errors[] = {
	    {"ok", 0},
	    {"ECONNREFUSED", ECONNREFUSED},
	    {"EHOSTUNREACH", EHOSTUNREACH},
	    {"ENETUNREACH", ENETUNREACH},
	    {"EPERM", EPERM},
	    {"EMSGSIZE", EMSGSIZE},
	    {"EMFILE", EMFILE},
	    {"EAFNOSUPPORT", EAFNOSUPPORT},
	};
	const char *name = words_next(&s->w);

	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++) {
		if (strcmp(name, errors[i].name) == 0)
			return errors[i].error;
	}
	words_fault(&s->w, "unknown error \"%s\"", name);
	return 0;
}

/* What is asked of the tenant. */

static int
send_report(struct scene *s, size_t samples)
{
	struct pdu_report report = {.count = samples};

	for (size_t i = 0; i < samples && i < PDU_MAX_REPORTS; i++) {
		report.samples[i] = (struct pdu_sample){
		    .ttl_ms = 1000,
		    .max_samples = 10,
		    .min_samples = 1,
		    .observed_ms = (uint32_t)(50 + i),
		};
		memset(report.samples[i].id, (int)(0x40 + i), ID_LEN);
	}
	s->reports++;
	s->report_samples = samples;
	s->reports_told = false;
	return tenant_report(s->tenant, &report, &s->report_sent);
}

/* report [SAMPLES] */
void
scene_report(struct scene *s)
{
	size_t samples = words_have_number(&s->w)
			     ? (size_t)words_number(&s->w, PDU_MAX_REPORTS + 1)
			     : 1;

	s->report_error = send_report(s, samples);
}

static void ask(struct scene *s, struct scene_op *op, int64_t deadline);

static struct scene_op *
new_op(struct scene *s, const char *name, const char *suffix)
{
	struct scene_op *op;
	uint32_t number = (uint32_t)s->op_count + 1;

	if (s->op_count == SCENE_OPS)
		words_fault(&s->w, "more than %d operations", SCENE_OPS);
	else if (op_named(s, name) != NULL && suffix[0] == '\0')
		words_fault(&s->w, "\"%s\" was asked already", name);
	if (words_failed(&s->w))
		return NULL;
	op = &s->ops[s->op_count++];
	op->scene = s;
	snprintf(op->name, sizeof(op->name), "%s%s", name, suffix);
	memcpy(op->id, &number, sizeof(number));
	op->id[6] = 0x40;
	op->id[8] = 0x80;
	return op;
}

/* The completion of the tenant; what a caller does in it, it does again. */
static void
done(void *arg, const struct tenant_result *result)
{
	struct scene_op *op = arg;
	struct scene *s = op->scene;
	struct scene_op *next;

	if (op->calls++ > 0)
		words_fault(&s->w, "%s completes a second time", op->name);
	op->result = *result;
	op->at = fake_loop_clock();
	switch (op->then) {
	case THEN_NOTHING:
		break;
	case THEN_REPORT:
		s->report_error = send_report(s, 1);
		break;
	case THEN_CHECK:
		next = new_op(s, op->name, "+");
		if (next != NULL) {
			next->rate = op->rate;
			next->start = loop_now();
			ask(s, next, POLICY_NEVER);
		}
		break;
	}
}

static uint64_t
members_now(const struct scene *s)
{
	const struct members *m = tenant_members(s->tenant);
	uint64_t set = 0;

	for (uint32_t i = 0; i < m->count; i++)
		set |= UINT64_C(1) << (m->list[i].server_id - SCENE_FIRST_ID);
	return set;
}

static void
ask(struct scene *s, struct scene_op *op, int64_t deadline)
{
	const struct tenant_check check = {
	    .rate = &op->rate,
	    .unique_id = op->id,
	    .resent = op->start < loop_now(),
	    .now = loop_now(),
	    .start = op->start,
	    .deadline = deadline,
	};

	op->stamp = loop_wall_ms();
	op->members = members_now(s);
	op->key = s->key;
	op->error = tenant_check(s->tenant, &check, done, op, &op->op);
	if (op->error != 0 && op->calls > 0)
		words_fault(
		    &s->w, "%s is refused and completes as well", op->name);
}

/* So many of both, with ids that tell them apart. */
static void
make_rate(struct pdu_rate *rate, size_t guards, size_t resources, size_t label)
{
	static const uint8_t text[PDU_LABEL_MAX + 1];

	*rate = (struct pdu_rate){
	    .guard_count = guards,
	    .resource_count = resources,
	    .label = label > 0 ? text : NULL, /* begins with NUL, too */
	    .label_len = label,
	};
	for (size_t i = 0; i < guards && i < PDU_MAX_GUARDS; i++) {
		rate->guards[i] = (struct pdu_guard){
		    .ttl_ms = 1000,
		    .max_samples = 10,
		    .min_samples = 1,
		    .threshold_ms = 100 + (uint32_t)i,
		};
		memset(rate->guards[i].id, (int)(0x10 + i), ID_LEN);
	}
	for (size_t i = 0; i < resources && i < PDU_MAX_RESOURCES; i++) {
		rate->resources[i] = (struct pdu_resource){
		    .window_ms = 1000, .limit = 50, .tokens = 2};
		memset(rate->resources[i].id, (int)(0x80 + i), ID_LEN);
	}
}

static bool
then_word(struct scene *s, struct scene_op *op)
{
	if (!words_accept(&s->w, "then"))
		return false;
	if (words_accept(&s->w, "report"))
		op->then = THEN_REPORT;
	else if (words_accept(&s->w, "check"))
		op->then = THEN_CHECK;
	else
		words_fault(&s->w, "expected report or check");
	return true;
}

/* check NAME [guards N] [resources N] [label N] [age D] [deadline T]
 *     [id OTHER] [then report|check] */
void
scene_check(struct scene *s)
{
	const char *name = words_next(&s->w);
	struct scene_op *op = new_op(s, name, ""), *other;
	size_t guards = 1, resources = 1, label = 0;
	int64_t deadline = POLICY_NEVER;

	if (op == NULL)
		return;
	op->start = loop_now();
	while (words_more(&s->w) && !words_failed(&s->w)) {
		if (words_accept(&s->w, "guards"))
			guards = words_number(&s->w, PDU_MAX_GUARDS + 1);
		else if (words_accept(&s->w, "resources"))
			resources = words_number(&s->w, PDU_MAX_RESOURCES + 1);
		else if (words_accept(&s->w, "label"))
			label = words_number(&s->w, PDU_LABEL_MAX + 1);
		else if (words_accept(&s->w, "age"))
			op->start = loop_now() - words_time(&s->w);
		else if (words_accept(&s->w, "deadline"))
			deadline = fake_loop_time(words_time(&s->w));
		else if (words_accept(&s->w, "id")) {
			other = scene_op(s);
			if (other != NULL)
				memcpy(op->id, other->id, sizeof(op->id));
		} else if (!then_word(s, op))
			words_fault(&s->w, "unknown part of a check");
	}
	make_rate(&op->rate, guards, resources, label);
	if (!words_failed(&s->w))
		ask(s, op, deadline);
}

/* cancel NAME */
void
scene_cancel(struct scene *s)
{
	struct scene_op *op = scene_op(s);

	if (op == NULL)
		return;
	if (op->error != 0 || op->calls > 0)
		words_fault(&s->w, "%s is over: its handle is gone", op->name);
	else
		tenant_cancel(op->op);
}

/* Time. */

/* Operations that are not decided, as the script has seen it. */
static uint32_t
undecided(const struct scene *s)
{
	uint32_t n = 0;

	for (size_t i = 0; i < s->op_count; i++)
		n += s->ops[i].error == 0 && s->ops[i].calls == 0;
	return n;
}

/* The same, as the tenants have it. */
static uint32_t
inflight(const struct scene *s)
{
	return tenant_inflight(s->tenant) +
	       (s->old != NULL ? tenant_inflight(s->old) : 0);
}

void
scene_turn(struct scene *s)
{
	if (s->timers_first)
		fake_loop_fire(s->loop);
	fake_udp_read();
	if (!s->timers_first)
		fake_loop_fire(s->loop);
	fake_loop_finish(s->loop);
	scene_watch(s);
	if (s->tenant != NULL && inflight(s) != undecided(s))
		words_fault(&s->w,
		    "%" PRIu32 " operations, the tenants say "
		    "%" PRIu32,
		    undecided(s), inflight(s));
}

void
scene_settle(struct scene *s)
{
	int turns = 0;

	if (s->loop == NULL || s->manual)
		return;
	while (fake_loop_busy(s->loop) || fake_udp_readable()) {
		if (words_failed(&s->w) || turns++ == TURNS_MAX) {
			words_fault(&s->w, "the loop does not come to rest");
			return;
		}
		scene_turn(s);
	}
}

/* at T : the loop is on time until then */
void
scene_at(struct scene *s)
{
	int64_t to = words_time(&s->w), next;

	if (to < fake_loop_clock())
		words_fault(&s->w, "time never runs backwards");
	scene_settle(s);
	scene_nothing_left(s);
	while (!words_failed(&s->w) && s->loop != NULL && !s->manual) {
		next = fake_loop_next(s->loop);
		if (next > to)
			break;
		fake_loop_move(next);
		scene_settle(s);
	}
	if (!words_failed(&s->w))
		fake_loop_move(to);
}

/* stall T : nothing runs until then */
void
scene_stall(struct scene *s)
{
	int64_t to = words_time(&s->w);

	if (to < fake_loop_clock())
		words_fault(&s->w, "time never runs backwards");
	scene_settle(s);
	scene_nothing_left(s);
	if (!words_failed(&s->w))
		fake_loop_move(to);
}

/* The end. */

void
scene_nothing_left(struct scene *s)
{
	scene_watch(s);
	for (size_t i = 0; i < s->sent_count; i++) {
		if (!s->sent[i].taken)
			words_fault(&s->w, "not expected: sent %s %u/%" PRIu32,
			    s->sent[i].op != NULL ? s->sent[i].op->name
						  : "report",
			    s->sent[i].server, s->sent[i].addr);
	}
	for (size_t i = 0; i < s->op_count; i++) {
		const struct scene_op *op = &s->ops[i];

		if (op->error != 0 && !op->error_told)
			words_fault(&s->w, "not expected: %s is refused: %s",
			    op->name, err_str(op->error));
		if (op->calls > 0 && !op->calls_told)
			words_fault(
			    &s->w, "not expected: %s completes", op->name);
	}
	if (s->reports > 0 && !s->reports_told)
		words_fault(&s->w, "nothing is expected of the report");
}

void
scene_end(struct scene *s)
{
	s->manual = false;
	scene_settle(s);
	scene_nothing_left(s);
	for (size_t i = 0; i < s->op_count; i++) {
		if (s->ops[i].error == 0 && !s->ops[i].calls_told)
			words_fault(&s->w, "%s is not complete at the end",
			    s->ops[i].name);
	}
	if (s->expects == 0)
		words_fault(&s->w, "the script expects nothing");
	if (s->tenant != NULL)
		scene_close(s);
}

void
scene_fini(struct scene *s)
{
	tenant_free(s->tenant);
	tenant_free(s->old);
	s->tenant = s->old = NULL;
	loop_free(s->loop);
	random_pool_free(s->random);
	for (unsigned int i = 0; i < SCENE_KEYS; i++)
		packet_key_free(s->keys[i]);
	nonce_free(s->nonce);
	free(s->config.servers);
	if (fake_loop_fault() != NULL)
		words_fault(&s->w, "%s", fake_loop_fault());
	fake_udp_reset();
	fake_dns_reset();
	fake_log_reset();
	fake_loop_reset();
}
