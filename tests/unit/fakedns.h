/*
 * A nameserver for tests, in the loop of the code under test: UDP and TCP on
 * one loopback port that the kernel chose. What it answers, a handler in the
 * test says, question by question.
 */
#ifndef TESTS_UNIT_FAKEDNS_H
#define TESTS_UNIT_FAKEDNS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/members.h"
#include "daemon/io/loop.h"
#include "tests/unit/dnsreply.h"

struct fakedns;

struct fakedns_query {
	struct fakedns *server;
	bool tcp;
	struct sockaddr_storage from;
	socklen_t from_len;
	const uint8_t *bytes;
	size_t len;
	size_t question_len; /* name, type and class */
	uint16_t id;
	uint16_t flags;
	uint16_t type;
	bool edns;
	char name[256]; /* lower case, no trailing dot */
};

/* Fills the reply, which is an empty NOERROR answer with RA at first. */
typedef void fakedns_fn(
    void *arg, const struct fakedns_query *query, struct dnsreply *reply);

/* family 4 or 6; NULL when there is no such loopback. */
struct fakedns *fakedns_new(
    struct loop *loop, int family, fakedns_fn *fn, void *arg);
void fakedns_free(struct fakedns *server);
/* Refuses TCP from now on. */
void fakedns_close_tcp(struct fakedns *server);
struct endpoint fakedns_endpoint(const struct fakedns *server);
/* A datagram to the asker, beside the reply. */
void fakedns_send(
    const struct fakedns_query *query, const void *bytes, size_t len);

#endif
