/*
 * Checks: from a decoded message to a request in the table and an operation
 * of a tenant. What cannot be started is answered at once; the rest by
 * dispatch_done(), when its operation ends.
 */
#include "daemon/dispatch_private.h"

#include <assert.h>
#include <string.h>

#include "daemon/decision.h"
#include "daemon/message.h"
#include "proto/err.h"

#define container_of(ptr, type, member) \
	((type *)(void *)((char *)(ptr)-offsetof(type, member)))

static const char control_text[] = "the control socket takes no checks";

/* What is known of a check before it is a request in the table. */
struct asking {
	struct client *client;
	uint64_t id;
	const struct ipc_check_base *base;
	const struct config_rule *rule; /* NULL: ad-hoc */
	struct tenant *tenant;          /* NULL while not known */
	struct ipc_str kept;
	int64_t arrived;
	int64_t start; /* earlier than that when it was sent before */
};

static void
request_key(const struct client *c, uint64_t id, uint8_t key[TABLE_KEY_LEN])
{
	uint64_t serial = conn_serial(c->conn);

	memcpy(key, &serial, 8);
	memcpy(key + 8, &id, 8);
}

static struct request *
request_find(const struct client *c, uint64_t id)
{
	uint8_t key[TABLE_KEY_LEN];
	struct table_entry *e;

	request_key(c, id, key);
	e = table_find(&c->dispatch->requests, key);
	return e != NULL ? container_of(e, struct request, entry) : NULL;
}

bool
dispatch_in_flight(const struct client *c, uint64_t id)
{
	return request_find(c, id) != NULL;
}

/* Was it sent before, on a connection that broke? */
static bool
is_resend(const struct asking *a)
{
	static const uint8_t first_time[IPC_HASH_LEN];

	return a->base->age_us != 0 ||
	       memcmp(a->base->config_hash, first_time, IPC_HASH_LEN) != 0;
}

static void
fail(const struct asking *a, enum ipc_reason reason, const char *text)
{
	enum config_failure policy = FAILURE_CLOSED;

	if (a->rule != NULL)
		policy = a->rule->on_failure;
	else if (a->tenant != NULL)
		policy = tenant_config(a->tenant)->on_failure;
	dispatch_fail(a->client->dispatch, reason, policy, text, is_resend(a));
	dispatch_answer(a->client, a->id, a->arrived);
}

static const struct {
	size_t kept;
	uint32_t per_chunk;
} classes[REQUEST_CLASSES] = {{128, 64}, {1024, 16}, {IPC_MAX_FRAME, 4}};

void
dispatch_slots_init(struct dispatch *d)
{
	size_t i;

	for (i = 0; i < REQUEST_CLASSES; i++)
		slab_init(&d->slots[i],
		    sizeof(struct request) + classes[i].kept,
		    classes[i].per_chunk, d->env.config->limits.max_inflight);
}

void
dispatch_slots_fini(struct dispatch *d)
{
	size_t i;

	for (i = 0; i < REQUEST_CLASSES; i++)
		slab_fini(&d->slots[i]);
}

static uint8_t
class_of(size_t kept)
{
	uint8_t class = 0;

	while (classes[class].kept < kept)
		class ++;
	return class;
}

/* Puts the request into its client's list and the table, under a->id. */
static int
request_link(struct request *r, const struct asking *a)
{
	struct client *c = a->client;

	r->client = c;
	r->id = a->id;
	r->arrived = a->arrived;
	r->options = a->base->options;
	r->resent = is_resend(a);
	request_key(c, a->id, r->entry.key);
	if (table_insert(&c->dispatch->requests, &r->entry) != 0)
		return -1;
	r->next = c->requests;
	r->prev = &c->requests;
	if (r->next != NULL)
		r->next->prev = &r->next;
	c->requests = r;
	client_count(c, 1);
	return 0;
}

static void
request_unlink(struct request *r)
{
	table_remove(&r->client->dispatch->requests, &r->entry);
	*r->prev = r->next;
	if (r->next != NULL)
		r->next->prev = r->prev;
	client_count(r->client, -1);
}

void
dispatch_request_free(struct request *r)
{
	struct dispatch *d = r->client->dispatch;

	request_unlink(r);
	slab_put(&d->slots[r->class], r);
}

static struct request *
request_new(const struct asking *a)
{
	struct dispatch *d = a->client->dispatch;
	uint8_t class = class_of(a->kept.len);
	struct request *r = slab_get(&d->slots[class]);

	if (r == NULL)
		return NULL;
	memset(r, 0, sizeof(*r));
	r->rule = a->rule;
	r->tenant = a->tenant;
	r->tokens = a->base->tokens;
	r->class = class;
	r->kept_len = a->kept.len;
	if (a->kept.len > 0)
		memcpy(r->kept, a->kept.bytes, a->kept.len);
	if (request_link(r, a) != 0) {
		slab_put(&d->slots[class], r);
		return NULL;
	}
	return r;
}

static bool
is_uuid4(const uint8_t id[IPC_ID_LEN])
{
	return (id[6] & 0xf0) == 0x40 && (id[8] & 0xc0) == 0x80;
}

/* May what remains of it be run? */
static bool
resumable(const struct asking *a, int64_t horizon_us, const char **why)
{
	if (!is_resend(a))
		return true;
	if (memcmp(a->base->config_hash, a->client->dispatch->env.config->hash,
		IPC_HASH_LEN) != 0) {
		*why = "first sent under another configuration";
		return false;
	}
	*why = "its deduplication horizon has passed";
	return a->arrived - a->start < horizon_us;
}

/* Do both ask for the same? An ad-hoc payload begins with the base, where
 * the age may differ. */
static bool
same_question(const struct asking *a, const struct request *r)
{
	size_t skip = a->rule != NULL ? 0 : IPC_CHECK_BASE_LEN;

	return a->rule == r->rule && a->base->tokens == r->tokens &&
	       ((a->base->options ^ r->options) & IPC_OPT_KEY) == 0 &&
	       a->kept.len == r->kept_len &&
	       memcmp(a->kept.bytes + skip, r->kept + skip,
		   a->kept.len - skip) == 0;
}

/*
 * A connection broke, its end was not seen yet, and the same user asks again
 * on another: the operation goes on, its answer goes to the new one. False
 * when the id is in flight for anybody or anything else.
 */
static bool
adopt(const struct asking *a, struct request *r)
{
	int rc;

	if (!is_resend(a) || r->client == a->client ||
	    r->client->use != a->client->use || !same_question(a, r))
		return false;
	request_unlink(r);
	rc = request_link(r, a);
	assert(rc == 0); /* the table has held it: there is room */
	(void)rc;
	return true;
}

/* Whatever keeps a request from being built is the caller's to mend, save
 * that a cap may be reached and that the crypto library may fail. */
static enum ipc_reason
reason_of(int err)
{
	if (err == RLA_EBUSY)
		return IPC_REASON_OVERLOADED;
	return err == RLA_ECRYPTO ? IPC_REASON_TRANSPORT
				  : IPC_REASON_VALIDATION;
}

/* The request in d->asked is built and valid: start it. */
static void
start(struct asking *a)
{
	struct dispatch *d = a->client->dispatch;
	const struct config_tenant *conf = tenant_config(a->tenant);
	const int64_t horizon = conf->plan.horizon_us;
	struct request *r = tenant_find(a->tenant, a->base->operation_id);
	struct tenant_check check;
	const char *why = "";
	int err;

	if (!resumable(a, horizon, &why)) {
		fail(a, IPC_REASON_INTERRUPTED, why);
		return;
	}
	if (d->asked.rate.guard_count + d->asked.rate.resource_count == 0) {
		decision_empty(&d->decision);
		dispatch_answer(a->client, a->id, a->arrived);
		return;
	}
	if (r != NULL) {
		if (!adopt(a, r))
			fail(a, IPC_REASON_VALIDATION,
			    "operation_id: in flight already");
		return;
	}
	if (!client_has_room(a->client) || (r = request_new(a)) == NULL) {
		fail(a, IPC_REASON_OVERLOADED, "too many checks in flight");
		return;
	}
	check = (struct tenant_check){
	    .rate = &d->asked.rate,
	    .unique_id = a->base->operation_id,
	    .start = a->start,
	    .deadline = a->base->deadline_ms == 0
			    ? POLICY_NEVER
			    : a->start + (int64_t)a->base->deadline_ms * 1000,
	};
	err = tenant_check(a->tenant, &check, dispatch_done, r, &r->op);
	if (err == 0)
		return; /* r may be gone by now */
	dispatch_request_free(r);
	fail(a, reason_of(err), err_str(err));
}

/*
 * A resend has aged in the socket, too, nobody knows for how long: since the
 * socket was last seen empty at the most, and that is what counts. Were it
 * less, a server might have forgotten the first copy and consume again.
 */
static int64_t
start_of(const struct asking *a)
{
	int64_t empty = conn_empty_at(a->client->conn);

	if (!is_resend(a))
		return a->arrived;
	if (empty < 0 || a->base->age_us >= (uint64_t)empty)
		return 0;
	return empty - (int64_t)a->base->age_us;
}

static void
begin(struct asking *a, struct client *c, uint64_t id,
    const struct ipc_check_base *base)
{
	memset(a, 0, sizeof(*a));
	a->client = c;
	a->id = id;
	a->base = base;
	a->arrived = loop_now();
	a->start = start_of(a);
	c->dispatch->counters.checks++;
}

void
dispatch_check_rule(struct client *c, uint64_t id, const struct ipc_check *m)
{
	struct dispatch *d = c->dispatch;
	struct rules_caller caller;
	char text[RULES_TEXT_MAX];
	struct asking a;
	int err;

	begin(&a, c, id, &m->base);
	a.kept = m->key;
	if (c->port->config == NULL) {
		fail(&a, IPC_REASON_UNAUTHORISED, control_text);
		return;
	}
	if (!config_allows(
		&c->port->config->rules, m->rule.bytes, m->rule.len)) {
		fail(&a, IPC_REASON_UNAUTHORISED,
		    "this listener does not offer the rule");
		return;
	}
	a.rule = config_rule(d->env.config, m->rule.bytes, m->rule.len);
	if (a.rule == NULL) {
		message_format(text, sizeof(text), "unknown rule \"%.*s\"",
		    (int)m->rule.len, (const char *)m->rule.bytes);
		fail(&a, IPC_REASON_UNKNOWN_RULE, text);
		return;
	}
	a.tenant = d->env.tenants[a.rule->tenant];
	if (!is_uuid4(m->base.operation_id)) {
		fail(&a, IPC_REASON_VALIDATION,
		    "operation_id: must be a UUIDv4");
		return;
	}
	caller = dispatch_caller(c,
	    (m->base.options & IPC_OPT_KEY) != 0 ? m->key.bytes : NULL,
	    m->key.len);
	err = rules_build(
	    d->env.rules, a.rule, &caller, m->base.tokens, &d->asked, text);
	if (err != 0)
		fail(&a, reason_of(err), text);
	else
		start(&a);
}

struct tenant *
dispatch_tenant(
    struct dispatch *d, struct ipc_str name, char text[RULES_TEXT_MAX])
{
	const struct config *config = d->env.config;
	const struct config_tenant *t;

	if (name.len == 0 && config->tenant_count == 1)
		return d->env.tenants[0];
	if (name.len == 0) {
		message_format(text, RULES_TEXT_MAX,
		    "tenant: must be named, there are %zu",
		    config->tenant_count);
		return NULL;
	}
	t = config_tenant(config, name.bytes, name.len);
	if (t != NULL)
		return d->env.tenants[t - config->tenants];
	message_format(text, RULES_TEXT_MAX, "tenant: unknown \"%.*s\"",
	    (int)name.len, (const char *)name.bytes);
	return NULL;
}

void
dispatch_check_adhoc(struct client *c, uint64_t id,
    const struct ipc_check_adhoc *m, struct ipc_str payload)
{
	struct dispatch *d = c->dispatch;
	char text[RULES_TEXT_MAX];
	struct asking a;
	int err;

	begin(&a, c, id, &m->base);
	a.kept = payload;
	if (c->port->config == NULL) {
		fail(&a, IPC_REASON_UNAUTHORISED, control_text);
		return;
	}
	if (!c->port->config->adhoc) {
		fail(&a, IPC_REASON_UNAUTHORISED,
		    "this listener takes no ad-hoc checks");
		return;
	}
	a.tenant = dispatch_tenant(d, m->tenant, text);
	if (a.tenant == NULL) {
		fail(&a, IPC_REASON_VALIDATION, text);
		return;
	}
	if (!is_uuid4(m->base.operation_id)) {
		fail(&a, IPC_REASON_VALIDATION,
		    "operation_id: must be a UUIDv4");
		return;
	}
	err = rules_build_adhoc(
	    d->env.rules, tenant_config(a.tenant), m, &d->asked, text);
	if (err != 0)
		fail(&a, reason_of(err), text);
	else
		start(&a);
}

void
dispatch_cancel(struct client *c, uint64_t id)
{
	struct request *r = request_find(c, id);

	if (r != NULL)
		tenant_cancel(r->op);
}

void
dispatch_cancel_all(struct client *c)
{
	while (c->requests != NULL)
		tenant_cancel(c->requests->op);
}
