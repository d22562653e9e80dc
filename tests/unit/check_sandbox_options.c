/* Command lines of both halves of rl-sandbox: what is taken, what is told. */
#include "sandbox/options.h"

#include <string.h>

#include "sandbox/keygen.h"
#include "tests/unit/harness.h"

#define MAX_WORDS 64

static struct options opt;
static struct credential cred;
static char why[OPTIONS_WHY];
static char text[1024];
static char *words[MAX_WORDS + 1];

static int
split(const char *line)
{
	int n = 0;
	char *save = NULL, *word;

	snprintf(text, sizeof text, "%s", line);
	for (word = strtok_r(text, " ", &save); word != NULL;
	     word = strtok_r(NULL, " ", &save))
		words[n++] = word;
	words[n] = NULL;
	return n;
}

static enum options_outcome
parse(const char *line)
{
	int n = split(line);

	why[0] = '\0';
	return options_parse(n, words, &opt, why);
}

START_TEST(defaults)
{
	char address[ADDR_TEXT_MAX];
	size_t i, f;

	ck_assert_int_eq(parse("rl-sandbox --key-file k"), OPTIONS_RUN);
	ck_assert_uint_eq(opt.key_count, 1);
	ck_assert_str_eq(opt.key_files[0], "k");
	ck_assert_uint_eq(opt.listen_count, 1);
	addr_format(&opt.listens[0], address);
	ck_assert_str_eq(address, "127.0.0.1:0");
	ck_assert_uint_eq(opt.cluster, 1);
	ck_assert(!opt.dns && !opt.seeded && !opt.commands);
	ck_assert(!opt.profile_forced);
	ck_assert_ptr_null(opt.zone);
	ck_assert_ptr_null(opt.events);
	ck_assert_uint_eq(opt.dns_ttl_s, 60);
	ck_assert_uint_eq(opt.tolerance_ms, 30000);
	for (i = 0; i < CLUSTER_MAX; i++)
		for (f = 0; f < FAULT_COUNT; f++)
			ck_assert(opt.faults[i].values[f] == 0);
}
END_TEST

START_TEST(everything_at_once)
{
	ck_assert_int_eq(
	    parse("rl-sandbox --key-file a --key-file b --listen "
		  "127.0.0.1:4000 --listen [::1]:4000 --cluster 3 --dns "
		  "[::1]:53 --zone z.example --dns-ttl 5 --events - --seed "
		  "18446744073709551615 --profile v1 --clock-tolerance 0 "
		  "--stdin"),
	    OPTIONS_RUN);
	ck_assert_uint_eq(opt.key_count, 2);
	ck_assert_uint_eq(opt.listen_count, 2);
	ck_assert_uint_eq(opt.cluster, 3);
	ck_assert_uint_eq(addr_port(&opt.dns_addr), 53);
	ck_assert_str_eq(opt.zone, "z.example");
	ck_assert_uint_eq(opt.seed, UINT64_MAX);
	ck_assert(opt.seeded && opt.commands && opt.profile_forced);
	ck_assert_int_eq(opt.profile, PROFILE_V1);
	ck_assert_uint_eq(opt.tolerance_ms, 0);
	ck_assert_int_eq(
	    parse("rl-sandbox --profile v2 --profile auto --key-file a"),
	    OPTIONS_RUN);
	ck_assert(!opt.profile_forced);
}
END_TEST

static double
fault(size_t server, enum fault f)
{
	return opt.faults[server].values[f];
}

/* The order of the options decides whose faults they are. */
START_TEST(faults_follow_the_server_before_them)
{
	ck_assert_int_eq(
	    parse("rl-sandbox --key-file k --cluster 3 --drop 0.25 --delay 7 "
		  "--server 0 --drop 1 --server 2 --delay 0 --drop 0"),
	    OPTIONS_RUN);
	ck_assert(fault(0, FAULT_DROP) == 1);
	ck_assert(fault(1, FAULT_DROP) == 0.25);
	ck_assert(fault(2, FAULT_DROP) == 0);
	ck_assert(fault(0, FAULT_DELAY) == 7);
	ck_assert(fault(1, FAULT_DELAY) == 7);
	ck_assert(fault(2, FAULT_DELAY) == 0);
}
END_TEST

/* Each option of the table sets its own fault, of its own server. */
START_TEST(every_fault_is_an_option)
{
	const char *value = _i == FAULT_CLOCK_OFFSET ? "-5000" : "1";
	char line[256];
	size_t i, f;

	snprintf(line, sizeof line,
	    "rl-sandbox --key-file k --cluster 2 --server 1 --%s %s",
	    fault_name((enum fault)_i), value);
	ck_assert_msg(parse(line) == OPTIONS_RUN, "%s: %s", line, why);
	for (i = 0; i < CLUSTER_MAX; i++)
		for (f = 0; f < FAULT_COUNT; f++)
			ck_assert((fault(i, (enum fault)f) == atof(value)) ==
				  (i == 1 && f == (size_t)_i));
	snprintf(line, sizeof line, "\n  --%s ", fault_name((enum fault)_i));
	ck_assert_ptr_nonnull(strstr(options_help(), line));
	snprintf(line, sizeof line, "rl-sandbox --key-file k --%s",
	    fault_name((enum fault)_i));
	ck_assert_int_eq(parse(line), OPTIONS_BAD);
	snprintf(line, sizeof line, "option '--%s' requires an argument",
	    fault_name((enum fault)_i));
	ck_assert_str_eq(why, line);
}
END_TEST

START_TEST(help_and_version)
{
	ck_assert_int_eq(parse("rl-sandbox --help"), OPTIONS_HELP);
	ck_assert_int_eq(parse("rl-sandbox -h --nonsense"), OPTIONS_HELP);
	ck_assert_int_eq(parse("rl-sandbox -V"), OPTIONS_VERSION);
	ck_assert_int_eq(parse("rl-sandbox --version"), OPTIONS_VERSION);
	ck_assert_ptr_nonnull(strstr(options_help(), "NOT a production"));
}
END_TEST

static const struct {
	const char *line;
	const char *why; /* a part of it */
} bad_lines[] = {
    {"rl-sandbox", "--key-file is missing"},
    {"rl-sandbox --key-file", "option '--key-file' requires an argument"},
    {"rl-sandbox --key-file k extra", "extra"},
    {"rl-sandbox --key-file k --scramble 1",
	"unrecognized option '--scramble'"},
    {"rl-sandbox --key-file k --d 1", "--d"}, /* of several */
    {"rl-sandbox --key-file k -x", "invalid option -- 'x'"},
    {"rl-sandbox --key-file k -xV", "invalid option -- 'x'"},
    {"rl-sandbox --key-file k --stdin=1",
	"option '--stdin' doesn't allow an argument"},
    {"rl-sandbox --key-file k --help=x",
	"option '--help' doesn't allow an argument"},
    {"rl-sandbox --key-file k --listen localhost:1", "localhost:1"},
    {"rl-sandbox --key-file k --listen 127.0.0.1", "127.0.0.1"},
    {"rl-sandbox --key-file k --listen 127.0.0.1:65536", "65536"},
    {"rl-sandbox --key-file k --listen ::1:1", "::1:1"},
    {"rl-sandbox --key-file k --listen 127.0.0.1:1 --listen [::1]:2",
	"same port"},
    {"rl-sandbox --key-file k --listen 127.0.0.1:65535 --cluster 2", "65535"},
    {"rl-sandbox --key-file k --cluster 0", "--cluster 0"},
    {"rl-sandbox --key-file k --cluster 65", "--cluster 65"},
    {"rl-sandbox --key-file k --cluster 3x", "--cluster 3x"},
    {"rl-sandbox --key-file k --zone z", "needs --dns"},
    {"rl-sandbox --key-file k --dns 53", "--dns 53"},
    {"rl-sandbox --key-file k --dns 127.0.0.1:0 --listen 0.0.0.0:0",
	"wildcard"},
    {"rl-sandbox --key-file k --dns 127.0.0.1:0 --listen [::]:0", "wildcard"},
    {"rl-sandbox --key-file k --seed -1", "--seed -1"},
    {"rl-sandbox --key-file k --profile v3", "--profile v3"},
    {"rl-sandbox --key-file k --server 1", "--server 1"},
    {"rl-sandbox --key-file k --server 1 --drop 1 --server 0", "--server 1"},
    {"rl-sandbox --key-file k --drop 2", "--drop 2"},
    {"rl-sandbox --key-file k --drop inf", "--drop inf"},
    {"rl-sandbox --key-file k --delay 60001",
	"--delay 60001: not a number from 0 to 60000"},
    {"rl-sandbox --key-file k --jitter 0.5", "--jitter 0.5"},
    {"rl-sandbox --key-file k --jitter -1", "--jitter -1"},
    {"rl-sandbox --key-file k --duplicate 1.5", "--duplicate 1.5"},
    {"rl-sandbox --key-file k --corrupt yes",
	"--corrupt yes: not a number from 0 to 1"},
    {"rl-sandbox --key-file k --wrong-id 7", "--wrong-id 7"},
    {"rl-sandbox --key-file k --rebind -0.1", "--rebind -0.1"},
    {"rl-sandbox --key-file k --server 1 --rebind 1", "--server 1"},
    {"rl-sandbox --key-file k --clock-offset 4294967296",
	"--clock-offset 4294967296: not a number from -4294967295 to "
	"4294967295"},
    {"rl-sandbox --key-file k --clock-offset -4294967296", "--clock-offset"},
    {"rl-sandbox --key-file k --clock-offset +1", "--clock-offset +1"},
    {"rl-sandbox --key-file k --clock-offset --1", "--clock-offset --1"},
    {"rl-sandbox --key-file k --clock-offset -", "--clock-offset -"},
    {"rl-sandbox --key-file k --clock-offset 1s", "--clock-offset 1s"},
    {"rl-sandbox --key-file k --dns-ttl 604801", "--dns-ttl 604801"},
};

START_TEST(bad_options_are_named)
{
	ck_assert_int_eq(parse(bad_lines[_i].line), OPTIONS_BAD);
	ck_assert_msg(strstr(why, bad_lines[_i].why) != NULL, "%s: %s",
	    bad_lines[_i].line, why);
	ck_assert_ptr_null(strchr(why, '\n'));
}
END_TEST

static enum keygen_outcome
keygen(const char *line)
{
	int n = split(line);

	why[0] = '\0';
	return keygen_parse(n, words, &cred, why);
}

/* Whatever is taken can be written as a key and read back. */
START_TEST(taken_quotas_can_be_expressed)
{
	static const char *const lines[] = {
	    "keygen --auth aes --key-id 1",
	    "keygen --auth none --key-id 0",
	    "keygen --auth cookie --key-id 18446744073709551615 --format 0",
	    "keygen --auth aes --key-id 1 --dedup-max 10 --rate-buckets 1 "
	    "--latency-trackers 1 --labels 1 --buffer 1 --window-max 1",
	    "keygen --auth aes --key-id 1 --dedup-max 2000 --rate-buckets "
	    "16777216 --latency-trackers 16777216 --labels 2147483648 "
	    "--buffer 32768 --window-max 1073741824",
	    "keygen --auth aes --key-id 1 --window-max 4294967295",
	    "keygen --auth aes --format 0 --key-id 1 --dedup-max 0 "
	    "--rate-buckets 3 --labels 0 --buffer 4294967295",
	};
	char key[CREDENTIAL_TEXT_MAX];
	struct credential back;

	ck_assert_msg(keygen(lines[_i]) == KEYGEN_MAKE, "%s", why);
	ck_assert_int_eq(credential_format(&cred, key, sizeof key), 0);
	ck_assert_int_eq(credential_parse(key, strlen(key), &back), 0);
	ck_assert_mem_eq(&back.quotas, &cred.quotas, sizeof back.quotas);
	ck_assert_uint_eq(back.key_id, cred.key_id);
	ck_assert_int_eq(back.auth, cred.auth);
	ck_assert_int_eq(back.format, cred.format);
}
END_TEST

static const struct {
	const char *line;
	const char *why;
} bad_keys[] = {
    {"keygen --key-id 1", "--auth is missing"},
    {"keygen --auth aes", "--key-id is missing"},
    {"keygen --auth rsa --key-id 1", "--auth rsa"},
    {"keygen --auth aes --key-id 18446744073709551616", "--key-id"},
    {"keygen --auth aes --key-id 1 --format 2", "--format 2"},
    {"keygen --auth none --key-id 1 --format 0", "none"},
    {"keygen --auth aes --key-id 1 --dedup-max 15", "--dedup-max 15"},
    {"keygen --auth aes --key-id 1 --dedup-max 0", "--dedup-max 0"},
    {"keygen --auth aes --key-id 1 --dedup-max 2010", "--dedup-max 2010"},
    {"keygen --auth aes --key-id 1 --labels 1000", "--labels 1000"},
    {"keygen --auth aes --key-id 1 --buffer 65536", "--buffer 65536"},
    {"keygen --auth aes --key-id 1 --rate-buckets 33554432", "--rate-buckets"},
    {"keygen --auth aes --key-id 1 --latency-trackers 0", "--latency-trackers"},
    {"keygen --auth aes --key-id 1 --window-max 2147483648", "--window-max"},
    {"keygen --auth aes --key-id 1 --window-max 1000", "--window-max"},
    {"keygen --auth aes --key-id 1 --format 0 --window-max 1024",
	"--window-max"},
    {"keygen --auth aes --key-id 1 --format 0 --labels 4294967296", "--labels"},
    {"keygen --auth aes --key-id", "option '--key-id' requires an argument"},
    {"keygen --auth aes --key-id 1 --secret x", "--secret"},
    {"keygen --auth aes --key-id 1 more", "more"},
};

START_TEST(bad_key_options_are_named)
{
	ck_assert_int_eq(keygen(bad_keys[_i].line), KEYGEN_BAD);
	ck_assert_msg(strstr(why, bad_keys[_i].why) != NULL, "%s: %s",
	    bad_keys[_i].line, why);
}
END_TEST

START_TEST(format_1_is_the_default)
{
	ck_assert_int_eq(keygen("keygen --auth aes --key-id 7"), KEYGEN_MAKE);
	ck_assert_int_eq(cred.format, KEY_FORMAT_1);
	ck_assert_uint_eq(cred.quotas.dedup_ttl_ms, 2000);
	ck_assert_int_eq(keygen("keygen --help"), KEYGEN_HELP);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("sandbox_options");
	TCase *tc = tcase_create("options");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, defaults);
	tcase_add_test(tc, everything_at_once);
	tcase_add_test(tc, faults_follow_the_server_before_them);
	tcase_add_loop_test(tc, every_fault_is_an_option, 0, FAULT_COUNT);
	tcase_add_test(tc, help_and_version);
	tcase_add_loop_test(tc, bad_options_are_named, 0,
	    (int)(sizeof bad_lines / sizeof bad_lines[0]));
	tcase_add_loop_test(tc, taken_quotas_can_be_expressed, 0, 7);
	tcase_add_loop_test(tc, bad_key_options_are_named, 0,
	    (int)(sizeof bad_keys / sizeof bad_keys[0]));
	tcase_add_test(tc, format_1_is_the_default);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
