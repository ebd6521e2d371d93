/* Sweep: the fewest groups with which a model loads and computes within a given latency.
 *
 * The feasibility test under the search for the optimal cut (grouping_optimal.c); the proof stands in
 * grouping_sweep.c. Times are whole ticks. A search has two sweeps: the problem, and its mirror (layers and
 * time reversed, network and compute swapped), whose sweep says how late an upload may start. */
#ifndef DM_GROUPING_SWEEP_H
#define DM_GROUPING_SWEEP_H

#include <glib.h>
#include <stdint.h>

#define TICKS_NEVER      INT64_MAX
#define TICKS_IMPOSSIBLE INT64_MIN

struct sweep {
  uint32_t layers;
  int64_t *net, *upload, *compute;   /* [layers + 1] of the first e layers, without the costs of a group */
  int64_t net_group, transfer, sync; /* costs of a group: N_j, P_j, K_j without bytes and layers */
  int64_t net_stream;                /* before the first group arrives */
  int64_t ending;                    /* after the last group is computed: the mirror's net_stream */

  int64_t latency;     /* asked for */
  uint32_t groups_min; /* no cut with fewer groups is of interest */
  int64_t *latest; /* [layers + 1] the upload of layers e and after must start by then, or all TICKS_NEVER */

  int64_t *before, *after; /* [layers + 1] earliest end of the uploads of the first e layers, two levels */
  uint32_t reach;          /* before holds 0 .. reach */
  uint32_t *stack;         /* [layers + 1] */
};

/* All times zero, latest TICKS_NEVER. */
struct sweep *sweep_new(uint32_t layers);
void sweep_free(struct sweep *sweep);
/* The mirror of a sweep whose times are filled in. */
struct sweep *sweep_mirror(const struct sweep *sweep);

/* Arrival of layers before `end` when they are the groups 0 .. group. */
static inline int64_t sweep_arrival(const struct sweep *s, uint32_t end, uint32_t group)
{
  return s->net_stream + s->net_group * ((int64_t)group + 1) + s->net[end];
}

static inline int64_t sweep_upload(const struct sweep *s, uint32_t first, uint32_t end)
{
  return s->transfer + s->upload[end] - s->upload[first];
}

/* When group `group`, starting at layer `first`, must be uploaded: at least one group, and if there are
 * groups_min in all, at least groups_min - group, are then to be computed. Exact for a cut into groups_min
 * groups. */
static inline int64_t sweep_deadline(const struct sweep *s, uint32_t first, uint32_t group)
{
  int64_t remaining = group + 1 < s->groups_min ? (int64_t)(s->groups_min - group) : 1;
  return s->latency - s->ending - (s->compute[s->layers] - s->compute[first]) - s->sync * remaining;
}

/* Fewest groups, at most limit, with which all layers meet the deadlines of latency and groups_min; 0: none.
 * If that is at most groups_min, or if sync is 0, so many groups do have this latency, or fewer do. */
uint32_t sweep_fewest(struct sweep *sweep, int64_t latency, uint32_t groups_min, uint32_t limit);
/* The same for any number of groups up to limit, leaving in before[0 .. reach] the earliest ends over all
 * numbers. */
gboolean sweep_exhaust(struct sweep *sweep, int64_t latency, uint32_t groups_min, uint32_t limit);

#endif
