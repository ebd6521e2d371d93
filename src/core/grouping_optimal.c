/* The cut of least predicted latency, found exactly; see grouping_optimal.h.
 *
 * Notation: m groups; group j holds layers [b_j, b_j+1); the formulas are those of grouping_latency_ns. Times
 * are whole ticks, 2^-50 or less of the sum of all costs, and every stage's time is a difference of rounded
 * prefix sums, so that all sums below are exact and ties are ties. Results are exact to that rounding, about
 * that of the doubles of the formulas.
 *
 * 1. Compute needs no state. Unrolling comp(j): latency = max over j of pcie(j) + rest(b_j) + sync x (m - j),
 * where rest(b) is the compute and launch time of layers b and after. So a cut has latency <= budget + sync x
 * m exactly if pcie(j) <= budget - rest(b_j) + sync x j      for every j (deadline) in which m does not
 * occur. net(j) depends on (b_j+1, j) alone. What is left is one number: for a budget, the state (e layers
 * cut, k groups used) has a least pcie(k-1), and less is never worse.
 * 2. Empty groups. Let index j also be skipped, at no cost. A skip makes later arrivals look later and
 * earlier deadlines earlier than they are, so what is found feasible is feasible (with the m' <= m real
 * groups, even sooner), and cuts without skips are all still there. Now take a layer off the end of the last
 * group of a feasible cut of e layers (a group of one layer becomes a skip): net falls, and pcie falls by at
 * least that layer's upload. Hence at each k the reachable e are a prefix 0..reach, and both pcie(e) and
 * pcie(e) - upload(layers before e) rise with e.
 * 3. One level, k to k + 1, in O(layers). For an end e the last group's first layer b costs
 *        max(pcie(b), net(e)) + transfer + upload(e) - upload(b).
 *    By 2, those b whose pcie is done when e arrives come first ("waiting": of them the last is best), then
 * those whose pcie is still busy (of them the first is best). Both borders only move up with e, and a b that
 * misses its deadline for e misses it for every later e: one stack and one pointer give the best b of each
 * kind.
 * 4. So fewest_groups(budget) is exact in O(layers x groups), and it only falls as the budget rises. The
 * least latency is the minimum over budgets of budget + sync x fewest_groups(budget), found by halving
 * intervals of the budget: below hi at least fewest_groups(hi) groups are needed, so an interval [lo, hi)
 * with lo + sync x that >= best is dropped. With sync = 0 this is plain bisection.
 * 5. Ties. The fewest groups that reach the least latency L are the least a with fewest_groups(L - sync x a)
 * <= a; as the left side rises with a, iterating a = fewest_groups(L - sync x a) from 1 arrives there without
 * passing it. For that number a backward table gives the latest pcie(k-1) from which L can still be met, and
 * a forward walk takes the smallest next cut each time: the lexicographically smallest cut. */
#include "core/grouping_optimal.h"

#include <math.h>

#define TICK_BITS  50
#define NEVER      INT64_MAX
#define IMPOSSIBLE INT64_MIN

struct search {
  uint32_t layers;
  int64_t *net, *upload, *compute; /* [layers + 1] time of the first e layers, without the costs of a group */
  int64_t stream, net_group, transfer, sync;
  int64_t best;            /* least latency known to be possible */
  int64_t floor;           /* no cut is faster */
  int64_t *before, *after; /* [layers + 1] least pcie by layers cut, of one level and the next */
  uint32_t *stack;         /* [layers + 1] */
};

static int64_t arrival(const struct search *s, uint32_t end, uint32_t group)
{
  return s->stream + s->net_group * ((int64_t)group + 1) + s->net[end];
}

static int64_t deadline(const struct search *s, int64_t budget, uint32_t first, uint32_t group)
{
  return budget - (s->compute[s->layers] - s->compute[first]) + s->sync * (int64_t)group;
}

static int64_t group_upload(const struct search *s, uint32_t first, uint32_t end)
{
  return s->transfer + s->upload[end] - s->upload[first];
}

/* When the group [first, end) is uploaded, or NEVER if that misses its deadline. */
static int64_t uploaded(const struct search *s, int64_t budget, uint32_t group, uint32_t first, uint32_t end)
{
  int64_t done = MAX(s->before[first], arrival(s, end, group)) + group_upload(s, first, end);
  return done <= deadline(s, budget, first, group) ? done : NEVER;
}

/* Step 3: before[0 .. reach] of `group` groups to after[0 .. returned] of one more. *changed: any state got
 * better. */
static uint32_t level_advance(struct search *s, int64_t budget, uint32_t group, uint32_t reach,
                              gboolean *changed)
{
  uint32_t waiting = 0, stacked = 0, busy = 0;
  *changed = FALSE;
  s->after[0] = 0;
  for (uint32_t end = 1; end <= s->layers; end++) {
    uint32_t firsts = MIN(end, reach + 1);
    int64_t arrives = arrival(s, end, group);
    int64_t least = end <= reach ? s->before[end] : NEVER, done = NEVER;
    while (waiting < firsts && s->before[waiting] <= arrives)
      s->stack[stacked++] = waiting++;
    while (stacked && (done = uploaded(s, budget, group, s->stack[stacked - 1], end)) == NEVER)
      stacked--;
    s->after[end] = MIN(least, stacked ? done : NEVER);
    busy = MAX(busy, waiting);
    while (busy < firsts && (done = uploaded(s, budget, group, busy, end)) == NEVER)
      busy++;
    s->after[end] = MIN(s->after[end], busy < firsts ? done : NEVER);
    if (s->after[end] == NEVER)
      return end - 1;
    *changed |= s->after[end] < least;
  }
  return s->layers;
}

/* Fewest groups, at most limit, that cut all layers with latency <= budget + sync x groups; 0 if none. */
static uint32_t fewest_groups(struct search *s, int64_t budget, uint32_t limit)
{
  uint32_t reach = 0;
  s->before[0] = 0;
  for (uint32_t group = 0; group < limit; group++) {
    gboolean changed;
    reach = level_advance(s, budget, group, reach, &changed);
    if (reach == s->layers)
      return group + 1;
    if (!changed && s->sync == 0)
      return 0; /* deadlines do not move with the group's number: nothing will change any more */
    int64_t *swap = s->before;
    s->before = s->after;
    s->after = swap;
  }
  return 0;
}

/* Step 4: lowers best by what budgets in [lo, hi) allow; below hi no cut has fewer groups than `fewest`. */
static void budgets_halve(struct search *s, int64_t lo, int64_t hi, uint32_t fewest)
{
  if (lo >= hi || s->best <= s->floor || lo + s->sync * (int64_t)fewest >= s->best)
    return;
  int64_t middle = lo + (hi - lo) / 2;
  uint32_t limit = s->layers;
  if (s->sync > 0)
    limit = (uint32_t)CLAMP((s->best - 1 - middle) / s->sync, 0, (int64_t)s->layers);
  uint32_t groups = fewest_groups(s, middle, limit);
  if (groups) {
    s->best = MIN(s->best, middle + s->sync * (int64_t)groups);
    budgets_halve(s, lo, middle, groups);
  }
  budgets_halve(s, middle + 1, hi, fewest);
  if (!groups && limit < s->layers)
    budgets_halve(s, lo, middle, MAX(fewest, limit + 1));
}

/* Latency of groups of `size` layers each, with every overhead charged (or none, to bound from below). */
static int64_t even_latency(const struct search *s, uint32_t size, gboolean overheads)
{
  int64_t pcie = 0, comp = 0;
  for (uint32_t first = 0, group = 0; first < s->layers; first += size, group++) {
    uint32_t end = MIN(first + size, s->layers);
    int64_t net = overheads ? arrival(s, end, group) : s->net[end];
    pcie = MAX(pcie, net) + group_upload(s, first, end) - (overheads ? 0 : s->transfer);
    comp = MAX(comp, pcie) + s->compute[end] - s->compute[first] + (overheads ? s->sync : 0);
  }
  return comp;
}

static void least_latency(struct search *s)
{
  /* Any cut is at least as slow as single layers without overheads, plus one group's on each stage. */
  s->floor = even_latency(s, 1, FALSE) + s->stream + s->net_group + s->transfer + s->sync;
  s->best = NEVER;
  for (uint64_t size = 1; size < 2 * (uint64_t)s->layers; size *= 2)
    s->best = MIN(s->best, even_latency(s, (uint32_t)MIN(size, s->layers), TRUE));
  int64_t least = arrival(s, 1, 0) + group_upload(s, 0, 1) + s->compute[s->layers];
  budgets_halve(s, least, s->best - s->sync, 1);
}

/* Step 5, first half. */
static uint32_t fewest_of_best(struct search *s)
{
  uint32_t groups = 1, needed;
  while ((needed = fewest_groups(s, s->best - s->sync * (int64_t)groups, s->layers)) > groups)
    groups = needed;
  return groups;
}

/* Latest end of the upload before group [first, ...), from which the rest can be in time; next: the same, one
 * group on. */
static int64_t latest_before(const struct search *s, int64_t budget, uint32_t group, uint32_t first,
                             uint32_t last_end, const int64_t *next)
{
  int64_t due = deadline(s, budget, first, group), latest = IMPOSSIBLE;
  for (uint32_t end = first + 1; end <= last_end; end++) {
    int64_t upload = group_upload(s, first, end), arrives = arrival(s, end, group);
    if (arrives + upload > due)
      break;
    int64_t limit = MIN(due, next[end]);
    if (arrives + upload <= limit)
      latest = MAX(latest, limit - upload);
  }
  return latest;
}

/* Step 5, second half: the cut into exactly `groups` groups. */
static void cut_write(const struct search *s, uint32_t groups, uint32_t *first_layer)
{
  size_t row = (size_t)s->layers + 1;
  int64_t budget = s->best - s->sync * (int64_t)groups, pcie = 0;
  g_autofree int64_t *latest = g_new(int64_t, row * (groups + 1));
  for (size_t i = 0; i < row * (groups + 1); i++)
    latest[i] = IMPOSSIBLE;
  latest[row * groups + s->layers] = NEVER;
  for (uint32_t group = groups; group-- > 0;) {
    uint32_t last_end = s->layers - (groups - group - 1);
    for (uint32_t first = group; first < last_end; first++)
      latest[row * group + first] =
          latest_before(s, budget, group, first, last_end, &latest[row * (group + 1)]);
  }
  first_layer[0] = 0;
  for (uint32_t group = 0; group < groups; group++) {
    uint32_t first = first_layer[group], end = first;
    int64_t done, due = deadline(s, budget, first, group);
    do {
      end++;
      done = MAX(pcie, arrival(s, end, group)) + group_upload(s, first, end);
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

/* Fills the prefix times at every stride-th layer boundary. */
static void search_fill(struct search *s, const struct profile *profile, uint32_t hw,
                        const struct load_path *path, uint32_t stride, double scale)
{
  double compute_ns = 0;
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < profile->layers; i++) {
    uint32_t end = i / stride + 1;
    compute_ns += profile->timing[hw].layer_ns[i] + path->launch_ns;
    bytes += profile->layer_bytes[i];
    s->net[end] = path->remote ? ticks(transfer_ns(bytes, path->net_bytes_s), scale) : 0;
    s->upload[end] = ticks(transfer_ns(bytes, path->pcie_bytes_s), scale);
    s->compute[end] = ticks(compute_ns, scale);
  }
  s->stream = path->remote ? ticks(path->net_stream_ns, scale) : 0;
  s->net_group = path->remote ? ticks(path->net_group_ns, scale) : 0;
  s->transfer = ticks(path->pcie_transfer_ns, scale);
  s->sync = ticks(path->group_sync_ns, scale);
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
  struct search s = {.layers = (profile->layers + stride - 1) / stride};
  size_t row = (size_t)s.layers + 1;
  g_autofree int64_t *times = g_new0(int64_t, row * 5);
  g_autofree uint32_t *stack = g_new(uint32_t, row);
  s.net = times;
  s.upload = times + row;
  s.compute = times + 2 * row;
  s.before = times + 3 * row;
  s.after = times + 4 * row;
  s.stack = stack;
  search_fill(&s, profile, hw, path, stride, ldexp(1, TICK_BITS - exponent));
  least_latency(&s);
  uint32_t groups = fewest_of_best(&s);
  cut_write(&s, groups, first_layer);
  for (uint32_t i = 1; i <= groups; i++)
    first_layer[i] = MIN(first_layer[i] * stride, profile->layers);
  return groups;
}
