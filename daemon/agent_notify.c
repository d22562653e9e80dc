/* See agent_notify.h. What is to be said is kept as flags until a message with
 * it has left, so that a full queue only delays it. */
#include "daemon/agent_notify.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/agent.h"
#include "daemon/io/notify.h"
#include "daemon/log.h"
#include "daemon/message.h"

#define AGAIN_US 100000
/* Of status; the reason of what is not ready is looked at as often. */
#define STATUS_BURST  5
#define STATUS_MIN_US INT64_C(1000000)
#define STATUS_MAX_US INT64_C(60000000)
/* However short the manager's patience is. */
#define WATCHDOG_MIN_US 1000
/* The way of the last message, and the exit. */
#define STOP_SLACK_US 1000000

enum owed {
	OWED_READY = 1,
	OWED_RELOADING = 2,
	OWED_STOPPING = 4,
	OWED_STATUS = 8,
};

static size_t
add_line(char *out, size_t len, size_t cap, const char *key, const char *value)
{
	int n = snprintf(
	    out + len, cap - len, "%s%s=%s", len > 0 ? "\n" : "", key, value);

	return n > 0 && (size_t)n < cap - len ? len + (size_t)n : len;
}

static size_t
add_time(char *out, size_t len, size_t cap, const char *key, int64_t us)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, us > 0 ? us : 0);
	return add_line(out, len, cap, key, text);
}

/* False: not yet. */
static bool
say_reloading(struct agent_notify *n)
{
	char text[128] = "";
	size_t len = add_line(text, 0, sizeof(text), "RELOADING", "1");

	add_time(text, len, sizeof(text), "MONOTONIC_USEC", n->reload_began);
	if (!notify_send(n->to, text))
		return false;
	n->owed &= ~(unsigned int)OWED_RELOADING;
	return true;
}

/* All other that is owed, in one message. */
static bool
say_rest(struct agent_notify *n)
{
	char text[AGENT_NOTIFY_STATUS_MAX + 128] = "";
	size_t len = 0, cap = sizeof(text);

	if (n->owed & OWED_READY)
		len = add_line(text, len, cap, "READY", "1");
	if (n->owed & OWED_STOPPING) {
		len = add_line(text, len, cap, "STOPPING", "1");
		len = add_time(text, len, cap, "EXTEND_TIMEOUT_USEC",
		    n->drain_until + STOP_SLACK_US - loop_now());
	}
	if (n->owed & OWED_STATUS)
		len = add_line(text, len, cap, "STATUS", n->status);
	if (len > 0 && !notify_send(n->to, text))
		return false;
	n->owed = 0;
	return true;
}

/* Of two states in one message the last would count alone. */
static void
flush(void *arg)
{
	struct agent *a = arg;
	struct agent_notify *n = &a->notify;

	if (((n->owed & OWED_RELOADING) && !say_reloading(n)) || !say_rest(n))
		loop_timer_set(n->again, loop_now() + AGAIN_US);
}

static void
sign_of_life(void *arg)
{
	struct agent *a = arg;
	int64_t half = notify_watchdog_us(a->notify.to) / 2;

	(void)notify_send(a->notify.to, "WATCHDOG=1");
	loop_timer_set(a->notify.watchdog,
	    loop_now() + (half > WATCHDOG_MIN_US ? half : WATCHDOG_MIN_US));
}

/* Whether a decision is possible, and what the last reload came to. */
static void
make_status(const struct agent *a, char out[AGENT_NOTIFY_STATUS_MAX])
{
	const struct config_tenant *tenant;
	char ready[512], reload[AGENT_NOTIFY_STATUS_MAX / 2] = "";
	const char *why;

	tenant = setup_unready(a->setup, &why);
	if (tenant == NULL)
		message_format(ready, sizeof(ready), "A decision is possible");
	else
		message_format(ready, sizeof(ready),
		    "No decision is possible: tenant %s: %s", tenant->name,
		    why);
	if (a->loading.error[0] != '\0')
		message_format(reload, sizeof(reload),
		    "; the last reload failed: %s", a->loading.error);
	else if (a->setup->generation > 1)
		message_format(reload, sizeof(reload),
		    "; the last reload made generation %" PRIu64,
		    a->setup->generation);
	message_format(out, AGENT_NOTIFY_STATUS_MAX, "%s%s", ready, reload);
}

/* It is another one than before: says it, or later. */
static bool
say_status(struct agent *a, const char *text)
{
	struct agent_notify *n = &a->notify;
	uint64_t unsaid = 0;

	if (!errorrate_try(&n->paced, loop_now(), &unsaid)) {
		loop_timer_set(n->status_timer, n->paced.free_at);
		return false;
	}
	memcpy(n->status, text, strlen(text) + 1);
	n->owed |= OWED_STATUS;
	flush(a);
	return true;
}

static void
status_again(void *arg)
{
	agent_notify_status(arg);
}

void
agent_notify_status(struct agent *a)
{
	struct agent_notify *n = &a->notify;
	char text[AGENT_NOTIFY_STATUS_MAX];

	if (!notify_wanted(n->to) || n->stopping || a->setup == NULL)
		return;
	make_status(a, text);
	if (strcmp(text, n->status) != 0 && !say_status(a, text))
		return;
	if (setup_decides(a->setup))
		loop_timer_stop(n->status_timer);
	else
		loop_timer_set(n->status_timer, loop_now() + STATUS_MIN_US);
}

void
agent_notify_started(struct agent *a)
{
	if (a->notify.started)
		return;
	a->notify.started = true;
	a->notify.owed |= OWED_READY;
	flush(a);
	agent_notify_status(a);
}

void
agent_notify_reloading(struct agent *a)
{
	struct agent_notify *n = &a->notify;

	if (!n->started || n->stopping || n->reloading)
		return;
	n->reloading = true;
	n->reload_began = loop_now();
	/* That the one before has ended need not be said any more. */
	n->owed = (n->owed & ~(unsigned int)OWED_READY) | OWED_RELOADING;
	flush(a);
}

void
agent_notify_reloaded(struct agent *a)
{
	struct agent_notify *n = &a->notify;

	if (n->reloading && !n->stopping) {
		n->reloading = false;
		n->owed |= OWED_READY;
		flush(a);
	}
	agent_notify_status(a);
}

void
agent_notify_stopping(struct agent *a, int64_t until)
{
	struct agent_notify *n = &a->notify;

	if (n->stopping)
		return;
	n->stopping = true;
	n->drain_until = until;
	loop_timer_stop(n->status_timer);
	message_format(n->status, sizeof(n->status), "Ending");
	n->owed = OWED_STOPPING | OWED_STATUS;
	flush(a);
}

int
agent_notify_open(struct agent *a)
{
	struct agent_notify *n = &a->notify;
	char err[NOTIFY_ERR_MAX];

	n->to = notify_new(err);
	n->watchdog = loop_timer_new(a->loop, sign_of_life, a);
	n->again = loop_timer_new(a->loop, flush, a);
	n->status_timer = loop_timer_new(a->loop, status_again, a);
	if (n->to == NULL || n->watchdog == NULL || n->again == NULL ||
	    n->status_timer == NULL)
		return -1;
	errorrate_init(&n->paced, STATUS_BURST, STATUS_MIN_US, STATUS_MAX_US);
	if (err[0] != '\0')
		log_warning("notify", "error=\"%s\"", err);
	if (notify_watchdog_us(n->to) > 0)
		loop_timer_set(n->watchdog, loop_now());
	return 0;
}

void
agent_notify_close(struct agent *a)
{
	loop_timer_free(a->notify.status_timer);
	loop_timer_free(a->notify.again);
	loop_timer_free(a->notify.watchdog);
	notify_free(a->notify.to);
}
