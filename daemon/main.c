/*
 * rl-agent(8): options, configuration, and the exit codes. All else is in the
 * agent, which tests link without this file.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sysexits.h>
#include <unistd.h>

#include "daemon/agent.h"
#include "daemon/log.h"
#include "daemon/reload.h"

#define DEFAULT_FILE RLA_SYSCONFDIR "/rl-agent/rl-agent.json"

static const char usage[] =
    "Usage: rl-agent [-htV] [-c FILE]\n"
    "Local sidecar for distributed rate limiting.\n"
    "\n"
    "  -c, --config FILE  configuration (default " DEFAULT_FILE ")\n"
    "  -t, --test         check the configuration and the keys, and exit\n"
    "  -V, --version      print the version\n"
    "  -h, --help         print this\n"
    "\n"
    "Without a file, and with RATELIMITLY_AUTH_KEY in the environment, it\n"
    "runs one tenant \"default\" that takes ad-hoc requests. See rl-agent(8)\n"
    "and rl-agent.json(5).\n";

struct options {
	const char *file; /* NULL: the default one, or the environment */
	bool test;
};

/* What was printed counts only if it arrived. */
static int
printed(void)
{
	if (fflush(stdout) == 0)
		return EX_OK;
	fprintf(stderr, "rl-agent: cannot write: %s\n", strerror(errno));
	return EX_IOERR;
}

static void
options_parse(struct options *o, int argc, char **argv)
{
	static const struct option longs[] = {
	    {"config", required_argument, NULL, 'c'},
	    {"test", no_argument, NULL, 't'},
	    {"version", no_argument, NULL, 'V'},
	    {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
	int c;

	memset(o, 0, sizeof(*o));
	while ((c = getopt_long(argc, argv, "c:tVh", longs, NULL)) != -1) {
		switch (c) {
		case 'c':
			o->file = optarg;
			break;
		case 't':
			o->test = true;
			break;
		case 'V':
			puts(PACKAGE_STRING);
			exit(printed());
		case 'h':
			fputs(usage, stdout);
			exit(printed());
		default:
			exit(EX_USAGE); /* getopt has said why */
		}
	}
	if (optind < argc) {
		fprintf(stderr, "rl-agent: unexpected argument \"%s\"\n",
		    argv[optind]);
		exit(EX_USAGE);
	}
}

/* The file named; else the default file; else the environment. */
static struct config *
config_open(const struct options *o, char err[CONFIG_ERR_MAX])
{
	if (o->file != NULL || access(DEFAULT_FILE, F_OK) == 0)
		return config_load(
		    o->file != NULL ? o->file : DEFAULT_FILE, err);
	if (getenv("RATELIMITLY_AUTH_KEY") != NULL)
		return config_from_environment(err);
	snprintf(err, CONFIG_ERR_MAX,
	    "%s: %s (and neither -c nor RATELIMITLY_AUTH_KEY is given)",
	    DEFAULT_FILE, strerror(errno));
	return NULL;
}

/* Were one of them closed, a socket would get its number, and our log. */
static void
open_standard_files(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
}

/* Keys are in this memory: no core, no attaching by others of this uid. */
static void
protect_memory(void)
{
	const struct rlimit none = {0, 0};

	setrlimit(RLIMIT_CORE, &none);
	prctl(PR_SET_DUMPABLE, 0);
}

/* As many descriptors as the hard limit grants. */
static void
raise_descriptors(void)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim) != 0)
		return;
	lim.rlim_cur = lim.rlim_max;
	setrlimit(RLIMIT_NOFILE, &lim);
}

static void
hold_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

static int
run(struct config *config)
{
	char err[AGENT_ERR_MAX];
	struct agent *agent;
	struct reload *reload;
	int rc;

	agent = agent_new(config, err);
	if (agent == NULL) {
		log_error("start", "error=\"%s\"", err);
		config_unref(config);
		return EXIT_FAILURE;
	}
	reload = reload_new(agent);
	if (reload == NULL) {
		log_error("start", "error=\"out of memory\"");
		agent_free(agent);
		return EXIT_FAILURE;
	}
	rc = agent_run(agent);
	hold_signals(); /* a second one must not make a failure of the end */
	reload_free(reload);
	agent_free(agent);
	return rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* What the environment passes, the sockets of systemd, is not there yet. */
static int
test(struct config *config)
{
	char err[DISPATCH_ERR_MAX];
	int bad = dispatch_check_ports(config, err);

	if (bad)
		log_refusal(err);
	else
		printf("%s: ok\n", config->source);
	config_unref(config);
	return bad ? EX_CONFIG : printed();
}

int
main(int argc, char **argv)
{
	static char name[] = "rl-agent";
	char err[CONFIG_ERR_MAX];
	struct options options;
	struct config *config;

	open_standard_files();
	log_find_journal();
	if (argc > 0)
		argv[0] = name; /* as getopt calls it */
	options_parse(&options, argc, argv);
	protect_memory();
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN); /* until it means to load again */
	config = config_open(&options, err);
	if (config == NULL) {
		log_refusal(err);
		return EX_CONFIG;
	}
	agent_apply_level(config);
	agent_log_warnings(config);
	if (options.test)
		return test(config);
	raise_descriptors();
	return run(config);
}
