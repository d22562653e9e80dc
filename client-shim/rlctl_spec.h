/* Trackers on the command line: NAME:TTL:MAX:BUF:MIN, and :BELOW for guards. */
#ifndef RLCTL_SPEC_H
#define RLCTL_SPEC_H

#include "client-shim/rlshim.h"

/* Each exits 64, naming option, when text is not of its form. */
void rlctl_spec_guard(
    const char *option, const char *text, struct rl_guard *out);
void rlctl_spec_tracker(
    const char *option, const char *text, struct rl_guard *out);

#endif
