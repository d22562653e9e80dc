/*
 * What the files of rlctl rules share: rlctl_rules.c (the table, and what a
 * rule asks for) and rlctl_explain.c (one rule, and what would be sent).
 */
#ifndef RLCTL_RULES_H
#define RLCTL_RULES_H

struct json_t;

/* To stdout; on_failure: "open", "closed" or the local limiter in words. */
void rlctl_rules_failure(const struct json_t *rule);
/* The lines of one resource and of one guard, without their ends. */
void rlctl_rules_resource(const struct json_t *resource);
void rlctl_rules_guard(const struct json_t *guard);

#endif
