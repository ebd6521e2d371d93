/* The real world between an actor and its parts: a transport that the test drives read by read, in any order
 * and with failures, or files of an SSD, and the host device. Whatever comes in whatever order, every
 * operation ends once, bytes are right on the GPU, and no byte in host memory is overwritten before it was
 * copied. */
#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

#include "backend_real/real_world.h"
#include "safetensors_file.h"

#define LAYERS     24
#define SERVERS    4
#define ROUNDS     60
#define DEADLINE_S 20

/* --- a transport by hand
 * --------------------------------------------------------------------------------------------*/

struct asked {
  uint32_t server, bytes, gpu;
  uint64_t offset, to, tag;
};

struct reader {
  struct reader_config config;
  GArray *asked; /* of struct asked, not yet answered */
  uint64_t received;
  uint64_t dropped; /* bits of servers */
};

static struct reader *the_reader; /* one test a process */
static gboolean direct;           /* loads land in GPU memory */
static const struct image *the_image;

static struct reader *hand_new(const struct reader_config *config, GError **error)
{
  (void)error;
  the_reader = g_new0(struct reader, 1);
  the_reader->config = *config;
  the_reader->config.gpu_memory = g_memdup2(config->gpu_memory, config->gpus * sizeof *config->gpu_memory);
  the_reader->asked = g_array_new(FALSE, FALSE, sizeof(struct asked));
  return the_reader;
}

static const struct memory *memory_of(const struct reader *reader, uint32_t gpu)
{
  cr_assert(gpu == NO_INDEX || gpu < reader->config.gpus, "a read into the memory of GPU %u", gpu);
  return gpu == NO_INDEX ? &reader->config.memory : &reader->config.gpu_memory[gpu];
}

/* Answers one read: a good one brings the model's bytes. */
static void answer(struct reader *reader, guint index, gboolean good)
{
  struct asked asked = g_array_index(reader->asked, struct asked, index);
  g_array_remove_index(reader->asked, index);
  if (good)
    image_read(the_image, asked.offset, asked.bytes, memory_of(reader, asked.gpu)->base + asked.to);
  reader->received += good ? asked.bytes : 0;
  reader->config.ended(reader->config.context, asked.tag, good);
}

static void hand_free(struct reader *reader)
{
  while (reader->asked->len > 0)
    answer(reader, 0, FALSE);
  g_array_unref(reader->asked);
  g_free((void *)reader->config.gpu_memory);
  g_free(reader);
}

static void hand_peer(struct reader *reader, uint32_t server, const char *address,
                      const struct ticket_secret *secret)
{
  (void)address;
  (void)secret;
  reader->dropped &= ~(1ULL << server);
}

static void hand_drop(struct reader *reader, uint32_t server)
{
  reader->dropped |= 1ULL << server;
  for (guint i = reader->asked->len; i-- > 0;)
    if (g_array_index(reader->asked, struct asked, i).server == server)
      answer(reader, i, FALSE);
}

static void hand_read(struct reader *reader, uint32_t server, uint32_t model, uint64_t offset, uint32_t gpu,
                      uint64_t to, uint32_t bytes, uint64_t tag)
{
  struct asked asked = {.server = server, .bytes = bytes, .gpu = gpu, .offset = offset, .to = to, .tag = tag};
  (void)model;
  cr_assert_eq(gpu, direct ? 0 : NO_INDEX);
  cr_assert(!(reader->dropped >> server & 1), "a read from a server that was dropped");
  cr_assert_leq(to + bytes, memory_of(reader, gpu)->bytes);
  for (guint i = 0; i < reader->asked->len; i++) {
    const struct asked *other = &g_array_index(reader->asked, struct asked, i);
    cr_assert(to >= other->to + other->bytes || other->to >= to + bytes, "two reads to one place");
  }
  g_array_append_val(reader->asked, asked);
}

static uint64_t hand_bytes(const struct reader *reader)
{
  return reader->received;
}

static const struct transport_ops hand = {.name = "hand",
                                          .reader_new = hand_new,
                                          .reader_free = hand_free,
                                          .reader_peer = hand_peer,
                                          .reader_drop = hand_drop,
                                          .reader_read = hand_read,
                                          .reader_bytes = hand_bytes};

/* --- an actor that loads one model and computes it
 * --------------------------------------------------------------------*/

enum { TAG_FETCH = 1, TAG_COPY = 1000, TAG_COMPUTE = 2000 };

struct lab {
  struct loop *loop;
  struct real_world *rw;
  struct config config;
  struct server_config server;
  struct catalog *catalog;
  struct images *images;
  struct host_memory memory;
  struct grouping *grouping;
  struct placement *placement;
  struct fetch_plan *plan;
  GRand *rand;
  struct ssd_store *store; /* NULL: the model is read from memory servers */
  uint64_t ring;
  struct range host_range, gpu_range;
  op_id fetch;
  guint wait, ended[3000];
  enum op_status status[3000];
  uint32_t landed; /* what the fetch's end told */
  int64_t deadline;
  gboolean fails; /* some reads do; each has a second try */
  guint lost;
};

static void on_completion(void *actor, const struct completion *completion)
{
  struct lab *lab = actor;
  cr_assert_lt(completion->tag, 3000);
  cr_assert_eq(lab->ended[completion->tag]++, 0, "operation %d ended twice", (int)completion->tag);
  lab->status[completion->tag] = completion->status;
  if (completion->tag == TAG_FETCH)
    lab->landed = completion->groups;
  if (--lab->wait == 0)
    loop_quit(lab->loop);
}

static void on_peer_lost(void *actor, actor_id peer)
{
  struct lab *lab = actor;
  cr_assert_eq(ACTOR_KIND(peer), ACTOR_MEMORY_SERVER);
  lab->lost++;
}

static const struct actor_ops actor = {.completion = on_completion, .peer_lost = on_peer_lost};

/* Now and then one read is answered, any of those asked for. */
static void tick(void *context, uint64_t tag)
{
  struct lab *lab = context;
  (void)tag;
  cr_assert_lt(loop_now(lab->loop), lab->deadline, "%u operations never end", lab->wait);
  if (the_reader->asked->len > 0)
    answer(the_reader, g_rand_int(lab->rand) % the_reader->asked->len,
           !lab->fails || g_rand_int(lab->rand) % 6 != 0);
  loop_timer(lab->loop, loop_now(lab->loop) + 20000, tick, lab, 0);
}

static void draw_model(struct lab *lab)
{
  struct profile *profile = profile_new("drawn", LAYERS);
  for (uint32_t l = 0; l < LAYERS; l++) {
    profile->layer_bytes[l] = g_rand_int(lab->rand) % 5 == 0 ? 0 : 1 + g_rand_int(lab->rand) % 3000000;
    profile->timing[0].layer_ns[l] = 1000;
  }
  profile_sum(profile);
  profile_scale(profile, 0, 24000);
  lab->catalog = catalog_new(1);
  catalog_add(lab->catalog, profile, 1);
  struct grouping_policy policy = {.kind = GROUPING_COUNT, .argument = 1 + g_rand_int(lab->rand) % LAYERS};
  struct grouping_policy home = {.kind = GROUPING_COUNT, .argument = 1 + g_rand_int(lab->rand) % LAYERS};
  lab->grouping = grouping_new(profile, 0, &policy, NULL);
  struct grouping *cut = grouping_new(profile, 0, &home, NULL);
  lab->placement = placement_new((enum sharding_kind)(g_rand_int(lab->rand) % 4), cut, SERVERS, 0);
  lab->plan = fetch_plan_new(lab->placement, lab->grouping);
  grouping_free(cut);
}

/* The ring holds the largest group at least, the model at most. */
static void draw_memory(struct lab *lab)
{
  uint64_t largest = 1, bytes = catalog_bytes(lab->catalog, 0);
  g_autoptr(GError) error = NULL;
  for (uint32_t g = 0; g < lab->plan->groups; g++)
    largest = MAX(largest, lab->plan->group_bytes[g]);
  lab->ring =
      g_rand_int(lab->rand) % 3 == 0 ? bytes : largest + g_rand_int(lab->rand) % (bytes - largest + 1);
  cr_assert(host_memory_map(&lab->memory, lab->ring + 4096, TRUE, &error), "%s", error ? error->message : "");
  lab->host_range = (struct range){.offset = 4096, .length = lab->ring};
  lab->gpu_range = (struct range){.offset = 0, .length = bytes};
}

static void lab_open(struct lab *lab, uint32_t seed)
{
  g_autoptr(GError) error = NULL;
  struct ticket_secret secret = {{0}};
  memset(lab, 0, sizeof *lab);
  lab->rand = g_rand_new_with_seed(seed);
  lab->loop = loop_new();
  draw_model(lab);
  draw_memory(lab);
  lab->server = (struct server_config){.gpus = 1};
  lab->config = (struct config){.gpudirect = direct,
                                .catalog = lab->catalog,
                                .server = &lab->server,
                                .servers = 1,
                                .system = system_by_name("distmind")};
  lab->images = images_new(lab->catalog, NULL, &error);
  the_image = images_get(lab->images, 0);
  struct real_world_config config = {
      .loop = lab->loop, .config = &lab->config, .self = ACTOR(ACTOR_GPU_SERVER, 0)};
  lab->rw = real_world_new(&config);
  real_world_set_memory(lab->rw, &lab->memory, lab->images);
  real_world_set_actor(lab->rw, &actor, lab);
  struct transport_options options = {0};
  cr_assert(real_world_open_device(lab->rw, device_by_name("host", &error), 1, 0, TRUE,
                                   catalog_bytes(lab->catalog, 0) + 4096, &error));
  cr_assert(real_world_open_reader(lab->rw, &hand, &options, &error));
  for (uint32_t s = 0; s < SERVERS; s++)
    real_world_peer(lab->rw, s, "", &secret);
}

static void lab_close(struct lab *lab)
{
  real_world_free(lab->rw);
  ssd_store_free(lab->store);
  loop_free(lab->loop);
  images_free(lab->images);
  host_memory_unmap(&lab->memory);
  fetch_plan_free(lab->plan);
  placement_free(lab->placement);
  grouping_free(lab->grouping);
  catalog_free(lab->catalog);
  g_rand_free(lab->rand);
}

/* Queues the whole load ahead, as the core does, and runs until everything has ended. */
static void load(struct lab *lab)
{
  struct world *world = real_world_seam(lab->rw);
  struct ranges host = {.range = &lab->host_range, .count = 1}, gpu = {.range = &lab->gpu_range, .count = 1};
  uint32_t server[SERVERS] = {0, 1, 2, 3}, of_stream[SERVERS];
  for (uint32_t s = 0; s < lab->plan->streams; s++)
    of_stream[s] = server[lab->plan->slot[s]];
  struct fetch_spec fetch = {.source = lab->store ? SOURCE_SSD : SOURCE_REMOTE,
                             .plan = lab->plan,
                             .server = of_stream,
                             .sequential = g_rand_boolean(lab->rand),
                             .window_bytes =
                                 g_rand_boolean(lab->rand) ? 0 : 1 + g_rand_int(lab->rand) % 4000000,
                             .host = &host,
                             .ring_bytes = lab->ring,
                             .tag = TAG_FETCH};
  if (direct) {
    fetch.device = &gpu;
    fetch.host = NULL;
    fetch.window_bytes = fetch.ring_bytes = 0;
  }
  lab->wait = 1 + (direct ? 1 : 2) * lab->plan->groups;
  lab->fetch = world->ops->fetch(world, &fetch);
  for (uint32_t g = 0; g < lab->plan->groups; g++) {
    struct copy_spec copy = {.lane = 3,
                             .group = g,
                             .offset = lab->plan->group_offset[g],
                             .bytes = lab->plan->group_bytes[g],
                             .host = &host,
                             .ring_bytes = lab->ring,
                             .device = &gpu,
                             .after_fetch = lab->fetch,
                             .tag = TAG_COPY + g};
    op_id copied = direct ? 0 : world->ops->copy(world, &copy);
    struct compute_spec compute = {.group = g,
                                   .offset = copy.offset,
                                   .bytes = copy.bytes,
                                   .device = &gpu,
                                   .compute_ns = 1000,
                                   .loaded = TRUE,
                                   .after = copied,
                                   .after_fetch = direct ? lab->fetch : 0,
                                   .tag = TAG_COMPUTE + g};
    world->ops->compute(world, &compute);
  }
  lab->deadline = loop_now(lab->loop) + DEADLINE_S * NS_PER_S;
  loop_timer(lab->loop, loop_now(lab->loop), tick, lab, 0);
  loop_run(lab->loop);
  loop_forget(lab->loop, lab);
}

Test(real_world, loads_bring_the_right_bytes_in_any_order)
{
  for (uint32_t seed = 1; seed <= ROUNDS; seed++) {
    struct lab lab;
    lab_open(&lab, seed);
    load(&lab);
    cr_expect_eq(lab.status[TAG_FETCH], OP_DONE, "seed %u", seed);
    for (uint32_t g = 0; g < lab.plan->groups; g++)
      cr_expect(lab.status[TAG_COPY + g] == OP_DONE && lab.status[TAG_COMPUTE + g] == OP_DONE,
                "seed %u, group %u", seed, g);
    cr_expect_null(real_world_error(lab.rw), "seed %u: a wrong byte", seed);
    lab_close(&lab);
  }
}

Test(real_world, failed_reads_end_everything_once_and_tell_the_peer)
{
  guint failed = 0;
  for (uint32_t seed = 1; seed <= ROUNDS; seed++) {
    struct lab lab;
    lab_open(&lab, seed);
    lab.fails = TRUE;
    load(&lab);
    gboolean whole = lab.status[TAG_FETCH] == OP_DONE;
    failed += !whole;
    cr_expect_eq(lab.lost > 0, !whole, "seed %u", seed);
    for (uint32_t g = 0; g < lab.plan->groups; g++)
      if (whole || lab.status[TAG_COMPUTE + g] == OP_DONE)
        cr_expect_eq(lab.status[TAG_COPY + g], OP_DONE, "seed %u: group %u computed but not copied", seed, g);
    cr_expect_null(real_world_error(lab.rw), "seed %u: a wrong byte", seed);
    lab_close(&lab);
  }
  cr_expect_gt(failed, ROUNDS / 4);
}

static void cancel(void *context, uint64_t tag)
{
  struct lab *lab = context;
  struct world *world = real_world_seam(lab->rw);
  (void)tag;
  world->ops->cancel(world, lab->fetch);
}

Test(real_world, a_cancelled_fetch_ends_when_its_reads_have)
{
  for (uint32_t seed = 1; seed <= ROUNDS; seed++) {
    struct lab lab;
    lab_open(&lab, seed);
    loop_timer(lab.loop, loop_now(lab.loop) + 100000 + g_rand_int(lab.rand) % 500000, cancel, &lab, 0);
    load(&lab);
    cr_expect_neq(lab.status[TAG_FETCH], OP_FAILED, "seed %u", seed);
    cr_expect_eq(the_reader->asked->len, 0, "seed %u: reads are still under way", seed);
    lab_close(&lab);
  }
}

/* --- from the SSD
 * -------------------------------------------------------------------------------------------------------*/

static void lab_open_ssd(struct lab *lab, uint32_t seed, const char *folder)
{
  g_autoptr(GError) error = NULL;
  lab_open(lab, seed);
  fetch_plan_free(lab->plan);
  placement_free(lab->placement);
  lab->placement = placement_new(SHARDING_PER_APP, lab->grouping, 1, 0);
  lab->plan = fetch_plan_new(lab->placement, lab->grouping);
  lab->config.servers_at_start = lab->config.ssd_copies = 1;
  lab->store = ssd_store_open(folder, &lab->config, 0, lab->images, &error);
  cr_assert_not_null(lab->store, "%s", error ? error->message : "");
  real_world_open_ssd(lab->rw, lab->store);
}

#define SSD_ROUNDS 12

Test(real_world, loads_from_the_ssd_bring_the_right_bytes)
{
  g_autoptr(Scratch) folder = scratch_new();
  for (uint32_t seed = 1; seed <= SSD_ROUNDS; seed++) {
    struct lab lab;
    struct real_usage usage;
    lab_open_ssd(&lab, seed, folder);
    load(&lab);
    cr_expect_eq(lab.status[TAG_FETCH], OP_DONE, "seed %u", seed);
    for (uint32_t g = 0; g < lab.plan->groups; g++)
      cr_expect(lab.status[TAG_COPY + g] == OP_DONE && lab.status[TAG_COMPUTE + g] == OP_DONE,
                "seed %u, group %u", seed, g);
    cr_expect_null(real_world_error(lab.rw), "seed %u: a wrong byte", seed);
    real_world_usage(lab.rw, &usage);
    cr_expect_eq(usage.ssd_bytes, lab.plan->total_bytes, "seed %u", seed);
    cr_expect_eq(usage.net_bytes, 0, "seed %u", seed);
    lab_close(&lab);
  }
}

/* The file loses its second half; the fetch is cancelled now and then. */
Test(real_world, loads_from_a_broken_ssd_end_everything_once)
{
  g_autoptr(Scratch) folder = scratch_new();
  g_autofree char *path = g_build_filename(folder, "gpu-server-0", "drawn-0.dmi", NULL);
  for (uint32_t seed = 1; seed <= SSD_ROUNDS; seed++) {
    struct lab lab;
    lab_open_ssd(&lab, seed, folder);
    cr_assert_eq(truncate(path, (off_t)((2 << 20) + catalog_bytes(lab.catalog, 0) / 2)), 0);
    if (seed % 3 == 0)
      loop_timer(lab.loop, loop_now(lab.loop) + 100000, cancel, &lab, 0);
    load(&lab);
    cr_expect_neq(lab.status[TAG_FETCH], OP_DONE, "seed %u", seed);
    cr_expect(seed % 3 == 0 || lab.status[TAG_FETCH] == OP_FAILED, "seed %u", seed);
    cr_expect_neq(lab.status[TAG_COMPUTE + lab.plan->groups - 1], OP_DONE, "seed %u", seed);
    cr_expect_eq(lab.lost, 0, "seed %u: a memory server was blamed", seed);
    cr_expect_null(real_world_error(lab.rw), "seed %u: a wrong byte", seed);
    lab_close(&lab);
  }
}

/* --- straight into GPU memory: no copy, and a computation once its group and those before it are there
 * ---------------------------------------------------------------------------------------------------------*/

Test(real_world, loads_that_land_in_gpu_memory_bring_the_right_bytes_in_any_order)
{
  direct = TRUE;
  for (uint32_t seed = 1; seed <= ROUNDS; seed++) {
    struct lab lab;
    struct real_usage usage;
    lab_open(&lab, seed);
    load(&lab);
    cr_expect(lab.status[TAG_FETCH] == OP_DONE && lab.landed == lab.plan->groups, "seed %u", seed);
    for (uint32_t g = 0; g < lab.plan->groups; g++)
      cr_expect_eq(lab.status[TAG_COMPUTE + g], OP_DONE, "seed %u, group %u", seed, g);
    cr_expect_null(real_world_error(lab.rw), "seed %u: a wrong byte", seed);
    real_world_usage(lab.rw, &usage);
    cr_expect_eq(usage.pcie_bytes, lab.plan->total_bytes, "seed %u", seed);
    lab_close(&lab);
  }
}

/* The groups that are told to be there were computed, and no other was. */
static void expect_landed(const struct lab *lab, uint32_t seed)
{
  gboolean whole = lab->status[TAG_FETCH] == OP_DONE;
  cr_expect_eq(whole, lab->landed == lab->plan->groups, "seed %u", seed);
  for (uint32_t g = 0; g < lab->plan->groups; g++)
    cr_expect_eq(lab->status[TAG_COMPUTE + g], g < lab->landed ? OP_DONE : OP_FAILED,
                 "seed %u: group %u of %u", seed, g, lab->landed);
  cr_expect_null(real_world_error(lab->rw), "seed %u: a wrong byte", seed);
}

Test(real_world, failed_reads_into_gpu_memory_leave_the_groups_before_them)
{
  guint failed = 0, partly = 0;
  direct = TRUE;
  for (uint32_t seed = 1; seed <= ROUNDS; seed++) {
    struct lab lab;
    lab_open(&lab, seed);
    lab.fails = TRUE;
    load(&lab);
    failed += lab.status[TAG_FETCH] != OP_DONE;
    partly += lab.landed > 0 && lab.landed < lab.plan->groups;
    cr_expect_eq(lab.lost > 0, lab.status[TAG_FETCH] != OP_DONE, "seed %u", seed);
    expect_landed(&lab, seed);
    lab_close(&lab);
  }
  cr_expect(failed > ROUNDS / 4 && partly > 3, "%u failed, %u of them in the middle", failed, partly);
}

Test(real_world, a_cancelled_fetch_into_gpu_memory_ends_when_its_reads_have)
{
  direct = TRUE;
  for (uint32_t seed = 1; seed <= ROUNDS; seed++) {
    struct lab lab;
    lab_open(&lab, seed);
    loop_timer(lab.loop, loop_now(lab.loop) + 100000 + g_rand_int(lab.rand) % 500000, cancel, &lab, 0);
    load(&lab);
    cr_expect_neq(lab.status[TAG_FETCH], OP_FAILED, "seed %u", seed);
    cr_expect_eq(the_reader->asked->len, 0, "seed %u: reads are still under way", seed);
    expect_landed(&lab, seed);
    lab_close(&lab);
  }
}
