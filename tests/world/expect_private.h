/* What the two halves of the expectations share. */
#ifndef TESTS_WORLD_EXPECT_PRIVATE_H
#define TESTS_WORLD_EXPECT_PRIVATE_H

#include "tests/world/scene.h"

/* The line expected something else than got. */
void expect_mismatch(struct scene *s, const char *got);

/* expect_op.c */
void expect_sent(struct scene *s);
void expect_complete(struct scene *s);
void expect_pending(struct scene *s);
void expect_silent(struct scene *s);

#endif
