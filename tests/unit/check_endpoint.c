/* Endpoints: what makes two of them the same, and what does not count. */
#include "daemon/core/endpoint.h"

#include <string.h>

#include "tests/unit/harness.h"

static struct endpoint
filled(uint8_t family)
{
	struct endpoint e = {.family = family, .port = 29292};

	memset(e.addr, 0x42, sizeof(e.addr));
	if (family == 6)
		e.scope = 3;
	return e;
}

/* Both ways round: equality is symmetric. */
static bool
equal(const struct endpoint *a, const struct endpoint *b)
{
	bool forth = endpoint_equal(a, b);

	ck_assert_int_eq(forth, endpoint_equal(b, a));
	ck_assert(endpoint_equal(a, a));
	return forth;
}

/* Each byte of an address counts when its family uses it. */
START_TEST(address_bytes)
{
	for (uint8_t family = 4; family <= 6; family += 2) {
		for (size_t i = 0; i < 16; i++) {
			struct endpoint a = filled(family), b = a;

			ck_assert(equal(&a, &b));
			b.addr[i] ^= 1;
			ck_assert_int_eq(equal(&a, &b), family == 4 && i >= 4);
		}
	}
}
END_TEST

START_TEST(the_rest)
{
	struct endpoint a = filled(6), b = a;

	b.port = 29293;
	ck_assert(!equal(&a, &b));
	b = a;
	b.scope = 4;
	ck_assert(!equal(&a, &b));
	b = a;
	b.family = 4;
	ck_assert(!equal(&a, &b));

	a = b = filled(4);
	b.port++;
	ck_assert(!equal(&a, &b));
	b = a;
	b.scope = 4; /* means nothing in IPv4 */
	ck_assert(equal(&a, &b));
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("endpoint");
	TCase *tc = tcase_create("endpoint");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, address_bytes);
	tcase_add_test(tc, the_rest);
	suite_add_tcase(s, tc);
	return harness_run(s);
}
