/*
 * The zone holds its apex (SOA), the empty name _udp.<zone>, the service and
 * one target per published server; nothing else exists. Owner names echo the
 * question, case included, since resolvers check that (0x20).
 */
#include "sandbox/dnsd.h"

#include <assert.h>
#include <inttypes.h>
#include <ldns/ldns.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/err.h"
#include "sandbox/dnsq.h"

#define MAX_MEMBERS 64
#define MIN_UDP     512
#define OWN_UDP     1232 /* what our OPT announces */
#define SOA_SERIAL  1

struct member {
	bool published;
	ldns_rdf *target;
	ldns_rr *srv;
	ldns_rr_list *addresses; /* A and AAAA */
};

struct dnsd {
	char text[LDNS_MAX_DOMAINLEN * 4 + 1];
	uint32_t ttl;
	ldns_rdf *zone;
	ldns_rdf *udp;     /* _udp.<zone> */
	ldns_rdf *service; /* _ratelimitly._udp.<zone> */
	ldns_rr *soa;
	size_t member_count;
	struct member members[MAX_MEMBERS];
};

static ldns_rdf *
name_under(const char *prefix, const ldns_rdf *zone)
{
	ldns_rdf *first = ldns_dname_new_frm_str(prefix), *whole;

	if (first == NULL)
		return NULL;
	whole = ldns_dname_cat_clone(first, zone);
	ldns_rdf_deep_free(first);
	if (whole != NULL && ldns_rdf_size(whole) > LDNS_MAX_DOMAINLEN) {
		ldns_rdf_deep_free(whole);
		whole = NULL;
	}
	return whole;
}

/* Takes the rdfs; NULL when one of them or memory is missing. */
static ldns_rr *
new_rr(const ldns_rdf *owner, uint32_t ttl, ldns_rr_type type,
    ldns_rdf *const *rdfs, size_t count)
{
	ldns_rr *rr = ldns_rr_new();
	ldns_rdf *name = ldns_rdf_clone(owner);
	bool ok = rr != NULL && name != NULL;
	size_t i;

	for (i = 0; i < count; i++)
		ok = ok && rdfs[i] != NULL;
	if (!ok) {
		for (i = 0; i < count; i++)
			ldns_rdf_deep_free(rdfs[i]);
		ldns_rdf_deep_free(name);
		ldns_rr_free(rr);
		return NULL;
	}
	ldns_rr_set_owner(rr, name);
	ldns_rr_set_ttl(rr, ttl);
	ldns_rr_set_type(rr, type);
	ldns_rr_set_class(rr, LDNS_RR_CLASS_IN);
	for (i = 0; i < count; i++)
		ldns_rr_push_rdf(rr, rdfs[i]);
	return rr;
}

static ldns_rdf *
int32_rdf(uint32_t v)
{
	return ldns_native2rdf_int32(LDNS_RDF_TYPE_INT32, v);
}

static ldns_rr *
new_soa(const struct dnsd *d)
{
	ldns_rdf *rdfs[] = {name_under("ns", d->zone),
	    name_under("hostmaster", d->zone), int32_rdf(SOA_SERIAL),
	    int32_rdf(3600), int32_rdf(600), int32_rdf(86400),
	    int32_rdf(d->ttl)};

	return new_rr(d->zone, d->ttl, LDNS_RR_TYPE_SOA, rdfs, 7);
}

struct dnsd *
dnsd_new(const char *zone, uint32_t ttl_s)
{
	struct dnsd *d = calloc(1, sizeof(*d));
	size_t len = strlen(zone);

	if (d == NULL)
		return NULL;
	d->ttl = ttl_s;
	if (len < sizeof(d->text))
		d->zone = ldns_dname_new_frm_str(zone);
	if (d->zone == NULL || ldns_rdf_size(d->zone) <= 1) {
		dnsd_free(d);
		return NULL;
	}
	memcpy(d->text, zone, len + 1);
	if (d->text[len - 1] == '.')
		d->text[len - 1] = '\0';
	d->udp = name_under("_udp", d->zone);
	d->service = name_under("_ratelimitly._udp", d->zone);
	d->soa = new_soa(d);
	if (d->udp == NULL || d->service == NULL || d->soa == NULL) {
		dnsd_free(d);
		return NULL;
	}
	return d;
}

static void
member_fini(struct member *m)
{
	ldns_rdf_deep_free(m->target);
	ldns_rr_free(m->srv);
	ldns_rr_list_deep_free(m->addresses);
	memset(m, 0, sizeof(*m));
}

void
dnsd_free(struct dnsd *d)
{
	size_t i;

	if (d == NULL)
		return;
	for (i = 0; i < d->member_count; i++)
		member_fini(&d->members[i]);
	ldns_rr_free(d->soa);
	ldns_rdf_deep_free(d->service);
	ldns_rdf_deep_free(d->udp);
	ldns_rdf_deep_free(d->zone);
	free(d);
}

const char *
dnsd_zone(const struct dnsd *d)
{
	return d->text;
}

static ldns_rr *
address_rr(const struct dnsd *d, const ldns_rdf *owner, const struct addr *a)
{
	const struct sockaddr_in *in4 = (const struct sockaddr_in *)&a->ss;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&a->ss;
	ldns_rdf *rdf;

	if (a->ss.ss_family == AF_INET6) {
		rdf = ldns_rdf_new_frm_data(
		    LDNS_RDF_TYPE_AAAA, 16, &in6->sin6_addr);
		return new_rr(owner, d->ttl, LDNS_RR_TYPE_AAAA, &rdf, 1);
	}
	rdf = ldns_rdf_new_frm_data(LDNS_RDF_TYPE_A, 4, &in4->sin_addr);
	return new_rr(owner, d->ttl, LDNS_RR_TYPE_A, &rdf, 1);
}

static bool
member_fill(const struct dnsd *d, struct member *m, uint64_t server_id,
    const struct addr *addrs, size_t addr_count)
{
	char label[32];
	ldns_rdf *rdfs[4];
	ldns_rr *rr;
	size_t i;

	snprintf(label, sizeof(label), "s-%" PRIu64, server_id);
	m->target = name_under(label, d->zone);
	m->addresses = ldns_rr_list_new();
	if (m->target == NULL || m->addresses == NULL)
		return false;
	rdfs[0] = ldns_native2rdf_int16(LDNS_RDF_TYPE_INT16, 0);
	rdfs[1] = ldns_native2rdf_int16(LDNS_RDF_TYPE_INT16, 0);
	rdfs[2] =
	    ldns_native2rdf_int16(LDNS_RDF_TYPE_INT16, addr_port(&addrs[0]));
	rdfs[3] = ldns_rdf_clone(m->target);
	m->srv = new_rr(d->service, d->ttl, LDNS_RR_TYPE_SRV, rdfs, 4);
	if (m->srv == NULL)
		return false;
	for (i = 0; i < addr_count; i++) {
		rr = address_rr(d, m->target, &addrs[i]);
		if (rr == NULL)
			return false;
		if (!ldns_rr_list_push_rr(m->addresses, rr)) {
			ldns_rr_free(rr);
			return false;
		}
	}
	return true;
}

int
dnsd_add(struct dnsd *d, uint64_t server_id, const struct addr *addrs,
    size_t addr_count)
{
	struct member *m = &d->members[d->member_count];

	assert(d->member_count < MAX_MEMBERS && addr_count > 0);
	if (!member_fill(d, m, server_id, addrs, addr_count)) {
		member_fini(m);
		return RLA_ENOMEM;
	}
	m->published = true;
	d->member_count++;
	return 0;
}

void
dnsd_publish(struct dnsd *d, size_t index, bool published)
{
	assert(index < d->member_count);
	d->members[index].published = published;
}

/* Adds a copy of the record, owned by the name as it was asked for. */
static bool
push_copy(ldns_pkt *pkt, ldns_pkt_section section, const ldns_rr *rr,
    const ldns_rdf *owner)
{
	ldns_rr *copy = ldns_rr_clone(rr);
	ldns_rdf *name = ldns_rdf_clone(owner);

	if (copy == NULL || name == NULL) {
		ldns_rr_free(copy);
		ldns_rdf_deep_free(name);
		return false;
	}
	ldns_rdf_deep_free(ldns_rr_owner(copy));
	ldns_rr_set_owner(copy, name);
	if (!ldns_pkt_push_rr(pkt, section, copy)) {
		ldns_rr_free(copy);
		return false;
	}
	return true;
}

static bool
wanted(const struct dnsq *q, const ldns_rr *rr)
{
	return q->type == LDNS_RR_TYPE_ANY ||
	       q->type == (uint16_t)ldns_rr_get_type(rr);
}

/* Answers from the member whose target this is. False: there is none. */
static bool
answer_target(const struct dnsd *d, const struct dnsq *q, const ldns_rdf *name,
    ldns_pkt *pkt)
{
	const struct member *m;
	ldns_rr *rr;
	size_t i, k;

	for (i = 0; i < d->member_count; i++) {
		m = &d->members[i];
		if (!m->published || ldns_dname_compare(m->target, name) != 0)
			continue;
		for (k = 0; k < ldns_rr_list_rr_count(m->addresses); k++) {
			rr = ldns_rr_list_rr(m->addresses, k);
			if (wanted(q, rr))
				push_copy(pkt, LDNS_SECTION_ANSWER, rr, name);
		}
		return true;
	}
	return false;
}

/* Fills the answer section and says whether the name exists. */
static bool
answer_name(const struct dnsd *d, const struct dnsq *q, const ldns_rdf *name,
    ldns_pkt *pkt)
{
	size_t i;

	if (ldns_dname_compare(name, d->service) == 0) {
		for (i = 0; i < d->member_count; i++)
			if (d->members[i].published &&
			    wanted(q, d->members[i].srv))
				push_copy(pkt, LDNS_SECTION_ANSWER,
				    d->members[i].srv, name);
		return true;
	}
	if (ldns_dname_compare(name, d->zone) == 0) {
		if (wanted(q, d->soa))
			push_copy(pkt, LDNS_SECTION_ANSWER, d->soa, name);
		return true;
	}
	return ldns_dname_compare(name, d->udp) == 0 ||
	       answer_target(d, q, name, pkt);
}

static void
answer_question(const struct dnsd *d, const struct dnsq *q,
    const ldns_rdf *name, ldns_pkt *pkt)
{
	if (q->type == LDNS_RR_TYPE_AXFR || q->type == LDNS_RR_TYPE_IXFR ||
	    q->class != LDNS_RR_CLASS_IN ||
	    (ldns_dname_compare(name, d->zone) != 0 &&
		!ldns_dname_is_subdomain(name, d->zone))) {
		ldns_pkt_set_rcode(pkt, LDNS_RCODE_REFUSED);
		return;
	}
	ldns_pkt_set_aa(pkt, true);
	if (!answer_name(d, q, name, pkt))
		ldns_pkt_set_rcode(pkt, LDNS_RCODE_NXDOMAIN);
	if (ldns_pkt_ancount(pkt) == 0)
		push_copy(pkt, LDNS_SECTION_AUTHORITY, d->soa, d->zone);
}

/* A response with its header, question and OPT, and nothing else. */
static ldns_pkt *
new_response(const struct dnsq *q, const ldns_rdf *name)
{
	ldns_pkt *pkt = ldns_pkt_new();
	ldns_rr *rr;

	if (pkt == NULL)
		return NULL;
	ldns_pkt_set_id(pkt, q->id);
	ldns_pkt_set_qr(pkt, true);
	ldns_pkt_set_rd(pkt, q->rd);
	ldns_pkt_set_cd(pkt, q->cd);
	ldns_pkt_set_rcode(pkt, (uint8_t)q->rcode);
	if (q->edns) {
		ldns_pkt_set_edns_udp_size(pkt, OWN_UDP);
		ldns_pkt_set_edns_do(pkt, q->dnssec_ok);
		if (q->bad_version) /* BADVERS is 16 */
			ldns_pkt_set_edns_extended_rcode(pkt, 1);
	}
	if (name == NULL)
		return pkt;
	rr = ldns_rr_new();
	if (rr == NULL) {
		ldns_pkt_free(pkt);
		return NULL;
	}
	ldns_rr_set_question(rr, true);
	ldns_rr_set_owner(rr, ldns_rdf_clone(name));
	ldns_rr_set_type(rr, (ldns_rr_type)q->type);
	ldns_rr_set_class(rr, (ldns_rr_class)q->class);
	ldns_pkt_push_rr(pkt, LDNS_SECTION_QUESTION, rr);
	return pkt;
}

/* Takes the packet. Returns 0 when it does not fit. */
static size_t
emit(ldns_pkt *pkt, uint8_t *out, size_t cap)
{
	uint8_t *wire = NULL;
	size_t len = 0;

	if (pkt == NULL || ldns_pkt2wire(&wire, pkt, &len) != LDNS_STATUS_OK ||
	    len > cap)
		len = 0;
	if (len > 0)
		memcpy(out, wire, len);
	free(wire);
	ldns_pkt_free(pkt);
	return len;
}

static size_t
room(const struct dnsq *q, bool tcp, size_t cap)
{
	size_t most = MIN_UDP;

	if (tcp)
		most = DNSD_TCP_MAX;
	else if (q->edns && q->udp_size > MIN_UDP)
		most = q->udp_size < DNSD_UDP_MAX ? q->udp_size : DNSD_UDP_MAX;
	return most < cap ? most : cap;
}

size_t
dnsd_answer(const struct dnsd *d, const uint8_t *query, size_t len, bool tcp,
    uint8_t *out, size_t cap)
{
	struct dnsq q;
	ldns_rdf *name = NULL;
	ldns_pkt *pkt;
	size_t used, most;

	if (!dnsq_scan(query, len, &q))
		return 0;
	most = room(&q, tcp, cap);
	if (q.asked)
		name = ldns_rdf_new_frm_data(
		    LDNS_RDF_TYPE_DNAME, q.name_len, q.name);
	if (q.asked && name == NULL)
		return 0;
	pkt = new_response(&q, name);
	if (pkt != NULL && q.asked && !q.bad_version)
		answer_question(d, &q, name, pkt);
	used = emit(pkt, out, most);
	if (used == 0) {
		pkt = new_response(&q, name);
		if (pkt != NULL) {
			ldns_pkt_set_aa(pkt, true);
			ldns_pkt_set_tc(pkt, true);
		}
		used = emit(pkt, out, most);
	}
	ldns_rdf_deep_free(name);
	return used;
}
