/* What nameservers did wrong, for people; see the header. */
#include "daemon/io/dnsfault.h"

#include <stdio.h>
#include <string.h>

#include "daemon/io/address.h"

#define ONE_MAX  (ADDRESS_TEXT_MAX + 64)
#define MORE_MAX 32 /* of "; and N more" */

struct dnsfault
dnsfault_worse(struct dnsfault old, struct dnsfault new)
{
	return new.kind >= old.kind ? new : old;
}

enum dns_status
dnsfault_status(const struct dnsfault *faults, size_t count)
{
	struct dnsfault worst = {DNSFAULT_NONE, 0};

	for (size_t i = 0; i < count; i++)
		worst = dnsfault_worse(worst, faults[i]);
	switch (worst.kind) {
	case DNSFAULT_NONE:
	case DNSFAULT_UNREACHABLE:
		return DNS_UNREACHABLE;
	case DNSFAULT_SILENT:
		return DNS_TIMEOUT;
	case DNSFAULT_MALFORMED:
	case DNSFAULT_UNAUTHENTIC:
		return DNS_BAD;
	case DNSFAULT_TCP:
	case DNSFAULT_RCODE:
		return DNS_REFUSED;
	}
	return DNS_UNREACHABLE;
}

/* RFC 1035 section 4.1.1; rarer ones are told by number. */
static const char *
rcode_text(int rcode)
{
	switch (rcode) {
	case 0:
		return "a referral, no answer (does it recurse?)";
	case 1:
		return "FORMERR";
	case 2:
		return "SERVFAIL";
	case 4:
		return "NOTIMP";
	case 5:
		return "REFUSED (not its zone?)";
	}
	return NULL;
}

static void
one(char out[ONE_MAX], const struct endpoint *server,
    const struct dnsfault *fault, uint32_t timeout_ms)
{
	char name[ADDRESS_TEXT_MAX], detail[64] = "";
	const char *text = detail;

	switch (fault->kind) {
	case DNSFAULT_NONE:
		break;
	case DNSFAULT_UNREACHABLE:
		text = strerror(fault->code);
		break;
	case DNSFAULT_SILENT:
		snprintf(
		    detail, sizeof detail, "no answer in %u ms", timeout_ms);
		break;
	case DNSFAULT_MALFORMED:
		text = "malformed answer";
		break;
	case DNSFAULT_UNAUTHENTIC:
		text = "answer without the AD flag";
		break;
	case DNSFAULT_TCP:
		text = "TCP connection failed";
		break;
	case DNSFAULT_RCODE:
		text = rcode_text(fault->code);
		if (text != NULL)
			break;
		text = detail;
		snprintf(
		    detail, sizeof detail, "response code %d", fault->code);
		break;
	}
	snprintf(out, ONE_MAX, "%s: %s", address_format(server, name), text);
}

void
dnsfault_text(char out[DNS_ERROR_MAX], const struct endpoint *servers,
    const struct dnsfault *faults, size_t count, uint32_t timeout_ms)
{
	char text[ONE_MAX];
	size_t len = 0, more = 0;

	out[0] = '\0';
	for (size_t i = 0; i < count; i++) {
		if (faults[i].kind == DNSFAULT_NONE)
			continue;
		one(text, &servers[i], &faults[i], timeout_ms);
		if (more > 0 ||
		    len + 2 + strlen(text) + MORE_MAX > DNS_ERROR_MAX) {
			more++;
			continue;
		}
		len += (size_t)snprintf(out + len, DNS_ERROR_MAX - len, "%s%s",
		    len > 0 ? "; " : "", text);
	}
	if (more > 0)
		snprintf(
		    out + len, DNS_ERROR_MAX - len, "; and %zu more", more);
	if (len == 0)
		snprintf(out, DNS_ERROR_MAX, "no nameserver was asked");
}
