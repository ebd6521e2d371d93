/* Fetches: parameters on their way into host memory, from the memory pool or the SSD, into the host cache or
 * staging; or from the memory pool straight into a GPU's memory.
 *
 * One network load of a model at a time on a server: whoever needs the model too uploads from the same fetch.
 * What lands in a GPU's memory is of no use to another GPU: there each GPU has a fetch of its own.
 * When a memory server is lost, the fetch is cancelled and what is missing is read from another copy. */
#include "core/gpu_server_internal.h"

#define RATE_FETCHES 16 /* after so many a rate is known, though the link was never idle */

static struct fetch *fetch_take(struct gpu_server *s)
{
  struct fetch *fetch;
  if (s->free_fetch == NO_INDEX) {
    fetch = g_new0(struct fetch, 1);
    fetch->self = s->fetches->len;
    g_ptr_array_add(s->fetches, fetch);
  } else {
    fetch = fetch_at(s, s->free_fetch);
    s->free_fetch = fetch->next;
  }
  *fetch = (struct fetch){
      .self = fetch->self, .next = s->fetch_first, .users = 1, .staging = fetch->staging /* its memory */};
  s->fetch_first = fetch->self;
  return fetch;
}

struct fetch *fetch_find(struct gpu_server *s, uint32_t model)
{
  for (uint32_t i = s->fetch_first; i != NO_INDEX; i = fetch_at(s, i)->next)
    if (fetch_at(s, i)->model == model && !fetch_at(s, i)->lost && !fetch_at(s, i)->direct)
      return fetch_at(s, i);
  return NULL;
}

/* The server of each stream: the first copy that answers. */
static gboolean choose_servers(const struct gpu_server *s, struct fetch *fetch)
{
  const struct pool_plan *plan = fetch->plan_ref->plan;
  for (uint32_t i = 0; i < fetch->plan->streams; i++) {
    uint32_t copy = 0, slot = fetch->plan->slot[i];
    while (copy < s->config->replicas && copy < plan->slots &&
           s->dead_members >> pool_plan_server(plan, slot, copy) & 1)
      copy++;
    if (copy >= s->config->replicas || copy >= plan->slots)
      return FALSE;
    fetch->servers[i] = pool_plan_server(plan, slot, copy);
  }
  return TRUE;
}

gboolean fetch_joinable(const struct fetch *fetch)
{
  return fetch->cached || fetch->staging_bytes >= fetch->plan->total_bytes;
}

const struct ranges *fetch_place(const struct gpu_server *s, const struct fetch *fetch, uint64_t *ring_bytes)
{
  *ring_bytes = fetch->cached ? catalog_bytes(s->config->catalog, fetch->model) : fetch->staging_bytes;
  return fetch->cached ? tier_place(s->host, fetch->model) : &fetch->staging;
}

static void fetch_issue(struct gpu_server *s, struct fetch *fetch, uint32_t gpu, uint32_t first,
                        uint64_t request)
{
  struct fetch_spec spec = {.model = fetch->model,
                            .source = fetch->source,
                            .plan = fetch->plan,
                            .server = fetch->servers,
                            .first_group = first,
                            .sequential = fetch->source == SOURCE_REMOTE && s->config->sequential,
                            .gpu = gpu,
                            .request = request,
                            .tag = TAG(TAG_FETCH, fetch->self, 0)};
  if (fetch->direct) {
    spec.device = tier_place(s->gpu[gpu].memory, fetch->model);
  } else {
    spec.window_bytes = s->config->window_bytes;
    spec.host = fetch_place(s, fetch, &spec.ring_bytes);
  }
  if (s->active_fetches++ == 0) {
    s->rate_since = world_now(s->world);
    s->rate_bytes = s->rate_fetches = 0;
  }
  fetch->op = s->world->ops->fetch(s->world, &spec);
  fetch_report(s);
}

static gboolean enter_cache(struct gpu_server *s, const struct fetch *fetch, uint64_t bytes, double reload_ns,
                            uint64_t request)
{
  s->cache_request = request;
  gboolean entered = s->host && tier_reserve(s->host, fetch->model, bytes, reload_ns, world_now(s->world));
  s->cache_request = UINT64_MAX;
  return entered;
}

static gboolean take_room(struct gpu_server *s, struct gpu *gpu, struct fetch *fetch, uint64_t request)
{
  uint64_t bytes = catalog_bytes(s->config->catalog, fetch->model);
  const struct model *model = catalog_model(s->config->catalog, fetch->model);
  double reload = load_plan(s->config->plans, model->profile, s->hw, fetch->source)->load_ns;
  if (enter_cache(s, fetch, bytes, reload, request)) {
    fetch->cached = TRUE;
    return TRUE;
  }
  uint64_t staging = MIN(bytes, s->config->staging_bytes);
  if (gpu->staging_used + staging > s->config->staging_bytes ||
      !arena_take(gpu->staging, staging, &fetch->staging))
    return FALSE;
  gpu->staging_used += staging;
  fetch->staging_gpu = gpu->index;
  fetch->staging_bytes = staging;
  return TRUE;
}

static void fetch_drop(struct gpu_server *s, struct fetch *fetch)
{
  uint32_t *link = &s->fetch_first;
  while (*link != fetch->self)
    link = &fetch_at(s, *link)->next;
  *link = fetch->next;
  fetch->next = s->free_fetch;
  s->free_fetch = fetch->self;
}

static void plan_ack(struct gpu_server *s)
{
  struct message m = {.type = MESSAGE_PLAN,
                      .plan = {.version = s->plan->plan->version, .members = s->plan->plan->members}};
  server_send(s, &m);
}

static void plan_unref(struct gpu_server *s, struct plan_ref *ref)
{
  if (--ref->users > 0 || !ref->retired)
    return;
  pool_plan_free(ref->plan);
  g_free(ref);
  if (--s->plans_retired == 0)
    plan_ack(s);
}

gboolean fetch_begin(struct gpu_server *s, struct gpu *gpu, struct task *task, enum load_source source,
                     struct fetch **out, gboolean *lost)
{
  struct fetch *fetch = fetch_take(s);
  const struct model *model = catalog_model(s->config->catalog, task->model);
  fetch->model = task->model;
  fetch->source = source;
  fetch->plan_ref = source == SOURCE_REMOTE ? s->plan : NULL;
  fetch->plan = source == SOURCE_REMOTE
                    ? pool_plan_fetch(s->plan->plan, s->config->catalog, task->model, s->hw)
                    : load_plan(s->config->plans, model->profile, s->hw, source)->local;
  fetch->direct = source == SOURCE_REMOTE && s->config->gpudirect;
  *lost = source == SOURCE_REMOTE && !choose_servers(s, fetch);
  if (*lost || (!fetch->direct && !take_room(s, gpu, fetch, task->id))) {
    fetch_drop(s, fetch);
    return FALSE;
  }
  if (fetch->plan_ref)
    fetch->plan_ref->users++;
  if (!fetch->direct)
    fetch_issue(s, fetch, gpu->index, 0, task->id);
  *out = fetch;
  return TRUE;
}

void fetch_land(struct gpu_server *s, struct fetch *fetch, const struct gpu *gpu, const struct load *load)
{
  fetch->load = load->self;
  fetch_issue(s, fetch, gpu->index, 0, load->request);
}

void fetch_release(struct gpu_server *s, struct fetch *fetch)
{
  if (fetch->users > 0)
    fetch->users--;
  if (fetch->users > 0 || fetch->op != 0)
    return;
  gboolean alone = !fetch->direct && !fetch_joinable(fetch);
  struct gpu *staged = fetch->cached || fetch->direct ? NULL : &s->gpu[fetch->staging_gpu];
  if (staged) {
    staged->staging_used -= fetch->staging_bytes;
    arena_give(staged->staging, &fetch->staging);
  }
  if (fetch->cached && !fetch->arrived)
    tier_remove(s->host, fetch->model);
  struct plan_ref *ref = fetch->plan_ref;
  fetch_drop(s, fetch);
  if (ref)
    plan_unref(s, ref);
  fetch_report(s);
  if (alone) /* other GPUs may have waited for it to be over */
    gpu_advance_all(s);
  else if (staged)
    gpu_advance(s, staged);
}

/* Achieved rate while fetching: a moving average over busy periods; a long one is cut after some fetches.
 * Fetches that share the link end almost together, so from one end to the next the link seems slow, then
 * fast. */
static void measure_rate(struct gpu_server *s, uint64_t bytes)
{
  int64_t now = world_now(s->world);
  s->rate_bytes += bytes;
  if (s->active_fetches > 0 && ++s->rate_fetches < RATE_FETCHES)
    return;
  if (now > s->rate_since) {
    double rate = (double)s->rate_bytes * 1e9 / (double)(now - s->rate_since);
    s->rate = s->rate > 0 ? (s->rate + rate) / 2 : rate;
  }
  s->rate_since = now;
  s->rate_bytes = s->rate_fetches = 0;
}

void fetch_ended(struct gpu_server *s, struct fetch *fetch, const struct completion *completion)
{
  s->active_fetches--;
  fetch->op = 0;
  if (completion->status == OP_DONE) {
    fetch->arrived = TRUE;
    if (fetch->source == SOURCE_REMOTE)
      measure_rate(s, completion->bytes);
    if (fetch->cached) {
      tier_ready(s->host, fetch->model);
      if (tier_state(s->host, fetch->model) == TIER_READY) /* a cache that shrank may have let it go */
        server_tell_state(s, NO_INDEX, fetch->model, TIER_READY);
    }
  }
  fetch_report(s);
  if (fetch->direct)
    load_landed(s, load_at(s, fetch->load), completion->status == OP_DONE ? UINT32_MAX : completion->groups);
  else if (fetch->users == 0)
    fetch_release(s, fetch);
  else
    fetch_mend(s, fetch);
}

static void abort_loads(struct gpu_server *s, uint32_t fetch)
{
  for (uint32_t g = 0; g < s->gpus; g++)
    for (uint32_t i = s->gpu[g].loads_first, next; i != NO_INDEX; i = next) {
      struct load *load = load_at(s, i);
      next = load->next;
      if (load->fetch == fetch && load->broken &&
          !gpu_computes(s, &s->gpu[g], load->model)) /* else when they end */
        load_abort(s, load);
    }
}

/* Loads of the fetch that lack groups; FALSE while any load still has operations under way: what it reads may
 * be fetched anew. */
static gboolean broken_loads(struct gpu_server *s, uint32_t fetch, uint32_t *first, uint32_t *gpu,
                             uint64_t *request)
{
  gboolean any = FALSE;
  *first = UINT32_MAX;
  for (uint32_t g = 0; g < s->gpus; g++)
    for (uint32_t i = s->gpu[g].loads_first; i != NO_INDEX; i = load_at(s, i)->next) {
      const struct load *load = load_at(s, i);
      if (load->fetch != fetch)
        continue;
      if (load->copies > 0)
        return FALSE;
      if (!load->broken)
        continue;
      any = TRUE;
      *first = MIN(*first, load->uploaded);
      *gpu = g;
      *request = load->request;
    }
  return any;
}

void fetch_mend(struct gpu_server *s, struct fetch *fetch)
{
  uint32_t first, gpu = 0, self = fetch->self;
  uint64_t request = 0;
  if (!broken_loads(s, self, &first, &gpu, &request))
    return;
  if (fetch->op != 0) { /* it may wait for copies that nobody makes any more */
    s->world->ops->cancel(s->world, fetch->op);
    return;
  }
  /* Where all has arrived, it is the device that failed. */
  fetch->lost |= fetch->arrived || !fetch->plan_ref || !choose_servers(s, fetch);
  if (fetch->lost) {
    abort_loads(s, self);
    return;
  }
  fetch_issue(s, fetch, gpu, first, request);
  for (uint32_t g = 0; g < s->gpus; g++)
    for (uint32_t i = s->gpu[g].loads_first; i != NO_INDEX; i = load_at(s, i)->next) {
      struct load *load = load_at(s, i);
      if (load->fetch != self || !load->broken)
        continue;
      load->broken = FALSE;
      load_upload(s, load, load->uploaded);
      gpu_resume_tasks(s, &s->gpu[g], load);
    }
}

void fetch_member(struct gpu_server *s, const struct message_member *m)
{
  if (m->index >= MEMORY_SERVERS_MAX)
    return;
  if (m->alive) {
    s->dead_members &= ~(1ULL << m->index);
    return;
  }
  s->dead_members |= 1ULL << m->index;
  for (uint32_t i = s->fetch_first; i != NO_INDEX; i = fetch_at(s, i)->next) {
    struct fetch *fetch = fetch_at(s, i);
    gboolean uses = FALSE;
    for (uint32_t k = 0; fetch->plan_ref && k < fetch->plan->streams; k++)
      uses |= fetch->servers[k] == m->index;
    if (uses && fetch->op != 0)
      s->world->ops->cancel(s->world, fetch->op);
  }
}

void fetch_plan_changed(struct gpu_server *s, const struct message_plan *m)
{
  struct plan_ref *old = s->plan;
  s->plan = g_new0(struct plan_ref, 1);
  s->plan->users = 1; /* the server's own */
  s->plan->plan = pool_plan_new(s->config->plans, s->config->sharding, m->version, m->members);
  if (old) {
    old->retired = TRUE;
    s->plans_retired++;
    plan_unref(s, old);
  } else {
    plan_ack(s);
  }
  gpu_advance_all(s);
}

static void send_report(struct gpu_server *s)
{
  uint64_t left = 0;
  for (uint32_t i = s->fetch_first; i != NO_INDEX; i = fetch_at(s, i)->next) {
    const struct fetch *fetch = fetch_at(s, i);
    if (fetch->source == SOURCE_REMOTE && fetch->op != 0)
      left += fetch->plan->total_bytes - MIN(fetch->credited, fetch->plan->total_bytes);
  }
  struct message m = {
      .type = MESSAGE_REPORT,
      .report = {.net_left_bytes = left, .net_rate = (uint64_t)s->rate, .fetches = s->active_fetches}};
  server_send(s, &m);
  s->report_due = FALSE;
}

void fetch_report(struct gpu_server *s)
{
  s->report_due = TRUE;
  if (s->report_armed || s->config->report_ns <= 0 || s->config->system->residence != RESIDENCE_POOL)
    return;
  send_report(s);
  s->report_armed = TRUE;
  s->world->ops->timer(s->world, s->config->report_ns, (uint64_t)SERVER_TIMER_REPORT << 56);
}

void fetch_report_timer(struct gpu_server *s)
{
  s->report_armed = FALSE;
  if (s->report_due)
    fetch_report(s);
}
