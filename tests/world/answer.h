/* The datagrams of a world's servers: valid answers, and every way to spoil
 * one. The verbs "answer" and "flood" of a script. */
#ifndef TESTS_WORLD_ANSWER_H
#define TESTS_WORLD_ANSWER_H

#include "tests/world/scene.h"

/* answer S NAME|report [allowed|denied [by guard|resource|both]] [bad KIND|odd
 * KIND] [change-port] [from PLACE|elsewhere] [via PORT] */
void answer_run(struct scene *s);
/* flood N [via PORT] : so many datagrams that are nothing */
void answer_flood(struct scene *s);

#endif
