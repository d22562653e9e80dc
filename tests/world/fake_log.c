/* See fake_log.h. WORLD_LOG in the environment shows the lines. */
#include "tests/world/fake_log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/world/fake_loop.h"

#define EVENTS_MAX 32

static struct {
	const char *event; /* constant words, by the contract */
	unsigned int count;
} events[EVENTS_MAX];

void
fake_log_reset(void)
{
	memset(events, 0, sizeof(events));
}

unsigned int
fake_log_count(const char *event)
{
	for (int i = 0; i < EVENTS_MAX && events[i].event != NULL; i++) {
		if (strcmp(events[i].event, event) == 0)
			return events[i].count;
	}
	return 0;
}

static void line(const char *event, const char *fmt, va_list ap)
    __attribute__((format(printf, 2, 0)));

static void
line(const char *event, const char *fmt, va_list ap)
{
	char text[1024];
	int i = 0;

	vsnprintf(text, sizeof(text), fmt, ap);
	if (getenv("WORLD_LOG") != NULL)
		fprintf(stderr, "# %lld %s %s\n", (long long)fake_loop_clock(),
		    event, text);
	while (i < EVENTS_MAX && events[i].event != NULL &&
	       strcmp(events[i].event, event) != 0)
		i++;
	if (i == EVENTS_MAX)
		abort();
	events[i].event = event;
	events[i].count++;
}

#define LEVEL(name)                                        \
	void name(const char *event, const char *fmt, ...) \
	{                                                  \
		va_list ap;                                \
		va_start(ap, fmt);                         \
		line(event, fmt, ap);                      \
		va_end(ap);                                \
	}

LEVEL(log_error)
LEVEL(log_warning)
LEVEL(log_info)
LEVEL(log_debug)

bool
log_may(
    enum log_level level, struct errorrate *pace, int64_t now, uint64_t *unsaid)
{
	(void)level;
	return errorrate_try(pace, now, unsaid);
}

uint64_t
log_held(void)
{
	return 0;
}

uint64_t
log_dropped(void)
{
	return 0;
}

void
log_set_level(enum log_level level)
{
	(void)level;
}
