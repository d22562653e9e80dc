/*
 * What the files of rlctl servers share: rlctl_servers_table.c (the table, and
 * fields of the document as text) and rlctl_servers.c (the command and the
 * sentences under the table).
 */
#ifndef RLCTL_SERVERS_H
#define RLCTL_SERVERS_H

#include <stddef.h>

struct json_t;

#define RLCTL_SERVERS_WIDTH 118 /* characters of a row, where it can be */
#define RLCTL_SERVERS_WORDS 79  /* and of a line of sentences */
/* Bytes of a field as text: a tenant's name is the longest, 255 of them. */
#define RLCTL_SERVERS_CELL 256

void rlctl_servers_table(const struct json_t *servers);

/* Fields of an object; "-", 0 and false for what it lacks. */
const char *rlctl_servers_text(const struct json_t *from, const char *name);
long long rlctl_servers_number(const struct json_t *from, const char *name);
int rlctl_servers_known(const struct json_t *from, const char *name);
/* Milliseconds as text: "0.3s", "12m", "7h"; with a sign "+20.0s"; "-" for
 * null. */
void rlctl_servers_span(
    char out[RLCTL_SERVERS_CELL], const struct json_t *from, const char *name);
void rlctl_servers_apart(
    char out[RLCTL_SERVERS_CELL], const struct json_t *from, const char *name);
/* Characters of UTF-8, as many as are printed. */
int rlctl_servers_width(const char *text, size_t len);

#endif
