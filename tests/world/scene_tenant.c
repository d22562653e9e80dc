/*
 * The tenants of a world: the first one, those that take over from it as after
 * a reload, and their ends. What is asked is asked of the newest; the one
 * before it is there until the script frees it.
 */
#include "tests/world/scene.h"

#include <stdlib.h>
#include <string.h>

struct credential
scene_cred(const struct scene *s, unsigned int key)
{
	struct credential cred = s->cred;

	cred.key_id += key;
	cred.secret[0] ^= (uint8_t)(cred.auth != AUTH_NONE ? key : 0);
	return cred;
}

/* Under the key s->key. */
static void
new_tenant(struct scene *s)
{
	const struct credential cred = scene_cred(s, s->key);
	char err[TENANT_ERR_MAX] = "";
	struct config_tenant *config;

	if (s->config_count == SCENE_TENANTS) {
		words_fault(&s->w, "more than %d tenants", SCENE_TENANTS);
		return;
	}
	if (s->keys[s->key] == NULL)
		s->keys[s->key] = packet_key_new(&cred);
	if (s->keys[s->key] == NULL)
		abort();
	config = &s->configs[s->config_count++];
	*config = s->config;
	config->cred = cred;
	s->tenant = tenant_new(s->loop, s->random, config, s->max_ops, err);
	if (s->tenant == NULL)
		words_fault(&s->w, "%s", err);
}

void
scene_start(struct scene *s)
{
	struct policy_refusal why;

	if (policy_plan_init(&s->config.plan, &s->policy, &why) != 0) {
		words_fault(&s->w, "the policy is refused: %s: %s",
		    why.key != NULL ? why.key : "horizon", why.reason);
		return;
	}
	s->config.name = "t";
	s->config.policy = s->policy;
	s->config.dns = (struct config_dns){
	    .name = "world.example",
	    .refresh_ms = 300000,
	    .forced_min_ms = 1000,
	    .timeout_ms = 1000,
	    .nameserver_count = 1, /* never looked at */
	};
	s->loop = loop_new();
	s->random = random_pool_new();
	s->nonce = nonce_new();
	if (s->loop == NULL || s->random == NULL || s->nonce == NULL)
		abort();
	new_tenant(s);
	scene_settle(s); /* static servers and a zone at hand are known */
}

/* reload [key] : a tenant like this one, with another key, takes over */
void
scene_reload(struct scene *s)
{
	struct tenant *before = s->tenant;

	if (s->old != NULL) {
		words_fault(&s->w, "the tenant before is still there");
		return;
	}
	if (words_accept(&s->w, "key") && ++s->key == SCENE_KEYS) {
		words_fault(&s->w, "more than %d keys", SCENE_KEYS);
		return;
	}
	new_tenant(s);
	if (s->tenant == NULL) {
		s->tenant = before;
		return;
	}
	s->old = before;
	s->old_counted = s->counted;
	memset(&s->counted, 0, sizeof(s->counted));
	tenant_inherit(s->tenant, s->old);
	tenant_close(s->old);
}

void
scene_swap(struct scene *s)
{
	struct tenant *tenant = s->tenant;
	struct tenant_counters counted = s->counted;

	s->tenant = s->old;
	s->counted = s->old_counted;
	s->old = tenant;
	s->old_counted = counted;
}

/* drain : no new operations will come */
void
scene_drain(struct scene *s)
{
	tenant_close(s->tenant);
}

/* free : the tenant before goes, for nothing is left in it */
void
scene_free(struct scene *s)
{
	if (s->old == NULL || !tenant_idle(s->old)) {
		words_fault(&s->w, "%s",
		    s->old == NULL ? "no tenant was before"
				   : "the tenant before is not idle");
		return;
	}
	tenant_free(s->old);
	s->old = NULL;
	scene_watch(s);
}

/* close : the tenant goes, with all that is under way */
void
scene_close(struct scene *s)
{
	unsigned int before = 0, after = 0;

	for (size_t i = 0; i < s->op_count; i++)
		before += s->ops[i].calls;
	tenant_free(s->tenant);
	s->tenant = NULL;
	for (size_t i = 0; i < s->op_count; i++)
		after += s->ops[i].calls;
	if (after != before)
		words_fault(&s->w, "an operation completes at the close");
	scene_watch(s);
}
