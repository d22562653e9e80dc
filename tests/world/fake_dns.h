/*
 * The name servers of a world: daemon/io/dns.h answered from one zone, in the
 * turn of the question, or not at all while the zone is silent.
 */
#ifndef TESTS_WORLD_FAKE_DNS_H
#define TESTS_WORLD_FAKE_DNS_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/core/members.h"
#include "daemon/io/dns.h"

void fake_dns_reset(void);
/* The servers of the zone, copied; the port is that of the first address. */
void fake_dns_serve(const struct members_target *servers, size_t count);
/* Every question gets this answer instead; DNS_OK: that of the zone. */
void fake_dns_answer(enum dns_status status);
/* Questions wait until this is called with false. */
void fake_dns_silence(bool silent);
/* Questions about SRV records so far. */
unsigned int fake_dns_questions(void);

#endif
