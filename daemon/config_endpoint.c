/*
 * Addresses with ports: ADDRESS, ADDRESS:PORT, [V6] and [V6]:PORT, where a V6
 * address may have a %SCOPE. An IPv4 address mapped into IPv6 is made IPv4
 * again: a socket of one family cannot send to it otherwise.
 */
#include "daemon/config.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include "proto/err.h"

#define PORT_DIGITS 5

static int
parse_port(const char *text, uint16_t *port)
{
	unsigned long value;

	if (text[0] == '\0' || text[0] == '0' ||
	    text[strspn(text, "0123456789")] != '\0' ||
	    strlen(text) > PORT_DIGITS)
		return RLA_EINVAL;
	value = strtoul(text, NULL, 10);
	if (value > UINT16_MAX)
		return RLA_EINVAL;
	*port = (uint16_t)value;
	return 0;
}

/* An interface's name or its number. */
static int
parse_scope(const char *text, uint32_t *scope)
{
	*scope = if_nametoindex(text);
	if (*scope == 0 && text[0] != '\0' &&
	    text[strspn(text, "0123456789")] == '\0' && strlen(text) < 10)
		*scope = (uint32_t)strtoul(text, NULL, 10);
	return *scope == 0 ? RLA_EINVAL : 0;
}

static int
parse_v6(char *text, struct endpoint *out)
{
	char *scope = strchr(text, '%');
	struct in6_addr addr;

	if (scope != NULL) {
		*scope = '\0';
		if (parse_scope(scope + 1, &out->scope) != 0)
			return RLA_EINVAL;
	}
	if (inet_pton(AF_INET6, text, &addr) != 1)
		return RLA_EINVAL;
	if (IN6_IS_ADDR_V4MAPPED(&addr)) {
		out->family = 4;
		memcpy(out->addr, addr.s6_addr + 12, 4);
		return scope == NULL ? 0 : RLA_EINVAL;
	}
	out->family = 6;
	memcpy(out->addr, addr.s6_addr, sizeof(out->addr));
	return 0;
}

static int
parse_v4(const char *text, struct endpoint *out)
{
	out->family = 4;
	return inet_pton(AF_INET, text, out->addr) == 1 ? 0 : RLA_EINVAL;
}

int
config_endpoint(const char *text, uint16_t default_port, struct endpoint *out)
{
	struct endpoint ep = {.port = default_port};
	char copy[INET6_ADDRSTRLEN + IF_NAMESIZE + 16];
	char *colon, *close;
	int rc;

	if (strlen(text) >= sizeof(copy))
		return RLA_EINVAL;
	strcpy(copy, text);
	colon = strchr(copy, ':');
	close = strchr(copy, ']');
	if (copy[0] == '[' && close != NULL) {
		*close++ = '\0';
		rc = parse_v6(copy + 1, &ep);
		if (rc == 0 && *close != '\0')
			rc = *close == ':' ? parse_port(close + 1, &ep.port)
					   : RLA_EINVAL;
	} else if (colon != NULL && strchr(colon + 1, ':') != NULL) {
		rc = parse_v6(copy, &ep);
	} else {
		rc = 0;
		if (colon != NULL) {
			*colon = '\0';
			rc = parse_port(colon + 1, &ep.port);
		}
		if (rc == 0)
			rc = parse_v4(copy, &ep);
	}
	if (rc != 0 || ep.port == 0)
		return RLA_EINVAL;
	*out = ep;
	return 0;
}
