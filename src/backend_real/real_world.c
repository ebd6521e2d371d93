/* The real world's clock, timers, mail, memory; see real_world.h. Operations: real_op.c. */
#include "backend_real/real_world_internal.h"

#include <stdarg.h>
#include "core/error.h"

static struct real_world *real(struct world *world)
{
  return (struct real_world *)world;
}

void real_world_fail(struct real_world *rw, const char *format, ...)
{
  va_list arguments;
  if (rw->error)
    return;
  va_start(arguments, format);
  rw->error = g_error_new_valist(DM_ERROR, DM_ERROR_FAILED, format, arguments);
  va_end(arguments);
  g_warning("%s", rw->error->message);
}

void real_record(struct real_world *rw, struct record record)
{
  if (ACTOR_KIND(rw->is.self) == ACTOR_GPU_SERVER) {
    uint32_t server = ACTOR_INDEX(rw->is.self);
    record.server = server;
    if (record.gpu != NO_INDEX)
      record.gpu += rw->is.config->server[server].first_gpu;
  }
  if (record.time_ns == 0)
    record.time_ns = loop_now(rw->is.loop);
  rw->is.record(rw->is.context, &record);
}

/* --- the seam
 * -------------------------------------------------------------------------------------------------------*/

static int64_t seam_now(struct world *world)
{
  return loop_now(real(world)->is.loop);
}

static void timer_due(void *context, uint64_t tag)
{
  struct real_world *rw = context;
  rw->actor_ops->timer(rw->actor, tag);
}

static timer_id seam_timer(struct world *world, int64_t delay_ns, uint64_t tag)
{
  struct real_world *rw = real(world);
  return loop_timer(rw->is.loop, loop_now(rw->is.loop) + max_i64(0, delay_ns), timer_due, rw, tag);
}

static void seam_timer_cancel(struct world *world, timer_id timer)
{
  loop_timer_cancel(real(world)->is.loop, timer);
}

static void seam_send(struct world *world, actor_id to, const struct message *message)
{
  struct real_world *rw = real(world);
  rw->is.send(rw->is.context, to, message);
}

static op_id seam_fetch(struct world *world, const struct fetch_spec *spec)
{
  return real_fetch(real(world), spec);
}

static op_id seam_copy(struct world *world, const struct copy_spec *spec)
{
  return real_copy(real(world), spec);
}

static op_id seam_compute(struct world *world, const struct compute_spec *spec)
{
  return real_compute(real(world), spec);
}

static void seam_cancel(struct world *world, op_id id)
{
  struct real_world *rw = real(world);
  struct op *fetch = op_find(rw, id, OP_FETCH), *compute = op_find(rw, id, OP_COMPUTE);
  if (fetch)
    real_fetch_cancel(rw, (struct fetch_op *)fetch);
  else if (compute)
    real_compute_cancel(rw, (struct compute_op *)compute);
}

static void seam_record(struct world *world, const struct record *record)
{
  struct record copy = *record;
  copy.time_ns = 0;
  real_record(real(world), copy);
}

static void seam_fill(struct world *world, uint32_t model, uint64_t offset, uint64_t bytes, uint32_t gpu,
                      const struct ranges *place)
{
  real_fill(real(world), model, offset, bytes, gpu, place);
}

static void seam_serve(struct world *world, uint32_t model, uint64_t offset, uint64_t bytes,
                       const struct ranges *place)
{
  struct real_world *rw = real(world);
  rw->transport->shelf_serve(rw->shelf, model, offset, bytes, place);
  const char *failure = rw->transport->shelf_failure ? rw->transport->shelf_failure(rw->shelf) : NULL;
  if (failure)
    real_world_fail(rw, "memory server %u cannot serve its shards: %s", ACTOR_INDEX(rw->is.self), failure);
}

static const struct world_ops seam_ops = {WORLD_FUNCTIONS(seam), .capabilities = REAL_CAPABILITIES};

/* --- birth and death
 * ------------------------------------------------------------------------------------------------*/

struct real_world *real_world_new(const struct real_world_config *config)
{
  struct real_world *rw = g_new0(struct real_world, 1);
  rw->world = (struct world){.ops = &seam_ops, .records = config->record != NULL};
  rw->is = *config;
  ops_init(rw);
  rw->reads = g_ptr_array_new_with_free_func(g_free);
  rw->free_read = NO_INDEX;
  return rw;
}

void real_world_close(struct real_world *rw)
{
  rw->closed = TRUE;
  for (uint32_t i = 0; i < rw->computes.all->len; i++)
    ((struct compute_op *)g_ptr_array_index(rw->computes.all, i))->stop = TRUE;
  for (uint32_t g = 0; g < rw->gpus; g++)
    real_pageable_close(&rw->gpu[g]);
  if (rw->reader)
    rw->transport->reader_free(rw->reader);
  ssd_reader_free(g_steal_pointer(&rw->ssd));
  if (rw->device)
    rw->device_ops->close(rw->device);
  rw->reader = NULL;
  rw->device = NULL;
  loop_read_notes(rw->is.loop);
  loop_forget(rw->is.loop, rw);
}

void real_world_free(struct real_world *rw)
{
  if (!rw)
    return;
  if (!rw->closed)
    real_world_close(rw);
  for (uint32_t g = 0; g < rw->gpus; g++) {
    g_array_unref(rw->gpu[g].lanes);
    g_array_unref(rw->gpu[g].streams);
  }
  g_free(rw->gpu);
  ops_free(rw);
  g_ptr_array_unref(rw->reads);
  g_clear_error(&rw->error);
  g_free(rw);
}

struct world *real_world_seam(struct real_world *rw)
{
  return &rw->world;
}

void real_world_set_actor(struct real_world *rw, const struct actor_ops *ops, void *actor)
{
  rw->actor_ops = ops;
  rw->actor = actor;
}

void real_world_set_memory(struct real_world *rw, const struct host_memory *memory,
                           const struct images *images)
{
  rw->memory = memory;
  rw->images = images;
}

void real_world_set_shelf(struct real_world *rw, const struct transport_ops *transport, struct shelf *shelf)
{
  rw->transport = transport;
  rw->shelf = shelf;
}

static void post(void *context, uint32_t server, const void *letter, size_t size)
{
  const struct real_world *rw = context;
  rw->is.post(rw->is.context, server, letter, size);
}

/* [gpus] memories that reads may land in; NULL: none. FALSE: they cannot. */
static gboolean gpu_memories(struct real_world *rw, struct memory **memories, GError **error)
{
  *memories = NULL;
  if (!rw->device || !rw->is.config->gpudirect)
    return TRUE;
  *memories = g_new0(struct memory, rw->gpus);
  for (uint32_t g = 0; g < rw->gpus; g++)
    if (!rw->device_ops->gpu_memory(rw->device, g, &(*memories)[g], error)) {
      g_prefix_error(error, "pipeline.path = gpudirect: ");
      return FALSE;
    }
  return TRUE;
}

/* All GPUs of a server share its arena. The NICs near to one GPU are right for a server that has one; of a
 * larger one, each NIC of the route is near to some GPU. */
static struct memory host_arena(const struct real_world *rw)
{
  return (struct memory){.base = rw->memory->base,
                         .bytes = rw->memory->bytes,
                         .pci = rw->gpus == 1 ? rw->device_ops->pci(rw->device, 0) : NULL};
}

gboolean real_world_open_reader(struct real_world *rw, const struct transport_ops *transport,
                                const struct transport_options *options, GError **error)
{
  g_autofree struct memory *gpus = NULL;
  if (!gpu_memories(rw, &gpus, error))
    return FALSE;
  struct reader_config config = {.memory = host_arena(rw),
                                 .gpu_memory = gpus,
                                 .gpus = gpus ? rw->gpus : 0,
                                 .self = rw->is.self,
                                 .options = *options,
                                 .ended = real_fetch_ended,
                                 .post = rw->is.post ? post : NULL,
                                 .context = rw};
  rw->transport = transport;
  rw->reader = transport->reader_new(&config, error);
  if (!rw->reader && gpus)
    g_prefix_error(error, "pipeline.path = gpudirect: ");
  return rw->reader != NULL;
}

gboolean real_world_open_device(struct real_world *rw, const struct device_ops *device, uint32_t gpus,
                                uint32_t first_gpu, gboolean share, uint64_t gpu_bytes, GError **error)
{
  struct device_config config = {.gpus = gpus,
                                 .first_gpu = first_gpu,
                                 .share = share,
                                 .gpu_bytes = gpu_bytes,
                                 .pageable = rw->is.config->system->needs & WORLD_PAGEABLE,
                                 .host = rw->memory->base,
                                 .host_bytes = rw->memory->bytes,
                                 .ended = real_gpu_ended,
                                 .context = rw};
  rw->device_ops = device;
  rw->device = device->open(&config, error);
  if (!rw->device)
    return FALSE;
  rw->gpus = gpus;
  rw->gpu = g_new0(struct real_gpu, gpus);
  for (uint32_t g = 0; g < gpus; g++) {
    rw->gpu[g].lanes = g_array_new(FALSE, FALSE, sizeof(struct lane));
    rw->gpu[g].streams = g_array_new(FALSE, FALSE, sizeof(struct lane));
  }
  return TRUE;
}

void real_world_open_ssd(struct real_world *rw, const struct ssd_store *store)
{
  rw->ssd_store = store;
  rw->ssd = ssd_reader_new(rw->memory->base, real_fetch_ended, rw);
}

struct device *real_world_device(struct real_world *rw)
{
  return rw->device;
}

void real_world_peer(struct real_world *rw, uint32_t server, const char *address,
                     const struct ticket_secret *secret)
{
  rw->peers |= 1ULL << server;
  rw->transport->reader_peer(rw->reader, server, address, secret);
}

void real_world_letter(struct real_world *rw, uint32_t server, const uint8_t *letter, size_t size)
{
  if (rw->reader && rw->transport->reader_letter)
    rw->transport->reader_letter(rw->reader, server, letter, size);
}

void real_world_drop_peer(struct real_world *rw, uint32_t server)
{
  if (!(rw->peers >> server & 1))
    return;
  rw->peers &= ~(1ULL << server);
  rw->opening[server]++;
  rw->transport->reader_drop(rw->reader, server);
}

const GError *real_world_error(const struct real_world *rw)
{
  return rw->error;
}

void real_world_usage(const struct real_world *rw, struct real_usage *usage)
{
  *usage = rw->usage;
  usage->net_bytes = rw->reader ? rw->transport->reader_bytes(rw->reader) : 0;
  usage->ssd_bytes = rw->ssd ? ssd_reader_bytes(rw->ssd) : 0;
}

void real_world_reader_state(const struct real_world *rw, struct transport_state *state)
{
  *state = (struct transport_state){0};
  if (rw->reader && rw->transport->reader_state)
    rw->transport->reader_state(rw->reader, state);
}
