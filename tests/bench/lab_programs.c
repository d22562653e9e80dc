/*
 * The programs under test: the sandbox, whose first line tells where it is,
 * and agents, each with a configuration and a socket of its own.
 */
#include "tests/bench/lab.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#define WAIT_STEP_MS 250

/* A file in the folder, for what a daemon writes. */
static int
log_open(struct lab *lab, char path[96])
{
	int fd;

	snprintf(path, 96, "%s/%u.log", lab->dir, ++lab->started);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	return fd >= 0 ? fd : lab_fail("%s", path);
}

/* What a daemon wrote before it failed, to our stderr. */
static void
log_show(const char *path)
{
	FILE *file = fopen(path, "r");
	char line[256];

	while (file != NULL && fgets(line, sizeof(line), file) != NULL)
		fputs(line, stderr);
	if (file != NULL)
		fclose(file);
}

static int
parse_server(json_t *json, struct lab_server *out)
{
	const char *id, *address, *port;

	if (json_unpack(json, "{s:s, s:[s]}", "server_id", &id, "addresses",
		&address) != 0)
		return -1;
	port = strrchr(address, ':');
	out->id = strtoull(id, NULL, 10);
	out->port = (uint16_t)(port != NULL ? strtoul(port + 1, NULL, 10) : 0);
	return out->port != 0 ? 0 : -1;
}

/* The first line of the sandbox: its servers, each at one address. */
static int
parse_sandbox(const char *line, unsigned wanted, struct lab_sandbox *out)
{
	json_t *root = json_loads(line, 0, NULL);
	json_t *servers = json_object_get(root, "servers");
	int rc = json_array_size(servers) == wanted ? 0 : -1;

	out->count = wanted;
	for (unsigned i = 0; i < wanted && rc == 0; i++)
		rc = parse_server(json_array_get(servers, i), &out->servers[i]);
	json_decref(root);
	return rc;
}

static const char *
program(const char *variable, const char *otherwise)
{
	const char *path = getenv(variable);

	return path != NULL ? path : otherwise;
}

int
lab_start_sandbox(
    struct lab *lab, const struct lab_wanted *wanted, struct lab_sandbox *out)
{
	const char *path = program("RLA_SANDBOX", "./rl-sandbox");
	char delay[16], cluster[16], log[96], line[1024];
	char *argv[] = {(char *)path, "--key-file", lab->key_path, "--delay",
	    delay, "--cluster", cluster, "--server", "0", "--drop",
	    wanted->oldest_dead ? "1" : "0", NULL};
	int ends[2], err = log_open(lab, log);
	ssize_t n;

	if (err < 0)
		return -1;
	if (pipe2(ends, O_CLOEXEC) != 0) {
		close(err);
		return lab_fail("pipe");
	}
	snprintf(delay, sizeof(delay), "%u", wanted->delay_ms);
	snprintf(cluster, sizeof(cluster), "%u", wanted->servers);
	out->pid = lab_spawn(lab, argv, NULL, ends[1], err);
	close(ends[1]);
	close(err);
	n = out->pid > 0 ? lab_read_line(ends[0], line, sizeof(line)) : -1;
	close(ends[0]);
	if (n > 0 && parse_sandbox(line, wanted->servers, out) == 0)
		return 0;
	log_show(log);
	errno = 0;
	return lab_fail("%s does not start", path);
}

static void
write_servers(FILE *file, const struct lab_sandbox *sandbox)
{
	for (unsigned i = 0; i < sandbox->count; i++)
		fprintf(file,
		    "%s{\"id\": \"%" PRIu64
		    "\", \"address\": \"127.0.0.1:%u\"}",
		    i > 0 ? ", " : "", sandbox->servers[i].id,
		    (unsigned)sandbox->servers[i].port);
}

static int
write_config(const struct lab *lab, const struct lab_sandbox *sandbox,
    const struct lab_special *special, const char *path, const char *socket)
{
	FILE *file = fopen(path, "w");

	if (file == NULL)
		return lab_fail("%s", path);
	fprintf(file,
	    "{\"tenants\": {\"main\": {\"key\": {\"file\": \"%s\"},\n"
	    "  \"servers\": [",
	    lab->key_path);
	write_servers(file, sandbox);
	fprintf(file,
	    "],\n"
	    "  \"policy\": {\"unit_ms\": %u, \"suspect_after\": %u}}},\n"
	    " \"rules\": {\"" LAB_RULE "\": {\"tenant\": \"main\",\n"
	    "  \"resources\": [{\"bucket\": \"" LAB_BUCKET "{key}\",\n"
	    "   \"window_ms\": %d, \"limit\": %d}]}},\n"
	    " \"listeners\": {\"main\": {\"path\": \"%s\",\n"
	    "  \"mode\": \"0600\", \"max_connections\": 4096,\n"
	    "  \"max_inflight\": 65536}},\n"
	    " \"control\": {\"path\": \"%s.control\"},\n"
	    " \"limits\": {\"max_inflight\": 65536,\n"
	    "  \"max_inflight_per_uid\": 65536,\n"
	    "  \"max_connections_per_uid\": 4096},\n"
	    " \"log\": {\"level\": \"warning\"}}\n",
	    special->unit_ms > 0 ? special->unit_ms : LAB_UNIT_MS,
	    special->suspect_after, LAB_WINDOW_MS, LAB_LIMIT, socket, socket);
	return fclose(file) == 0 ? 0 : lab_fail("%s", path);
}

/* Dead, or a signal came: then there is nothing to wait for. */
static bool
is_over(pid_t pid)
{
	siginfo_t info = {.si_pid = 0};

	waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT);
	return info.si_pid != 0 || lab_signal() != 0;
}

/* Until it can decide; at first there may be no socket yet. */
static int
await_agent(struct lab_agent *agent)
{
	const struct rl_options options = {
	    .socket = agent->socket, .name = "bench", .timeout_ms = 5000};
	int rc = rl_open(&agent->client, &options);
	unsigned waited;

	errno = 0;
	if (rc != RL_OK)
		return lab_fail("the agent: %s", rl_strerror(rc));
	for (waited = 0; waited < LAB_PATIENCE_MS; waited += WAIT_STEP_MS) {
		rc = rl_wait(agent->client, WAIT_STEP_MS);
		if (rc == RL_OK)
			return 0;
		if (is_over(agent->pid))
			break;
	}
	return lab_fail("the agent: %s", rl_strerror(rc));
}

int
lab_start_agent(struct lab *lab, const struct lab_sandbox *sandbox,
    const struct lab_special *special, struct lab_agent *out)
{
	const char *path = program("RLA_AGENT", "./rl-agent");
	char log[96], config[96], library[4096], file[128];
	char *argv[] = {(char *)path, "-c", config, NULL};
	char *set[] = {library, file, NULL};
	int err = log_open(lab, log);

	out->client = NULL;
	if (err < 0)
		return -1;
	snprintf(config, sizeof(config), "%s/%u.json", lab->dir, lab->started);
	snprintf(out->socket, sizeof(out->socket), "%s/%u.sock", lab->dir,
	    lab->started);
	snprintf(library, sizeof(library), "LD_PRELOAD=%s",
	    special->preload != NULL ? special->preload : "");
	snprintf(file, sizeof(file), "BENCH_COUNTS=%s",
	    special->counts != NULL ? special->counts : "");
	out->pid = write_config(lab, sandbox, special, config, out->socket) == 0
		       ? lab_spawn(lab, argv,
			     special->preload != NULL ? set : NULL, err, err)
		       : -1;
	close(err);
	if (out->pid > 0 && await_agent(out) == 0)
		return 0;
	log_show(log);
	lab_stop_agent(lab, out);
	return -1;
}

void
lab_stop_agent(struct lab *lab, struct lab_agent *agent)
{
	rl_close(agent->client);
	agent->client = NULL;
	lab_end(lab, agent->pid, SIGKILL);
}
