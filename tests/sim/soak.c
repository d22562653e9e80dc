/*
 * The simulator for hours: scenarios on every core, until the count is reached
 * or one fails.
 *
 *   soak [-n COUNT] [-s SEED] [-j JOBS] [-o FOLDER] [-p]
 *
 * -o: where the replay script of a failure goes. -p: prints each scenario.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>

#include "tests/sim/generate.h"
#include "tests/sim/report.h"

#define JOBS_MAX 1024
/* Fewer cannot be expected to meet everything. */
#define ENOUGH 100000
/* Scenarios that a worker takes at a time. */
#define BATCH 256

struct options {
	uint64_t count;
	uint64_t seed;
	unsigned jobs;
	const char *folder;
	bool print;
};

/* Shared by the processes. */
struct board {
	atomic_uint_fast64_t taken; /* scenarios, from 0 on */
	atomic_uint_fast64_t done;
	atomic_bool failed;
	struct {
		pid_t pid;
		uint64_t at;        /* the seed of its scenario */
		struct reach reach; /* when it ends */
	} job[JOBS_MAX];
};

static void
work(const struct options *o, struct board *b, unsigned job)
{
	static struct scenario sc;
	struct trial t;
	uint64_t i, end;

	trial_init(&t, FLAW_NONE);
	while (
	    !b->failed && (i = atomic_fetch_add(&b->taken, BATCH)) < o->count) {
		end = i + BATCH < o->count ? i + BATCH : o->count;
		for (; i < end; i++) {
			b->job[job].at = generate_seed(o->seed, i);
			generate_scenario(&sc, b->job[job].at);
			if (o->print)
				scenario_print(&sc, "", stdout);
			if (!trial_run(&t, &sc)) {
				if (!atomic_exchange(&b->failed, true))
					report_failure(
					    &t, &sc, o->folder, stdout);
				break;
			}
			atomic_fetch_add(&b->done, 1);
		}
	}
	b->job[job].reach = t.reach;
	trial_fini(&t);
}

static pid_t
start(const struct options *o, struct board *b, unsigned job)
{
	const pid_t parent = getpid();
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid != 0) {
		b->job[job].pid = pid;
		return pid;
	}
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(EXIT_FAILURE);
	work(o, b, job);
	fflush(stdout);
	_exit(EXIT_SUCCESS);
}

static void
print_progress(const struct options *o, struct board *b, time_t began)
{
	const uint64_t done = atomic_load(&b->done);

	printf("# %" PRIu64 " of %" PRIu64 " scenarios, %lld s\n", done,
	    o->count, (long long)(time(NULL) - began));
	fflush(stdout);
}

/* A worker that died, of an assertion of the core perhaps. */
static void
print_death(
    const struct options *o, const struct board *b, pid_t pid, int status)
{
	for (unsigned i = 0; i < o->jobs; i++) {
		if (b->job[i].pid == pid)
			printf("# a process died (%s) in scenario %" PRIu64
			       "\n",
			    WIFSIGNALED(status) ? strsignal(WTERMSIG(status))
						: "exit",
			    b->job[i].at);
	}
	fflush(stdout);
}

/* Waits for the workers; false when one did not come to a good end. */
static bool
wait_for(const struct options *o, struct board *b)
{
	const time_t began = time(NULL);
	const struct timespec pause = {.tv_nsec = 100000000};
	unsigned left = o->jobs, turn = 0;
	bool good = true;
	int status;
	pid_t pid;

	while (left > 0) {
		pid = waitpid(-1, &status, WNOHANG);
		if (pid > 0) {
			left--;
			if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
				print_death(o, b, pid, status);
				good = false;
				b->failed = true;
			}
		} else if (pid < 0 && errno != EINTR) {
			return false;
		} else {
			nanosleep(&pause, NULL);
			if (++turn % 100 == 0)
				print_progress(o, b, began);
		}
	}
	print_progress(o, b, began);
	return good;
}

static bool
soak(const struct options *o, struct board *b)
{
	struct reach all = {0};
	const char *missing;

	for (unsigned job = 0; job < o->jobs; job++) {
		if (start(o, b, job) < 0) {
			perror("soak: fork");
			b->failed = true;
			return false;
		}
	}
	if (!wait_for(o, b) || b->failed) {
		printf("# failed, run with TEST_SEED=%" PRIu64 "\n", o->seed);
		return false;
	}
	for (unsigned job = 0; job < o->jobs; job++)
		reach_add(&all, &b->job[job].reach);
	reach_print(&all, "# ", stdout);
	missing = reach_missing(&all);
	if (missing == NULL || o->count < ENOUGH)
		return true;
	printf("# never reached: %s\n", missing);
	return false;
}

static uint64_t
number(const char *text)
{
	char *end;
	uint64_t n;

	errno = 0;
	n = strtoull(text, &end, 0);
	if (errno != 0 || *text < '0' || *text > '9' || *end != '\0') {
		fprintf(stderr, "soak: not a number: \"%s\"\n", text);
		exit(64);
	}
	return n;
}

static void
parse(struct options *o, int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "n:s:j:o:p")) != -1) {
		switch (c) {
		case 'n':
			o->count = number(optarg);
			break;
		case 's':
			o->seed = number(optarg);
			break;
		case 'j':
			o->jobs = (unsigned)number(optarg);
			break;
		case 'o':
			o->folder = optarg;
			break;
		case 'p':
			o->print = true;
			break;
		default:
			exit(64);
		}
	}
	if (optind < argc || o->jobs < 1 || o->jobs > JOBS_MAX) {
		fprintf(stderr,
		    "usage: soak [-n COUNT] [-s SEED] "
		    "[-j JOBS, 1 to %d] [-o FOLDER] [-p]\n",
		    JOBS_MAX);
		exit(64);
	}
}

int
main(int argc, char **argv)
{
	const long cores = sysconf(_SC_NPROCESSORS_ONLN);
	struct options o = {.count = 20000000, .folder = "."};
	const char *seed = getenv("TEST_SEED");
	struct board *b;

	if (seed != NULL)
		o.seed = number(seed);
	else if (getrandom(&o.seed, sizeof(o.seed), 0) != sizeof(o.seed))
		abort();
	o.jobs = cores > 0 && cores <= JOBS_MAX ? (unsigned)cores : 1;
	parse(&o, argc, argv);
	b = mmap(NULL, sizeof(*b), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (b == MAP_FAILED) {
		perror("soak: mmap");
		return EXIT_FAILURE;
	}
	printf("# TEST_SEED=%" PRIu64 ", %" PRIu64 " scenarios, %u jobs\n",
	    o.seed, o.count, o.jobs);
	return soak(&o, b) ? EXIT_SUCCESS : EXIT_FAILURE;
}
