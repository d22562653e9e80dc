/*
 * See fake_server.h. Every failure here fails the test; but what is not a
 * failure must not allocate, as Check's assertions do, for the tests that
 * count allocations.
 */
#include "tests/unit/fake_server.h"

#include <check.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void
fake_server_open(struct fake_server *s, uint64_t id,
    const struct credential *cred, enum profile profile)
{
	struct sockaddr_in in = {
	    .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const int bytes = 4 * 1024 * 1024;
	socklen_t len = sizeof(in);

	*s = (struct fake_server){.id = id, .profile = profile};
	s->fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	ck_assert_int_ge(s->fd, 0);
	(void)setsockopt(s->fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	ck_assert_int_eq(bind(s->fd, (struct sockaddr *)&in, len), 0);
	ck_assert_int_eq(getsockname(s->fd, (struct sockaddr *)&in, &len), 0);
	s->port = ntohs(in.sin_port);
	s->key = packet_key_new(cred);
	s->nonce = nonce_new();
	ck_assert_ptr_nonnull(s->key);
	ck_assert_ptr_nonnull(s->nonce);
}

void
fake_server_close(struct fake_server *s)
{
	close(s->fd);
	packet_key_free(s->key);
	nonce_free(s->nonce);
}

bool
fake_server_take(struct fake_server *s, struct fake_request *out)
{
	socklen_t from_len = sizeof(out->from);
	struct packet_view view;
	const uint8_t *pdu;
	size_t pdu_len;
	ssize_t n;
	int rc;

	n = recvfrom(s->fd, out->bytes, sizeof(out->bytes), 0,
	    (struct sockaddr *)&out->from, &from_len);
	if (n < 0) {
		if (errno != EAGAIN)
			ck_abort_msg("cannot receive: %s", strerror(errno));
		return false;
	}
	out->len = (size_t)n;
	rc = packet_peek(out->bytes, out->len, &view);
	if (rc == 0)
		rc = packet_open(
		    s->key, &view, out->pdu, sizeof(out->pdu), &pdu, &pdu_len);
	if (rc == 0) {
		out->head = view.head;
		out->type = pdu_type(pdu, pdu_len);
		rc = out->type == PDU_LATENCY_REPORT
			 ? pdu_decode_report(
			       s->profile, pdu, pdu_len, &out->report)
			 : pdu_decode_request(
			       s->profile, pdu, pdu_len, &out->rate);
	}
	if (rc != 0)
		ck_abort_msg("a request that no server takes: %d", rc);
	return true;
}

unsigned int
fake_server_count(struct fake_server *s, struct fake_request *out)
{
	unsigned int n = 0;

	while (fake_server_take(s, out))
		n++;
	return n;
}

void
fake_server_grant(const struct fake_request *q, struct pdu_rate *out)
{
	size_t i;

	*out = q->rate;
	out->label = NULL;
	out->label_len = 0;
	for (i = 0; i < out->guard_count; i++)
		out->guards[i].current_ms = out->guards[i].threshold_ms - 1;
	for (i = 0; i < out->resource_count; i++) {
		out->resources[i].limit = (uint32_t)i + 1; /* actual rate */
		out->resources[i].tokens = 0;              /* deficit */
	}
}

struct packet_head
fake_server_head(const struct fake_server *s, const struct fake_request *q)
{
	struct packet_head head = {.key_id = s->id,
	    .time_stamp = s->stamp != 0 ? s->stamp : 1,
	    .keep_port = true};

	memcpy(head.unique_id, q->head.unique_id, sizeof(head.unique_id));
	return head;
}

size_t
fake_server_seal(struct fake_server *s, const struct packet_head *head,
    const uint8_t *pdu, size_t pdu_len, uint8_t out[PACKET_MAX])
{
	uint8_t nonce[NONCE_LEN];
	size_t len = 0;
	int rc = nonce_next(s->nonce, nonce);

	if (rc == 0)
		rc = packet_seal(
		    s->key, head, nonce, pdu, pdu_len, out, PACKET_MAX, &len);
	if (rc != 0)
		ck_abort_msg("cannot seal: %d", rc);
	return len;
}

void
fake_server_send(struct fake_server *s, const struct fake_request *q,
    const void *bytes, size_t len)
{
	ssize_t n = sendto(s->fd, bytes, len, 0,
	    (const struct sockaddr *)&q->from, sizeof(q->from));

	if (n < 0 || (size_t)n != len)
		ck_abort_msg("cannot send: %s", strerror(errno));
}

void
fake_server_answer(struct fake_server *s, const struct fake_request *q,
    const struct pdu_rate *rate)
{
	struct packet_head head = fake_server_head(s, q);
	uint8_t pdu[PACKET_MAX], out[PACKET_MAX];
	size_t len;
	int rc = pdu_encode_response(s->profile, rate, pdu, sizeof(pdu), &len);

	if (rc != 0)
		ck_abort_msg("cannot encode: %d", rc);
	len = fake_server_seal(s, &head, pdu, len, out);
	fake_server_send(s, q, out, len);
}

void
fake_server_allow(struct fake_server *s, const struct fake_request *q)
{
	struct pdu_rate rate;

	fake_server_grant(q, &rate);
	fake_server_answer(s, q, &rate);
}
