/*
 * What the requests of rules and of ad-hoc checks are made of, alike: numbers
 * into blocks, names into ids, what every check is held to, and the errors.
 * Where numbers and names come from is their builders' (rules.c,
 * rules_adhoc.c). text may be NULL: then no error is written.
 */
#ifndef DAEMON_RULES_BLOCK_H
#define DAEMON_RULES_BLOCK_H

#include "daemon/rules.h"
#include "daemon/rules_ids.h"

#define RULES_TOKENS_MAX UINT16_MAX /* what a block has room for */

/* Writes the text and returns rc. */
int rules_fail(int rc, char text[RULES_TEXT_MAX], const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The checks return 0, RLA_EINVAL or RLA_ETOOBIG. */
int rules_check_tokens(uint32_t tokens, char text[RULES_TEXT_MAX]);
/* Of resource i: its tokens, at least 1, times those of the check. */
int rules_check_product(
    size_t i, uint32_t tokens, uint32_t each, char text[RULES_TEXT_MAX]);
/* Of a datagram, as config_request_size() gave it. */
int rules_check_size(size_t size, char text[RULES_TEXT_MAX]);

/* All of a block but its id. */
void rules_put_guard(
    struct pdu_guard *out, const struct rules_tracker *t, uint32_t below_ms);
void rules_put_resource(struct pdu_resource *out, uint32_t window_ms,
    uint32_t limit, uint32_t tokens);
void rules_put_sample(
    struct pdu_sample *out, const struct rules_tracker *t, uint32_t latency_ms);

/* The id under a name that is filled in. 0 or RLA_ECRYPTO. */
int rules_tracker_id(struct rules_ids *ids, enum profile profile,
    const struct rules_tracker *t, const struct ipc_str *name,
    uint8_t id[ID_LEN], char text[RULES_TEXT_MAX]);
int rules_bucket_id(struct rules_ids *ids, uint32_t window_ms, uint32_t limit,
    const struct ipc_str *name, uint8_t id[ID_LEN], char text[RULES_TEXT_MAX]);

#endif
