/* See discovery_log.h; all lines share one pace. */
#include "daemon/discovery_log.h"

#include <inttypes.h>

#include "daemon/io/loop.h"
#include "daemon/log.h"

#define LINES_BURST 5
#define LINES_MIN   INT64_C(1000000)
#define LINES_MAX   INT64_C(60000000)

void
discovery_log_init(struct discovery_log *l, const char *tenant)
{
	*l = (struct discovery_log){.tenant = tenant};
	errorrate_init(&l->lines, LINES_BURST, LINES_MIN, LINES_MAX);
}

static bool
may_say(struct discovery_log *l)
{
	return log_may(LOG_LEVEL_INFO, &l->lines, loop_now(), &l->unsaid);
}

void
discovery_log_error(
    struct discovery_log *l, uint32_t servers, const char *error)
{
	if (!may_say(l))
		return;
	log_warning("discovery",
	    "tenant=\"%s\" ok=no servers=%u unsaid=%" PRIu64 " error=\"%s\"",
	    l->tenant, servers, l->unsaid, error);
	l->unsaid = 0;
	l->error_told = true;
}

void
discovery_log_ok(struct discovery_log *l, uint32_t servers)
{
	if (!l->error_told)
		return;
	log_info(
	    "discovery", "tenant=\"%s\" ok=yes servers=%u", l->tenant, servers);
	l->error_told = false;
}

void
discovery_log_members(
    struct discovery_log *l, uint32_t servers, uint32_t dropped)
{
	if (!may_say(l))
		return;
	log_info("members",
	    "tenant=\"%s\" servers=%u dropped=%u unsaid=%" PRIu64, l->tenant,
	    servers, dropped, l->unsaid);
	l->unsaid = 0;
}
