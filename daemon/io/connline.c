/*
 * Turns: whoever has something to read stands in the line of its user, and in
 * each turn of the loop every line is read from, so much and no more. A user
 * with many connections has one user's share, and they share it. Invariant:
 * while somebody waits, the next turn is set.
 */
#include "daemon/io/connline.h"

#include <stdlib.h>

#include <event2/event.h>

#include "daemon/io/conninput.h"
#include "daemon/io/connpool.h"

/*
 * Bytes of frames in and out: of one turn, in equal shares of the lines, and of
 * the least share. A question of 16 bytes may ask for a document, which costs
 * the more the longer it is: 16 KiB of those take some 2 ms, of checks or pings
 * less than one. Whoever has more waits for the next turn, behind those who
 * wait already, so that datagrams and timers have theirs in between.
 */
#define POOL_TURN_MAX (16 * 1024)
#define SHARE_MIN     (4 * 1024)
/* Turns that only read datagrams. */
#define PUT_OFF_MAX 4
/* When nobody in any line is hungry: what may have changed but by answers. */
#define AGAIN_US 10000

struct conn_line *
connline_get(struct conn_pool *pool, uid_t uid)
{
	struct conn_line *line;

	line = LIST_FIRST(&pool->lines);
	while (line != NULL && line->uid != uid)
		line = LIST_NEXT(line, all_link);
	if (line == NULL) {
		line = calloc(1, sizeof(*line));
		if (line == NULL)
			return NULL;
		line->pool = pool;
		line->uid = uid;
		TAILQ_INIT(&line->conns_waiting);
		LIST_INSERT_HEAD(&pool->lines, line, all_link);
	}
	line->conns++;
	return line;
}

void
connline_put(struct conn_line *line)
{
	if (line == NULL || --line->conns > 0)
		return;
	LIST_REMOVE(line, all_link);
	free(line);
}

static void
line_leaves(struct conn_line *line)
{
	TAILQ_REMOVE(&line->pool->turns, line, turn_link);
	line->pool->turn_count--;
}

static void
line_joins(struct conn_line *line)
{
	TAILQ_INSERT_TAIL(&line->pool->turns, line, turn_link);
	line->pool->turn_count++;
}

void
connline_wait(struct conn *conn)
{
	struct conn_pool *pool = conn->pool;
	struct conn_line *line = conn->line;

	if (conn->waiting)
		return;
	conn->waiting = true;
	TAILQ_INSERT_TAIL(&line->conns_waiting, conn, waiting_link);
	if (line->waiting++ == 0)
		line_joins(line);
	if (!pool->served)
		event_active(&pool->serve, EV_WRITE, 0);
}

void
connline_unwait(struct conn *conn)
{
	struct conn_line *line = conn->line;

	if (!conn->waiting)
		return;
	conn->waiting = false;
	TAILQ_REMOVE(&line->conns_waiting, conn, waiting_link);
	if (--line->waiting == 0)
		line_leaves(line);
}

void
connline_share(struct conn_pool *pool)
{
	pool->share_began = pool->moved;
}

static bool
hungry(struct conn *conn)
{
	return conn->hooks->hungry == NULL ||
	       conn->hooks->hungry(conn->arg, conn);
}

static bool
share_over(const struct conn_pool *pool)
{
	return pool->moved - pool->share_began >= pool->share;
}

bool
connline_enough(struct conn *conn)
{
	return share_over(conn->pool) || !hungry(conn);
}

/* Each of those who wait in it once, as far as its share goes. Was anybody
 * read from? */
static bool
serve_line(struct conn_pool *pool, struct conn_line *line)
{
	uint32_t n = line->waiting;
	struct conn *conn;
	bool served = false;

	connline_share(pool);
	while (n-- > 0 && (conn = TAILQ_FIRST(&line->conns_waiting)) != NULL &&
	       !share_over(pool)) {
		connline_unwait(conn);
		connpool_look_at_clock(pool);
		if (!hungry(conn)) {
			connline_wait(conn);
			continue;
		}
		if (conn->backlog != BACKLOG_NONE || !conn->paused)
			conninput_read(conn);
		served = true;
	}
	return served;
}

/* Each line once, as far as this turn goes; the rest is first in the next. */
static bool
serve_lines(struct conn_pool *pool)
{
	uint32_t n = pool->turn_count;
	struct conn_line *line;
	bool served = false;

	pool->share = n > 1 ? POOL_TURN_MAX / n : POOL_TURN_MAX;
	if (pool->share < SHARE_MIN)
		pool->share = SHARE_MIN;
	pool->turn_began = pool->moved;
	pool->now = loop_now();
	pool->now_at = pool->moved;
	while (n-- > 0 && (line = TAILQ_FIRST(&pool->turns)) != NULL &&
	       pool->moved - pool->turn_began < POOL_TURN_MAX) {
		/* Last now, for its next turn. Its last connection may be
		 * closed in it, but is freed at the end of the turn. */
		line_leaves(line);
		line_joins(line);
		served = serve_line(pool, line) || served;
	}
	return served;
}

/*
 * Behind all else of the turn. What servers have answered goes before what they
 * are to be asked next, or their answers find no room in the end; so many turns
 * at the most, lest a flood of datagrams keep everybody waiting.
 */
void
connline_serve(evutil_socket_t fd, short what, void *arg)
{
	struct conn_pool *pool = arg;
	bool served = true;

	(void)fd;
	(void)what;
	if (loop_behind(pool->loop) && pool->put_off++ < PUT_OFF_MAX) {
		loop_timer_set(pool->next_turn, 0);
		return;
	}
	pool->put_off = 0;
	pool->served = true;
	served = serve_lines(pool);
	pool->served = false;
	if (TAILQ_EMPTY(&pool->turns))
		return;
	loop_timer_set(pool->next_turn, served ? 0 : loop_now() + AGAIN_US);
}

void
connline_turn(void *arg)
{
	struct conn_pool *pool = arg;

	event_active(&pool->serve, EV_WRITE, 0);
}

void
connline_again(struct conn_pool *pool)
{
	if (!TAILQ_EMPTY(&pool->turns))
		loop_timer_set(pool->next_turn, 0);
}
