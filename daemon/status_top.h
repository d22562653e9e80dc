/*
 * The document of TOP: the keys that each rule denied most of late, for
 * operators. malloc()ed JSON, or NULL without memory.
 */
#ifndef DAEMON_STATUS_TOP_H
#define DAEMON_STATUS_TOP_H

#include <stdint.h>

#include "daemon/setup.h"

/* The most keys in one document, of all rules: so long it may take. */
#define STATUS_TOP_KEYS 4096

char *status_top(const struct setup *setup, int64_t now);

#endif
