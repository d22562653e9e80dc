/* rl-sandbox: a server for development and tests, and a maker of keys. */
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "sandbox/keygen.h"
#include "sandbox/options.h"
#include "sandbox/sandbox.h"

int
main(int argc, char **argv)
{
	static struct options options;
	char why[OPTIONS_WHY];

	if (argc > 1 && strcmp(argv[1], "keygen") == 0)
		return keygen_main(argc - 1, argv + 1);
	switch (options_parse(argc, argv, &options, why)) {
	case OPTIONS_RUN:
		return sandbox_run(&options);
	case OPTIONS_HELP:
		fputs(options_help(), stdout);
		return fflush(stdout) != 0;
	case OPTIONS_VERSION:
		printf("rl-sandbox %s\n", PACKAGE_VERSION);
		return fflush(stdout) != 0;
	case OPTIONS_BAD:
		break;
	}
	fprintf(stderr, "rl-sandbox: %s\n", why);
	return EX_USAGE;
}
