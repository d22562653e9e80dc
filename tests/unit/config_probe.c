/*
 * Loads each configuration that it is given and prints one line for each: its
 * error, or "FILE: ok". Exits 0 when all are good, else 78, as rl-agent -t
 * does. For check_schema.py and for hands.
 */
#include <stdio.h>

#include "daemon/config.h"

#define EXIT_CONFIG 78

int
main(int argc, char **argv)
{
	char err[CONFIG_ERR_MAX];
	struct config *config;
	int status = 0;

	for (int i = 1; i < argc; i++) {
		config = config_load(argv[i], err);
		if (config == NULL) {
			puts(err);
			status = EXIT_CONFIG;
			continue;
		}
		printf("%s: ok\n", argv[i]);
		for (size_t k = 0; k < config->warning_count; k++)
			fprintf(stderr, "%s\n", config->warnings[k]);
		config_unref(config);
	}
	return status;
}
