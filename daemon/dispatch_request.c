/*
 * The table of checks in flight: slots of four sizes, each request in the
 * table, by caller and request id, and in its caller's list.
 */
#include "daemon/dispatch_private.h"

#include <assert.h>
#include <string.h>

#include "daemon/core/container.h"

static void
request_key(const struct caller *c, uint64_t id, uint8_t key[TABLE_KEY_LEN])
{
	memcpy(key, &c->serial, 8);
	memcpy(key + 8, &id, 8);
}

static struct request *
request_find(const struct caller *c, uint64_t id)
{
	uint8_t key[TABLE_KEY_LEN];
	struct table_entry *e;

	request_key(c, id, key);
	e = table_find(&c->dispatch->requests, key);
	return e != NULL ? container_of(e, struct request, entry) : NULL;
}

bool
dispatch_in_flight(const struct caller *c, uint64_t id)
{
	return request_find(c, id) != NULL;
}

static const struct {
	size_t kept;
	uint32_t per_chunk;
} classes[REQUEST_CLASSES] = {
    {32, 64}, {128, 64}, {1024, 16}, {IPC_MAX_FRAME, 4}};

/* How many are in use, caller_has_room() bounds. */
void
dispatch_slots_init(struct dispatch *d)
{
	size_t i;

	for (i = 0; i < REQUEST_CLASSES; i++)
		slab_init(&d->slots[i],
		    sizeof(struct request) + classes[i].kept,
		    classes[i].per_chunk, UINT32_MAX);
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
	uint8_t slot_class = 0;

	while (classes[slot_class].kept < kept)
		slot_class++;
	return slot_class;
}

/* Puts the request into its caller's list and the table, under a->id. */
static int
request_link(struct request *r, const struct asking *a)
{
	struct caller *c = a->by;

	r->by = c;
	r->id = a->id;
	r->arrived = a->arrived;
	r->options = a->base->options;
	r->resent = a->resent;
	request_key(c, a->id, r->entry.key);
	if (table_insert(&c->dispatch->requests, &r->entry) != 0)
		return -1;
	r->next = c->requests;
	r->prev = &c->requests;
	if (r->next != NULL)
		r->next->prev = &r->next;
	c->requests = r;
	caller_count(c, 1);
	return 0;
}

static void
request_unlink(struct request *r)
{
	table_remove(&r->by->dispatch->requests, &r->entry);
	*r->prev = r->next;
	if (r->next != NULL)
		r->next->prev = r->prev;
	caller_count(r->by, -1);
}

void
dispatch_request_free(struct request *r)
{
	struct dispatch *d = r->by->dispatch;

	request_unlink(r);
	setup_unref(r->setup);
	slab_put(&d->slots[r->slot_class], r);
}

struct request *
dispatch_request_new(const struct asking *a)
{
	struct dispatch *d = a->by->dispatch;
	uint8_t slot_class = class_of(a->kept.len);
	struct request *r = slab_get(&d->slots[slot_class]);

	if (r == NULL)
		return NULL;
	memset(r, 0, sizeof(*r));
	r->rule = a->rule;
	r->tenant = a->tenant;
	r->listener = a->by->port->is.name;
	r->tokens = a->base->tokens;
	r->slot_class = slot_class;
	r->kept_len = a->kept.len;
	if (a->kept.len > 0)
		memcpy(r->kept, a->kept.bytes, a->kept.len);
	if (request_link(r, a) != 0) {
		slab_put(&d->slots[slot_class], r);
		return NULL;
	}
	r->setup = setup_ref(d->env.setup);
	return r;
}

/* Of two setups when a reload was between them; then equal hashes are the
 * same rules. */
static bool
same_rule(const struct asking *a, const struct request *r)
{
	const struct setup *now = a->by->dispatch->env.setup;

	if (a->rule == NULL || r->rule == NULL)
		return a->rule == r->rule;
	return strcmp(a->rule->name, r->rule->name) == 0 &&
	       memcmp(now->config->hash, r->setup->config->hash,
		   CONFIG_HASH_LEN) == 0;
}

/* Do both ask for the same? An ad-hoc payload begins with the base, where
 * the age may differ. */
static bool
same_question(const struct asking *a, const struct request *r)
{
	size_t skip = a->rule != NULL ? 0 : IPC_CHECK_BASE_LEN;

	return same_rule(a, r) && a->base->tokens == r->tokens &&
	       ((a->base->options ^ r->options) & IPC_OPT_KEY) == 0 &&
	       a->kept.len == r->kept_len &&
	       memcmp(a->kept.bytes + skip, r->kept + skip,
		   a->kept.len - skip) == 0;
}

/* Whatever the kernel and the socket say of a caller may be in a name. */
static bool
same_caller(const struct caller *a, const struct caller *b)
{
	return a->here == b->here && a->gid == b->gid;
}

bool
dispatch_adopt(const struct asking *a, struct request *r)
{
	struct caller *old = r->by;
	int rc;

	if (!a->resent || old == a->by || !same_caller(a->by, old) ||
	    !same_question(a, r))
		return false;
	request_unlink(r);
	rc = request_link(r, a);
	assert(rc == 0); /* the table has held it: there is room */
	(void)rc;
	dispatch_leave_done(old);
	return true;
}

void
dispatch_cancel(struct caller *c, uint64_t id)
{
	struct request *r = request_find(c, id);

	if (r != NULL)
		tenant_cancel(r->op);
}

void
dispatch_cancel_all(struct caller *c)
{
	while (c->requests != NULL)
		tenant_cancel(c->requests->op);
}
