/*
 * What the files of rlctl policy share: rlctl_policy.c (the command and the
 * estimate), rlctl_policy_read.c (the agent's document to a plan) and
 * rlctl_policy_print.c (the text).
 */
#ifndef RLCTL_POLICY_H
#define RLCTL_POLICY_H

#include <stdbool.h>

#include "daemon/core/estimate.h"

struct json_t;

/* From one tenant of the document to the plan of its policy. False when a field
 * is missing or the policy is none: an agent of another version. */
bool rlctl_policy_read(const struct json_t *tenant, struct policy_plan *plan);

/* One tenant that rlctl_policy_read() has taken. estimate is NULL when no
 * server is known, otherwise what in led to. */
void rlctl_policy_print(const struct json_t *tenant,
    const struct estimate_input *in, const struct estimate *estimate);

#endif
