/* Stop and go: the old model is copied back to pageable host memory, then the new one from there, tensor by
 * tensor, while the GPU waits. What a framework's .cpu() and .cuda() do. What the two took of a measured
 * model beyond its bytes and tensors is booked on the way back, where nearly all of it was found. */
#include "core/gpu_server_internal.h"

static double tensors_ns(const struct gpu_server *s, uint32_t model)
{
  return catalog_profile(s->config->catalog, model)->tensors * s->hardware->ray_tensor_ns;
}

static double back_ns(const struct gpu_server *s, uint32_t model)
{
  return tensors_ns(s, model) + catalog_profile(s->config->catalog, model)->timing[s->hw].swap_extra_ns;
}

void stop_and_go_evicted(struct gpu_server *s, struct gpu *gpu, uint32_t model)
{
  struct copy_spec spec = {.gpu = gpu->index,
                           .lane = gpu->next_lane++,
                           .model = model,
                           .bytes = catalog_bytes(s->config->catalog, model),
                           .device = tier_victim_place(gpu->memory),
                           .to_host = TRUE,
                           .pageable = TRUE,
                           .extra_ns = back_ns(s, model),
                           .after = gpu->back,
                           .request = gpu->evict_request,
                           .tag = TAG(TAG_BACK, gpu->index, 0)};
  gpu->back = s->world->ops->copy(s->world, &spec);
  gpu->backs++;
}

static gboolean stop_and_go_begin(struct gpu_server *s, struct gpu *gpu, struct task *task)
{
  if (gpu->running > 0 || gpu->first != task->self || trainer_blocks(s, gpu))
    return FALSE;
  uint64_t bytes = config_entry_bytes(s->config, s->hw, task->model);
  if (!tier_reserve(gpu->memory, task->model, bytes, 0, world_now(s->world))) {
    trainer_yield(s, gpu);
    return FALSE;
  }
  struct load *load = load_new(s, gpu, task, SOURCE_HOST, NULL);
  struct home home;
  struct copy_spec spec = {.gpu = gpu->index,
                           .lane = load->lane,
                           .model = task->model,
                           .bytes = bytes,
                           .host = places_home(s, task->model, &home),
                           .ring_bytes = bytes,
                           .device = tier_place(gpu->memory, task->model),
                           .pageable = TRUE,
                           .extra_ns = tensors_ns(s, task->model),
                           .after = gpu->back,
                           .request = task->id,
                           .tag = TAG(TAG_COPY, load->self, 0)};
  load->copy[0] = s->world->ops->copy(s->world, &spec);
  load->copies = 1;
  task->found = FOUND_HOST;
  return TRUE;
}

const struct loader_ops loader_stop_and_go = {.name = "stop-and-go", .begin = stop_and_go_begin};
