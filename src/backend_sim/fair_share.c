/* Links, flows and reports of the fair-share solver; see fair_share.h, and level_solver.c for how it solves.
 */
#include "backend_sim/fair_share_internal.h"

#include <math.h>
#include <stdlib.h>

#define FIRST_SIZE 16
/* In place of a bottleneck. */
#define FLOW_NEW  (LINK_NONE - 1)
#define FLOW_GONE (LINK_NONE - 2)

struct fair_share *fair_share_new(void)
{
  struct fair_share *fair = g_new0(struct fair_share, 1);
  fair->free = FLOW_GONE;
  return fair;
}

void fair_share_free(struct fair_share *fair)
{
  if (!fair)
    return;
  for (link_id l = 0; l < fair->link_count; l++)
    g_free(fair->links[l].crossings);
  void *arrays[] = {fair->links,        fair->level,      fair->flows,     fair->bottleneck,
                    fair->heap.entries, fair->heap.place, fair->dirty.ids, fair->stale.ids,
                    fair->touched.ids,  fair->fresh,      fair->rest,      fair->moved};
  for (size_t i = 0; i < G_N_ELEMENTS(arrays); i++)
    g_free(arrays[i]);
  g_free(fair);
}

static void links_grow(struct fair_share *fair)
{
  uint32_t size = fair->link_size = fair->link_size ? fair->link_size * 2 : FIRST_SIZE;
  fair->links = g_renew(struct link, fair->links, size);
  fair->level = g_renew(double, fair->level, size);
  fair->heap.entries = g_renew(struct level_entry, fair->heap.entries, size);
  fair->heap.place = g_renew(uint32_t, fair->heap.place, size);
  fair->dirty.ids = g_renew(link_id, fair->dirty.ids, size);
  fair->stale.ids = g_renew(link_id, fair->stale.ids, size + 1); /* one is written past the end */
  fair->touched.ids = g_renew(link_id, fair->touched.ids, size);
}

static void flows_grow(struct fair_share *fair)
{
  uint32_t size = fair->flow_size = fair->flow_size ? fair->flow_size * 2 : FIRST_SIZE;
  fair->flows = g_renew(struct flow, fair->flows, size);
  fair->bottleneck = g_renew(link_id, fair->bottleneck, size);
  fair->rest = g_renew(double, fair->rest, size);
  fair->moved = g_renew(flow_id, fair->moved, size);
}

link_id fair_share_add_link(struct fair_share *fair, double capacity)
{
  if (fair->link_count == fair->link_size)
    links_grow(fair);
  link_id l = fair->link_count++;
  fair->links[l] = (struct link){.capacity = capacity, .fill = INFINITY};
  fair->level[l] = INFINITY;
  fair->heap.place[l] = PLACE_NONE;
  return l;
}

void fair_share_set_capacity(struct fair_share *fair, link_id l, double capacity)
{
  fair->links[l].capacity = capacity;
  link_mark(fair, &fair->dirty, l, LINK_DIRTY);
}

static flow_id flow_take(struct fair_share *fair)
{
  flow_id f = fair->free;
  if (f != FLOW_GONE) {
    fair->free = fair->flows[f].next_free;
    return f;
  }
  if (fair->flow_count == fair->flow_size)
    flows_grow(fair);
  return fair->flow_count++;
}

static void crossing_add(struct fair_share *fair, flow_id f, uint32_t i)
{
  struct flow *flow = &fair->flows[f];
  struct link *link = &fair->links[flow->links[i]];
  if (link->count == link->size) {
    link->size = link->size ? link->size * 2 : FIRST_SIZE;
    link->crossings = g_renew(struct crossing, link->crossings, link->size);
  }
  flow->place[i] = link->count;
  struct crossing *crossing = &link->crossings[link->count++];
  *crossing = (struct crossing){.flow = f, .cap = flow->cap};
  uint32_t others = MAX(flow->count, 2) - 1;
  for (uint32_t k = 0; k < FLOW_LINKS_MAX - 1; k++)
    crossing->other[k] = flow->links[(i + 1 + k % others) % flow->count];
}

flow_id fair_share_add_flow(struct fair_share *fair, const link_id *links, uint32_t count, double cap)
{
  g_assert(count <= FLOW_LINKS_MAX);
  flow_id f = flow_take(fair);
  struct flow *flow = &fair->flows[f];
  *flow = (struct flow){.count = count, .cap = cap > 0 ? cap : INFINITY};
  for (uint32_t i = 0; i < count; i++)
    flow->links[i] = links[i];
  for (uint32_t i = 0; i < count; i++) {
    crossing_add(fair, f, i);
    link_mark(fair, &fair->dirty, links[i], LINK_DIRTY);
  }
  fair->bottleneck[f] = FLOW_NEW;
  if (fair->fresh_count == fair->fresh_size) {
    fair->fresh_size = fair->fresh_size ? fair->fresh_size * 2 : FIRST_SIZE;
    fair->fresh = g_renew(flow_id, fair->fresh, fair->fresh_size);
  }
  fair->fresh[fair->fresh_count++] = f;
  return f;
}

static void crossing_remove(struct fair_share *fair, link_id l, uint32_t place)
{
  struct link *link = &fair->links[l];
  struct crossing *last = &link->crossings[--link->count];
  if (place == link->count)
    return;
  link->crossings[place] = *last;
  struct flow *flow = &fair->flows[last->flow];
  uint32_t i = 0;
  while (flow->links[i] != l)
    i++;
  flow->place[i] = place;
}

void fair_share_remove_flow(struct fair_share *fair, flow_id f)
{
  struct flow *flow = &fair->flows[f];
  for (uint32_t i = 0; i < flow->count; i++) {
    crossing_remove(fair, flow->links[i], flow->place[i]);
    link_mark(fair, &fair->dirty, flow->links[i], LINK_DIRTY);
  }
  fair->bottleneck[f] = FLOW_GONE;
  flow->next_free = fair->free;
  fair->free = f;
}

static double flow_rate(const struct fair_share *fair, flow_id f)
{
  link_id bottleneck = fair->bottleneck[f];
  if (bottleneck >= FLOW_GONE)
    return bottleneck == LINK_NONE ? fair->flows[f].cap : 0;
  return fair->level[bottleneck];
}

/* Names the flow's bottleneck anew and lists the flow as moved. */
static void flow_move(struct fair_share *fair, flow_id f)
{
  const struct flow *flow = &fair->flows[f];
  link_id least = LINK_NONE;
  double rate = flow->cap;
  for (uint32_t i = 0; i < flow->count; i++) {
    if (fair->level[flow->links[i]] < rate) {
      least = flow->links[i];
      rate = fair->level[least];
    }
  }
  fair->bottleneck[f] = least;
  fair->moved[fair->moved_count++] = f;
}

/* Finds the flows that came to or left the link, whose level is another than before. */
static void link_flows_move(struct fair_share *fair, link_id l)
{
  const struct link *link = &fair->links[l];
  double own = fair->level[l];
  double low = own < link->before ? own : link->before;
  for (uint32_t i = 0; i < link->count; i++) {
    const struct crossing *crossing = &link->crossings[i];
    fair->level[l] = INFINITY;
    double rest = crossing_rest(fair->level, crossing);
    fair->level[l] = own;
    if (rest < low)
      continue;
    link_id bottleneck = fair->bottleneck[crossing->flow];
    if (bottleneck == FLOW_NEW)
      continue;
    if (bottleneck == l ? rest < own || own == INFINITY : own < flow_rate(fair, crossing->flow))
      flow_move(fair, crossing->flow);
  }
}

void fair_share_update(struct fair_share *fair, struct fair_changes *changes)
{
  levels_solve(fair);
  fair->moved_count = 0;
  uint32_t count = 0;
  for (uint32_t i = 0; i < fair->touched.count; i++) {
    link_id l = fair->touched.ids[i];
    fair->links[l].flags &= ~LINK_TOUCHED;
    if (fair->level[l] == fair->links[l].before)
      continue;
    fair->touched.ids[count++] = l;
    link_flows_move(fair, l);
  }
  fair->touched.count = 0;
  for (uint32_t i = 0; i < fair->fresh_count; i++) {
    if (fair->bottleneck[fair->fresh[i]] == FLOW_NEW)
      flow_move(fair, fair->fresh[i]);
  }
  fair->fresh_count = 0;
  *changes = (struct fair_changes){fair->touched.ids, count, fair->moved, fair->moved_count};
}

double fair_share_rate(const struct fair_share *fair, flow_id flow)
{
  return flow_rate(fair, flow);
}

link_id fair_share_bottleneck(const struct fair_share *fair, flow_id flow)
{
  return fair->bottleneck[flow] < FLOW_GONE ? fair->bottleneck[flow] : LINK_NONE;
}

double fair_share_level(const struct fair_share *fair, link_id link)
{
  return fair->level[link];
}
