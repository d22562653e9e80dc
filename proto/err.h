/*
 * Error numbers shared by proto and daemon. Functions return 0 or one of
 * these negative values; err_str() names them for people.
 */
#ifndef PROTO_ERR_H
#define PROTO_ERR_H

enum rla_err {
	RLA_OK = 0,
	RLA_ENOMEM = -1,      /* out of memory */
	RLA_EINVAL = -2,      /* an argument is out of its range */
	RLA_ESHORT = -3,      /* truncated: bytes end before the message does */
	RLA_EMALFORMED = -4,  /* bytes that no conforming peer sends */
	RLA_ETOOBIG = -5,     /* does not fit in a datagram, frame or buffer */
	RLA_EAUTH = -6,       /* authentication failed */
	RLA_EMISMATCH = -7,   /* well formed, but not an answer to this */
	RLA_EKEYTEXT = -8,    /* not Bech32 text: case, character, checksum */
	RLA_EKEYTYPE = -9,    /* Bech32 of another type than an API key */
	RLA_EKEYMGMT = -10,   /* a management key, rl-secret */
	RLA_EKEYFORMAT = -11, /* payload length or version is unknown */
	RLA_EKEYQUOTA = -12,  /* a reserved quota code */
	RLA_EQUOTA = -13,     /* over a quota that the key carries */
	RLA_ECRYPTO = -14,    /* the crypto library refused */
	RLA_ESYS = -15,       /* a system call failed; errno says why */
	RLA_EBUSY = -16,      /* a cap is reached */
	RLA_ENOENT = -17,     /* no such name */
};

/* Returns a constant string, never NULL. */
const char *err_str(enum rla_err err);

#endif
