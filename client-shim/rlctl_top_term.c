/*
 * The terminal of rlctl top, and the signals that end it, stop it and tell of
 * another size. The state of before is put back before the process ends or
 * stops, by whatever way. A handler only notes what came, and writes a byte
 * that wakes who waits; the second signal that would end it does so at once.
 */
#include "client-shim/rlctl_top.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

/* The other screen, no cursor, no wrapping: what is wider than was thought
 * spoils its own line only. And all of that back. */
#define ENTER "\033[?1049h\033[?25l\033[?7l\033[H\033[J"
#define LEAVE "\033[?7h\033[?25h\033[?1049l"

static struct top_source *interrupted;
static volatile sig_atomic_t ending; /* the signal */
static volatile sig_atomic_t resized;
static volatile sig_atomic_t stopping;
static int wake[2] = {-1, -1};

static struct termios before;
static volatile sig_atomic_t entered; /* the terminal is ours */
static bool live;
static bool has_keys;

static const int endings[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

/* All of it, unless a signal that ends it comes first. */
static void
put(const char *text, size_t len)
{
	const int before_it = ending;
	ssize_t n = 1;

	while (len > 0 && ending == before_it && (n > 0 || errno == EINTR)) {
		n = write(STDOUT_FILENO, text, len);
		if (n > 0) {
			text += n;
			len -= (size_t)n;
		}
	}
}

/* Also in a handler. What a terminal that takes nothing has not taken yet is
 * thrown away, so that there is room for this. */
static void
leave(void)
{
	if (!entered)
		return;
	entered = 0;
	if (ending)
		tcflush(STDOUT_FILENO, TCOFLUSH);
	put(LEAVE, sizeof(LEAVE) - 1);
	if (has_keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

static void
enter(void)
{
	struct termios raw = before;

	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	entered = 1;
	if (has_keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	put(ENTER, sizeof(ENTER) - 1);
}

static void
on_signal(int signo)
{
	const int saved = errno;
	ssize_t n;

	if (signo == SIGWINCH) {
		resized = 1;
	} else if (signo == SIGTSTP) {
		stopping = 1;
	} else {
		if (ending) {
			leave();
			_exit(128 + signo);
		}
		ending = signo;
		top_source_interrupt(interrupted);
	}
	n = write(wake[1], "", 1);
	(void)n; /* a pipe that is full wakes as well */
	errno = saved;
}

static void catch (int signo, void (*handler)(int))
{
	/* No call is begun again: a write may never end. */
	struct sigaction sa = {.sa_handler = handler};

	sigaction(signo, &sa, NULL);
}

int64_t
top_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

void
top_term_open(struct top_source *source, bool is_live)
{
	struct sigaction old;
	size_t i;

	if (pipe2(wake, O_CLOEXEC | O_NONBLOCK) != 0)
		exit(rlctl_fail(RLCTL_ERROR, "top: %s", strerror(errno)));
	interrupted = source;
	live = is_live;
	has_keys = live && isatty(STDIN_FILENO) &&
		   tcgetattr(STDIN_FILENO, &before) == 0;
	for (i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		sigaction(endings[i], NULL, &old);
		if (old.sa_handler != SIG_IGN) /* as nohup wants it */
			catch (endings[i], on_signal);
	}
	if (!live)
		return;
	atexit(leave);
	catch (SIGWINCH, on_signal);
	catch (SIGTSTP, on_signal);
	enter();
}

void
top_term_close(void)
{
	size_t i;

	leave();
	for (i = 0; i < sizeof(endings) / sizeof(endings[0]); i++)
		catch (endings[i], SIG_DFL);
	interrupted = NULL;
}

struct top_shape
top_term_shape(void)
{
	struct winsize size = {0};

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 ||
	    size.ws_row == 0)
		return (struct top_shape){80, 24};
	return (struct top_shape){size.ws_col, size.ws_row};
}

void
top_term_show(const char *text, size_t len)
{
	put(text, len);
}

int
top_term_signal(void)
{
	return ending;
}

/* As if it had not been caught; then, when it goes on, all is drawn anew. */
static void
stop(void)
{
	stopping = 0;
	leave();
	catch (SIGTSTP, SIG_DFL);
	raise(SIGTSTP);
	catch (SIGTSTP, on_signal);
	enter();
	resized = 1;
}

/* Is q among them, or will none come any more? */
static bool
keys_end_it(short revents)
{
	char keys[64];
	ssize_t n;

	if (revents == 0)
		return false;
	n = read(STDIN_FILENO, keys, sizeof(keys));
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return false;
	return n <= 0 || memchr(keys, 'q', (size_t)n) != NULL ||
	       memchr(keys, 'Q', (size_t)n) != NULL;
}

enum top_event
top_term_wait(int64_t until)
{
	struct pollfd fds[2] = {
	    {wake[0], POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
	char bytes[64];
	int64_t left;

	for (;;) {
		if (ending)
			return TOP_QUIT;
		if (stopping)
			stop();
		if (resized) {
			resized = 0;
			return TOP_RESIZED;
		}
		left = until - top_now();
		if (left <= 0)
			left = 0;
		fds[0].revents = fds[1].revents = 0;
		poll(fds, has_keys ? 2 : 1, (int)((left + 999) / 1000));
		while (read(wake[0], bytes, sizeof(bytes)) > 0)
			;
		if (has_keys && keys_end_it(fds[1].revents))
			return TOP_QUIT;
		if (left == 0 && !ending && !resized && !stopping)
			return TOP_DUE;
	}
}
