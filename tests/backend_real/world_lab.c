/* A GPU server's world in a test; see world_lab.h. */
#include "world_lab.h"

#include <criterion/criterion.h>
#include <string.h>

#include "backend_real/transport_tcp.h"

#define LAYERS     24
#define DEADLINE_S 20
#define IDLE_TICKS 1000 /* 20 us each: the loop asks for more at once, if ever */

/* --- a transport by hand
 * --------------------------------------------------------------------------------------------*/

struct reader *the_reader;
static const struct image *the_image;

static struct reader *hand_new(const struct reader_config *config, GError **error)
{
  (void)error;
  the_reader = g_new0(struct reader, 1);
  the_reader->config = *config;
  the_reader->config.gpu_memory = g_memdup2(config->gpu_memory, config->gpus * sizeof *config->gpu_memory);
  the_reader->asked = g_array_new(FALSE, FALSE, sizeof(struct asked));
  the_reader->first = g_array_new(FALSE, FALSE, sizeof(struct asked));
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
  reader->answers++;
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
  g_array_unref(reader->first);
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

static void hand_read(struct reader *reader, const struct transport_read *what)
{
  uint32_t server = what->server, gpu = what->gpu, bytes = what->bytes;
  uint64_t to = what->to;
  struct asked asked = {
      .server = server, .bytes = bytes, .gpu = gpu, .offset = what->offset, .to = to, .tag = what->tag};
  cr_assert_eq(gpu, reader->config.gpus > 0 ? 0 : NO_INDEX);
  cr_assert_eq(what->party, gpu, "not that of the GPU that it is for");
  cr_assert(!(reader->dropped >> server & 1), "a read from a server that was dropped");
  cr_assert_leq(to + bytes, memory_of(reader, gpu)->bytes);
  for (guint i = 0; i < reader->asked->len; i++) {
    const struct asked *other = &g_array_index(reader->asked, struct asked, i);
    cr_assert(to >= other->to + other->bytes || other->to >= to + bytes, "two reads to one place");
  }
  g_array_append_val(reader->asked, asked);
  if (reader->answers == 0)
    g_array_append_val(reader->first, asked);
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

static void on_completion(void *actor, const struct completion *completion)
{
  struct world_lab *lab = actor;
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
  struct world_lab *lab = actor;
  cr_assert_eq(ACTOR_KIND(peer), ACTOR_MEMORY_SERVER);
  lab->lost++;
}

static const struct actor_ops actor = {.completion = on_completion, .peer_lost = on_peer_lost};

static gboolean is_good(struct world_lab *lab, guint index)
{
  const struct asked *asked = &g_array_index(the_reader->asked, struct asked, index);
  if (lab->tried)
    return !g_hash_table_add(lab->tried, GSIZE_TO_POINTER(asked->offset + 1));
  return !lab->fails || g_rand_int(lab->rand) % 6 != 0;
}

/* Now and then one read is answered, any of those asked for. */
static void tick(void *context, uint64_t tag)
{
  struct world_lab *lab = context;
  (void)tag;
  cr_assert_lt(loop_now(lab->loop), lab->deadline, "%u operations never end", lab->wait);
  if (!lab->is.tcp && the_reader->asked->len > 0) {
    guint index = g_rand_int(lab->rand) % the_reader->asked->len;
    answer(the_reader, index, is_good(lab, index));
    lab->idle = 0;
  } else if (lab->copies_nothing && ++lab->idle == IDLE_TICKS) {
    loop_quit(lab->loop);
  }
  loop_timer(lab->loop, loop_now(lab->loop) + 20000, tick, lab, 0);
}

static void draw_model(struct world_lab *lab)
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
static void draw_memory(struct world_lab *lab)
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

/* Each serves the whole model, from one memory. */
static void shelves_open(struct world_lab *lab)
{
  uint64_t bytes = catalog_bytes(lab->catalog, 0);
  struct range range = {.length = bytes};
  struct ranges place = {.range = &range, .count = 1};
  lab->pool = g_malloc(bytes);
  image_read(the_image, 0, bytes, lab->pool);
  for (uint32_t s = 0; s < SERVERS; s++) {
    struct shelf_config config = {.memory = {lab->pool, bytes}, .address = "127.0.0.1:0", .index = s};
    struct ticket_secret secret;
    cr_assert(ticket_secret_random(&secret, NULL));
    lab->shelf[s] = transport_tcp.shelf_new(&config, NULL);
    cr_assert(lab->shelf[s]);
    transport_tcp.shelf_admit(lab->shelf[s], ACTOR(ACTOR_GPU_SERVER, 0), &secret);
    transport_tcp.shelf_serve(lab->shelf[s], 0, 0, bytes, &place);
    real_world_peer(lab->rw, s, transport_tcp.shelf_address(lab->shelf[s]), &secret);
  }
}

void world_lab_open(struct world_lab *lab, uint32_t seed, const struct world_lab_options *options)
{
  g_autoptr(GError) error = NULL;
  struct ticket_secret secret = {{0}};
  memset(lab, 0, sizeof *lab);
  lab->is = *options;
  lab->rand = g_rand_new_with_seed(seed);
  lab->loop = loop_new();
  draw_model(lab);
  draw_memory(lab);
  lab->server = (struct server_config){.gpus = 1};
  lab->config = (struct config){.gpudirect = options->direct,
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
  struct transport_options transport = {0};
  cr_assert(real_world_open_device(lab->rw,
                                   options->device ? options->device : device_by_name("host", &error), 1, 0,
                                   TRUE, catalog_bytes(lab->catalog, 0) + 4096, &error));
  cr_assert(real_world_open_reader(lab->rw, options->tcp ? &transport_tcp : &hand, &transport, &error));
  if (options->tcp)
    shelves_open(lab);
  for (uint32_t s = 0; !options->tcp && s < SERVERS; s++)
    real_world_peer(lab->rw, s, "", &secret);
}

void world_lab_close(struct world_lab *lab)
{
  real_world_free(lab->rw);
  ssd_store_free(lab->store);
  for (uint32_t s = 0; lab->is.tcp && s < SERVERS; s++)
    transport_tcp.shelf_free(lab->shelf[s]);
  g_free(lab->pool);
  loop_free(lab->loop);
  images_free(lab->images);
  host_memory_unmap(&lab->memory);
  fetch_plan_free(lab->plan);
  placement_free(lab->placement);
  grouping_free(lab->grouping);
  catalog_free(lab->catalog);
  g_rand_free(lab->rand);
}

void world_lab_load(struct world_lab *lab)
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
                             .gpu = lab->is.direct ? 0 : NO_INDEX,
                             .tag = TAG_FETCH};
  if (lab->is.direct) {
    fetch.device = &gpu;
    fetch.host = NULL;
    fetch.window_bytes = fetch.ring_bytes = 0;
  }
  lab->wait = lab->copies_nothing ? 1 : 1 + (lab->is.direct ? 1 : 2) * lab->plan->groups;
  lab->fetch = world->ops->fetch(world, &fetch);
  lab->window = fetch.window_bytes;
  for (uint32_t g = 0; g < lab->plan->groups && !lab->copies_nothing; g++) {
    struct copy_spec copy = {.lane = 3,
                             .group = g,
                             .offset = lab->plan->group_offset[g],
                             .bytes = lab->plan->group_bytes[g],
                             .host = &host,
                             .ring_bytes = lab->ring,
                             .device = &gpu,
                             .after_fetch = lab->fetch,
                             .tag = TAG_COPY + g};
    op_id copied = lab->is.direct ? 0 : world->ops->copy(world, &copy);
    struct compute_spec compute = {.group = g,
                                   .offset = copy.offset,
                                   .bytes = copy.bytes,
                                   .device = &gpu,
                                   .compute_ns = 1000,
                                   .loaded = TRUE,
                                   .after = copied,
                                   .after_fetch = lab->is.direct ? lab->fetch : 0,
                                   .tag = TAG_COMPUTE + g};
    world->ops->compute(world, &compute);
  }
  lab->deadline = loop_now(lab->loop) + DEADLINE_S * NS_PER_S;
  loop_timer(lab->loop, loop_now(lab->loop), tick, lab, 0);
  loop_run(lab->loop);
  loop_forget(lab->loop, lab);
}

void world_lab_cancel(void *context, uint64_t tag)
{
  struct world_lab *lab = context;
  struct world *world = real_world_seam(lab->rw);
  (void)tag;
  world->ops->cancel(world, lab->fetch);
}
