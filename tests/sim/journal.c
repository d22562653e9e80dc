/* Keeping journals, and telling two of them apart. */
#include "tests/sim/journal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void
journal_init(struct journal *j)
{
	memset(j, 0, sizeof(*j));
}

void
journal_fini(struct journal *j)
{
	for (size_t i = 0; i < SCENARIO_OPS_MAX; i++)
		free(j->op[i].read);
	memset(j, 0, sizeof(*j));
}

void
journal_clear(struct journal *j)
{
	struct journal_op *op;

	j->refused = NULL;
	for (op = j->op; op < j->op + SCENARIO_OPS_MAX; op++) {
		op->began = op->ended_at = 0;
		op->ranked = op->sends = op->round = op->selected = 0;
		op->suspected = 0;
		op->final_at = op->missed_at = SCENARIO_NEVER;
		op->missed = 0;
		op->end = END_NONE;
		op->denied = false;
		op->reads = 0;
	}
}

bool
journal_add_send(struct journal_op *op, const struct journal_send *send)
{
	if (op->sends == JOURNAL_SENDS_MAX)
		return false;
	op->send[op->sends++] = *send;
	return true;
}

void
journal_add_read(
    struct journal_op *op, int64_t at, const struct network_datagram *what)
{
	if (op->reads == op->room) {
		op->room = op->room > 0 ? 2 * op->room : 64;
		op->read = reallocarray(op->read, op->room, sizeof(*op->read));
		if (op->read == NULL)
			abort();
	}
	op->read[op->reads++] = (struct journal_read){.at = at, .what = *what};
}

const char *
journal_end_name(enum journal_end end)
{
	switch (end) {
	case END_NONE:
		return "no end";
	case END_SELECTED:
		return "selected";
	case END_TIMEOUT:
		return "timeout";
	case END_NO_SERVER:
		return "no-server";
	case END_NOT_SENT:
		return "not-sent";
	case END_CANCELLED:
		return "cancelled";
	}
	return "unknown";
}

static bool
differ(const char *what, int64_t core, int64_t oracle, char *why, size_t size)
{
	if (core == oracle)
		return false;
	snprintf(why, size, "%s: core %" PRId64 ", oracle %" PRId64, what, core,
	    oracle);
	return true;
}

static bool
differ_set(
    const char *what, uint64_t core, uint64_t oracle, char *why, size_t size)
{
	if (core == oracle)
		return false;
	snprintf(why, size,
	    "%s: core 0x%" PRIx64 ", oracle 0x%" PRIx64 " (a bit a server)",
	    what, core, oracle);
	return true;
}

static bool
differ_sends(const struct journal_op *core, const struct journal_op *oracle,
    char *why, size_t size)
{
	const struct journal_send *c = core->send, *o = oracle->send;

	for (uint32_t i = 0; i < core->sends && i < oracle->sends; i++) {
		if (differ("time of a send", c[i].at, o[i].at, why, size) ||
		    differ_set("targets", c[i].to, o[i].to, why, size) ||
		    differ_set("sent", c[i].taken, o[i].taken, why, size) ||
		    differ(
			"round of a send", c[i].round, o[i].round, why, size) ||
		    differ(
			"a delivery", c[i].delivery, o[i].delivery, why, size))
			return true;
	}
	return differ("number of sends", core->sends, oracle->sends, why, size);
}

static bool
differ_reads(const struct journal_op *core, const struct journal_op *oracle,
    char *why, size_t size)
{
	const struct journal_read *c = core->read, *o = oracle->read;

	for (size_t i = 0; i < core->reads && i < oracle->reads; i++) {
		if (differ("time of a read", c[i].at, o[i].at, why, size) ||
		    differ("a datagram", 0,
			network_order(&c[i].what, &o[i].what), why, size) ||
		    differ("kind of a datagram", c[i].what.kind, o[i].what.kind,
			why, size))
			return true;
	}
	return differ("number of reads", (int64_t)core->reads,
	    (int64_t)oracle->reads, why, size);
}

static bool
differ_end(const struct journal_op *core, const struct journal_op *oracle,
    char *why, size_t size)
{
	if (core->end != oracle->end) {
		snprintf(why, size, "end: core %s, oracle %s",
		    journal_end_name(core->end), journal_end_name(oracle->end));
		return true;
	}
	return differ("time of the end", core->ended_at, oracle->ended_at, why,
		   size) ||
	       differ(
		   "round of the end", core->round, oracle->round, why, size) ||
	       differ("selected server", core->selected, oracle->selected, why,
		   size) ||
	       differ("denied", core->denied, oracle->denied, why, size);
}

static bool
differ_op(const struct journal_op *core, const struct journal_op *oracle,
    char *why, size_t size)
{
	if (differ("begin", core->began, oracle->began, why, size) ||
	    differ("snapshot", core->ranked, oracle->ranked, why, size))
		return true;
	for (uint32_t i = 0; i < core->ranked; i++) {
		if (differ("rank", core->rank[i], oracle->rank[i], why, size))
			return true;
	}
	return differ_set("suspected", core->suspected, oracle->suspected, why,
		   size) ||
	       differ_end(core, oracle, why, size) ||
	       differ_sends(core, oracle, why, size) ||
	       differ("final interval", core->final_at, oracle->final_at, why,
		   size) ||
	       differ("time of the miss", core->missed_at, oracle->missed_at,
		   why, size) ||
	       differ(
		   "missed server", core->missed, oracle->missed, why, size) ||
	       differ_reads(core, oracle, why, size);
}

int
journal_compare(const struct journal *core, const struct journal *oracle,
    uint32_t ops, char *why, size_t size)
{
	if (differ("policy refused", core->refused != NULL,
		oracle->refused != NULL, why, size))
		return 0;
	for (uint32_t i = 0; i < ops; i++) {
		if (differ_op(&core->op[i], &oracle->op[i], why, size))
			return (int)i;
	}
	return -1;
}
