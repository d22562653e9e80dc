/* The text of every error number; the switch has no default on purpose. */
#include "proto/err.h"

const char *
err_str(enum rla_err err)
{
	switch (err) {
	case RLA_OK:
		return "success";
	case RLA_ENOMEM:
		return "out of memory";
	case RLA_EINVAL:
		return "value out of range";
	case RLA_ESHORT:
		return "truncated";
	case RLA_EMALFORMED:
		return "malformed";
	case RLA_ETOOBIG:
		return "too large";
	case RLA_EAUTH:
		return "authentication failed";
	case RLA_EMISMATCH:
		return "not an answer to this request";
	case RLA_EKEYTEXT:
		return "not a Bech32 key (case, character or checksum)";
	case RLA_EKEYTYPE:
		return "not an rl-aes, rl-cookie or rl-none key";
	case RLA_EKEYMGMT:
		return "a management key (rl-secret) cannot be used here";
	case RLA_EKEYFORMAT:
		return "unknown key format or payload length";
	case RLA_EKEYQUOTA:
		return "reserved quota code in the key";
	case RLA_EQUOTA:
		return "over a quota of the key";
	case RLA_ECRYPTO:
		return "crypto library failure";
	case RLA_ESYS:
		return "system call failed";
	case RLA_EBUSY:
		return "a limit is reached";
	case RLA_ENOENT:
		return "no such name";
	}
	return "unknown error";
}
