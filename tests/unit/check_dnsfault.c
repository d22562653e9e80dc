/*
 * The line that tells what each nameserver did wrong: every fault, their
 * order, and its bounds. That they happen is for the tests of dns.
 */
#include "daemon/io/dnsfault.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/io/address.h"
#include "tests/unit/harness.h"

static struct endpoint servers[8];
static struct dnsfault faults[8];
static char text[DNS_ERROR_MAX];

static void
setup(void)
{
	memset(faults, 0, sizeof faults);
	for (unsigned i = 0; i < 8; i++)
		servers[i] = (struct endpoint){.family = 4,
		    .port = (uint16_t)(53 + i),
		    .addr = {192, 0, 2, (uint8_t)i}};
}

static const struct {
	struct dnsfault fault;
	enum dns_status status;
	const char *text;
} rows[] = {
    {{DNSFAULT_NONE, 0}, DNS_UNREACHABLE, "no nameserver was asked"},
    {{DNSFAULT_UNREACHABLE, ECONNREFUSED}, DNS_UNREACHABLE,
	"192.0.2.0:53: Connection refused"},
    {{DNSFAULT_UNREACHABLE, ENETUNREACH}, DNS_UNREACHABLE,
	"192.0.2.0:53: Network is unreachable"},
    {{DNSFAULT_SILENT, 0}, DNS_TIMEOUT, "192.0.2.0:53: no answer in 1000 ms"},
    {{DNSFAULT_MALFORMED, 0}, DNS_BAD, "192.0.2.0:53: malformed answer"},
    {{DNSFAULT_UNAUTHENTIC, 0}, DNS_BAD,
	"192.0.2.0:53: answer without the AD flag"},
    {{DNSFAULT_TCP, 0}, DNS_REFUSED, "192.0.2.0:53: TCP connection failed"},
    {{DNSFAULT_RCODE, 0}, DNS_REFUSED,
	"192.0.2.0:53: a referral, no answer (does it recurse?)"},
    {{DNSFAULT_RCODE, 1}, DNS_REFUSED, "192.0.2.0:53: FORMERR"},
    {{DNSFAULT_RCODE, 2}, DNS_REFUSED, "192.0.2.0:53: SERVFAIL"},
    {{DNSFAULT_RCODE, 4}, DNS_REFUSED, "192.0.2.0:53: NOTIMP"},
    {{DNSFAULT_RCODE, 5}, DNS_REFUSED, "192.0.2.0:53: REFUSED (not its zone?)"},
    {{DNSFAULT_RCODE, 9}, DNS_REFUSED, "192.0.2.0:53: response code 9"},
};

START_TEST(each_fault)
{
	faults[0] = rows[_i].fault;
	ck_assert_int_eq(dnsfault_status(faults, 8), rows[_i].status);
	dnsfault_text(text, servers, faults, 8, 1000);
	ck_assert_str_eq(text, rows[_i].text);
	/* The order of the rows is that of what they tell. */
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const struct dnsfault worse =
		    dnsfault_worse(rows[_i].fault, rows[i].fault);
		const bool newer = rows[i].fault.kind >= rows[_i].fault.kind;

		ck_assert_int_eq(worse.code,
		    newer ? rows[i].fault.code : rows[_i].fault.code);
	}
}
END_TEST

START_TEST(the_most_telling_decides)
{
	faults[0].kind = DNSFAULT_UNREACHABLE;
	faults[1].kind = DNSFAULT_TCP;
	faults[2].kind = DNSFAULT_MALFORMED;
	ck_assert_int_eq(dnsfault_status(faults, 3), DNS_REFUSED);
	faults[1].kind = DNSFAULT_SILENT;
	ck_assert_int_eq(dnsfault_status(faults, 3), DNS_BAD);
	ck_assert_int_eq(dnsfault_status(faults, 2), DNS_TIMEOUT);
	ck_assert_int_eq(dnsfault_status(faults, 0), DNS_UNREACHABLE);
}
END_TEST

START_TEST(in_order_without_those_not_asked)
{
	faults[1] = (struct dnsfault){DNSFAULT_RCODE, 5};
	faults[3] = (struct dnsfault){DNSFAULT_SILENT, 0};
	dnsfault_text(text, servers, faults, 8, 250);
	ck_assert_str_eq(text, "192.0.2.1:54: REFUSED (not its zone?); "
			       "192.0.2.3:56: no answer in 250 ms");
}
END_TEST

/* Eight of the longest: whole ones, and how many there are more. */
START_TEST(a_bounded_line)
{
	size_t told = 0, more = 0;

	for (int i = 0; i < 8; i++) {
		ck_assert(address_parse(
		    "[1111:2222:3333:4444:5555:6666:7777:8888%4294967295]:"
		    "65535",
		    0, &servers[i]));
		faults[i] = (struct dnsfault){DNSFAULT_RCODE, 0};
	}
	dnsfault_text(text, servers, faults, 8, 1000);
	for (const char *p = text; (p = strstr(p, "65535: a ref")) != NULL; p++)
		told++;
	ck_assert_uint_gt(told, 1);
	ck_assert_int_eq(
	    sscanf(strrchr(text, ';'), "; and %zu more", &more), 1);
	ck_assert_uint_eq(told + more, 8);
	ck_assert_str_eq(text + strlen(text) - 5, " more");
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("dnsfault");
	TCase *tc = tcase_create("dnsfault");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_loop_test(tc, each_fault, 0, sizeof rows / sizeof rows[0]);
	tcase_add_test(tc, the_most_telling_decides);
	tcase_add_test(tc, in_order_without_those_not_asked);
	tcase_add_test(tc, a_bounded_line);
	suite_add_tcase(s, tc);
	return harness_run(s);
}
