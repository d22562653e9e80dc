/*
 * The shim's engine in random lives: an agent that answers in any order, or
 * late, or breaks, goes away, is busy and changes its configuration, against
 * a client that submits, cancels, collects and blocks in between. Each check
 * and each acquire ends exactly once and nothing is left. rlshim.c is included
 * to look.
 */
#include "client-shim/rlshim.c"

#include "tests/unit/rlshim_limit.h"

#define STEPS   4000
#define PENDING 4096

static atomic_bool over;
static uint64_t seed;

/* One connection of the agent, in a thread. */
struct peer {
	pthread_t thread;
	struct fake fake; /* for its way to write */
	uint64_t random;
	struct ipc_head pending[PENDING];
	size_t count;
	uint64_t last_id;
	bool greeted;
};

static bool
chance(struct peer *p, uint32_t percent)
{
	return harness_below(&p->random, 100) < percent;
}

static bool
read_all(int fd, uint8_t *out, size_t len)
{
	return recv(fd, out, len, MSG_WAITALL) == (ssize_t)len;
}

/* False: the client closed, or it is time to end. */
static bool
peer_read(struct peer *p, struct ipc_head *head)
{
	static _Thread_local uint8_t frame[IPC_MAX_FRAME];
	int fd = p->fake.conns[0];
	struct reader r;
	uint32_t length;

	if (!read_all(fd, frame, 4))
		return false;
	reader_init(&r, frame, 4);
	length = reader_u32(&r);
	ck_assert_uint_ge(length, IPC_HEAD_LEN);
	ck_assert_uint_le(length, IPC_MAX_FRAME);
	if (!read_all(fd, frame + 4, length - 4))
		return false;
	ck_assert_int_eq(ipc_frame(frame, length, head, &r), IPC_MESSAGE);
	ck_assert_uint_gt(head->id, head->type == IPC_CANCEL ? 0 : p->last_id);
	if (head->type != IPC_CANCEL)
		p->last_id = head->id;
	return true;
}

/* Waits are short: some are waited, in the test. */
static void
peer_delay(struct peer *p, const struct ipc_head *head)
{
	uint32_t wait_us = harness_below(&p->random, 300);

	if (head->type == IPC_TRY_ACQUIRE && chance(p, 30))
		fake_delay(&p->fake, 0, head->id, IPC_REASON_RESOURCE, 30001);
	else if (chance(p, 90))
		fake_delay(&p->fake, 0, head->id, IPC_REASON_OK, wait_us);
	else
		fake_delay(&p->fake, 0, head->id, IPC_REASON_OVERLOADED, 0);
}

static void
peer_answer(struct peer *p, size_t i, bool cancelled)
{
	const struct ipc_head head = p->pending[i];

	p->pending[i] = p->pending[--p->count];
	ck_assert(!cancelled || head.type == IPC_CHECK);
	if (head.type != IPC_CHECK)
		peer_delay(p, &head);
	else if (cancelled)
		fake_decide(&p->fake, 0, head.id, IPC_CANCELLED, false,
		    IPC_SOURCE_POLICY, IPC_REASON_CANCELLED);
	else if (chance(p, 50))
		fake_allow(&p->fake, 0, head.id);
	else
		fake_deny(&p->fake, 0, head.id);
}

/* Accepted is what came before one of the checks that wait. */
static void
peer_go_away(struct peer *p)
{
	uint64_t last_id = p->last_id;
	size_t i;

	if (p->count > 0 && chance(p, 70))
		last_id =
		    p->pending[harness_below(&p->random, (uint32_t)p->count)]
			.id;
	fake_go_away(&p->fake, 0, last_id);
	for (i = p->count; i > 0; i--) {
		if (p->pending[i - 1].id > last_id)
			continue;
		if (chance(p, 5))
			break; /* and dies before the end */
		peer_answer(p, i - 1, false);
	}
	fake_close(&p->fake, 0);
}

static void
peer_take(struct peer *p, const struct ipc_head *head)
{
	size_t i;

	switch (head->type) {
	case IPC_CHECK:
	case IPC_ACQUIRE:
	case IPC_TRY_ACQUIRE:
	case IPC_ERROR_BEGIN:
		ck_assert_uint_lt(p->count, PENDING);
		p->pending[p->count++] = *head;
		break;
	case IPC_CANCEL:
		for (i = 0; i < p->count; i++) {
			if (p->pending[i].id == head->id) {
				peer_answer(p, i, true);
				break;
			}
		}
		break;
	case IPC_REPORT_RULE:
		if (chance(p, 80))
			fake_reported(&p->fake, 0, head->id, IPC_REASON_OK);
		break;
	case IPC_ERROR_SUCCESS:
		if (chance(p, 80))
			fake_done(&p->fake, 0, head->id, IPC_REASON_OK, "");
		break;
	default:
		ck_assert_uint_eq(head->type, IPC_WAIT);
		fake_done(&p->fake, 0, head->id, IPC_REASON_OK, "");
		break;
	}
}

static void
peer_greet(struct peer *p, uint64_t id)
{
	p->greeted = true;
	if (chance(p, 10))
		fake_error(&p->fake, 0, 0, IPC_ERR_BUSY);
	else if (chance(p, 10))
		fake_close(&p->fake, 0);
	else
		fake_welcome(&p->fake, 0, id);
}

/* What it does by itself. */
static void
peer_act(struct peer *p)
{
	while (p->count > 0 && chance(p, 60))
		peer_answer(
		    p, harness_below(&p->random, (uint32_t)p->count), false);
	if (chance(p, 2))
		fake_close(&p->fake, 0);
	else if (chance(p, 1))
		peer_go_away(p);
	else if (chance(p, 1))
		fake_error(&p->fake, 0, 0, IPC_ERR_SLOW);
	else if (chance(p, 3))
		fake_welcome(&p->fake, 0, 0);
}

static void *
peer_main(void *arg)
{
	struct peer *p = arg;
	struct ipc_head head;
	struct pollfd fd = {.events = POLLIN};

	while (p->fake.conns[0] >= 0 && !atomic_load(&over)) {
		fd.fd = p->fake.conns[0];
		if (poll(&fd, 1, 1) == 0) {
			if (p->greeted)
				peer_act(p);
			continue;
		}
		if (!peer_read(p, &head))
			break;
		if (!p->greeted) {
			peer_greet(p, head.id);
			continue;
		}
		peer_take(p, &head);
		if (chance(p, 30))
			peer_act(p);
	}
	fake_close(&p->fake, 0);
	return NULL;
}

#define PEERS 4096

static struct peer *peers[PEERS];
static size_t peer_count;

static void
script_agent(struct fake *f)
{
	struct pollfd fd = {f->listener, POLLIN, 0};
	struct peer *p;
	size_t i;

	while (!atomic_load(&over)) {
		if (poll(&fd, 1, 1) == 0)
			continue;
		ck_assert_uint_lt(peer_count, PEERS);
		p = calloc(1, sizeof(*p));
		p->fake.hash = (uint8_t)peer_count;
		p->fake.default_deadline_ms = 20000;
		p->fake.max_frame = IPC_MAX_FRAME;
		p->random = seed + 1 + peer_count;
		p->fake.conns[0] = accept(f->listener, NULL, NULL);
		ck_assert_int_ge(p->fake.conns[0], 0);
		peers[peer_count++] = p;
		pthread_create(&p->thread, NULL, peer_main, p);
	}
	for (i = 0; i < peer_count; i++) {
		pthread_join(peers[i]->thread, NULL);
		free(peers[i]);
	}
}

/* ---- the client ---- */

static struct {
	uint64_t ticket;
	int collected;
} checks[STEPS];
static size_t submitted, collected;

static void
random_submit(uint64_t *random)
{
	static const uint32_t timeouts[] = {0, 0, 0, 0, 0, 1, 5, 30};
	uint32_t timeout_ms = timeouts[harness_below(random, 8)];
	struct rl_check check = {.rule = "checkout", .timeout_ms = timeout_ms};
	struct rl_acquire acquire = {
	    .limiter = "mail", .timeout_ms = timeout_ms};
	struct rl_error_control control = {
	    .control = "smtp", .timeout_ms = timeout_ms};
	void *user = &checks[submitted];
	uint64_t *ticket = &checks[submitted].ticket;
	int status;

	switch (harness_below(random, 8)) {
	case 0:
		acquire.no_longer = 1;
		acquire.max_wait_us = 30000;
		/* fallthrough */
	case 1:
		status = rl_submit_acquire(client, &acquire, user, ticket);
		break;
	case 2:
		status = rl_submit_error_begin(client, &control, user, ticket);
		break;
	default:
		status = rl_submit(client, &check, NULL, user, ticket);
		break;
	}
	if (status == RL_OK)
		submitted++;
	else
		ck_assert_int_eq(status, RL_ENOMEM);
}

static bool
random_collect(void)
{
	struct rl_work work;
	size_t i;

	if (rl_collect(client, &completion) == 0)
		return false;
	i = (size_t)((char *)completion.user - (char *)checks) /
	    sizeof(checks[0]);
	ck_assert_uint_lt(i, submitted);
	ck_assert_uint_eq(completion.ticket, checks[i].ticket);
	ck_assert_int_eq(checks[i].collected++, 0);
	collected++;
	rl_begin(&work, &simple, &completion.decision);
	(void)rl_submit_finish(client, &work);
	if (completion.decision.source == RL_SOURCE_LOCAL)
		(void)rl_submit_error_success(client, &smtp);
	return true;
}

static void
random_step(uint64_t *random, int fd)
{
	uint32_t what = harness_below(random, 100);
	size_t i;

	if (what < 50) {
		random_submit(random);
	} else if (what < 60 && submitted > 0) {
		i = harness_below(random, (uint32_t)submitted);
		if (rl_cancel(client, checks[i].ticket) != RL_OK)
			ck_assert_str_eq(
			    rl_last_text(client), "ticket: not in flight");
	} else if (what < 63) {
		ck_assert_int_eq(rl_wait(client, 20000), RL_OK);
	} else if (what < 66) {
		check_simple();
		ck_assert_int_le(decision.outcome, RL_DENIED);
	} else if (what < 69) {
		acquire(&mail);
		if (decision.outcome == RL_FAILED)
			ck_assert_int_eq(decision.reason, RL_REASON_OVERLOADED);
		else
			ck_assert_uint_ge(
			    decision.elapsed_us, decision.wait_us);
	} else if (what < 90) {
		random_collect();
	} else if (readable(fd, 1)) {
		while (random_collect())
			continue;
	}
}

START_TEST(random_lives)
{
	struct rl_options options = {
	    .socket = fake.path, .timeout_ms = 20000, .max_inflight = 500};
	uint64_t random;
	int i, fd;

	random = seed = harness_seed();
	rl_close(client);
	ck_assert_int_eq(rl_open(&client, &options), RL_OK);
	fd = rl_fd(client);
	fake_start(&fake, script_agent);
	for (i = 0; i < STEPS; i++)
		random_step(&random, fd);
	while (collected < submitted) {
		ck_assert_msg(
		    readable(fd, 30000), "%zu of %zu", collected, submitted);
		while (random_collect())
			continue;
	}
	ck_assert_uint_gt(submitted, STEPS / 4);
	/* Reports that nobody answered go with the connection. */
	atomic_store(&over, true);
	fake_join(&fake);
	fake_vanish(&fake);
	while (client->reports > 0) {
		ck_assert(readable(fd, 30000));
		ck_assert_int_eq(rl_collect(client, &completion), 0);
	}
	ck_assert_uint_eq(client->live, 0);
	ck_assert_uint_eq(client->checks, 0);
	ck_assert_uint_eq(client->spares, client->row_count);
	for (i = 1; i < CONN_MAX; i++)
		ck_assert_ptr_null(client->conns[i]);
	ck_assert(client->conns[0] == NULL || readable(fd, 20000));
	ck_assert_int_eq(rl_collect(client, &completion), 0);
	ck_assert_ptr_null(client->conns[0]);
	ck_assert(!readable(fd, 0));
}
END_TEST

static Suite *
random_suite(void)
{
	Suite *s = suite_create("rlshim_random");
	TCase *tc = tcase_create("random");

	tcase_set_timeout(tc, 120);
	tcase_add_checked_fixture(tc, begin, end);
	tcase_add_test(tc, random_lives);
	suite_add_tcase(s, tc);
	return s;
}

int
main(void)
{
	return harness_run(random_suite());
}
