/* Loads: models on their way onto a GPU, from begin to the last uploaded group, through failures of their
 * fetch. */
#include "core/gpu_server_internal.h"

static struct load *load_take(struct gpu_server *s)
{
  if (s->free_load == NO_INDEX) {
    struct load *load = g_new0(struct load, 1);
    load->self = s->loads->len;
    g_ptr_array_add(s->loads, load);
    return load;
  }
  struct load *load = load_at(s, s->free_load);
  s->free_load = load->next;
  return load;
}

struct load *load_new(struct gpu_server *s, struct gpu *gpu, struct task *task, enum load_source source,
                      const struct grouping *grouping)
{
  struct load *load = load_take(s);
  uint32_t groups = grouping ? grouping->groups : 1;
  if (groups > load->room) {
    load->copy = g_renew(op_id, load->copy, groups);
    load->room = groups;
  }
  *load = (struct load){.model = task->model,
                        .gpu = gpu->index,
                        .self = load->self,
                        .next = gpu->loads_first,
                        .fetch = NO_INDEX,
                        .lane = gpu->next_lane++,
                        .groups = groups,
                        .grouping = grouping,
                        .copy = load->copy,
                        .room = load->room,
                        .source = source,
                        .request = task->id,
                        .started = world_now(s->world)};
  gpu->loads_first = load->self;
  gpu->loads++;
  server_tell_state(s, gpu->index, load->model, TIER_FILLING);
  if (world_records(s->world))
    server_record(s, (struct record){.kind = RECORD_LOAD,
                                     .reason = REASON_MISS,
                                     .request = task->id,
                                     .model = load->model,
                                     .gpu = gpu->index,
                                     .group = NO_INDEX,
                                     .source = (uint32_t)source,
                                     .a = (int64_t)catalog_bytes(s->config->catalog, load->model),
                                     .b = groups});
  return load;
}

static void load_unlink(struct gpu_server *s, struct load *load)
{
  struct gpu *gpu = &s->gpu[load->gpu];
  uint32_t *link = &gpu->loads_first;
  while (*link != load->self)
    link = &load_at(s, *link)->next;
  *link = load->next;
  gpu->loads--;
  if (load->pins_host)
    tier_unpin(s->host, load->model);
  load->next = s->free_load;
  s->free_load = load->self;
}

/* Where in host memory the load finds its model. */
static const struct ranges *load_place(const struct gpu_server *s, const struct load *load,
                                       const struct fetch *fetch, struct home *home, uint64_t *ring_bytes)
{
  *ring_bytes = catalog_bytes(s->config->catalog, load->model);
  if (fetch)
    return fetch_place(s, fetch, ring_bytes);
  return s->home ? places_home(s, load->model, home) : tier_place(s->host, load->model);
}

void load_upload(struct gpu_server *s, struct load *load, uint32_t first)
{
  const struct fetch *fetch = load->fetch == NO_INDEX ? NULL : fetch_at(s, load->fetch);
  const struct ranges *device = tier_place(s->gpu[load->gpu].memory, load->model);
  struct home home;
  uint64_t ring, offset = 0;
  if (fetch && fetch->direct)
    return;
  const struct ranges *host = load_place(s, load, fetch, &home, &ring);
  for (uint32_t j = 0; j < load->groups; offset += load->grouping->bytes[j++]) {
    if (j < first)
      continue;
    struct copy_spec spec = {.gpu = load->gpu,
                             .lane = load->lane,
                             .model = load->model,
                             .group = j,
                             .offset = offset,
                             .bytes = load->grouping->bytes[j],
                             .host = host,
                             .ring_bytes = ring,
                             .device = device,
                             .after_fetch = fetch && !fetch->arrived ? fetch->op : 0,
                             .request = load->request,
                             .tag = TAG(TAG_COPY, load->self, j)};
    load->copy[j] = s->world->ops->copy(s->world, &spec);
    load->copies++;
  }
}

/* The fetch that brings the load straight to its GPU, NULL: there is none. */
static struct fetch *direct_fetch(struct gpu_server *s, const struct load *load)
{
  struct fetch *fetch = load->fetch == NO_INDEX ? NULL : fetch_at(s, load->fetch);
  return fetch && fetch->direct ? fetch : NULL;
}

void load_order(struct gpu_server *s, const struct load *load, struct compute_spec *spec)
{
  if (!load || spec->group < load->uploaded)
    return;
  const struct fetch *fetch = direct_fetch(s, load);
  if (fetch)
    spec->after_fetch = fetch->op;
  else
    spec->after = load->copy[spec->group];
}

/* Nobody tells of each group that lands; but what was computed on has. */
void load_computed(struct gpu_server *s, struct gpu *gpu, uint32_t model, uint32_t groups)
{
  const struct load *load = s->config->gpudirect ? gpu_find_load(s, gpu, model) : NULL;
  struct fetch *fetch = load ? direct_fetch(s, load) : NULL;
  if (!fetch)
    return;
  const struct fetch_plan *plan = fetch->plan;
  uint64_t end = plan->group_offset[groups - 1] + plan->group_bytes[groups - 1];
  fetch->credited = MAX(fetch->credited, end - plan->group_offset[0]);
  fetch_report(s);
}

static void record_loaded(struct gpu_server *s, const struct load *load)
{
  int64_t now = world_now(s->world);
  server_record(s, (struct record){.kind = RECORD_LOADED,
                                   .reason = REASON_NONE,
                                   .request = load->request,
                                   .model = load->model,
                                   .gpu = load->gpu,
                                   .group = NO_INDEX,
                                   .source = (uint32_t)load->source,
                                   .a = (int64_t)catalog_bytes(s->config->catalog, load->model),
                                   .b = now - load->started});
}

/* A load of the fetch is over; others, which broke, may have waited for that. */
static void fetch_unused(struct gpu_server *s, struct fetch *fetch)
{
  gboolean others = fetch->users > 1;
  fetch_release(s, fetch);
  if (others)
    fetch_mend(s, fetch);
}

void load_finish(struct gpu_server *s, struct load *load)
{
  struct gpu *gpu = &s->gpu[load->gpu];
  uint32_t model = load->model, fetch = load->fetch;
  if (s->config->system->residence == RESIDENCE_PROCESS)
    s->usage.process_starts++;
  else
    s->usage.loads[load->source]++;
  tier_ready(gpu->memory, model);
  server_tell_state(s, load->gpu, model, TIER_READY);
  if (world_records(s->world))
    record_loaded(s, load);
  load_unlink(s, load);
  if (fetch != NO_INDEX)
    fetch_unused(s, fetch_at(s, fetch));
  gpu_loaded(s, gpu, model);
}

void load_abort(struct gpu_server *s, struct load *load)
{
  struct gpu *gpu = &s->gpu[load->gpu];
  uint32_t model = load->model, fetch = load->fetch;
  load_unlink(s, load);
  gpu_fail_tasks(s, gpu, model);
  tier_remove(gpu->memory, model);
  server_tell_state(s, gpu->index, model, TIER_ABSENT);
  if (fetch != NO_INDEX)
    fetch_release(s, fetch_at(s, fetch));
  gpu_advance(s, gpu);
}

void load_copied(struct gpu_server *s, struct load *load, uint32_t group, enum op_status status)
{
  load->copies--;
  if (status != OP_DONE) {
    load->broken = TRUE;
  } else if (group == load->uploaded) { /* else one before it failed: it is uploaded anew */
    load->uploaded++;
    if (load->fetch != NO_INDEX) {
      struct fetch *fetch = fetch_at(s, load->fetch);
      load->bytes_uploaded += load->grouping->bytes[group];
      fetch->credited = MAX(fetch->credited, load->bytes_uploaded);
      fetch_report(s);
    }
  }
  if (load->copies > 0)
    return;
  if (!load->broken && s->config->system->residence == RESIDENCE_PROCESS)
    process_copied(s, load);
  else if (!load->broken)
    load_finish(s, load);
  else
    load_mend(s, load);
}

void load_landed(struct gpu_server *s, struct load *load, uint32_t groups)
{
  struct fetch *fetch = fetch_at(s, load->fetch);
  load->uploaded = MAX(load->uploaded, MIN(groups, load->groups));
  fetch->arrived = load->uploaded == load->groups;
  load->broken = !fetch->arrived;
  if (fetch->arrived)
    load_finish(s, load);
  else
    fetch_mend(s, fetch);
}

void load_mend(struct gpu_server *s, struct load *load)
{
  if (load->fetch != NO_INDEX)
    fetch_mend(s, fetch_at(s, load->fetch));
  else if (load->copies == 0 && !gpu_computes(s, &s->gpu[load->gpu], load->model))
    load_abort(s, load); /* the bytes were there: it is the device that failed */
}
