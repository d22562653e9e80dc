/*
 * Damaged answers, of every kind and for every type of key: a client that
 * checks what the specification tells it to check takes none of them, and
 * each fails where its name says.
 */
#include "sandbox/damage.h"

#include <string.h>

#include "proto/pdu.h"
#include "tests/unit/harness.h"

#define SERVER_ID UINT64_C(0x1122334455667788)
#define SHAPES    6 /* of answers */

static struct credential cred;
static struct packet_key *key;
static struct damage_answer answer;
static struct pdu_rate asked;
static struct packet_head head;
static uint8_t datagram[PACKET_MAX];
static size_t len;

/* What the client notices. */
enum verdict { VALID, FRAME, AUTH, OPERATION, SERVER, PDU, CONTENT };

static void
setup(enum auth_type auth, enum profile profile)
{
	cred = (struct credential){.auth = auth};
	if (auth != AUTH_NONE)
		memset(cred.secret, 0x5A, sizeof cred.secret);
	key = packet_key_new(&cred);
	ck_assert_ptr_nonnull(key);
	answer.auth = auth;
	answer.profile = profile;
	head = (struct packet_head){
	    .key_id = SERVER_ID, .time_stamp = 1, .keep_port = true};
	memset(head.unique_id, 0xC2, sizeof head.unique_id);
}

/* So many blocks: one shape is full, and in the last all are the same. */
static void
make_answer(int shape)
{
	const size_t full =
	    (PACKET_MAX - packet_overhead(answer.auth) - 12) / 28;
	const size_t guards[SHAPES] = {0, 1, 2, 0, 1, 0};
	const size_t resources[SHAPES] = {1, 0, 2, full, 1, 3};
	size_t i;

	memset(&asked, 0, sizeof asked);
	asked.guard_count = guards[shape];
	asked.resource_count = resources[shape];
	for (i = 0; i < asked.guard_count; i++)
		asked.guards[i].id[0] = (uint8_t)(i + 1);
	for (i = 0; i < asked.resource_count; i++)
		asked.resources[i].id[0] = shape == 5 ? 9 : (uint8_t)(i + 1);
	ck_assert_int_eq(
	    pdu_encode_response(answer.profile, &asked, answer.pdu,
		PACKET_MAX - packet_overhead(answer.auth), &answer.len),
	    0);
}

static bool
same_content(const struct pdu_rate *got)
{
	size_t i;

	if (got->guard_count != asked.guard_count ||
	    got->resource_count != asked.resource_count)
		return false;
	for (i = 0; i < got->guard_count; i++)
		if (memcmp(got->guards[i].id, asked.guards[i].id, ID_LEN) != 0)
			return false;
	for (i = 0; i < got->resource_count; i++)
		if (memcmp(got->resources[i].id, asked.resources[i].id,
			ID_LEN) != 0)
			return false;
	return true;
}

static enum verdict
judge(void)
{
	uint8_t scratch[PACKET_MAX], unique[PACKET_UNIQUE_LEN];
	struct packet_view view;
	struct pdu_rate got;
	const uint8_t *pdu;
	size_t pdu_len;

	memset(unique, 0xC2, sizeof unique);
	if (packet_peek(datagram, len, &view) != 0)
		return FRAME;
	if (view.auth != cred.auth)
		return AUTH;
	if (memcmp(view.head.unique_id, unique, sizeof unique) != 0)
		return OPERATION;
	if (view.head.key_id != SERVER_ID)
		return SERVER;
	if (packet_open(key, &view, scratch, sizeof scratch, &pdu, &pdu_len) !=
	    0)
		return AUTH;
	if (pdu_decode_response(answer.profile, pdu, pdu_len, &got) != 0)
		return PDU;
	return same_content(&got) ? VALID : CONTENT;
}

/* Which verdicts a kind may get, as bits. */
static unsigned int
expected(enum damage d)
{
	switch (d) {
	case DAMAGE_BIT:
		return 1 << FRAME | 1 << AUTH | 1 << OPERATION | 1 << SERVER |
		       1 << PDU | 1 << CONTENT;
	case DAMAGE_CUT:
		return 1 << FRAME | 1 << AUTH | 1 << PDU;
	case DAMAGE_TAIL:
	case DAMAGE_AUTH:
		return 1 << AUTH;
	case DAMAGE_OPERATION:
		return 1 << OPERATION;
	case DAMAGE_TYPE:
	case DAMAGE_SIZE:
		return 1 << PDU;
	case DAMAGE_COUNT:
		return 1 << PDU | 1 << CONTENT;
	case DAMAGE_EMPTY:
	case DAMAGE_BLOCK:
	case DAMAGE_ID:
	case DAMAGE_ORDER:
		break;
	}
	return 1 << CONTENT;
}

/* Seals the answer with this damage, as the sandbox does. */
static enum damage
damaged(uint64_t seed)
{
	static uint8_t nonce[NONCE_LEN];
	struct prng how = {seed};
	enum damage d = damage_choose(&how, &answer);
	struct packet_head changed = head;
	struct damage_answer content = answer;

	damage_content(d, &how, &content, &changed);
	ck_assert_int_eq(packet_seal(key, &changed, nonce, content.pdu,
			     content.len, datagram, sizeof datagram, &len),
	    0);
	ck_assert_int_eq(
	    memcmp(&changed, &head, sizeof head) != 0, d == DAMAGE_OPERATION);
	damage_datagram(d, &how, &content, datagram, &len);
	ck_assert_uint_ge(len, 1);
	ck_assert_uint_le(len, PACKET_MAX);
	return d;
}

/* Is this kind among those of the shape? The manual page says which are. */
static bool
possible(enum damage d, int shape)
{
	switch (d) {
	case DAMAGE_TAIL:
		return answer.auth == AUTH_AES;
	case DAMAGE_AUTH: /* a cookie has to fit in */
		return answer.auth != AUTH_NONE || shape != 3;
	case DAMAGE_BLOCK:
		return shape != 3;
	case DAMAGE_ORDER:
		return shape == 2 || shape == 3;
	case DAMAGE_BIT:
	case DAMAGE_CUT:
	case DAMAGE_OPERATION:
	case DAMAGE_TYPE:
	case DAMAGE_SIZE:
	case DAMAGE_COUNT:
	case DAMAGE_EMPTY:
	case DAMAGE_ID:
		break;
	}
	return true;
}

static void
try_shape(uint64_t *state, int shape)
{
	int seen[DAMAGE_KINDS] = {0}, i;
	enum verdict v;
	enum damage d;

	make_answer(shape);
	for (i = 0; i < 4000; i++) {
		d = damaged(harness_random(state));
		v = judge();
		ck_assert_msg((expected(d) >> v & 1) != 0, "%s: %d",
		    damage_name(d), (int)v);
		seen[d]++;
	}
	for (i = 0; i < DAMAGE_KINDS; i++)
		ck_assert_msg((seen[i] > 0) == possible((enum damage)i, shape),
		    "%s in shape %d: %d times", damage_name((enum damage)i),
		    shape, seen[i]);
}

START_TEST(no_client_takes_a_damaged_answer)
{
	uint64_t state = harness_seed();
	int profile, shape;

	for (profile = PROFILE_V1; profile <= PROFILE_V2; profile++) {
		setup((enum auth_type)_i, (enum profile)profile);
		for (shape = 0; shape < SHAPES; shape++)
			try_shape(&state, shape);
		packet_key_free(key);
	}
}
END_TEST

/* The judge itself is not the one that refuses. */
START_TEST(a_whole_answer_is_valid)
{
	static const uint8_t nonce[NONCE_LEN];
	int shape;

	setup((enum auth_type)_i, PROFILE_V1);
	for (shape = 0; shape < SHAPES; shape++) {
		make_answer(shape);
		ck_assert_int_eq(
		    packet_seal(key, &head, nonce, answer.pdu, answer.len,
			datagram, sizeof datagram, &len),
		    0);
		ck_assert_int_eq(judge(), VALID);
	}
	packet_key_free(key);
}
END_TEST

/* The results are left alone: a client without AES could not tell. */
START_TEST(results_are_never_changed)
{
	uint64_t state = harness_seed();
	struct packet_view view;
	struct pdu_rate got;
	size_t i;
	int n;

	setup(AUTH_NONE, PROFILE_V2);
	make_answer(2);
	for (n = 0; n < 4000; n++) {
		damaged(harness_random(&state));
		if (packet_peek(datagram, len, &view) != 0 ||
		    view.auth != AUTH_NONE ||
		    pdu_decode_response(
			PROFILE_V2, view.body, view.body_len, &got) != 0 ||
		    got.guard_count != 2 || got.resource_count != 2)
			continue;
		for (i = 0; i < 2; i++) {
			ck_assert_uint_eq(got.guards[i].current_ms, 0);
			ck_assert_uint_eq(got.guards[i].threshold_ms, 0);
			ck_assert_uint_eq(got.resources[i].tokens, 0);
		}
	}
	packet_key_free(key);
}
END_TEST

START_TEST(a_seed_gives_the_same_damage)
{
	uint8_t first[PACKET_MAX];
	size_t first_len;
	uint64_t seed;
	enum damage d;

	setup(AUTH_COOKIE, PROFILE_V1);
	make_answer(2);
	for (seed = 0; seed < 200; seed++) {
		d = damaged(seed);
		first_len = len;
		memcpy(first, datagram, len);
		ck_assert_int_eq(damaged(seed), d);
		ck_assert_uint_eq(len, first_len);
		ck_assert_mem_eq(first, datagram, len);
	}
	packet_key_free(key);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("sandbox_damage");
	TCase *tc = tcase_create("damage");

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(
	    tc, no_client_takes_a_damaged_answer, AUTH_NONE, AUTH_AES + 1);
	tcase_add_loop_test(
	    tc, a_whole_answer_is_valid, AUTH_NONE, AUTH_AES + 1);
	tcase_add_test(tc, results_are_never_changed);
	tcase_add_test(tc, a_seed_gives_the_same_damage);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
