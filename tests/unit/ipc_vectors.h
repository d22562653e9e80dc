/*
 * Reading proto/vectors/ipc.json in the tests of both halves of the codec.
 * The forms of its values are those of proto/IPC.md, section 6. Strings live
 * in a pool that each vector starts anew. Tests only.
 */
#ifndef TESTS_UNIT_IPC_VECTORS_H
#define TESTS_UNIT_IPC_VECTORS_H

#include <jansson.h>
#include <string.h>

#include "proto/ipc.h"
#include "tests/unit/harness.h"

#define VEC_POOL (1u << 18)

static json_t *vectors;

/* Strings of one vector live here until the next one. */
static uint8_t vec_pool[VEC_POOL];
static size_t vec_used;

static inline void
vec_load(void)
{
	const char *dir = getenv("srcdir");
	char path[4096];
	json_error_t error;

	snprintf(path, sizeof(path), "%s/proto/vectors/ipc.json",
	    dir != NULL ? dir : ".");
	vectors = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
	ck_assert_msg(vectors != NULL, "%s: %s", path, error.text);
}

static inline void
vec_free(void)
{
	json_decref(vectors);
}

static inline uint8_t *
vec_take(size_t len)
{
	uint8_t *p = vec_pool + vec_used;

	if (len > VEC_POOL - vec_used)
		ck_abort_msg("VEC_POOL is too small");
	vec_used += len;
	return p;
}

static inline size_t
vec_unhex(const char *hex, uint8_t *out)
{
	size_t i, len = strlen(hex) / 2;
	unsigned byte;

	for (i = 0; i < len; i++) {
		/* Each ck_assert costs a write to a file. */
		if (sscanf(hex + 2 * i, "%2x", &byte) != 1)
			ck_abort_msg("not hexadecimal: %s", hex + 2 * i);
		out[i] = (uint8_t)byte;
	}
	return len;
}

static inline const json_t *
vec_member(const json_t *object, const char *key)
{
	const json_t *v = json_object_get(object, key);

	if (v == NULL)
		ck_abort_msg("no member %s", key);
	return v;
}

static inline const char *
vec_text(const json_t *object, const char *key)
{
	const char *s = json_string_value(vec_member(object, key));

	if (s == NULL)
		ck_abort_msg("%s is no string", key);
	return s;
}

static inline uint64_t
vec_number(const json_t *object, const char *key)
{
	const json_t *v = vec_member(object, key);

	if (json_is_string(v))
		return strtoull(json_string_value(v), NULL, 10);
	if (!json_is_integer(v))
		ck_abort_msg("%s is no number", key);
	return (uint64_t)json_integer_value(v);
}

/* A string in any of the three forms of IPC.md, section 6. */
static inline struct ipc_str
vec_str(const json_t *object, const char *key)
{
	const json_t *v = vec_member(object, key);
	struct ipc_str s;
	uint8_t *bytes;
	uint8_t one[1];

	if (json_is_string(v)) {
		s.len = (uint16_t)json_string_length(v);
		bytes = vec_take(s.len);
		memcpy(bytes, json_string_value(v), s.len);
	} else if (json_object_get(v, "hex") != NULL) {
		bytes = vec_take(strlen(vec_text(v, "hex")) / 2);
		s.len = (uint16_t)vec_unhex(vec_text(v, "hex"), bytes);
	} else {
		s.len = (uint16_t)vec_number(v, "count");
		ck_assert_uint_eq(vec_unhex(vec_text(v, "repeat"), one), 1);
		bytes = vec_take(s.len);
		memset(bytes, one[0], s.len);
	}
	s.bytes = bytes;
	return s;
}

static inline size_t
vec_frame(const json_t *vector, uint8_t **out)
{
	const char *hex = vec_text(vector, "frame");

	*out = vec_take(strlen(hex) / 2);
	return vec_unhex(hex, *out);
}

static inline bool
vec_from_client(const json_t *vector)
{
	return strcmp(vec_text(vector, "from"), "client") == 0;
}

#endif
