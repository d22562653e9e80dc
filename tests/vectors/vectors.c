/* Vector files: loading, members, hex, and the ownership of sections. */
#include "tests/vectors/vectors.h"

#include <ctype.h>
#include <string.h>

#include "tests/unit/harness.h"

#define DIGITS_MAX 18 /* any integer of as many digits fits in 63 bits */

static const struct {
	const char *section;
	enum vectors_owner owner;
} wire_sections[] = {
    {"about", VECTORS_TEXT},
    {"profiles", VECTORS_TEXT},
    {"capacity_source", VECTORS_TEXT},
    {"steering_next_port", VECTORS_INFORMATION},
    {"api_keys_format1_valid", VECTORS_KEYS},
    {"api_keys_format1_invalid", VECTORS_KEYS},
    {"api_keys_legacy_unversioned", VECTORS_KEYS},
    {"bucket_ids", VECTORS_KEYS},
    {"tracker_ids_v2", VECTORS_KEYS},
    {"tracker_ids_v1_legacy", VECTORS_KEYS},
    {"tracker_ids_must_not_match", VECTORS_KEYS},
    {"primitives", VECTORS_KEYS},
    {"metrics_label_tlv", VECTORS_WIRE},
    {"bodies_and_pdus_v2", VECTORS_WIRE},
    {"datagrams_v1", VECTORS_WIRE},
    {"datagrams_v2", VECTORS_WIRE},
    {"default_dns", VECTORS_KEYS},
    {"capacity_1200", VECTORS_WIRE},
    {"server_ids", VECTORS_CORE},
    {"server_id_labels_invalid", VECTORS_CORE},
    {"policy_horizons_ms", VECTORS_CORE},
    {"policy_schedule_units", VECTORS_CORE},
};
#define WIRE_SECTIONS (sizeof wire_sections / sizeof wire_sections[0])

static char *
read_file(const char *path, size_t *len)
{
	FILE *f = fopen(path, "rb");
	char *text;
	long size;

	ck_assert_msg(f != NULL, "cannot open %s", path);
	ck_assert_int_eq(fseek(f, 0, SEEK_END), 0);
	size = ftell(f);
	ck_assert_int_gt(size, 0);
	rewind(f);
	text = malloc((size_t)size);
	ck_assert_ptr_nonnull(text);
	*len = fread(text, 1, (size_t)size, f);
	ck_assert_uint_eq(*len, (size_t)size);
	fclose(f);
	return text;
}

/* A copy in which long integers outside of strings are quoted. */
static char *
quote_long_integers(const char *text, size_t len, size_t *out_len)
{
	char *out = malloc(2 * len + 1), *o = out;
	bool in_string = false, quote;
	size_t i, n;

	ck_assert_ptr_nonnull(out);
	for (i = 0; i < len; i += n) {
		for (n = 0; !in_string && i + n < len &&
			    isdigit((unsigned char)text[i + n]);)
			n++;
		quote = n > DIGITS_MAX;
		if (n == 0) {
			n = in_string && text[i] == '\\' && i + 1 < len ? 2 : 1;
			in_string ^= text[i] == '"';
		}
		if (quote)
			*o++ = '"';
		memcpy(o, text + i, n);
		o += n;
		if (quote)
			*o++ = '"';
	}
	*out_len = (size_t)(o - out);
	return out;
}

json_t *
vectors_load(const char *file)
{
	const char *srcdir = getenv("srcdir");
	char path[4096], *text, *quoted;
	json_error_t error;
	size_t len, quoted_len;
	json_t *root;

	snprintf(path, sizeof path, "%s/tests/vectors/%s",
	    srcdir != NULL ? srcdir : ".", file);
	text = read_file(path, &len);
	quoted = quote_long_integers(text, len, &quoted_len);
	root = json_loadb(quoted, quoted_len, JSON_REJECT_DUPLICATES, &error);
	ck_assert_msg(
	    root != NULL, "%s: line %d: %s", path, error.line, error.text);
	free(quoted);
	free(text);
	return root;
}

enum vectors_owner
vectors_wire_owner(const char *section)
{
	size_t i;

	for (i = 0; i < WIRE_SECTIONS; i++) {
		if (strcmp(wire_sections[i].section, section) == 0)
			return wire_sections[i].owner;
	}
	return VECTORS_UNKNOWN;
}

static bool
has_job(const struct vectors_job *jobs, size_t count, const char *section)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (strcmp(jobs[i].section, section) == 0)
			return true;
	}
	return false;
}

void
vectors_check_wire_jobs(const json_t *root, enum vectors_owner owner,
    const struct vectors_job *jobs, size_t count)
{
	const char *section;
	json_t *value;
	size_t i;

	json_object_foreach((json_t *)(uintptr_t)root, section, value)
	{
		enum vectors_owner o = vectors_wire_owner(section);

		ck_assert_msg(
		    o != VECTORS_UNKNOWN, "nobody runs section %s", section);
		ck_assert_msg(o != owner || has_job(jobs, count, section),
		    "no job for section %s", section);
	}
	for (i = 0; i < count; i++) {
		ck_assert_int_eq(vectors_wire_owner(jobs[i].section), owner);
		vectors_get(root, jobs[i].section);
	}
	ck_assert_uint_eq(json_object_size(root), WIRE_SECTIONS);
}

size_t
vectors_count(const json_t *section)
{
	const char *name;
	json_t *value;
	size_t n = 0;

	if (json_is_array(section))
		return json_array_size(section);
	if (json_is_integer(section))
		return 1;
	json_object_foreach((json_t *)(uintptr_t)section, name, value) n +=
	    vectors_count(value);
	return n;
}

void
vectors_run(const json_t *root, const struct vectors_job *job)
{
	const json_t *section = vectors_get(root, job->section);
	size_t have = vectors_count(section), ran = job->run(section, root);

	printf("# %s: %zu of %zu vectors\n", job->section, ran, have);
	fflush(stdout);
	ck_assert_uint_gt(have, 0);
	ck_assert_uint_eq(ran, have);
}

const json_t *
vectors_get(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);

	ck_assert_msg(value != NULL, "no member %s", name);
	return value;
}

const char *
vectors_str(const json_t *object, const char *name)
{
	const char *text = json_string_value(vectors_get(object, name));

	ck_assert_msg(text != NULL, "%s is not a string", name);
	return text;
}

uint64_t
vectors_u64(const json_t *object, const char *name)
{
	const json_t *value = vectors_get(object, name);
	const char *text = json_string_value(value);
	unsigned long long n;
	char *end;

	if (text == NULL) {
		ck_assert_msg(
		    json_is_integer(value) && json_integer_value(value) >= 0,
		    "%s is not a number", name);
		return (uint64_t)json_integer_value(value);
	}
	n = strtoull(text, &end, 10);
	ck_assert_msg(isdigit((unsigned char)*text) && *end == '\0',
	    "%s is not a number", name);
	return n;
}

uint32_t
vectors_u32(const json_t *object, const char *name)
{
	uint64_t n = vectors_u64(object, name);

	ck_assert_msg(n <= UINT32_MAX, "%s is over 32 bits", name);
	return (uint32_t)n;
}

bool
vectors_bool(const json_t *object, const char *name)
{
	const json_t *value = vectors_get(object, name);

	ck_assert_msg(json_is_boolean(value), "%s is not a boolean", name);
	return json_is_true(value);
}

static int
nibble(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *p = c != '\0' ? strchr(digits, c) : NULL;

	ck_assert_msg(p != NULL, "not a hex digit");
	return (int)(p - digits);
}

size_t
vectors_hex(const json_t *object, const char *name, void *out, size_t cap)
{
	const char *text = vectors_str(object, name);
	size_t len = strlen(text), i;
	uint8_t *p = out;

	ck_assert_msg(
	    len % 2 == 0 && len / 2 <= cap, "%s has a bad length", name);
	for (i = 0; i < len / 2; i++)
		p[i] = (uint8_t)(nibble(text[2 * i]) << 4 |
				 nibble(text[2 * i + 1]));
	return len / 2;
}
