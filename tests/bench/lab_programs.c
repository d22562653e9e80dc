/*
 * The programs under test: responders, whose first line tells where they are,
 * relays, and agents, each with a configuration and a socket of its own.
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

/*
 * What a daemon wrote before it failed, to our stderr. One that a signal ended
 * has not failed.
 */
static void
log_show(const char *path)
{
	FILE *file = lab_signal() == 0 ? fopen(path, "r") : NULL;
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

/* The first line of a responder: its servers, each at one address. */
static int
parse_responder(const char *line, unsigned wanted, struct lab_responder *out)
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

/* Starts it and takes its first line. Its pid, or -1, having shown its log. */
static pid_t
start_talking(struct lab *lab, char *const argv[], char *line, size_t cap)
{
	char log[LAB_PATH];
	int ends[2], err = lab_log(lab, log);
	pid_t pid;

	if (err < 0)
		return -1;
	if (pipe2(ends, O_CLOEXEC) != 0) {
		close(err);
		return lab_fail("pipe");
	}
	pid = lab_spawn(lab, argv, NULL, ends[1], err);
	close(ends[1]);
	close(err);
	if (pid > 0 && lab_read_line(ends[0], line, cap) <= 0) {
		log_show(log);
		lab_end(lab, pid, SIGKILL);
		errno = 0;
		pid = lab_fail("%s does not start", argv[0]);
	}
	close(ends[0]);
	return pid;
}

int
lab_start_responder(
    struct lab *lab, const struct lab_wanted *wanted, struct lab_responder *out)
{
	char path[PATH_MAX], servers[16], hold[16], line[2048];
	char *argv[] = {path, "--key-file", lab->key_path, "--servers", servers,
	    "--hold", hold, wanted->oldest_dead ? "--mute" : NULL, "0", NULL};

	lab_part(lab, "responder", path);
	snprintf(servers, sizeof(servers), "%u", wanted->servers);
	snprintf(hold, sizeof(hold), "%u", wanted->hold_ms);
	out->pid = start_talking(lab, argv, line, sizeof(line));
	errno = 0;
	if (out->pid > 0 && parse_responder(line, wanted->servers, out) != 0)
		return lab_fail("responder: another line than expected");
	return out->pid > 0 ? 0 : -1;
}

int
lab_start_relay(struct lab *lab, const struct lab_responder *responder,
    bool gso, struct lab_relay *out)
{
	char path[PATH_MAX], line[64], servers[LAB_MAX_SERVERS][32];
	char *argv[5 + 2 * LAB_MAX_SERVERS + 2] = {
	    path, "--key-file", lab->key_path, "--socket", out->socket};
	size_t n = 5;

	lab_part(lab, "relay", path);
	snprintf(out->socket, sizeof(out->socket), "%s/%u.relay", lab->dir,
	    lab->started + 1);
	for (unsigned i = 0; i < responder->count; i++) {
		snprintf(servers[i], sizeof(servers[i]), "%" PRIu64 "@%u",
		    responder->servers[i].id,
		    (unsigned)responder->servers[i].port);
		argv[n++] = "--server";
		argv[n++] = servers[i];
	}
	if (gso)
		argv[n] = "--gso";
	out->pid = start_talking(lab, argv, line, sizeof(line));
	return out->pid > 0 ? 0 : -1;
}

/* What a relay says of it in its log; of others there is no such line. */
static unsigned
read_sent_again(const char *path)
{
	FILE *file = fopen(path, "r");
	unsigned sum = 0, n;
	char line[256];

	while (file != NULL && fgets(line, sizeof(line), file) != NULL)
		if (sscanf(line, "relay: %u checks sent again", &n) == 1)
			sum += n;
	if (file != NULL)
		fclose(file);
	return sum;
}

unsigned
lab_sent_again(const struct lab *lab)
{
	char path[LAB_PATH];
	unsigned sum = 0;

	for (unsigned i = 1; i <= lab->started; i++) {
		snprintf(path, sizeof(path), "%s/%u.log", lab->dir, i);
		sum += read_sent_again(path);
	}
	return sum;
}

static void
write_servers(FILE *file, const struct lab_responder *responder)
{
	for (unsigned i = 0; i < responder->count; i++)
		fprintf(file,
		    "%s{\"id\": \"%" PRIu64
		    "\", \"address\": \"127.0.0.1:%u\"}",
		    i > 0 ? ", " : "", responder->servers[i].id,
		    (unsigned)responder->servers[i].port);
}

static int
write_config(const struct lab *lab, const struct lab_responder *responder,
    const struct lab_special *special, const char *path, const char *socket)
{
	FILE *file = fopen(path, "w");

	if (file == NULL)
		return lab_fail("%s", path);
	fprintf(file,
	    "{\"tenants\": {\"main\": {\"key\": {\"file\": \"%s\"},\n"
	    "  \"servers\": [",
	    lab->key_path);
	write_servers(file, responder);
	fprintf(file,
	    "],\n"
	    "  \"policy\": {%s}}},\n"
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
	    special->policy != NULL ? special->policy : LAB_POLICY,
	    LAB_WINDOW_MS, LAB_LIMIT, socket, socket);
	return fclose(file) == 0 ? 0 : lab_fail("%s", path);
}

bool
lab_is_over(pid_t pid)
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
		if (lab_is_over(agent->pid))
			break;
	}
	return lab_fail("the agent: %s", rl_strerror(rc));
}

int
lab_start_agent(struct lab *lab, const struct lab_responder *responder,
    const struct lab_special *special, struct lab_agent *out)
{
	const char *path = getenv("RLA_AGENT");
	char log[LAB_PATH], config[LAB_PATH], library[PATH_MAX + 16], file[128];
	char *argv[] = {
	    path != NULL ? (char *)path : "./rl-agent", "-c", config, NULL};
	char *set[] = {library, file, NULL};
	int err = lab_log(lab, log);

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
	out->pid =
	    write_config(lab, responder, special, config, out->socket) == 0
		? lab_spawn(lab, argv, special->preload != NULL ? set : NULL,
		      err, err)
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
