/* One table of the common options; a command names those that it takes. */
#include "client-shim/rlctl_options.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static const struct option known[] = {
    {"timeout", required_argument, NULL, 't'},
    {"tenant", required_argument, NULL, 'T'},
    {"tracker", required_argument, NULL, 'r'},
    {"key", required_argument, NULL, 'k'},
    {"tokens", required_argument, NULL, 'n'},
    {"max-wait", required_argument, NULL, 'w'},
    {"on-failure", required_argument, NULL, 'f'},
    {"permit", no_argument, NULL, 'p'},
    {"json", no_argument, NULL, 'j'},
};

#define KNOWN (sizeof(known) / sizeof(known[0]))

#define YEAR_MS 31536000000

uint32_t
rlctl_options_timeout(const char *text)
{
	return rlctl_number("--timeout", text, 1, UINT32_MAX);
}

uint32_t
rlctl_options_tokens(const char *text)
{
	return rlctl_number("--tokens", text, 1, 65535);
}

enum rl_failure
rlctl_options_failure(const char *text)
{
	if (strcmp(text, "open") == 0)
		return RL_OPEN;
	if (strcmp(text, "closed") != 0)
		exit(rlctl_fail(RLCTL_USAGE,
		    "--on-failure: must be open or closed, not \"%s\"", text));
	return RL_CLOSED;
}

static void
take_option(struct rlctl *ctl, struct rlctl_options *out, int c)
{
	switch (c) {
	case 't':
		ctl->timeout_ms = rlctl_options_timeout(optarg);
		break;
	case 'T':
		out->tenant = optarg;
		break;
	case 'r':
		out->tracker = optarg;
		break;
	case 'k':
		out->key = optarg;
		break;
	case 'n':
		out->tokens = rlctl_options_tokens(optarg);
		break;
	case 'w':
		out->no_longer = 1;
		out->max_wait_ms =
		    rlctl_long_number("--max-wait", optarg, 0, YEAR_MS);
		break;
	case 'f':
		out->on_failure = rlctl_options_failure(optarg);
		break;
	case 'p':
		out->by_permit = 1;
		break;
	case 'j':
		ctl->json = 1;
		break;
	default:
		exit(RLCTL_USAGE); /* getopt has said why */
	}
}

void
rlctl_options(struct rlctl *ctl, struct rlctl_options *out, int argc,
    char **argv, const char *which)
{
	struct option longs[KNOWN + 1] = {{0}};
	size_t i, n = 0;
	int c;

	memset(out, 0, sizeof(*out));
	for (i = 0; i < KNOWN; i++) {
		if (strchr(which, known[i].val) != NULL)
			longs[n++] = known[i];
	}
	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1)
		take_option(ctl, out, c);
}

void
rlctl_options_alone(struct rlctl *ctl, const char *command, int argc,
    char **argv, const char *which)
{
	struct rlctl_options none;

	rlctl_options(ctl, &none, argc, argv, which);
	rlctl_no_more(command, argc, argv);
}
