/* The verbs of a script, and those of the network, which are short. */
#include "tests/world/script.h"

#include <string.h>

#include "tests/world/answer.h"
#include "tests/world/expect.h"
#include "tests/world/fake_dns.h"
#include "tests/world/fake_loop.h"
#include "tests/world/fake_udp.h"

/* An address of the word's server, or all of them. */
static void
fail_place(struct scene *s, int error, unsigned int server, uint32_t addr)
{
	const struct members_target *t = &s->targets[server];

	for (uint32_t i = 0; i < t->addr_count; i++) {
		if (addr == MEMBERS_MAX_ADDRS || addr == i)
			fake_udp_fail(&t->addrs[i], error);
	}
}

/* fail ERROR|ok PLACE...|all */
static void
run_fail(struct scene *s)
{
	int error = scene_error(s);
	unsigned int server;
	uint32_t addr;

	if (words_accept(&s->w, "all")) {
		fake_udp_fail(NULL, error);
		return;
	}
	do {
		server = scene_place(s, &addr);
		fail_place(s, error, server, addr);
	} while (words_more(&s->w));
}

/* block PORT..., unblock PORT... */
static void
block(struct scene *s, bool blocked)
{
	do {
		if (!fake_udp_block(scene_port(s), blocked))
			words_fault(&s->w, "there is no such port");
	} while (words_more(&s->w));
}

static void
run_block(struct scene *s)
{
	block(s, true);
}

static void
run_unblock(struct scene *s)
{
	block(s, false);
}

/* open 4|6 ERROR|ok */
static void
run_open(struct scene *s)
{
	int family = (int)words_number(&s->w, 6);

	if (family != 4 && family != 6)
		words_fault(&s->w, "a socket is of family 4 or 6");
	fake_udp_fail_open(family, scene_error(s));
}

/* icmp ERROR PLACE PORT */
static void
run_icmp(struct scene *s)
{
	int error = scene_error(s);
	uint32_t addr;
	unsigned int server = scene_place(s, &addr);
	uint32_t port = scene_port(s);

	if (!fake_udp_refuse(port,
		&s->targets[server].addrs[addr % MEMBERS_MAX_ADDRS], error))
		words_fault(&s->w, "there is no such port");
}

/* dns-says ok|nodata|nxdomain|timeout|refused|bad|unreachable */
static void
run_dns_says(struct scene *s)
{
	static const char *const names[] = {
	    [DNS_OK] = "ok",
	    [DNS_NODATA] = "nodata",
	    [DNS_NXDOMAIN] = "nxdomain",
	    [DNS_TIMEOUT] = "timeout",
	    [DNS_REFUSED] = "refused",
	    [DNS_BAD] = "bad",
	    [DNS_UNREACHABLE] = "unreachable",
	};
	const char *name = words_next(&s->w);

	for (int i = DNS_OK; i <= DNS_UNREACHABLE; i++) {
		if (strcmp(names[i], name) == 0) {
			fake_dns_answer((enum dns_status)i);
			return;
		}
	}
	words_fault(&s->w, "unknown answer of DNS \"%s\"", name);
}

/* dns-silent on|off */
static void
run_dns_silent(struct scene *s)
{
	fake_dns_silence(words_switch(&s->w));
}

/* wall forward|back D */
static void
run_wall(struct scene *s)
{
	bool forward = words_accept(&s->w, "forward");

	if (!forward && !words_accept(&s->w, "back"))
		words_fault(&s->w, "expected forward or back");
	fake_loop_step_wall((forward ? 1 : -1) * words_time(&s->w) / 1000);
}

static void
run_manual(struct scene *s)
{
	s->manual = words_switch(&s->w);
}

enum when { BEFORE, ANY, RUNNING };

static const struct {
	const char *name;
	enum when when;
	void (*run)(struct scene *s);
} verbs[] = {
    {"policy", BEFORE, scene_policy},
    {"address", BEFORE, scene_addresses},
    {"members", BEFORE, scene_members},
    {"tenant", BEFORE, scene_tenant},
    {"dns", ANY, scene_dns},
    {"dns-says", ANY, run_dns_says},
    {"dns-silent", ANY, run_dns_silent},
    {"open", ANY, run_open},
    {"fail", ANY, run_fail},
    {"wall", ANY, run_wall},
    {"expect", ANY, expect_run},
    {"at", ANY, scene_at},
    {"check", RUNNING, scene_check},
    {"cancel", RUNNING, scene_cancel},
    {"report", RUNNING, scene_report},
    {"reload", RUNNING, scene_reload},
    {"free", RUNNING, scene_free},
    {"drain", RUNNING, scene_drain},
    {"close", RUNNING, scene_close},
    {"stall", RUNNING, scene_stall},
    {"turn", RUNNING, scene_turn},
    {"manual", RUNNING, run_manual},
    {"answer", RUNNING, answer_run},
    {"flood", RUNNING, answer_flood},
    {"block", RUNNING, run_block},
    {"unblock", RUNNING, run_unblock},
    {"icmp", RUNNING, run_icmp},
};

static void
run_line(struct scene *s)
{
	const char *verb = words_next(&s->w);
	size_t i = 0;

	while (i < sizeof(verbs) / sizeof(*verbs) &&
	       strcmp(verbs[i].name, verb) != 0)
		i++;
	if (i == sizeof(verbs) / sizeof(*verbs))
		words_fault(&s->w, "unknown command \"%s\"", verb);
	else if (verbs[i].when == BEFORE && s->loop != NULL)
		words_fault(&s->w, "\"%s\" comes before the tenant", verb);
	else if (verbs[i].when == RUNNING && s->tenant == NULL)
		words_fault(&s->w, "there is no running tenant");
	else
		verbs[i].run(s);
	if (words_more(&s->w))
		words_fault(
		    &s->w, "not understood from \"%s\" on", words_next(&s->w));
}

void
script_play(struct scene *s, FILE *f, bool timers_first)
{
	char line[WORDS_LINE_LEN];

	scene_init(s, timers_first);
	while (!words_failed(&s->w) && fgets(line, sizeof(line), f) != NULL) {
		words_split(&s->w, line);
		if (words_more(&s->w) && !words_failed(&s->w))
			run_line(s);
	}
	if (!words_failed(&s->w))
		scene_end(s);
	scene_fini(s);
}
