/*
 * Processes and their files. Children are ended with SIGKILL: they hold
 * nothing that outlives the folder, and none can then refuse.
 */
#include "tests/bench/lab.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/random.h"

#define KEY_ID 7

/* A handler can reach nothing else. */
static volatile sig_atomic_t caught;

int
lab_fail(const char *format, ...)
{
	int error = errno;
	va_list ap;

	if (lab_signal() != 0)
		return -1;
	fputs("bench: ", stderr);
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fprintf(stderr, "%s%s\n", error != 0 ? ": " : "",
	    error != 0 ? strerror(error) : "");
	return -1;
}

static void
on_signal(int number)
{
	caught = number;
}

void
lab_catch_signals(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action = {.sa_handler = on_signal};
	size_t i;

	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		sigaction(numbers[i], &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

int
lab_signal(void)
{
	return caught;
}

/* Quotas that no row meets; the limit of a horizon fits LAB_TTL_MS. */
static int
make_key(struct lab *lab)
{
	struct random_pool *random = random_pool_new();
	char text[CREDENTIAL_TEXT_MAX];
	FILE *file;
	int rc;

	lab->cred = (struct credential){
	    .auth = AUTH_AES,
	    .format = KEY_FORMAT_1,
	    .key_id = KEY_ID,
	    .quotas = {.rate_buckets = 65536,
		.latency_trackers = 4096,
		.metrics_labels = 1024,
		.latency_buffer = 1024,
		.dedup_ttl_ms = 2000,
		.rate_window_ms = UINT32_MAX},
	};
	errno = 0;
	if (random == NULL ||
	    random_bytes(random, lab->cred.secret, sizeof(lab->cred.secret)) !=
		0 ||
	    credential_format(&lab->cred, text, sizeof(text)) != 0) {
		random_pool_free(random);
		return lab_fail("no key can be made");
	}
	random_pool_free(random);
	snprintf(lab->key_path, sizeof(lab->key_path), "%s/key", lab->dir);
	umask(077);
	file = fopen(lab->key_path, "w");
	if (file == NULL)
		return lab_fail("%s", lab->key_path);
	rc = fprintf(file, "%s\n", text);
	if (fclose(file) != 0 || rc < 0)
		return lab_fail("%s", lab->key_path);
	return 0;
}

/* The bench's programs lie beside it. */
static int
find_parts(struct lab *lab)
{
	ssize_t n =
	    readlink("/proc/self/exe", lab->parts, sizeof(lab->parts) - 1);
	char *slash;

	if (n < 0)
		return lab_fail("/proc/self/exe");
	lab->parts[n] = '\0';
	slash = strrchr(lab->parts, '/');
	if (slash != NULL)
		*slash = '\0';
	return 0;
}

void
lab_part(const struct lab *lab, const char *name, char out[PATH_MAX])
{
	snprintf(out, PATH_MAX, "%.*s/%s", PATH_MAX - 256, lab->parts, name);
}

int
lab_log(struct lab *lab, char path[LAB_PATH])
{
	int fd;

	snprintf(path, LAB_PATH, "%s/%u.log", lab->dir, ++lab->started);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	return fd >= 0 ? fd : lab_fail("%s", path);
}

int
lab_open(struct lab *lab)
{
	memset(lab, 0, sizeof(*lab));
	if (find_parts(lab) != 0)
		return -1;
	strcpy(lab->dir, "/tmp/rl-bench.XXXXXX");
	if (mkdtemp(lab->dir) == NULL) {
		lab->dir[0] = '\0';
		return lab_fail("/tmp");
	}
	return make_key(lab);
}

void
lab_close(struct lab *lab)
{
	struct dirent *entry;
	DIR *dir;

	while (lab->count > 0)
		lab_end(lab, lab->pids[lab->count - 1], SIGKILL);
	credential_wipe(&lab->cred);
	dir = lab->dir[0] != '\0' ? opendir(lab->dir) : NULL;
	if (dir == NULL)
		return;
	while ((entry = readdir(dir)) != NULL)
		(void)unlinkat(dirfd(dir), entry->d_name, 0);
	closedir(dir);
	(void)rmdir(lab->dir);
}

void
lab_end(struct lab *lab, pid_t pid, int number)
{
	size_t i;

	for (i = 0; i < lab->count && lab->pids[i] != pid; i++)
		;
	if (i == lab->count)
		return;
	lab->pids[i] = lab->pids[--lab->count];
	kill(pid, number);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

ssize_t
lab_read_line(int fd, char *line, size_t cap)
{
	struct pollfd ready = {.fd = fd, .events = POLLIN};
	size_t len = 0;
	ssize_t n = 1;

	while (n > 0 && len + 1 < cap) {
		errno = ETIMEDOUT;
		if (poll(&ready, 1, LAB_PATIENCE_MS) <= 0)
			return -1;
		n = read(fd, line + len, 1);
		if (n < 0)
			return -1;
		if (n > 0 && line[len] == '\n')
			break;
		len += (size_t)n;
	}
	line[len] = '\0';
	return (ssize_t)len;
}

/* In the child: out is a descriptor for its stdout, err for its stderr. */
static void __attribute__((noreturn))
run_child(char *const argv[], char *const set[], pid_t parent, int out, int err)
{
	size_t i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(127);
	for (i = 0; set != NULL && set[i] != NULL; i++)
		putenv(set[i]);
	if (dup2(out, STDOUT_FILENO) >= 0 && dup2(err, STDERR_FILENO) >= 0)
		execvp(argv[0], argv);
	fprintf(stderr, "%s: %s\n", argv[0],
	    errno == ENOENT ? "not installed" : strerror(errno));
	_exit(127);
}

pid_t
lab_spawn(
    struct lab *lab, char *const argv[], char *const set[], int out, int err)
{
	pid_t parent = getpid(), pid;

	errno = 0;
	if (lab->count == LAB_MAX_PROCESSES)
		return lab_fail("too many processes");
	pid = fork();
	if (pid < 0)
		return lab_fail("fork");
	if (pid == 0)
		run_child(argv, set, parent, out, err);
	lab->pids[lab->count++] = pid;
	return pid;
}

pid_t
lab_start_tool(struct lab *lab, char *const argv[], int *err)
{
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return lab_fail("pipe");
	pid = lab_spawn(lab, argv, NULL, ends[1], ends[1]);
	close(ends[1]);
	if (pid < 0)
		close(ends[0]);
	else
		*err = ends[0];
	return pid;
}
