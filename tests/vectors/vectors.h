/*
 * Loading vector files for the programs that run them, and the list that says
 * which program owns which section of wire.json. Failures are Check failures:
 * a vector that cannot be read must not pass.
 */
#ifndef TESTS_VECTORS_VECTORS_H
#define TESTS_VECTORS_VECTORS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum vectors_owner {
	VECTORS_UNKNOWN,
	VECTORS_TEXT,        /* remarks, no vectors */
	VECTORS_INFORMATION, /* describes other clients, not this project */
	VECTORS_KEYS,        /* check_vectors_keys */
	VECTORS_WIRE,        /* check_vectors_wire */
	VECTORS_CORE,        /* check_vectors_core */
};

/* Runs a section and returns how many vectors it ran. */
struct vectors_job {
	const char *section;
	size_t (*run)(const json_t *section, const json_t *root);
};

/*
 * $srcdir/tests/vectors/FILE as a new reference. Integers past 2^63 come as
 * strings, since jansson has no room for them; vectors_u64() takes both.
 */
json_t *vectors_load(const char *file);

enum vectors_owner vectors_wire_owner(const char *section);

/*
 * Every section of wire.json has an owner, every owned one a job of the
 * owner's program, and every job a section.
 */
void vectors_check_wire_jobs(const json_t *root, enum vectors_owner owner,
    const struct vectors_job *jobs, size_t count);

/* Runs one job; fails unless it ran as many vectors as the section has. */
void vectors_run(const json_t *root, const struct vectors_job *job);

/* How many vectors there are: the elements of arrays, or bare integers. */
size_t vectors_count(const json_t *section);

/* Members of an object. Each fails when it is missing or of another type. */
const json_t *vectors_get(const json_t *object, const char *name);
const char *vectors_str(const json_t *object, const char *name);
uint64_t vectors_u64(const json_t *object, const char *name);
uint32_t vectors_u32(const json_t *object, const char *name);
bool vectors_bool(const json_t *object, const char *name);
/* A hex string; returns the bytes it holds. */
size_t vectors_hex(
    const json_t *object, const char *name, void *out, size_t cap);

#endif
