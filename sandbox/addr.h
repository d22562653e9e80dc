/*
 * Numeric socket addresses as text: A.B.C.D:PORT or [V6]:PORT. No names are
 * looked up, ever.
 */
#ifndef SANDBOX_ADDR_H
#define SANDBOX_ADDR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define ADDR_TEXT_MAX 64

struct addr {
	struct sockaddr_storage ss;
	socklen_t len;
};

/* Returns 0 or RLA_EINVAL. */
int addr_parse(const char *text, struct addr *out);
/* Always terminates; an address of another family becomes "?". */
void addr_format(const struct addr *a, char out[ADDR_TEXT_MAX]);
uint16_t addr_port(const struct addr *a);
void addr_set_port(struct addr *a, uint16_t port);
bool addr_is_wildcard(const struct addr *a);
/*
 * A non-blocking bound socket of this type (SOCK_DGRAM or SOCK_STREAM), or
 * RLA_ESYS with errno. *a becomes what was bound, port 0 resolved.
 */
int addr_bind(struct addr *a, int type);

#endif
