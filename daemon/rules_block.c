/*
 * The blocks of a request: their numbers, their ids, and what holds for every
 * check, whoever defined it. Keeps no state.
 */
#include "daemon/rules_block.h"

#include <stdarg.h>

#include "daemon/message.h"
#include "proto/err.h"
#include "proto/packet.h"

int
rules_fail(int rc, char text[RULES_TEXT_MAX], const char *fmt, ...)
{
	va_list ap;

	if (text == NULL)
		return rc;
	va_start(ap, fmt);
	message_vformat(text, RULES_TEXT_MAX, fmt, ap);
	va_end(ap);
	return rc;
}

int
rules_check_tokens(uint32_t tokens, char text[RULES_TEXT_MAX])
{
	if (tokens >= 1 && tokens <= RULES_TOKENS_MAX)
		return 0;
	return rules_fail(RLA_EINVAL, text, "tokens must be 1..%d, not %u",
	    RULES_TOKENS_MAX, tokens);
}

int
rules_check_product(
    size_t i, uint32_t tokens, uint32_t each, char text[RULES_TEXT_MAX])
{
	if (tokens <= RULES_TOKENS_MAX / each)
		return 0;
	return rules_fail(RLA_EINVAL, text,
	    "resources[%zu].tokens: %u times %u tokens is over %d", i, tokens,
	    each, RULES_TOKENS_MAX);
}

int
rules_check_size(size_t size, char text[RULES_TEXT_MAX])
{
	if (size <= PACKET_MAX)
		return 0;
	if (size == SIZE_MAX)
		return rules_fail(RLA_ETOOBIG, text,
		    "the request has more than a datagram of %d bytes holds",
		    PACKET_MAX);
	return rules_fail(RLA_ETOOBIG, text,
	    "the request of %zu bytes does not fit a datagram of %d", size,
	    PACKET_MAX);
}

void
rules_put_guard(
    struct pdu_guard *out, const struct rules_tracker *t, uint32_t below_ms)
{
	*out = (struct pdu_guard){
	    .ttl_ms = t->ttl_ms,
	    .max_samples = t->max_samples,
	    .buffer_size = t->buffer_size,
	    .min_samples = t->min_samples,
	    .threshold_ms = below_ms,
	};
}

void
rules_put_resource(struct pdu_resource *out, uint32_t window_ms, uint32_t limit,
    uint32_t tokens)
{
	*out = (struct pdu_resource){
	    .window_ms = window_ms,
	    .limit = limit,
	    .tokens = (uint16_t)tokens,
	};
}

void
rules_put_sample(
    struct pdu_sample *out, const struct rules_tracker *t, uint32_t latency_ms)
{
	*out = (struct pdu_sample){
	    .ttl_ms = t->ttl_ms,
	    .max_samples = t->max_samples,
	    .buffer_size = t->buffer_size,
	    .min_samples = t->min_samples,
	    .observed_ms = latency_ms,
	};
}

static int
hashed(int rc, char text[RULES_TEXT_MAX])
{
	if (rc == 0)
		return 0;
	return rules_fail(rc, text, "%s", err_str((enum rla_err)rc));
}

int
rules_tracker_id(struct rules_ids *ids, enum profile profile,
    const struct rules_tracker *t, const struct ipc_str *name,
    uint8_t id[ID_LEN], char text[RULES_TEXT_MAX])
{
	return hashed(rules_ids_tracker(ids, profile, t, name, id), text);
}

int
rules_bucket_id(struct rules_ids *ids, uint32_t window_ms, uint32_t limit,
    const struct ipc_str *name, uint8_t id[ID_LEN], char text[RULES_TEXT_MAX])
{
	return hashed(rules_ids_bucket(ids, window_ms, limit, name, id), text);
}
