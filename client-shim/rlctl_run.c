/*
 * rlctl run: a check, and a command when it is permitted. rlctl is then the
 * command's parent and nothing more: it has no connection, passes signals on,
 * and exits as the command did. From the decision to its own end it takes
 * signals by sigwaitinfo() alone, so none comes between two steps.
 */
#include "client-shim/rlctl.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client-shim/rlctl_options.h"

/* As shells have it. */
#define CANNOT_EXECUTE 126
#define NOT_FOUND      127
#define BY_SIGNAL      128

/* The command is over: whoever waits for it must not wait for an agent. */
#define REPORT_MS 1000

struct run {
	struct rl_check check;
	enum rl_failure on_failure;
	char **command;
	struct rl_work work;
	/* What the command inherits of signals: as it was before rlctl. */
	struct sigaction sigint, sigterm, sigchld;
	sigset_t mask;
};

static void
take_option(struct rlctl *ctl, struct run *run, int c)
{
	switch (c) {
	case 1: /* an argument before -- */
		if (run->check.rule != NULL)
			exit(rlctl_fail(RLCTL_USAGE,
			    "run: unexpected argument \"%s\"; the command "
			    "comes after --",
			    optarg));
		run->check.rule = optarg;
		break;
	case 'k':
		run->check.key = optarg;
		run->check.key_len = strlen(optarg);
		break;
	case 'n':
		run->check.tokens = rlctl_options_tokens(optarg);
		break;
	case 't':
		ctl->timeout_ms = rlctl_options_timeout(optarg);
		break;
	case 'f':
		run->on_failure = rlctl_options_failure(optarg);
		break;
	case 'j':
		ctl->json = 1;
		break;
	default:
		exit(RLCTL_USAGE); /* getopt has said why */
	}
}

/* In order, for only what comes before -- is rlctl's. */
static void
run_parse(struct rlctl *ctl, struct run *run, int argc, char **argv)
{
	static const struct option longs[] = {
	    {"key", required_argument, NULL, 'k'},
	    {"tokens", required_argument, NULL, 'n'},
	    {"timeout", required_argument, NULL, 't'},
	    {"on-failure", required_argument, NULL, 'f'},
	    {"json", no_argument, NULL, 'j'}, {NULL, 0, NULL, 0}};
	int c;

	memset(run, 0, sizeof(*run));
	while ((c = getopt_long(argc, argv, "-", longs, NULL)) != -1)
		take_option(ctl, run, c);
	if (run->check.rule == NULL)
		exit(rlctl_fail(RLCTL_USAGE, "run: name a rule"));
	if (optind == argc)
		exit(rlctl_fail(RLCTL_USAGE, "run: name a command after --"));
	run->command = argv + optind;
}

/* All that end or steer a process, and the end of the command. */
static void
signals_of_run(sigset_t *set)
{
	static const int all[] = {
	    SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCHLD};
	size_t i;

	sigemptyset(set);
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		sigaddset(set, all[i]);
}

/* The caller gave up, but too late to make it a Cancelled. */
static int
given_up(void)
{
	sigset_t pending;

	sigpending(&pending);
	return rlctl_signalled() || sigismember(&pending, SIGINT) ||
	       sigismember(&pending, SIGTERM);
}

/* RLCTL_OK: the command may run, and signals wait. Else the exit status. */
static int
admit(struct rlctl *ctl, struct run *run)
{
	struct rl_client *client;
	struct rl_decision d;
	sigset_t set;

	sigaction(SIGINT, NULL, &run->sigint);
	sigaction(SIGTERM, NULL, &run->sigterm);
	client = rlctl_open(ctl, run->on_failure);
	rl_admit(client, &run->check, &d, NULL, &run->work);
	signals_of_run(&set);
	sigprocmask(SIG_BLOCK, &set, &run->mask);
	rlctl_close(client);
	/* Standard output is the command's. That it runs although nobody
	 * allowed it must be seen, too. */
	if (d.outcome != RL_ALLOWED)
		rlctl_print(stderr, ctl, &d, NULL);
	if (!d.permit)
		return (int)d.outcome;
	if (given_up())
		return rlctl_fail(
		    RL_CANCELLED, "run: interrupted before the command began");
	return RLCTL_OK;
}

/* In the child: becomes the command, or writes why not. */
__attribute__((noreturn)) static void
become(const struct run *run, int failure)
{
	int error;
	ssize_t n;

	sigaction(SIGINT, &run->sigint, NULL);
	sigaction(SIGTERM, &run->sigterm, NULL);
	sigaction(SIGCHLD, &run->sigchld, NULL);
	sigprocmask(SIG_SETMASK, &run->mask, NULL);
	execvp(run->command[0], run->command);
	error = errno;
	n = write(failure, &error, sizeof(error));
	(void)n;
	_exit(CANNOT_EXECUTE);
}

/* The command's pid once it is executed; else -1 and errno. */
static pid_t
start(struct run *run)
{
	const struct sigaction keep = {.sa_handler = SIG_DFL};
	int ends[2], error = 0;
	ssize_t n;
	pid_t pid;

	/* If it was ignored, no child could be waited for. */
	sigaction(SIGCHLD, &keep, &run->sigchld);
	if (pipe2(ends, O_CLOEXEC) != 0)
		return -1;
	pid = fork();
	if (pid == 0)
		become(run, ends[1]);
	if (pid < 0)
		error = errno;
	close(ends[1]);
	do
		n = read(ends[0], &error, sizeof(error));
	while (n < 0 && errno == EINTR);
	close(ends[0]);
	if (error == 0)
		return pid;
	if (pid > 0)
		waitpid(pid, NULL, 0);
	errno = error;
	return -1;
}

/*
 * Until the command is over. What the kernel sends, from the keys of the
 * terminal, goes to its whole process group, so the command has got it; what
 * somebody sends to rlctl is meant for the command.
 */
static int
await(pid_t pid)
{
	siginfo_t info;
	sigset_t set;
	pid_t got;
	int status;

	signals_of_run(&set);
	while ((got = waitpid(pid, &status, WNOHANG)) == 0) {
		if (sigwaitinfo(&set, &info) > 0 && info.si_signo != SIGCHLD &&
		    info.si_code <= 0)
			kill(pid, info.si_signo);
	}
	if (got < 0)
		return rlctl_fail(CANNOT_EXECUTE, "run: lost the command: %s",
		    strerror(errno));
	return WIFSIGNALED(status) ? BY_SIGNAL + WTERMSIG(status)
				   : WEXITSTATUS(status);
}

/*
 * On a connection of its own: the command may have taken hours. Signals still
 * wait, so the sample is not lost to the key that ended the command. Nothing
 * here changes the exit status.
 */
static void
report(const struct rlctl *ctl, struct run *run)
{
	const struct rl_options options = {
	    .socket = ctl->socket, .name = "rlctl", .timeout_ms = REPORT_MS};
	struct rl_client *client;
	int status = rl_open(&client, &options);

	if (status != RL_OK) {
		rlctl_fail(status, "run: no report: %s", rl_strerror(status));
		return;
	}
	status = rl_finish(client, &run->work);
	if (status != RL_OK)
		rlctl_call_failed(client, "run: no report", status);
	rl_close(client);
}

int
rlctl_run(struct rlctl *ctl, int argc, char **argv)
{
	struct run run;
	pid_t pid;
	int status;

	run_parse(ctl, &run, argc, argv);
	status = admit(ctl, &run);
	if (status != RLCTL_OK)
		return status;
	pid = start(&run);
	if (pid < 0)
		return rlctl_fail(errno == ENOENT ? NOT_FOUND : CANNOT_EXECUTE,
		    "run: %s: %s", run.command[0], strerror(errno));
	status = await(pid);
	report(ctl, &run);
	return status;
}
