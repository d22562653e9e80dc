/*
 * What the files of rlctl servers share: rlctl_servers_table.c (the table, and
 * times of the document as text) and rlctl_servers.c (the command and the
 * sentences under the table).
 */
#ifndef RLCTL_SERVERS_H
#define RLCTL_SERVERS_H

#include "client-shim/rlctl_table.h"

struct json_t;

#define RLCTL_SERVERS_WORDS 79 /* characters of a line of sentences */

void rlctl_servers_table(const struct json_t *servers);

/* Milliseconds as text: "0.3s", "12m", "7h"; with a sign "+20.0s"; "-" for
 * null. */
void rlctl_servers_span(
    char out[RLCTL_TABLE_CELL], const struct json_t *from, const char *name);
void rlctl_servers_apart(
    char out[RLCTL_TABLE_CELL], const struct json_t *from, const char *name);

#endif
