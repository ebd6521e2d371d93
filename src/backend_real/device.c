/* The registry of devices, and what the kinds share; see device.h. */
#include "backend_real/device_kinds.h"

#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "core/error.h"
#include "core/units.h"
#include "harness/nearest.h"

const struct device_ops *const *devices(void)
{
  static const struct device_ops *const all[] = {&device_cuda, &device_host, NULL};
  return all;
}

static const struct device_ops *first_usable(void)
{
  const struct device_ops *const *device = devices();
  while (*device && (*device)->missing())
    device++;
  return *device;
}

/* Names that may be asked for. */
static const char **device_names(void)
{
  GPtrArray *names = g_ptr_array_new();
  g_ptr_array_add(names, (gpointer) "auto");
  for (const struct device_ops *const *device = devices(); *device; device++)
    g_ptr_array_add(names, (gpointer)(*device)->name);
  g_ptr_array_add(names, NULL);
  return (const char **)g_ptr_array_free(names, FALSE);
}

gboolean device_name_check(const char *name, GError **error)
{
  g_autofree const char **names = device_names();
  if (g_strv_contains(names, name))
    return TRUE;
  g_autofree char *list = g_strjoinv(", ", (char **)names);
  const char *nearest = nearest_word(name, names);
  return input_error(error, NULL, 0, "unknown device \"%s\"%s%s%s, expected one of %s", name,
                     nearest ? ", nearest is \"" : "", nearest ? nearest : "", nearest ? "\"" : "", list);
}

const struct device_ops *device_by_name(const char *name, GError **error)
{
  if (strcmp(name, "auto") == 0)
    return first_usable();
  for (const struct device_ops *const *device = devices(); *device; device++) {
    if (strcmp(name, (*device)->name) != 0)
      continue;
    const char *why = (*device)->missing();
    if (!why)
      return *device;
    input_error(error, NULL, 0, "device %s cannot be used here: %s", name, why);
    return NULL;
  }
  device_name_check(name, error);
  return NULL;
}

static gboolean within(uint64_t offset, uint64_t bytes, uint64_t size)
{
  return offset <= size && bytes <= size - offset;
}

gboolean device_copy_fits(const struct device_config *config, const struct device_copy *copy)
{
  gboolean fits = copy->gpu < config->gpus && copy->pieces <= DEVICE_PIECES;
  for (uint32_t i = 0; fits && i < copy->pieces; i++) {
    const struct device_piece *piece = &copy->piece[i];
    fits = within(piece->host, piece->bytes, config->host_bytes) &&
           within(piece->device, piece->bytes, config->gpu_bytes);
  }
  return fits;
}

gboolean device_compute_fits(const struct device_config *config, const struct device_compute *compute)
{
  gboolean fits =
      compute->gpu < config->gpus && compute->stream < DEVICE_STREAMS && compute->pieces <= DEVICE_PIECES;
  for (uint32_t i = 0; fits && i < compute->pieces; i++)
    fits = within(compute->piece[i].device, compute->piece[i].bytes, config->gpu_bytes);
  return fits;
}

gboolean device_fill_fits(const struct device_config *config, uint32_t gpu, uint64_t offset, uint64_t bytes,
                          GError **error)
{
  if (gpu < config->gpus && within(offset, bytes, config->gpu_bytes))
    return TRUE;
  g_set_error(error, DM_ERROR, DM_ERROR_FAILED,
              "GPU %u: %" G_GUINT64_FORMAT " bytes at %" G_GUINT64_FORMAT
              " lie outside its %" G_GUINT64_FORMAT " bytes",
              gpu, bytes, offset, config->gpu_bytes);
  return FALSE;
}

uint64_t device_compute_bytes(const struct device_compute *compute)
{
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < compute->pieces; i++)
    bytes += compute->piece[i].bytes;
  return bytes;
}

int64_t device_now(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

void device_exact_timers(void)
{
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
}
