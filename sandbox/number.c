/* strtoull() and strtod() with their leniency taken away. */
#include "sandbox/number.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "proto/err.h"

int
number_parse(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	unsigned long long v;

	if (text[0] == '\0' || text[strspn(text, "0123456789")] != '\0')
		return RLA_EINVAL;
	errno = 0;
	v = strtoull(text, NULL, 10);
	if (errno != 0 || v < min || v > max)
		return RLA_EINVAL;
	*out = v;
	return 0;
}

int
number_signed(const char *text, int64_t min, int64_t max, int64_t *out)
{
	bool minus = text[0] == '-';
	uint64_t v;
	int64_t signed_v;

	if (number_parse(text + minus, 0, INT64_MAX, &v) < 0)
		return RLA_EINVAL;
	signed_v = minus ? -(int64_t)v : (int64_t)v;
	if (signed_v < min || signed_v > max)
		return RLA_EINVAL;
	*out = signed_v;
	return 0;
}

int
number_probability(const char *text, double *out)
{
	double v;
	char *end;

	/* No sign, no blank, no hexadecimal, no name of an infinity. */
	if (text[0] == '\0' || text[strspn(text, "0123456789.eE-")] != '\0' ||
	    text[0] == '-')
		return RLA_EINVAL;
	v = strtod(text, &end);
	if (end == text || *end != '\0' || !(v >= 0 && v <= 1))
		return RLA_EINVAL;
	*out = v;
	return 0;
}
