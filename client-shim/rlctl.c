/*
 * rlctl(1): the command line of rl-agent, built on librlshim. This file has
 * the global options, the table of commands and what they share.
 */
#include "client-shim/rlctl.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "Usage: rlctl [--socket PATH] COMMAND [ARGUMENTS]\n"
    "Asks rl-agent, the local sidecar for distributed rate limiting.\n"
    "\n"
    "  check RULE [--key K] [--tokens N] [--timeout MS] [--detail]\n"
    "        [--permit] [--on-failure open|closed]\n"
    "  check --bucket NAME --window MS --limit N [--tokens N]\n"
    "        [--guard NAME:TTL:MAX:BUF:MIN:BELOW] [--tenant T] [--label L]\n"
    "        [--timeout MS] [--detail] [--permit] [--on-failure open|closed]\n"
    "  run RULE [--key K] [--tokens N] [--timeout MS]\n"
    "        [--on-failure open|closed] -- COMMAND [ARGUMENTS]\n"
    "                         runs it when permitted, reports its latency\n"
    "  acquire LIMITER [PERMITS] [--key K] [--max-wait MS] [--timeout MS]\n"
    "        [--permit] [--on-failure open|closed]\n"
    "                         waits for permits of a limiter of this host\n"
    "  errctl begin NAME [--key K] [--timeout MS] [--permit]\n"
    "        [--on-failure open|closed]\n"
    "                         waits when what begins has failed before\n"
    "  errctl success NAME [--key K] [--timeout MS]\n"
    "                         what began last has not failed\n"
    "  report TRACKER MS [--key K] [--tenant T] [--timeout MS]\n"
    "  report --tracker NAME:TTL:MAX:BUF:MIN MS [--tenant T]\n"
    "        [--timeout MS]\n"
    "  status [--timeout MS]  what the agent does\n"
    "  servers [--timeout MS] what it knows of servers, and what is wrong\n"
    "  policy [TENANT] [--rtt MS] [--loss P] [--servers N] [--timeout MS]\n"
    "                         its rounds and deadlines, and an estimate\n"
    "  rules [--timeout MS]   the rules in force, and what came of them\n"
    "  explain RULE [--key K] [--tokens N] [--timeout MS]\n"
    "                         what a check of it would send\n"
    "  limiters [--timeout MS]\n"
    "                         those of this host, and what came of them\n"
    "  metrics [--timeout MS] what is counted, as Prometheus reads it\n"
    "  top [--interval MS] [--count N] [--once] [-b]\n"
    "        [--sort checks|denied|failed|name] [--timeout MS]\n"
    "                         rules, servers and the keys that are denied\n"
    "                         most, as they change; q ends it\n"
    "  ping [--timeout MS]    is an agent there, and how fast it answers\n"
    "  wait [--timeout MS]    until a decision is possible\n"
    "  health [--timeout MS]  is one possible now? exits 0, or 1 with why not\n"
    "  reload [--timeout MS]  the agent loads its configuration again\n"
    "  drain [--timeout MS]   the agent ends after the last check\n"
    "  set-rate LIMITER RATE [--timeout MS]\n"
    "                         permits a second, until a reload changes them\n"
    "  quit [--timeout MS]    ends the agent now; like the last three it\n"
    "                         asks the control socket\n"
    "  bench RULE [--key K] [--keys N] [--order sequential|random]\n"
    "        [--connections C] [--window W] [--rate N] [--tokens N]\n"
    "        [--deadline MS] [--checks N] [--duration TIME] [--warmup N]\n"
    "        [--timeout MS]\n"
    "                         load on the agent, which spends tokens, and how\n"
    "                         fast it answers; by default 5s with 1 in flight,\n"
    "                         asked again when it was answered; TIME is such as\n"
    "                         500ms, 10s or 2m, up to 10080m\n"
    "  key show [FILE]        what is in a key, without the secret\n"
    "\n"
    "  --socket PATH   before the command (default $RL_AGENT_SOCKET, else\n"
    "                  " RL_DEFAULT_SOCKET ")\n"
    "  --control PATH  before the command (default control.sock beside it)\n"
    "  --json          on every command that prints\n"
    "  -h, --help; -V, --version\n"
    "\n"
    "check, acquire and errctl exit 0 allowed, 1 denied, 2 failed, 3\n"
    "cancelled; with --permit 0 if the work may go on, else 1. run exits as\n"
    "the command, or so when it was not permitted. 64 is a usage error. See\n"
    "rlctl(1).\n";

static const struct {
	const char *name;
	rlctl_command *run;
} commands[] = {
    {"check", rlctl_check},
    {"report", rlctl_report},
    {"status", rlctl_status},
    {"servers", rlctl_servers},
    {"policy", rlctl_policy},
    {"rules", rlctl_rules},
    {"explain", rlctl_explain},
    {"run", rlctl_run},
    {"ping", rlctl_ping},
    {"wait", rlctl_wait},
    {"health", rlctl_health},
    {"reload", rlctl_reload},
    {"drain", rlctl_drain},
    {"quit", rlctl_quit},
    {"acquire", rlctl_acquire},
    {"errctl", rlctl_errctl},
    {"limiters", rlctl_limiters},
    {"metrics", rlctl_metrics},
    {"top", rlctl_top},
    {"set-rate", rlctl_set_rate},
    {"bench", rlctl_bench},
    {"key", rlctl_key},
};

/* Whose call the first signal interrupts; one client per process. */
static struct rl_client *interruptible;
static volatile sig_atomic_t signalled;

static void
on_signal(int signo)
{
	(void)signo;
	signalled = 1;
	if (interruptible != NULL)
		rl_interrupt(interruptible);
}

int
rlctl_fail(int status, const char *fmt, ...)
{
	char line[2048];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	fputs("rlctl: ", stderr);
	rlctl_write_name(stderr, line, strlen(line));
	fputc('\n', stderr);
	return status;
}

uint64_t
rlctl_long_number(
    const char *option, const char *text, uint64_t min, uint64_t max)
{
	unsigned long long v;
	char *end;

	errno = 0;
	v = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 ||
	    v < min || v > max)
		exit(rlctl_fail(RLCTL_USAGE,
		    "%s: must be a number in %" PRIu64 "..%" PRIu64
		    ", not \"%s\"",
		    option, min, max, text));
	return v;
}

uint32_t
rlctl_number(const char *option, const char *text, uint32_t min, uint32_t max)
{
	return (uint32_t)rlctl_long_number(option, text, min, max);
}

void
rlctl_no_more(const char *command, int argc, char **argv)
{
	if (optind < argc)
		exit(rlctl_fail(RLCTL_USAGE, "%s: unexpected argument \"%s\"",
		    command, argv[optind]));
}

int
rlctl_written(const char *command)
{
	if (fflush(stdout) == 0)
		return RLCTL_OK;
	return rlctl_fail(
	    RLCTL_ERROR, "%s: cannot write: %s", command, strerror(errno));
}

void
rlctl_watch_signals(void)
{
	/* Once each: when that does not end it, the next one does. */
	struct sigaction sa = {
	    .sa_handler = on_signal, .sa_flags = SA_RESETHAND};

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
}

static struct rl_client *
open_client(struct rlctl *ctl, const char *socket, enum rl_failure on_failure)
{
	const struct rl_options options = {
	    .socket = socket,
	    .name = "rlctl",
	    .timeout_ms = ctl->timeout_ms,
	    .on_failure = on_failure,
	};
	int status = rl_open(&interruptible, &options);

	if (status != RL_OK)
		exit(rlctl_fail(
		    RLCTL_USAGE, "--socket: %s", rl_strerror(status)));
	rlctl_watch_signals();
	return interruptible;
}

struct rl_client *
rlctl_open(struct rlctl *ctl, enum rl_failure on_failure)
{
	return open_client(ctl, ctl->socket, on_failure);
}

const char *
rlctl_socket(const struct rlctl *ctl)
{
	const char *at = ctl->socket;

	if (at == NULL)
		at = getenv("RL_AGENT_SOCKET");
	return at == NULL || *at == '\0' ? RL_DEFAULT_SOCKET : at;
}

const char *
rlctl_control_socket(const struct rlctl *ctl, char *room, size_t size)
{
	const char *at = rlctl_socket(ctl), *slash;

	if (ctl->control != NULL)
		return ctl->control;
	slash = strrchr(at, '/');
	snprintf(room, size, "%.*scontrol.sock",
	    slash != NULL ? (int)(slash - at + 1) : 0, at);
	return room;
}

struct rl_client *
rlctl_open_control(struct rlctl *ctl)
{
	char path[4096];

	return open_client(
	    ctl, rlctl_control_socket(ctl, path, sizeof(path)), RL_CLOSED);
}

int
rlctl_signalled(void)
{
	return signalled;
}

void
rlctl_close(struct rl_client *client)
{
	/* First: a handler must not find a client that is freed. */
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	interruptible = NULL;
	rl_close(client);
}

int
rlctl_call_failed(
    const struct rl_client *client, const char *command, int status)
{
	const char *text = rl_last_text(client);

	return rlctl_fail(RLCTL_ERROR, "%s: %s", command,
	    *text != '\0' ? text : rl_strerror(status));
}

static int
help(void)
{
	fputs(usage, stdout);
	return fflush(stdout) == 0 ? RLCTL_OK : RLCTL_ERROR;
}

/* Options before the command; stops at its name. */
static void
parse_globals(struct rlctl *ctl, int argc, char **argv)
{
	static const struct option longs[] = {
	    {"socket", required_argument, NULL, 's'},
	    {"control", required_argument, NULL, 'c'},
	    {"json", no_argument, NULL, 'j'},
	    {"version", no_argument, NULL, 'V'},
	    {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
	int c;

	while ((c = getopt_long(argc, argv, "+hV", longs, NULL)) != -1) {
		switch (c) {
		case 's':
			ctl->socket = optarg;
			break;
		case 'c':
			ctl->control = optarg;
			break;
		case 'j':
			ctl->json = 1;
			break;
		case 'V':
			puts("rlctl " PACKAGE_VERSION);
			exit(RLCTL_OK);
		case 'h':
			exit(help());
		default:
			exit(RLCTL_USAGE); /* getopt has said why */
		}
	}
}

/* What getopt calls the program in its messages. */
static void
set_title(char **argv, const char *command)
{
	static char title[32];

	snprintf(title, sizeof(title), "rlctl: %s", command);
	argv[0] = title;
}

int
main(int argc, char **argv)
{
	static char name[] = "rlctl";
	struct rlctl ctl = {0};
	size_t i;
	int first;

	setvbuf(stderr, NULL, _IOLBF, BUFSIZ); /* lines stay whole */
	if (argc > 0)
		argv[0] = name;
	parse_globals(&ctl, argc, argv);
	if (optind == argc)
		return rlctl_fail(
		    RLCTL_USAGE, "no command; rlctl --help lists them");
	first = optind;
	optind = 0; /* getopt starts afresh on the command's own words */
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(argv[first], commands[i].name) != 0)
			continue;
		if (argc > first + 1 &&
		    (strcmp(argv[first + 1], "-h") == 0 ||
			strcmp(argv[first + 1], "--help") == 0))
			return help();
		set_title(argv + first, commands[i].name);
		return commands[i].run(&ctl, argc - first, argv + first);
	}
	return rlctl_fail(RLCTL_USAGE,
	    "unknown command \"%s\"; rlctl --help lists them", argv[first]);
}
