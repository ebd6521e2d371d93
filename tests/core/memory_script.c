/* See memory_script.h. */
#include "memory_script.h"

#include <criterion/criterion.h>

static struct script *script_of(struct world *world)
{
  return (struct script *)world;
}

static op_id on_fetch(struct world *world, const struct fetch_spec *spec)
{
  struct script *s = script_of(world);
  const struct fetch_plan *plan = spec->plan;
  struct pool_plan *old = pool_plan_new(s->plans, s->config.sharding, 0, s->present);
  cr_assert(plan->groups == 1 && plan->total_bytes > 0 && spec->ring_bytes == plan->total_bytes);
  cr_assert_eq(ranges_bytes(spec->host), spec->ring_bytes);
  cr_assert_geq(spec->model, s->last_model);
  s->last_model = spec->model;
  struct fetching f = {.op = ++s->ops,
                       .tag = spec->tag,
                       .model = spec->model,
                       .piece = {.offset = plan->group_offset[0], .length = plan->total_bytes}};
  for (uint32_t i = 0; i < plan->streams; i++) {
    uint64_t bytes = pool_plan_bytes(old, s->catalog, spec->model, spec->server[i], s->config.replicas);
    cr_assert(spec->server[i] != ME && s->from >> spec->server[i] & 1 && bytes >= plan->bytes[i]);
  }
  uint64_t had = 0;
  for (uint64_t b = 0; b < f.piece.length; b++)
    had += s->served[f.model][f.piece.offset + b];
  cr_assert_eq(had, 0);
  g_array_append_val(s->fetching, f);
  cr_assert_leq(s->fetching->len, OPS_MAX);
  pool_plan_free(old);
  return f.op;
}

static void on_cancel(struct world *world, op_id op)
{
  struct script *s = script_of(world);
  for (guint i = 0; i < s->fetching->len; i++)
    if (g_array_index(s->fetching, struct fetching, i).op == op)
      g_array_index(s->fetching, struct fetching, i).cancelled = TRUE;
}

static void count(uint8_t *bytes, uint64_t offset, uint64_t length, int change)
{
  cr_assert_leq(offset + length, IMAGE_MAX);
  for (uint64_t b = offset; b < offset + length; b++)
    bytes[b] = (uint8_t)(bytes[b] + change);
}

static void on_fill(struct world *world, uint32_t model, uint64_t offset, uint64_t bytes, uint32_t gpu,
                    const struct ranges *place)
{
  cr_assert(gpu == NO_INDEX && ranges_bytes(place) == bytes);
  count(script_of(world)->filled[model], offset, bytes, 1);
  count(script_of(world)->brought[model], offset, bytes, 1);
}

static timer_id on_timer(struct world *world, int64_t delay_ns, uint64_t tag)
{
  struct script *s = script_of(world);
  cr_assert(!s->timer && delay_ns == 0 && tag != 0); /* there are no heartbeats */
  s->timer = TRUE;
  return 1;
}

static void on_serve(struct world *world, uint32_t model, uint64_t offset, uint64_t bytes,
                     const struct ranges *place)
{
  cr_assert(!place || ranges_bytes(place) == bytes);
  for (uint64_t b = offset; place && b < offset + bytes; b++)
    cr_assert_gt(script_of(world)->brought[model][b], 0, "byte %lu of model %u never came", b, model);
  count(script_of(world)->served[model], offset, bytes, place ? 1 : -1);
}

static void on_send(struct world *world, actor_id to, const struct message *m)
{
  struct script *s = script_of(world);
  cr_assert_eq(to, ACTOR(ACTOR_CONTROLLER, 0));
  s->joins += m->type == MESSAGE_JOIN;
  if (m->type == MESSAGE_PLACED)
    g_array_append_val(s->placed, m->placed);
}

static const struct world_ops script_ops = {.send = on_send,
                                            .fetch = on_fetch,
                                            .cancel = on_cancel,
                                            .timer = on_timer,
                                            .fill = on_fill,
                                            .serve = on_serve};

struct script *script_new(enum sharding_kind sharding, uint32_t at_start, uint32_t replicas,
                          uint64_t memory_bytes)
{
  struct script *s = g_new0(struct script, 1);
  struct grouping_policy grouping = {GROUPING_COUNT, 4};
  s->world.ops = &script_ops;
  s->catalog = catalog_new(1);
  for (uint32_t p = 0; p < 2; p++) {
    g_autofree char *name = g_strdup_printf("net%u", p);
    struct profile *profile = profile_new(name, 6);
    for (uint32_t i = 0; i < 6; i++)
      profile->layer_bytes[i] = p ? 1000 * i : 15000 - 1300 * i;
    profile_sum(profile);
    catalog_add(s->catalog, profile, 3);
  }
  s->system.residence = RESIDENCE_POOL;
  s->fetching = g_array_new(FALSE, FALSE, sizeof(struct fetching));
  s->placed = g_array_new(FALSE, FALSE, sizeof(struct message_placed));
  s->config = (struct config){.catalog = s->catalog,
                              .system = &s->system,
                              .hardware_count = 1,
                              .memory_hardware = {.host_memory_bytes = memory_bytes},
                              .memory_servers = SERVERS,
                              .memory_servers_at_start = at_start,
                              .sharding = sharding,
                              .replicas = replicas};
  s->plans = load_plans_new(s->catalog, s->config.hardware, &s->config.memory_hardware, at_start, sharding,
                            FALSE, FALSE, &grouping);
  s->config.plans = s->plans;
  s->server = memory_server_new(&s->config, ME, &s->world);
  memory_server_actor.start(s->server);
  cr_assert_eq(s->joins, 1);
  return s;
}

void script_free(struct script *s)
{
  memory_server_free(s->server);
  load_plans_free(s->plans);
  catalog_free(s->catalog);
  g_array_unref(s->fetching);
  g_array_unref(s->placed);
  g_free(s);
}

void script_end(struct script *s, guint index, enum op_status status)
{
  struct fetching f = g_array_index(s->fetching, struct fetching, index);
  g_array_remove_index(s->fetching, index);
  if (status == OP_DONE)
    count(s->brought[f.model], f.piece.offset, f.piece.length, 1);
  memory_server_actor.completion(s->server, &(struct completion){.tag = f.tag, .status = status});
}

gboolean script_tick(struct script *s)
{
  if (!s->timer)
    return FALSE;
  s->timer = FALSE;
  memory_server_actor.timer(s->server, 1);
  return TRUE;
}
