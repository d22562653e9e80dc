/* resolv.conf: comments, forms of an address, bounds, files that are none. */
#include "daemon/io/resolvconf.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/harness.h"

static struct endpoint got[RESOLVCONF_MAX];
static struct resolvconf_stamp stamp;

static size_t
parse(const char *text)
{
	memset(got, 0xee, sizeof got);
	return resolvconf_parse(text, strlen(text), got);
}

static void
expect4(const struct endpoint *e, uint8_t last, uint16_t port)
{
	const uint8_t addr[4] = {192, 0, 2, last};

	ck_assert_uint_eq(e->family, 4);
	ck_assert_mem_eq(e->addr, addr, 4);
	ck_assert_uint_eq(e->port, port);
	ck_assert_uint_eq(e->scope, 0);
}

START_TEST(plain_lines)
{
	ck_assert_uint_eq(parse("search example.com\n"
				"nameserver 192.0.2.1\n"
				"options timeout:1 attempts:3\n"
				"nameserver\t 192.0.2.2 \t trailing\n"
				"nameserver 2001:db8::53\n"
				"nameserver 192.0.2.3"),
	    4);
	expect4(&got[0], 1, 53);
	expect4(&got[1], 2, 53);
	ck_assert_uint_eq(got[2].family, 6);
	ck_assert_uint_eq(got[2].addr[0], 0x20);
	ck_assert_uint_eq(got[2].addr[15], 0x53);
	ck_assert_uint_eq(got[2].port, 53);
	expect4(&got[3], 3, 53);
}
END_TEST

/* The flaw that makes this file necessary: a comment is not a server. */
START_TEST(comments)
{
	ck_assert_uint_eq(parse("#nameserver 192.0.2.1\n"
				"# nameserver 192.0.2.1\n"
				";nameserver 192.0.2.1\n"
				"; nameserver 192.0.2.1\n"
				"search x # nameserver 192.0.2.1\n"
				" nameserver 192.0.2.1\n"),
	    0);
	ck_assert_uint_eq(
	    parse("nameserver 192.0.2.9 # nameserver 192.0.2.1\n"), 1);
	expect4(&got[0], 9, 53);
	ck_assert_uint_eq(parse("nameserver 192.0.2.9\r\n"), 1);
	expect4(&got[0], 9, 53);
}
END_TEST

START_TEST(bracketed_ports)
{
	ck_assert_uint_eq(parse("nameserver [192.0.2.1]:5353\n"
				"nameserver [192.0.2.2]\n"
				"nameserver [2001:db8::1]:65535\n"),
	    3);
	expect4(&got[0], 1, 5353);
	expect4(&got[1], 2, 53);
	ck_assert_uint_eq(got[2].family, 6);
	ck_assert_uint_eq(got[2].port, 65535);
}
END_TEST

START_TEST(scopes)
{
	ck_assert_uint_eq(parse("nameserver fe80::1%7\n"
				"nameserver [fe80::2%lo]:54\n"
				"nameserver fe80::1%no-such-interface\n"
				"nameserver fe80::1%\n"
				"nameserver 192.0.2.1%lo\n"),
	    2);
	ck_assert_uint_eq(got[0].scope, 7);
	ck_assert_uint_ne(got[1].scope, 0);
	ck_assert_uint_eq(got[1].port, 54);
	ck_assert_uint_eq(got[1].addr[15], 2);
}
END_TEST

static const char *const rejected[] = {
    "",
    "\n\n",
    "nameserver",
    "nameserver\n",
    "nameserver \n",
    "nameserver192.0.2.1\n",
    "nameservers 192.0.2.1\n",
    "nameserver example.com\n",
    "nameserver 192.0.2\n",
    "nameserver 192.0.2.256\n",
    "nameserver 192.0.2.1:0\n",
    "nameserver [192.0.2.1\n",
    "nameserver [192.0.2.1]53\n",
    "nameserver [192.0.2.1]:\n",
    "nameserver [192.0.2.1]:0\n",
    "nameserver [192.0.2.1]:65536\n",
    "nameserver [192.0.2.1]:+53\n",
    "nameserver [192.0.2.1]:99999999999999999999\n",
    "nameserver []\n",
    "nameserver [\n",
};

START_TEST(rejects)
{
	ck_assert_uint_eq(parse(rejected[_i]), 0);
}
END_TEST

START_TEST(eight_at_most)
{
	char text[1024] = "", line[64];

	for (int i = 1; i <= 20; i++) {
		snprintf(line, sizeof line, "nameserver 192.0.2.%d\n", i);
		strcat(text, line);
	}
	ck_assert_uint_eq(parse(text), RESOLVCONF_MAX);
	expect4(&got[7], 8, 53);
}
END_TEST

/* Any bytes, NULs and endless lines among them, within an exact allocation. */
START_TEST(random_bytes_are_harmless)
{
	static const char alphabet[] = "nameserver [].:%#;\n\n 0123456789\0f";
	uint64_t seed = harness_seed();

	for (int round = 0; round < 20000; round++) {
		size_t len = harness_below(&seed, 400);
		char *text = malloc(len > 0 ? len : 1);

		for (size_t i = 0; i < len; i++)
			text[i] =
			    alphabet[harness_below(&seed, sizeof alphabet - 1)];
		if (len > 12 && round % 2 == 0)
			memcpy(text, "nameserver [", 12);
		ck_assert_uint_le(
		    resolvconf_parse(text, len, got), RESOLVCONF_MAX);
		free(text);
	}
}
END_TEST

static void
expect_default(size_t count)
{
	ck_assert_uint_eq(count, 1);
	ck_assert_uint_eq(got[0].family, 4);
	ck_assert_mem_eq(got[0].addr, "\x7f\0\0\1", 4);
	ck_assert_uint_eq(got[0].port, 53);
}

START_TEST(files)
{
	char dir[] = "/tmp/check_resolvconf.XXXXXX", path[64], line[] = "# x\n";
	FILE *f;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/resolv.conf", dir);
	expect_default(resolvconf_read(path, got, &stamp)); /* missing */
	expect_default(resolvconf_read(dir, got, &stamp));  /* a directory */
	ck_assert(!stamp.named);
	/* A FIFO that nobody writes to would block a plain open(). */
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	expect_default(resolvconf_read(path, got, &stamp));
	unlink(path);

	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	fclose(f);
	expect_default(resolvconf_read(path, got, &stamp)); /* empty */

	f = fopen(path, "w");
	fputs("nameserver 192.0.2.7\n", f);
	/* Past the bound nothing is read. */
	for (int i = 0; i < RESOLVCONF_SIZE / 4; i++)
		fputs(line, f);
	fputs("nameserver 192.0.2.8\n", f);
	fclose(f);
	ck_assert_uint_eq(resolvconf_read(path, got, &stamp), 1);
	ck_assert(stamp.named);
	expect4(&got[0], 7, 53);
	unlink(path);
	rmdir(dir);
}
END_TEST

static void
put(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
}

/* Puts the file aside and a link to it in its place, as rename() does. */
static void
relink(const char *target, const char *link)
{
	char fresh[128];

	snprintf(fresh, sizeof fresh, "%s.fresh", link);
	ck_assert_int_eq(symlink(target, fresh), 0);
	ck_assert_int_eq(rename(fresh, link), 0);
}

/* Writing, replacing, removing and any link on the way are all noticed. */
START_TEST(changes)
{
	char dir[] = "/tmp/check_resolvconf.XXXXXX", path[64], a[64], b[64];

	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/resolv.conf", dir);
	snprintf(a, sizeof a, "%s/a", dir);
	snprintf(b, sizeof b, "%s/b", dir);
	resolvconf_read(path, got, &stamp);
	ck_assert(!resolvconf_changed(path, &stamp)); /* still missing */
	put(path, "nameserver 192.0.2.1\n");
	ck_assert(resolvconf_changed(path, &stamp));
	resolvconf_read(path, got, &stamp);
	ck_assert(!resolvconf_changed(path, &stamp));
	put(path, "nameserver 192.0.2.11\n");
	ck_assert(resolvconf_changed(path, &stamp));

	/* Two files of one size and, as links are, of one name. */
	put(a, "nameserver 192.0.2.1\n");
	put(b, "nameserver 192.0.2.2\n");
	relink("a", path);
	resolvconf_read(path, got, &stamp);
	expect4(&got[0], 1, 53);
	ck_assert(!resolvconf_changed(path, &stamp));
	relink("b", path);
	ck_assert(resolvconf_changed(path, &stamp));
	resolvconf_read(path, got, &stamp);
	expect4(&got[0], 2, 53);

	unlink(b);
	ck_assert(resolvconf_changed(path, &stamp)); /* a dangling link */
	expect_default(resolvconf_read(path, got, &stamp));
	ck_assert(!resolvconf_changed(path, &stamp));
	ck_assert_int_eq(mkdir(b, 0700), 0);
	ck_assert(!resolvconf_changed(path, &stamp)); /* no file either */
	rmdir(b);
	unlink(a);
	unlink(path);
	rmdir(dir);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("resolvconf");
	TCase *tc = tcase_create("resolvconf");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, plain_lines);
	tcase_add_test(tc, comments);
	tcase_add_test(tc, bracketed_ports);
	tcase_add_test(tc, scopes);
	tcase_add_loop_test(
	    tc, rejects, 0, sizeof rejected / sizeof rejected[0]);
	tcase_add_test(tc, eight_at_most);
	tcase_add_test(tc, random_bytes_are_harmless);
	tcase_add_test(tc, files);
	tcase_add_test(tc, changes);
	suite_add_tcase(s, tc);
	return harness_run(s);
}
