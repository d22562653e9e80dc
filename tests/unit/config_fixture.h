/*
 * Keys and a small configuration for the tests of config and rules. The keys
 * are those of tests/vectors/wire.json: synthetic, none opens anything.
 */
#ifndef TESTS_UNIT_CONFIG_FIXTURE_H
#define TESTS_UNIT_CONFIG_FIXTURE_H

#include <stdlib.h>
#include <string.h>

#include "daemon/config.h"

/* Their names in the vectors stand above them. V1 and AES are unversioned:
 * latency buffer 64, deduplication 300 ms. WINDOW: buffer 32, 300 ms, rate
 * window 1024 ms. SMALL: 1, 10 ms, 1 ms. */
/* c_0.5_cookie_tenant2 */
#define KEY_V1                                                         \
	"rl-cookie1qgqqqqqqqqqqqqszqgpqyqszqgpqyqszqgpqyqszqgpqyqszqg" \
	"pqyqszqgpqyqszqqqqzqqqqsqqqqqsqqqyqqqqqqkqzqqqfn54mv"
/* c_0.5_aes_tenant3 */
#define KEY_AES                                                        \
	"rl-aes1qvqqqqqqqqqqqqcrqvpsxqcrqvpsxqcrqvpsxqcrqvpsxqcrqvpsx" \
	"qcrqvpsxqcrqqqqzqqqqsqqqqqsqqqyqqqqqqkqzqqqhmzd8l"
/* minimum_cookie */
#define KEY_SMALL                                                      \
	"rl-cookie1qyqsqqqqqqqqqqqpqyqszqgpqyqszqgpqyqszqgpqyqszqgpqy" \
	"qszqgpqyqszqgpqyqqqzqqfs0x84"
/* python_cookie_1024ms_window */
#define KEY_WINDOW                                                     \
	"rl-cookie1qypqqqqqqqqqqqqzqgpqyqszqgpqyqszqgpqyqszqgpqyqszqg" \
	"pqyqszqgpqyqszqfgtrujsv8vz5n"
/* default_none */
#define KEY_NONE "rl-none1qyyqwps9qspsyq2sk8e0sfdp3ys"

#define ENV(name) "{\"env\":\"" name "\"}"

/* What "env" in a test's configuration finds. */
static inline void
fixture_keys(void)
{
	setenv("RATELIMITLY_AUTH_KEY", KEY_V1, 1);
	setenv("RLA_TEST_AES", KEY_AES, 1);
	setenv("RLA_TEST_SMALL", KEY_SMALL, 1);
	setenv("RLA_TEST_WINDOW", KEY_WINDOW, 1);
	setenv("RLA_TEST_NONE", KEY_NONE, 1);
	unsetenv("RLA_TEST_UNSET");
}

static inline struct config *
fixture_parse(const char *text, char err[CONFIG_ERR_MAX])
{
	err[0] = '\0';
	return config_parse(text, strlen(text), "t.json", err);
}

#endif
