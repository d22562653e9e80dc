/*
 * One good configuration, changed in one place at a time: what a test of the
 * parser says is the path, the value, and the exact line that it gives.
 */
#ifndef TESTS_UNIT_CONFIG_EDIT_H
#define TESTS_UNIT_CONFIG_EDIT_H

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/config_fixture.h"
#include "tests/unit/harness.h"

/* Two tenants, so that every reference can be wrong. */
static const char base[] =
    "{\"tenants\":{"
    "\"main\":{\"key\":" ENV(
	"RATELIMITLY_AUTH_KEY") ",\"dns\":{},"
				"\"policy\":{}},"
				"\"other\":{\"key\":" ENV(
				    "RLA_TEST_AES") ",\"servers\":["
						    "{\"id\":\"7\",\"address\":\"192.0.2.1:29292\"}]}},"
						    "\"trackers\":{\"inventory\":{}},"
						    "\"rules\":{\"checkout\":{\"tenant\":\"main\","
						    "\"resources\":[{\"bucket\":\"checkout:{key}\"}],"
						    "\"guards\":[{\"tracker\":\"inventory\"}]},"
						    "\"na.me\":{\"tenant\":\"other\",\"on_failure\":{\"local\":{}}}},"
						    "\"limiters\":{\"mail\":{},\"na.me\":{}},"
						    "\"error_controls\":{\"smtp\":{\"min_delay_ms\":1,\"max_delay_ms\":3600000}},"
						    "\"listeners\":{\"main\":{\"path\":\"/run/x/agent.sock\"},"
						    "\"second\":{\"path\":\"/run/x/second.sock\"}},"
						    "\"control\":{},\"limits\":{},\"log\":{},"
						    "\"gateway\":{\"front\":{\"listen\":\"127.0.0.1:8080\"},"
						    "\"local\":{\"listen\":\"unix:/run/x/http.sock\"}}}";

struct edit {
	const char *path;  /* dots; digits are indexes; "na.me" is "na:me" */
	const char *value; /* JSON, or NULL to remove */
	const char *error; /* the line after "t.json: ", NULL: it is good */
};

/* Follows a path to the container of its last part. */
static inline json_t *
descend(json_t *at, char *path, char **last)
{
	char *save = NULL, *part = strtok_r(path, ".", &save), *next;

	for (; (next = strtok_r(NULL, ".", &save)) != NULL; part = next) {
		for (char *p = part; *p != '\0'; p++)
			*p = *p == ':' ? '.' : *p;
		at = json_is_array(at) ? json_array_get(at, (size_t)atoi(part))
				       : json_object_get(at, part);
		ck_assert_msg(at != NULL, "no %s", part);
	}
	*last = part;
	return at;
}

static inline char *
edited(const struct edit *edit)
{
	json_t *root = json_loads(base, 0, NULL), *value, *at;
	char path[128], *last, *text;

	ck_assert_ptr_nonnull(root);
	ck_assert_uint_lt(strlen(edit->path), sizeof(path));
	strcpy(path, edit->path);
	at = descend(root, path, &last);
	if (edit->value == NULL) {
		ck_assert_int_eq(json_object_del(at, last), 0);
	} else {
		value = json_loads(edit->value, JSON_DECODE_ANY, NULL);
		ck_assert_msg(value != NULL, "not JSON: %s", edit->value);
		if (json_is_array(at))
			ck_assert_int_eq(
			    json_array_set_new(at, (size_t)atoi(last), value),
			    0);
		else
			ck_assert_int_eq(
			    json_object_set_new(at, last, value), 0);
	}
	text = json_dumps(root, 0);
	json_decref(root);
	return text;
}

static inline void
run_edits(const struct edit *edits, size_t count)
{
	char err[CONFIG_ERR_MAX], expected[CONFIG_ERR_MAX];
	struct config *config;
	char *text;

	for (size_t i = 0; i < count; i++) {
		text = edited(&edits[i]);
		config = fixture_parse(text, err);
		if (edits[i].error == NULL) {
			ck_assert_msg(config != NULL, "%s = %s: %s",
			    edits[i].path, edits[i].value, err);
		} else {
			snprintf(expected, sizeof(expected), "t.json: %s",
			    edits[i].error);
			ck_assert_msg(config == NULL, "%s = %s: accepted",
			    edits[i].path, edits[i].value);
			ck_assert_str_eq(err, expected);
		}
		config_unref(config);
		free(text);
	}
}

#define RUN(edits) run_edits(edits, sizeof(edits) / sizeof(*(edits)))

#define U32_RANGE "must be 1..4294967295, not "

/* A u32 of at least 1, wherever it stands. */
#define POSITIVE(path, shown)                                        \
	{path, "1", NULL}, {path, "4294967295", NULL},               \
	    {path, "0", shown ": " U32_RANGE "0"},                   \
	    {path, "-1", shown ": " U32_RANGE "-1"},                 \
	    {path, "4294967296", shown ": " U32_RANGE "4294967296"}, \
	    {path, "5000000000", shown ": " U32_RANGE "5000000000"}, \
	    {path, "9223372036854775807",                            \
		shown ": " U32_RANGE "9223372036854775807"},         \
	    {path, "2.0", shown ": must be an integer"},             \
	    {path, "1e3", shown ": must be an integer"},             \
	    {path, "\"5\"", shown ": must be an integer"},           \
	    {path, "null", shown ": must be an integer"},            \
	{                                                            \
		path, "true", shown ": must be an integer"           \
	}

#define RANGE(path, shown, low, high, under, over)                            \
	{path, #low, NULL}, {path, #high, NULL},                              \
	    {path, #under,                                                    \
		shown ": must be " #low ".." #high ", not " #under},          \
	    {path, #over, shown ": must be " #low ".." #high ", not " #over}, \
	{                                                                     \
		path, "1.5", shown ": must be an integer"                     \
	}

#define BOOLEAN(path, shown)                                  \
	{path, "true", NULL}, {path, "false", NULL},          \
	    {path, "1", shown ": must be true or false"},     \
	{                                                     \
		path, "null", shown ": must be true or false" \
	}

#endif
