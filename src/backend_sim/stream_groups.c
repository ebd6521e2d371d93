/* Groups of a network; see stream_groups.h. */
#include "backend_sim/stream_groups.h"

#define FIRST_SIZE 16

void stream_groups_clear(struct stream_groups *groups)
{
  for (uint32_t l = 0; l < groups->link_count; l++)
    stream_group_clear(&groups->of_link[l]);
  for (uint32_t i = 0; i < groups->solo_count; i++)
    stream_group_clear(&groups->solo[i]);
  g_free(groups->of_link);
  g_free(groups->solo);
  g_free(groups->solo_free);
  g_free(groups->listed);
}

void stream_groups_add_link(struct stream_groups *groups)
{
  if (groups->link_count == groups->link_size) {
    groups->link_size = groups->link_size ? groups->link_size * 2 : FIRST_SIZE;
    groups->of_link = g_renew(struct stream_group, groups->of_link, groups->link_size);
  }
  groups->of_link[groups->link_count++] = stream_group_make();
}

group_id stream_groups_take(struct stream_groups *groups)
{
  if (groups->solo_free_count)
    return SOLO_BIT | groups->solo_free[--groups->solo_free_count];
  if (groups->solo_count == groups->solo_size) {
    groups->solo_size = groups->solo_size ? groups->solo_size * 2 : FIRST_SIZE;
    groups->solo = g_renew(struct stream_group, groups->solo, groups->solo_size);
    groups->solo_free = g_renew(uint32_t, groups->solo_free, groups->solo_size);
  }
  groups->solo[groups->solo_count] = stream_group_make();
  return SOLO_BIT | groups->solo_count++;
}

void stream_groups_list(struct stream_groups *groups, group_id id)
{
  struct stream_group *group = stream_groups_at(groups, id);
  if (group->listed)
    return;
  group->listed = TRUE;
  if (groups->listed_count == groups->listed_size) {
    groups->listed_size = groups->listed_size ? groups->listed_size * 2 : FIRST_SIZE;
    groups->listed = g_renew(group_id, groups->listed, groups->listed_size);
  }
  groups->listed[groups->listed_count++] = id;
}
