/* The columns of figures that tables have, of a run's systems as of a sweep's points: title, value, and how
 * its numbers are written. */
#ifndef DM_REPORT_COLUMN_H
#define DM_REPORT_COLUMN_H

#include "harness/results.h"

enum column_best { BEST_NONE, BEST_HIGH, BEST_LOW };

struct report_column {
  const char *title;
  double (*value)(const struct figures *figures);
  enum column_best best;
  gboolean integer;
  gboolean needs_completed; /* latencies of a system that completed nothing are unknown, not 0 */
};

enum report_column_id {
  COLUMN_REQUESTS,
  COLUMN_COMPLETED,
  COLUMN_REJECTED,
  COLUMN_FAILED,
  COLUMN_THROUGHPUT,
  COLUMN_MEAN,
  COLUMN_P50,
  COLUMN_P99,
  COLUMN_SLO,
  COLUMN_GPU,
  COLUMN_LOADS,
  COLUMN_NET,
  REPORT_COLUMNS
};

extern const struct report_column report_columns[REPORT_COLUMNS];

gboolean report_column_known(const struct report_column *column, const struct figures *figures);
/* A column's cells, "-" for what is not known. texts: [count]; free each with g_free. */
void report_column_texts(const struct report_column *column, const struct figures *const *figures,
                         size_t count, char **texts);

#endif
