/*
 * Preloaded into the agent, it counts calls of the allocator in the file that
 * BENCH_COUNTS names, which the bench maps too. Calls before the constructor
 * ran are not counted. It needs glibc, for the real allocator's own names.
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

static uint64_t before;
static uint64_t *counter = &before;

static void __attribute__((constructor)) countalloc_open(void)
{
	const char *path = getenv("BENCH_COUNTS");
	int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *map;

	if (fd < 0)
		return;
	map = mmap(
	    NULL, sizeof(*counter), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (map != MAP_FAILED)
		counter = map;
}

static void
count(void)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

void *
malloc(size_t size)
{
	count();
	return __libc_malloc(size);
}

void *
calloc(size_t n, size_t size)
{
	count();
	return __libc_calloc(n, size);
}

void *
realloc(void *old, size_t size)
{
	count();
	return __libc_realloc(old, size);
}

void *
aligned_alloc(size_t alignment, size_t size)
{
	count();
	return __libc_memalign(alignment, size);
}

void *
memalign(size_t alignment, size_t size)
{
	count();
	return __libc_memalign(alignment, size);
}

int
posix_memalign(void **out, size_t alignment, size_t size)
{
	void *p = memalign(alignment, size);

	if (p == NULL)
		return ENOMEM;
	*out = p;
	return 0;
}
