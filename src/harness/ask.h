/* What one row of a request trace asks for: when, what, and how much work. Fixed in size, so that rows can be
 * kept in a file. */
#ifndef DM_ASK_H
#define DM_ASK_H

#include "harness/model_map.h"

struct ask {
  int64_t arrival_ns; /* from the first row */
  int64_t service_ns; /* as traced; -1 = absent */
  struct target target;
  int32_t input_tokens, output_tokens; /* -1 = absent */
  uint32_t line;                       /* of the trace's file, 0 = none */
};

/* Of a trace's row. FALSE + DM_ERROR_INPUT: map = name, and no model has its name. */
gboolean ask_of_row(const struct setup *setup, struct model_map *map, const struct trace_row *row,
                    struct ask *ask, GError **error);
/* What a request of that model takes on a GPU that has it, where the row tells; 0: the profile's own time.
 * Tokens count where the profile has a cost for them. FALSE + DM_ERROR_INPUT: longer than any request may. */
gboolean ask_service_ns(const struct setup *setup, const struct ask *ask, uint32_t model, int64_t *service_ns,
                        GError **error);

#endif
