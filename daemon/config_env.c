/*
 * The configuration without a file. The variables become the JSON that says
 * the same, so one parser judges both; errors name the variable.
 */
#include "daemon/config.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/config_hash.h"
#include "daemon/config_parse.h"
#include "daemon/message.h"

#define SOURCE     "environment"
#define SEPARATORS ", \t\n"

static const struct walk_alias aliases[] = {
    {"tenants.default.key", ""}, /* its own text names the variable */
    {"tenants.default.dns.nameservers", "RATELIMITLY_NAMESERVERS"},
    {"tenants.default.dns.name", "RATELIMITLY_TENANT"},
    {"listeners.main.path", "RL_AGENT_SOCKET"},
    {NULL, NULL},
};

/* NULL when the variable is empty, too. */
static const char *
variable(const char *name)
{
	const char *text = getenv(name);

	return text != NULL && text[0] != '\0' ? text : NULL;
}

/* Sets a text; false when it is not UTF-8 (or there is no memory). */
static bool
set_text(json_t *object, const char *key, const char *text)
{
	return text == NULL ||
	       json_object_set_new(object, key, json_string(text)) == 0;
}

static bool
add_nameservers(json_t *list, const char *text)
{
	size_t len;

	while (text != NULL && *(text += strspn(text, SEPARATORS)) != '\0') {
		len = strcspn(text, SEPARATORS);
		if (json_array_append_new(list, json_stringn(text, len)) != 0)
			return false;
		text += len;
	}
	return true;
}

/* {"tenants": {"default": {"key", "dns"}}, "listeners": {"main": {}}} */
static json_t *
build_json(const char **bad)
{
	json_t *dns = json_object(), *list = json_array();
	json_t *listener = json_object(), *root = NULL;

	*bad = NULL;
	if (!set_text(dns, "name", variable("RATELIMITLY_TENANT")))
		*bad = "RATELIMITLY_TENANT";
	else if (!add_nameservers(list, variable("RATELIMITLY_NAMESERVERS")))
		*bad = "RATELIMITLY_NAMESERVERS";
	else if (!set_text(listener, "path", variable("RL_AGENT_SOCKET")))
		*bad = "RL_AGENT_SOCKET";
	else if (json_object_set(dns, "nameservers", list) == 0)
		root = json_pack("{s:{s:{s:{s:s},s:O}},s:{s:O}}", "tenants",
		    "default", "key", "env", "RATELIMITLY_AUTH_KEY", "dns", dns,
		    "listeners", "main", listener);
	json_decref(dns);
	json_decref(list);
	json_decref(listener);
	return root;
}

struct config *
config_from_environment(char err[CONFIG_ERR_MAX])
{
	struct config *config = NULL;
	const char *bad;
	json_t *root = build_json(&bad);
	char *text = root == NULL ? NULL : json_dumps(root, JSON_COMPACT);

	if (text != NULL)
		config = config_build(root, SOURCE, false, aliases, err);
	else if (bad != NULL)
		message_format(err, CONFIG_ERR_MAX,
		    SOURCE ": %s: is not text in UTF-8", bad);
	else
		message_format(err, CONFIG_ERR_MAX, SOURCE ": out of memory");
	if (config != NULL && config_digest(SOURCE, text, strlen(text),
				  config->file_hash, err) != 0) {
		config_unref(config);
		config = NULL;
	}
	free(text);
	json_decref(root);
	return config;
}
