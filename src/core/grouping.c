/* Cutting models into groups and predicting what a cut costs; see grouping.h. */
#include "core/grouping.h"

#include <string.h>
#include "core/error.h"
#include "core/grouping_optimal.h"

static const struct {
  const char *name;
  uint64_t argument_max; /* 0: takes none */
} kinds[] = {
    [GROUPING_PER_LAYER] = {"per-layer", 0},  [GROUPING_FIXED] = {"fixed", UINT64_MAX},
    [GROUPING_COUNT] = {"count", UINT32_MAX}, [GROUPING_PER_APP] = {"per-app", 0},
    [GROUPING_OPTIMAL] = {"optimal", 0},
};

gboolean grouping_policy_parse(const char *text, struct grouping_policy *policy, GError **error)
{
  const char *colon = strchr(text, ':');
  size_t length = colon ? (size_t)(colon - text) : strlen(text);
  for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
    if (strlen(kinds[i].name) != length || memcmp(kinds[i].name, text, length) != 0 ||
        (colon != NULL) != (kinds[i].argument_max != 0))
      continue;
    guint64 argument = 0;
    if (colon && !g_ascii_string_to_unsigned(colon + 1, 10, 1, kinds[i].argument_max, &argument, NULL))
      return input_error(error, NULL, 0,
                         "expected a whole number from 1 to %" G_GUINT64_FORMAT " after '%s:', found '%s'",
                         kinds[i].argument_max, kinds[i].name, colon + 1);
    *policy = (struct grouping_policy){.kind = (enum grouping_kind)i, .argument = argument};
    return TRUE;
  }
  return input_error(error, NULL, 0,
                     "expected a grouping (per-layer, fixed:BYTES, count:N, per-app or optimal), found '%s'",
                     text);
}

char *grouping_policy_format(const struct grouping_policy *policy)
{
  const char *name = kinds[policy->kind].name;
  return kinds[policy->kind].argument_max ? g_strdup_printf("%s:%" G_GUINT64_FORMAT, name, policy->argument)
                                          : g_strdup(name);
}

static uint32_t cut_per_layer(uint32_t layers, uint32_t *first_layer)
{
  for (uint32_t i = 0; i < layers; i++)
    first_layer[i] = i;
  return layers;
}

/* Gathers layers until the next would exceed `bytes`. */
static uint32_t cut_fixed(const struct profile *profile, uint64_t bytes, uint32_t *first_layer)
{
  uint32_t groups = 1;
  uint64_t gathered = profile->layer_bytes[0];
  for (uint32_t i = 1; i < profile->layers; i++) {
    if (gathered > bytes || profile->layer_bytes[i] > bytes - gathered) {
      first_layer[groups++] = i;
      gathered = 0;
    }
    gathered += profile->layer_bytes[i];
  }
  return groups;
}

/* Cuts at the boundary nearest to each i / groups of the bytes (the earlier of two), leaving every group a
 * layer. */
static uint32_t cut_count(const struct profile *profile, uint64_t count, uint32_t *first_layer)
{
  uint32_t groups = (uint32_t)MIN(count, profile->layers);
  uint64_t whole = profile->param_bytes / groups, rest = profile->param_bytes % groups;
  uint64_t before = 0; /* bytes of the layers before end */
  uint32_t end = 0;
  for (uint32_t i = 1; i < groups; i++) {
    uint64_t ideal = whole * i + rest * i / groups;
    before += profile->layer_bytes[end++];
    while (end < profile->layers - (groups - i) && before < ideal) {
      uint64_t after = before + profile->layer_bytes[end];
      if (after > ideal && after - ideal >= ideal - before)
        break;
      before = after;
      end++;
    }
    first_layer[i] = end;
  }
  return groups;
}

static uint32_t cut_layers(const struct profile *profile, uint32_t hw, const struct grouping_policy *policy,
                           const struct load_path *path, uint32_t *first_layer)
{
  switch (policy->kind) {
  case GROUPING_PER_LAYER:
    return cut_per_layer(profile->layers, first_layer);
  case GROUPING_FIXED:
    return cut_fixed(profile, policy->argument, first_layer);
  case GROUPING_COUNT:
    return cut_count(profile, policy->argument, first_layer);
  case GROUPING_PER_APP:
    return 1;
  case GROUPING_OPTIMAL:
    return grouping_optimal(profile, hw, path, first_layer);
  }
  g_return_val_if_reached(1);
}

struct grouping *grouping_new(const struct profile *profile, uint32_t hw,
                              const struct grouping_policy *policy, const struct load_path *path)
{
  struct grouping *grouping = g_new0(struct grouping, 1);
  uint32_t *first_layer = g_new0(uint32_t, (size_t)profile->layers + 1);
  if (profile->layers)
    grouping->groups = cut_layers(profile, hw, policy, path, first_layer);
  first_layer[grouping->groups] = profile->layers;
  grouping->first_layer = g_renew(uint32_t, first_layer, (size_t)grouping->groups + 1);
  grouping->bytes = g_new0(uint64_t, grouping->groups);
  grouping->compute_ns = g_new0(double, grouping->groups);
  for (uint32_t j = 0; j < grouping->groups; j++) {
    for (uint32_t i = grouping->first_layer[j]; i < grouping->first_layer[j + 1]; i++) {
      grouping->bytes[j] += profile->layer_bytes[i];
      grouping->compute_ns[j] += profile->timing[hw].layer_ns[i];
    }
  }
  return grouping;
}

void grouping_free(struct grouping *grouping)
{
  if (!grouping)
    return;
  g_free(grouping->first_layer);
  g_free(grouping->bytes);
  g_free(grouping->compute_ns);
  g_free(grouping);
}

double grouping_latency_ns(const struct grouping *grouping, const struct load_path *path, double (*stages)[3])
{
  double net = path->remote ? path->net_stream_ns : 0, pcie = 0, comp = 0;
  for (uint32_t j = 0; j < grouping->groups; j++) {
    uint32_t layers = grouping->first_layer[j + 1] - grouping->first_layer[j];
    if (path->remote)
      net += path->net_group_ns + transfer_ns(grouping->bytes[j], path->net_bytes_s);
    pcie = MAX(pcie, net) + path->pcie_transfer_ns + transfer_ns(grouping->bytes[j], path->pcie_bytes_s);
    comp = MAX(comp, pcie) + path->group_sync_ns + grouping->compute_ns[j] + path->launch_ns * layers;
    if (stages) {
      stages[j][0] = net;
      stages[j][1] = pcie;
      stages[j][2] = comp;
    }
  }
  return comp;
}

double grouping_resident_ns(const struct grouping *grouping, double launch_ns)
{
  double sum = 0;
  for (uint32_t j = 0; j < grouping->groups; j++)
    sum += grouping->compute_ns[j];
  return sum + launch_ns * grouping->first_layer[grouping->groups];
}
