/* Registered memory; see verbs_memory.h. */
#define G_LOG_DOMAIN "transport"

#include "backend_real/verbs_memory.h"

#include <errno.h>
#include <sys/resource.h>

#include "backend_real/verbs_parallel.h"
#include "core/error.h"

struct verbs_memory {
  struct ibv_mr **chunk;
  uint32_t chunks;
  uint64_t chunk_bytes;
  struct memory of;
  const struct verbs_device *device;
};

struct registering {
  struct verbs_memory *memory;
  int error; /* errno of the first that failed; atomic */
};

/* --- one chunk
 * -----------------------------------------------------------------------------------------------------*/

static uint64_t chunk_size(const struct verbs_memory *m, uint32_t i)
{
  return MIN(m->chunk_bytes, m->of.bytes - i * m->chunk_bytes);
}

static struct ibv_mr *register_chunk(const struct verbs_memory *m, uint32_t i)
{
  uint64_t at = i * m->chunk_bytes, bytes = chunk_size(m, i);
  if (m->of.base)
    return ibv_reg_mr(m->device->pd, m->of.base + at, bytes, IBV_ACCESS_LOCAL_WRITE);
  return ibv_reg_dmabuf_mr(m->device->pd, m->of.dmabuf_offset + at, bytes, at, m->of.dmabuf,
                           IBV_ACCESS_LOCAL_WRITE);
}

static gboolean register_step(void *context, uint32_t i)
{
  struct registering *r = context;
  r->memory->chunk[i] = register_chunk(r->memory, i);
  if (r->memory->chunk[i])
    return TRUE;
  g_atomic_int_compare_and_exchange(&r->error, 0, errno ? errno : ENOMEM);
  return FALSE;
}

/* 0, or errno. */
static int register_all(struct verbs_memory *m)
{
  g_autofree char *what = g_strdup_printf("%s: memory is registered", m->device->name);
  struct registering r = {.memory = m};
  verbs_parallel(&(struct verbs_steps){.what = what,
                                       .steps = m->chunks,
                                       .bytes = m->of.bytes,
                                       .bytes_step = m->chunk_bytes,
                                       .step = register_step,
                                       .context = &r});
  return r.error;
}

/* --- what is said when it fails
 * ------------------------------------------------------------------------------------*/

static gboolean set_error(const struct verbs_device *device, const struct memory *memory, int number,
                          GError **error)
{
  struct rlimit limit = {0};
  double gb = (double)memory->bytes / 1e9;
  if (!memory->base) {
    g_set_error(
        error, DM_ERROR, DM_ERROR_FAILED,
        "%s cannot register %.3f GB of GPU memory by dma-buf: %s: this driver and kernel cannot; the path "
        "over host memory can be used instead",
        device->name, gb, g_strerror(number));
  } else if ((number == ENOMEM || number == EPERM) && getrlimit(RLIMIT_MEMLOCK, &limit) == 0 &&
             limit.rlim_cur != RLIM_INFINITY) {
    g_set_error(
        error, DM_ERROR, DM_ERROR_FAILED,
        "%s cannot register %.3f GB of memory: the limit of locked memory is %.3f GB, and each device of "
        "each "
        "end counts against it: raise it (ulimit -l unlimited; of a systemd unit, LimitMEMLOCK=infinity)",
        device->name, gb, (double)limit.rlim_cur / 1e9);
  } else {
    g_set_error(error, DM_ERROR, DM_ERROR_FAILED,
                "%s cannot register %.3f GB of memory: %s (the device takes %u regions of at most %.3g GB)",
                device->name, gb, g_strerror(number), device->nic.regions_max,
                (double)device->nic.region_max / 1e9);
  }
  return FALSE;
}

/* --- the memory
 * ----------------------------------------------------------------------------------------------------*/

static uint64_t chunk_bytes(const struct nic *nic)
{
  if (nic->region_max == 0 || nic->region_max >= VERBS_CHUNK_BYTES)
    return VERBS_CHUNK_BYTES;
  return MAX(nic->region_max / READ_BYTES_MAX, 1) * READ_BYTES_MAX;
}

struct verbs_memory *verbs_memory_new(const struct verbs_device *device, const struct memory *memory,
                                      GError **error)
{
  struct verbs_memory *m = g_new0(struct verbs_memory, 1);
  gint64 start = g_get_monotonic_time();
  m->device = device;
  m->of = *memory;
  m->chunk_bytes = chunk_bytes(&device->nic);
  m->chunks = (uint32_t)((memory->bytes + m->chunk_bytes - 1) / m->chunk_bytes);
  m->chunk = g_new0(struct ibv_mr *, m->chunks);
  int number = register_all(m);
  if (number) {
    set_error(device, memory, number, error);
    verbs_memory_free(m);
    return NULL;
  }
  g_info("%s: registered %.3f GB of memory in %.3f s", device->name, (double)memory->bytes / 1e9,
         (double)(g_get_monotonic_time() - start) / 1e6);
  return m;
}

void verbs_memory_free(struct verbs_memory *m)
{
  if (!m)
    return;
  for (uint32_t i = 0; i < m->chunks; i++)
    if (m->chunk[i] && ibv_dereg_mr(m->chunk[i]) != 0)
      g_critical("%s: registered memory is still in use", m->device->name);
  g_free(m->chunk);
  g_free(m);
}

uint32_t verbs_memory_pieces(const struct verbs_memory *m, uint64_t at, uint32_t bytes,
                             struct ibv_sge piece[VERBS_SGES])
{
  uint64_t i = at / m->chunk_bytes;
  uint32_t here = (uint32_t)MIN(bytes, (i + 1) * m->chunk_bytes - at);
  uint64_t address = (uint64_t)(uintptr_t)m->of.base + at;
  piece[0] = (struct ibv_sge){address, here, m->chunk[i]->lkey};
  if (here == bytes)
    return 1;
  piece[1] = (struct ibv_sge){address + here, bytes - here, m->chunk[i + 1]->lkey};
  return 2;
}

struct ibv_mr *verbs_memory_expose(const struct verbs_device *device, uint8_t *base, uint64_t bytes,
                                   GError **error)
{
  /* Pinned for reading alone, a page that was never written would be the kernel's shared page of zeros, and
   * what is written later would lie elsewhere. The key that peers get is for reading all the same. */
  struct ibv_mr *mr = ibv_reg_mr(device->pd, base, bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
  if (!mr)
    set_error(device, &(struct memory){base, bytes}, errno, error);
  return mr;
}
