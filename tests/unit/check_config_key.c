/*
 * Where keys come from and how each can be wrong. Whatever happens, no line
 * holds any of a key's text.
 */
#include "daemon/config_key.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/config_fixture.h"
#include "tests/unit/harness.h"

static char dir[] = "/tmp/rl-check-key-XXXXXX";
static char file[64];

static void
setup(void)
{
	fixture_keys();
	strcpy(strrchr(dir, '-') + 1, "XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(file, sizeof(file), "%s/main.key", dir);
	setenv("CREDENTIALS_DIRECTORY", dir, 1);
}

static void
teardown(void)
{
	unlink(file);
	rmdir(dir);
}

static void
write_key(const void *bytes, size_t len, mode_t mode)
{
	int fd;

	unlink(file);
	fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, bytes, len), (ssize_t)len);
	ck_assert_int_eq(fchmod(fd, mode), 0);
	close(fd);
}

static struct config *
load(const char *key, char err[CONFIG_ERR_MAX])
{
	char text[1024];

	snprintf(text, sizeof(text), "{\"tenants\":{\"m\":{\"key\":%s}}}", key);
	return fixture_parse(text, err);
}

static struct config *
load_file(char err[CONFIG_ERR_MAX])
{
	char key[128];

	snprintf(key, sizeof(key), "{\"file\":\"%s\"}", file);
	return load(key, err);
}

/* The error of a file with these bytes, less what names the file. */
static void
file_fails(const char *bytes, size_t len, const char *reason)
{
	char err[CONFIG_ERR_MAX], expected[CONFIG_ERR_MAX];

	write_key(bytes, len, 0400);
	ck_assert_ptr_null(load_file(err));
	snprintf(expected, sizeof(expected),
	    "t.json: tenants.m.key: file %s: %s", file, reason);
	ck_assert_str_eq(err, expected);
}

#define NOT_TEXT "not a Bech32 key (case, character or checksum)"

START_TEST(test_one_newline_is_stripped)
{
	static const char *const ends[] = {"", "\n", "\r\n"};
	static const char *const bad[] = {"\n\n", "\r\n\r\n", " ", "\r", " \n"};
	char err[CONFIG_ERR_MAX], text[256];
	struct config *c;
	int len;

	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		len = snprintf(text, sizeof(text), "%s%s", KEY_V1, ends[i]);
		write_key(text, (size_t)len, 0400);
		c = load_file(err);
		ck_assert_msg(c != NULL, "%s", err);
		ck_assert_uint_eq(c->tenants[0].cred.key_id, 2);
		ck_assert_uint_eq(c->warning_count, 0);
		config_unref(c);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		len = snprintf(text, sizeof(text), "%s%s", KEY_V1, bad[i]);
		file_fails(text, (size_t)len, NOT_TEXT);
	}
}
END_TEST

START_TEST(test_broken_files)
{
	char long_text[600];

	memset(long_text, 'q', sizeof(long_text));
	file_fails("", 0, "is empty");
	file_fails("\n", 1, "is empty");
	file_fails("\r\n", 2, "is empty");
	file_fails(KEY_V1 "x", strlen(KEY_V1) + 1, NOT_TEXT);
	file_fails(KEY_V1 "\0", strlen(KEY_V1) + 1, NOT_TEXT);
	file_fails(long_text, 512, NOT_TEXT);
	file_fails(long_text, 513, "is longer than 512 bytes");
	file_fails(long_text, 600, "is longer than 512 bytes");
	long_text[512] = '\n';
	file_fails(long_text, 513, NOT_TEXT);
}
END_TEST

START_TEST(test_readable_by_others_warns)
{
	static const mode_t modes[] = {0440, 0404, 0644};
	char err[CONFIG_ERR_MAX], expected[CONFIG_ERR_MAX];
	struct config *c;

	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		write_key(KEY_V1, strlen(KEY_V1), modes[i]);
		c = load_file(err);
		ck_assert_msg(c != NULL, "%s", err);
		ck_assert_uint_eq(c->warning_count, 1);
		snprintf(expected, sizeof(expected),
		    "t.json: tenants.m.key: file %s: can be read by its group "
		    "or others (mode %04o)",
		    file, modes[i]);
		ck_assert_str_eq(c->warnings[0], expected);
		config_unref(c);
		/* A credential's mode is systemd's business. */
		c = load("{\"credential\":\"main.key\"}", err);
		ck_assert_msg(c != NULL, "%s", err);
		ck_assert_uint_eq(c->warning_count, 0);
		config_unref(c);
	}
}
END_TEST

START_TEST(test_places)
{
	static const struct {
		const char *key;
		const char *error;
	} cases[] = {
	    {"{}", ": must hold exactly one of file, credential and env"},
	    {"{\"env\":\"A\",\"file\":\"/x\"}",
		": must hold exactly one of file, credential and env"},
	    {"{\"text\":\"x\"}", ".text: unknown key"},
	    {"\"/etc/x\"", ": must be an object"},
	    {"{\"file\":\"no.key\"}",
		": file no.key: No such file or directory"},
	    {"{\"file\":\"\"}", ".file: must be 1..4095 bytes long"},
	    {"{\"file\":7}", ".file: must be a string"},
	    {"{\"file\":\"/no/such/file\"}",
		": file /no/such/file: No such file or directory"},
	    {"{\"file\":\"/\"}", ": file /: is not a file"},
	    {"{\"file\":\"/dev/null\"}", ": file /dev/null: is not a file"},
	    {"{\"credential\":\"a/b\"}",
		".credential: must be a name, not a path"},
	    {"{\"credential\":\"..\"}",
		".credential: must be a name, not a path"},
	    {"{\"credential\":\"nothing\"}",
		": credential nothing: No such file or directory"},
	    {"{\"env\":\"RLA_TEST_UNSET\"}",
		": variable RLA_TEST_UNSET: is not set"},
	    {"{\"env\":\"A-B\"}",
		".env: must be the name of an environment variable"},
	    {"{\"env\":\"7A\"}",
		".env: must be the name of an environment variable"},
	};
	char err[CONFIG_ERR_MAX], expected[CONFIG_ERR_MAX];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		ck_assert_ptr_null(load(cases[i].key, err));
		snprintf(expected, sizeof(expected), "t.json: tenants.m.key%s",
		    cases[i].error);
		ck_assert_str_eq(err, expected);
	}
	unsetenv("CREDENTIALS_DIRECTORY");
	ck_assert_ptr_null(load("{\"credential\":\"main.key\"}", err));
	ck_assert_str_eq(err,
	    "t.json: tenants.m.key: credential main.key: "
	    "CREDENTIALS_DIRECTORY is not set, see LoadCredential= in "
	    "systemd.exec(5)");
}
END_TEST

/* Relative to the configuration, wherever the process was started. */
START_TEST(test_relative_file)
{
	static const char text[] =
	    "{\"tenants\":{\"m\":{\"key\":{\"file\":\"main.key\"}}}}";
	char source[128], err[CONFIG_ERR_MAX];
	struct config *c;

	write_key(KEY_V1, strlen(KEY_V1), 0400);
	snprintf(source, sizeof(source), "%s/t.json", dir);
	c = config_parse(text, strlen(text), source, err);
	ck_assert_msg(c != NULL, "%s", err);
	config_unref(c);
	unlink(file);
	ck_assert_ptr_null(config_parse(text, strlen(text), source, err));
	ck_assert_ptr_nonnull(strstr(err, file));
}
END_TEST

/* A pipe without a writer must not hang the start. */
START_TEST(test_pipe_does_not_hang)
{
	char err[CONFIG_ERR_MAX];

	unlink(file);
	ck_assert_int_eq(mkfifo(file, 0600), 0);
	ck_assert_ptr_null(load_file(err));
	ck_assert_ptr_nonnull(strstr(err, "is not a file"));
}
END_TEST

/* No run of 8 bytes of the key's data is in the line. */
static void
assert_no_key(const char *line, const char *key)
{
	const char *data = strchr(key, '1') + 1;
	char part[9] = "";

	for (size_t i = 0; i + 8 <= strlen(data); i++) {
		memcpy(part, data + i, 8);
		ck_assert_msg(
		    strcasestr(line, part) == NULL, "key in: %s", line);
	}
}

START_TEST(test_broken_keys_are_not_shown)
{
	static const char *const forms[] = {"%s", "{\"file\":\"%s\"}",
	    "{\"file\":\"/%s\"}", "{\"credential\":\"%s\"}", "{\"env\":\"%s\"}",
	    "{\"%s\":1}", "\"%s\"", "{\"key\":\"%s\""};
	static const char *const keys[] = {KEY_V1, KEY_AES, KEY_WINDOW};
	char err[CONFIG_ERR_MAX], key[512], value[600];
	uint64_t seed = harness_seed();

	for (int run = 0; run < 600; run++) {
		strcpy(key, keys[harness_below(&seed, 3)]);
		/* One character is another: no longer a key. */
		key[12 + harness_below(&seed, (uint32_t)strlen(key) - 12)] ^= 1;
		if (run % 2 == 0) {
			write_key(key, strlen(key), 0600);
			ck_assert_ptr_null(load_file(err));
			assert_no_key(err, key);
			setenv("RLA_TEST_BROKEN", key, 1);
			ck_assert_ptr_null(
			    load("{\"env\":\"RLA_TEST_BROKEN\"}", err));
			assert_no_key(err, key);
		}
		snprintf(value, sizeof(value),
		    forms[harness_below(&seed, sizeof(forms) / sizeof(*forms))],
		    key);
		ck_assert_ptr_null(load(value, err));
		assert_no_key(err, key);
	}
}
END_TEST

START_TEST(test_kinds_of_keys_have_their_own_words)
{
	static const struct {
		const char *key;
		const char *reason;
	} cases[] = {
	    {"rl-secret1pzrypzrypzrypzrypzrypzrypzrypzryxgl55e",
		"a management key (rl-secret) cannot be used here"},
	    {"rl-other1pzrypzrypzrypzrypzrypzrypzrypzry8r8rxx",
		"not an rl-aes, rl-cookie or rl-none key"},
	    {"rl-aes", NOT_TEXT},
	};
	char err[CONFIG_ERR_MAX], expected[CONFIG_ERR_MAX];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		setenv("RLA_TEST_BROKEN", cases[i].key, 1);
		ck_assert_ptr_null(load("{\"env\":\"RLA_TEST_BROKEN\"}", err));
		snprintf(expected, sizeof(expected),
		    "t.json: tenants.m.key: variable RLA_TEST_BROKEN: %s",
		    cases[i].reason);
		ck_assert_str_eq(err, expected);
	}
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("config_key");
	TCase *tc = tcase_create("config_key");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, test_one_newline_is_stripped);
	tcase_add_test(tc, test_broken_files);
	tcase_add_test(tc, test_readable_by_others_warns);
	tcase_add_test(tc, test_places);
	tcase_add_test(tc, test_relative_file);
	tcase_add_test(tc, test_pipe_does_not_hang);
	tcase_add_test(tc, test_broken_keys_are_not_shown);
	tcase_add_test(tc, test_kinds_of_keys_have_their_own_words);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
