/*
 * daemon/io/activation, in children of their own: the descriptors have fixed
 * numbers, which the test's own process may use for something else.
 */
#include "daemon/io/activation.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/harness.h"

#define HIGH 200 /* above what a test passes */

static char dir[64], err[ACTIVATION_ERR_MAX], path[4][96];
static int made; /* sockets */

/* In a child, where Check cannot hear of it. */
#define MUST(condition)                                               \
	do {                                                          \
		if (!(condition)) {                                   \
			fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, \
			    __LINE__, #condition, err);               \
			_exit(1);                                     \
		}                                                     \
	} while (0)

static void
setup(void)
{
	snprintf(dir, sizeof(dir), "/tmp/activation-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	for (int i = 0; i < 4; i++)
		snprintf(path[i], sizeof(path[i]), "%s/%d.sock", dir, i);
}

static void
teardown(void)
{
	for (int i = 0; i < 4; i++)
		unlink(path[i]);
	ck_assert_int_eq(rmdir(dir), 0);
}

static void
in_child(void (*fn)(void))
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		made = 0;
		err[0] = '\0';
		fn();
		_exit(0);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 0);
}

/* The next descriptor that is passed. */
static void
pass(int fd)
{
	MUST(fd >= 0);
	MUST(dup2(fd, HIGH + made) >= 0);
	close(fd);
	made++;
}

static int
unix_at(int type, const char *where, bool listens)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, type, 0);
	socklen_t len = offsetof(struct sockaddr_un, sun_path) + 1;

	/* "@name": an abstract one; "": none */
	snprintf(un.sun_path, sizeof(un.sun_path), "%s", where);
	if (where[0] == '@')
		un.sun_path[0] = '\0';
	len += (socklen_t)strlen(where);
	if (where[0] != '\0')
		MUST(bind(fd, (struct sockaddr *)&un, len) == 0);
	if (listens)
		MUST(listen(fd, 5) == 0);
	return fd;
}

static void
pass_unix(int n)
{
	pass(unix_at(SOCK_STREAM, path[n], true));
}

static int
inet_at(int family, char text[64])
{
	struct sockaddr_in in = {
	    .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_in6 in6 = {
	    .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	struct sockaddr *sa = family == AF_INET ? (struct sockaddr *)&in
						: (struct sockaddr *)&in6;
	socklen_t len = family == AF_INET ? sizeof(in) : sizeof(in6);
	int fd = socket(family, SOCK_STREAM, 0);

	if (fd < 0 || bind(fd, sa, len) != 0)
		return -1;
	MUST(listen(fd, 5) == 0);
	MUST(getsockname(fd, sa, &len) == 0);
	if (family == AF_INET)
		snprintf(text, 64, "127.0.0.1:%d", ntohs(in.sin_port));
	else
		snprintf(text, 64, "[::1]:%d", ntohs(in6.sin6_port));
	return fd;
}

static void
environment(long pid, int count, const char *names)
{
	char text[32];

	snprintf(text, sizeof(text), "%ld", pid);
	setenv("LISTEN_PID", text, 1);
	snprintf(text, sizeof(text), "%d", count);
	setenv("LISTEN_FDS", text, 1);
	if (names != NULL)
		setenv("LISTEN_FDNAMES", names, 1);
	else
		unsetenv("LISTEN_FDNAMES");
}

/* Moves them to 3 and up, as a service manager has them. */
static struct activation *
take(const char *names)
{
	struct activation *a;

	for (int i = 0; i < made; i++)
		MUST(dup2(HIGH + i, 3 + i) == 3 + i);
	environment(getpid(), made, names);
	a = activation_new(err);
	MUST(getenv("LISTEN_PID") == NULL);
	MUST(getenv("LISTEN_FDS") == NULL);
	MUST(getenv("LISTEN_FDNAMES") == NULL);
	MUST((a == NULL) == (err[0] != '\0'));
	return a;
}

static bool
same(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

static int
fd_of(struct activation *a, const char *name, const char *address)
{
	int fd = -2, rc = activation_take(a, name, address, same, &fd, err);

	MUST(rc == 0 || (rc == -1 && fd == -1));
	return rc == 0 ? fd : -2;
}

static bool
says(const char *text)
{
	return strchr(err, '\n') == NULL && strstr(err, text) != NULL;
}

static void
refused(const char *names, const char *what, const char *why)
{
	MUST(take(names) == NULL);
	MUST(says(what));
	MUST(says(why));
}

static void
by_name(void)
{
	struct activation *a;

	pass_unix(0);
	pass_unix(1);
	a = take("main:control");
	MUST(a != NULL);
	for (int fd = 3; fd < 5; fd++) {
		MUST(fcntl(fd, F_GETFD) & FD_CLOEXEC);
		MUST(fcntl(fd, F_GETFL) & O_NONBLOCK);
	}
	MUST(activation_all_taken(a, err) == -1);
	MUST(says("main") && says(path[0]));
	MUST(fd_of(a, "control", path[1]) == 4);
	MUST(activation_all_taken(a, err) == -1);
	MUST(fd_of(a, "main", path[0]) == 3);
	MUST(activation_all_taken(a, err) == 0);
	MUST(fd_of(a, "main", path[0]) == 3); /* again */
	MUST(fd_of(a, "other", path[2]) == -1);
	/* The name without the place, the place without the name. */
	MUST(fd_of(a, "main", path[2]) == -2);
	MUST(says(path[0]) && says(path[2]) && says("\"main\""));
	MUST(says("ListenStream="));
	MUST(fd_of(a, "other", path[0]) == -2);
	MUST(says(path[0]) && says("\"main\"") && says("\"other\""));
	MUST(says("FileDescriptorName="));
	activation_free(a);
	MUST(fcntl(3, F_GETFD) == -1 && fcntl(4, F_GETFD) == -1);
}

static void
by_path(void)
{
	struct activation *a;

	pass_unix(0);
	pass_unix(1);
	pass_unix(2);
	a = take("rl-agent.socket::main");
	MUST(a != NULL);
	MUST(fd_of(a, "b", path[1]) == 4);
	MUST(fd_of(a, "a", path[3]) == -1);
	MUST(activation_all_taken(a, err) == -1);
	MUST(says("rl-agent.socket") && says(path[0]) && says("path"));
	MUST(fd_of(a, "a", path[0]) == 3);
	MUST(fd_of(a, "main", path[2]) == 5);
	MUST(activation_all_taken(a, err) == 0);
}

static void
without_names(void)
{
	struct activation *a;

	pass_unix(0);
	a = take(NULL);
	MUST(a != NULL);
	MUST(activation_all_taken(a, err) == -1);
	MUST(fd_of(a, "main", path[0]) == 3);
}

static void
of_others(void)
{
	struct activation *a;

	pass_unix(0);
	MUST(dup2(HIGH, 3) == 3);
	environment(getppid(), 1, "main");
	a = activation_new(err);
	MUST(a != NULL && getenv("LISTEN_FDS") == NULL);
	MUST(fd_of(a, "main", path[0]) == -1);
	MUST(activation_all_taken(a, err) == 0);
	MUST((fcntl(3, F_GETFD) & FD_CLOEXEC) == 0);
	activation_free(a);
	MUST(fcntl(3, F_GETFD) == 0); /* not ours */
	a = activation_new(err);      /* nothing at all */
	MUST(a != NULL && activation_all_taken(a, err) == 0);
	activation_free(a);
	activation_free(NULL);
	environment(getpid(), 0, "");
	MUST(activation_new(err) != NULL);
}

START_TEST(they_are_taken)
{
	in_child(by_name);
	unlink(path[0]);
	unlink(path[1]);
	in_child(by_path);
	unlink(path[0]);
	in_child(without_names);
	unlink(path[0]);
	in_child(of_others);
}
END_TEST

static void
datagram(void)
{
	pass(unix_at(SOCK_DGRAM, path[0], false));
	refused("main", "descriptor 3 \"main\"", "not a stream socket");
}

static void
seqpacket(void)
{
	pass(unix_at(SOCK_SEQPACKET, path[0], true));
	refused("main", "descriptor 3 \"main\"", "not a stream socket");
}

static void
deaf(void)
{
	pass_unix(1);
	pass(unix_at(SOCK_STREAM, path[0], false));
	refused("main:control", "descriptor 4 \"control\"", "not listen");
}

static void
abstract(void)
{
	char name[128];

	snprintf(name, sizeof(name), "@%s", dir);
	pass(unix_at(SOCK_STREAM, name, true));
	refused("main", "descriptor 3 \"main\"", "absolute path");
}

static void
relative(void)
{
	MUST(chdir(dir) == 0);
	pass(unix_at(SOCK_STREAM, "0.sock", true));
	refused("main", "descriptor 3 \"main\"", "absolute path");
}

static void
no_socket(void)
{
	pass(open("/dev/null", O_RDWR));
	refused("main", "descriptor 3 \"main\"", "not a Unix socket");
}

static void
closed(void)
{
	made = 2;
	pass_unix(0);
	close(HIGH);
	MUST(dup2(HIGH + 2, 3) == 3);
	close(4);
	environment(getpid(), 2, "main:control");
	MUST(activation_new(err) == NULL);
	MUST(says("descriptor 4 \"control\" is not open"));
}

START_TEST(what_cannot_be_accepted_from)
{
	static void (*const cases[])(void) = {
	    datagram, seqpacket, deaf, abstract, relative, no_socket, closed};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		in_child(cases[i]);
		unlink(path[0]);
		unlink(path[1]);
	}
}
END_TEST

static void
inet(int family)
{
	char text[64] = "";
	struct activation *a;
	int fd = inet_at(family, text);

	if (fd < 0)
		return; /* no IPv6 here */
	pass(fd);
	a = take("gateway.front");
	MUST(a != NULL);
	MUST(fd_of(a, "gateway.front", "127.0.0.1:1") == -2);
	MUST(says(text));
	MUST(fd_of(a, "gateway.front", path[0]) == -2);
	MUST(fd_of(a, "gateway.front", text) == 3);
	MUST(activation_all_taken(a, err) == 0);
}

static void
inet4(void)
{
	inet(AF_INET);
}

static void
inet6(void)
{
	inet(AF_INET6);
}

static void
inet_for_a_listener(void)
{
	char text[64];

	pass(inet_at(AF_INET, text));
	refused("main", "descriptor 3 \"main\"", "not a Unix socket");
}

START_TEST(a_gateway_may_be_inet)
{
	in_child(inet4);
	in_child(inet6);
	in_child(inet_for_a_listener);
}
END_TEST

static void
bad_text(void)
{
	static const char *const counts[] = {
	    "", "x", "-1", "1x", " 1", "129", "99999999999999999999"};
	char pid[32];

	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		err[0] = '\0';
		setenv("LISTEN_PID", pid, 1);
		setenv("LISTEN_FDS", counts[i], 1);
		MUST(activation_new(err) == NULL);
		MUST(says("LISTEN_FDS: ") && says(counts[i]));
		MUST(getenv("LISTEN_FDS") == NULL);
	}
}

static void
too_few_names(void)
{
	pass_unix(0);
	pass_unix(1);
	refused("main", "LISTEN_FDNAMES", "number 2");
}

static void
too_many_names(void)
{
	pass_unix(0);
	refused("main:control", "LISTEN_FDNAMES", "more names");
}

static void
too_long_a_name(void)
{
	char name[257];

	memset(name, 'x', 256);
	name[256] = '\0';
	pass_unix(0);
	refused(name, "LISTEN_FDNAMES", "number 1");
	err[0] = '\0';
	name[255] = '\0';
	MUST(take(name) != NULL);
}

START_TEST(a_bad_environment)
{
	in_child(bad_text);
	in_child(too_few_names);
	unlink(path[0]);
	unlink(path[1]);
	in_child(too_many_names);
	unlink(path[0]);
	in_child(too_long_a_name);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("activation");
	TCase *tc = tcase_create("activation");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, they_are_taken);
	tcase_add_test(tc, what_cannot_be_accepted_from);
	tcase_add_test(tc, a_gateway_may_be_inet);
	tcase_add_test(tc, a_bad_environment);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
