/*
 * What is hashed, as JSON without comments and white space, its keys sorted:
 * tenants, trackers and rules as written and, when a name holds {listener},
 * the path of each listener by its name. Then a NUL, and for each tenant, in
 * the order of their names, what its key adds: key_id u64, auth u8, profile
 * u8. So texts have equal hashes that differ in order, space, comments, in
 * what only lets checks in or tells of them (log, metrics, limits, control,
 * what a listener allows), or in limiters and error controls, which no check
 * goes by; another key has another hash.
 */
#include "daemon/config_hash.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/message.h"
#include "proto/err.h"
#include "proto/id.h"
#include "proto/writer.h"

#define TENANT_LEN 10

/* A copy without comments, or NULL without memory. What was parsed is only
 * a few levels deep. */
static json_t *
without_comments(json_t *json)
{
	const char *name;
	json_t *value, *copy;
	size_t i;
	int rc = 0;

	if (!json_is_object(json) && !json_is_array(json))
		return json_incref(json);
	copy = json_is_object(json) ? json_object() : json_array();
	if (copy == NULL)
		return NULL;
	json_object_foreach(json, name, value)
	{
		if (!walk_is_comment(name))
			rc |= json_object_set_new(
			    copy, name, without_comments(value));
	}
	json_array_foreach(json, i, value) rc |=
	    json_array_append_new(copy, without_comments(value));
	if (rc != 0) {
		json_decref(copy);
		return NULL;
	}
	return copy;
}

/* Takes value; NULL is no memory. */
static bool
add(json_t *object, const char *key, json_t *value)
{
	return json_object_set_new(object, key, value) == 0;
}

/* {NAME: PATH} of the listeners that are parsed, the default one included. */
static json_t *
listeners(const struct config *c)
{
	json_t *paths = json_object();

	for (size_t i = 0; i < c->listener_count; i++) {
		if (!add(paths, c->listeners[i].name,
			json_string(c->listeners[i].path))) {
			json_decref(paths);
			return NULL;
		}
	}
	return paths;
}

/* The sections that decide, or NULL without memory. */
static json_t *
decisive(json_t *root)
{
	static const char *const names[] = {"tenants", "trackers", "rules"};
	json_t *out = json_object(), *section;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		section = json_object_get(root, names[i]);
		if (section != NULL &&
		    !add(out, names[i], without_comments(section))) {
			json_decref(out);
			return NULL;
		}
	}
	return out;
}

/* The caller frees it; NULL without memory. */
static char *
hashed_text(const struct config *c, json_t *root)
{
	const size_t flags = JSON_COMPACT | JSON_SORT_KEYS;
	json_t *json = decisive(root);
	char *text = json_dumps(json, flags);

	/* Then a listener's name is part of a bucket's or a tracker's. */
	if (text != NULL && strstr(text, "{listener}") != NULL) {
		free(text);
		text = add(json, "listeners", listeners(c))
			   ? json_dumps(json, flags)
			   : NULL;
	}
	json_decref(json);
	return text;
}

int
config_digest(const char *source, const void *bytes, size_t len,
    uint8_t out[CONFIG_HASH_LEN], char err[CONFIG_ERR_MAX])
{
	struct id_hash *h = id_hash_new();
	int rc = h == NULL ? RLA_ECRYPTO : id_digest(h, bytes, len, out);

	id_hash_free(h);
	if (rc != 0)
		message_format(err, CONFIG_ERR_MAX,
		    "%s: the crypto library has no BLAKE2s (a provider for "
		    "FIPS only?)",
		    source);
	return rc;
}

int
config_hash(struct walk *w, json_t *root)
{
	const struct config *c = w->config;
	char *text = hashed_text(c, root);
	size_t len = text == NULL ? 0 : strlen(text) + 1;
	size_t size = len + c->tenant_count * TENANT_LEN;
	uint8_t *bytes = text == NULL ? NULL : malloc(size);
	struct writer out;
	int rc;

	if (bytes == NULL) {
		rc = walk_nomem(w);
		goto out;
	}
	writer_init(&out, bytes, size);
	writer_bytes(&out, text, len);
	for (size_t i = 0; i < c->tenant_count; i++) {
		writer_u64(&out, c->tenants[i].cred.key_id);
		writer_u8(&out, (uint8_t)c->tenants[i].cred.auth);
		writer_u8(&out, (uint8_t)c->tenants[i].profile);
	}
	rc = config_digest(
	    w->source, bytes, writer_len(&out), w->config->hash, w->err);
out:
	free(bytes);
	free(text);
	return rc;
}
