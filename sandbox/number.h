/* Numbers of options and commands: the whole text or nothing. */
#ifndef SANDBOX_NUMBER_H
#define SANDBOX_NUMBER_H

#include <stdint.h>

/* Decimal digits only, within the bounds. Returns 0 or RLA_EINVAL. */
int number_parse(const char *text, uint64_t min, uint64_t max, uint64_t *out);
/* The same with a sign: -5, but not +5 or -0x5. */
int number_signed(const char *text, int64_t min, int64_t max, int64_t *out);
/* A probability, 0 to 1. Returns 0 or RLA_EINVAL. */
int number_probability(const char *text, double *out);

#endif
