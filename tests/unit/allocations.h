/*
 * Counts the allocations of the whole program that includes it, and refuses
 * the long ones that a test wants refused, where libc and the sanitizers, which
 * bring an allocator of their own, let it: else there are none.
 */
#ifndef TESTS_UNIT_ALLOCATIONS_H
#define TESTS_UNIT_ALLOCATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#endif

static unsigned long allocations __attribute__((unused));
/* Of a malloc() that is not refused. */
static size_t allocations_most = SIZE_MAX;

#if defined(__GLIBC__) && !defined(SANITIZED)
static const bool allocations_are_counted = true;

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);

void *
malloc(size_t size)
{
	allocations++;
	return size <= allocations_most ? __libc_malloc(size) : NULL;
}

void *
calloc(size_t count, size_t size)
{
	allocations++;
	return __libc_calloc(count, size);
}

void *
realloc(void *old, size_t size)
{
	allocations++;
	return __libc_realloc(old, size);
}
#else
static const bool allocations_are_counted = false;
#endif

#endif
