/* The commands are a table; the reader splits lines out of a bounded buffer. */
#include "sandbox/command.h"

#include <errno.h>
#include <event2/event.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sandbox/cluster.h"
#include "sandbox/dnsd.h"
#include "sandbox/events.h"
#include "sandbox/number.h"

#define LINE_LEN 256
#define MAX_ARGS 3 /* the command included */

struct command {
	struct event_base *base;
	struct event *event;
	struct command_target target;
	struct events *events;
	size_t len;
	bool too_long; /* skip up to the newline */
	char line[LINE_LEN];
};

/* What a command works on. */
struct call {
	const struct command_target *target;
	struct server *server; /* NULL for those without a server */
	size_t index;
	const char *value;
	enum fault fault;
};

/* Does it; returns NULL, or why not. */
typedef const char *(*command_fn)(const struct call *call);

static const char *
run_stop(const struct call *call)
{
	server_stop(call->server);
	return NULL;
}

static const char *
run_start(const struct call *call)
{
	if (server_start(call->server, NULL) < 0)
		return strerror(errno);
	return NULL;
}

static const char *
run_fault(const struct call *call)
{
	double v;

	if (fault_parse(call->fault, call->value, &v) < 0)
		return fault_refusal(call->fault);
	server_set_fault(call->server, call->fault, v);
	return NULL;
}

static const char *
run_publish(const struct call *call)
{
	if (call->target->zone == NULL)
		return "there is no --dns";
	dnsd_publish(call->target->zone, call->index, true);
	return NULL;
}

static const char *
run_withdraw(const struct call *call)
{
	if (call->target->zone == NULL)
		return "there is no --dns";
	dnsd_publish(call->target->zone, call->index, false);
	return NULL;
}

static const char *
run_nothing(const struct call *call)
{
	(void)call;
	return NULL;
}

static const struct {
	const char *name;
	int args; /* 0, 1: a server, 2: a server and a value */
	command_fn run;
	enum fault fault; /* of run_fault */
} commands[] = {{"stop", 1, run_stop, 0}, {"start", 1, run_start, 0},
    {"withdraw", 1, run_withdraw, 0}, {"publish", 1, run_publish, 0},
    {"counters", 0, run_nothing, 0}, {"quit", 0, run_nothing, 0},
#define FAULT_COMMAND(id, name, kind, help) {name, 2, run_fault, id},
    FAULTS(FAULT_COMMAND)
#undef FAULT_COMMAND
};
#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static json_t *
refusal(const char *why)
{
	return json_pack("{s:b,s:s}", "ok", 0, "error", why);
}

static json_t *
success(const char *name, const struct call *call)
{
	json_t *answer = json_pack("{s:b,s:s}", "ok", 1, "command", name);

	if (call->server != NULL)
		json_object_set_new(
		    answer, "server", json_integer((json_int_t)call->index));
	else if (strcmp(name, "counters") == 0)
		json_object_set_new(answer, "counters",
		    cluster_counters(call->target->cluster));
	return answer;
}

json_t *
command_run(const struct command_target *target, char *line, bool *quit)
{
	struct call call = {.target = target};
	char *args[MAX_ARGS] = {NULL}, *save = NULL, *word;
	const char *why;
	uint64_t index;
	size_t i;
	int n = 0;

	for (word = strtok_r(line, " \t\r", &save); word != NULL;
	     word = strtok_r(NULL, " \t\r", &save)) {
		if (n == MAX_ARGS)
			return refusal("too many words");
		args[n++] = word;
	}
	for (i = 0; n > 0 && i < COMMANDS; i++)
		if (strcmp(commands[i].name, args[0]) == 0)
			break;
	if (n == 0 || i == COMMANDS)
		return refusal("no such command");
	if (n - 1 != commands[i].args)
		return refusal("wrong number of arguments");
	if (commands[i].args > 0) {
		if (number_parse(
			args[1], 0, target->cluster->count - 1, &index) < 0)
			return refusal("no such server");
		call.index = (size_t)index;
		call.server = target->cluster->servers[index];
		call.value = args[2];
	}
	call.fault = commands[i].fault;
	why = commands[i].run(&call);
	if (why != NULL)
		return json_pack("{s:b,s:o}", "ok", 0, "error",
		    json_sprintf("%s: %s", commands[i].name, why));
	*quit = strcmp(commands[i].name, "quit") == 0;
	return success(commands[i].name, &call);
}

/* A whole line is there. True when it was the last one. */
static bool
run_line(struct command *c)
{
	bool quit = false;
	json_t *answer;

	c->line[c->len] = '\0';
	if (c->too_long)
		answer = refusal("the line is too long");
	else if (strlen(c->line) != c->len)
		answer = refusal("the line has a NUL");
	else
		answer = command_run(&c->target, c->line, &quit);
	(void)events_print(c->events, answer);
	c->len = 0;
	c->too_long = false;
	return quit;
}

static void
on_input(evutil_socket_t fd, short what, void *arg)
{
	struct command *c = arg;
	char bytes[LINE_LEN];
	ssize_t i, n = read(fd, bytes, sizeof(bytes));

	(void)what;
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		if (c->len > 0) /* the last line has no newline */
			(void)run_line(c);
		event_base_loopbreak(c->base);
	}
	for (i = 0; i < n; i++) {
		if (bytes[i] == '\n') {
			if (!run_line(c))
				continue;
			event_base_loopbreak(c->base);
			return;
		}
		if (c->len < LINE_LEN - 1)
			c->line[c->len++] = bytes[i];
		else
			c->too_long = true;
	}
}

struct command *
command_new(struct event_base *base, int fd,
    const struct command_target *target, struct events *events)
{
	struct command *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->base = base;
	c->target = *target;
	c->events = events;
	c->event = event_new(base, fd, EV_READ | EV_PERSIST, on_input, c);
	if (c->event == NULL || event_add(c->event, NULL) < 0) {
		command_free(c);
		return NULL;
	}
	return c;
}

void
command_free(struct command *c)
{
	if (c == NULL)
		return;
	if (c->event != NULL)
		event_free(c->event);
	free(c);
}
