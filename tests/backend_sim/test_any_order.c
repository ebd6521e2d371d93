/* A GPU server whose operations end in any order that world.h allows, and fail: it answers every request
 * once, names sound places throughout, and is left with nothing under way. */
#include <criterion/criterion.h>

#include "core/balancer.h"
#include "loose_world.h"
#include "small_world.h"

#define MB       1000000ULL
#define REQUESTS 60

struct client {
  uint32_t answers[REQUESTS], completed, lost;
  uint64_t direct; /* fetches into GPU memory */
};

static void on_done(void *context, const struct message_done *done)
{
  struct client *client = context;
  cr_assert_lt(done->id, REQUESTS);
  client->answers[done->id]++;
  client->completed += done->outcome == OUTCOME_COMPLETED;
  client->lost += done->outcome == OUTCOME_LOST;
}

static int draw(GRand *rand, int low, int high)
{
  return g_rand_int_range(rand, low, high + 1);
}

static struct small_world *draw_world(GRand *rand, const char *system, gboolean direct)
{
  struct small_world *w = small_world_new(system);
  struct config *config = &w->config;
  uint64_t largest = 0;
  config->gpudirect = direct;
  w->grouping = (struct grouping_policy){GROUPING_COUNT, (uint64_t)draw(rand, 1, 6)};
  w->gpus_per_server = (uint32_t)draw(rand, 1, 3);
  w->memory_servers = (uint32_t)draw(rand, 2, 5);
  config->replicas = (uint32_t)draw(rand, 1, 2);
  config->sharding = (enum sharding_kind)draw(rand, SHARDING_PER_APP, SHARDING_HYBRID);
  config->hardware[0].mps_max_processes = 3;
  config->hardware[0].mps_process_bytes = 5 * MB;
  for (int p = draw(rand, 1, 3); p > 0; p--) {
    uint64_t bytes[8];
    double compute[8];
    int layers = draw(rand, 1, 8);
    for (int i = 0; i < layers; i++) {
      bytes[i] = (uint64_t)draw(rand, 0, 9) * MB;
      compute[i] = 1000;
    }
    bytes[0]++;
    largest = MAX(largest, catalog_bytes(w->catalog, small_world_model(w, (uint32_t)layers, bytes, compute,
                                                                       (uint32_t)draw(rand, 1, 5))));
  }
  small_world_plan(w);
  config->gpu_model_bytes = largest + 5 * MB + (uint64_t)draw(rand, 0, 3) * largest / 2;
  config->host_cache_bytes = (uint64_t)draw(rand, 0, 4) * largest;
  config->staging_bytes = largest;
  if (draw(rand, 0, 1)) { /* a ring of the largest group */
    config->staging_bytes = 1;
    for (uint32_t p = 0; p < w->plans->profiles; p++)
      for (int source = SOURCE_REMOTE; source <= SOURCE_SSD; source++) {
        const struct grouping *g = load_plan(w->plans, p, 0, (enum load_source)source)->grouping;
        for (uint32_t j = 0; j < g->groups; j++)
          config->staging_bytes = MAX(config->staging_bytes, g->bytes[j]);
      }
  }
  config->warm = draw(rand, 0, 2) == 0;
  if (draw(rand, 0, 1)) {
    config->train_profile = 0;
    config->train_step_ns = 1000;
    config->train_state_bytes = (uint64_t)draw(rand, 0, 10) * MB;
  }
  return w;
}

/* Memory servers that hold and serve every model whole. */
static void fill_pool(const struct small_world *w, struct place_check *check)
{
  const struct sim_watch *watch = place_check_watch(check);
  for (uint32_t i = 0; w->config.system->residence == RESIDENCE_POOL && i < w->memory_servers; i++) {
    uint64_t at = 0;
    for (uint32_t m = 0; m < catalog_models(w->catalog); m++) {
      uint64_t bytes = catalog_bytes(w->catalog, m);
      struct range range = {.offset = at, .length = bytes};
      struct ranges place = {.range = &range, .count = 1};
      watch->fill(watch->context, ACTOR(ACTOR_MEMORY_SERVER, i), m, 0, bytes, NO_INDEX, &place);
      watch->serve(watch->context, ACTOR(ACTOR_MEMORY_SERVER, i), m, 0, bytes, &place);
      at += bytes;
    }
  }
}

static void tell_something(struct loose_world *loose, const struct small_world *w, GRand *rand,
                           uint32_t *sent)
{
  struct message m = {0};
  uint32_t servers = w->memory_servers;
  switch (draw(rand, 0, 14)) {
  case 0:
    m = (struct message){
        .type = MESSAGE_MEMBER,
        .member = {.index = (uint32_t)draw(rand, 0, (int)servers - 1), .alive = (uint32_t)draw(rand, 0, 1)}};
    break;
  case 1:
    m = (struct message){
        .type = MESSAGE_PLAN,
        .plan = {.version = 2 + *sent, .members = (uint64_t)draw(rand, 1, (1 << servers) - 1)}};
    break;
  case 2:
    m = (struct message){.type = MESSAGE_CACHE_SIZE,
                         .cache_size = {.bytes = (uint64_t)draw(rand, 0, 200) * MB}};
    break;
  case 3:
    m = (struct message){.type = MESSAGE_REVOKE,
                         .revoke = {.id = (uint64_t)draw(rand, 0, REQUESTS - 1),
                                    .gpu = (uint32_t)draw(rand, 0, (int)w->gpus_per_server - 1)}};
    break;
  case 4:
    m = (struct message){.type = MESSAGE_TRAIN,
                         .train = {.gpu = (uint32_t)draw(rand, 0, (int)w->gpus_per_server - 1),
                                   .job = *sent,
                                   .steps = (uint64_t)draw(rand, 0, 3)}};
    break;
  default:
    if (*sent == REQUESTS)
      return;
    m = (struct message){.type = MESSAGE_DISPATCH,
                         .dispatch = {.id = (*sent)++,
                                      .model = (uint32_t)draw(rand, 0, (int)catalog_models(w->catalog) - 1),
                                      .gpu = (uint32_t)draw(rand, 0, (int)w->gpus_per_server - 1)}};
  }
  loose_world_tell(loose, &m);
}

/* Every memory server answers again, so that what waits can end. */
static void tell_all_alive(struct loose_world *loose, const struct small_world *w)
{
  for (uint32_t i = 0; i < w->memory_servers; i++)
    loose_world_tell(loose, &(struct message){.type = MESSAGE_MEMBER, .member = {.index = i, .alive = 1}});
}

static struct client run(const char *system, gboolean direct, guint32 seed)
{
  g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
  struct small_world *w = draw_world(rand, system, direct);
  struct place_check *check = place_check_new(&w->config);
  struct client client = {{0}};
  uint32_t sent = 0;
  struct loose_world *loose =
      loose_world_new(&w->config, check, rand, seed % 3 ? 0 : (uint32_t)draw(rand, 5, 100), on_done, &client);
  struct message plan = {.type = MESSAGE_PLAN,
                         .plan = {.version = 1, .members = (1ULL << w->memory_servers) - 1}};
  fill_pool(w, check);
  gpu_server_actor.start(loose_world_server(loose));
  loose_world_tell(loose, &plan);
  for (int step = 0; step < 3000; step++) {
    if (draw(rand, 0, 4) == 0)
      tell_something(loose, w, rand, &sent);
    else
      loose_world_step(loose);
    cr_assert_null(place_check_problem(check), "%s, seed %u, step %d: %s", system, seed, step,
                   place_check_problem(check));
  }
  loose_world_calm(loose);
  tell_all_alive(loose, w);
  for (int step = 0; step < 100000 && loose_world_step(loose); step++)
    cr_assert_null(place_check_problem(check), "%s, seed %u: %s", system, seed, place_check_problem(check));
  for (uint32_t i = 0; i < sent; i++)
    cr_assert_eq(client.answers[i], 1, "%s, seed %u: request %u has %u answers", system, seed, i,
                 client.answers[i]);
  struct place_counts counts = place_check_counts(check);
  client.direct = counts.direct;
  cr_assert(direct ? counts.direct == counts.fetches : counts.direct == 0);
  loose_world_free(loose);
  place_check_free(check);
  small_world_free(w);
  return client;
}

Test(any_order, is_good_enough_for_every_loader)
{
  static const char *const systems[] = {"distmind", "pipeswitch", "ray", "mps", "serverlessllm"};
  for (size_t i = 0; i < G_N_ELEMENTS(systems); i++) {
    uint32_t completed = 0, lost = 0;
    for (guint32 seed = 1; seed <= (i == 0 ? 300 : 60); seed++) {
      struct client client = run(systems[i], FALSE, seed);
      completed += client.completed;
      lost += client.lost;
    }
    cr_expect(completed > 1000 && lost > 0, "%s: %u completed, %u lost", systems[i], completed, lost);
  }
}

Test(any_order, is_good_enough_for_loads_that_land_in_gpu_memory)
{
  uint32_t completed = 0, lost = 0;
  uint64_t direct = 0;
  for (guint32 seed = 1; seed <= 300; seed++) {
    struct client client = run("distmind", TRUE, seed);
    completed += client.completed;
    lost += client.lost;
    direct += client.direct;
  }
  cr_expect(completed > 1000 && lost > 0 && direct > 1000, "%u completed, %u lost, %lu fetches", completed,
            lost, direct);
}
