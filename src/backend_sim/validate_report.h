/* The comparison of real runs with the simulator's: figure by figure, medians over databases of one
 * experiment, and whether the bounds hold. */
#ifndef DM_VALIDATE_REPORT_H
#define DM_VALIDATE_REPORT_H

#include <stdio.h>

#include "backend_sim/validate.h"

/* What a system's validations (one a database) come to. */
struct verdict {
  const char *system;
  guint runs;
  gboolean replayed, judged; /* judged: the machine had a core for each process and one more, in every run */
  uint32_t cores, processes; /* of the first database */
  gboolean within;           /* every bound holds, for the medians */
};

/* validations: of struct validation *, of any systems in any order. Systems come in the order of their first.
 */
void validate_report(FILE *out, const GPtrArray *validations, gboolean colour);
/* One JSON object; free with g_free. */
char *validate_json(const char *experiment, const GPtrArray *validations);

#endif
