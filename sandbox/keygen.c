/*
 * Each quota option is checked against what the chosen format can hold, so
 * that a wrong one is told by its name. The secret never leaves this file but
 * in the printed key.
 */
#include "sandbox/keygen.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "proto/err.h"
#include "proto/random.h"
#include "sandbox/number.h"

#define DEFAULT_BUCKETS  65536
#define DEFAULT_TRACKERS 4096
#define DEFAULT_LABELS   1024
#define DEFAULT_BUFFER   1024
#define DEFAULT_DEDUP_MS 2000
/* Format 1 holds the deduplication time in steps up to this one. */
#define DEDUP_STEP_MS 10
#define DEDUP_MOST_MS 2000

enum quota_id {
	OPT_BUCKETS = 1,
	OPT_TRACKERS,
	OPT_LABELS,
	OPT_BUFFER,
	OPT_DEDUP,
	OPT_WINDOW,
	OPT_AUTH = 256,
	OPT_KEY_ID,
	OPT_FORMAT,
};

static const struct option long_options[] = {
    {"rate-buckets", required_argument, NULL, OPT_BUCKETS},
    {"latency-trackers", required_argument, NULL, OPT_TRACKERS},
    {"labels", required_argument, NULL, OPT_LABELS},
    {"buffer", required_argument, NULL, OPT_BUFFER},
    {"dedup-max", required_argument, NULL, OPT_DEDUP},
    {"window-max", required_argument, NULL, OPT_WINDOW},
    {"auth", required_argument, NULL, OPT_AUTH},
    {"key-id", required_argument, NULL, OPT_KEY_ID},
    {"format", required_argument, NULL, OPT_FORMAT},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static const char help_text[] =
    "Usage: rl-sandbox keygen --auth aes|cookie|none --key-id N [OPTION...]\n"
    "\n"
    "Prints a new API key with a random secret, for development and tests.\n"
    "\n"
    "  --auth TYPE           aes, cookie or none\n"
    "  --key-id N            the tenant's number, 64 bits\n"
    "  --format 0|1          1 (the default), or 0: unversioned\n"
    "  --dedup-max MS        longest deduplication (2000); format 1: tens\n"
    "                        from 10 to 2000; format 0: 0 is no limit\n"
    "  --rate-buckets N      (65536) format 1: powers of two, up to 2^24\n"
    "  --latency-trackers N  (4096) the same\n"
    "  --labels N            (1024) the same, up to 2^31\n"
    "  --buffer N            samples of a tracker (1024), up to 2^15\n"
    "  --window-max MS       longest rate window (4294967295: no limit), a\n"
    "                        power of two up to 2^30; format 1 only\n";

struct parse {
	struct credential *cred;
	const char *given[OPT_WINDOW + 1]; /* the quota options' texts */
	bool have_auth;
	bool have_id;
	char *why;
};

__attribute__((format(printf, 2, 3))) static int
bad(struct parse *p, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(p->why, KEYGEN_WHY, format, ap);
	va_end(ap);
	return RLA_EINVAL;
}

static int
set_auth(struct parse *p, const char *text)
{
	static const enum auth_type types[] = {
	    AUTH_AES, AUTH_COOKIE, AUTH_NONE};
	size_t i;

	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(text, credential_auth_name(types[i])) == 0) {
			p->cred->auth = types[i];
			p->have_auth = true;
			return 0;
		}
	return bad(p, "--auth %s: not aes, cookie or none", text);
}

static int
set_format(struct parse *p, const char *text)
{
	if (strcmp(text, "0") != 0 && strcmp(text, "1") != 0)
		return bad(p, "--format %s: not 0 or 1", text);
	p->cred->format = text[0] == '0' ? KEY_UNVERSIONED : KEY_FORMAT_1;
	return 0;
}

static int
apply(struct parse *p, int id, const char *arg)
{
	if (id <= OPT_WINDOW) {
		p->given[id] = arg;
		return 0;
	}
	if (id == OPT_AUTH)
		return set_auth(p, arg);
	if (id == OPT_FORMAT)
		return set_format(p, arg);
	if (number_parse(arg, 0, UINT64_MAX, &p->cred->key_id) < 0)
		return bad(p, "--key-id %s: not a 64-bit number", arg);
	p->have_id = true;
	return 0;
}

/* A count that format 1 holds as an exponent, format 0 as it is. */
static int
set_count(struct parse *p, enum quota_id id, const char *name,
    uint32_t exponent_max, uint32_t *out)
{
	uint64_t most = UINT64_C(1) << exponent_max, v;

	if (p->given[id] == NULL)
		return 0;
	if (p->cred->format == KEY_UNVERSIONED) {
		if (number_parse(p->given[id], 0, UINT32_MAX, &v) < 0)
			return bad(p, "--%s %s: not a 32-bit number", name,
			    p->given[id]);
	} else if (number_parse(p->given[id], 1, most, &v) < 0 ||
		   (v & (v - 1)) != 0) {
		return bad(p,
		    "--%s %s: format 1 takes powers of two from 1 to %llu",
		    name, p->given[id], (unsigned long long)most);
	}
	*out = (uint32_t)v;
	return 0;
}

static int
set_dedup(struct parse *p)
{
	const char *text = p->given[OPT_DEDUP];
	uint64_t v;

	if (text == NULL)
		return 0;
	if (p->cred->format == KEY_UNVERSIONED) {
		if (number_parse(text, 0, UINT32_MAX, &v) < 0)
			return bad(
			    p, "--dedup-max %s: not a 32-bit number", text);
	} else if (number_parse(text, DEDUP_STEP_MS, DEDUP_MOST_MS, &v) < 0 ||
		   v % DEDUP_STEP_MS != 0) {
		return bad(p,
		    "--dedup-max %s: format 1 takes multiples of %d from %d "
		    "to %d",
		    text, DEDUP_STEP_MS, DEDUP_STEP_MS, DEDUP_MOST_MS);
	}
	p->cred->quotas.dedup_ttl_ms = (uint32_t)v;
	return 0;
}

static int
set_window(struct parse *p)
{
	const char *text = p->given[OPT_WINDOW];
	uint64_t v;

	if (text == NULL)
		return 0;
	if (p->cred->format == KEY_UNVERSIONED)
		return bad(p,
		    "--window-max %s: format 0 has no limit of windows", text);
	if (number_parse(text, 1, UINT32_MAX, &v) < 0 ||
	    (v != UINT32_MAX && (v & (v - 1)) != 0) || v > UINT32_MAX ||
	    v == UINT32_C(1) << 31)
		return bad(p,
		    "--window-max %s: not a power of two up to 1073741824, "
		    "nor 4294967295",
		    text);
	p->cred->quotas.rate_window_ms = (uint32_t)v;
	return 0;
}

static int
validate(struct parse *p)
{
	struct quotas *q = &p->cred->quotas;

	if (!p->have_auth)
		return bad(p, "--auth is missing");
	if (!p->have_id)
		return bad(p, "--key-id is missing");
	if (p->cred->auth == AUTH_NONE && p->cred->format == KEY_UNVERSIONED)
		return bad(p, "--format 0: there is no such key of type none");
	if (set_count(p, OPT_BUCKETS, "rate-buckets", 24, &q->rate_buckets) <
		0 ||
	    set_count(p, OPT_TRACKERS, "latency-trackers", 24,
		&q->latency_trackers) < 0 ||
	    set_count(p, OPT_LABELS, "labels", 31, &q->metrics_labels) < 0 ||
	    set_count(p, OPT_BUFFER, "buffer", 15, &q->latency_buffer) < 0 ||
	    set_dedup(p) < 0)
		return RLA_EINVAL;
	return set_window(p);
}

/* As getopt_long() says it in the other programs; word is where it stopped. */
static void
bad_option(struct parse *p, int id, const char *word)
{
	if (id == ':')
		bad(p, "option '%s' requires an argument", word);
	else if (optopt == 'h')
		bad(p, "option '--help' doesn't allow an argument");
	else if (optopt > ' ' && optopt < OPT_AUTH)
		bad(p, "invalid option -- '%c'", optopt);
	else
		bad(p, "unrecognized option '%s'", word);
}

enum keygen_outcome
keygen_parse(
    int argc, char **argv, struct credential *out, char why[KEYGEN_WHY])
{
	struct parse p = {.cred = out, .why = why};
	int id;

	memset(out, 0, sizeof(*out));
	out->format = KEY_FORMAT_1;
	out->quotas = (struct quotas){DEFAULT_BUCKETS, DEFAULT_TRACKERS,
	    DEFAULT_LABELS, DEFAULT_BUFFER, DEFAULT_DEDUP_MS, UINT32_MAX};
	optind = 0;
	opterr = 0;
	while ((id = getopt_long(argc, argv, ":h", long_options, NULL)) != -1) {
		if (id == 'h')
			return KEYGEN_HELP;
		if (id == ':' || id == '?') {
			bad_option(&p, id, argv[optind - 1]);
			return KEYGEN_BAD;
		}
		if (apply(&p, id, optarg) < 0)
			return KEYGEN_BAD;
	}
	if (optind < argc) {
		bad(&p, "unexpected argument \"%s\"", argv[optind]);
		return KEYGEN_BAD;
	}
	return validate(&p) < 0 ? KEYGEN_BAD : KEYGEN_MAKE;
}

/* Draws the secret and prints the key. Returns 0 or a negative error. */
static int
print_key(struct credential *cred)
{
	struct random_pool *pool = random_pool_new();
	char text[CREDENTIAL_TEXT_MAX + 1];
	int rc = pool != NULL ? 0 : RLA_ECRYPTO;

	if (rc == 0 && cred->auth != AUTH_NONE)
		rc = random_bytes(pool, cred->secret, sizeof(cred->secret));
	if (rc == 0)
		rc = credential_format(cred, text, sizeof(text));
	if (rc == 0 && (puts(text) == EOF || fflush(stdout) != 0))
		rc = RLA_ESYS;
	explicit_bzero(text, sizeof(text));
	credential_wipe(cred);
	random_pool_free(pool);
	return rc;
}

int
keygen_main(int argc, char **argv)
{
	struct credential cred;
	char why[KEYGEN_WHY];
	int rc;

	switch (keygen_parse(argc, argv, &cred, why)) {
	case KEYGEN_MAKE:
		break;
	case KEYGEN_HELP:
		return fputs(help_text, stdout) < 0 || fflush(stdout) != 0;
	case KEYGEN_BAD:
		fprintf(stderr, "rl-sandbox: keygen: %s\n", why);
		return EX_USAGE;
	}
	rc = print_key(&cred);
	if (rc < 0)
		fprintf(stderr, "rl-sandbox: keygen: %s\n",
		    rc == RLA_ESYS ? strerror(errno)
				   : err_str((enum rla_err)rc));
	return rc < 0;
}
