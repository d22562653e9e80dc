/* DNS replies for tests, byte by byte. */
#include "tests/unit/dnsreply.h"

#include <arpa/inet.h>
#include <assert.h>
#include <string.h>

static void
put16(uint8_t *at, uint16_t v)
{
	at[0] = (uint8_t)(v >> 8);
	at[1] = (uint8_t)v;
}

static uint16_t
get16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

size_t
dnsreply_name(const char *text, uint8_t out[256])
{
	size_t used = 0, len;

	while (*text != '\0') {
		len = strcspn(text, ".");
		out[used++] = (uint8_t)len;
		memcpy(out + used, text, len);
		used += len;
		text += len;
		text += *text == '.';
	}
	out[used++] = 0;
	return used;
}

void
dnsreply_init(struct dnsreply *reply, uint16_t id, const uint8_t *question,
    size_t question_len)
{
	reply->silent = false;
	reply->broken = false;
	memset(reply->bytes, 0, DNSREPLY_HEADER);
	put16(reply->bytes, id);
	put16(reply->bytes + 2, 0x8100 | DNSREPLY_RA);
	put16(reply->bytes + 4, 1);
	memcpy(reply->bytes + DNSREPLY_HEADER, question, question_len);
	reply->len = DNSREPLY_HEADER + question_len;
}

void
dnsreply_rcode(struct dnsreply *reply, unsigned rcode)
{
	reply->bytes[3] = (uint8_t)((reply->bytes[3] & 0xf0) | rcode);
}

void
dnsreply_set(struct dnsreply *reply, uint16_t flags)
{
	put16(reply->bytes + 2, get16(reply->bytes + 2) | flags);
}

void
dnsreply_clear(struct dnsreply *reply, uint16_t flags)
{
	put16(reply->bytes + 2, get16(reply->bytes + 2) & (uint16_t)~flags);
}

void
dnsreply_raw(struct dnsreply *reply, int section, const void *bytes, size_t len)
{
	uint8_t *count = reply->bytes + 6 + 2 * section;

	assert(reply->len + len <= sizeof reply->bytes);
	put16(count, get16(count) + 1);
	memcpy(reply->bytes + reply->len, bytes, len);
	reply->len += len;
}

void
dnsreply_record(struct dnsreply *reply, int section, const char *owner,
    uint16_t type, uint32_t ttl, const void *rdata, size_t len)
{
	uint8_t record[1024] = {0xc0, DNSREPLY_HEADER}, *at = record + 2;

	if (owner != NULL)
		at = record + dnsreply_name(owner, record);
	assert(len <= sizeof record - 266);
	put16(at, type);
	put16(at + 2, 1);
	put16(at + 4, (uint16_t)(ttl >> 16));
	put16(at + 6, (uint16_t)ttl);
	put16(at + 8, (uint16_t)len);
	if (len > 0)
		memcpy(at + 10, rdata, len);
	at += 10 + len;
	dnsreply_raw(reply, section, record, (size_t)(at - record));
}

static void
put_address(struct dnsreply *reply, int section, const char *owner,
    uint32_t ttl, const char *address)
{
	uint8_t addr[16];

	if (inet_pton(AF_INET, address, addr) == 1) {
		dnsreply_record(reply, section, owner, 1, ttl, addr, 4);
		return;
	}
	assert(inet_pton(AF_INET6, address, addr) == 1);
	dnsreply_record(reply, section, owner, 28, ttl, addr, 16);
}

void
dnsreply_address(struct dnsreply *reply, const char *owner, uint32_t ttl,
    const char *address)
{
	put_address(reply, DNSREPLY_ANSWER, owner, ttl, address);
}

void
dnsreply_glue(struct dnsreply *reply, const char *owner, uint32_t ttl,
    const char *address)
{
	put_address(reply, DNSREPLY_ADDITIONAL, owner, ttl, address);
}

void
dnsreply_srv(struct dnsreply *reply, const char *owner, uint32_t ttl,
    uint16_t port, const char *target)
{
	uint8_t rdata[6 + 256] = {0, 1, 0, 2};

	put16(rdata + 4, port);
	dnsreply_record(reply, DNSREPLY_ANSWER, owner, 33, ttl, rdata,
	    6 + dnsreply_name(target, rdata + 6));
}

void
dnsreply_cname(
    struct dnsreply *reply, const char *owner, uint32_t ttl, const char *target)
{
	uint8_t rdata[256];

	dnsreply_record(reply, DNSREPLY_ANSWER, owner, 5, ttl, rdata,
	    dnsreply_name(target, rdata));
}

void
dnsreply_soa(
    struct dnsreply *reply, const char *owner, uint32_t ttl, uint32_t minimum)
{
	uint8_t rdata[2 * 256 + 20] = {0};
	size_t len = dnsreply_name("ns.test", rdata);

	len += dnsreply_name("admin.test", rdata + len) + 20;
	put16(rdata + len - 4, (uint16_t)(minimum >> 16));
	put16(rdata + len - 2, (uint16_t)minimum);
	dnsreply_record(reply, DNSREPLY_AUTHORITY, owner, 6, ttl, rdata, len);
}
