/* Memories by owner; see memories.h. */
#include "memories.h"

struct memories {
  const struct config *config;
  GPtrArray *all; /* of struct memory */
  gboolean host_grows;
};

static uint64_t memory_size(const struct memories *memories, actor_id actor, uint32_t gpu)
{
  uint32_t index = ACTOR_INDEX(actor);
  if (ACTOR_KIND(actor) == ACTOR_MEMORY_SERVER)
    return memory_server_bytes(memories->config, index);
  if (gpu != NO_INDEX)
    return gpu_server_gpu_bytes(memories->config, index);
  return memories->host_grows ? UINT64_MAX : gpu_server_host_bytes(memories->config, index);
}

struct memory *memories_of(struct memories *memories, actor_id actor, uint32_t gpu)
{
  for (guint i = 0; i < memories->all->len; i++) {
    struct memory *m = g_ptr_array_index(memories->all, i);
    if (m->actor == actor && m->gpu == gpu)
      return m;
  }
  struct memory *m = g_new(struct memory, 1);
  *m = (struct memory){
      .actor = actor, .gpu = gpu, .bytes = memory_size(memories, actor, gpu), .content = content_new()};
  g_ptr_array_add(memories->all, m);
  return m;
}

static void memory_free(gpointer data)
{
  struct memory *m = data;
  content_free(m->content);
  g_free(m);
}

struct memories *memories_new(const struct config *config)
{
  struct memories *memories = g_new0(struct memories, 1);
  memories->config = config;
  memories->all = g_ptr_array_new_with_free_func(memory_free);
  return memories;
}

void memories_free(struct memories *memories)
{
  g_ptr_array_unref(memories->all);
  g_free(memories);
}

void memories_host_grows(struct memories *memories)
{
  memories->host_grows = TRUE;
}
