/*
 * The running sandbox: keys, servers, zone, commands and signals on one event
 * loop. Owns everything that main() does not.
 */
#ifndef SANDBOX_SANDBOX_H
#define SANDBOX_SANDBOX_H

struct options;

/*
 * Serves until a signal, "quit" or the end of the commands. Returns the exit
 * status; errors are one line on standard error.
 */
int sandbox_run(const struct options *options);

#endif
