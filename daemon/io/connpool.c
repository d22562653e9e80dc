/*
 * The pool: deadlines, the tail of the turn, the memory of connections. Owned
 * by whoever accepts them. Invariant: both deadline lists are in order, since
 * each has one timeout; the alarm is never later than their first.
 */
#include "daemon/io/connpool.h"

#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

#include <event2/event.h>

#include "daemon/io/conninput.h"
#include "daemon/io/connline.h"
#include "daemon/io/connoutput.h"
#include "daemon/io/connwatch.h"

#define KEEP_BUFS 64
#define CHUNK     32 /* connections */
/* Of frames, some 100 us of work, and as much of reads that end in none: so old
 * may pool.now be. */
#define CLOCK_BYTES 1024
#define CLOCK_LOOKS 32

static void
set_alarm(struct conn_pool *pool)
{
	const struct conn *slow = TAILQ_FIRST(&pool->slow);
	const struct conn *lingering = TAILQ_FIRST(&pool->lingering);
	int64_t when = INT64_MAX;

	if (slow != NULL)
		when = slow->deadline;
	if (lingering != NULL && lingering->deadline < when)
		when = lingering->deadline;
	if (when >= pool->alarm_at)
		return; /* an early alarm looks again */
	pool->alarm_at = when;
	loop_timer_set(pool->alarm, when);
}

void
connpool_untime(struct conn *conn)
{
	if (conn->timed == NULL)
		return;
	if (conn->timed == &conn->pool->lingering)
		conn->pool->lingering_count--;
	TAILQ_REMOVE(conn->timed, conn, timed_link);
	conn->timed = NULL;
}

void
connpool_set_deadline(struct conn *conn, struct conn_list *list, int64_t after)
{
	connpool_untime(conn);
	conn->deadline = loop_now() + after;
	conn->timed = list;
	TAILQ_INSERT_TAIL(list, conn, timed_link);
	if (list == &conn->pool->lingering)
		conn->pool->lingering_count++;
	set_alarm(conn->pool);
}

void
connpool_look_at_clock(struct conn_pool *pool)
{
	if (pool->moved - pool->now_at < CLOCK_BYTES &&
	    ++pool->looks < CLOCK_LOOKS)
		return;
	pool->looks = 0;
	pool->now = loop_now();
	pool->now_at = pool->moved;
}

static struct conn *
overdue(const struct conn_list *list, int64_t now)
{
	struct conn *conn = TAILQ_FIRST(list);

	return conn != NULL && conn->deadline <= now ? conn : NULL;
}

void
connpool_dirty(struct conn *conn)
{
	if (conn->dirty)
		return;
	conn->dirty = true;
	TAILQ_INSERT_TAIL(&conn->pool->dirty, conn, dirty_link);
	loop_defer(conn->pool->loop, &conn->pool->tail);
}

void
connpool_reap(struct conn *conn)
{
	if (conn->reaping)
		return;
	conn->reaping = true;
	TAILQ_INSERT_TAIL(&conn->pool->reap, conn, reap_link);
	loop_defer(conn->pool->loop, &conn->pool->tail);
}

void
connpool_end(struct conn *conn)
{
	conn->state = CONN_CLOSED;
	connwatch_stop(conn);
	connpool_untime(conn);
	connline_unwait(conn);
	conninput_forget(conn);
	connpool_reap(conn);
}

void
connpool_broken(struct conn *conn, enum ipc_error_code code, const char *text)
{
	conn_error(conn, 0, code, text);
	if (conn->hooks->broken != NULL)
		conn->hooks->broken(conn->arg, conn, code);
}

static void
destroy(struct conn *conn)
{
	struct conn_pool *pool = conn->pool;

	if (conn->out.unsent > 0) /* what it can; a failure is no news */
		(void)outq_send(&conn->out, &pool->outs, conn->fd);
	outq_clear(&conn->out, &pool->outs);
	TAILQ_REMOVE(&pool->all, conn, all_link);
	connline_put(conn->line);
	close(conn->fd);
	slab_put(&pool->slab, conn);
}

static void
reap(struct conn *conn)
{
	if (!conn->told) {
		conn->told = true;
		conn->hooks->closed(conn->arg, conn);
	}
	if (conn->state == CONN_CLOSED)
		destroy(conn);
}

/* The loop itself may have been late: what came meanwhile still counts. */
static void
last_chance(struct conn *conn, int64_t now)
{
	if (conn->state == CONN_FINISH) {
		connpool_end(conn);
		return;
	}
	connline_share(conn->pool);
	conn->pool->now = now;
	conninput_read(conn);
	if (conn->timed == &conn->pool->slow && conn->deadline <= now)
		connpool_broken(conn, IPC_ERR_SLOW,
		    "a started frame was not finished in time");
}

static void
alarm_rang(void *arg)
{
	struct conn_pool *pool = arg;
	int64_t now = loop_now();
	struct conn *conn;

	pool->alarm_at = INT64_MAX;
	while ((conn = overdue(&pool->slow, now)) != NULL)
		last_chance(conn, now);
	while ((conn = overdue(&pool->lingering, now)) != NULL)
		connpool_end(conn);
	set_alarm(pool);
}

/* Hooks cause output and closes: until both lists are empty. */
static void
flush_and_reap(struct conn_pool *pool)
{
	struct conn *conn;

	for (;;) {
		while ((conn = TAILQ_FIRST(&pool->dirty)) != NULL) {
			TAILQ_REMOVE(&pool->dirty, conn, dirty_link);
			conn->dirty = false;
			if (conn->state != CONN_CLOSED)
				connoutput_flush(conn);
		}
		conn = TAILQ_FIRST(&pool->reap);
		if (conn == NULL)
			return;
		TAILQ_REMOVE(&pool->reap, conn, reap_link);
		conn->reaping = false;
		reap(conn);
	}
}

/* Whoever got an answer may be hungry again, or may be read from again: in the
 * next turn, or this one might never end. */
static void
turn_ends(void *arg)
{
	struct conn_pool *pool = arg;

	pool->served = true;
	flush_and_reap(pool);
	pool->served = false;
	connline_again(pool);
}

struct conn_pool *
conn_pool_new(struct loop *loop)
{
	struct conn_pool *pool = calloc(1, sizeof(*pool));

	if (pool == NULL)
		return NULL;
	pool->alarm = loop_timer_new(loop, alarm_rang, pool);
	pool->next_turn = loop_timer_new(loop, connline_turn, pool);
	pool->loop = loop;
	if (pool->alarm == NULL || pool->next_turn == NULL ||
	    connwatch_init(pool) != 0) {
		loop_timer_free(pool->alarm);
		loop_timer_free(pool->next_turn);
		free(pool);
		return NULL;
	}
	pool->alarm_at = INT64_MAX;
	pool->frame_timeout = CONN_FRAME_TIMEOUT_US;
	loop_task_init(&pool->tail, turn_ends, pool);
	event_assign(
	    &pool->serve, loop_base(loop), -1, 0, connline_serve, pool);
	slab_init(&pool->slab, sizeof(struct conn), CHUNK, UINT32_MAX);
	bufs_init(&pool->frames, IPC_MAX_FRAME, KEEP_BUFS);
	outq_bufs_init(&pool->outs);
	TAILQ_INIT(&pool->all);
	TAILQ_INIT(&pool->slow);
	TAILQ_INIT(&pool->lingering);
	LIST_INIT(&pool->lines);
	TAILQ_INIT(&pool->turns);
	TAILQ_INIT(&pool->dirty);
	TAILQ_INIT(&pool->reap);
	return pool;
}

void
conn_pool_free(struct conn_pool *pool)
{
	struct conn *conn;

	if (pool == NULL)
		return;
	while ((conn = TAILQ_FIRST(&pool->all)) != NULL) {
		connpool_end(conn);
		destroy(conn);
	}
	loop_cancel(pool->loop, &pool->tail);
	event_del(&pool->serve);
	connwatch_fini(pool);
	loop_timer_free(pool->alarm);
	loop_timer_free(pool->next_turn);
	bufs_fini(&pool->frames);
	outq_bufs_fini(&pool->outs);
	slab_fini(&pool->slab);
	free(pool);
}

void
conn_pool_set_frame_timeout(struct conn_pool *pool, int64_t us)
{
	assert(TAILQ_EMPTY(&pool->all));
	pool->frame_timeout = us;
}
