/*
 * For LD_PRELOAD: the wall clock of a program, set by a test. The file that
 * SHIFTCLOCK names holds one int64 in the order of the machine, milliseconds
 * that CLOCK_REALTIME is ahead, and may be written at any time. Other clocks
 * are left alone.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *shift;

__attribute__((constructor)) static void
open_shift(void)
{
	const char *path = getenv("SHIFTCLOCK");
	int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *page;

	if (fd < 0)
		abort(); /* a test without its clock would prove nothing */
	page = mmap(NULL, sizeof(*shift), PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (page == MAP_FAILED)
		abort();
	shift = page;
}

int
clock_gettime(clockid_t clock, struct timespec *ts)
{
	int status = (int)syscall(SYS_clock_gettime, clock, ts);
	int64_t ms;

	if (status != 0 || clock != CLOCK_REALTIME || shift == NULL)
		return status;
	ms = *shift + ts->tv_nsec / 1000000;
	ts->tv_nsec %= 1000000;
	ts->tv_sec += ms / 1000;
	ms %= 1000;
	if (ms < 0) {
		ms += 1000;
		ts->tv_sec--;
	}
	ts->tv_nsec += ms * 1000000;
	return 0;
}
