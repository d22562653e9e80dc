/*
 * A configuration's life: read, parsed into a new struct, hashed, looked up,
 * freed with its last reference. Nothing is changed after config_load().
 */
#include "daemon/config.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/config_hash.h"
#include "daemon/config_parse.h"
#include "daemon/message.h"
#include "proto/packet.h"
#include "proto/pdu.h"

#define FILE_MAX  4194304 /* bytes of a configuration */
#define SHOWN_MAX 64      /* bytes of a key in a message */

/* To the end; NULL with errno, EFBIG over FILE_MAX. */
static char *
read_all(int fd, size_t *len)
{
	char *text = malloc(FILE_MAX + 1);
	ssize_t n = 1;

	*len = 0;
	while (text != NULL && n > 0 && *len <= FILE_MAX) {
		n = read(fd, text + *len, FILE_MAX + 1 - *len);
		if (n > 0)
			*len += (size_t)n;
		else if (n < 0 && errno == EINTR)
			n = 1;
	}
	if (text != NULL && n == 0)
		return text;
	free(text);
	if (*len > FILE_MAX)
		errno = EFBIG;
	return NULL;
}

/* Is it a regular file? Then, and only then, it can be read again. */
static bool
is_regular(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

/* Nothing, or only what JSON calls white space. */
static bool
is_empty(const char *text, size_t len)
{
	while (len > 0 && memchr(" \t\r\n", text[len - 1], 4) != NULL)
		len--;
	return len == 0;
}

/* The string whose closing quote is before end; *len is without its quotes. */
static const char *
string_before(const char *text, size_t end, size_t *len)
{
	size_t from = end - 1;

	while (from > 0 &&
	       (text[from - 1] != '"' || (from > 1 && text[from - 2] == '\\')))
		from--;
	*len = end - 1 - from;
	return text + from;
}

/* A key is no secret of the file: other errors have it in their paths. */
static void
duplicate_error(
    const char *source, const char *text, const json_error_t *error, char *err)
{
	size_t len;
	const char *key = string_before(text, (size_t)error->position, &len);

	message_format(err, CONFIG_ERR_MAX,
	    "%s:%d:%d: duplicate object key \"%.*s%s\"", source, error->line,
	    error->column, len < SHOWN_MAX ? (int)len : SHOWN_MAX, key,
	    len > SHOWN_MAX ? "..." : "");
}

/*
 * What jansson says, less what it quotes: that may be anything at all. It
 * would take an array at the top, too.
 */
static void
syntax_error(const char *source, const char *text, size_t len,
    json_error_t *error, char *err)
{
	char *quoted = strstr(error->text, " near '");
	const char *says = error->text;

	if (quoted != NULL)
		*quoted = '\0';
	if (strcmp(says, "'[' or '{' expected") == 0)
		says = "'{' expected";
	if (is_empty(text, len))
		message_format(err, CONFIG_ERR_MAX, "%s: is empty", source);
	else if (strcmp(says, "duplicate object key") == 0 &&
		 error->position > 0 && (size_t)error->position <= len)
		duplicate_error(source, text, error, err);
	else
		message_format(err, CONFIG_ERR_MAX, "%s:%d:%d: %s", source,
		    error->line, error->column, says);
}

static struct config *
parse(const char *text, size_t len, const char *source, bool from_file,
    char err[CONFIG_ERR_MAX])
{
	struct config *config;
	json_error_t error;
	json_t *root;

	root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &error);
	if (root == NULL) {
		syntax_error(source, text, len, &error, err);
		return NULL;
	}
	config = config_build(root, source, from_file, NULL, err);
	json_decref(root);
	if (config != NULL &&
	    config_digest(source, text, len, config->file_hash, err) != 0) {
		config_unref(config);
		return NULL;
	}
	return config;
}

struct config *
config_parse(
    const char *text, size_t len, const char *source, char err[CONFIG_ERR_MAX])
{
	return parse(text, len, source, false, err);
}

/* again: only from a regular file, so that nothing can hang. */
static struct config *
load(const char *path, bool again, char err[CONFIG_ERR_MAX])
{
	/* A pipe that nobody writes must not hang the start: it is empty. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	const bool regular = fd >= 0 && is_regular(fd);
	struct config *config = NULL;
	char *text = NULL;
	size_t len;

	if (fd >= 0 && again && !regular) {
		message_format(
		    err, CONFIG_ERR_MAX, "%s: is not a regular file", path);
		close(fd);
		return NULL;
	}
	if (fd >= 0) {
		(void)fcntl(fd, F_SETFL, 0);
		text = read_all(fd, &len);
	}
	if (text != NULL)
		config = parse(text, len, path, regular, err);
	else
		message_format(
		    err, CONFIG_ERR_MAX, "%s: %s", path, strerror(errno));
	free(text);
	if (fd >= 0)
		close(fd);
	return config;
}

struct config *
config_load(const char *path, char err[CONFIG_ERR_MAX])
{
	return load(path, false, err);
}

struct config *
config_load_again(const char *path, char err[CONFIG_ERR_MAX])
{
	return load(path, true, err);
}

struct config *
config_build(json_t *root, const char *source, bool from_file,
    const struct walk_alias *aliases, char err[CONFIG_ERR_MAX])
{
	struct config *config = calloc(1, sizeof(*config));
	struct walk w = {
	    .config = config, .source = source, .aliases = aliases, .err = err};
	int rc;

	if (config == NULL) {
		walk_nomem(&w);
		return NULL;
	}
	config->refs = 1;
	config->from_file = from_file;
	config->source = strdup(source);
	rc = config->source != NULL ? 0 : walk_nomem(&w);
	if (rc == 0 && from_file)
		rc = walk_add_file(&w, source);
	if (rc == 0)
		rc = config_parse_root(&w, root);
	if (rc == 0)
		rc = config_hash(&w, root);
	if (rc != 0) {
		config_unref(config);
		return NULL;
	}
	return config;
}

struct config *
config_ref(struct config *config)
{
	config->refs++;
	return config;
}

void
config_patterns_fini(struct config_patterns *p)
{
	for (size_t i = 0; i < p->count; i++)
		free(p->list[i]);
	free(p->list);
	*p = (struct config_patterns){0, NULL};
}

static void
tenant_fini(struct config_tenant *t)
{
	credential_wipe(&t->cred);
	free(t->name);
	free(t->dns.name);
	free(t->servers);
}

static void
rule_fini(struct config_rule *r)
{
	for (size_t i = 0; i < r->resource_count; i++)
		free(r->resources[i].bucket);
	free(r->resources);
	free(r->guards);
	free(r->label);
	free(r->name);
}

static void
listener_fini(struct config_listener *l)
{
	config_patterns_fini(&l->rules);
	config_patterns_fini(&l->trackers);
	config_patterns_fini(&l->limiters);
	config_patterns_fini(&l->error_controls);
	free(l->uids);
	free(l->gids);
	free(l->group);
	free(l->path);
	free(l->name);
}

static void
gateway_fini(struct config_gateway *g)
{
	config_patterns_fini(&g->rules);
	free(g->key_header);
	free(g->group);
	free(g->address);
	free(g->name);
}

/* Rows that were only begun are zeros where nothing was read yet. */
void
config_unref(struct config *config)
{
	if (config == NULL)
		return;
	assert(config->refs > 0);
	if (--config->refs > 0)
		return;
	for (size_t i = 0; i < config->tenant_count; i++)
		tenant_fini(&config->tenants[i]);
	for (size_t i = 0; i < config->tracker_count; i++)
		free(config->trackers[i].name);
	for (size_t i = 0; i < config->rule_count; i++)
		rule_fini(&config->rules[i]);
	for (size_t i = 0; i < config->limiter_count; i++)
		free(config->limiters[i].name);
	for (size_t i = 0; i < config->error_control_count; i++)
		free(config->error_controls[i].name);
	for (size_t i = 0; i < config->listener_count; i++)
		listener_fini(&config->listeners[i]);
	for (size_t i = 0; i < config->gateway_count; i++)
		gateway_fini(&config->gateways[i]);
	for (size_t i = 0; i < config->warning_count; i++)
		free(config->warnings[i]);
	for (size_t i = 0; i < config->file_count; i++)
		free(config->files[i]);
	free(config->tenants);
	free(config->trackers);
	free(config->rules);
	free(config->limiters);
	free(config->error_controls);
	free(config->listeners);
	free(config->gateways);
	free(config->warnings);
	free(config->files);
	free(config->control.path);
	free(config->source);
	free(config);
}

struct name {
	const void *bytes;
	size_t len;
};

/* The order of strcmp(), which the tables are sorted by. Rows start with
 * their name. */
static int
compare_name(const void *key, const void *row)
{
	const struct name *name = key;
	const char *other = *(char *const *)row;
	size_t len = strlen(other);
	int rc = memcmp(name->bytes, other, name->len < len ? name->len : len);

	return rc != 0 ? rc : (name->len > len) - (name->len < len);
}

static const void *
find(const void *rows, size_t count, size_t size, const void *bytes, size_t len)
{
	struct name name = {len > 0 ? bytes : "", len};

	return count == 0 ? NULL
			  : bsearch(&name, rows, count, size, compare_name);
}

const struct config_tenant *
config_tenant(const struct config *config, const void *name, size_t len)
{
	return find(config->tenants, config->tenant_count,
	    sizeof(*config->tenants), name, len);
}

const struct config_tracker *
config_tracker(const struct config *config, const void *name, size_t len)
{
	return find(config->trackers, config->tracker_count,
	    sizeof(*config->trackers), name, len);
}

const struct config_rule *
config_rule(const struct config *config, const void *name, size_t len)
{
	return find(config->rules, config->rule_count, sizeof(*config->rules),
	    name, len);
}

const struct config_limiter *
config_limiter(const struct config *config, const void *name, size_t len)
{
	return find(config->limiters, config->limiter_count,
	    sizeof(*config->limiters), name, len);
}

const struct config_error_control *
config_error_control(const struct config *config, const void *name, size_t len)
{
	return find(config->error_controls, config->error_control_count,
	    sizeof(*config->error_controls), name, len);
}

/* The usual case, which every check meets. */
static bool
allows_all(const struct config_patterns *patterns)
{
	for (size_t i = 0; i < patterns->count; i++) {
		if (strcmp(patterns->list[i], "*") == 0)
			return true;
	}
	return false;
}

bool
config_allows(
    const struct config_patterns *patterns, const void *name, size_t len)
{
	char text[CONFIG_NAME_MAX + 1];

	if (allows_all(patterns))
		return true;
	if (len >= sizeof(text) || memchr(name, '\0', len) != NULL)
		return false;
	memcpy(text, name, len);
	text[len] = '\0';
	for (size_t i = 0; i < patterns->count; i++) {
		if (fnmatch(patterns->list[i], text, 0) == 0)
			return true;
	}
	return false;
}

uint32_t
config_max_horizon_ms(const struct config *config)
{
	uint32_t max = 0;

	for (size_t i = 0; i < config->tenant_count; i++) {
		if (config->tenants[i].plan.ttl_ms > max)
			max = config->tenants[i].plan.ttl_ms;
	}
	return max;
}

size_t
config_request_size(const struct config_tenant *tenant, size_t guards,
    size_t resources, size_t label_len)
{
	size_t len =
	    pdu_request_size(tenant->profile, guards, resources, label_len);

	return len == SIZE_MAX ? SIZE_MAX
			       : packet_overhead(tenant->cred.auth) + len;
}

bool
config_allows_buffer(const struct config_tenant *tenant, uint32_t buffer_size)
{
	return tenant->profile != PROFILE_V1 ||
	       buffer_size <= tenant->cred.quotas.latency_buffer;
}

bool
config_allows_window(const struct config_tenant *tenant, uint32_t window_ms)
{
	return window_ms <= tenant->cred.quotas.rate_window_ms;
}
