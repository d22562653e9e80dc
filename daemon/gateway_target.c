/* See gateway_target.h. */
#include "daemon/gateway_target.h"

#include <string.h>
#include <strings.h>

#include "daemon/message.h"

#define CHECK_PREFIX "/check/"
#define TOKENS_MAX   UINT16_MAX
#define SHOWN_MAX    32 /* bytes of a name that nobody knows */
#define BAD_REQUEST  400
#define NOT_FOUND    404

struct span {
	const char *at;
	size_t len;
};

/* Decoded bytes, and room for one too many. */
struct decoded {
	size_t len;
	uint8_t bytes[CONFIG_NAME_MAX + 1];
};

static int
hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* What is wrong with it, or NULL. plus: a '+' is a space. */
static const char *
decode(struct span in, bool plus, struct decoded *out)
{
	int high, low;

	out->len = 0;
	for (size_t i = 0; i < in.len; i++) {
		int byte = (unsigned char)in.at[i];

		if (byte == '%') {
			high = i + 1 < in.len ? hex(in.at[i + 1]) : -1;
			low = i + 2 < in.len ? hex(in.at[i + 2]) : -1;
			if (high < 0 || low < 0)
				return "has a % without two hexadecimal digits";
			byte = high << 4 | low;
			i += 2;
		} else if (byte == '+' && plus) {
			byte = ' ';
		}
		if (byte == 0)
			return "holds a NUL byte";
		if (out->len >= CONFIG_NAME_MAX)
			return "is longer than 255 bytes";
		out->bytes[out->len++] = (uint8_t)byte;
	}
	return NULL;
}

_Static_assert(CONFIG_NAME_MAX == 255, "the text above");

static int
bad(char text[GATEWAY_TEXT_MAX], const char *name, const char *why)
{
	message_format(text, GATEWAY_TEXT_MAX, "%s: %s", name, why);
	return BAD_REQUEST;
}

static int
take_key(const struct decoded *value, struct gateway_ask *out,
    char text[GATEWAY_TEXT_MAX])
{
	if (out->has_key)
		return bad(text, "key", "is given twice");
	out->has_key = true;
	out->key_len = value->len;
	memcpy(out->key, value->bytes, value->len);
	return 0;
}

static int
take_tokens(const struct decoded *value, struct gateway_ask *out,
    char text[GATEWAY_TEXT_MAX])
{
	uint32_t n = 0;

	if (out->has_tokens)
		return bad(text, "tokens", "is given twice");
	for (size_t i = 0; i < value->len && n <= TOKENS_MAX; i++) {
		if (value->bytes[i] < '0' || value->bytes[i] > '9')
			return bad(text, "tokens", "must be a number");
		n = n * 10 + (value->bytes[i] - (uint32_t)'0');
	}
	if (n == 0 || n > TOKENS_MAX)
		return bad(text, "tokens", "must be from 1 to 65535");
	out->has_tokens = true;
	out->tokens = n;
	return 0;
}

static bool
is(const struct decoded *name, const char *text)
{
	return name->len == strlen(text) &&
	       memcmp(name->bytes, text, name->len) == 0;
}

/* One NAME=VALUE. */
static int
take_pair(
    struct span pair, struct gateway_ask *out, char text[GATEWAY_TEXT_MAX])
{
	const char *equals = memchr(pair.at, '=', pair.len), *why;
	const size_t len =
	    equals != NULL ? (size_t)(equals - pair.at) : pair.len;
	struct decoded name, value;

	why = decode((struct span){pair.at, len}, true, &name);
	if (why != NULL)
		return bad(text, "the name of a parameter", why);
	if (!is(&name, "key") && !is(&name, "tokens")) {
		message_format(text, GATEWAY_TEXT_MAX,
		    "unknown parameter \"%.*s\": there are key and tokens",
		    name.len < SHOWN_MAX ? (int)name.len : SHOWN_MAX,
		    (const char *)name.bytes);
		return BAD_REQUEST;
	}
	name.bytes[name.len] = '\0';
	if (equals == NULL)
		return bad(text, (const char *)name.bytes, "has no value");
	why =
	    decode((struct span){equals + 1, pair.len - len - 1}, true, &value);
	if (why != NULL)
		return bad(text, (const char *)name.bytes, why);
	return is(&name, "key") ? take_key(&value, out, text)
				: take_tokens(&value, out, text);
}

int
gateway_form_read(const char *bytes, size_t len, struct gateway_ask *out,
    char text[GATEWAY_TEXT_MAX])
{
	const char *at = bytes, *end = bytes + len, *stop;
	int rc = 0;

	for (; at < end && rc == 0; at = stop + 1) {
		stop = memchr(at, '&', (size_t)(end - at));
		if (stop == NULL)
			stop = end;
		if (stop > at)
			rc = take_pair(
			    (struct span){at, (size_t)(stop - at)}, out, text);
	}
	return rc;
}

int
gateway_key_read(const char *bytes, size_t len, struct gateway_ask *out,
    char text[GATEWAY_TEXT_MAX])
{
	if (len > CONFIG_NAME_MAX)
		return bad(text, "key", "is longer than 255 bytes");
	if (memchr(bytes, '\0', len) != NULL)
		return bad(text, "key", "holds a NUL byte");
	out->has_key = true;
	out->key_len = len;
	memcpy(out->key, bytes, len);
	return 0;
}

/* From the path on: a proxy's request names scheme and host before it. */
static const char *
path_of(const char *target)
{
	size_t scheme = 0;

	if (strncasecmp(target, "http://", 7) == 0)
		scheme = 7;
	else if (strncasecmp(target, "https://", 8) == 0)
		scheme = 8;
	return scheme > 0 ? target + scheme + strcspn(target + scheme, "/?")
			  : target;
}

static int
not_found(char text[GATEWAY_TEXT_MAX])
{
	message_format(text, GATEWAY_TEXT_MAX,
	    "there are /check/RULE, /metrics, /healthz and /readyz");
	return NOT_FOUND;
}

/* What stands between the prefix and the end of the path or the next slash. */
static int
read_rule(
    struct span segment, struct gateway_ask *out, char text[GATEWAY_TEXT_MAX])
{
	struct decoded rule;
	const char *why = decode(segment, false, &rule);

	if (why != NULL)
		return bad(text, "rule", why);
	out->rule_len = rule.len;
	memcpy(out->rule, rule.bytes, rule.len);
	return 0;
}

static int
read_check(struct span path, const char *query, struct gateway_ask *out,
    char text[GATEWAY_TEXT_MAX])
{
	const size_t prefix = strlen(CHECK_PREFIX);
	struct span rule = {path.at + prefix, path.len - prefix};
	const char *slash = memchr(rule.at, '/', rule.len);
	int rc;

	if (slash != NULL)
		rule.len = (size_t)(slash - rule.at);
	if (rule.len == 0)
		return not_found(text);
	out->route = slash != NULL ? GATEWAY_ORIGINAL : GATEWAY_CHECK;
	rc = read_rule(rule, out, text);
	if (rc == 0 && out->route == GATEWAY_CHECK && query != NULL)
		rc = gateway_form_read(query, strlen(query), out, text);
	return rc;
}

int
gateway_target_read(
    const char *target, struct gateway_ask *out, char text[GATEWAY_TEXT_MAX])
{
	static const struct {
		const char *path;
		enum gateway_route route;
	} others[] = {
	    {"/metrics", GATEWAY_METRICS},
	    {"/healthz", GATEWAY_HEALTHZ},
	    {"/readyz", GATEWAY_READYZ},
	};
	const char *at = path_of(target);
	const struct span path = {at, strcspn(at, "?")};
	const char *query = at[path.len] == '?' ? at + path.len + 1 : NULL;

	*out = (struct gateway_ask){.tokens = 1};
	if (strncmp(at, CHECK_PREFIX, strlen(CHECK_PREFIX)) == 0)
		return read_check(path, query, out, text);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		if (strlen(others[i].path) != path.len ||
		    memcmp(at, others[i].path, path.len) != 0)
			continue;
		out->route = others[i].route;
		return 0;
	}
	return not_found(text);
}
