/*
 * Endpoints as text and as socket addresses. Texts come from files that people
 * write: nothing here is longer than its buffer or takes half a number.
 */
#include "daemon/io/address.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A decimal number of 1..max without a sign or a leading zero; else 0. */
static uint32_t
parse_number(const char *text, uint32_t max)
{
	unsigned long long number;

	if (text[0] < '1' || text[0] > '9' || strlen(text) > 10 ||
	    text[strspn(text, "0123456789")] != '\0')
		return 0;
	number = strtoull(text, NULL, 10);
	return number <= max ? (uint32_t)number : 0;
}

/* 0 for none. Names come first: an interface may be called "7". */
static uint32_t
parse_scope(const char *text)
{
	uint32_t scope = if_nametoindex(text);

	return scope != 0 ? scope : parse_number(text, UINT32_MAX);
}

/* text is cut at its scope. */
static bool
parse_v6(char *text, struct endpoint *out)
{
	char *scope = strchr(text, '%');
	struct in6_addr addr;

	if (scope != NULL) {
		*scope = '\0';
		out->scope = parse_scope(scope + 1);
		if (out->scope == 0)
			return false;
	}
	if (inet_pton(AF_INET6, text, &addr) != 1)
		return false;
	if (IN6_IS_ADDR_V4MAPPED(&addr)) {
		out->family = 4;
		memcpy(out->addr, addr.s6_addr + 12, 4);
		return scope == NULL;
	}
	out->family = 6;
	memcpy(out->addr, addr.s6_addr, sizeof(out->addr));
	return true;
}

static bool
parse_host(char *text, struct endpoint *out)
{
	if (strchr(text, ':') != NULL)
		return parse_v6(text, out);
	out->family = 4;
	return inet_pton(AF_INET, text, out->addr) == 1;
}

/*
 * Cuts the host off at *host and returns the port's text: "" for one that is
 * empty, NULL without one. *host is NULL for brackets that do not match.
 */
static const char *
split(char *text, char **host)
{
	char *colon = strchr(text, ':'), *close;

	*host = text;
	if (text[0] == '[') {
		close = strchr(text, ']');
		*host = NULL;
		if (close == NULL || (close[1] != '\0' && close[1] != ':'))
			return NULL;
		*close = '\0';
		*host = text + 1;
		return close[1] == ':' ? close + 2 : NULL;
	}
	/* More than one colon is an address of IPv6. */
	if (colon == NULL || strchr(colon + 1, ':') != NULL)
		return NULL;
	*colon = '\0';
	return colon + 1;
}

bool
address_parse(const char *text, uint16_t default_port, struct endpoint *out)
{
	struct endpoint e = {.port = default_port};
	char copy[INET6_ADDRSTRLEN + IF_NAMESIZE + sizeof("[%]:65535")];
	const char *port;
	char *host;

	if (strlen(text) >= sizeof(copy))
		return false;
	strcpy(copy, text);
	port = split(copy, &host);
	if (host == NULL)
		return false;
	if (port != NULL)
		e.port = (uint16_t)parse_number(port, UINT16_MAX);
	if (e.port == 0 || !parse_host(host, &e))
		return false;
	*out = e;
	return true;
}

const char *
address_format(const struct endpoint *e, char buf[ADDRESS_TEXT_MAX])
{
	char host[INET6_ADDRSTRLEN];

	inet_ntop(
	    e->family == 4 ? AF_INET : AF_INET6, e->addr, host, sizeof(host));
	if (e->family == 4)
		snprintf(buf, ADDRESS_TEXT_MAX, "%s:%u", host, e->port);
	else if (e->scope == 0)
		snprintf(buf, ADDRESS_TEXT_MAX, "[%s]:%u", host, e->port);
	else
		snprintf(buf, ADDRESS_TEXT_MAX, "[%s%%%u]:%u", host, e->scope,
		    e->port);
	return buf;
}

socklen_t
address_to_sockaddr(const struct endpoint *e, union address *out)
{
	memset(out, 0, sizeof(*out));
	if (e->family == 4) {
		out->in4.sin_family = AF_INET;
		out->in4.sin_port = htons(e->port);
		memcpy(&out->in4.sin_addr, e->addr, 4);
		return sizeof(out->in4);
	}
	out->in6.sin6_family = AF_INET6;
	out->in6.sin6_port = htons(e->port);
	out->in6.sin6_scope_id = e->scope;
	memcpy(&out->in6.sin6_addr, e->addr, 16);
	return sizeof(out->in6);
}

void
address_from_sockaddr(const union address *from, struct endpoint *out)
{
	*out = (struct endpoint){0};
	if (from->any.sa_family == AF_INET) {
		out->family = 4;
		out->port = ntohs(from->in4.sin_port);
		memcpy(out->addr, &from->in4.sin_addr, 4);
	} else if (from->any.sa_family == AF_INET6) {
		out->family = 6;
		out->port = ntohs(from->in6.sin6_port);
		out->scope = from->in6.sin6_scope_id;
		memcpy(out->addr, &from->in6.sin6_addr, 16);
	}
}
