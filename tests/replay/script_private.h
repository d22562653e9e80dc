/*
 * What the files of the replay language share: the words of a line, the
 * scene, and texts for people. Only script*.c include it.
 */
#ifndef TESTS_REPLAY_SCRIPT_PRIVATE_H
#define TESTS_REPLAY_SCRIPT_PRIVATE_H

#include "tests/replay/script.h"

/* The first fault is the one that is reported. */
void script_fault(struct script *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* script_words.c. A word that is not as it must be is a fault. */
const char *script_word(struct script *s);
bool script_accept(struct script *s, const char *want);
int64_t script_number(struct script *s);
uint32_t script_u32(struct script *s);
/* A server_id: decimal, or START/LISTENER/NODE. */
uint64_t script_id(struct script *s);
/*
 * A server: its place in m, oldest first, or @ID. One that is no member has
 * the place POLICY_MAX_SERVERS. m is NULL when the servers have no ids.
 */
uint32_t script_server(struct script *s, const struct members *m);
/* Servers up to the next other word. */
uint64_t script_server_set(struct script *s, const struct members *m);
enum script_outcome script_outcome(struct script *s);
const char *script_outcome_text(enum script_outcome outcome);
/* An action in the words of the script that would expect it. */
const char *script_action_text(
    char *buf, size_t size, const struct policy_action *a);

/* script_scene.c: the policy, the membership, the start. */
void script_policy(struct script *s);
/* The field for which the policy was refused. */
const char *script_refused(const struct script *s);
void script_servers(struct script *s);
void script_members(struct script *s);
void script_start(struct script *s);

#endif
