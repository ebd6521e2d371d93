/* The memory server in a scripted world: what it fills and serves at the start, and how it follows changes of
 * the plan, be they sensible or not. */
#include <criterion/criterion.h>

#include "memory_script.h"

/* Bytes of the model that a server holds under the plan: from its definition, byte by byte. */
static void wanted(const struct script *s, uint64_t members, uint32_t model, gboolean in[IMAGE_MAX])
{
  struct pool_plan *plan = pool_plan_new(s->plans, s->config.sharding, 0, members);
  const struct model *m = catalog_model(s->catalog, model);
  const struct placement *placement =
      plan->placement[m->profile * plan->rotations + m->variant % plan->rotations];
  memset(in, 0, IMAGE_MAX * sizeof *in);
  for (uint32_t i = 0; i < placement->extents; i++)
    for (uint32_t copy = 0; copy < s->config.replicas && copy < plan->slots; copy++)
      if (pool_plan_server(plan, placement->extent[i].slot, copy) == ME)
        for (uint64_t b = 0; b < placement->extent[i].length; b++)
          in[placement->extent[i].offset + b] = TRUE;
  pool_plan_free(plan);
}

/* Serves all of the plan; `only`: and no more than what shares an ARENA_ALIGN with it on both sides. */
static void expect_serves(const struct script *s, uint64_t members, gboolean only)
{
  g_autofree gboolean *in = g_new(gboolean, IMAGE_MAX);
  for (uint32_t m = 0; m < MODELS; m++) {
    uint64_t more = 0, most = 0, lacking = 0;
    wanted(s, members, m, in);
    for (uint64_t b = 0; b < catalog_bytes(s->catalog, m); b++) {
      lacking += s->served[m][b] > 1 || (in[b] && s->served[m][b] == 0);
      more = only && !in[b] && s->served[m][b] ? more + 1 : 0;
      most = MAX(most, more);
    }
    cr_assert_eq(lacking, 0, "%lu bytes of model %u are not served, or twice", lacking, m);
    cr_assert_lt(most, ARENA_ALIGN, "%lu bytes of model %u are served still", most, m);
  }
}

Test(memory_server, fills_and_serves_its_shards_at_the_start)
{
  for (int sharding = SHARDING_PER_APP; sharding <= SHARDING_HYBRID; sharding++)
    for (uint32_t servers = 2; servers <= SERVERS; servers++)
      for (uint32_t replicas = 1; replicas <= servers; replicas++) {
        struct script *s = script_new((enum sharding_kind)sharding, servers, replicas, BYTES_PER_GB);
        g_autofree gboolean *in = g_new(gboolean, IMAGE_MAX);
        uint64_t bytes = 0;
        for (uint32_t m = 0; m < MODELS; m++) {
          wanted(s, (1ULL << servers) - 1, m, in);
          uint64_t wrong = 0;
          for (uint64_t b = 0; b < IMAGE_MAX; b++) {
            wrong += s->filled[m][b] != in[b] || s->served[m][b] != in[b];
            bytes += (uint64_t)in[b];
          }
          cr_assert_eq(wrong, 0);
        }
        cr_assert_eq(memory_server_peak(s->server), bytes);
        cr_assert_geq(memory_server_bytes(&s->config, ME), bytes);
        script_free(s);
      }
}

static void tell_place(struct script *s, uint32_t version, uint64_t members, uint64_t present, uint64_t from)
{
  struct message m = {.type = MESSAGE_PLACE,
                      .place = {.version = version, .members = members, .present = present, .from = from}};
  if (s->fetching->len == 0 && !s->timer && members != 0 && present != 0) {
    s->present = present;
    s->from = from;
    s->last_model = 0;
  }
  memory_server_actor.message(s->server, ACTOR(ACTOR_CONTROLLER, 0), &m);
}

static void tell_drop(struct script *s, uint32_t version)
{
  struct message m = {.type = MESSAGE_DROP, .drop = {.version = version}};
  memory_server_actor.message(s->server, ACTOR(ACTOR_CONTROLLER, 0), &m);
}

static const struct message_placed *last_placed(const struct script *s)
{
  return &g_array_index(s->placed, struct message_placed, s->placed->len - 1);
}

Test(memory_server, follows_a_change_and_lets_the_old_go)
{
  for (int sharding = SHARDING_PER_APP; sharding <= SHARDING_HYBRID; sharding++)
    for (uint64_t members = 2; members < 1ULL << SERVERS; members++) {
      struct script *s = script_new((enum sharding_kind)sharding, 3, 2, BYTES_PER_GB);
      if (!(members >> ME & 1))
        members++;
      tell_place(s, 7, members, 7, 7);
      expect_serves(s, 7, FALSE);
      while (s->fetching->len > 0) {
        cr_assert_eq(s->placed->len, 0);
        script_end(s, (guint)(members % s->fetching->len), OP_DONE);
      }
      cr_assert(s->placed->len == 1 && last_placed(s)->result == PLACED_DONE && last_placed(s)->version == 7);
      expect_serves(s, 7, FALSE);
      tell_drop(s, 6); /* of another change */
      expect_serves(s, 7, FALSE);
      expect_serves(s, members, FALSE);
      tell_drop(s, 7);
      expect_serves(s, members, TRUE);
      script_free(s);
    }
}

Test(memory_server, refuses_masks_of_nobody_and_what_does_not_fit)
{
  struct script *s = script_new(SHARDING_HYBRID, 3, 1, 200000);
  const uint64_t bad[][2] = {{0, 7}, {7, 0}, {1ULL << SERVERS | 3, 7}, {3, UINT64_MAX}, {UINT64_MAX, 7}};
  for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
    tell_place(s, (uint32_t)i, bad[i][0], bad[i][1], UINT64_MAX);
    cr_assert(s->placed->len == i + 1 && last_placed(s)->result == PLACED_NO_ROOM &&
              last_placed(s)->version == i);
  }
  tell_place(s, 10, 2, 7, 7); /* all on this one server: 256500 bytes */
  cr_assert(last_placed(s)->result == PLACED_NO_ROOM && last_placed(s)->version == 10);
  cr_assert_eq(s->fetching->len, 0);
  expect_serves(s, 7, TRUE);
  cr_assert_leq(memory_server_peak(s->server), 200000);
  script_free(s);
}

/* What nobody has is read from its source, a part at a time, beside fetches of the rest. */
Test(memory_server, reads_from_the_source_what_nobody_has)
{
  for (int sharding = SHARDING_PER_APP; sharding <= SHARDING_HYBRID; sharding++)
    for (uint64_t from = 0; from < 1ULL << SERVERS; from++) {
      struct script *s = script_new((enum sharding_kind)sharding, 3, 1, BYTES_PER_GB);
      tell_place(s, 7, 18, 13, from & 13);
      while (s->fetching->len > 0 || s->timer) {
        cr_assert_eq(s->placed->len, 0);
        if (!script_tick(s) || s->fetching->len > 4)
          script_end(s, 0, OP_DONE);
      }
      cr_assert(s->placed->len == 1 && last_placed(s)->result == PLACED_DONE);
      expect_serves(s, 18, FALSE);
      script_free(s);
    }
}

/* Given up while it reads: the newer change is followed, or the failure is told, once. */
Test(memory_server, gives_up_reading_from_the_source)
{
  struct script *s = script_new(SHARDING_HYBRID, 3, 1, BYTES_PER_GB);
  tell_place(s, 7, 2, 7, 2);
  cr_assert(s->timer && s->fetching->len == 0);
  script_tick(s);
  memory_server_actor.peer_lost(s->server, ACTOR(ACTOR_MEMORY_SERVER, 0));
  while (script_tick(s))
    ;
  cr_assert(s->placed->len == 1 && last_placed(s)->result == PLACED_GIVEN_UP);
  tell_place(s, 8, 2, 7, 2);
  script_tick(s);
  tell_place(s, 9, 6, 7, 2);
  while (script_tick(s))
    ;
  cr_assert(s->placed->len == 2 && last_placed(s)->result == PLACED_DONE && last_placed(s)->version == 9);
  expect_serves(s, 6, FALSE);
  tell_drop(s, 9);
  expect_serves(s, 6, TRUE);
  script_free(s);
}

/* A change that makes sense; what is under way for an older one is given up and ends first. Now and then some
 * holders do not answer. */
static void change(struct script *s, GRand *rand, uint32_t version, uint64_t members, uint64_t present)
{
  gboolean idle = s->fetching->len == 0 && !s->timer;
  uint64_t from = g_rand_int(rand) % 3 ? present : present & g_rand_int(rand);
  tell_place(s, version, members, present, from);
  if (idle)
    return;
  for (guint i = 0; i < s->fetching->len; i++)
    cr_assert(g_array_index(s->fetching, struct fetching, i).cancelled);
  while (s->fetching->len > 1 || (s->fetching->len > 0 && s->timer))
    script_end(s, 0, OP_CANCELLED);
  s->present = present;
  s->from = from;
  s->last_model = 0;
  if (!script_tick(s))
    script_end(s, 0, g_rand_boolean(rand) ? OP_CANCELLED : OP_DONE);
}

/* Anything in any order: it answers every change that nothing newer replaced once, and the shards of the plan
 * that it holds are served throughout. */
static void wander(guint32 seed)
{
  g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
  struct script *s = script_new((enum sharding_kind)(seed % 4), 3, 1 + seed % 2, BYTES_PER_GB);
  uint64_t limit = seed % 3 ? BYTES_PER_GB : memory_server_peak(s->server) + 30000;
  s->config.memory_hardware.host_memory_bytes = limit;
  uint64_t holds = 7, next = 0;
  uint32_t version = 1, done = 0; /* done: all of it was here */
  for (int step = 0; step < 200; step++) {
    int what = g_rand_int_range(rand, 0, 20);
    guint answers = s->placed->len;
    if (what == 0) {
      uint64_t members = (uint64_t)g_rand_int_range(rand, 0, 40),
               present =
                   (uint64_t)g_rand_int_range(rand, 0, 4) ? holds : (uint64_t)g_rand_int_range(rand, 0, 32);
      if (members == 0 || members >= 32 || present == 0) {
        tell_place(s, 1000, members, present, present);
        cr_assert(s->placed->len == answers + 1 && last_placed(s)->result == PLACED_NO_ROOM);
      } else {
        change(s, rand, ++version, members, present);
        next = members;
      }
    } else if (what == 1) {
      tell_drop(s, version);
      if (done == version)
        holds = next;
    } else if (what == 2) {
      memory_server_actor.peer_lost(s->server, ACTOR(ACTOR_MEMORY_SERVER, 0));
    } else if (s->timer && g_rand_boolean(rand)) {
      script_tick(s);
    } else if (s->fetching->len > 0) {
      guint i = (guint)g_rand_int_range(rand, 0, (int)s->fetching->len);
      gboolean fails = g_array_index(s->fetching, struct fetching, i).cancelled || what == 3;
      script_end(s, i, fails ? OP_FAILED : OP_DONE);
    }
    cr_assert_leq(s->placed->len, answers + 1);
    if (s->placed->len > answers && last_placed(s)->result == PLACED_DONE) {
      done = last_placed(s)->version;
      cr_assert_eq(done, version);
      expect_serves(s, next, FALSE);
    }
    expect_serves(s, holds, FALSE);
    cr_assert_leq(memory_server_peak(s->server), limit);
  }
  script_free(s);
}

Test(memory_server, keeps_its_plan_whatever_comes)
{
  for (guint32 seed = 1; seed <= 30; seed++)
    wander(seed);
}
