/* One socket, one request at a time. */
#include "tests/bench/direct.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "proto/id.h"
#include "proto/nonce.h"
#include "proto/packet.h"
#include "proto/pdu.h"
#include "proto/random.h"

struct direct {
	int fd;
	uint64_t key_id;
	uint64_t server_id;
	enum profile profile;
	struct packet_key *key;
	struct nonce *nonce;
	struct id_hash *hash;
	struct random_pool *random;
	struct pdu_rate request;
	struct pdu_rate response;
	uint8_t bytes[PACKET_MAX];
	uint8_t scratch[PACKET_MAX];
};

static int
connect_to(uint16_t port)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
	    .sin_port = htons(port),
	    .sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct timeval patience = {.tv_sec = LAB_PATIENCE_MS / 1000};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 &&
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience,
		sizeof(patience)) == 0 &&
	    connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0)
		return fd;
	lab_fail("a socket to the sandbox");
	if (fd >= 0)
		close(fd);
	return -1;
}

struct direct *
direct_open(const struct credential *cred, const struct lab_sandbox *sandbox)
{
	struct direct *d = calloc(1, sizeof(*d));

	if (d == NULL)
		return NULL;
	d->key_id = cred->key_id;
	d->server_id = sandbox->servers[0].id;
	d->profile = credential_profile(cred);
	d->key = packet_key_new(cred);
	d->nonce = nonce_new();
	d->hash = id_hash_new();
	d->random = random_pool_new();
	d->fd = connect_to(sandbox->servers[0].port);
	if (d->fd >= 0 && d->key != NULL && d->nonce != NULL &&
	    d->hash != NULL && d->random != NULL)
		return d;
	direct_close(d);
	return NULL;
}

void
direct_close(struct direct *d)
{
	if (d == NULL)
		return;
	if (d->fd >= 0)
		close(d->fd);
	random_pool_free(d->random);
	id_hash_free(d->hash);
	nonce_free(d->nonce);
	packet_key_free(d->key);
	free(d);
}

static int
bucket_id(struct direct *d, unsigned n, uint8_t out[ID_LEN])
{
	char name[sizeof(LAB_BUCKET) - 1 + LAB_KEY_LEN];

	memcpy(name, LAB_BUCKET, sizeof(LAB_BUCKET) - 1);
	lab_key(n, name + sizeof(LAB_BUCKET) - 1);
	return id_bucket(
	    d->hash, name, sizeof(name), LAB_WINDOW_MS, LAB_LIMIT, out);
}

static int
encode(struct direct *d, unsigned n, uint8_t pdu[PACKET_MAX], size_t *len)
{
	d->request.dedup_ttl_ms = LAB_TTL_MS;
	d->request.resource_count = 1;
	d->request.resources[0].window_ms = LAB_WINDOW_MS;
	d->request.resources[0].limit = LAB_LIMIT;
	d->request.resources[0].tokens = 1;
	if (bucket_id(d, n, d->request.resources[0].id) != 0)
		return -1;
	return pdu_encode_request(
	    d->profile, &d->request, pdu, PACKET_MAX, len);
}

static int
seal(struct direct *d, const struct packet_head *head, const uint8_t *pdu,
    size_t pdu_len, size_t *len)
{
	uint8_t nonce[NONCE_LEN];

	if (nonce_next(d->nonce, nonce) != 0)
		return -1;
	return packet_seal(
	    d->key, head, nonce, pdu, pdu_len, d->bytes, sizeof(d->bytes), len);
}

static int
head_init(struct direct *d, struct packet_head *head)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	*head = (struct packet_head){.key_id = d->key_id,
	    .time_stamp =
		(uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000};
	return random_uuid(d->random, head->unique_id);
}

/* 0 when this is the answer, and it grants. */
static int
judge(struct direct *d, const struct packet_head *head, size_t len)
{
	struct packet_view view;
	const uint8_t *pdu;
	size_t pdu_len;

	if (packet_peek(d->bytes, len, &view) != 0 ||
	    view.head.key_id != d->server_id ||
	    memcmp(view.head.unique_id, head->unique_id, PACKET_UNIQUE_LEN) !=
		0 ||
	    packet_open(d->key, &view, d->scratch, sizeof(d->scratch), &pdu,
		&pdu_len) != 0 ||
	    pdu_type(pdu, pdu_len) != PDU_RATE_RESPONSE ||
	    pdu_decode_response(d->profile, pdu, pdu_len, &d->response) != 0)
		return -1;
	if (d->response.guard_count != 0 || d->response.resource_count != 1 ||
	    memcmp(d->response.resources[0].id, d->request.resources[0].id,
		ID_LEN) != 0 ||
	    d->response.resources[0].tokens != 0)
		return -1;
	return 0;
}

int
direct_check(struct direct *d, unsigned n)
{
	uint8_t pdu[PACKET_MAX];
	struct packet_head head;
	size_t pdu_len, len;
	ssize_t got;

	if (encode(d, n, pdu, &pdu_len) != 0 || head_init(d, &head) != 0 ||
	    seal(d, &head, pdu, pdu_len, &len) != 0)
		return lab_fail("direct: no request can be made");
	if (send(d->fd, d->bytes, len, 0) != (ssize_t)len)
		return lab_fail("direct: send");
	got = recv(d->fd, d->bytes, sizeof(d->bytes), 0);
	if (got < 0)
		return lab_fail("direct: no answer");
	errno = 0;
	if (judge(d, &head, (size_t)got) != 0)
		return lab_fail("direct: another answer than expected");
	return 0;
}

/* A response as the sandbox would seal it, kept in its own buffer. */
static int
sealed_response(struct direct *d, uint8_t out[PACKET_MAX], size_t *len)
{
	uint8_t pdu[PACKET_MAX];
	struct packet_head head;
	size_t pdu_len;

	d->response = d->request;
	if (head_init(d, &head) != 0 ||
	    pdu_encode_response(
		d->profile, &d->response, pdu, sizeof(pdu), &pdu_len) != 0 ||
	    seal(d, &head, pdu, pdu_len, len) != 0)
		return -1;
	memcpy(out, d->bytes, *len);
	return 0;
}

static double
thread_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

int
direct_crypto(struct direct *d, unsigned times, double *us)
{
	uint8_t pdu[PACKET_MAX], answer[PACKET_MAX], id[ID_LEN];
	struct packet_head head;
	struct packet_view view;
	const uint8_t *opened;
	size_t pdu_len, len;
	double start;
	unsigned i;
	int bad;

	errno = 0;
	if (encode(d, 0, pdu, &pdu_len) != 0 || head_init(d, &head) != 0 ||
	    sealed_response(d, answer, &len) != 0 ||
	    packet_peek(answer, len, &view) != 0)
		return lab_fail("direct: no request can be made");
	start = thread_us();
	for (bad = 0, i = 0; i < times; i++) {
		bad |= bucket_id(d, i, id);
		bad |= seal(d, &head, pdu, pdu_len, &len);
		bad |= packet_open(d->key, &view, d->scratch,
		    sizeof(d->scratch), &opened, &len);
	}
	*us = (thread_us() - start) / times;
	return bad == 0 ? 0 : lab_fail("direct: the cryptography fails");
}
