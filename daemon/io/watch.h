/*
 * Watches files for changes, by inotify on the folders that their paths lead
 * through: of the file itself and of every symbolic link on the way, so that a
 * link that is swapped is seen, whichever it is, and as far as they may be
 * read all others, whose replacement takes the file with it. What else happens
 * in them is not reported. Reports that something may have changed, once for a
 * burst of events; what, the caller finds out. A file, a folder or a link that
 * is missing is watched for in the nearest folder that is there. A mount over
 * a folder on the way is not seen.
 */
#ifndef DAEMON_IO_WATCH_H
#define DAEMON_IO_WATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/io/loop.h"

/* After the first event and until nothing has happened for that long; under
 * events that do not end, after WATCH_MOST_US all the same. */
#define WATCH_QUIET_US 200000
#define WATCH_MOST_US  2000000

struct watch;

/* Borrows loop. NULL with errno set: no memory, or no inotify to be had. */
struct watch *watch_new(struct loop *loop, loop_fn *changed, void *arg);
void watch_free(struct watch *watch); /* takes NULL */
/*
 * Watches these paths instead of the ones before, relative ones from the
 * current folder. To be called again after each report, since links may lead
 * elsewhere now. False with errno set when not all could be watched; the rest
 * is. What happened before it returns is the caller's to look for: load after
 * it, not before.
 */
bool watch_files(struct watch *watch, const char *const *paths, size_t count);

#endif
