/* The comparison of systems: an aligned table with the best of each column marked, and the JSON object. */
#ifndef DM_REPORT_H
#define DM_REPORT_H

#include <stdio.h>
#include "harness/results.h"

struct report_run {
  struct run_info info;
  struct figures figures;
};

/* Table with constants and notices under it. colour: mark with escapes (a terminal), else with '*'. */
void report_table(FILE *out, const struct report_run *runs, size_t count, gboolean colour);
/* The one JSON object of --json: schema, experiment, backend, seed, runs[]; ends with a newline. */
char *report_json(const struct report_run *runs, size_t count);
/* The figures of one run as members of the object that is open. */
struct json_writer;
void report_json_figures(struct json_writer *json, const struct figures *figures);

#endif
