/* rlctl key show: what is in an API key, never its secret. */
#include "client-shim/rlctl.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/credential.h"
#include "proto/err.h"

/* Reads the whole key; exits when it cannot. Strips one line end. */
static size_t
read_key(const char *path, char *text, size_t cap)
{
	FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
	size_t len;

	if (f == NULL)
		exit(rlctl_fail(
		    RLCTL_ERROR, "key show: %s: %s", path, strerror(errno)));
	setvbuf(f, NULL, _IONBF, 0); /* no copy of the secret in a buffer */
	len = fread(text, 1, cap, f);
	if (ferror(f))
		exit(rlctl_fail(
		    RLCTL_ERROR, "key show: %s: %s", path, strerror(errno)));
	if (f != stdin)
		fclose(f);
	if (len > 0 && text[len - 1] == '\n')
		len--;
	if (len > 0 && text[len - 1] == '\r')
		len--;
	return len;
}

static size_t
env_key(char *text, size_t cap)
{
	const char *value = getenv("RATELIMITLY_AUTH_KEY");
	size_t len;

	if (value == NULL)
		exit(rlctl_fail(RLCTL_USAGE,
		    "key show: name a FILE, or - for standard input, or set "
		    "RATELIMITLY_AUTH_KEY"));
	len = strlen(value);
	if (len > cap)
		len = cap;
	memcpy(text, value, len);
	return len;
}

static json_t *
quotas_json(const struct quotas *q)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "rate_buckets",
	    (json_int_t)q->rate_buckets, "latency_trackers",
	    (json_int_t)q->latency_trackers, "metrics_labels",
	    (json_int_t)q->metrics_labels, "latency_buffer",
	    (json_int_t)q->latency_buffer, "dedup_ttl_ms",
	    (json_int_t)q->dedup_ttl_ms, "rate_window_ms",
	    (json_int_t)q->rate_window_ms);
}

static void
print_json(const struct credential *c, const char *dns)
{
	json_t *out = json_pack("{s:s, s:o, s:s, s:s, s:s, s:o}", "auth",
	    credential_auth_name(c->auth), "key_id",
	    json_sprintf("%" PRIu64, c->key_id), "format",
	    c->format == KEY_FORMAT_1 ? "1" : "unversioned", "profile",
	    credential_profile(c) == PROFILE_V1 ? "v1" : "v2", "dns_name", dns,
	    "quotas", quotas_json(&c->quotas));

	json_dumpf(out, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(out);
}

static void
print_text(const struct credential *c, const char *dns)
{
	const struct quotas *q = &c->quotas;

	printf("auth: %s\nkey_id: %" PRIu64 "\nformat: %s\nprofile: %s\n"
	       "dns_name: %s\nrate_buckets: %u\nlatency_trackers: %u\n"
	       "metrics_labels: %u\nlatency_buffer: %u\n"
	       "dedup_ttl_ms: %u%s\nrate_window_ms: %u\n",
	    credential_auth_name(c->auth), c->key_id,
	    c->format == KEY_FORMAT_1 ? "1" : "unversioned",
	    credential_profile(c) == PROFILE_V1 ? "v1" : "v2", dns,
	    q->rate_buckets, q->latency_trackers, q->metrics_labels,
	    q->latency_buffer, q->dedup_ttl_ms,
	    q->dedup_ttl_ms == 0 ? " (no limit)" : "", q->rate_window_ms);
}

int
rlctl_key(struct rlctl *ctl, int argc, char **argv)
{
	static const struct option longs[] = {
	    {"json", no_argument, NULL, 'j'}, {NULL, 0, NULL, 0}};
	char text[CREDENTIAL_TEXT_MAX + 1], dns[CREDENTIAL_DNS_MAX];
	struct credential cred;
	const char *where;
	size_t len;
	int c, err;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (c != 'j')
			return RLCTL_USAGE; /* getopt has said why */
		ctl->json = 1;
	}
	if (argc - optind < 1 || argc - optind > 2 ||
	    strcmp(argv[optind], "show") != 0)
		return rlctl_fail(RLCTL_USAGE, "key: takes show [FILE]");
	len = argc - optind == 2
		  ? read_key(argv[optind + 1], text, sizeof(text))
		  : env_key(text, sizeof(text));
	where = argc - optind == 2 ? argv[optind + 1] : "RATELIMITLY_AUTH_KEY";
	if (len == 0)
		return rlctl_fail(RLCTL_ERROR, "key show: %s: is empty", where);
	err = credential_parse(text, len, &cred);
	explicit_bzero(text, sizeof(text));
	if (err != 0)
		return rlctl_fail(RLCTL_ERROR, "key show: %s: %s", where,
		    err_str((enum rla_err)err));
	credential_dns_name(&cred, dns);
	if (ctl->json)
		print_json(&cred, dns);
	else
		print_text(&cred, dns);
	credential_wipe(&cred);
	return rlctl_written("key show");
}
