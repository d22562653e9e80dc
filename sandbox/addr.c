/* Text to sockaddr and back, IPv4 and IPv6, and sockets bound to them. */
#include "sandbox/addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/err.h"

static int
parse_port(const char *text, uint16_t *out)
{
	char *end;
	unsigned long port;

	if (text[0] < '0' || text[0] > '9' || strlen(text) > 5)
		return RLA_EINVAL;
	port = strtoul(text, &end, 10);
	if (*end != '\0' || port > UINT16_MAX)
		return RLA_EINVAL;
	*out = (uint16_t)port;
	return 0;
}

int
addr_parse(const char *text, struct addr *out)
{
	struct sockaddr_in *in4 = (struct sockaddr_in *)&out->ss;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&out->ss;
	const char *colon = strrchr(text, ':');
	char host[INET6_ADDRSTRLEN + 2];
	uint16_t port;
	size_t len;

	if (colon == NULL || parse_port(colon + 1, &port) < 0)
		return RLA_EINVAL;
	len = (size_t)(colon - text);
	if (len == 0 || len >= sizeof(host))
		return RLA_EINVAL;
	memcpy(host, text, len);
	host[len] = '\0';
	memset(out, 0, sizeof(*out));
	if (host[0] == '[' && host[len - 1] == ']') {
		host[len - 1] = '\0';
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		out->len = sizeof(*in6);
		return inet_pton(AF_INET6, host + 1, &in6->sin6_addr) == 1
			   ? 0
			   : RLA_EINVAL;
	}
	in4->sin_family = AF_INET;
	in4->sin_port = htons(port);
	out->len = sizeof(*in4);
	return inet_pton(AF_INET, host, &in4->sin_addr) == 1 ? 0 : RLA_EINVAL;
}

void
addr_format(const struct addr *a, char out[ADDR_TEXT_MAX])
{
	const struct sockaddr_in *in4 = (const struct sockaddr_in *)&a->ss;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&a->ss;
	char host[INET6_ADDRSTRLEN];

	if (a->ss.ss_family == AF_INET &&
	    inet_ntop(AF_INET, &in4->sin_addr, host, sizeof(host)) != NULL)
		snprintf(out, ADDR_TEXT_MAX, "%s:%u", host, addr_port(a));
	else if (a->ss.ss_family == AF_INET6 &&
		 inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host)) !=
		     NULL)
		snprintf(out, ADDR_TEXT_MAX, "[%s]:%u", host, addr_port(a));
	else
		snprintf(out, ADDR_TEXT_MAX, "?");
}

uint16_t
addr_port(const struct addr *a)
{
	if (a->ss.ss_family == AF_INET6)
		return ntohs(((const struct sockaddr_in6 *)&a->ss)->sin6_port);
	return ntohs(((const struct sockaddr_in *)&a->ss)->sin_port);
}

void
addr_set_port(struct addr *a, uint16_t port)
{
	if (a->ss.ss_family == AF_INET6)
		((struct sockaddr_in6 *)&a->ss)->sin6_port = htons(port);
	else
		((struct sockaddr_in *)&a->ss)->sin_port = htons(port);
}

bool
addr_is_wildcard(const struct addr *a)
{
	if (a->ss.ss_family == AF_INET6)
		return IN6_IS_ADDR_UNSPECIFIED(
		    &((const struct sockaddr_in6 *)&a->ss)->sin6_addr);
	return ((const struct sockaddr_in *)&a->ss)->sin_addr.s_addr ==
	       htonl(INADDR_ANY);
}

int
addr_bind(struct addr *a, int type)
{
	struct addr bound = {.len = sizeof(bound.ss)};
	int fd, err, one = 1;

	fd = socket(a->ss.ss_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return RLA_ESYS;
	/* A datagram port is taken exclusively; a stream may still linger. */
	if ((type == SOCK_STREAM && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR,
					&one, sizeof(one)) < 0) ||
	    (a->ss.ss_family == AF_INET6 &&
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)) <
		    0) ||
	    bind(fd, (const struct sockaddr *)&a->ss, a->len) < 0 ||
	    getsockname(fd, (struct sockaddr *)&bound.ss, &bound.len) < 0) {
		err = errno;
		close(fd);
		errno = err;
		return RLA_ESYS;
	}
	*a = bound;
	return fd;
}
