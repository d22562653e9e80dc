/* See answer.h: the words, then the stages of a datagram: head, blocks, PDU,
 * seal, bytes. Each way to spoil it acts in one stage. */
#include "tests/world/answer.h"

#include <string.h>

#include "tests/world/fake_loop.h"
#include "tests/world/fake_udp.h"

#define IN_MAX 2048 /* what a socket reads of a datagram */

enum spoil {
	SPOIL_NOTHING,
	/* bad: it is no answer */
	SPOIL_TAG,       /* one bit of the tag or cookie */
	SPOIL_SECRET,    /* another secret */
	SPOIL_KEY,       /* another key of the same tenant */
	SPOIL_AUTH_TYPE, /* another auth type than the key's */
	SPOIL_OPERATION, /* another unique id */
	SPOIL_KEY_ID,    /* the tenant's id instead of the server's */
	SPOIL_SERVER,    /* the id of no server */
	SPOIL_COUNT,     /* a resource more */
	SPOIL_IDS,
	SPOIL_ORDER, /* of the first two resources */
	SPOIL_EMPTY, /* no block at all */
	SPOIL_SHORT, /* a byte less, sealed */
	SPOIL_CUT,   /* a byte less on the way */
	SPOIL_REQUEST,
	SPOIL_REPORT,
	SPOIL_JUNK,
	SPOIL_LONG, /* more than a socket reads */
	/* odd: it is one */
	SPOIL_TRAILING, /* bytes after the PDU */
	SPOIL_WORD,     /* the header word is not zero */
	SPOIL_MGMT,
	SPOIL_STAMP, /* the server's own time */
};

static const struct {
	const char *name;
	enum spoil spoil;
} kinds[] = {
    {"tag", SPOIL_TAG},
    {"cookie", SPOIL_TAG},
    {"secret", SPOIL_SECRET},
    {"key", SPOIL_KEY},
    {"auth-type", SPOIL_AUTH_TYPE},
    {"operation", SPOIL_OPERATION},
    {"key-id", SPOIL_KEY_ID},
    {"server", SPOIL_SERVER},
    {"count", SPOIL_COUNT},
    {"ids", SPOIL_IDS},
    {"order", SPOIL_ORDER},
    {"empty", SPOIL_EMPTY},
    {"short", SPOIL_SHORT},
    {"cut", SPOIL_CUT},
    {"request", SPOIL_REQUEST},
    {"report", SPOIL_REPORT},
    {"junk", SPOIL_JUNK},
    {"long", SPOIL_LONG},
    {"trailing", SPOIL_TRAILING},
    {"word", SPOIL_WORD},
    {"mgmt", SPOIL_MGMT},
    {"stamp", SPOIL_STAMP},
};

struct answer {
	struct scene_op *op;
	unsigned int server;
	enum spoil spoil;
	bool deny_guard;
	bool deny_resource;
	bool change_port;
	struct endpoint from;
	bool from_known; /* an address of the server */
	uint32_t via;
};

/* The words. */

static void
spoil_word(struct scene *s, struct answer *a, bool bad)
{
	const char *name = words_next(&s->w);

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (strcmp(kinds[i].name, name) == 0 &&
		    (kinds[i].spoil < SPOIL_TRAILING) == bad) {
			a->spoil = kinds[i].spoil;
			return;
		}
	}
	words_fault(
	    &s->w, "unknown %s answer \"%s\"", bad ? "bad" : "odd", name);
}

static void
from_word(struct scene *s, struct answer *a)
{
	unsigned int server;
	uint32_t addr;

	if (words_accept(&s->w, "elsewhere")) {
		a->from = (struct endpoint){
		    .family = 4, .addr = {198, 51, 100, 1}, .port = 9};
		a->from_known = false;
		return;
	}
	server = scene_place(s, &addr);
	a->from = s->targets[server].addrs[addr % MEMBERS_MAX_ADDRS];
	a->from_known = server == a->server;
}

static void
denied_words(struct scene *s, struct answer *a)
{
	if (!words_accept(&s->w, "by")) {
		a->deny_resource = true;
		return;
	}
	a->deny_guard = words_accept(&s->w, "guard");
	a->deny_resource = !a->deny_guard && words_accept(&s->w, "resource");
	if (!a->deny_guard && !a->deny_resource) {
		a->deny_guard = a->deny_resource = true;
		if (!words_accept(&s->w, "both"))
			words_fault(&s->w, "by guard, resource or both");
	}
}

/* The port that the server was asked from, else any that was asked from. */
static uint32_t
usual_port(const struct scene_op *op, unsigned int server)
{
	uint32_t port = op->port[server];

	for (unsigned int i = 0; i < SCENE_SERVERS && port == 0; i++)
		port = op->port[i];
	return port;
}

static void
answer_words(struct scene *s, struct answer *a)
{
	bool said = false;

	while (words_more(&s->w) && !words_failed(&s->w)) {
		if (words_accept(&s->w, "allowed")) {
			said = true;
		} else if (words_accept(&s->w, "denied")) {
			said = true;
			denied_words(s, a);
		} else if (words_accept(&s->w, "bad")) {
			said = true;
			spoil_word(s, a, true);
		} else if (words_accept(&s->w, "odd"))
			spoil_word(s, a, false);
		else if (words_accept(&s->w, "change-port"))
			a->change_port = true;
		else if (words_accept(&s->w, "from"))
			from_word(s, a);
		else if (words_accept(&s->w, "via"))
			a->via = scene_port(s);
		else
			words_fault(&s->w, "unknown part of an answer");
	}
	if (!said)
		words_fault(&s->w, "an answer is allowed, denied or bad");
}

/* The datagram. */

static struct packet_head
make_head(const struct answer *a)
{
	struct packet_head head = {
	    .key_id = SCENE_FIRST_ID + a->server,
	    .time_stamp = a->op->stamp,
	    .keep_port = !a->change_port,
	};

	memcpy(head.unique_id, a->op->id, sizeof(head.unique_id));
	if (a->spoil == SPOIL_OPERATION)
		head.unique_id[15] ^= 1;
	if (a->spoil == SPOIL_KEY_ID)
		head.key_id = SCENE_KEY_ID + a->op->key;
	if (a->spoil == SPOIL_SERVER)
		head.key_id = SCENE_FIRST_ID + SCENE_SERVERS;
	if (a->spoil == SPOIL_MGMT)
		head.mgmt = true;
	if (a->spoil == SPOIL_STAMP)
		head.time_stamp += 86400000;
	return head;
}

static void
spoil_blocks(struct scene *s, const struct answer *a, struct pdu_rate *rate)
{
	const struct pdu_resource first = rate->resources[0];

	if (a->spoil == SPOIL_COUNT)
		rate->resources[rate->resource_count++] = first;
	if (a->spoil == SPOIL_EMPTY)
		rate->guard_count = rate->resource_count = 0;
	if (a->spoil == SPOIL_IDS)
		rate->resources[0].id[0] ^= 1;
	if (a->spoil != SPOIL_ORDER)
		return;
	if (rate->resource_count < 2)
		words_fault(&s->w, "one resource has no order");
	rate->resources[0] = rate->resources[1];
	rate->resources[1] = first;
}

static void
make_blocks(struct scene *s, const struct answer *a, struct pdu_rate *rate)
{
	size_t i;

	*rate = a->op->rate;
	rate->label = NULL;
	rate->label_len = 0;
	for (i = 0; i < rate->guard_count; i++)
		rate->guards[i].current_ms =
		    rate->guards[i].threshold_ms - (a->deny_guard ? 0 : 1);
	for (i = 0; i < rate->resource_count; i++) {
		rate->resources[i].limit = 7; /* the actual rate */
		rate->resources[i].tokens = a->deny_resource ? 3 : 0;
	}
	if ((a->deny_guard && rate->guard_count == 0) ||
	    (a->deny_resource && rate->resource_count == 0))
		words_fault(&s->w, "nothing was asked that could deny so");
	spoil_blocks(s, a, rate);
}

static size_t
make_pdu(struct scene *s, const struct answer *a, uint8_t *pdu)
{
	const struct pdu_report report = {.count = 1};
	struct pdu_rate rate;
	size_t len = 0;
	int err;

	make_blocks(s, a, &rate);
	if (a->spoil == SPOIL_REQUEST)
		err = pdu_encode_request(
		    s->config.profile, &rate, pdu, PACKET_MAX, &len);
	else if (a->spoil == SPOIL_REPORT)
		err = pdu_encode_report(
		    s->config.profile, &report, pdu, PACKET_MAX, &len);
	else
		err = pdu_encode_response(
		    s->config.profile, &rate, pdu, PACKET_MAX, &len);
	if (err != 0)
		words_fault(&s->w, "no such answer can be made");
	if (a->spoil == SPOIL_WORD)
		pdu[4] = 1;
	if (a->spoil == SPOIL_SHORT)
		len--;
	if (a->spoil == SPOIL_JUNK)
		memset(pdu, 0xff, len);
	if (a->spoil == SPOIL_TRAILING) {
		memset(pdu + len, 0xee, 8);
		len += 8;
	}
	return len;
}

/* The key that it is sealed with; the caller's to free. */
static struct packet_key *
sealing_key(const struct scene *s, const struct answer *a)
{
	struct credential cred = scene_cred(s, a->op->key);

	if (a->spoil == SPOIL_SECRET)
		cred.secret[0] ^= 1;
	else if (a->spoil == SPOIL_AUTH_TYPE)
		cred.auth = cred.auth == AUTH_COOKIE ? AUTH_AES : AUTH_COOKIE;
	else if (a->spoil == SPOIL_KEY)
		cred = scene_cred(s, a->op->key == s->key ? 0 : s->key);
	return packet_key_new(&cred);
}

static size_t
seal(struct scene *s, const struct answer *a, uint8_t *out)
{
	const struct packet_head head = make_head(a);
	struct packet_key *key = sealing_key(s, a);
	uint8_t pdu[IN_MAX], nonce[NONCE_LEN];
	size_t pdu_len = make_pdu(s, a, pdu), len = 0;

	if (key == NULL || nonce_next(s->nonce, nonce) != 0 ||
	    packet_seal(
		key, &head, nonce, pdu, pdu_len, out, PACKET_MAX, &len) != 0)
		words_fault(&s->w, "cannot seal the answer");
	packet_key_free(key);
	if ((a->spoil == SPOIL_TAG && s->cred.auth == AUTH_NONE) ||
	    (a->spoil == SPOIL_KEY && s->key == 0))
		words_fault(&s->w, "there is nothing to spoil");
	if (a->spoil == SPOIL_TAG) /* the end of the auth TLV */
		out[packet_overhead(s->cred.auth) - 1] ^= 1;
	if (a->spoil == SPOIL_CUT)
		len--;
	return len;
}

void
answer_run(struct scene *s)
{
	struct answer a = {.from_known = true};
	uint8_t bytes[IN_MAX] = {0};
	uint64_t *heard = NULL;
	size_t len;

	a.server = scene_server(s);
	a.op = words_accept(&s->w, "report") ? &s->report : scene_op(s);
	if (a.op == NULL)
		return;
	a.via = usual_port(a.op, a.server);
	if (a.via == 0) {
		scene_settle(s);
		a.via = usual_port(a.op, a.server);
	}
	a.from = s->targets[a.server].addrs[a.op->addr[a.server]];
	answer_words(s, &a);
	if (words_failed(&s->w))
		return;
	len = seal(s, &a, bytes);
	if ((a.spoil == SPOIL_NOTHING || a.spoil >= SPOIL_TRAILING) &&
	    (a.from_known || !s->config.strict_source) &&
	    (a.op->members >> a.server & 1) != 0)
		heard = &a.op->heard[a.server];
	if (!fake_udp_deliver(a.via, &a.from, bytes,
		a.spoil == SPOIL_LONG ? IN_MAX : len, a.spoil == SPOIL_LONG,
		heard))
		words_fault(&s->w, "nobody receives on port p%u", a.via);
}

void
answer_flood(struct scene *s)
{
	const struct endpoint from = {
	    .family = 4, .addr = {198, 51, 100, 1}, .port = 9};
	uint64_t n = words_number(&s->w, 100000);
	uint32_t via = 1;
	uint8_t junk[64] = {0};

	if (words_accept(&s->w, "via"))
		via = scene_port(s);
	while (n-- > 0) {
		if (!fake_udp_deliver(
			via, &from, junk, sizeof(junk), false, NULL))
			words_fault(&s->w, "nobody receives there");
	}
}
