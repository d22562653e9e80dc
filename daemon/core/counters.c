/* The rows of the counter tables, made from the one list in the header. */
#include "daemon/core/counters.h"

#define TENANT_ROW(name, help) \
	{#name, help, offsetof(struct tenant_counters, name)},
#define AGENT_ROW(name, help) \
	{#name, help, offsetof(struct agent_counters, name)},
#define RULE_ROW(name, help) \
	{#name, help, offsetof(struct rule_counters, name)},
#define LIMITER_ROW(name, help) \
	{#name, help, offsetof(struct limiter_counters, name)},
#define ERROR_CONTROL_ROW(name, help) \
	{#name, help, offsetof(struct error_control_counters, name)},

const struct counter_row tenant_counter_rows[] = {
    TENANT_COUNTERS(TENANT_ROW){NULL, NULL, 0}};

const struct counter_row agent_counter_rows[] = {
    AGENT_COUNTERS(AGENT_ROW){NULL, NULL, 0}};

const struct counter_row rule_counter_rows[] = {
    RULE_COUNTERS(RULE_ROW){NULL, NULL, 0}};

const struct counter_row limiter_counter_rows[] = {
    LIMITER_COUNTERS(LIMITER_ROW){NULL, NULL, 0}};

const struct counter_row error_control_counter_rows[] = {
    ERROR_CONTROL_COUNTERS(ERROR_CONTROL_ROW){NULL, NULL, 0}};
