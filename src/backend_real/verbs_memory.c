/* Registered memory; see verbs_memory.h. */
#define G_LOG_DOMAIN "transport"

#include "backend_real/verbs_memory.h"

#include <errno.h>
#include <sys/resource.h>

#include "core/error.h"

#define THREADS_MAX 8
#define PROGRESS_US 1000000 /* between two lines about how far it is */

struct verbs_memory {
  struct ibv_mr **chunk;
  uint32_t chunks;
  uint64_t chunk_bytes;
  struct memory of;
  const struct verbs_device *device;
};

/* What the threads share while they register. */
struct registering {
  struct verbs_memory *memory;
  GMutex lock;
  GCond changed;
  uint32_t next, done, threads;
  int error; /* errno of the first that failed */
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

static gpointer register_chunks(gpointer data)
{
  struct registering *r = data;
  g_mutex_lock(&r->lock);
  while (!r->error && r->next < r->memory->chunks) {
    uint32_t i = r->next++;
    g_mutex_unlock(&r->lock);
    r->memory->chunk[i] = register_chunk(r->memory, i);
    int error = r->memory->chunk[i] ? 0 : errno ? errno : ENOMEM;
    g_mutex_lock(&r->lock);
    if (error && !r->error)
      r->error = error;
    r->done += !error;
    g_cond_signal(&r->changed);
  }
  r->threads--;
  g_cond_signal(&r->changed);
  g_mutex_unlock(&r->lock);
  return NULL;
}

/* --- all of them
 * ---------------------------------------------------------------------------------------------------*/

/* Until all threads are through; a line a second about it. */
static void wait_and_tell(struct registering *r)
{
  const struct verbs_memory *m = r->memory;
  gint64 tell = g_get_monotonic_time() + PROGRESS_US;
  g_mutex_lock(&r->lock);
  while (r->threads > 0) {
    if (g_cond_wait_until(&r->changed, &r->lock, tell))
      continue;
    g_message("%s: %.3f of %.3f GB of memory are registered", m->device->name,
              (double)MIN(r->done * m->chunk_bytes, m->of.bytes) / 1e9, (double)m->of.bytes / 1e9);
    tell += PROGRESS_US;
  }
  g_mutex_unlock(&r->lock);
}

static int register_all(struct verbs_memory *m)
{
  struct registering r = {.memory = m};
  GThread *thread[THREADS_MAX];
  uint32_t threads = MIN(MIN(m->chunks, THREADS_MAX), g_get_num_processors());
  g_mutex_init(&r.lock);
  g_cond_init(&r.changed);
  r.threads = threads;
  for (uint32_t i = 0; i < threads; i++)
    thread[i] = g_thread_new("verbs-register", register_chunks, &r);
  wait_and_tell(&r);
  for (uint32_t i = 0; i < threads; i++)
    g_thread_join(thread[i]);
  g_mutex_clear(&r.lock);
  g_cond_clear(&r.changed);
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
