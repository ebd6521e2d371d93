/* The GPU server's side of a server process: pinned arena, reader, device. */
#include "backend_real/server.h"
#include "core/error.h"
#include "core/gpu_server.h"

/* The files' headers hold checksums, so all of them are computed first. */
static gboolean open_ssd(struct server *s, GError **error)
{
  const struct config *config = &s->setup->config;
  if (!(config->system->needs & WORLD_SSD))
    return TRUE;
  if (!s->options->ssd_folder)
    return input_error(error, NULL, 0,
                       "system %s loads from a local SSD: expected --ssd-folder FOLDER of this server",
                       config->system->name);
  if (!images_prepare(s->images, error))
    return FALSE;
  s->ssd = ssd_store_open(s->options->ssd_folder, config, s->options->index, s->images, error);
  if (s->ssd)
    real_world_open_ssd(s->rw, s->ssd);
  return s->ssd != NULL;
}

static gboolean open_parts(struct server *s, GError **error)
{
  const struct config *config = &s->setup->config;
  uint32_t index = s->options->index, gpus = config->server[index].gpus;
  s->device = device_by_name(s->spec.device, error);
  if (!s->device || !open_ssd(s, error) ||
      !real_world_open_device(s->rw, s->device, gpus, s->options->first_gpu, s->spec.share_gpus,
                              gpu_server_gpu_bytes(config, index), error) ||
      !real_world_open_reader(s->rw, s->transport, &s->transport_options, error))
    return FALSE;
  s->actor = gpu_server_new(config, index, s->seam);
  return TRUE;
}

static void actor_free(void *actor)
{
  gpu_server_free(actor);
}

static void usage(const struct server *s, struct usage *u)
{
  struct gpu_server_usage of_actor;
  struct real_usage of_world;
  gpu_server_usage(s->actor, &of_actor);
  real_world_usage(s->rw, &of_world);
  for (uint32_t i = 0; i < LOAD_SOURCES; i++)
    u->loads[i] = of_actor.loads[i];
  u->process_starts = of_actor.process_starts;
  u->evictions = of_actor.evictions;
  u->training_steps = of_actor.training_steps;
  u->gpu_held_ns = of_actor.held_ns;
  int64_t there = (s->left ? s->left : loop_now(s->loop)) - s->went;
  u->gpu_there_ns = s->going ? (double)there * s->setup->config.server[s->options->index].gpus : 0;
  u->host_bytes = of_actor.host_bytes;
  u->gpu_inference_ns = of_world.gpu_inference_ns;
  u->gpu_training_ns = of_world.gpu_training_ns;
  u->gpu_any_ns = of_world.gpu_inference_ns + of_world.gpu_training_ns; /* one at a time */
  u->net_bytes = of_world.net_bytes;
  u->pcie_bytes = of_world.pcie_bytes;
}

/* "2 x A, 1 x B": neighbours of one name together. */
static char *describe_gpus(const struct server *s)
{
  const struct device *device = real_world_device(s->rw);
  GString *text = g_string_new(NULL);
  for (uint32_t gpus = s->setup->config.server[s->options->index].gpus, from = 0, to; from < gpus;
       from = to) {
    const char *name = s->device->describe(device, from);
    for (to = from + 1; to < gpus && g_str_equal(s->device->describe(device, to), name);)
      to++;
    g_string_append_printf(text, "%s%u x %s", from > 0 ? ", " : "", to - from, name);
  }
  return g_string_free(text, FALSE);
}

static char *describe(const struct server *s)
{
  g_autofree char *gpus = describe_gpus(s);
  return g_strdup_printf("gpu-server %u: device %s, %s; transport %s%s; arena of %.3f GB in %s%s%s",
                         s->options->index, s->device->name, gpus, s->transport->name,
                         s->setup->config.gpudirect ? " into GPU memory" : "", (double)s->memory.bytes / 1e9,
                         s->memory.pages, s->ssd ? "; " : "", s->ssd ? ssd_store_text(s->ssd) : "");
}

const struct server_kind server_kind_gpu = {.name = "gpu-server",
                                            .memory_bytes = gpu_server_host_bytes,
                                            .touch = TRUE,
                                            .open = open_parts,
                                            .actor_free = actor_free,
                                            .actor = &gpu_server_actor,
                                            .usage = usage,
                                            .describe = describe};
