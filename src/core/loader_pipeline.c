/* The pipelined load: network (or SSD), PCIe and compute overlap, group by group. DistMind's three stages, or
 * two where the network writes into GPU memory; PipeSwitch's two from host memory; ServerlessLLM's chunks
 * from its SSD. */
#include "core/gpu_server_internal.h"

static gboolean in_host(const struct gpu_server *s, uint32_t model)
{
  return s->config->system->residence == RESIDENCE_HOST ||
         (s->host && tier_state(s->host, model) == TIER_READY);
}

static gboolean source_ready(struct gpu_server *s, struct task *task, gboolean host,
                             const struct fetch *fetch)
{
  if (host)
    return TRUE;
  if (fetch)
    return fetch_joinable(fetch);
  if (s->config->system->residence != RESIDENCE_POOL)
    return TRUE;
  /* The plan of the memory pool comes from the controller; a plan without servers holds nothing. */
  task->lost = s->plan && s->plan->plan->slots == 0;
  return s->plan && s->plan->plan->slots > 0;
}

static void begin_load(struct gpu_server *s, struct gpu *gpu, struct task *task, gboolean host,
                       struct fetch *fetch, gboolean joins)
{
  const struct model *model = catalog_model(s->config->catalog, task->model);
  enum load_source path = fetch ? fetch->source : SOURCE_HOST, source = joins ? SOURCE_HOST : path;
  const struct grouping *grouping = load_plan(s->config->plans, model->profile, s->hw, path)->grouping;
  struct load *load = load_new(s, gpu, task, source, grouping);
  task->found = joins                   ? FOUND_JOINED
                : source == SOURCE_HOST ? FOUND_HOST
                : source == SOURCE_SSD  ? FOUND_SSD
                                        : FOUND_REMOTE;
  if (fetch)
    load->fetch = fetch->self;
  if (s->host && (host || fetch->cached)) {
    tier_pin(s->host, task->model);
    load->pins_host = TRUE;
  }
  if (fetch && fetch->direct) {
    fetch_land(s, fetch, gpu, load);
    return;
  }
  load->broken = fetch && !fetch->arrived && fetch->op == 0; /* joins what waits to be mended */
  if (!load->broken)
    load_upload(s, load, 0);
}

static gboolean pipeline_begin(struct gpu_server *s, struct gpu *gpu, struct task *task)
{
  enum load_source source = s->config->system->residence == RESIDENCE_SSD ? SOURCE_SSD : SOURCE_REMOTE;
  uint64_t bytes = config_entry_bytes(s->config, s->hw, task->model);
  gboolean host = in_host(s, task->model);
  struct fetch *fetch = host ? NULL : fetch_find(s, task->model);
  gboolean joins = fetch != NULL;
  if (!source_ready(s, task, host, fetch))
    return FALSE;
  if (!tier_can_reserve(gpu->memory, bytes, NULL)) {
    trainer_yield(s, gpu); /* its state may be what is in the way */
    return FALSE;
  }
  if (!host && !fetch && !fetch_begin(s, gpu, task, source, &fetch, &task->lost))
    return FALSE;
  if (joins)
    fetch->users++;
  tier_reserve(gpu->memory, task->model, bytes, 0, world_now(s->world));
  begin_load(s, gpu, task, host, fetch, joins);
  return TRUE;
}

const struct loader_ops loader_pipeline = {.name = "pipeline", .begin = pipeline_begin, .pipelined = TRUE};
