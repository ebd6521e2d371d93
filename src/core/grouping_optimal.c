/* The cut of least predicted latency; see grouping_optimal.h.
 *
 * 1. Times become whole ticks, 2^-50 or less of the sum of all costs: about the rounding of the doubles
 *    of the formulas. Sums of ticks are exact, so ties are ties; what follows is exact in ticks.
 *
 * 2. Is a latency L possible? sweep_fewest(L, a) asks for it with deadlines that suit a groups in all.
 *    The number h(a) that it needs rises with a; if h(a) > a, then no number of groups from a to h(a) -
 *    1 has L. So iterating a = h(a) reaches the least a with h(a) <= a without passing it, and that is
 *    the fewest groups that have L, or finds that there is none. One sweep is enough where sync is 0
 *    (deadlines do not depend on a) or, mirrored, where net_group is 0. Else the mirror is swept first:
 *    with arrivals that suit a groups it tells how late the upload of layers b and after may start at
 *    best, which bars what cannot be finished and so ends hopeless iterations early.
 *
 * 3. Bisection over L; the fewest groups only rise as L falls. It ends at the least latency with its
 *    fewest groups.
 *
 * 4. For that number of groups (no fewer do, so none is a skip) a backward table gives the latest end of
 *    the uploads before each group, and a forward walk takes the smallest next cut each time: the
 *    lexicographically smallest cut. */
#include "core/grouping_optimal.h"

#include <math.h>
#include "core/grouping_sweep.h"

#define TICK_BITS 50

typedef struct sweep Sweep;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Sweep, sweep_free)

/* No more groups than this have the latency: each costs its overhead in every stage, and all groups pass each
 * stage. */
static uint32_t groups_limit(const struct sweep *s, int64_t latency)
{
  const int64_t cost[] = {s->net_group, s->transfer, s->sync};
  const int64_t rest[] = {s->net_stream + s->net[s->layers], s->upload[s->layers],
                          sweep_arrival(s, 1, 0) + sweep_upload(s, 0, 1) + s->compute[s->layers]};
  int64_t limit = s->layers;
  for (size_t i = 0; i < G_N_ELEMENTS(cost); i++)
    if (cost[i] > 0)
      limit = MIN(limit, (latency - rest[i]) / cost[i]);
  return (uint32_t)MAX(limit, 0);
}

/* Bars the states of s from which the rest cannot be finished; FALSE if that is every state. */
static gboolean bar_hopeless(struct sweep *s, struct sweep *mirror, int64_t latency, uint32_t groups_min,
                             uint32_t limit)
{
  if (!sweep_exhaust(mirror, latency, groups_min, limit))
    return FALSE;
  for (uint32_t e = 0; e <= s->layers; e++)
    s->latest[e] = latency - mirror->before[s->layers - e];
  return TRUE;
}

/* Step 2: the fewest groups that have the latency, known to be at least groups_min; 0 if no number has it. */
static uint32_t groups_within(struct sweep *s, struct sweep *mirror, int64_t latency, uint32_t groups_min)
{
  uint32_t limit = groups_limit(s, latency), needed;
  if (s->sync == 0)
    return sweep_fewest(s, latency, 1, limit);
  if (s->net_group == 0)
    return sweep_fewest(mirror, latency, 1, limit);
  if (!bar_hopeless(s, mirror, latency, groups_min, limit))
    return 0;
  while ((needed = sweep_fewest(s, latency, groups_min, limit)) > groups_min)
    groups_min = needed;
  return needed ? groups_min : 0;
}

/* Latency of groups of `size` layers each, with every overhead charged (or none, to bound from below). */
static int64_t even_latency(const struct sweep *s, uint32_t size, gboolean overheads)
{
  int64_t pcie = 0, comp = 0;
  for (uint32_t first = 0, group = 0; first < s->layers; first += size, group++) {
    uint32_t end = MIN(first + size, s->layers);
    int64_t net = overheads ? sweep_arrival(s, end, group) : s->net[end];
    pcie = MAX(pcie, net) + sweep_upload(s, first, end) - (overheads ? 0 : s->transfer);
    comp = MAX(comp, pcie) + s->compute[end] - s->compute[first] + (overheads ? s->sync : 0);
  }
  return comp;
}

/* Step 3: finds the least latency; returns the fewest groups that have it. */
static uint32_t least_latency(struct sweep *s, struct sweep *mirror, int64_t *latency)
{
  /* Any cut is at least as slow as single layers without overheads, plus one group's on each stage. */
  int64_t low = even_latency(s, 1, FALSE) + s->net_stream + s->net_group + s->transfer + s->sync,
          high = TICKS_NEVER;
  for (uint64_t size = 1; size < 2 * (uint64_t)s->layers; size *= 2)
    high = MIN(high, even_latency(s, (uint32_t)MIN(size, s->layers), TRUE));
  uint32_t fewest = groups_within(s, mirror, high, 1);
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    uint32_t groups = groups_within(s, mirror, middle, fewest);
    if (groups) {
      high = middle;
      fewest = groups;
    } else {
      low = middle + 1;
    }
  }
  *latency = high;
  return fewest;
}

/* Latest end of the uploads before the group that starts at `first`, from which the rest can be in time;
 * next: the same, one group on. */
static int64_t latest_before(const struct sweep *s, uint32_t group, uint32_t first, uint32_t last_end,
                             const int64_t *next)
{
  int64_t due = sweep_deadline(s, first, group), latest = TICKS_IMPOSSIBLE;
  for (uint32_t end = first + 1; end <= last_end; end++) {
    int64_t upload = sweep_upload(s, first, end), arrives = sweep_arrival(s, end, group);
    if (arrives + upload > due)
      break;
    int64_t limit = MIN(due, next[end]);
    if (arrives + upload <= limit)
      latest = MAX(latest, limit - upload);
  }
  return latest;
}

/* Step 4: the cut into exactly `groups` groups that have this latency. */
static void cut_write(struct sweep *s, int64_t latency, uint32_t groups, uint32_t *first_layer)
{
  size_t row = (size_t)s->layers + 1;
  int64_t pcie = 0;
  s->latency = latency;
  s->groups_min = groups;
  g_autofree int64_t *latest = g_new(int64_t, row * (groups + 1));
  for (size_t i = 0; i < row * (groups + 1); i++)
    latest[i] = TICKS_IMPOSSIBLE;
  latest[row * groups + s->layers] = TICKS_NEVER;
  for (uint32_t group = groups; group-- > 0;) {
    uint32_t last_end = s->layers - (groups - group - 1);
    for (uint32_t first = group; first < last_end; first++)
      latest[row * group + first] = latest_before(s, group, first, last_end, &latest[row * (group + 1)]);
  }
  first_layer[0] = 0;
  for (uint32_t group = 0; group < groups; group++) {
    uint32_t first = first_layer[group], end = first;
    int64_t done, due = sweep_deadline(s, first, group);
    do {
      end++;
      done = MAX(pcie, sweep_arrival(s, end, group)) + sweep_upload(s, first, end);
    } while (end < s->layers && done > MIN(due, latest[row * (group + 1) + end]));
    first_layer[group + 1] = end;
    pcie = done;
  }
}

static int64_t ticks(double ns, double ticks_per_ns)
{
  return (int64_t)(ns * ticks_per_ns + 0.5);
}

/* Sum of all costs with one group a layer: above every time that the search can meet. */
static double cost_sum(const struct profile *profile, uint32_t hw, const struct load_path *path)
{
  double sum = path->remote ? path->net_stream_ns + transfer_ns(profile->param_bytes, path->net_bytes_s) : 0;
  sum += transfer_ns(profile->param_bytes, path->pcie_bytes_s);
  for (uint32_t i = 0; i < profile->layers; i++)
    sum += profile->timing[hw].layer_ns[i] + path->launch_ns + path->pcie_transfer_ns + path->group_sync_ns +
           (path->remote ? path->net_group_ns : 0);
  return sum;
}

/* Step 1, with a cut allowed at every stride-th layer boundary. */
static Sweep *sweep_of(const struct profile *profile, uint32_t hw, const struct load_path *path,
                       uint32_t stride, double ticks_per_ns)
{
  Sweep *s = sweep_new((profile->layers + stride - 1) / stride);
  double compute_ns = 0;
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < profile->layers; i++) {
    uint32_t end = i / stride + 1;
    compute_ns += profile->timing[hw].layer_ns[i] + path->launch_ns;
    bytes += profile->layer_bytes[i];
    s->net[end] = path->remote ? ticks(transfer_ns(bytes, path->net_bytes_s), ticks_per_ns) : 0;
    s->upload[end] = ticks(transfer_ns(bytes, path->pcie_bytes_s), ticks_per_ns);
    s->compute[end] = ticks(compute_ns, ticks_per_ns);
  }
  s->net_stream = path->remote ? ticks(path->net_stream_ns, ticks_per_ns) : 0;
  s->net_group = path->remote ? ticks(path->net_group_ns, ticks_per_ns) : 0;
  s->transfer = ticks(path->pcie_transfer_ns, ticks_per_ns);
  s->sync = ticks(path->group_sync_ns, ticks_per_ns);
  return s;
}

uint32_t grouping_optimal(const struct profile *profile, uint32_t hw, const struct load_path *path,
                          uint32_t *first_layer)
{
  uint32_t stride = (profile->layers + OPTIMAL_LAYERS_MAX - 1) / OPTIMAL_LAYERS_MAX;
  double sum = cost_sum(profile, hw, path);
  int exponent = 0;
  first_layer[0] = 0;
  first_layer[1] = profile->layers;
  if (!isfinite(sum) || sum <= 0)
    return 1; /* every cut takes the same time */
  frexp(sum, &exponent);
  g_autoptr(Sweep) sweep = sweep_of(profile, hw, path, stride, ldexp(1, TICK_BITS - exponent));
  g_autoptr(Sweep) mirror = sweep_mirror(sweep);
  int64_t latency;
  uint32_t groups = least_latency(sweep, mirror, &latency);
  cut_write(sweep, latency, groups, first_layer);
  for (uint32_t i = 1; i <= groups; i++)
    first_layer[i] = MIN(first_layer[i] * stride, profile->layers);
  return groups;
}
