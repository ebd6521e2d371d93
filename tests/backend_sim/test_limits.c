/* No limit is ever exceeded: at every record of random runs, whoever looks into the GPU servers finds
 * memories, caches and GPUs within what they may hold. */
#include "small_world.h"

#include <criterion/criterion.h>

#include "backend_sim/sim_internal.h"
#include "core/balancer.h"
#include "core/gpu_server_internal.h"

#define MB 1000000ULL

struct watch {
  struct small_world *w;
  uint64_t records, full; /* full: GPU memories met without room for the smallest model */
  uint64_t smallest;
  int run;
};

static void look_at_gpu(struct watch *watch, const struct gpu_server *s, const struct gpu *gpu)
{
  const struct config *config = &watch->w->config;
  uint32_t most = config_models_max(config, s->hw);
  uint64_t used = tier_used(gpu->memory), may = config_gpu_bytes(config, s->hw);
  cr_assert(used <= may && tier_capacity(gpu->memory) == may, "run %d: %lu bytes on a GPU of %lu", watch->run,
            used, may);
  cr_assert(most == 0 || tier_count(gpu->memory) <= most, "run %d: %u models on a GPU", watch->run,
            tier_count(gpu->memory));
  cr_assert(gpu->running <= config_concurrency(config, s->hw), "run %d: %u at once", watch->run,
            gpu->running);
  watch->full += may - used < watch->smallest;
}

static void look(void *context, const struct record *record)
{
  struct watch *watch = context;
  const struct config *config = &watch->w->config;
  (void)record;
  watch->records++;
  for (uint32_t i = 0; i < config->servers_at_start && watch->w->sim; i++) {
    const struct gpu_server *s = watch->w->sim->server[i].actor;
    for (uint32_t g = 0; g < s->gpus; g++)
      look_at_gpu(watch, s, &s->gpu[g]);
    cr_assert(!s->host || tier_used(s->host) <= config->host_cache_bytes, "run %d: cache", watch->run);
  }
}

static void add_models(struct watch *watch, GRand *rand)
{
  static const double compute[] = {900000, 2000000, 400000};
  for (int i = 0; i < 3; i++) {
    uint64_t bytes[3], sum = 0;
    for (int k = 0; k < 3; k++)
      sum += bytes[k] = (uint64_t)g_rand_int_range(rand, 0, 40) * MB + 1;
    watch->smallest = MIN(watch->smallest, sum);
    small_world_model(watch->w, 3, bytes, compute, 4);
  }
}

static void draw(struct watch *watch, GRand *rand)
{
  struct small_world *w = watch->w;
  struct config *config = &w->config;
  w->servers = (uint32_t)g_rand_int_range(rand, 1, 4);
  w->gpus_per_server = (uint32_t)g_rand_int_range(rand, 1, 4);
  w->memory_servers = (uint32_t)g_rand_int_range(rand, 1, 5);
  config->gpu_model_bytes = (uint64_t)g_rand_int_range(rand, 220, 600) * MB;
  config->gpu_models_max = (uint32_t)g_rand_int_range(rand, 0, 4);
  config->host_cache_bytes = (uint64_t)g_rand_int_range(rand, 0, 600) * MB;
  config->staging_bytes = 120 * MB + (uint64_t)g_rand_int_range(rand, 0, 200) * MB;
  config->warm = g_rand_boolean(rand);
  config->hardware[0].control_ns = g_rand_int_range(rand, 0, 2) * 30000.0;
  config->hardware[0].mps_process_bytes = 20 * MB;
  config->hardware[0].mps_process_start_ns = 5e6;
  config->hardware[0].mps_max_processes = (uint32_t)g_rand_int_range(rand, 1, 5);
  config->timeout_ns = g_rand_int_range(rand, 0, 3) * 60 * NS_PER_MS;
  add_models(watch, rand);
  if (g_rand_boolean(rand)) {
    config->train_profile = 0;
    config->train_step_ns = 3 * NS_PER_MS;
    config->train_state_bytes = 80 * MB;
    config->train_endless = TRUE;
    config->train_burst = 20;
  }
  int64_t at = NS_PER_S;
  for (int i = 0; i < 150; i++, at += g_rand_int_range(rand, 0, 12 * NS_PER_MS))
    small_world_request(w, at, (uint32_t)g_rand_int_range(rand, 0, 12));
}

Test(limits, nothing_is_ever_over_them)
{
  static const char *const bounded[] = {"distmind", "pipeswitch", "mps", "ray", "serverlessllm"};
  uint64_t full = 0;
  for (int run = 0; run < 100; run++) {
    GRand *rand = g_rand_new_with_seed((guint32)run);
    struct watch watch = {.w = small_world_new(bounded[run % 5]), .smallest = UINT64_MAX, .run = run};
    watch.w->options = (struct sim_options){.record = look, .record_context = &watch};
    draw(&watch, rand);
    small_world_run(watch.w, 100 * NS_PER_S);
    for (uint32_t i = 0; i < watch.w->requests; i++)
      cr_assert_eq(watch.w->request[i].answers, 1, "run %d: request %u has %u answers", run, i,
                   watch.w->request[i].answers);
    cr_expect_gt(watch.records, 150, "run %d: %lu records", run, watch.records);
    full += watch.full;
    small_world_free(watch.w);
    g_rand_free(rand);
  }
  cr_expect_gt(full, 1000, "memory was full %lu times only", full);
}
