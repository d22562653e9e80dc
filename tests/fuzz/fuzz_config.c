/*
 * Bytes as a configuration. Either it is refused with one printable line that
 * holds no key, or it is whole: it hashes the same again, its rules compile,
 * and each builds a request that fits or says why not.
 */
#include "daemon/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/ratelimiter.h"
#include "daemon/rules.h"
#include "proto/err.h"
#include "proto/packet.h"
#include "tests/unit/config_fixture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
require(int holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "config: does not hold: %s\n", what);
		abort();
	}
}

static void
require_line(const char *text)
{
	require(text[0] != '\0', "there is a reason");
	for (; *text != '\0'; text++)
		require((unsigned char)*text >= 0x20 && *text != 0x7F,
		    "one printable line");
}

static void
build(struct rules *rules, const struct config *config,
    const struct config_rule *rule)
{
	static struct rules_request request;
	const struct config_tenant *tenant = &config->tenants[rule->tenant];
	const struct rules_caller caller = {.uid = 1,
	    .gid = 2,
	    .listener = config->listeners[0].name,
	    .key = (const uint8_t *)"k\0y",
	    .key_len = 3};
	char text[RULES_TEXT_MAX] = "";
	uint8_t pdu[PACKET_MAX], key[RULES_LOCAL_KEY_MAX];
	size_t len = SIZE_MAX;

	require(rules_local_key(rules, rule, &caller, key, &len) == 0 &&
		    len <= RULES_LOCAL_KEY_MAX,
	    "a caller has a local limiter");
	if (rules_build(rules, rule, &caller, 1, &request, text) != 0) {
		require_line(text);
		return;
	}
	require(pdu_encode_request(tenant->profile, &request.rate, pdu,
		    PACKET_MAX - packet_overhead(tenant->cred.auth), &len) == 0,
	    "a request that was built can be encoded");
	for (size_t i = 0; i < request.rate.resource_count; i++)
		require(request.resource_names[i].len >= 1 &&
			    request.resource_names[i].len <= CONFIG_NAME_MAX,
		    "a bucket has a name");
}

static void
require_path(const char *path)
{
	require(path[0] == '/' && strstr(path, "//") == NULL &&
		    strstr(path, "/./") == NULL,
	    "a path is short");
	require(path[strlen(path) - 1] != '/', "a path of a file");
}

static void
require_rate(const struct config_rate *r)
{
	require(r->rate >= RATELIMITER_MIN_RATE &&
		    r->rate <= RATELIMITER_MAX_RATE &&
		    r->burst_us >= RATELIMITER_MIN_BURST_US &&
		    r->burst_us <= RATELIMITER_MAX_BURST_US &&
		    r->max_keys >= 1 && r->max_keys <= 1000000,
	    "a limiter is in its range");
}

static void
require_limiters(const struct config *config)
{
	for (size_t i = 0; i < config->limiter_count; i++) {
		const struct config_limiter *l = &config->limiters[i];

		require_rate(&l->is);
		require(config_limiter(config, l->name, strlen(l->name)) == l,
		    "a limiter is found by its name");
	}
	for (size_t i = 0; i < config->error_control_count; i++) {
		const struct config_error_control *e =
		    &config->error_controls[i];

		require(e->min_us > 0 && e->min_us <= e->max_us &&
			    e->max_us <= INT64_C(3600000000) &&
			    e->burst <= 1000000 && e->max_keys >= 1 &&
			    e->max_keys <= 1000000,
		    "an error control is in its range");
		require(
		    config_error_control(config, e->name, strlen(e->name)) == e,
		    "an error control is found by its name");
	}
}

static void
use(const struct config *config)
{
	struct rules *rules = rules_new(config);

	require(rules != NULL, "rules compile");
	require(config->tenant_count >= 1, "a tenant");
	require(config->listener_count >= 1, "a listener");
	require(config->control.path != NULL, "a control socket");
	for (size_t i = 0; i < config->listener_count; i++)
		require_path(config->listeners[i].path);
	for (size_t i = 0; i < config->rule_count; i++) {
		const struct config_rule *rule = &config->rules[i];

		if (rule->on_failure == FAILURE_LOCAL)
			require_rate(&rule->local);
		require(
		    config_rule(config, rule->name, strlen(rule->name)) == rule,
		    "a rule is found by its name");
		build(rules, config, rule);
	}
	require_limiters(config);
	for (size_t i = 0; i < config->warning_count; i++)
		require_line(config->warnings[i]);
	rules_free(rules);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char err[CONFIG_ERR_MAX] = "";
	struct config *config, *again;

	fixture_keys();
	config = config_parse((const char *)data, size, "f", err);
	if (config == NULL) {
		require_line(err);
		require(strstr(err, strchr(KEY_V1, '1') + 1) == NULL, "no key");
		return 0;
	}
	use(config);
	again = config_parse((const char *)data, size, "f", err);
	require(again != NULL, "the same again");
	require(memcmp(config->hash, again->hash, CONFIG_HASH_LEN) == 0,
	    "the same hash");
	require(config_equal(config, again), "nothing is different");
	config_unref(again);
	config_unref(config);
	return 0;
}
