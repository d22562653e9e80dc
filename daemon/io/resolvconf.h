/*
 * The nameservers of resolv.conf(5), read by our own code: the ldns reader
 * takes a nameserver that is commented out. Only nameserver lines count; the
 * configuration sets the timeout, and names are always complete.
 */
#ifndef DAEMON_IO_RESOLVCONF_H
#define DAEMON_IO_RESOLVCONF_H

#include <stddef.h>

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

/*
 * Reads the file. When it names no nameserver or cannot be read, that is
 * 127.0.0.1:53, as for the C library. Returns the count, at least 1.
 */
size_t resolvconf_read(const char *path, struct endpoint out[RESOLVCONF_MAX]);

#endif
