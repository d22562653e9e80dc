/*
 * The strict scan of a DNS query: one question, maybe one OPT, and not a byte
 * more. By hand, since general parsers forgive more than a server should.
 */
#ifndef SANDBOX_DNSQ_H
#define SANDBOX_DNSQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DNSQ_MAX_NAME 255

enum dnsq_rcode { DNSQ_NOERROR = 0, DNSQ_FORMERR = 1, DNSQ_NOTIMP = 4 };

struct dnsq {
	uint16_t id;
	bool rd;
	bool cd;
	enum dnsq_rcode rcode; /* an error found on the way */
	bool asked;            /* name, type and class are there */
	uint8_t name[DNSQ_MAX_NAME];
	size_t name_len;
	uint16_t type;
	uint16_t class;
	bool edns;
	bool bad_version; /* of EDNS */
	bool dnssec_ok;
	uint16_t udp_size; /* as EDNS asks, else 0 */
};

/* False for what must get no answer at all: no header, or a response. */
bool dnsq_scan(const uint8_t *query, size_t len, struct dnsq *q);

#endif
