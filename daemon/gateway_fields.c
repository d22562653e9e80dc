/* See gateway_fields.h. */
#include "daemon/gateway_fields.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/rules.h"

/* "NAME.INDEX" in quotes: every byte may become three. */
#define NAME_TEXT_MAX (3 * CONFIG_NAME_MAX + 16)
#define ITEM_MAX      (NAME_TEXT_MAX + 64)

/* A string of structured fields: what it cannot hold is percent-encoded. */
static void
put_name(const char *name, size_t index, char out[NAME_TEXT_MAX])
{
	static const char digits[] = "0123456789ABCDEF";
	char *at = out;

	*at++ = '"';
	for (; *name != '\0'; name++) {
		const unsigned char c = (unsigned char)*name;

		if (c == '"' || c == '\\') {
			*at++ = '\\';
			*at++ = (char)c;
		} else if (c < ' ' || c > '~' || c == '%') {
			*at++ = '%';
			*at++ = digits[c >> 4];
			*at++ = digits[c & 0xf];
		} else {
			*at++ = (char)c;
		}
	}
	snprintf(at, 16, ".%zu\"", index);
}

static void
put_item(char out[GATEWAY_FIELD_MAX], const char *item)
{
	const char *comma = out[0] != '\0' ? ", " : "";

	if (strlen(out) + strlen(comma) + strlen(item) < GATEWAY_FIELD_MAX)
		strcat(strcat(out, comma), item);
}

uint32_t
gateway_fields_seconds(uint32_t ms)
{
	return ms / 1000 + (ms % 1000 != 0);
}

void
gateway_fields_policy(
    const struct config_rule *rule, char out[GATEWAY_FIELD_MAX])
{
	char name[NAME_TEXT_MAX], item[ITEM_MAX];

	out[0] = '\0';
	for (size_t i = 0; i < rule->resource_count; i++) {
		const struct config_resource *r = &rule->resources[i];

		put_name(rule->name, i, name);
		if (r->window_ms % 1000 == 0)
			snprintf(item, sizeof(item),
			    "%s;q=%" PRIu32 ";w=%" PRIu32, name, r->limit,
			    r->window_ms / 1000);
		else
			snprintf(item, sizeof(item), "%s;q=%" PRIu32, name,
			    r->limit);
		put_item(out, item);
	}
}

static uint32_t
left_of(const struct ipc_resource_result *r)
{
	return r->actual_rate < r->limit ? r->limit - r->actual_rate : 0;
}

void
gateway_fields_limit(const struct config_rule *rule,
    const struct ipc_decision *d, char out[GATEWAY_FIELD_MAX])
{
	char name[NAME_TEXT_MAX], item[ITEM_MAX];

	out[0] = '\0';
	if ((d->has & IPC_HAS_DETAIL) == 0)
		return;
	for (size_t i = 0; i < d->resource_count; i++) {
		const struct ipc_resource_result *r = &d->resources[i];
		const uint32_t wait = rules_retry_after_ms(r->window_ms,
		    r->limit, r->tokens, r->actual_rate, r->deficit);

		put_name(rule->name, i, name);
		if (wait > 0)
			snprintf(item, sizeof(item),
			    "%s;r=%" PRIu32 ";t=%" PRIu32, name, left_of(r),
			    gateway_fields_seconds(wait));
		else
			snprintf(item, sizeof(item), "%s;r=%" PRIu32, name,
			    left_of(r));
		put_item(out, item);
	}
}
