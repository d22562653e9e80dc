/* rl-sandbox keygen: prints a fresh API key of either format. */
#ifndef SANDBOX_KEYGEN_H
#define SANDBOX_KEYGEN_H

#include "proto/credential.h"

#define KEYGEN_WHY 256

enum keygen_outcome { KEYGEN_MAKE, KEYGEN_HELP, KEYGEN_BAD };

/*
 * Parses the arguments, of which argv[0] is "keygen", into a credential
 * without a secret whose quotas its format can express. On KEYGEN_BAD why
 * says what and where.
 */
enum keygen_outcome keygen_parse(
    int argc, char **argv, struct credential *out, char why[KEYGEN_WHY]);
/* The whole program; returns its exit status. */
int keygen_main(int argc, char **argv);

#endif
