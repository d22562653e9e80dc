/*
 * Why a nameserver gave no answer that is of use, and the line for people that
 * tells it of all nameservers that a query asked. Pure, but for strerror(): no
 * byte of a message ends in the text, only codes and addresses do.
 */
#ifndef DAEMON_IO_DNSFAULT_H
#define DAEMON_IO_DNSFAULT_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/core/endpoint.h"
#include "daemon/io/dns.h"

/* The later, the more telling. */
enum dnsfault_kind {
	DNSFAULT_NONE,        /* was not asked */
	DNSFAULT_UNREACHABLE, /* code is an errno */
	DNSFAULT_SILENT,
	DNSFAULT_MALFORMED,
	DNSFAULT_UNAUTHENTIC, /* AD is required and missing */
	DNSFAULT_TCP,         /* refused, or broken off */
	DNSFAULT_RCODE,       /* code is the response code; 0: a referral */
};

struct dnsfault {
	enum dnsfault_kind kind;
	int code;
};

/* Of two faults of one nameserver: the more telling one, else the newer. */
struct dnsfault dnsfault_worse(struct dnsfault old, struct dnsfault new);

/* What a query that is given up ends with: the most telling of all. */
enum dns_status dnsfault_status(const struct dnsfault *faults, size_t count);

/*
 * "192.0.2.1:53: Connection refused; 192.0.2.2:53: no answer in 1000 ms", in
 * the order of the nameservers, those that were not asked left out; what does
 * not fit is counted: "; and 3 more". Never empty.
 */
void dnsfault_text(char out[DNS_ERROR_MAX], const struct endpoint *servers,
    const struct dnsfault *faults, size_t count, uint32_t timeout_ms);

#endif
