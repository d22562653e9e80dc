/*
 * What a service manager is told: the protocol of sd_notify(3), and whether it
 * wants signs of life. Owned by the agent. Invariant: nothing here blocks, and
 * a manager that does not listen changes nothing.
 */
#ifndef DAEMON_IO_NOTIFY_H
#define DAEMON_IO_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

#define NOTIFY_ERR_MAX 256

struct notify;

/*
 * Takes NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID out of the environment;
 * without the first nobody is told. err: what of them cannot be used, in one
 * line, or "". NULL without memory.
 */
struct notify *notify_new(char err[NOTIFY_ERR_MAX]);
void notify_free(struct notify *notify); /* takes NULL */

/* Is somebody told? */
bool notify_wanted(const struct notify *notify);
/* A message, lines of KEY=VALUE. False: its queue is full, try again later;
 * whatever else keeps it from arriving is not told. */
bool notify_send(const struct notify *notify, const char *lines);
/* It wants WATCHDOG=1 at least so often; 0: it does not. */
int64_t notify_watchdog_us(const struct notify *notify);

#endif
