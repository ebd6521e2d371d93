/* The load that a trace brings; see ask_load.h. */
#include "harness/ask_load.h"

/* Sums over the rows of one target. */
struct demand_sum {
  double rows; /* without a traced service time */
  double input_tokens, output_tokens;
};

struct ask_load {
  const struct setup *setup;
  const struct model_map *map;
  uint32_t profiles;
  struct demand_sum any;
  struct demand_sum *profile; /* [profiles] */
  GArray *name;               /* of struct demand_sum, by name index */
  double rows, traced_ns;     /* all rows; sum of traced service times */
};

struct ask_load *ask_load_new(const struct setup *setup, const struct model_map *map)
{
  struct ask_load *load = g_new0(struct ask_load, 1);
  load->setup = setup;
  load->map = map;
  load->profiles = setup->catalog->profiles->len;
  load->profile = g_new0(struct demand_sum, load->profiles);
  load->name = g_array_new(FALSE, TRUE, sizeof(struct demand_sum));
  return load;
}

void ask_load_free(struct ask_load *load)
{
  g_free(load->profile);
  g_array_unref(load->name);
  g_free(load);
}

static struct demand_sum *sum_of(struct ask_load *load, struct target target)
{
  switch ((enum target_kind)target.kind) {
  case TARGET_PROFILE:
    return &load->profile[target.index];
  case TARGET_MODEL: /* variants of a profile take the same time */
    return &load->profile[catalog_model(load->setup->catalog, target.index)->profile];
  case TARGET_NAME:
    if (target.index >= load->name->len)
      g_array_set_size(load->name, target.index + 1);
    return &g_array_index(load->name, struct demand_sum, target.index);
  case TARGET_ANY:
    break;
  }
  return &load->any;
}

void ask_load_add(struct ask_load *load, const struct ask *ask)
{
  load->rows++;
  if (load->setup->experiment->service_from_trace && ask->service_ns > 0) {
    load->traced_ns += (double)ask->service_ns;
    return;
  }
  struct demand_sum *sum = sum_of(load, ask->target);
  sum->rows++;
  if (load->setup->experiment->service_from_trace)
    return;
  sum->input_tokens += MAX(0, ask->input_tokens);
  sum->output_tokens += MAX(0, ask->output_tokens);
}

/* What rows of one profile take on a GPU of hw. With tokens the time does not depend on it: see
 * ask_service_ns. */
static double profile_ns(const struct ask_load *load, const struct demand_sum *sum, uint32_t p, uint32_t hw)
{
  const struct profile *profile = load->setup->catalog->profiles->pdata[p];
  double tokens = sum->input_tokens * profile->input_token_ns + sum->output_tokens * profile->output_token_ns;
  return tokens + sum->rows * resident_ns(load->setup->plans, p, tokens > 0 ? 0 : hw);
}

static double target_ns(const struct ask_load *load, const struct demand_sum *sum, struct target target,
                        uint32_t hw, double *part)
{
  double ns = 0;
  if (sum->rows == 0)
    return 0;
  model_map_mix(load->map, target, part);
  for (uint32_t p = 0; p < load->profiles; p++)
    if (part[p] > 0)
      ns += part[p] * profile_ns(load, sum, p, hw);
  return ns;
}

/* What all rows take on one GPU of hw. */
static double total_ns(const struct ask_load *load, uint32_t hw)
{
  g_autofree double *part = g_new(double, load->profiles);
  double ns = load->traced_ns + target_ns(load, &load->any, (struct target){TARGET_ANY, 0}, hw, part);
  for (uint32_t p = 0; p < load->profiles; p++)
    ns += target_ns(load, &load->profile[p], (struct target){TARGET_PROFILE, p}, hw, part);
  for (uint32_t i = 0; i < load->name->len; i++)
    ns += target_ns(load, &g_array_index(load->name, struct demand_sum, i), (struct target){TARGET_NAME, i},
                    hw, part);
  return ns;
}

double ask_load_part(const struct ask_load *load, double span_ns)
{
  const struct config *config = &load->setup->config;
  double capacity = 0; /* of all rows, how often a nanosecond */
  g_autofree double *each = g_new(double, config->hardware_count);
  for (uint32_t hw = 0; hw < config->hardware_count; hw++)
    each[hw] = total_ns(load, hw);
  for (uint32_t s = 0; s < config->servers_at_start; s++)
    if (each[config->server[s].hw] > 0)
      capacity += config->server[s].gpus / each[config->server[s].hw];
  return span_ns > 0 && capacity > 0 ? 1 / (capacity * span_ns) : 0;
}
