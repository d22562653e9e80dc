/* The log of a world: counts lines by their event instead of writing them. */
#ifndef TESTS_WORLD_FAKE_LOG_H
#define TESTS_WORLD_FAKE_LOG_H

#include "daemon/log.h"

void fake_log_reset(void);
/* Lines of an event since the reset. */
unsigned int fake_log_count(const char *event);

#endif
