/* What one row of a request trace asks for; see ask.h. */
#include "harness/ask.h"

#include "core/error.h"
#include "harness/trace_format.h"

gboolean ask_of_row(const struct setup *setup, struct model_map *map, const struct trace_row *row,
                    struct ask *ask, GError **error)
{
  *ask = (struct ask){.arrival_ns = row->arrival_ns,
                      .service_ns = row->service_ns,
                      .input_tokens = (int32_t)row->input_tokens,
                      .output_tokens = (int32_t)row->output_tokens,
                      .line = row->line};
  return model_map_resolve(map, row->model, &ask->target) ||
         input_error(error, setup->experiment->trace, row->line,
                     "map = name: no model of the experiment is called '%s'", row->model);
}

gboolean ask_service_ns(const struct setup *setup, const struct ask *ask, uint32_t model, int64_t *service_ns,
                        GError **error)
{
  const struct profile *profile = catalog_profile(setup->catalog, model);
  *service_ns = max_i64(0, ask->service_ns);
  if (setup->experiment->service_from_trace)
    return TRUE;
  double tokens = MAX(0, ask->input_tokens) * profile->input_token_ns +
                  MAX(0, ask->output_tokens) * profile->output_token_ns;
  double resident = resident_ns(setup->plans, catalog_model(setup->catalog, model)->profile, 0);
  *service_ns = tokens > 0 ? ns_round(tokens + resident) : 0;
  return *service_ns <= TRACE_SERVICE_MAX_NS ||
         input_error(error, setup->experiment->trace, ask->line,
                     "expected tokens that take at most %g s, found %.9g s with %s",
                     (double)TRACE_SERVICE_MAX_NS / NS_PER_S, tokens / NS_PER_S, profile->name);
}
