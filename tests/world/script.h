/* Plays one script of the world. See README for the language. */
#ifndef TESTS_WORLD_SCRIPT_H
#define TESTS_WORLD_SCRIPT_H

#include <stdio.h>

#include "tests/world/scene.h"

/* s->w.fault tells how it went. Nothing is left open. */
void script_play(struct scene *s, FILE *f, bool timers_first);

#endif
