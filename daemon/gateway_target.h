/*
 * What an HTTP request asks for: from its target, and the form of its body, to
 * a route, a rule, a key and tokens. Pure: bytes in, values or an error out.
 *
 * /check/RULE takes key and tokens from query and form. Under /check/RULE/ the
 * rest is the path of another request, which a proxy has appended together
 * with its query: both are whatever that request's client chose, and ignored.
 */
#ifndef DAEMON_GATEWAY_TARGET_H
#define DAEMON_GATEWAY_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/config.h"

#define GATEWAY_TEXT_MAX 256

enum gateway_route {
	GATEWAY_CHECK,    /* /check/RULE */
	GATEWAY_ORIGINAL, /* /check/RULE/... */
	GATEWAY_METRICS,
	GATEWAY_HEALTHZ,
	GATEWAY_READYZ,
};

struct gateway_ask {
	enum gateway_route route;
	bool has_key;
	bool has_tokens;
	uint32_t tokens; /* 1 when there are none */
	size_t rule_len;
	size_t key_len;
	uint8_t rule[CONFIG_NAME_MAX];
	uint8_t key[CONFIG_NAME_MAX];
};

/*
 * Both return 0, or a status from 400 to 499 with a line of text that names
 * what is wrong. The second adds to what the first has read: a parameter may be
 * in one of both.
 */
int gateway_target_read(
    const char *target, struct gateway_ask *out, char text[GATEWAY_TEXT_MAX]);
int gateway_form_read(const char *bytes, size_t len, struct gateway_ask *out,
    char text[GATEWAY_TEXT_MAX]);
/* A key as a header has it: its bytes as they are. The same errors. */
int gateway_key_read(const char *bytes, size_t len, struct gateway_ask *out,
    char text[GATEWAY_TEXT_MAX]);

#endif
