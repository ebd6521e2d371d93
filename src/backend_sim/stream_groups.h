/* The groups of a network: one of each link, those of streams that no link holds back, and the list of groups
 * that wait to be scheduled anew. */
#ifndef DM_STREAM_GROUPS_H
#define DM_STREAM_GROUPS_H

#include "backend_sim/stream_group.h"

/* Group of link l: l. Groups of single streams: SOLO_BIT and a number of their own. */
typedef uint32_t group_id;
#define GROUP_NONE UINT32_MAX
#define SOLO_BIT   0x80000000u

/* All zero: none. */
struct stream_groups {
  struct stream_group *of_link;
  uint32_t link_count;
  uint32_t link_size;
  struct stream_group *solo;
  uint32_t *solo_free; /* stack */
  uint32_t solo_count;
  uint32_t solo_size;
  uint32_t solo_free_count;
  group_id *listed;
  uint32_t listed_count;
  uint32_t listed_size;
};

void stream_groups_clear(struct stream_groups *groups);
/* Of the next link. */
void stream_groups_add_link(struct stream_groups *groups);
/* A group for a single stream, empty. */
group_id stream_groups_take(struct stream_groups *groups);
/* Once per group until its `listed` is taken back. */
void stream_groups_list(struct stream_groups *groups, group_id id);

static inline struct stream_group *stream_groups_at(const struct stream_groups *groups, group_id id)
{
  return id & SOLO_BIT ? &groups->solo[id & ~SOLO_BIT] : &groups->of_link[id];
}

/* Its stream has left it: a group of a link stays. */
static inline void stream_groups_give(struct stream_groups *groups, group_id id)
{
  if (id & SOLO_BIT)
    groups->solo_free[groups->solo_free_count++] = id & ~SOLO_BIT;
}

#endif
