/*
 * An epoll of the pool's own, whose descriptor libevent watches. With libevent
 * itself, who waits for its turn would be told of in every turn, or forgotten
 * and watched again for each read: two system calls. Here it is told of once
 * (EPOLLET), and of an end behind the last bytes it is told at once, which
 * libevent hides in the case of a reset. Invariant: mask is what epoll has.
 */
#include "daemon/io/connwatch.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <event2/event.h>

#include "daemon/io/conninput.h"
#include "daemon/io/connoutput.h"
#include "daemon/io/connpool.h"

#define BATCH  128 /* of one call */
#define ROUNDS 8   /* calls of one turn; whoever is left is told in the next */

#define INPUT (EPOLLIN | EPOLLRDHUP | EPOLLPRI)
/* Behind what can be read is the end, or the place of an urgent byte, where
 * the kernel ends a read. */
#define MORE (EPOLLRDHUP | EPOLLHUP | EPOLLERR | EPOLLPRI)
#define LOST (EPOLLHUP | EPOLLERR) /* told without being asked for */

/* A connection is freed by the tail of a turn only, never behind an event that
 * is taken here. */
static void
tell(struct conn *conn, uint32_t events)
{
	if ((conn->mask & INPUT) != 0 && (events & (INPUT | LOST)) != 0)
		conninput_ready(conn, (events & MORE) != 0);
	if ((conn->mask & EPOLLOUT) != 0 && (events & (EPOLLOUT | LOST)) != 0)
		connoutput_ready(conn);
}

static void
on_ready(evutil_socket_t fd, short what, void *arg)
{
	struct epoll_event told[BATCH];
	unsigned int rounds = ROUNDS;
	int n;

	(void)what;
	(void)arg;
	do {
		n = epoll_wait(fd, told, BATCH, 0);
		for (int i = 0; i < n; i++)
			tell(told[i].data.ptr, told[i].events);
	} while (n == BATCH && --rounds > 0);
}

int
connwatch_init(struct conn_pool *pool)
{
	const int fd = epoll_create1(EPOLL_CLOEXEC);

	if (fd < 0)
		return -1;
	(void)evutil_make_socket_nonblocking(fd); /* libevent asks for it */
	event_assign(&pool->told, loop_base(pool->loop), fd,
	    EV_READ | EV_PERSIST, on_ready, NULL);
	if (event_add(&pool->told, NULL) != 0) {
		close(fd);
		errno = ENOMEM;
		return -1;
	}
	pool->watching = true;
	return 0;
}

void
connwatch_fini(struct conn_pool *pool)
{
	if (!pool->watching)
		return;
	event_del(&pool->told);
	close(event_get_fd(&pool->told));
	pool->watching = false;
}

/* 0, or -1 with errno set. */
static int
set(struct conn *conn, uint32_t mask)
{
	struct epoll_event event = {.events = mask, .data.ptr = conn};
	const int op = conn->mask == 0 ? EPOLL_CTL_ADD
		       : mask == 0     ? EPOLL_CTL_DEL
				       : EPOLL_CTL_MOD;

	if (conn->mask == 0 && mask == 0)
		return 0;
	if (epoll_ctl(event_get_fd(&conn->pool->told), op, conn->fd, &event) !=
	    0)
		return -1;
	conn->mask = mask;
	return 0;
}

static void
change(struct conn *conn, uint32_t mask)
{
	if (set(conn, mask) != 0)
		connpool_end(conn);
}

int
connwatch_start(struct conn *conn)
{
	return set(conn, INPUT | EPOLLET);
}

void
connwatch_level(struct conn *conn)
{
	change(conn, (conn->mask & EPOLLOUT) | INPUT);
}

void
connwatch_deaf(struct conn *conn)
{
	change(conn, conn->mask & EPOLLOUT);
}

void
connwatch_room(struct conn *conn, bool wanted)
{
	if (wanted) /* again, if need be: an edge may be behind us */
		change(conn, conn->mask | EPOLLOUT);
	else if ((conn->mask & EPOLLOUT) != 0)
		change(conn, conn->mask & ~(uint32_t)EPOLLOUT);
}

/* Closing it would do the same later. */
void
connwatch_stop(struct conn *conn)
{
	(void)set(conn, 0);
	conn->mask = 0;
}
