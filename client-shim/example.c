/*
 * Asks rl-agent whether one unit of work may go on under a rule.
 *
 *     example RULE [KEY]
 *
 * Prints the decision; exits with 0 when the work may go on, else with 1.
 */
#include <stdio.h>
#include <string.h>

#include "rlshim.h"

int
main(int argc, char **argv)
{
	struct rl_options options = {.name = "example", .timeout_ms = 500};
	struct rl_check check = {0};
	struct rl_client *client;
	struct rl_decision decision;
	int status;

	if (argc < 2 || argc > 3) {
		fprintf(stderr, "usage: example RULE [KEY]\n");
		return 64;
	}
	check.rule = argv[1];
	if (argc == 3) {
		check.key = argv[2];
		check.key_len = strlen(argv[2]);
	}
	status = rl_open(&client, &options);
	if (status != RL_OK) {
		fprintf(stderr, "example: %s\n", rl_strerror(status));
		return 1;
	}
	rl_check(client, &check, &decision, NULL);
	printf("%s, permit %d by %s, reason %s%s%s\n",
	    rl_outcome_name(decision.outcome), decision.permit,
	    rl_source_name(decision.source), rl_reason_name(decision.reason),
	    decision.text[0] != '\0' ? ": " : "", decision.text);
	rl_close(client);
	return decision.permit ? 0 : 1;
}
