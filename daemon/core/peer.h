/*
 * What a tenant knows of one server, and the container of all of its servers,
 * in the order of its snapshot. What happens is recorded here, and judged by
 * diagnosis; first_addr and suspect, which the owner sets, also steer
 * where requests go and whose answer is waited for. Pure: the owner passes the
 * clock (loop_now() times; 0 is never).
 *
 * Invariant: peers.list[i] is of members.list[i] of the snapshot that
 * peers_follow() saw last.
 */
#ifndef DAEMON_CORE_PEER_H
#define DAEMON_CORE_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/histogram.h"
#include "daemon/core/latency.h"
#include "daemon/core/members.h"
#include "daemon/core/suspect.h"

/* Why a datagram that claims to be of a server was ignored. The claim is not
 * authenticated: anybody can forge one, but never an answer. */
enum peer_invalid {
	PEER_AUTH,      /* another or failing authentication */
	PEER_MALFORMED, /* authentic, but no rate response */
	PEER_CONTENT,   /* counts or ids differ from what was asked */
	PEER_SOURCE,    /* another address, under strict_source */
};
#define PEER_INVALIDS 4

/* Something that happened count times, last at last. */
struct peer_events {
	uint64_t count;
	int64_t last;
	int error; /* the last errno, for what has one */
};

/* No clock is said to be farther off: 317 years. */
#define PEER_CLOCK_MAX_MS INT64_C(10000000000000)

/*
 * What its own time stamps say: its clock was ahead of this one by offset_ms
 * at the least and offset_ms + within_ms at the most.
 */
struct peer_clock {
	bool known;
	int64_t offset_ms; /* its stamp less our clock at receipt */
	int64_t within_ms; /* since the first transmission, rounded up */
};

struct peer {
	uint64_t server_id;
	uint32_t first_addr;    /* the address to begin with; the owner's */
	struct suspect suspect; /* the owner feeds it, see core/suspect.h */
	uint64_t sent;          /* datagrams of requests that the kernel took */
	uint64_t replays;       /* of these, in later rounds */
	uint64_t deliveries;    /* of these, after a decision */
	int64_t asked_since;    /* the first of them after the last answer; 0:
				 * none is unanswered */
	uint64_t answered;      /* valid answers to what is remembered */
	uint64_t selected;      /* decisions that its answer made */
	uint64_t overdue;     /* answers past the horizon of their operation */
	int64_t last_answer;  /* overdue ones too */
	int64_t last_in_time; /* without those */
	int64_t last_late;    /* overdue, to an operation still remembered */
	int64_t late_us;      /* how long the last overdue one took, about; 0:
			       * not known */
	int64_t rtt_us;       /* smoothed; 0: not known */
	struct histogram rtt;
	struct latency round_trips; /* all of them */
	uint64_t missed_rounds;     /* see peer_missed_round() */
	uint32_t unanswered;        /* operations in a row */
	bool silence_told;          /* in the log; the owner's */
	struct peer_events invalid[PEER_INVALIDS];
	struct peer_events refused;     /* by ICMP */
	struct peer_events send_errors; /* by the kernel, at once */
	struct peer_clock clock;
};

/* An authenticated answer to an operation that is remembered. */
struct peer_answer {
	int64_t now;
	uint64_t wall_ms;     /* the wall clock now */
	uint64_t stamp;       /* time stamp of the response */
	uint64_t asked_stamp; /* of the request; 0: it was sent before, by
			       * another agent, with a stamp not known */
	int64_t sent_at;      /* first transmission of the request */
	bool measures;        /* it tells the round trip: the first answer of
			       * this server to a request sent once */
	bool overdue;         /* past the horizon of the operation */
	bool again;           /* this server has answered it before */
};

/* The kernel took a request. now counts only while asked_since is 0. */
void peer_sent(struct peer *p, int64_t now);
/* The kernel refused a datagram. */
void peer_send_error(struct peer *p, int error, int64_t now);
/* An ICMP error came back for a datagram. */
void peer_refused(struct peer *p, int error, int64_t now);
/*
 * A response whose stamp equals the request's may echo it, so its stamp says
 * nothing, until that server has once sent another: then all of them count.
 */
void peer_answered(struct peer *p, const struct peer_answer *a);
/* Authentic, to an operation that is forgotten: it lives, and is too slow. Or
 * it was recorded and is played again. */
void peer_heard(struct peer *p, int64_t now);
void peer_selected(struct peer *p);
/* A round was sent to it and a later one had to be, as it had not answered. */
void peer_missed_round(struct peer *p);
/*
 * An operation that began at start was sent to it, and listening has ended
 * without its answer: its last round is missed, too. In a row it counts only
 * when no answer has come in time since start: operations that were under way
 * when a dead server came back say nothing of it now.
 */
void peer_unanswered(struct peer *p, int64_t start);
void peer_invalid(struct peer *p, enum peer_invalid why, int64_t now);
/* Percentile (permille) of recent round trips in us; 0: there is none. */
int64_t peer_rtt(const struct peer *p, uint32_t permille, int64_t now);
/* Of any class, since a time; its class that came last in *why. */
bool peer_invalid_since(
    const struct peer *p, int64_t since, enum peer_invalid *why);

/* Operations of one form that were sent and are over. Unanswered ones are so by
 * every server. */
struct peer_form {
	uint64_t answered;
	uint64_t unanswered;
	int64_t last_answered;
	int64_t first_unanswered;
	int64_t last_unanswered;
};

struct peers {
	uint32_t count;
	int64_t last_answer;      /* of any server, departed ones too */
	struct peer_form plain;   /* operations without guards */
	struct peer_form guarded; /* the profiles differ in these alone */
	struct peer list[MEMBERS_MAX];
};

/* The next snapshot: known servers keep what is known of them, in place. */
void peers_follow(struct peers *ps, const struct members *members);
/* The record of a server of the snapshot, or NULL. */
struct peer *peers_find(struct peers *ps, uint64_t server_id);
/* peer_answered() and peer_heard() for a server that may have departed, whose
 * record is NULL then; they keep last_answer of all. */
void peers_answered(
    struct peers *ps, struct peer *p, const struct peer_answer *a);
void peers_heard(struct peers *ps, struct peer *p, int64_t now);
/* An operation that was sent is over, and listening for it has ended; answered
 * by any server at all? */
void peers_operation(
    struct peers *ps, bool guarded, bool answered, int64_t now);

#endif
