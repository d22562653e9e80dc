/*
 * Bech32 text to bytes and back. The text is checked wholly before the first
 * byte is written, and the 5-bit groups are never stored: a key is a secret,
 * and what is not copied need not be wiped.
 *
 *   human-readable part | '1' | groups of 5 bits | 6 checksum groups
 */
#include "proto/bech32.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "proto/err.h"

#define CHECKSUM_LEN      6
#define CHECKSUM_CONSTANT 1

static const char charset[] = "qpzry9x8gf2tvdw0s3jn54khce6mua7l";

static char
lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* The value of a data character, or -1. */
static int
group_of(char c)
{
	const char *p = c != '\0' ? strchr(charset, lower(c)) : NULL;

	return p != NULL ? (int)(p - charset) : -1;
}

/* The BCH remainder after one more group. */
static uint32_t
checksum_feed(uint32_t sum, unsigned int group)
{
	static const uint32_t generator[5] = {
	    0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3};
	uint32_t top = sum >> 25;
	int i;

	sum = (sum & 0x1ffffff) << 5 ^ group;
	for (i = 0; i < 5; i++) {
		if (top >> i & 1)
			sum ^= generator[i];
	}
	return sum;
}

/* The remainder after the human-readable part, high bits first. */
static uint32_t
checksum_start(const char *hrp, size_t len)
{
	uint32_t sum = 1;
	size_t i;

	for (i = 0; i < len; i++)
		sum = checksum_feed(sum, (unsigned char)lower(hrp[i]) >> 5);
	sum = checksum_feed(sum, 0);
	for (i = 0; i < len; i++)
		sum = checksum_feed(sum, (unsigned char)lower(hrp[i]) & 31);
	return sum;
}

/* Characters, case and separator; yields the separator's place. */
static bool
scan(const char *text, size_t len, size_t *separator)
{
	bool any_lower = false, any_upper = false;
	size_t i, last = 0;

	for (i = 0; i < len; i++) {
		if (text[i] < 33 || text[i] > 126)
			return false;
		any_lower |= text[i] >= 'a' && text[i] <= 'z';
		any_upper |= text[i] >= 'A' && text[i] <= 'Z';
		if (text[i] == '1')
			last = i;
	}
	*separator = last;
	return last > 0 && len - last - 1 >= CHECKSUM_LEN &&
	       !(any_lower && any_upper);
}

static bool
checksum_ok(const char *text, size_t len, size_t separator)
{
	uint32_t sum = checksum_start(text, separator);
	size_t i;
	int group;

	for (i = separator + 1; i < len; i++) {
		group = group_of(text[i]);
		if (group < 0)
			return false;
		sum = checksum_feed(sum, (unsigned int)group);
	}
	return sum == CHECKSUM_CONSTANT;
}

/* The last group may carry up to four bits of padding, all zero. */
static bool
padding_ok(const char *groups, size_t count)
{
	unsigned int bits = (unsigned int)(count * 5 % 8);

	if (bits >= 5)
		return false;
	return bits == 0 || ((unsigned int)group_of(groups[count - 1]) &
				((1u << bits) - 1)) == 0;
}

static void
unpack(const char *groups, size_t count, uint8_t *out)
{
	uint32_t acc = 0;
	unsigned int bits = 0;
	size_t i;

	for (i = 0; i < count; i++) {
		acc = (acc << 5 | (uint32_t)group_of(groups[i])) & 0xfff;
		bits += 5;
		if (bits >= 8) {
			bits -= 8;
			*out++ = (uint8_t)(acc >> bits);
		}
	}
}

int
bech32_decode(const char *text, size_t len, char *hrp, size_t hrp_cap,
    uint8_t *out, size_t cap, size_t *out_len)
{
	const char *groups;
	size_t separator, count, i;

	if (!scan(text, len, &separator) || !checksum_ok(text, len, separator))
		return RLA_EKEYTEXT;
	groups = text + separator + 1;
	count = len - separator - 1 - CHECKSUM_LEN;
	if (!padding_ok(groups, count))
		return RLA_EKEYTEXT;
	if (separator >= hrp_cap || count * 5 / 8 > cap)
		return RLA_ETOOBIG;
	for (i = 0; i < separator; i++)
		hrp[i] = lower(text[i]);
	hrp[separator] = '\0';
	unpack(groups, count, out);
	*out_len = count * 5 / 8;
	return 0;
}

int
bech32_encode(
    const char *hrp, const uint8_t *bytes, size_t len, char *out, size_t cap)
{
	size_t hrp_len = strlen(hrp), count = (len * 8 + 4) / 5, i;
	uint32_t acc = 0, sum = checksum_start(hrp, hrp_len);
	unsigned int bits = 0, group;

	assert(hrp_len > 0);
	if (cap < hrp_len + 1 + count + CHECKSUM_LEN + 1)
		return RLA_ETOOBIG;
	for (i = 0; i < hrp_len; i++)
		*out++ = lower(hrp[i]);
	*out++ = '1';
	while (count-- > 0) {
		if (bits < 5) {
			/* Past the end zeros pad the last group. */
			acc = acc << 8 | (len > 0 ? *bytes++ : 0);
			len -= len > 0;
			bits += 8;
		}
		bits -= 5;
		group = acc >> bits & 31;
		sum = checksum_feed(sum, group);
		*out++ = charset[group];
	}
	for (i = 0; i < CHECKSUM_LEN; i++)
		sum = checksum_feed(sum, 0);
	sum ^= CHECKSUM_CONSTANT;
	for (i = 0; i < CHECKSUM_LEN; i++)
		*out++ = charset[sum >> 5 * (CHECKSUM_LEN - 1 - i) & 31];
	*out = '\0';
	return 0;
}
