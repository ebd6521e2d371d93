/* Feasibility of a latency, exactly and in O(layers x groups); see grouping_sweep.h.
 *
 * Notation: m groups; group j holds layers [b_j, b_j+1); the formulas are those of grouping_latency_ns.
 * Every stage's time is a difference of rounded prefix sums, so sums are exact.
 *
 * 1. Compute needs no state. Unrolling comp(j): latency = max over j of pcie(j) + rest(b_j) + sync x (m
 *    - j), where rest(b) is the compute and launch time of layers b and after. So m groups have a
 *    latency <= L exactly if
 *        pcie(j) <= L - rest(b_j) - sync x (m - j)      for every j,        (deadline)
 *    and net(j) depends on (b_j+1, j) alone. What is left is one number: for L and m, the state (e layers
 *    cut, k groups used) has a least pcie(k-1), and less is never worse.
 *
 * 2. m is not known in advance. With the remaining groups m - j replaced by max(1, groups_min - j), the
 *    deadlines are exact for m = groups_min and only later than the true ones for a larger m. So if a
 *    sweep needs h > groups_min groups, no m from groups_min to h - 1 has the latency; if h <=
 *    groups_min, some m' <= h has it.
 *
 * 3. Empty groups. Let an index j also be skipped, at no cost. A skip makes later arrivals look later
 *    and earlier deadlines earlier than they are, so what is found feasible is feasible (with the fewer
 *    real groups even sooner), and cuts without skips are all still there. Now take a layer off the end
 *    of the last group of a cut of e layers that meets its deadlines (a group of one layer becomes a
 *    skip): net falls, and pcie falls by at least that layer's upload. Hence at each k the reachable e
 *    are a prefix 0..reach, and pcie(e) and pcie(e) - upload(first e layers) both rise with e. Nothing
 *    here asks which firsts b are allowed, so a b may be barred, by its deadline or by `latest`.
 *
 * 4. One level, k to k + 1, in O(layers). For an end e the last group's first layer b costs
 *        max(pcie(b), net(e)) + transfer + upload(e) - upload(b).
 *    By 3, those b whose pcie is done when e arrives come first ("waiting": of them the last is best),
 *    then those whose pcie is still busy (of them the first is best). Both borders only move up with e,
 *    and a b that misses its deadline for e misses it for every later e: one stack and one pointer give
 *    the best b of each kind. */
#include "core/grouping_sweep.h"

struct sweep *sweep_new(uint32_t layers)
{
  struct sweep *sweep = g_new0(struct sweep, 1);
  size_t row = (size_t)layers + 1;
  sweep->layers = layers;
  sweep->net = g_new0(int64_t, row);
  sweep->upload = g_new0(int64_t, row);
  sweep->compute = g_new0(int64_t, row);
  sweep->latest = g_new(int64_t, row);
  sweep->before = g_new0(int64_t, row);
  sweep->after = g_new0(int64_t, row);
  sweep->stack = g_new(uint32_t, row);
  for (size_t i = 0; i < row; i++)
    sweep->latest[i] = TICKS_NEVER;
  return sweep;
}

void sweep_free(struct sweep *sweep)
{
  if (!sweep)
    return;
  g_free(sweep->net);
  g_free(sweep->upload);
  g_free(sweep->compute);
  g_free(sweep->latest);
  g_free(sweep->before);
  g_free(sweep->after);
  g_free(sweep->stack);
  g_free(sweep);
}

struct sweep *sweep_mirror(const struct sweep *sweep)
{
  uint32_t layers = sweep->layers;
  struct sweep *mirror = sweep_new(layers);
  for (uint32_t e = 0; e <= layers; e++) {
    mirror->net[e] = sweep->compute[layers] - sweep->compute[layers - e];
    mirror->upload[e] = sweep->upload[layers] - sweep->upload[layers - e];
    mirror->compute[e] = sweep->net[layers] - sweep->net[layers - e];
  }
  mirror->net_group = sweep->sync;
  mirror->transfer = sweep->transfer;
  mirror->sync = sweep->net_group;
  mirror->net_stream = sweep->ending;
  mirror->ending = sweep->net_stream;
  return mirror;
}

/* When the group [first, end) is uploaded, or TICKS_NEVER if its first is barred or it misses its deadline.
 */
static int64_t uploaded(const struct sweep *s, uint32_t group, uint32_t first, uint32_t end)
{
  int64_t done = MAX(s->before[first], sweep_arrival(s, end, group)) + sweep_upload(s, first, end);
  gboolean allowed = s->before[first] <= s->latest[first] && done <= sweep_deadline(s, first, group);
  return allowed ? done : TICKS_NEVER;
}

/* Step 4: before of `group` groups becomes that of one more. Returns whether any state got better. */
static gboolean level_advance(struct sweep *s, uint32_t group)
{
  uint32_t waiting = 0, stacked = 0, busy = 0, end;
  gboolean changed = FALSE;
  s->after[0] = 0;
  for (end = 1; end <= s->layers; end++) {
    uint32_t firsts = MIN(end, s->reach + 1);
    int64_t arrives = sweep_arrival(s, end, group), done = TICKS_NEVER;
    int64_t skipped = end <= s->reach ? s->before[end] : TICKS_NEVER, least = skipped;
    while (waiting < firsts && s->before[waiting] <= arrives)
      s->stack[stacked++] = waiting++;
    while (stacked && (done = uploaded(s, group, s->stack[stacked - 1], end)) == TICKS_NEVER)
      stacked--;
    least = MIN(least, stacked ? done : TICKS_NEVER);
    busy = MAX(busy, waiting);
    while (busy < firsts && (done = uploaded(s, group, busy, end)) == TICKS_NEVER)
      busy++;
    least = MIN(least, busy < firsts ? done : TICKS_NEVER);
    if (least == TICKS_NEVER)
      break;
    changed |= least < skipped;
    s->after[end] = least;
  }
  s->reach = end - 1;
  int64_t *swap = s->before;
  s->before = s->after;
  s->after = swap;
  return changed;
}

/* Advances until all layers are cut (or, exhausting, anyway) or nothing will change any more. */
static uint32_t levels_advance(struct sweep *s, int64_t latency, uint32_t groups_min, uint32_t limit,
                               gboolean exhaust)
{
  uint32_t fewest = 0;
  s->latency = latency;
  s->groups_min = groups_min;
  s->reach = 0;
  s->before[0] = 0;
  for (uint32_t group = 0; group < limit; group++) {
    gboolean changed = level_advance(s, group);
    if (!fewest && s->reach == s->layers)
      fewest = group + 1;
    /* Arrivals of later groups are later, and deadlines stand still from groups_min on, or always without
     * sync. */
    gboolean settled = !changed && (s->sync == 0 || group + 1 >= groups_min);
    if (settled || (fewest && !exhaust))
      break;
  }
  return fewest;
}

uint32_t sweep_fewest(struct sweep *sweep, int64_t latency, uint32_t groups_min, uint32_t limit)
{
  return levels_advance(sweep, latency, groups_min, limit, FALSE);
}

gboolean sweep_exhaust(struct sweep *sweep, int64_t latency, uint32_t groups_min, uint32_t limit)
{
  return levels_advance(sweep, latency, groups_min, limit, TRUE) != 0;
}
