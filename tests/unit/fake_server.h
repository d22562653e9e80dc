/*
 * An r-server of a test: a UDP socket on loopback that takes requests apart
 * and answers what the test wants, byte for byte if it must. It shares the
 * codec with the agent; that the codec is right is what the vectors show.
 */
#ifndef TESTS_UNIT_FAKE_SERVER_H
#define TESTS_UNIT_FAKE_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <netinet/in.h>

#include "proto/credential.h"
#include "proto/nonce.h"
#include "proto/packet.h"
#include "proto/pdu.h"

struct fake_server {
	int fd;
	uint16_t port;
	uint64_t id;
	uint64_t stamp; /* of its answers; 0: 1 */
	enum profile profile;
	struct packet_key *key;
	struct nonce *nonce;
};

/* One datagram that came. */
struct fake_request {
	uint8_t bytes[2048];
	size_t len;
	struct sockaddr_in from;
	struct packet_head head;
	uint16_t type;
	struct pdu_rate rate;
	struct pdu_report report;
	uint8_t pdu[2048];
};

void fake_server_open(struct fake_server *s, uint64_t id,
    const struct credential *cred, enum profile profile);
void fake_server_close(struct fake_server *s);

/* False when nothing is there. What comes must be well formed. */
bool fake_server_take(struct fake_server *s, struct fake_request *out);
/* Takes and counts all that is there; the last one is in *out. */
unsigned int fake_server_count(struct fake_server *s, struct fake_request *out);

/* An answer that grants all of it, for the test to spoil. */
void fake_server_grant(const struct fake_request *q, struct pdu_rate *out);
/* The whole datagram of an answer. Returns its length. */
size_t fake_server_seal(struct fake_server *s, const struct packet_head *head,
    const uint8_t *pdu, size_t pdu_len, uint8_t out[PACKET_MAX]);
/* The head of an answer of this server to that request. */
struct packet_head fake_server_head(
    const struct fake_server *s, const struct fake_request *q);
void fake_server_send(struct fake_server *s, const struct fake_request *q,
    const void *bytes, size_t len);
/* Encodes, seals and sends. */
void fake_server_answer(struct fake_server *s, const struct fake_request *q,
    const struct pdu_rate *rate);
/* Grants all of it. */
void fake_server_allow(struct fake_server *s, const struct fake_request *q);

#endif
