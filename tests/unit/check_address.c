/*
 * Endpoints as text and as socket addresses: every form, what is refused,
 * and the inverse over random endpoints.
 */
#include "daemon/io/address.h"

#include <net/if.h>
#include <string.h>

#include "tests/unit/harness.h"

static const struct {
	const char *text;
	uint16_t default_port;
	uint8_t family; /* 0: refused */
	uint16_t port;
} cases[] = {
    {"192.0.2.1", 53, 4, 53},
    {"192.0.2.1", 0, 0, 0},
    {"192.0.2.1:1", 53, 4, 1},
    {"192.0.2.1:65535", 0, 4, 65535},
    {"192.0.2.1:65536", 0, 0, 0},
    {"192.0.2.1:4294967297", 53, 0, 0},
    {"192.0.2.1:99999999999999999999", 53, 0, 0},
    {"192.0.2.1:0", 53, 0, 0},
    {"192.0.2.1:", 53, 0, 0},
    {"192.0.2.1:053", 53, 0, 0},
    {"192.0.2.1:+53", 53, 0, 0},
    {"192.0.2.1:53 ", 53, 0, 0},
    {" 192.0.2.1", 53, 0, 0},
    {"192.0.2", 53, 0, 0},
    {"192.0.2.256", 53, 0, 0},
    {"192.0.2.1%1", 53, 0, 0},
    {"[192.0.2.1]", 53, 4, 53},
    {"[192.0.2.1]:9", 0, 4, 9},
    {"[192.0.2.1%1]:9", 0, 0, 0},
    {"::1", 53, 6, 53},
    {"::1", 0, 0, 0},
    {"[::1]", 53, 6, 53},
    {"[::1]", 0, 0, 0},
    {"[::1]:9", 0, 6, 9},
    {"[::1]:", 53, 0, 0},
    {"[::1]:0", 53, 0, 0},
    {"[::1]9", 53, 0, 0},
    {"[::1]]", 53, 0, 0},
    {"[::1", 53, 0, 0},
    {"::1]", 53, 0, 0},
    {"[[::1]]", 53, 0, 0},
    {"[]:9", 0, 0, 0},
    {"[", 53, 0, 0},
    {"[]", 53, 0, 0},
    {"::ffff:192.0.2.1", 53, 4, 53},
    {"[::ffff:192.0.2.1]:9", 0, 4, 9},
    {"::ffff:192.0.2.1%1", 53, 0, 0},
    {"fe80::1%1", 53, 6, 53},
    {"[fe80::1%1]:9", 0, 6, 9},
    {"[fe80::1]%1:9", 0, 0, 0},
    {"fe80::1%", 53, 0, 0},
    {"fe80::1%0", 53, 0, 0},
    {"fe80::1%-1", 53, 0, 0},
    {"fe80::1%4294967295", 53, 6, 53},
    {"fe80::1%4294967296", 53, 0, 0},
    {"fe80::1%no-such-interface", 53, 0, 0},
    {"", 53, 0, 0},
    {":", 53, 0, 0},
    {"::", 53, 6, 53},
    {":53", 53, 0, 0},
    {"ns.example", 53, 0, 0},
};

START_TEST(forms)
{
	struct endpoint e, before;
	bool good = cases[_i].family != 0;

	memset(&e, 0xEE, sizeof(e));
	before = e;
	ck_assert_msg(
	    address_parse(cases[_i].text, cases[_i].default_port, &e) == good,
	    "%s", cases[_i].text);
	if (good) {
		ck_assert_uint_eq(e.family, cases[_i].family);
		ck_assert_uint_eq(e.port, cases[_i].port);
	} else {
		ck_assert(endpoint_equal(&e, &before));
	}
}
END_TEST

static struct endpoint
parsed(const char *text)
{
	struct endpoint e;

	ck_assert_msg(address_parse(text, 53, &e), "%s", text);
	return e;
}

START_TEST(values)
{
	static const uint8_t v6[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = 0x53};
	char text[32 + IF_NAMESIZE], name[IF_NAMESIZE];
	struct endpoint e = parsed("192.0.2.1");

	ck_assert_mem_eq(e.addr, "\xc0\0\2\1", 4);
	ck_assert_uint_eq(e.scope, 0);
	e = parsed("::ffff:192.0.2.1");
	ck_assert_mem_eq(e.addr, "\xc0\0\2\1", 4);
	e = parsed("2001:db8::53");
	ck_assert_mem_eq(e.addr, v6, sizeof(v6));
	ck_assert_uint_eq(e.scope, 0);
	e = parsed("fe80::1%4294967295");
	ck_assert_uint_eq(e.scope, UINT32_MAX);

	/* An interface by its name: the first there is. */
	ck_assert_ptr_nonnull(if_indextoname(1, name));
	snprintf(text, sizeof(text), "[fe80::1%%%s]:9", name);
	e = parsed(text);
	ck_assert_uint_eq(e.scope, 1);
	ck_assert_uint_eq(e.port, 9);
}
END_TEST

/* No text is so long that it is cut and then taken. */
START_TEST(lengths)
{
	char text[300];
	struct endpoint e;

	for (size_t len = 1; len < sizeof(text); len++) {
		memset(text, '1', len);
		text[len] = '\0';
		ck_assert(!address_parse(text, 53, &e));
		memset(text, ':', len);
		ck_assert_int_eq(address_parse(text, 53, &e), len == 2);
		memset(text, '[', len);
		ck_assert(!address_parse(text, 53, &e));
		memcpy(text, "::%1", len < 4 ? len : 4);
		memset(text + 4, '1', len > 4 ? len - 4 : 0);
		ck_assert_int_eq(address_parse(text, 53, &e),
		    len == 2 || (len >= 4 && len <= 13)); /* 10 digits */
	}
}
END_TEST

static void
prints(const char *text, const char *expected)
{
	struct endpoint e = parsed(text);
	char buf[ADDRESS_TEXT_MAX];

	ck_assert_ptr_eq(address_format(&e, buf), buf);
	ck_assert_str_eq(buf, expected);
}

START_TEST(printed)
{
	struct endpoint longest = {.family = 6, .port = 65535};
	char buf[ADDRESS_TEXT_MAX];

	prints("192.0.2.1:5353", "192.0.2.1:5353");
	prints("[2001:db8:0::1]", "[2001:db8::1]:53");
	prints("[fe80::1%3]:53", "[fe80::1%3]:53");
	prints("::ffff:192.0.2.1", "192.0.2.1:53");
	memset(longest.addr, 0xEE, sizeof(longest.addr));
	longest.scope = UINT32_MAX;
	ck_assert_str_eq(address_format(&longest, buf),
	    "[eeee:eeee:eeee:eeee:eeee:eeee:eeee:eeee%4294967295]:65535");
}
END_TEST

/* Mapped addresses aside, which come back as IPv4. */
static struct endpoint
random_endpoint(uint64_t *seed)
{
	struct endpoint e = {
	    .family = harness_below(seed, 2) == 0 ? 4 : 6,
	    .port = (uint16_t)(1 + harness_below(seed, 65535)),
	};

	harness_fill(seed, e.addr, e.family == 4 ? 4 : 16);
	for (size_t i = 0; i < 16 && e.family == 6; i++) {
		if (harness_below(seed, 2) == 0)
			e.addr[i] = 0; /* "::" in many places */
	}
	if (e.family == 6) {
		e.addr[0] = 0xFE;
		if (harness_below(seed, 2) == 0)
			e.scope = (uint32_t)harness_random(seed) | 0x80000000;
	}
	return e;
}

START_TEST(inverses)
{
	uint64_t seed = harness_seed();
	char buf[ADDRESS_TEXT_MAX];
	struct endpoint e, back;
	union address address;
	socklen_t len;

	for (int i = 0; i < 20000; i++) {
		e = random_endpoint(&seed);
		address_format(&e, buf);
		ck_assert_msg(
		    address_parse(buf, 0, &back) && endpoint_equal(&e, &back),
		    "%s", buf);

		memset(&address, 0xEE, sizeof(address));
		len = address_to_sockaddr(&e, &address);
		address_from_sockaddr(&address, &back);
		ck_assert_msg(endpoint_equal(&e, &back), "%s", buf);
		ck_assert_uint_eq(len, e.family == 4
					   ? sizeof(struct sockaddr_in)
					   : sizeof(struct sockaddr_in6));
	}
}
END_TEST

START_TEST(socket_addresses)
{
	struct endpoint e = parsed("192.0.2.1:258"), back;
	union address address;

	address_to_sockaddr(&e, &address);
	ck_assert_int_eq(address.in4.sin_family, AF_INET);
	ck_assert_mem_eq(&address.in4.sin_port, "\1\2", 2);
	ck_assert_mem_eq(&address.in4.sin_addr, "\xc0\0\2\1", 4);

	e = parsed("[fe80::1%7]:258");
	address_to_sockaddr(&e, &address);
	ck_assert_int_eq(address.in6.sin6_family, AF_INET6);
	ck_assert_mem_eq(&address.in6.sin6_port, "\1\2", 2);
	ck_assert_uint_eq(address.in6.sin6_scope_id, 7);
	ck_assert_uint_eq(address.in6.sin6_flowinfo, 0);
	ck_assert_uint_eq(address.in6.sin6_addr.s6_addr[0], 0xFE);
	ck_assert_uint_eq(address.in6.sin6_addr.s6_addr[15], 1);

	/* What is neither equals nothing that can be written down. */
	memset(&address, 0xEE, sizeof(address));
	address.any.sa_family = AF_UNIX;
	address_from_sockaddr(&address, &back);
	ck_assert_uint_eq(back.family, 0);
	ck_assert(!endpoint_equal(&e, &back));
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("address");
	TCase *tc = tcase_create("address");

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, forms, 0, sizeof(cases) / sizeof(*cases));
	tcase_add_test(tc, values);
	tcase_add_test(tc, lengths);
	tcase_add_test(tc, printed);
	tcase_add_test(tc, inverses);
	tcase_add_test(tc, socket_addresses);
	suite_add_tcase(s, tc);
	return harness_run(s);
}
