/* What a script expects: the verb "expect". See README for the words. */
#ifndef TESTS_WORLD_EXPECT_H
#define TESTS_WORLD_EXPECT_H

#include "tests/world/scene.h"

void expect_run(struct scene *s);

#endif
