/* Metrics as text: Prometheus' exposition format 0.0.4. A family's head comes before its samples, and all of
 * its samples stand together. */
#ifndef DM_METRICS_TEXT_H
#define DM_METRICS_TEXT_H

#include <glib.h>
#include <stdint.h>
#include "core/world.h"

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

/* HELP and TYPE. name: as by Prometheus' conventions, base units, counters end in _total. */
void metric_family(GString *text, const char *name, enum metric_type type, const char *help);
/* A sample of the family; pairs of label and value, any text, then NULL. */
void metric_sample(GString *text, const char *name, double value, ...) G_GNUC_NULL_TERMINATED;
/* A family of one sample without labels. */
void metric_single(GString *text, const char *name, enum metric_type type, const char *help, double value);
/* A histogram: count[bounds + 1] by class, the last one open; bounds in seconds. */
void metric_histogram(GString *text, const char *name, const char *help, const double *bound_s,
                      uint32_t bounds, const uint64_t *count, double sum_s);

/* What every process tells: build, time of start, CPU time, memory. `run`: the one that is on, 0 = none. */
void metrics_process(GString *text, actor_id self, uint32_t run);

#endif
