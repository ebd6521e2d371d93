/* A process start (MPS): fork, CUDA context and libraries; unpickle; pageable copy; what the first inference
 * takes beyond a warm one. The request that caused the start then computes, so that the first inference
 * answers it. The GPU's other processes go on meanwhile. */
#include "core/gpu_server_internal.h"

static void process_timer_start(struct gpu_server *s, enum server_timer timer, const struct load *load,
                                double ns)
{
  s->world->ops->timer(s->world, ns_round(ns), (uint64_t)timer << 56 | load->self);
}

static const struct profile_timing *timing(const struct gpu_server *s, uint32_t model)
{
  return &catalog_profile(s->config->catalog, model)->timing[s->hw];
}

static gboolean process_begin(struct gpu_server *s, struct gpu *gpu, struct task *task)
{
  uint64_t bytes = config_entry_bytes(s->config, s->hw, task->model);
  if (!tier_reserve(gpu->memory, task->model, bytes, 0, world_now(s->world)))
    return FALSE;
  struct load *load = load_new(s, gpu, task, SOURCE_HOST, NULL);
  process_timer_start(s, SERVER_TIMER_PROCESS, load,
                      s->hardware->mps_process_start_ns + timing(s, task->model)->unpickle_ns);
  task->found = FOUND_PROCESS_START;
  return TRUE;
}

static void process_copy(struct gpu_server *s, struct load *load)
{
  struct copy_spec spec = {.gpu = load->gpu,
                           .lane = load->lane,
                           .model = load->model,
                           .bytes = catalog_bytes(s->config->catalog, load->model),
                           .device = tier_place(s->gpu[load->gpu].memory, load->model),
                           .pageable = TRUE,
                           .request = load->request,
                           .tag = TAG(TAG_COPY, load->self, 0)};
  load->copy[0] = s->world->ops->copy(s->world, &spec);
  load->copies = 1;
}

void process_copied(struct gpu_server *s, struct load *load)
{
  process_timer_start(s, SERVER_TIMER_FIRST, load, first_inference_more_ns(timing(s, load->model)));
}

void process_timer(struct gpu_server *s, enum server_timer timer, uint32_t load)
{
  if (timer == SERVER_TIMER_PROCESS)
    process_copy(s, load_at(s, load));
  else
    load_finish(s, load_at(s, load));
}

const struct loader_ops loader_process = {.name = "process", .begin = process_begin};
