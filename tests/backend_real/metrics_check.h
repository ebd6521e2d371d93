/* Reads metrics as Prometheus does, and holds them to its text format 0.0.4 and its naming conventions. */
#ifndef METRICS_CHECK_H
#define METRICS_CHECK_H

#include <glib.h>

/* Samples by name and labels as they stand in the text; values are double *. Fails the test at the first line
 * that is wrong. g_hash_table_unref. */
GHashTable *metrics_check(const char *text);
/* Value of `distmind_requests_total{outcome="completed"}`; fails the test if it is not there. */
double metrics_value(GHashTable *samples, const char *sample);
/* No counter of `before` is less in `after`, nor gone. */
void metrics_check_grown(GHashTable *before, GHashTable *after);

#endif
