/*
 * The simulator in the test run: the core and the oracle agree on many random
 * scenarios, every kind of event was met, and a rule that is broken on purpose
 * is found, shrunk, and told as a replay script that holds for the real core.
 */
#include "tests/unit/harness.h"

#include <inttypes.h>
#include <string.h>

#include "tests/replay/script.h"
#include "tests/sim/generate.h"
#include "tests/sim/report.h"
#include "tests/sim/transcript.h"

#define SCENARIOS 200000

/* So many are enough to meet the rarest flaw. */
#define FLAWED_SCENARIOS 50000

static uint64_t seed;
static struct scenario sc;

START_TEST(test_core_and_oracle_agree)
{
	struct trial t;
	const char *missing;

	trial_init(&t, FLAW_NONE);
	for (uint64_t i = 0; i < SCENARIOS; i++) {
		generate_scenario(&sc, generate_seed(seed, i));
		if (trial_run(&t, &sc))
			continue;
		report_failure(&t, &sc, ".", stdout);
		ck_abort_msg("%s", t.why);
	}
	reach_print(&t.reach, "# ", stdout);
	fflush(stdout);
	missing = reach_missing(&t.reach);
	ck_assert_msg(missing == NULL, "never reached: %s", missing);
	trial_fini(&t);
}
END_TEST

/* The next scenario from *i on that fails. */
static void
find(struct trial *t, uint64_t *i)
{
	while (*i < FLAWED_SCENARIOS) {
		generate_scenario(&sc, generate_seed(seed, (*i)++));
		if (!trial_run(t, &sc))
			return;
	}
	ck_abort_msg("not found: %s", driver_flaw_name(t->flaw));
}

/* Returns what the interpreter of replay scripts has to say. */
static const char *
play(FILE *f)
{
	static struct script script;

	ck_assert_ptr_nonnull(f);
	script_play(&script, f);
	fclose(f);
	return script.fault;
}

static const char *
play_transcript(const struct trial *t, const struct journal *told)
{
	const char *fault;
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	ck_assert_ptr_nonnull(f);
	transcript_write(f, &sc, told, t->op, t->why);
	ck_assert_int_eq(fclose(f), 0);
	fault = play(fmemopen(text, len, "r"));
	free(text);
	return fault;
}

/* Of the shrunken scenario. */
static void
check_scripts(struct trial *t)
{
	const enum driver_flaw flaw = t->flaw;
	const char *fault = play_transcript(t, &t->oracle);

	ck_assert_msg(fault[0] == '\0', "the real core: %s", fault);
	fault = play_transcript(t, &t->core);
	ck_assert_msg((fault[0] != '\0') == driver_flaw_judges(flaw),
	    "what the flaw did is not told by its script: %s", fault);
	/* Without the flaw there is nothing to be found in it. */
	t->flaw = FLAW_NONE;
	ck_assert(trial_run(t, &sc));
	t->flaw = flaw;
}

static bool
is_small(void)
{
	return sc.ops <= 3 && sc.servers <= 3 && sc.views <= 2 &&
	       sc.stalls <= 1;
}

/*
 * A flaw, found by what the two tell; _i is its number. Shrinking may get
 * stuck, but not whatever it starts from.
 */
START_TEST(test_flaw_is_found_and_shrunk)
{
	const enum driver_flaw flaw = (enum driver_flaw)_i;
	unsigned small = 0;
	uint64_t i = 0;
	struct trial t;

	trial_init(&t, flaw);
	t.lenient = true;
	for (unsigned found = 0; found < 5; found++) {
		find(&t, &i);
		trial_shrink(&t, &sc);
		if (found == 0)
			printf("# %s: %u operations, %u servers: %s\n",
			    driver_flaw_name(flaw), sc.ops, sc.servers, t.why);
		check_scripts(&t);
		small += is_small();
	}
	fflush(stdout);
	ck_assert_uint_ge(small, 1);
	trial_fini(&t);
}
END_TEST

/* The script of a failure is where its path is printed, and holds. */
START_TEST(test_failure_leaves_a_script)
{
	char folder[] = "/tmp/check_sim.XXXXXX", line[4096] = "";
	FILE *said = tmpfile();
	struct trial t;
	uint64_t i = 0;
	char *end;

	ck_assert_ptr_nonnull(said);
	ck_assert_ptr_nonnull(mkdtemp(folder));
	trial_init(&t, FLAW_NO_PREFERENCE);
	find(&t, &i);
	report_failure(&t, &sc, folder, said);
	rewind(said);
	do {
		end = fgets(line, sizeof(line), said);
		ck_assert_ptr_nonnull(end);
		end = strstr(line, ": expects what the oracle does");
	} while (end == NULL);
	*end = '\0';
	ck_assert_int_eq(strncmp(line + 2, folder, strlen(folder)), 0);
	ck_assert_str_eq(play(fopen(line + 2, "r")), "");
	fclose(said);
	unlink(line + 2);
	rmdir(folder);
	trial_fini(&t);
}
END_TEST

/*
 * What the oracle tells of any operation holds in a script: for the core, and
 * for the other oracle that the scripts go past.
 */
START_TEST(test_every_life_is_a_script)
{
	const char *fault;
	struct trial t;

	trial_init(&t, FLAW_NONE);
	for (uint64_t i = 0; i < SCENARIOS / 50; i++) {
		generate_scenario(&sc, generate_seed(seed, i));
		ck_assert(trial_run(&t, &sc));
		for (t.op = 0; t.op < sc.ops; t.op++) {
			fault = play_transcript(&t, &t.oracle);
			ck_assert_msg(fault[0] == '\0',
			    "scenario %" PRIu64 ", operation %u: %s", sc.seed,
			    t.op, fault);
		}
	}
	trial_fini(&t);
}
END_TEST

/* The properties alone find what reaches the core itself. */
START_TEST(test_properties_find_flaws)
{
	static const enum driver_flaw flaws[] = {FLAW_NO_PREFERENCE,
	    FLAW_LONG_PREFERENCE, FLAW_NO_FINAL, FLAW_PATIENT, FLAW_TRUSTING};
	const char *broken = NULL;
	struct trial t;
	uint32_t op;

	trial_init(&t, flaws[_i]);
	for (uint64_t i = 0; i < FLAWED_SCENARIOS && broken == NULL; i++) {
		generate_scenario(&sc, generate_seed(seed, i));
		journal_clear(&t.core);
		broken =
		    driver_run(t.driver, &sc, t.flaw, &t.core, &t.reach, &op);
	}
	ck_assert_msg(
	    broken != NULL, "not found: %s", driver_flaw_name(t.flaw));
	printf("# %s: %s\n", driver_flaw_name(t.flaw), broken);
	fflush(stdout);
	trial_fini(&t);
}
END_TEST

/* A scenario is its seed's, whatever was made before it. */
START_TEST(test_seed_tells_all)
{
	static struct scenario again, other;
	char why[320];
	struct trial a, b;

	trial_init(&a, FLAW_NONE);
	trial_init(&b, FLAW_NONE);
	for (uint64_t i = 0; i < 500; i++) {
		generate_scenario(&sc, generate_seed(seed, i));
		generate_scenario(&other, generate_seed(~seed, i));
		generate_scenario(&again, sc.seed);
		trial_run(&a, &sc);
		trial_run(&b, &other);
		trial_run(&b, &again);
		ck_assert_msg(journal_compare(&a.core, &b.core, sc.ops, why,
				  sizeof(why)) < 0,
		    "%s", why);
	}
	trial_fini(&a);
	trial_fini(&b);
}
END_TEST

START_TEST(test_idle_run_is_noticed)
{
	struct reach idle = {0};

	ck_assert_ptr_nonnull(reach_missing(&idle));
	for (size_t i = 0; i < REACH_CLASSES - 1; i++)
		idle.count[i] = 1;
	ck_assert_ptr_nonnull(reach_missing(&idle));
	idle.count[REACH_CLASSES - 1] = 1;
	ck_assert_ptr_null(reach_missing(&idle));
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("sim");
	TCase *t = tcase_create("sim");

	seed = harness_seed();
	tcase_set_timeout(t, 0);
	tcase_add_test(t, test_core_and_oracle_agree);
	tcase_add_loop_test(
	    t, test_flaw_is_found_and_shrunk, FLAW_NONE + 1, DRIVER_FLAWS);
	tcase_add_test(t, test_failure_leaves_a_script);
	tcase_add_test(t, test_every_life_is_a_script);
	tcase_add_loop_test(t, test_properties_find_flaws, 0, 5);
	tcase_add_test(t, test_seed_tells_all);
	tcase_add_test(t, test_idle_run_is_noticed);
	suite_add_tcase(suite, t);
	return harness_run(suite);
}
