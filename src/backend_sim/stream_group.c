/* Virtual bytes and heap of a stream group; see stream_group.h. */
#include "backend_sim/stream_group.h"

#include <math.h>

#define FIRST_SIZE 4

struct stream_group stream_group_make(void)
{
  return (struct stream_group){.rate = INFINITY, .event = EVENT_NONE};
}

void stream_group_clear(struct stream_group *group)
{
  g_free(group->heap);
}

double stream_group_bytes(const struct stream_group *group, double time_ns)
{
  if (group->rate == INFINITY || time_ns <= group->time_ns)
    return group->bytes;
  return group->bytes + group->rate * (time_ns - group->time_ns) / 1e9;
}

void stream_group_advance(struct stream_group *group, double time_ns)
{
  group->bytes = group->count ? stream_group_bytes(group, time_ns) : 0;
  group->time_ns = time_ns;
}

double stream_group_first_ns(const struct stream_group *group)
{
  double left = group->heap[0].target - group->bytes;
  return left > 0 ? group->time_ns + left * 1e9 / group->rate : group->time_ns;
}

static inline void entry_put(struct stream_group *group, uint32_t *place, uint32_t at,
                             struct group_entry entry)
{
  group->heap[at] = entry;
  place[entry.stream] = at;
}

static void hole_rise(struct stream_group *group, uint32_t *place, uint32_t hole, struct group_entry entry)
{
  for (; hole && entry.target < group->heap[(hole - 1) / 2].target; hole = (hole - 1) / 2)
    entry_put(group, place, hole, group->heap[(hole - 1) / 2]);
  entry_put(group, place, hole, entry);
}

static void hole_sink(struct stream_group *group, uint32_t *place, uint32_t hole, struct group_entry entry)
{
  for (uint32_t child; (child = 2 * hole + 1) < group->count; hole = child) {
    if (child + 1 < group->count)
      child += group->heap[child + 1].target < group->heap[child].target;
    if (entry.target <= group->heap[child].target)
      break;
    entry_put(group, place, hole, group->heap[child]);
  }
  entry_put(group, place, hole, entry);
}

void stream_group_add(struct stream_group *group, uint32_t *place, uint32_t stream, double target)
{
  if (group->count == group->size) {
    group->size = group->size ? group->size * 2 : FIRST_SIZE;
    group->heap = g_renew(struct group_entry, group->heap, group->size);
  }
  hole_rise(group, place, group->count++, (struct group_entry){target, stream});
}

void stream_group_remove(struct stream_group *group, uint32_t *place, uint32_t stream)
{
  uint32_t hole = place[stream];
  struct group_entry last = group->heap[--group->count];
  if (hole == group->count)
    return;
  if (hole && last.target < group->heap[(hole - 1) / 2].target)
    hole_rise(group, place, hole, last);
  else
    hole_sink(group, place, hole, last);
}

void stream_group_delay_first(struct stream_group *group, uint32_t *place, double target)
{
  hole_sink(group, place, 0, (struct group_entry){target, group->heap[0].stream});
}
