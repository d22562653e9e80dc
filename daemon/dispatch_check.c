/*
 * Checks: from a decoded message to a request in the table and an operation
 * of a tenant. What cannot be started is answered at once; the rest by
 * dispatch_done(), when its operation ends.
 */
#include "daemon/dispatch_private.h"

#include <string.h>

#include "daemon/decision.h"
#include "daemon/message.h"
#include "proto/err.h"

#define container_of(ptr, type, member) \
	((type *)(void *)((char *)(ptr)-offsetof(type, member)))

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

static void
fail(const struct asking *a, enum ipc_reason reason, const char *text)
{
	enum config_failure policy = FAILURE_CLOSED;

	if (a->rule != NULL)
		policy = a->rule->on_failure;
	else if (a->tenant != NULL)
		policy = tenant_config(a->tenant)->on_failure;
	decision_failed(&a->client->dispatch->decision, reason, policy, text);
	dispatch_answer(a->client, a->id, a->arrived);
}

void
dispatch_request_free(struct request *r)
{
	struct dispatch *d = r->client->dispatch;

	table_remove(&d->requests, &r->entry);
	*r->prev = r->next;
	if (r->next != NULL)
		r->next->prev = r->prev;
	client_count(r->client, -1);
	slab_put(r->large ? &d->large : &d->small, r);
}

static struct request *
request_new(const struct asking *a)
{
	struct dispatch *d = a->client->dispatch;
	bool large = a->kept.len > REQUEST_SMALL;
	struct request *r = slab_get(large ? &d->large : &d->small);

	if (r == NULL)
		return NULL;
	memset(r, 0, sizeof(*r));
	r->client = a->client;
	r->rule = a->rule;
	r->tenant = a->tenant;
	r->arrived = a->arrived;
	r->id = a->id;
	r->tokens = a->base->tokens;
	r->options = a->base->options;
	r->large = large;
	r->kept_len = a->kept.len;
	if (a->kept.len > 0)
		memcpy(r->kept, a->kept.bytes, a->kept.len);
	request_key(a->client, a->id, r->entry.key);
	if (table_insert(&d->requests, &r->entry) != 0) {
		slab_put(large ? &d->large : &d->small, r);
		return NULL;
	}
	r->next = a->client->requests;
	r->prev = &a->client->requests;
	if (r->next != NULL)
		r->next->prev = &r->next;
	a->client->requests = r;
	client_count(a->client, 1);
	return r;
}

static bool
is_uuid4(const uint8_t id[IPC_ID_LEN])
{
	return (id[6] & 0xf0) == 0x40 && (id[8] & 0xc0) == 0x80;
}

/* An earlier connection of the same user broke, its end was not seen yet, and
 * the shim asks again: the new one takes over. */
static bool
take_over(const struct asking *a)
{
	struct request *old = tenant_find(a->tenant, a->base->operation_id);

	if (old == NULL)
		return true;
	if (old->client->use != a->client->use || old->client == a->client)
		return false;
	tenant_cancel(old->op);
	return true;
}

/* May what remains of a check that was sent before be run? */
static bool
resumable(const struct asking *a, int64_t horizon_us, const char **why)
{
	static const uint8_t first_time[IPC_HASH_LEN];
	const struct ipc_check_base *b = a->base;

	if (memcmp(b->config_hash, first_time, IPC_HASH_LEN) == 0 &&
	    b->age_us == 0)
		return true;
	if (memcmp(b->config_hash, a->client->dispatch->env.config->hash,
		IPC_HASH_LEN) != 0) {
		*why = "first sent under another configuration";
		return false;
	}
	*why = "its deduplication horizon has passed";
	return b->age_us < (uint64_t)horizon_us;
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
	struct tenant_check check;
	const char *why = "";
	struct request *r;
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
	if (!take_over(a)) {
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

static void
begin(struct asking *a, struct client *c, uint64_t id,
    const struct ipc_check_base *base)
{
	int64_t now = loop_now();

	memset(a, 0, sizeof(*a));
	a->client = c;
	a->id = id;
	a->base = base;
	a->arrived = now;
	a->start =
	    base->age_us < (uint64_t)now ? now - (int64_t)base->age_us : 0;
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
	if (c->port->config == NULL || !config_allows(&c->port->config->rules,
					   m->rule.bytes, m->rule.len)) {
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
	if (c->port->config == NULL || !c->port->config->adhoc) {
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
