/*
 * getopt_long() keeps the order of the options, and that matters here: the
 * fault options apply to the server that the last --server before them named.
 */
#include "sandbox/options.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "proto/err.h"
#include "sandbox/dnsd.h"
#include "sandbox/number.h"

#define ALL_SERVERS       CLUSTER_MAX
#define DEFAULT_LISTEN    "127.0.0.1:0"
#define DEFAULT_DNS_TTL   60
#define DEFAULT_TOLERANCE 30000

enum option_id {
	OPT_KEY_FILE = 256,
	OPT_LISTEN,
	OPT_CLUSTER,
	OPT_DNS,
	OPT_ZONE,
	OPT_DNS_TTL,
	OPT_EVENTS,
	OPT_SEED,
	OPT_PROFILE,
	OPT_TOLERANCE,
	OPT_STDIN,
	OPT_SERVER,
};

/* And one for each fault, from here on. */
#define OPT_FAULT 512
#define FAULT_OPTION(id, name, kind, help) \
	{name, required_argument, NULL, OPT_FAULT + (id)},
#define FAULT_HELP(id, name, kind, help) help
#define FAULT_LINES                      FAULTS(FAULT_HELP)

static const struct option long_options[] = {
    {"key-file", required_argument, NULL, OPT_KEY_FILE},
    {"listen", required_argument, NULL, OPT_LISTEN},
    {"cluster", required_argument, NULL, OPT_CLUSTER},
    {"dns", required_argument, NULL, OPT_DNS},
    {"zone", required_argument, NULL, OPT_ZONE},
    {"dns-ttl", required_argument, NULL, OPT_DNS_TTL},
    {"events", required_argument, NULL, OPT_EVENTS},
    {"seed", required_argument, NULL, OPT_SEED},
    {"profile", required_argument, NULL, OPT_PROFILE},
    {"clock-tolerance", required_argument, NULL, OPT_TOLERANCE},
    {"stdin", no_argument, NULL, OPT_STDIN},
    {"server", required_argument, NULL, OPT_SERVER},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    FAULTS(FAULT_OPTION) /* each ends with a comma */
    {NULL, 0, NULL, 0},
};

struct parse {
	struct options *o;
	size_t server;  /* whose faults are set */
	size_t highest; /* server number that was named, plus one */
	char *why;
};

const char *
options_help(void)
{
	return "Usage: rl-sandbox --key-file FILE [OPTION...]\n"
	       "       rl-sandbox keygen --auth aes|cookie|none --key-id N "
	       "[OPTION...]\n"
	       "\n"
	       "A rate-limiting server for development and tests. It is NOT a "
	       "production\n"
	       "server: it keeps everything in memory and trusts its users.\n"
	       "\n"
	       "  --key-file FILE       an API key to serve; up to 16 times\n"
	       "  --listen ADDR:PORT    where servers listen (127.0.0.1:0); "
	       "up to 4 times\n"
	       "  --cluster N           servers in this process (1), up to "
	       "64\n"
	       "  --dns ADDR:PORT       also serve DNS, over UDP and TCP\n"
	       "  --zone NAME           its zone (the DNS name of the first "
	       "key)\n"
	       "  --dns-ttl SECONDS     of its records (60)\n"
	       "  --events FILE         append a JSON line per datagram; - for "
	       "stdout\n"
	       "  --seed N              the same server ids and faults every "
	       "time\n"
	       "  --profile PROFILE     auto, v1 or v2 (auto: by the key's "
	       "format)\n"
	       "  --clock-tolerance MS  between the clocks of the peers "
	       "(30000)\n"
	       "  --stdin               take commands on standard input\n"
	       "  -h, --help            this text\n"
	       "  -V, --version         the version\n"
	       "\n"
	       "Faults, of every server or of the one last named; P is a "
	       "probability:\n"
	       "  --server I            the faults that follow are server I's; "
	       "0 is the oldest\n" FAULT_LINES "\n"
	       "rl-sandbox keygen --help tells how to make keys.\n";
}

__attribute__((format(printf, 2, 3))) static int
bad(struct parse *p, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(p->why, OPTIONS_WHY, format, ap);
	va_end(ap);
	return RLA_EINVAL;
}

static int
number(struct parse *p, const char *option, const char *text, uint64_t min,
    uint64_t max, uint64_t *out)
{
	if (number_parse(text, min, max, out) == 0)
		return 0;
	return bad(p, "--%s %s: not a number from %llu to %llu", option, text,
	    (unsigned long long)min, (unsigned long long)max);
}

static int
add_key_file(struct parse *p, const char *path)
{
	if (p->o->key_count == KEYRING_MAX)
		return bad(p, "--key-file %s: more than %d", path, KEYRING_MAX);
	p->o->key_files[p->o->key_count++] = path;
	return 0;
}

static int
add_listen(struct parse *p, const char *text)
{
	struct options *o = p->o;

	if (o->listen_count == SERVER_MAX_ADDRS)
		return bad(
		    p, "--listen %s: more than %d", text, SERVER_MAX_ADDRS);
	if (addr_parse(text, &o->listens[o->listen_count]) < 0)
		return bad(
		    p, "--listen %s: not ADDRESS:PORT or [V6]:PORT", text);
	if (addr_port(&o->listens[o->listen_count]) !=
	    addr_port(&o->listens[0]))
		return bad(
		    p, "--listen %s: every --listen needs the same port", text);
	o->listen_count++;
	return 0;
}

static int
set_profile(struct parse *p, const char *text)
{
	p->o->profile_forced = strcmp(text, "auto") != 0;
	if (strcmp(text, "v1") == 0)
		p->o->profile = PROFILE_V1;
	else if (strcmp(text, "v2") == 0)
		p->o->profile = PROFILE_V2;
	else if (p->o->profile_forced)
		return bad(p, "--profile %s: not auto, v1 or v2", text);
	return 0;
}

static int
set_server(struct parse *p, const char *text)
{
	uint64_t v;

	if (number(p, "server", text, 0, CLUSTER_MAX - 1, &v) < 0)
		return RLA_EINVAL;
	p->server = (size_t)v;
	if (p->server >= p->highest)
		p->highest = p->server + 1;
	return 0;
}

/* Of the server that was named before, or of all of them. */
static int
set_fault(struct parse *p, enum fault fault, const char *text)
{
	size_t i = p->server == ALL_SERVERS ? 0 : p->server;
	size_t end = p->server == ALL_SERVERS ? CLUSTER_MAX : i + 1;
	double v;

	if (fault_parse(fault, text, &v) < 0)
		return bad(p, "--%s %s: %s", fault_name(fault), text,
		    fault_refusal(fault));
	for (; i < end; i++)
		p->o->faults[i].values[fault] = v;
	return 0;
}

static int
set_u32(struct parse *p, const char *option, const char *text, uint64_t min,
    uint64_t max, uint32_t *out)
{
	uint64_t v;

	if (number(p, option, text, min, max, &v) < 0)
		return RLA_EINVAL;
	*out = (uint32_t)v;
	return 0;
}

static int
set_dns(struct parse *p, const char *text)
{
	p->o->dns = true;
	if (addr_parse(text, &p->o->dns_addr) < 0)
		return bad(p, "--dns %s: not ADDRESS:PORT or [V6]:PORT", text);
	return 0;
}

static int
set_cluster(struct parse *p, const char *text)
{
	uint32_t n;

	if (set_u32(p, "cluster", text, 1, CLUSTER_MAX, &n) < 0)
		return RLA_EINVAL;
	p->o->cluster = n;
	return 0;
}

static int
apply(struct parse *p, int id, const char *arg)
{
	struct options *o = p->o;

	if (id >= OPT_FAULT)
		return set_fault(p, (enum fault)(id - OPT_FAULT), arg);
	switch ((enum option_id)id) {
	case OPT_KEY_FILE:
		return add_key_file(p, arg);
	case OPT_LISTEN:
		return add_listen(p, arg);
	case OPT_CLUSTER:
		return set_cluster(p, arg);
	case OPT_DNS:
		return set_dns(p, arg);
	case OPT_ZONE:
		o->zone = arg;
		return 0;
	case OPT_DNS_TTL:
		return set_u32(
		    p, "dns-ttl", arg, 0, DNSD_MAX_TTL, &o->dns_ttl_s);
	case OPT_EVENTS:
		o->events = arg;
		return 0;
	case OPT_SEED:
		o->seeded = true;
		return number(p, "seed", arg, 0, UINT64_MAX, &o->seed);
	case OPT_PROFILE:
		return set_profile(p, arg);
	case OPT_TOLERANCE:
		return set_u32(
		    p, "clock-tolerance", arg, 0, UINT32_MAX, &o->tolerance_ms);
	case OPT_STDIN:
		o->commands = true;
		return 0;
	case OPT_SERVER:
		return set_server(p, arg);
	}
	return bad(p, "unknown option");
}

/* What only the whole command line can tell. */
static int
validate(struct parse *p)
{
	struct options *o = p->o;
	size_t i;

	if (o->listen_count == 0)
		(void)add_listen(p, DEFAULT_LISTEN);
	if (o->key_count == 0)
		return bad(p, "--key-file is missing");
	if (p->highest > o->cluster)
		return bad(p, "--server %zu: the cluster has %zu (0 to %zu)",
		    p->highest - 1, o->cluster, o->cluster - 1);
	if (addr_port(&o->listens[0]) > 0 &&
	    addr_port(&o->listens[0]) + o->cluster - 1 > UINT16_MAX)
		return bad(p, "--listen: no room for %zu ports from %u on",
		    o->cluster, addr_port(&o->listens[0]));
	if (o->zone != NULL && !o->dns)
		return bad(p, "--zone %s: needs --dns", o->zone);
	for (i = 0; o->dns && i < o->listen_count; i++)
		if (addr_is_wildcard(&o->listens[i]))
			return bad(p, "--listen: a wildcard address cannot be "
				      "published with --dns");
	return 0;
}

/* What getopt_long() did not like, in the words that it has for it in the other
 * programs; word is where it stopped. */
static void
bad_option(struct parse *p, int id, const char *word)
{
	const int len = (int)strcspn(word, "=");

	if (id == ':')
		bad(p, "option '%s' requires an argument", word);
	else if (optopt >= OPT_KEY_FILE || optopt == 'h' || optopt == 'V')
		bad(p, "option '%.*s' doesn't allow an argument", len, word);
	else if (optopt != 0) /* a letter, maybe one of several */
		bad(p, "invalid option -- '%c'", optopt);
	else
		bad(p, "unrecognized option '%s'", word);
}

enum options_outcome
options_parse(int argc, char **argv, struct options *out, char why[OPTIONS_WHY])
{
	struct parse p = {.o = out, .server = ALL_SERVERS, .why = why};
	int id;

	memset(out, 0, sizeof(*out));
	out->cluster = 1;
	out->dns_ttl_s = DEFAULT_DNS_TTL;
	out->tolerance_ms = DEFAULT_TOLERANCE;
	optind = 0; /* from the start, also the second time */
	opterr = 0;
	while (
	    (id = getopt_long(argc, argv, ":hV", long_options, NULL)) != -1) {
		if (id == 'h')
			return OPTIONS_HELP;
		if (id == 'V')
			return OPTIONS_VERSION;
		if (id == ':' || id == '?') {
			bad_option(&p, id, argv[optind - 1]);
			return OPTIONS_BAD;
		}
		if (apply(&p, id, optarg) < 0)
			return OPTIONS_BAD;
	}
	if (optind < argc) {
		bad(&p, "unexpected argument \"%s\"", argv[optind]);
		return OPTIONS_BAD;
	}
	return validate(&p) < 0 ? OPTIONS_BAD : OPTIONS_RUN;
}
