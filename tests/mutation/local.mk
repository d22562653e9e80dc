# tests/mutation: the rules of the policy, each broken on purpose. "make check"
# only looks whether the list fits the sources.

lint_tests += tests/mutation/list
EXTRA_DIST += \
	tests/mutation/mutate.awk \
	tests/mutation/mutations \
	tests/mutation/run

# MUTATION_ARGS: lines of tests/mutation/mutations, else all are tried.
mutation:
	@CC='$(CC)' CHECK_CFLAGS='$(CHECK_CFLAGS)' CHECK_LIBS='$(CHECK_LIBS)' \
		$(SHELL) $(srcdir)/tests/mutation/run $(MUTATION_ARGS)

.PHONY: mutation
