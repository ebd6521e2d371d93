/* The rules of places; see place_check.h. */
#include "place_check.h"

#include "live.h"
#include "memories.h"

struct place_check {
  const struct config *config;
  struct sim_watch watch;
  struct memories *memories;
  GPtrArray *live;         /* of struct live, in order of their begin */
  struct content **served; /* [memory_servers * models]: image offsets */
  GHashTable *failed;      /* ids of operations that ended badly */
  char *problem;
  struct place_counts counts;
};

static void problem(struct place_check *check, actor_id actor, const char *format, ...) G_GNUC_PRINTF(3, 4);

static void problem(struct place_check *check, actor_id actor, const char *format, ...)
{
  va_list list;
  if (check->problem)
    return;
  va_start(list, format);
  g_autofree char *text = g_strdup_vprintf(format, list);
  va_end(list);
  check->problem =
      g_strdup_printf("actor kind %d number %d: %s", (int)ACTOR_KIND(actor), (int)ACTOR_INDEX(actor), text);
}

/* --- bytes under way
 * -------------------------------------------------------------------------------------------------------*/

/* Adds the image's bytes [image, image + bytes) at place (byte - zero) mod ring. */
static void access_add(struct place_check *check, struct live *live, struct memory *memory,
                       const struct ranges *place, uint64_t ring, uint64_t zero, uint64_t image,
                       uint64_t bytes, gboolean write)
{
  while (bytes > 0) {
    uint64_t from = (image - zero) % ring, length;
    uint64_t at = ranges_piece(place, from, MIN(bytes, ring - from), &length);
    if (length == 0 || at + length > memory->bytes) {
      problem(check, live->actor, "model %u's byte %" G_GUINT64_FORMAT " has no place in memory %d",
              live->model, image, (int)memory->gpu);
      return;
    }
    struct access access = {.memory = memory, .at = at, .length = length, .image = image, .write = write};
    g_array_append_val(live->accesses, access);
    image += length;
    bytes -= length;
  }
}

static gboolean has_failed(const struct place_check *check, op_id op)
{
  return op != 0 && g_hash_table_contains(check->failed, &op);
}

static void live_begin(struct place_check *check, struct live *live)
{
  static const char *const names[] = {"fetch", "copy", "computation"};
  if (has_failed(check, live->after) || has_failed(check, live->after_fetch))
    g_array_set_size(live->accesses, 0); /* it will fail */
  for (guint i = 0; i < check->live->len; i++) {
    const struct live *other = g_ptr_array_index(check->live, i);
    if (other->actor == live->actor && live_collide(other, live) && !live_ordered(check->live, other, live))
      problem(check, live->actor, "a %s of model %u touches bytes of a %s of model %u under way",
              names[live->kind], live->model, names[other->kind], other->model);
  }
  g_ptr_array_add(check->live, live);
}

static void expect_content(struct place_check *check, const struct live *live, const char *when)
{
  for (guint i = 0; live->model != NO_INDEX && i < live->accesses->len; i++) {
    const struct access *a = &g_array_index(live->accesses, struct access, i);
    if (!a->write && !content_is(a->memory->content, a->at, a->length, live->model, a->image))
      problem(check, live->actor,
              "%s operation %d of model %u reads something else at %" G_GUINT64_FORMAT " of memory %d", when,
              live->kind, live->model, a->at, (int)a->memory->gpu);
  }
}

/* --- fetches
 * --------------------------------------------------------------------------------------------------------*/

static struct content *served_by(const struct place_check *check, uint32_t server, uint32_t model)
{
  return check->served[(size_t)server * catalog_models(check->config->catalog) + model];
}

/* Every piece that the fetch reads is served by the server that it is read from. */
static void expect_served(struct place_check *check, const struct live *live, const char *when)
{
  const struct fetch_plan *plan = live->plan;
  for (size_t at = (size_t)live->first_group * plan->streams;
       live->remote && at < (size_t)plan->groups * plan->streams; at++)
    for (uint32_t i = plan->first_piece[at]; i < plan->first_piece[at + 1]; i++) {
      const struct piece *piece = &plan->piece[i];
      uint32_t server = live->server[at % plan->streams];
      if (!content_is(served_by(check, server, live->model), piece->offset, piece->length, live->model,
                      piece->offset))
        problem(check, live->actor,
                "%s: memory server %u does not serve bytes %" G_GUINT64_FORMAT " + %" G_GUINT64_FORMAT
                " of model %u",
                when, server, piece->offset, piece->length, live->model);
    }
}

static void on_fetch(void *context, actor_id actor, op_id op, const struct fetch_spec *spec)
{
  struct place_check *check = context;
  const struct fetch_plan *plan = spec->plan;
  struct live *live = live_new(actor, op, FETCH, spec->model);
  const struct ranges *place = spec->device ? spec->device : spec->host;
  struct memory *memory = memories_of(check->memories, actor, spec->device ? spec->gpu : NO_INDEX);
  uint64_t ring = spec->device ? UINT64_MAX : spec->ring_bytes;
  uint64_t zero = plan->groups && !spec->device ? plan->group_offset[0] : 0;
  live->plan = plan;
  live->first_group = spec->first_group;
  live->remote = spec->source == SOURCE_REMOTE;
  live->direct = spec->device != NULL;
  live->ring = ring < plan->total_bytes;
  for (uint32_t s = 0; live->remote && s < plan->streams; s++)
    live->server[s] = spec->server[s];
  if (live->direct && (spec->host || spec->ring_bytes || spec->window_bytes || !live->remote))
    problem(check, actor, "a fetch into GPU memory names host memory, a ring, a window or an SSD");
  if (ranges_bytes(place) < (live->direct ? plan->total_bytes : ring))
    problem(check, actor, "a ring is larger than its place");
  for (uint32_t j = spec->first_group; j < plan->groups; j++) {
    if (plan->group_bytes[j] > ring)
      problem(check, actor, "group %u of model %u does not fit its ring", j, spec->model);
    else
      access_add(check, live, memory, place, ring, zero, plan->group_offset[j], plan->group_bytes[j], TRUE);
  }
  for (guint i = 0; i < live->accesses->len; i++) {
    const struct access *a = &g_array_index(live->accesses, struct access, i);
    content_clear(a->memory->content, a->at, a->length);
  }
  check->counts.fetches++;
  check->counts.rings += live->ring;
  check->counts.direct += live->direct;
  expect_served(check, live, "as it begins");
  live_begin(check, live);
}

/* --- copies and computations
 * ----------------------------------------------------------------------------------------*/

/* Of a copy, or of a computation after a fetch into GPU memory. */
static void expect_of_fetch(struct place_check *check, struct live *live, uint64_t offset, uint64_t bytes)
{
  const struct live *fetch = live_find(check->live, live->after_fetch);
  if (!fetch)
    return;
  const struct fetch_plan *plan = fetch->plan;
  live->ring = fetch->ring;
  live->direct = fetch->direct;
  if (fetch->kind != FETCH || fetch->model != live->model || fetch->direct != (live->kind == COMPUTE) ||
      live->group >= plan->groups || plan->group_offset[live->group] != offset ||
      plan->group_bytes[live->group] != bytes)
    problem(check, live->actor, "what is after a fetch of model %u is of another group", live->model);
  /* It reads exactly where the fetch writes the group. */
  for (guint i = 0; live->group >= fetch->first_group && i < live->accesses->len; i++) {
    const struct access *read = &g_array_index(live->accesses, struct access, i);
    gboolean found = read->write;
    for (guint k = 0; k < fetch->accesses->len && !found; k++) {
      const struct access *written = &g_array_index(fetch->accesses, struct access, k);
      found = written->at == read->at && written->length == read->length && written->image == read->image;
    }
    if (!found)
      problem(check, live->actor, "what is after a fetch of model %u reads elsewhere", live->model);
  }
}

static void on_copy(void *context, actor_id actor, op_id op, const struct copy_spec *spec)
{
  struct place_check *check = context;
  struct live *live = live_new(actor, op, COPY, spec->model);
  live->gpu = spec->gpu;
  live->lane = spec->lane;
  live->group = spec->group;
  live->to_host = spec->to_host;
  live->after = spec->after;
  live->after_fetch = spec->after_fetch;
  if (spec->host)
    access_add(check, live, memories_of(check->memories, actor, NO_INDEX), spec->host, spec->ring_bytes, 0,
               spec->offset, spec->bytes, spec->to_host);
  else if (!spec->pageable && check->config->system->residence != RESIDENCE_EVERYWHERE)
    problem(check, actor, "a copy of model %u has no place in host memory", spec->model);
  if (spec->device)
    access_add(check, live, memories_of(check->memories, actor, spec->gpu), spec->device, UINT64_MAX, 0,
               spec->offset, spec->bytes, !spec->to_host);
  else if (check->config->system->residence != RESIDENCE_EVERYWHERE)
    problem(check, actor, "a copy of model %u has no place on its GPU", spec->model);
  check->counts.copies++;
  expect_of_fetch(check, live, spec->offset, spec->bytes);
  live_begin(check, live);
  if (!live_find(check->live, spec->after_fetch))
    expect_content(check, live, "beginning");
}

static void on_compute(void *context, actor_id actor, op_id op, const struct compute_spec *spec)
{
  struct place_check *check = context;
  struct live *live = live_new(actor, op, COMPUTE, spec->model);
  live->gpu = spec->gpu;
  live->lane = spec->stream;
  live->group = spec->group;
  live->after = spec->after;
  live->after_fetch = spec->after_fetch;
  if (spec->device)
    access_add(check, live, memories_of(check->memories, actor, spec->gpu), spec->device, UINT64_MAX, 0,
               spec->offset, spec->bytes, FALSE);
  else if (spec->model != NO_INDEX && check->config->system->residence != RESIDENCE_EVERYWHERE)
    problem(check, actor, "a computation of model %u has no place", spec->model);
  check->counts.computes++;
  expect_of_fetch(check, live, spec->offset, spec->bytes);
  live_begin(check, live);
  if (!live_find(check->live, spec->after) && !live_find(check->live, spec->after_fetch))
    expect_content(check, live, "beginning");
}

/* What a copy brought is there; so is the group that a fetch brought for it, in host memory, or for a
 * computation, in the GPU's. */
static void brought(const struct live *live)
{
  for (guint i = 0; i < live->accesses->len; i++) {
    const struct access *a = &g_array_index(live->accesses, struct access, i);
    if (a->write || (live->after_fetch && !live->ring))
      content_set(a->memory->content, a->at, a->length, live->model, a->image);
  }
}

/* Its first groups are there, all of them where it ended well. */
static void fetch_done(const struct live *live, uint32_t groups)
{
  const struct fetch_plan *plan = live->plan;
  uint64_t end = groups >= plan->groups ? UINT64_MAX : plan->group_offset[groups];
  for (guint i = 0; !live->ring && i < live->accesses->len; i++) {
    const struct access *a = &g_array_index(live->accesses, struct access, i);
    if (a->image >= end)
      break;
    content_set(a->memory->content, a->at, a->length, live->model, a->image);
  }
}

static void on_ended(void *context, actor_id actor, op_id op, const struct completion *completion)
{
  struct place_check *check = context;
  struct live *live = live_find(check->live, op);
  if (!live || live->actor != actor) {
    problem(check, actor, "an operation ended that nobody began");
    return;
  }
  if (completion->status == OP_DONE) {
    if (live->kind == COPY || live->direct)
      brought(live);
    if (live->kind == COMPUTE)
      expect_content(check, live, "ending");
    else if (live->kind == FETCH)
      fetch_done(live, UINT32_MAX);
    if (live->kind == FETCH)
      expect_served(check, live, "as it ends");
  } else {
    check->counts.broken++;
    g_hash_table_add(check->failed, g_memdup2(&op, sizeof op));
    live_doom(check->live, live, completion->groups);
    if (live->direct && live->kind == FETCH)
      fetch_done(live, completion->groups);
  }
  g_ptr_array_remove(check->live, live);
}

/* --- what is there from the start, what is served
 * -------------------------------------------------------------------*/

static void on_fill(void *context, actor_id actor, uint32_t model, uint64_t offset, uint64_t bytes,
                    uint32_t gpu, const struct ranges *place)
{
  struct place_check *check = context;
  struct live *live = live_new(actor, 0, COPY, model);
  access_add(check, live, memories_of(check->memories, actor, gpu), place, UINT64_MAX, offset, offset, bytes,
             TRUE);
  for (guint i = 0; i < live->accesses->len; i++) {
    const struct access *a = &g_array_index(live->accesses, struct access, i);
    if (content_bytes(a->memory->content) > 0) {
      uint64_t before = content_bytes(a->memory->content);
      content_set(a->memory->content, a->at, a->length, model, a->image);
      if (content_bytes(a->memory->content) != before + a->length)
        problem(check, actor, "model %u is filled in over another one", model);
    }
    content_set(a->memory->content, a->at, a->length, model, a->image);
  }
  check->counts.fills++;
  live_free(live);
}

static void on_serve(void *context, actor_id actor, uint32_t model, uint64_t offset, uint64_t bytes,
                     const struct ranges *place)
{
  struct place_check *check = context;
  struct content *served = served_by(check, ACTOR_INDEX(actor), model);
  if (!place) {
    if (!content_is(served, offset, bytes, model, offset))
      problem(check, actor, "takes back what it did not serve of model %u", model);
    content_clear(served, offset, bytes);
    check->counts.unserved++;
    return;
  }
  struct live *live = live_new(actor, 0, COPY, model);
  access_add(check, live, memories_of(check->memories, actor, NO_INDEX), place, UINT64_MAX, offset, offset,
             bytes, FALSE);
  expect_content(check, live, "served");
  live_free(live);
  content_set(served, offset, bytes, model, offset);
  check->counts.served++;
}

/* --- birth and death
 * ------------------------------------------------------------------------------------------------*/

struct place_check *place_check_new(const struct config *config)
{
  struct place_check *check = g_new0(struct place_check, 1);
  size_t maps = (size_t)config->memory_servers * catalog_models(config->catalog);
  check->config = config;
  check->memories = memories_new(config);
  check->live = g_ptr_array_new_with_free_func(live_free);
  check->failed = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
  check->served = g_new0(struct content *, maps + 1);
  for (size_t i = 0; i < maps; i++)
    check->served[i] = content_new();
  check->watch = (struct sim_watch){.context = check,
                                    .fetch = on_fetch,
                                    .copy = on_copy,
                                    .compute = on_compute,
                                    .ended = on_ended,
                                    .fill = on_fill,
                                    .serve = on_serve};
  return check;
}

void place_check_free(struct place_check *check)
{
  size_t maps = (size_t)check->config->memory_servers * catalog_models(check->config->catalog);
  for (size_t i = 0; i < maps; i++)
    content_free(check->served[i]);
  g_ptr_array_unref(check->live);
  g_hash_table_unref(check->failed);
  memories_free(check->memories);
  g_free(check->served);
  g_free(check->problem);
  g_free(check);
}

const struct sim_watch *place_check_watch(const struct place_check *check)
{
  return &check->watch;
}

const char *place_check_problem(const struct place_check *check)
{
  return check->problem;
}

void place_check_host_grows(struct place_check *check)
{
  memories_host_grows(check->memories);
}

struct place_counts place_check_counts(const struct place_check *check)
{
  return check->counts;
}
