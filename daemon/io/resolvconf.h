/*
 * The nameservers of resolv.conf(5), read by our own code: the ldns reader
 * takes a nameserver that is commented out. Only nameserver lines count; the
 * configuration sets the timeout, and names are always complete.
 */
#ifndef DAEMON_IO_RESOLVCONF_H
#define DAEMON_IO_RESOLVCONF_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <time.h>

#include "daemon/core/endpoint.h"

#define RESOLVCONF_PATH "/etc/resolv.conf"
#define RESOLVCONF_MAX  8     /* nameservers; more are left out, in order */
#define RESOLVCONF_SIZE 65536 /* bytes of the file; the rest is not read */

/*
 * What address_parse() reads, which is [ADDRESS]:PORT as on BSD, too; port 53.
 * Lines that say anything else are skipped. Returns the count, which may be 0.
 */
size_t resolvconf_parse(
    const char *text, size_t len, struct endpoint out[RESOLVCONF_MAX]);

/* Which file was read, and which state of it; zeros when there was none. */
struct resolvconf_stamp {
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec modified;
	struct timespec changed; /* of its status: a chmod counts too */
	bool named;              /* a nameserver, or else it was made up */
};

/*
 * Reads the file and stamps it. When it names no nameserver or cannot be read,
 * that is 127.0.0.1:53, as for the C library. Returns the count, at least 1.
 */
size_t resolvconf_read(const char *path, struct endpoint out[RESOLVCONF_MAX],
    struct resolvconf_stamp *stamp);
/*
 * Would a read see another file, or another state of it? Looks at what the
 * path leads to now, so replacing any symbolic link on the way counts.
 */
bool resolvconf_changed(const char *path, const struct resolvconf_stamp *since);

#endif
