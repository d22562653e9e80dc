/*
 * Names to wire requests: rules and ad-hoc checks become guard and resource
 * blocks with content-defined ids. Rules are compiled once per configuration;
 * ids without placeholders are computed then, the rest per check.
 */
#ifndef DAEMON_RULES_H
#define DAEMON_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/config.h"
#include "proto/ipc.h"
#include "proto/pdu.h"

/* A name, a sentence and a NUL; less than IPC_MAX_TEXT. */
#define RULES_TEXT_MAX 400

/* What the kernel and the socket say of the caller. */
struct rules_caller {
	uid_t uid; /* both -1: it says nothing */
	gid_t gid;
	const char *listener;
	const uint8_t *key; /* NULL: none given */
	size_t key_len;
};

/*
 * A logical request, ready to be encoded: blocks, label, and each block's
 * name for messages. Those of a rule borrow name_room or the compiled rules,
 * those of an ad-hoc check the frame that the check was decoded from. Keep
 * rate as it was asked: a response uses the slots of limit and tokens for
 * other things.
 */
struct rules_request {
	struct pdu_rate rate; /* dedup_ttl_ms not set */
	struct ipc_str guard_names[PDU_MAX_GUARDS];
	struct ipc_str resource_names[PDU_MAX_RESOURCES];
	size_t room_used; /* bytes of name_room */
	uint8_t name_room[PDU_MAX_BLOCKS * (CONFIG_NAME_MAX + 1)];
};

struct rules; /* one configuration's compiled rules; borrows it */

/* NULL without memory, or when the crypto library has no BLAKE2s. */
struct rules *rules_new(const struct config *config);
void rules_free(struct rules *rules);

/*
 * Builds the request of a rule for this caller; tokens multiplies (0 or over
 * 65535 after multiplying: refused). Returns 0, or RLA_EINVAL, RLA_EQUOTA,
 * RLA_ETOOBIG or RLA_ECRYPTO with a one-line text of what and where. Nothing
 * is sent on an error.
 */
int rules_build(struct rules *rules, const struct config_rule *rule,
    const struct rules_caller *caller, uint32_t tokens,
    struct rules_request *out, char text[RULES_TEXT_MAX]);

/* The same for an ad-hoc check of a tenant. Names are taken as they are. */
int rules_build_adhoc(struct rules *rules, const struct config_tenant *tenant,
    const struct ipc_check_adhoc *check, struct rules_request *out,
    char text[RULES_TEXT_MAX]);

/*
 * What an answer tells of a request that was built before, from the same
 * arguments: all of it but the ids, so nothing is hashed or judged anew.
 * rules_names() returns 0, or RLA_EINVAL for what never was built.
 */
int rules_names(struct rules *rules, const struct config_rule *rule,
    const struct rules_caller *caller, uint32_t tokens,
    struct rules_request *out);
void rules_names_adhoc(
    const struct ipc_check_adhoc *check, struct rules_request *out);

/*
 * What tells the callers of a rule apart, for its local limiter: the values of
 * the placeholders that its buckets use (its trackers' when it has no
 * buckets), nothing for one and the same name. Who could vary more would
 * have a limiter for each variation. 0 with *len bytes in room, at most
 * RULES_LOCAL_KEY_MAX; RLA_EINVAL without a key that is needed.
 */
#define RULES_LOCAL_KEY_MAX 640
int rules_local_key(const struct rules *rules, const struct config_rule *rule,
    const struct rules_caller *caller, uint8_t room[RULES_LOCAL_KEY_MAX],
    size_t *len);

/* Are any told apart? */
bool rules_local_varies(
    const struct rules *rules, const struct config_rule *rule);

/* Is the key of a check a part of any of its names? */
bool rules_uses_key(const struct rules *rules, const struct config_rule *rule);

/* What one block of a rule is called for a caller. */
struct rules_shown {
	struct ipc_str name; /* borrows room or the compiled rules */
	uint8_t id[ID_LEN];
	uint8_t room[CONFIG_NAME_MAX];
};

/* Of guard or resource i, whatever else may keep the rule from being sent. 0,
 * RLA_EINVAL (the name cannot be filled in) or RLA_ECRYPTO. */
int rules_show_guard(struct rules *rules, const struct config_rule *rule,
    size_t i, const struct rules_caller *caller, struct rules_shown *out);
int rules_show_resource(struct rules *rules, const struct config_rule *rule,
    size_t i, const struct rules_caller *caller, struct rules_shown *out);

/* A latency sample for a configured or an ad-hoc tracker. */
int rules_build_report(struct rules *rules, const struct config_tenant *tenant,
    const struct config_tracker *tracker, const struct rules_caller *caller,
    uint32_t latency_ms, struct pdu_sample *out, char text[RULES_TEXT_MAX]);
/* One sample for each tracker that a guard of the rule watches; none without
 * guards. Refused like a check: RLA_EINVAL, RLA_EQUOTA, RLA_ETOOBIG. */
int rules_build_report_rule(struct rules *rules, const struct config_rule *rule,
    const struct rules_caller *caller, uint32_t latency_ms,
    struct pdu_report *out, char text[RULES_TEXT_MAX]);
int rules_build_report_adhoc(struct rules *rules,
    const struct config_tenant *tenant, const struct ipc_report_adhoc *report,
    struct pdu_sample *out, char text[RULES_TEXT_MAX]);

/*
 * How long until a resource that was refused could be granted, in ms: an
 * estimate. Missing is the deficit, or what the tokens are over the limit
 * together with the rate in the window now, whichever is more; it comes back
 * at limit tokens a window. At most a window, after which any kind of window
 * without traffic is empty. 0 when it was not refused, or never can be granted:
 * more tokens than the limit.
 */
uint32_t rules_retry_after_ms(uint32_t window_ms, uint32_t limit,
    uint32_t tokens, uint32_t actual_rate, uint32_t deficit);

#endif
