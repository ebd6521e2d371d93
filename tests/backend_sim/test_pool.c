/* The memory pool changes while loads run: every byte that crosses the network is worked by hand. */
#include "small_world.h"

#include <criterion/criterion.h>
#include <math.h>

#define MB 1000000ULL
#define AT NS_PER_S

/* Loads only: no cache, one model a GPU, whole models of 48 MB over two memory servers of 4 GB/s each. */
static struct small_world *pool_new(uint32_t variants)
{
  static const uint64_t bytes[] = {12 * MB, 12 * MB, 12 * MB, 12 * MB};
  static const double compute[] = {0, 0, 0, 0};
  struct small_world *w = small_world_new("distmind");
  w->grouping = (struct grouping_policy){.kind = GROUPING_PER_LAYER};
  w->memory_servers = 2;
  w->config.gpu_models_max = 1;
  w->config.heartbeat_ns = NS_PER_MS;
  small_world_model(w, 4, bytes, compute, variants);
  return w;
}

static void expect_ms(const struct small_world *w, uint32_t request, double ms)
{
  double found = (double)small_world_latency(w, request);
  cr_expect(w->request[request].answers == 1 && fabs(found - ms * 1e6) <= 2,
            "request %u took %.6f ms, by hand %.6f", request, found / 1e6, ms);
}

static void expect_bytes(struct small_world *w, uint64_t mb, const char *what)
{
  struct usage usage;
  sim_usage(w->sim, &usage);
  cr_expect_eq(usage.net_bytes, mb * MB, "%s: %.6f MB crossed the network, by hand %lu", what,
               (double)usage.net_bytes / 1e6, mb);
}

static void expect_all_completed(const struct small_world *w)
{
  for (uint32_t i = 0; i < w->requests; i++)
    cr_expect(w->request[i].answers == 1 && w->request[i].answer.outcome == OUTCOME_COMPLETED,
              "request %u: %u answers, outcome %u", i, w->request[i].answers, w->request[i].answer.outcome);
}

/* --- a server joins, another leaves
 * ---------------------------------------------------------------------------------------------------------*/

/* Of a group of b bytes the first server holds [0, b/2), the second the rest. With a third it is thirds: the
 * second lacks [b/3, b/2), the third [2b/3, b): b/2 in all. When then the first leaves it is halves again, of
 * the other two: the second lacks [0, b/3), the third [b/2, 2b/3): b/2 in all. Models that nobody asks for
 * move too. */
Test(pool, joining_and_leaving_moves_half_of_every_model_each_time)
{
  struct small_world *w = pool_new(2);
  w->memory_servers_later = 1;
  for (uint32_t i = 0; i < 40;
       i++) /* 6 ms of network and 1.5 of PCIe each: one after the other, almost without a gap */
    small_world_request(w, AT + 8 * i * NS_PER_MS, i % 2);
  small_world_until(w, AT + 83 * NS_PER_MS); /* in the midst of the eleventh load */
  sim_add_memory_server(w->sim, 2);
  small_world_until(w, AT + 203 * NS_PER_MS);
  sim_remove(w->sim, ACTOR_MEMORY_SERVER, 0);
  small_world_run(w, TIME_NEVER);
  expect_all_completed(w);
  expect_bytes(w, 40 * 48 + 2 * 24 + 2 * 24, "join and leave");
  struct usage usage;
  sim_usage(w->sim, &usage);
  cr_expect_eq(usage.loads[SOURCE_REMOTE], 40);
  /* Alone before the changes and long after: the rates of two servers again. */
  expect_ms(w, 0, 6 + 1.5);
  expect_ms(w, 9, 6 + 1.5);
  expect_ms(w, 39, 6 + 1.5);
  /* Three servers could send 12 GB/s, the GPU server takes 10: groups come every 1.2 ms, PCIe takes 1.5 for
   * each. */
  expect_ms(w, 24, 1.2 + 4 * 1.5);
  /* At most, of 96 MB: the first a half; the second a half and a sixth, later two thirds; the third a third
   * and a sixth. */
  cr_expect_eq(usage.pool_bytes, (48 + 64 + 48) * MB, "%lu", usage.pool_bytes);
  small_world_free(w);
}

/* A server that left is asked for nothing, and one that is removed before its shards have moved goes on until
 * they have. */
Test(pool, a_removed_server_serves_until_its_shards_have_moved)
{
  struct small_world *w = pool_new(30);
  w->memory_servers_later = 1;
  for (uint32_t i = 0; i < 60; i++)
    small_world_request(w, AT + 8 * i * NS_PER_MS, i % 30);
  small_world_until(w, AT + 3 * NS_PER_MS);
  sim_add_memory_server(w->sim, 2); /* moves 30 x 24 MB: about 0.2 s */
  small_world_until(w, AT + 20 * NS_PER_MS);
  sim_remove(w->sim, ACTOR_MEMORY_SERVER, 0);
  small_world_run(w, TIME_NEVER);
  expect_all_completed(w);
  small_world_until(w, 10 * AT); /* the second move may outlast the load */
  expect_bytes(w, 60 * 48 + 30 * 24 + 30 * 24, "removed at once");
  small_world_free(w);
}

/* --- a server fails under a load
 * ---------------------------------------------------------------------------------------------------------*/

/* Fails 2.2 ms after the load has begun; the last heartbeat was sent at 2.0, so at 6.0 the silence is longer
 * than three beats. By then the first server has sent its 24 MB but for none: 6 ms x 4 GB/s; the second 8.8
 * MB. */
static struct small_world *failing_new(uint32_t replicas)
{
  struct small_world *w = pool_new(1);
  w->config.replicas = replicas;
  w->config.heartbeat_misses = 3;
  small_world_request(w, AT, 0);
  return w;
}

Test(pool, the_other_copy_brings_what_a_failed_server_did_not)
{
  struct small_world *w = failing_new(2);
  small_world_until(w, AT + 2200000);
  sim_fail_memory_server(w->sim, 1);
  small_world_run(w, TIME_NEVER);
  expect_all_completed(w);
  /* Of 12 MB groups in halves, one was here at 1.5 ms; 24 + 8.8 MB had come at 6 ms; the other three groups
   * are read again, all from the first server at 4 GB/s: 9 ms, the last 1.5 ms over PCIe. */
  struct usage usage;
  sim_usage(w->sim, &usage);
  cr_expect_eq(usage.net_bytes, 24000000 + 8800000 + 36 * MB, "%lu", usage.net_bytes);
  cr_expect_eq(usage.pcie_bytes, 48 * MB);
  expect_ms(w, 0, 6 + 9 + 1.5);
  small_world_free(w);
}

Test(pool, without_another_copy_the_request_fails_and_is_counted)
{
  struct small_world *w = failing_new(1);
  uint32_t later = small_world_request(w, AT + 500 * NS_PER_MS, 0);
  small_world_until(w, AT + 2200000);
  sim_fail_memory_server(w->sim, 1);
  small_world_run(w, TIME_NEVER);
  for (uint32_t i = 0; i <= later; i++) {
    cr_expect_eq(w->request[i].answers, 1);
    cr_expect_eq(w->request[i].answer.outcome, OUTCOME_LOST);
  }
  expect_ms(w, 0, 6);
  expect_ms(w, later, 0);
  struct usage usage;
  sim_usage(w->sim, &usage);
  cr_expect_eq(usage.net_bytes, 24000000 + 8800000, "%lu", usage.net_bytes);
  small_world_free(w);
}

/* Many loads under way, on two GPU servers, as one of three memory servers fails: all complete, and what
 * crossed is what was fetched, once, plus what was aborted. */
Test(pool, every_load_survives_a_failed_server)
{
  for (int64_t ms = 0; ms < 12; ms++) {
    struct small_world *w = pool_new(16);
    w->memory_servers = 3;
    w->servers = 2;
    w->gpus_per_server = 3;
    w->config.replicas = 2;
    for (uint32_t i = 0; i < 48; i++)
      small_world_request(w, AT + i / 6 * 10 * NS_PER_MS, i % 16);
    small_world_until(w, AT + ms * 1700000 + 100000);
    sim_fail_memory_server(w->sim, (uint32_t)ms % 3);
    small_world_run(w, TIME_NEVER);
    expect_all_completed(w);
    small_world_until(w, 10 * AT);
    struct usage usage;
    sim_usage(w->sim, &usage);
    /* The plan of two servers and two copies holds everything on both: each lacks a third of every model. */
    uint64_t loads = usage.loads[SOURCE_REMOTE] * 48 * MB, moved = 16 * 2 * 16 * MB;
    cr_expect_geq(usage.net_bytes, loads + moved, "%lu bytes, loads %lu and moves %lu", usage.net_bytes,
                  loads, moved);
    cr_expect_leq(usage.net_bytes, loads + moved + 6 * 48 * MB, "%lu bytes, loads %lu and moves %lu",
                  usage.net_bytes, loads, moved);
    small_world_free(w);
  }
}

/* --- caches that change
 * ---------------------------------------------------------------------------------------------------------*/

/* A size that was set holds for a server that joins later. */
static void check_cache(uint64_t before, uint64_t after, uint64_t host_loads)
{
  struct small_world *w = pool_new(2);
  w->config.host_cache_bytes = before;
  w->config.staging_bytes = 48 * MB;
  w->servers_later = 1;
  for (uint32_t i = 0; i < 6; i++)
    small_world_request(w, 10 * AT * (i + 1), i % 2);
  small_world_until(w, AT);
  sim_set_host_cache(w->sim, after);
  small_world_until(w, 2 * AT);
  sim_add_gpu_server(w->sim, 1);
  small_world_until(w, 3 * AT);
  sim_remove(w->sim, ACTOR_GPU_SERVER, 0);
  small_world_run(w, TIME_NEVER);
  expect_all_completed(w);
  struct usage usage;
  sim_usage(w->sim, &usage);
  cr_expect_eq(usage.loads[SOURCE_HOST], host_loads, "%lu from the host", usage.loads[SOURCE_HOST]);
  cr_expect_eq(usage.loads[SOURCE_REMOTE], 6 - host_loads);
  for (uint32_t i = 0; i < 6; i++)
    cr_expect_eq(w->request[i].answer.gpu, 1);
  cr_expect_eq(usage.host_bytes, 2 * (MAX(before, after) + 48 * MB), "%lu provisioned", usage.host_bytes);
  small_world_free(w);
}

Test(pool, a_cache_size_holds_for_servers_that_join_later)
{
  check_cache(96 * MB, 96 * MB, 4);
  check_cache(96 * MB, 0, 0);
  check_cache(0, 96 * MB, 4);
  check_cache(0, 48 * MB, 0); /* room for one of two that alternate */
}
