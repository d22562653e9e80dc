/* The rows of the table of metrics, made from the one list in the header. */
#include "daemon/core/metrics.h"

#define ROW(id, name, type, labels, help) \
	{name, METRIC_TYPE_##type, labels, help},

const struct metric_row metric_rows[METRIC_COUNT] = {METRICS(ROW)};

const char *
metric_type_name(enum metric_type type)
{
	switch (type) {
	case METRIC_TYPE_COUNTER:
		return "counter";
	case METRIC_TYPE_GAUGE:
		return "gauge";
	case METRIC_TYPE_HISTOGRAM:
		return "histogram";
	}
	return "untyped";
}
