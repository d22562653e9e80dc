/*
 * From an embedded entry (of a heap, a table) to what it is embedded in.
 */
#ifndef DAEMON_CORE_CONTAINER_H
#define DAEMON_CORE_CONTAINER_H

#include <stddef.h>

#define container_of(ptr, type, member) \
	((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#endif
