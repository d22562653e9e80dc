/*
 * What the files of the udp module share: udp.c (life and counters),
 * udp_send.c (the queue), udp_group.c (its datagrams as messages of a system
 * call) and udp_receive.c (datagrams and errors that come in). Nobody else
 * includes this. Everything is allocated with the socket.
 */
#ifndef DAEMON_IO_UDP_PRIVATE_H
#define DAEMON_IO_UDP_PRIVATE_H

#include <sys/socket.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "daemon/io/address.h"
#include "daemon/io/udp.h"

#define UDP_BATCH       32  /* datagrams of one receive call */
#define UDP_QUEUE       256 /* sends that wait; a call may take them all */
#define UDP_GROUPS      64  /* in one call */
#define UDP_SEND_MAX    1200
#define UDP_RECEIVE_MAX 2048
#define UDP_FULL_MAX    8

/* Room between buffers: starts a power of two apart share a few cache sets. */
#define UDP_APART 64

/* A send that waits. */
struct udp_out {
	struct udp_out *next;
	int64_t expires;
	struct udp_token token;
	union address to;
	size_t len;
	uint8_t *bytes;       /* of out_bytes, for good */
	struct udp_out *peer; /* the next of its group */
	uint8_t group;        /* its place in this call; UDP_GROUPS: none */
	uint8_t failures;     /* that may have been echoes */
	bool alone;           /* its group was refused */
};

/* Never empty. */
struct udp_group {
	struct udp_out *first;
	struct udp_out *last;
	unsigned int count;
	size_t bytes;
	size_t longest; /* that may join; 0: none */
};

/* Tells the kernel how long the datagrams of a group are. */
union udp_control {
	struct cmsghdr header;
	char space[CMSG_SPACE(sizeof(uint16_t))];
};

struct udp {
	struct loop *loop;
	const struct udp_hooks *hooks;
	void *arg;
	int fd;
	int family; /* AF_INET or AF_INET6 */
	uint16_t port;
	unsigned int in_hook; /* depth; udp_free() is forbidden then */
	bool reading;
	bool flushing;
	bool blocked; /* the event or the timer will flush */
	bool ending;  /* udp_free(): nothing more is queued */
	struct event readable;
	struct event writable;
	struct loop_task flush;
	struct loop_timer *retry;
	int64_t retry_at;
	struct udp_out *first; /* waiting to be sent */
	struct udp_out **last;
	struct udp_out *unused;
	uint32_t waiting;
	int64_t earliest; /* no waiting one expires before this */
	/* Of one flush: destinations whose device is full. */
	union address full[UDP_FULL_MAX];
	unsigned int fulls;
	struct udp_counters counters;
	uint32_t drops_seen; /* the kernel's counter, which wraps */
	struct mmsghdr in_msgs[UDP_BATCH];
	struct iovec in_iovs[UDP_BATCH];
	union address in_from[UDP_BATCH];
	bool groups_known;   /* by the kernel */
	int64_t alone_until; /* no groups before */
	bool grouping;       /* in this call */
	unsigned int group_count;
	struct udp_group groups[UDP_GROUPS]; /* what out_msgs is made of */
	struct mmsghdr out_msgs[UDP_GROUPS];
	union udp_control controls[UDP_GROUPS];
	struct iovec out_iovs[UDP_QUEUE];
	struct udp_out outs[UDP_QUEUE];
	uint8_t in_bytes[UDP_BATCH][UDP_RECEIVE_MAX + UDP_APART];
	uint8_t out_bytes[UDP_QUEUE][UDP_SEND_MAX];
};

/* The length of the family's socket address. */
socklen_t udp_address_len(const struct udp *udp);

/* udp_send.c */
void udp_queue_init(struct udp *udp);
/* Sends what can be sent now. The function of the task and of the timer. */
void udp_flush(void *arg);
/* Answers all that waits with ECANCELED. */
void udp_cancel(struct udp *udp);

/* udp_group.c */
/* After the socket is open. */
void udp_groups_init(struct udp *udp);
/* For one call: begin, add in the order of the queue, end. False: no room. Of
 * what was not added, group is the caller's matter. */
void udp_groups_begin(struct udp *udp, int64_t now);
bool udp_group_add(struct udp *udp, struct udp_out *out);
/* Makes out_msgs. Returns how many. */
unsigned int udp_groups_end(struct udp *udp);
/* Group i was refused: its datagrams are tried each alone. */
void udp_group_split(struct udp *udp, unsigned int i, int error);
/* No groups for a while. */
void udp_groups_pause(struct udp *udp);

/* udp_receive.c */
/* Makes in_msgs, once for all calls. */
void udp_receive_init(struct udp *udp);
/* Takes a bounded number of reports off the error queue, which ends the error
 * that they leave pending on the socket. Returns how many ICMP ones it told. */
unsigned int udp_read_errors(struct udp *udp);

#endif
