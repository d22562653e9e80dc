/*
 * DNS replies for tests, put together by hand and not by the code under test,
 * so that a mistake there does not cancel itself out.
 */
#ifndef TESTS_UNIT_DNSREPLY_H
#define TESTS_UNIT_DNSREPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DNSREPLY_ANSWER, DNSREPLY_AUTHORITY, DNSREPLY_ADDITIONAL };

#define DNSREPLY_HEADER 12

#define DNSREPLY_AA 0x0400
#define DNSREPLY_TC 0x0200
#define DNSREPLY_RA 0x0080
#define DNSREPLY_AD 0x0020

struct dnsreply {
	bool silent; /* send nothing; over TCP the connection stays */
	bool broken; /* over TCP: send half of it and close */
	size_t len;
	uint8_t bytes[65537];
};

/* An empty NOERROR answer with RA; question is name, type and class. */
void dnsreply_init(struct dnsreply *reply, uint16_t id, const uint8_t *question,
    size_t question_len);
void dnsreply_rcode(struct dnsreply *reply, unsigned rcode);
void dnsreply_set(struct dnsreply *reply, uint16_t flags);
void dnsreply_clear(struct dnsreply *reply, uint16_t flags);
/* Any bytes, and a count of one more record in the section. */
void dnsreply_raw(
    struct dnsreply *reply, int section, const void *bytes, size_t len);
/* A record with any rdata. owner NULL: a pointer to the question. */
void dnsreply_record(struct dnsreply *reply, int section, const char *owner,
    uint16_t type, uint32_t ttl, const void *rdata, size_t len);
/* A or AAAA by the look of the address. */
void dnsreply_address(struct dnsreply *reply, const char *owner, uint32_t ttl,
    const char *address);
/* The same in the additional section. */
void dnsreply_glue(struct dnsreply *reply, const char *owner, uint32_t ttl,
    const char *address);
void dnsreply_srv(struct dnsreply *reply, const char *owner, uint32_t ttl,
    uint16_t port, const char *target);
void dnsreply_cname(struct dnsreply *reply, const char *owner, uint32_t ttl,
    const char *target);
/* In the authority section. */
void dnsreply_soa(
    struct dnsreply *reply, const char *owner, uint32_t ttl, uint32_t minimum);
/* The wire form of a dotted name; returns its length. */
size_t dnsreply_name(const char *text, uint8_t out[256]);

#endif
