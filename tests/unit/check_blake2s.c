/*
 * BLAKE2s-256: the published digests, the library's EVP layer as a second
 * opinion, a context that keeps nothing of the digest before.
 */
#include "proto/blake2s.h"

#include <openssl/evp.h>
#include <string.h>

#include "tests/unit/allocations.h"
#include "tests/unit/harness.h"

static struct blake2s *b;

static void
set_up(void)
{
	b = blake2s_new();
	ck_assert_ptr_nonnull(b);
}

static void
tear_down(void)
{
	blake2s_free(b);
	blake2s_free(NULL);
}

static void
digest(const void *bytes, size_t len, uint8_t out[BLAKE2S_LEN])
{
	ck_assert(blake2s_begin(b) && blake2s_update(b, bytes, len) &&
		  blake2s_end(b, out));
}

/* RFC 7693, appendix B, and the reference's of no bytes. */
START_TEST(published)
{
	uint8_t out[BLAKE2S_LEN];

	digest("abc", 3, out);
	ck_assert_mem_eq(out,
	    "\x50\x8c\x5e\x8c\x32\x7c\x14\xe2\xe1\xa7\x2b\xa3\x4e\xeb\x45\x2f"
	    "\x37\x45\x8b\x20\x9e\xd6\x3a\x29\x4d\x99\x9b\x4c\x86\x67\x59\x82",
	    BLAKE2S_LEN);
	digest(NULL, 0, out);
	ck_assert_mem_eq(out,
	    "\x69\x21\x7a\x30\x79\x90\x80\x94\xe1\x11\x21\xd0\x42\x35\x4a\x7c"
	    "\x1f\x55\xb6\x48\x2c\xa1\xa5\x1e\x1b\x25\x0d\xfd\x1e\xd0\xee\xf9",
	    BLAKE2S_LEN);
}
END_TEST

/* In pieces of any length, after digests that were never ended. */
START_TEST(as_evp)
{
	uint64_t seed = harness_seed();
	uint8_t bytes[400], out[BLAKE2S_LEN], want[BLAKE2S_LEN];
	size_t len, at, piece;
	EVP_MD *md = EVP_MD_fetch(NULL, "BLAKE2S-256", NULL);

	ck_assert_ptr_nonnull(md);
	for (int i = 0; i < 5000; i++) {
		len = harness_below(&seed, sizeof bytes + 1);
		harness_fill(&seed, bytes, len);
		if (!blake2s_begin(b) || !blake2s_update(b, bytes, len / 2) ||
		    !blake2s_begin(b))
			ck_abort_msg("begin");
		for (at = 0; at < len; at += piece) {
			piece = harness_below(&seed, (uint32_t)(len - at) + 1);
			if (!blake2s_update(b, bytes + at, piece))
				ck_abort_msg("update");
		}
		if (!blake2s_end(b, out) ||
		    EVP_Digest(bytes, len, want, NULL, md, NULL) != 1 ||
		    memcmp(out, want, BLAKE2S_LEN) != 0)
			ck_abort_msg("digest of %zu bytes", len);
	}
	EVP_MD_free(md);
}
END_TEST

START_TEST(no_allocation)
{
	uint8_t out[BLAKE2S_LEN] = "";
	unsigned long before = allocations, after;
	bool ok = true;

	for (int i = 0; i < 1000 && ok; i++)
		ok = blake2s_begin(b) && blake2s_update(b, out, sizeof out) &&
		     blake2s_end(b, out);
	after = allocations;
	ck_assert_uint_eq(after, before);
	ck_assert(before > 0 || !allocations_are_counted);
	ck_assert(ok);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("blake2s");
	TCase *tc = tcase_create("blake2s");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_test(tc, published);
	tcase_add_test(tc, as_evp);
	tcase_add_test(tc, no_allocation);
	suite_add_tcase(s, tc);
	return harness_run(s);
}
