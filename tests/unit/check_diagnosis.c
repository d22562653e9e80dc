/*
 * The judgements, row by row: each with the facts that just make it hold, with
 * what outranks it, and with the words that an operator needs to see.
 */
#include "daemon/diagnosis.h"

#include <errno.h>
#include <string.h>

#include "tests/unit/harness.h"

#define MS(n)   ((n)*INT64_C(1000))
#define S(n)    ((n)*INT64_C(1000000))
#define NOW     S(10000)
#define HORIZON MS(300)

static struct peers ps;
static struct diagnosis_facts facts;
static struct diagnosis d;

static void
setup(void)
{
	memset(&ps, 0, sizeof(ps));
	ps.count = 3;
	for (uint32_t i = 0; i < ps.count; i++)
		ps.list[i].server_id = 101 + i;
	facts = (struct diagnosis_facts){
	    .now = NOW,
	    .horizon_us = HORIZON,
	    .prefer_us = MS(20),
	    .key_id = 7,
	    .auth = "aes",
	    .peers = &ps,
	    .discovery = DISCOVERY_READY,
	    .dns_error = "",
	    .sync = CLOCK_SYNCHRONISED,
	};
}

/* Answered ago. */
static void
answers(uint32_t i, int64_t ago)
{
	const struct peer_answer a = {.now = NOW - ago,
	    .wall_ms = 50000,
	    .stamp = 50000,
	    .asked_stamp = 50000,
	    .sent_at = NOW - ago - 500,
	    .measures = true};

	peer_sent(&ps.list[i], a.sent_at);
	peers_answered(&ps, &ps.list[i], &a);
}

/* Answered what was asked sent ago, past the horizon. */
static void
answers_late(uint32_t i, int64_t ago, int64_t took)
{
	const struct peer_answer a = {
	    .now = NOW - ago, .sent_at = NOW - ago - took, .overdue = true};

	peer_sent(&ps.list[i], a.sent_at);
	peers_answered(&ps, &ps.list[i], &a);
	peer_unanswered(&ps.list[i], a.sent_at);
}

/* Left so many operations unanswered, since so long. */
static void
ignores(uint32_t i, uint32_t operations, int64_t since)
{
	for (uint32_t n = 0; n < operations; n++) {
		peer_sent(&ps.list[i], NOW - since + n);
		peer_unanswered(&ps.list[i], NOW - since + n);
	}
}

static void
apart(uint32_t i, int64_t offset_ms)
{
	ps.list[i].clock = (struct peer_clock){
	    .known = true, .offset_ms = offset_ms, .within_ms = 4};
}

static void
server(uint32_t i, enum diagnosis_code code, const char *words)
{
	diagnosis_server(&facts, &ps.list[i], &d);
	ck_assert_msg(d.code == code, "%s: %s", diagnosis_name(d.code), d.text);
	ck_assert_msg(strstr(d.text, words) != NULL, "%s", d.text);
}

static void
tenant(enum diagnosis_code code, const char *words)
{
	diagnosis_tenant(&facts, &d);
	ck_assert_msg(d.code == code, "%s: %s", diagnosis_name(d.code), d.text);
	ck_assert_msg(strstr(d.text, words) != NULL, "%s", d.text);
}

static void
tenant_says_not(const char *words)
{
	diagnosis_tenant(&facts, &d);
	ck_assert_msg(strstr(d.text, words) == NULL, "%s", d.text);
}

/* Of a server. */

START_TEST(a_server_unasked)
{
	server(0, DIAGNOSIS_UNASKED, "nothing was sent");
}
END_TEST

START_TEST(a_server_not_sent_to)
{
	peer_send_error(&ps.list[0], EPERM, NOW - S(2));
	server(0, DIAGNOSIS_NOT_SENT, "Operation not permitted");
	server(0, DIAGNOSIS_NOT_SENT, "2.0 s ago");
	server(0, DIAGNOSIS_NOT_SENT, "never answered");
	/* An error among sends that are taken is no verdict. */
	peer_sent(&ps.list[0], NOW - S(1));
	server(0, DIAGNOSIS_WAITING, "");
	answers(0, 0);
	server(0, DIAGNOSIS_OK, "");
	peer_send_error(&ps.list[0], EPERM, NOW + 1);
	server(0, DIAGNOSIS_NOT_SENT, "last answer");
}
END_TEST

START_TEST(a_server_that_refuses)
{
	ignores(0, 1, S(9));
	peer_refused(&ps.list[0], ECONNREFUSED, NOW - S(9));
	peer_refused(&ps.list[0], ECONNREFUSED, NOW - S(8));
	server(0, DIAGNOSIS_REFUSED, "Connection refused");
	server(0, DIAGNOSIS_REFUSED, "2 in all, the last 8.0 s ago");
	server(0, DIAGNOSIS_REFUSED, "never answered");
	answers(0, S(3));
	server(0, DIAGNOSIS_OK, "3.0 s ago");
	peer_refused(&ps.list[0], ECONNREFUSED, NOW - S(1));
	server(0, DIAGNOSIS_REFUSED, "last answer 3.0 s ago");
}
END_TEST

START_TEST(a_server_that_cannot_be_reached)
{
	ignores(0, 1, S(9));
	peer_refused(&ps.list[0], EMSGSIZE, NOW - S(8));
	server(0, DIAGNOSIS_NEVER, "");
	peer_refused(&ps.list[0], EHOSTUNREACH, NOW - S(7));
	server(0, DIAGNOSIS_UNREACHABLE, "No route to host");
}
END_TEST

START_TEST(a_server_with_invalid_answers)
{
	static const char *const words[] = {
	    "another secret", "this profile", "other buckets", "strict_source"};

	for (int i = 0; i < PEER_INVALIDS; i++) {
		setup();
		peer_sent(&ps.list[0], NOW - S(5));
		peer_invalid(&ps.list[0], (enum peer_invalid)i, NOW - S(4));
		server(0, DIAGNOSIS_INVALID, words[i]);
		server(0, DIAGNOSIS_INVALID, "1 datagram in its name");
	}
	/* Forgeries do not speak against good answers. */
	setup();
	answers(0, S(5));
	peer_sent(&ps.list[0], NOW - S(4));
	peer_invalid(&ps.list[0], PEER_AUTH, NOW - S(3));
	server(0, DIAGNOSIS_OK, "");
	ignores(0, 1, S(4));
	server(0, DIAGNOSIS_INVALID, "last answer 5.0 s ago");
	/* Nor do old ones explain a new silence. */
	answers(0, S(2));
	ignores(0, 1, S(1));
	server(0, DIAGNOSIS_SILENT, "");
}
END_TEST

START_TEST(a_slow_server)
{
	const struct peer_answer late = {
	    .now = NOW - S(1), .sent_at = NOW - S(2), .overdue = true};

	ignores(0, 2, S(2));
	peers_answered(&ps, &ps.list[0], &late);
	server(0, DIAGNOSIS_SLOW, "1 answer came after the horizon of 300 ms");
	server(0, DIAGNOSIS_SLOW, "1.0 s ago, after about 1000 ms");
	peers_heard(&ps, &ps.list[0], NOW - MS(900));
	server(0, DIAGNOSIS_SLOW, "2 answers");
	/* Until it has had the time to answer late again. */
	peer_sent(&ps.list[0], NOW);
	facts.now = NOW + HORIZON + S(2);
	server(0, DIAGNOSIS_SLOW, "");
	facts.now++;
	server(0, DIAGNOSIS_SILENT, "");
}
END_TEST

START_TEST(a_server_that_has_just_been_asked)
{
	peer_sent(&ps.list[0], NOW - MS(100));
	server(0, DIAGNOSIS_WAITING, "0.1 s ago");
}
END_TEST

START_TEST(a_server_that_never_answered)
{
	ignores(0, 2, S(30));
	server(0, DIAGNOSIS_NEVER, "no answer to 2 requests, the first 30 s");
	server(0, DIAGNOSIS_NEVER, "no other server answers either");
	server(0, DIAGNOSIS_NEVER, "no ICMP refusal");
	answers(1, S(1));
	server(0, DIAGNOSIS_NEVER,
	    "other servers answer the same requests, so this agent's key and "
	    "clock are good for them: it is stopped, its own clock is off, it "
	    "does not have the key, or nothing gets there or back");
	facts.strangers = 18;
	server(0, DIAGNOSIS_NEVER,
	    "it does not have the key, or it has another id: 18 datagrams came "
	    "back from servers that were not asked");
	ps.count = 1;
	server(0, DIAGNOSIS_NEVER, "");
	ck_assert_ptr_null(strstr(d.text, "other server"));
}
END_TEST

START_TEST(a_server_that_went_silent)
{
	answers(0, S(100));
	answers(1, S(90));
	ignores(0, 1, S(80));
	server(0, DIAGNOSIS_SILENT, "1 operation in a row");
	server(0, DIAGNOSIS_SILENT, "since 80 s; last answer 100 s ago");
	server(0, DIAGNOSIS_SILENT, "no other server answers either");
	answers(1, S(1));
	server(0, DIAGNOSIS_SILENT, "other servers answer");
	server(0, DIAGNOSIS_SILENT, "it no longer has the key, or nothing");
	ck_assert_ptr_null(strstr(d.text, "its clock was"));
	apart(0, 20000);
	server(0, DIAGNOSIS_SILENT,
	    "; its clock was ahead by 20 s when it last answered");
	apart(0, -20000);
	server(0, DIAGNOSIS_SILENT, "its clock was behind by 20 s when");
	apart(0, 999);
	server(0, DIAGNOSIS_SILENT, "its clock was in step when");
	answers(0, 0);
	server(0, DIAGNOSIS_OK, "");
}
END_TEST

START_TEST(a_server_whose_clock_is_off)
{
	answers(0, S(1));
	apart(0, DIAGNOSIS_CLOCK_MS);
	server(0, DIAGNOSIS_OK, "");
	apart(0, DIAGNOSIS_CLOCK_MS + 1);
	server(0, DIAGNOSIS_CLOCK_OFF, "ahead of this one by 1.0 s");
	ck_assert_str_eq(
	    d.text, "answers; its clock is ahead of this one by 1.0 s");
	/* Its clock may be ahead of its stamp by the time that it took. */
	apart(0, -DIAGNOSIS_CLOCK_MS - 4);
	server(0, DIAGNOSIS_OK, "");
	apart(0, -DIAGNOSIS_CLOCK_MS - 5);
	server(0, DIAGNOSIS_CLOCK_OFF, "behind this one by 1.0 s");
}
END_TEST

/* Of a tenant. */

START_TEST(no_member_yet)
{
	ps.count = 0;
	facts.discovery = DISCOVERY_RUNNING;
	tenant(DIAGNOSIS_DISCOVERING, "looked for");
	facts.discovery = DISCOVERY_STATIC;
	tenant(DIAGNOSIS_DISCOVERING, "");
	facts.discovery = DISCOVERY_UNAVAILABLE;
	facts.dns_error = "SRV _x: timeout";
	facts.dns_failing_since = NOW - S(75);
	tenant(DIAGNOSIS_DNS, "no server is known: DNS has failed for 75 s");
	tenant(DIAGNOSIS_DNS, "(SRV _x: timeout)");
}
END_TEST

START_TEST(nothing_to_judge_by)
{
	tenant(DIAGNOSIS_UNASKED, "");
	peer_sent(&ps.list[0], NOW);
	tenant(DIAGNOSIS_WAITING, "no answer yet; ask again in a second");
	ignores(0, 1, S(1));
	tenant(DIAGNOSIS_NEVER, "");
}
END_TEST

START_TEST(all_of_one_kind)
{
	for (uint32_t i = 0; i < 3; i++)
		peer_send_error(&ps.list[i], EPERM, NOW);
	tenant(DIAGNOSIS_NOT_SENT, "3 not-sent");
	setup();
	for (uint32_t i = 0; i < 3; i++) {
		ignores(i, 1, S(2));
		peer_refused(&ps.list[i], ECONNREFUSED, NOW);
	}
	tenant(DIAGNOSIS_REFUSED,
	    "nothing listens at any server's address, says ICMP (3 refused)");
	for (uint32_t i = 0; i < 3; i++)
		peer_refused(&ps.list[i], ENETUNREACH, NOW);
	tenant(DIAGNOSIS_UNREACHABLE, "3 unreachable");
	peer_refused(&ps.list[0], ECONNREFUSED, NOW);
	tenant(DIAGNOSIS_NEVER, "1 refused, 2 unreachable");
}
END_TEST

START_TEST(answers_that_are_none)
{
	ignores(0, 1, S(2));
	ignores(1, 1, S(2));
	peer_invalid(&ps.list[1], PEER_AUTH, NOW);
	tenant(DIAGNOSIS_INVALID, "1 invalid");
	answers(2, S(1));
	tenant(DIAGNOSIS_PARTIAL, "1 invalid");
}
END_TEST

START_TEST(answers_too_late)
{
	ignores(0, 1, S(2));
	peers_heard(&ps, &ps.list[0], NOW - S(1));
	/* Nobody knows any more what that was the answer to. */
	tenant(DIAGNOSIS_SLOW,
	    "servers answer after the horizon of 300 ms (about 1000 ms): raise "
	    "the policy's unit_ms; see rlctl policy --rtt 1000; the operations "
	    "were forgotten by then, so old answers that are played again");
	tenant(DIAGNOSIS_SLOW, "(2 unasked, 1 slow)");
	tenant_says_not("are good");
	ps.list[0].late_us = 0;
	tenant(DIAGNOSIS_SLOW, "300 ms: raise the policy's unit_ms; see rlctl "
			       "policy --rtt MS;");
	/* These are known to be answers, and no copies of them. */
	for (uint32_t i = 0; i < 3; i++)
		answers_late(i, S(1), MS(320 + 10 * i) - 1);
	tenant(DIAGNOSIS_SLOW,
	    "(about 330 ms): raise the policy's unit_ms; see rlctl policy "
	    "--rtt 330; the key and the clock are good");
	tenant_says_not("slow)");
	tenant_says_not("forgotten");
	/* The key was good for an answer in time; that was before. */
	for (uint32_t i = 0; i < 3; i++) {
		answers(i, MS(900));
		ignores(i, 1, MS(800));
		peers_heard(&ps, &ps.list[i], NOW - MS(100));
	}
	tenant(DIAGNOSIS_SLOW, "forgotten");
	tenant_says_not("are good");
}
END_TEST

START_TEST(never_an_answer)
{
	for (uint32_t i = 0; i < 3; i++)
		ignores(i, 4, S(60));
	tenant(DIAGNOSIS_NEVER, "(3 never-answered): a wrong key (key id 7, "
				"aes), a clock that is off, or nothing gets");
	tenant(DIAGNOSIS_NEVER, "; next: rlctl key show FILE, timedatectl");
	facts.strangers = 1;
	tenant(DIAGNOSIS_NEVER, "or servers with other ids: 1 datagram came "
				"back from servers that were not asked");
	tenant_says_not("nothing gets there");
	facts.strangers = 0;
	tenant(DIAGNOSIS_NEVER, "no ICMP refusal has come");
	tenant(DIAGNOSIS_NEVER, "; clock: synchronised, says the kernel");
	tenant_says_not("profile");
	tenant_says_not("DNS");
	facts.sync = CLOCK_UNSYNCHRONISED;
	tenant(DIAGNOSIS_NEVER, "; clock: not synchronised, says the kernel");
	facts.sync = CLOCK_SYNC_UNKNOWN;
	tenant(DIAGNOSIS_NEVER, "the kernel does not say");
	facts.odd_profile = "v2";
	tenant(DIAGNOSIS_NEVER, "; v2 is configured, the key's format says v1");
	peer_refused(&ps.list[0], ECONNREFUSED, NOW);
	tenant(DIAGNOSIS_NEVER, "ICMP errors came from 1 of 3");
	peers_operation(&ps, true, false, NOW);
	tenant(DIAGNOSIS_NEVER, "all operations had guards");
	peers_operation(&ps, false, false, NOW);
	tenant_says_not("had guards");
	facts.dns_error = "timeout";
	facts.dns_failing_since = NOW - S(20);
	tenant(DIAGNOSIS_NEVER, "DNS has failed for 20 s (timeout)");
	/* The clock cannot have been stepped since an answer. */
	facts.stepped_ms = 5000;
	tenant(DIAGNOSIS_NEVER, "");
}
END_TEST

START_TEST(silent_since_the_clock_was_set)
{
	for (uint32_t i = 0; i < 3; i++) {
		answers(i, S(60));
		ignores(i, 1, S(50));
	}
	tenant(DIAGNOSIS_SILENT, "the clock was not set since");
	facts.stepped_ms = 3600000;
	tenant(DIAGNOSIS_CLOCK_STEP, "set forward by 60 min");
	facts.stepped_ms = -140;
	tenant(DIAGNOSIS_CLOCK_STEP, "set back by 0.1 s");
	answers(0, 0);
	tenant(DIAGNOSIS_PARTIAL, "1 ok, 2 silent");
}
END_TEST

START_TEST(silent_now)
{
	for (uint32_t i = 0; i < 3; i++) {
		answers(i, S(60));
		ignores(i, 1, S(50));
	}
	peer_refused(&ps.list[1], ECONNREFUSED, NOW - S(49));
	tenant(DIAGNOSIS_SILENT, "1 refused, 2 silent");
	tenant(DIAGNOSIS_SILENT, "ICMP errors came from 1 of 3");
	ps.list[1].refused.last = NOW - S(61); /* before it answered */
	tenant(DIAGNOSIS_SILENT, "3 silent");
	tenant(DIAGNOSIS_SILENT, "no ICMP refusal has come");
	tenant_says_not("ahead of");
	apart(0, 29000);
	apart(1, 29000);
	tenant(
	    DIAGNOSIS_SILENT, "clocks of most were ahead of this one by 29 s");
	ps.list[0].clock.known = false;
	tenant_says_not("ahead of");
	tenant(DIAGNOSIS_SILENT, "last answer 60 s ago");
	facts.dns_error = "SERVFAIL";
	facts.dns_failing_since = NOW - S(70);
	tenant(DIAGNOSIS_SILENT, "may have moved");
	/* Servers that answered are gone; those of now never did. */
	memset(ps.list, 0, sizeof(ps.list));
	for (uint32_t i = 0; i < 3; i++)
		ignores(i, 1, S(2));
	tenant(DIAGNOSIS_SILENT, "3 never-answered");
}
END_TEST

START_TEST(only_guards_are_unanswered)
{
	for (uint32_t i = 0; i < 3; i++) {
		answers(i, S(9));
		ignores(i, 1, S(8));
	}
	peers_operation(&ps, false, true, NOW - S(9));
	peers_operation(&ps, true, false, NOW - S(8));
	peers_operation(&ps, true, false, NOW - S(8));
	/* Perhaps silence has begun just then. */
	tenant(DIAGNOSIS_SILENT,
	    "; only operations with guards went unanswered (2), none with "
	    "guards was ever answered: perhaps the profile");
	tenant_says_not("is configured");
	facts.odd_profile = "v2";
	tenant(DIAGNOSIS_SILENT,
	    "perhaps the profile; v2 is configured, the key's format says v1");
	facts.odd_profile = NULL;
	peers_operation(&ps, false, true, NOW - S(7));
	tenant(DIAGNOSIS_PROFILE, "without guards are answered (2)");
	tenant_says_not("is configured");
	facts.odd_profile = "v1";
	tenant(
	    DIAGNOSIS_PROFILE, "; v1 is configured, the key's format says v2");
	for (uint32_t i = 0; i < 3; i++)
		answers(i, S(7));
	tenant(DIAGNOSIS_PROFILE, "");
	peers_operation(&ps, false, false, NOW - S(6));
	for (uint32_t i = 0; i < 3; i++)
		ignores(i, 1, S(6));
	tenant(DIAGNOSIS_SILENT, "");
	tenant_says_not("perhaps the profile");
	facts.strangers = 2;
	tenant(DIAGNOSIS_SILENT, "; 2 datagrams came back from servers that");
	peers_operation(&ps, false, true, NOW - S(5));
	peers_operation(&ps, true, true, NOW - S(4));
	for (uint32_t i = 0; i < 3; i++)
		answers(i, S(4));
	tenant(DIAGNOSIS_OK, "");
}
END_TEST

START_TEST(some_are_not_well)
{
	answers(0, S(1));
	tenant(DIAGNOSIS_OK,
	    "every server that was asked answers (1 ok, 2 unasked)");
	ignores(1, 1, S(1));
	tenant(DIAGNOSIS_PARTIAL, "1 ok, 1 unasked, 1 never-answered");
	tenant_says_not("oldest");
	facts.dns_error = "timeout";
	tenant(DIAGNOSIS_PARTIAL, "");
}
END_TEST

/* Then decisions are slower than they need to be. */
START_TEST(the_oldest_is_waited_for)
{
	ignores(0, 1, S(2));
	answers(1, S(1));
	answers(2, S(1));
	tenant(DIAGNOSIS_PARTIAL,
	    "not all servers answer (2 ok, 1 never-answered); the oldest does "
	    "not: each decision waits 20 ms for it; see suspect_after in "
	    "rl-agent.json(5)");
	facts.prefer_us = 0;
	tenant_says_not("oldest");
	facts.prefer_us = MS(20);
	facts.suspect_after = 1;
	tenant(DIAGNOSIS_PARTIAL, "waits 20 ms for it until it is suspected");
	ck_assert(suspect_missed(&ps.list[0].suspect, 1, NOW));
	tenant(DIAGNOSIS_PARTIAL, "; the oldest is suspected: not waited for");
	tenant_says_not("each decision waits");
	ignores(1, 1, S(0));
	tenant(DIAGNOSIS_PARTIAL,
	    "not waited for; server 102 is the oldest of the others: each "
	    "decision waits 20 ms for it until");
}
END_TEST

START_TEST(clocks_differ)
{
	for (uint32_t i = 0; i < 3; i++)
		answers(i, S(1));
	apart(0, 20000);
	/* The others repeat the request's stamp, or are in step. */
	tenant(DIAGNOSIS_OK, "every server answers (2 ok, 1 clock-off)");
	apart(1, 0);
	apart(2, 20500);
	tenant(DIAGNOSIS_CLOCK_OFF, "2 of 3 servers are ahead of this one");
	tenant(DIAGNOSIS_CLOCK_OFF, "by 20 s");
	ps.list[1].clock.known = false;
	tenant(DIAGNOSIS_CLOCK_OFF, "2 of 3 servers are ahead of this one");
	apart(1, 0);
	apart(2, -20500);
	tenant(DIAGNOSIS_OK, "");
	apart(0, -20000);
	apart(1, -PEER_CLOCK_MAX_MS);
	tenant(DIAGNOSIS_CLOCK_OFF, "3 of 3 servers are behind");
	ignores(0, 1, S(0));
	tenant(DIAGNOSIS_PARTIAL, "");
	setup();
	answers(0, S(1));
	apart(0, 20000);
	tenant(DIAGNOSIS_CLOCK_OFF, "1 of 1 servers are ahead of this one");
	tenant(DIAGNOSIS_CLOCK_OFF, "one of the two");
	answers(1, S(1)); /* one of two: theirs as well as ours */
	tenant(DIAGNOSIS_OK, "");
}
END_TEST

START_TEST(stale_servers)
{
	for (uint32_t i = 0; i < 3; i++)
		answers(i, S(1));
	tenant(DIAGNOSIS_OK, "3 ok");
	facts.dns_error = "SERVFAIL";
	facts.dns_failing_since = NOW - S(7200);
	tenant(DIAGNOSIS_DNS_STALE, "DNS has failed for 2 h (SERVFAIL)");
}
END_TEST

/* The error has words of DNS in it. */
START_TEST(words_are_one_clean_line)
{
	char error[2000];

	memset(error, 'x', sizeof(error) - 1);
	memcpy(error, "a\n\x1b[2Jb", 7);
	error[sizeof(error) - 1] = '\0';
	ps.count = 0;
	facts.discovery = DISCOVERY_UNAVAILABLE;
	facts.dns_error = error;
	tenant(DIAGNOSIS_DNS, "a");
	for (const char *c = d.text; *c != '\0'; c++)
		ck_assert_int_ge(*c, ' ');
	ck_assert_uint_lt(strlen(d.text), sizeof(d.text));
}
END_TEST

START_TEST(the_offset_is_the_median)
{
	int64_t offset = 0;

	ck_assert(!diagnosis_offset(&ps, &offset));
	apart(0, 50);
	ck_assert(diagnosis_offset(&ps, &offset));
	ck_assert_int_eq(offset, 52);
	apart(1, 10);
	ck_assert(diagnosis_offset(&ps, &offset));
	ck_assert_int_eq(offset, 12);
	apart(2, -9000);
	ck_assert(diagnosis_offset(&ps, &offset));
	ck_assert_int_eq(offset, 12);
}
END_TEST

START_TEST(names)
{
	ck_assert_str_eq(diagnosis_name(DIAGNOSIS_OK), "ok");
	ck_assert_str_eq(diagnosis_name(DIAGNOSIS_NEVER), "never-answered");
	ck_assert_str_eq(diagnosis_name(DIAGNOSIS_CLOCK_OFF), "clock-off");
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("diagnosis");
	TCase *tc = tcase_create("diagnosis");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, a_server_unasked);
	tcase_add_test(tc, a_server_not_sent_to);
	tcase_add_test(tc, a_server_that_refuses);
	tcase_add_test(tc, a_server_that_cannot_be_reached);
	tcase_add_test(tc, a_server_with_invalid_answers);
	tcase_add_test(tc, a_slow_server);
	tcase_add_test(tc, a_server_that_has_just_been_asked);
	tcase_add_test(tc, a_server_that_never_answered);
	tcase_add_test(tc, a_server_that_went_silent);
	tcase_add_test(tc, a_server_whose_clock_is_off);
	tcase_add_test(tc, no_member_yet);
	tcase_add_test(tc, nothing_to_judge_by);
	tcase_add_test(tc, all_of_one_kind);
	tcase_add_test(tc, answers_that_are_none);
	tcase_add_test(tc, answers_too_late);
	tcase_add_test(tc, never_an_answer);
	tcase_add_test(tc, silent_since_the_clock_was_set);
	tcase_add_test(tc, silent_now);
	tcase_add_test(tc, only_guards_are_unanswered);
	tcase_add_test(tc, some_are_not_well);
	tcase_add_test(tc, the_oldest_is_waited_for);
	tcase_add_test(tc, clocks_differ);
	tcase_add_test(tc, stale_servers);
	tcase_add_test(tc, words_are_one_clean_line);
	tcase_add_test(tc, the_offset_is_the_median);
	tcase_add_test(tc, names);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
