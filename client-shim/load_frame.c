/*
 * The template. A sequential number is counted up in its digits, which is
 * cheaper than to write it out each time.
 */
#include "client-shim/load_frame.h"

#include <endian.h>
#include <string.h>

#include "proto/err.h"
#include "proto/random.h"

/* Where the changing fields are. */
#define ID_AT  8
#define UID_AT IPC_HEAD_LEN

static const char placeholder[] = "{n}";
#define PLACEHOLDER_LEN (sizeof(placeholder) - 1)

size_t
load_frame_digits(uint64_t keys)
{
	size_t digits = 1;

	while (keys > 10) {
		keys = (keys - 1) / 10 + 1;
		digits++;
	}
	return digits;
}

size_t
load_frame_key_len(const struct load_options *options)
{
	size_t len;

	if (options->key == NULL)
		return 0;
	len = strlen(options->key);
	if (strstr(options->key, placeholder) != NULL)
		len = len - PLACEHOLDER_LEN + load_frame_digits(options->keys);
	return len;
}

static void
put_key(struct load_frame *f, struct writer *w, const char *key)
{
	const char *n = strstr(key, placeholder);

	if (n == NULL) {
		writer_bytes(w, key, strlen(key));
		return;
	}
	writer_bytes(w, key, (size_t)(n - key));
	f->number = writer_space(w, f->digits);
	if (f->number != NULL)
		memset(f->number, '0', f->digits);
	n += PLACEHOLDER_LEN;
	writer_bytes(w, n, strlen(n));
}

static void
make_template(struct load_frame *f, const struct load_options *options)
{
	const uint16_t rule_len = (uint16_t)strlen(options->rule);
	struct writer w;

	writer_init(&w, f->bytes, sizeof(f->bytes));
	writer_u32(&w, 0); /* length */
	writer_u16(&w, IPC_CHECK);
	writer_u16(&w, 0);
	writer_u64(&w, 0); /* request id */
	writer_zeros(&w, IPC_ID_LEN + IPC_HASH_LEN);
	writer_u64(&w, 0); /* age */
	writer_u32(&w, options->deadline_ms);
	writer_u32(&w, options->key != NULL ? IPC_OPT_KEY : 0);
	writer_u32(&w, options->tokens);
	writer_u16(&w, rule_len);
	writer_bytes(&w, options->rule, rule_len);
	writer_u16(&w, (uint16_t)load_frame_key_len(options));
	if (options->key != NULL)
		put_key(f, &w, options->key);
	f->len = writer_len(&w);
	writer_patch_u32(&w, 0, (uint32_t)f->len);
}

int
load_frame_init(struct load_frame *f, const struct load_options *options)
{
	memset(f, 0, sizeof(*f));
	f->keys = options->keys;
	f->digits = load_frame_digits(options->keys);
	f->order = options->order;
	make_template(f, options);
	f->random = random_pool_new();
	if (f->random == NULL)
		return RLA_ECRYPTO;
	return random_bytes(f->random, &f->state, sizeof(f->state));
}

void
load_frame_free(struct load_frame *f)
{
	random_pool_free(f->random);
	f->random = NULL;
}

/* splitmix64, its upper half: which key it is need not be secret. */
static uint32_t
draw(struct load_frame *f)
{
	uint64_t z = f->state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)((z ^ z >> 31) >> 32);
}

static void
write_number(struct load_frame *f, uint32_t number)
{
	size_t i;

	for (i = f->digits; i-- > 0; number /= 10)
		f->number[i] = (uint8_t)('0' + number % 10);
}

static void
count_up(struct load_frame *f)
{
	uint8_t *digit = f->number + f->digits;

	if (++f->next == f->keys) {
		f->next = 0;
		memset(f->number, '0', f->digits);
		return;
	}
	while (*--digit == '9')
		*digit = '0';
	++*digit;
}

int
load_frame_put(struct load_frame *f, uint64_t id, uint8_t *out)
{
	const uint64_t le = htole64(id);

	if (f->number != NULL && f->order == LOAD_RANDOM)
		write_number(f, (uint32_t)(draw(f) * f->keys >> 32));
	memcpy(out, f->bytes, f->len);
	memcpy(out + ID_AT, &le, sizeof(le));
	if (f->number != NULL && f->order == LOAD_SEQUENTIAL)
		count_up(f);
	return random_uuid(f->random, out + UID_AT);
}
