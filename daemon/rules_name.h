/*
 * A name with placeholders, cut into its parts once so that filling it in for
 * a caller is copying. Owned by compiled rules; borrows the configuration.
 */
#ifndef DAEMON_RULES_NAME_H
#define DAEMON_RULES_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/rules.h"
#include "daemon/template.h"

/* A piece of text, or a placeholder. */
struct rules_part {
	enum template_part is;
	const char *text;
	size_t len;
};

struct rules_name {
	const char *kind;   /* as in: bucket "checkout:{key}" needs a key */
	const char *source; /* as it is in the configuration */
	size_t count;
	struct rules_part *parts;
	/* The name, when it is the same for every caller. */
	bool is_fixed;
	struct ipc_str fixed;
	uint8_t *fixed_room;
};

/*
 * Of a name that config_check_template() let through. Returns 0, or RLA_EINVAL
 * for what can never be filled in, or RLA_ENOMEM. Either way
 * rules_name_fini() frees what there is.
 */
int rules_name_init(struct rules_name *n, const char *kind, const char *source);
void rules_name_fini(struct rules_name *n);

/*
 * Fills it in. out->bytes is room, or the name's own when it is fixed.
 * Returns 0 or RLA_EINVAL with a text.
 */
int rules_expand(const struct rules_name *n, const struct rules_caller *caller,
    uint8_t room[CONFIG_NAME_MAX], struct ipc_str *out,
    char text[RULES_TEXT_MAX]);

/* The placeholders in it: 1 << template_part each. */
uint8_t rules_name_varies(const struct rules_name *n);

#endif
