/* The processor standing in for GPUs: real copies and real checksums, and computing that is waiting.
 *
 * A GPU is a memory, one thread that copies, in the order of issue, and one thread for each compute stream
 * that is used. A compute waits until the copy that it names is done, then starts. */
#include "backend_real/device_kinds.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "backend_real/checksum.h"
#include "backend_real/task_queue.h"
#include "backend_real/transport.h"
#include "core/error.h"
#include "core/units.h"

/* How often a compute that may be stopped looks whether it is. */
#define STOP_LOOK_NS (100 * NS_PER_US)

#define LANES_MAX (1 + DEVICE_STREAMS) /* the copies, then the streams */

struct lane {
  struct host_gpu *gpu;
  pthread_t thread;
  gboolean running;
  struct task_queue queue;
  pthread_cond_t filled;
  uint64_t sum; /* of a compute so far whose other part is to come; and when it began, 0 = none did */
  int64_t start_ns;
};

struct host_gpu {
  struct device *device;
  uint8_t *memory;
  pthread_mutex_t lock; /* over all of it but the memory, and each lane's sum and start */
  pthread_cond_t copied;
  gboolean closing;
  uint64_t issued, done; /* tokens: copies issued, copies done */
  struct lane lane[LANES_MAX];
};

struct device {
  struct device_config config;
  char *description;
  uint64_t memory;
  struct host_gpu *gpu;
};

static const char *host_missing(void)
{
  return NULL;
}

static void tell(const struct device *device, uint64_t tag, enum device_status status, int64_t start_ns)
{
  if (tag)
    device->config.ended(device->config.context, tag, status, start_ns, device_now());
}

static void run_copy(struct host_gpu *gpu, const struct task *task)
{
  const struct device_copy *copy = &task->copy;
  int64_t start_ns = device_now();
  uint8_t *host = gpu->device->config.host;
  for (uint32_t i = 0; !task->refused && i < copy->pieces; i++) {
    const struct device_piece *piece = &copy->piece[i];
    if (copy->to_host)
      memcpy(host + piece->host, gpu->memory + piece->device, piece->bytes);
    else
      memcpy(gpu->memory + piece->device, host + piece->host, piece->bytes);
  }
  pthread_mutex_lock(&gpu->lock);
  gpu->done++;
  pthread_cond_broadcast(&gpu->copied);
  pthread_mutex_unlock(&gpu->lock);
  tell(gpu->device, task->tag, task->refused ? DEVICE_FAILED : DEVICE_DONE, start_ns);
}

static gboolean is_stopped(const struct device_compute *compute)
{
  return compute->stop && __atomic_load_n(compute->stop, __ATOMIC_ACQUIRE);
}

/* TRUE: it was stopped before that. */
static gboolean wait_until(const struct device_compute *compute, int64_t end_ns)
{
  for (int64_t now = device_now(); now < end_ns && !is_stopped(compute); now = device_now()) {
    int64_t until = compute->stop ? MIN(end_ns, now + STOP_LOOK_NS) : end_ns;
    struct timespec at = {.tv_sec = until / NS_PER_S, .tv_nsec = until % NS_PER_S};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
      continue;
  }
  return is_stopped(compute);
}

static void await_copy(struct host_gpu *gpu, uint64_t token)
{
  pthread_mutex_lock(&gpu->lock);
  while (gpu->done < token)
    pthread_cond_wait(&gpu->copied, &gpu->lock);
  pthread_mutex_unlock(&gpu->lock);
}

static void run_compute(struct lane *lane, const struct task *task)
{
  struct host_gpu *gpu = lane->gpu;
  const struct device_compute *compute = &task->compute;
  if (task->refused) {
    tell(gpu->device, task->tag, DEVICE_FAILED, device_now());
    return;
  }
  await_copy(gpu, compute->after);
  if (!lane->start_ns)
    lane->start_ns = device_now();
  for (uint32_t i = 0; i < compute->pieces; i++) {
    const struct device_range *piece = &compute->piece[i];
    lane->sum += checksum(gpu->memory + piece->device, piece->offset, piece->bytes);
  }
  if (compute->more)
    return;
  uint64_t sum = lane->sum;
  int64_t start_ns = lane->start_ns;
  lane->sum = 0;
  lane->start_ns = 0;
  int64_t end_ns = compute->compute_ns > 0 ? start_ns + compute->compute_ns : start_ns;
  gboolean stopped = wait_until(compute, end_ns);
  tell(gpu->device, task->tag,
       sum != compute->checksum ? DEVICE_WRONG_BYTES
       : stopped                ? DEVICE_STOPPED
                                : DEVICE_DONE,
       start_ns);
}

static void *lane_main(void *context)
{
  struct lane *lane = context;
  struct host_gpu *gpu = lane->gpu;
  gboolean copies = lane == &gpu->lane[0];
  device_exact_timers();
  for (;;) {
    struct task task;
    pthread_mutex_lock(&gpu->lock);
    while (lane->queue.count == 0 && !gpu->closing)
      pthread_cond_wait(&lane->filled, &gpu->lock);
    gboolean some = task_queue_pop(&lane->queue, &task);
    pthread_mutex_unlock(&gpu->lock);
    if (!some)
      return NULL;
    if (copies)
      run_copy(gpu, &task);
    else
      run_compute(lane, &task);
  }
}

/* The lane's thread starts with its first work. */
static void lane_start(struct lane *lane, const char *what, unsigned number)
{
  char name[16]; /* as long as Linux takes it */
  g_snprintf(name, sizeof name, "%s %u", what, number);
  int failed = pthread_create(&lane->thread, NULL, lane_main, lane);
  if (failed)
    g_error("cannot start a thread: %s", g_strerror(failed));
  pthread_setname_np(lane->thread, name);
  lane->running = TRUE;
}

/* Room for a task at the end of a lane, which is then told; the GPU is locked. */
static struct task *lane_push(struct lane *lane)
{
  struct task *task = task_queue_push(&lane->queue);
  pthread_cond_signal(&lane->filled);
  return task;
}

/* Where work goes whose GPU or stream is not there, so that its end comes from another thread. */
static struct lane *lane_or_first(struct device *device, uint32_t gpu, uint32_t lane)
{
  return gpu < device->config.gpus && lane < LANES_MAX ? &device->gpu[gpu].lane[lane]
                                                       : &device->gpu[0].lane[0];
}

static uint64_t host_copy(struct device *device, const struct device_copy *copy)
{
  struct lane *lane = lane_or_first(device, copy->gpu, 0);
  struct host_gpu *gpu = lane->gpu;
  pthread_mutex_lock(&gpu->lock);
  struct task *task = lane_push(lane);
  /* The copies run in the order of issue, so whatever `after` names is done first. */
  task->refused = !device_copy_fits(&device->config, copy) || copy->after > gpu->issued;
  task->tag = copy->tag;
  task->copy = *copy;
  uint64_t token = ++gpu->issued;
  pthread_mutex_unlock(&gpu->lock);
  return token;
}

static void host_compute(struct device *device, const struct device_compute *compute)
{
  gboolean fits = device_compute_fits(&device->config, compute);
  struct lane *lane = lane_or_first(device, compute->gpu, fits ? 1 + compute->stream : 0);
  struct host_gpu *gpu = lane->gpu;
  pthread_mutex_lock(&gpu->lock);
  struct task *task = lane_push(lane);
  task->refused = !fits || compute->after > gpu->issued;
  task->tag = compute->tag;
  if (lane == &gpu->lane[0])
    gpu->issued++; /* a refused compute among the copies */
  else
    task->compute = *compute;
  if (!lane->running)
    lane_start(lane, "compute", (unsigned)(lane - gpu->lane) - 1);
  pthread_mutex_unlock(&gpu->lock);
}

static gboolean host_fill(struct device *device, uint32_t gpu, uint64_t offset, const void *from,
                          uint64_t bytes, GError **error)
{
  if (!device_fill_fits(&device->config, gpu, offset, bytes, error))
    return FALSE;
  memcpy(device->gpu[gpu].memory + offset, from, bytes);
  return TRUE;
}

static gboolean host_move(struct device *device, uint32_t gpu, gboolean to_host, void *host, uint64_t on_gpu,
                          uint64_t bytes)
{
  uint8_t *at_gpu = device->gpu[gpu].memory + on_gpu;
  memcpy(to_host ? host : at_gpu, to_host ? at_gpu : host, bytes);
  return TRUE;
}

static const char *host_describe(const struct device *device, uint32_t gpu)
{
  (void)gpu;
  return device->description;
}

static uint64_t host_memory(const struct device *device, uint32_t gpu)
{
  (void)gpu;
  return device->memory;
}

static const char *host_pci(const struct device *device, uint32_t gpu)
{
  (void)device;
  (void)gpu;
  return NULL;
}

static gboolean host_gpu_memory(struct device *device, uint32_t gpu, struct memory *memory, GError **error)
{
  (void)error;
  *memory = (struct memory){.base = device->gpu[gpu].memory, .bytes = device->config.gpu_bytes, .dmabuf = -1};
  return TRUE;
}

/* --- opening and closing --- */

static void gpu_close(struct host_gpu *gpu)
{
  pthread_mutex_lock(&gpu->lock);
  gpu->closing = TRUE;
  for (unsigned i = 0; i < LANES_MAX; i++)
    pthread_cond_signal(&gpu->lane[i].filled);
  pthread_mutex_unlock(&gpu->lock);
  for (unsigned i = 0; i < LANES_MAX; i++) {
    struct lane *lane = &gpu->lane[i];
    if (lane->running)
      pthread_join(lane->thread, NULL);
    task_queue_clear(&lane->queue);
    pthread_cond_destroy(&lane->filled);
  }
  pthread_cond_destroy(&gpu->copied);
  pthread_mutex_destroy(&gpu->lock);
  munmap(gpu->memory, gpu->device->config.gpu_bytes);
}

static void host_close(struct device *device)
{
  for (uint32_t i = 0; i < device->config.gpus; i++)
    if (device->gpu[i].memory)
      gpu_close(&device->gpu[i]);
  g_free(device->gpu);
  g_free(device->description);
  g_free(device);
}

static gboolean gpu_open(struct device *device, uint32_t index, GError **error)
{
  struct host_gpu *gpu = &device->gpu[index];
  uint64_t bytes = device->config.gpu_bytes;
  void *memory =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    g_set_error(error, DM_ERROR, DM_ERROR_FAILED,
                "host device: no memory for GPU %u (%" G_GUINT64_FORMAT " bytes): %s", index, bytes,
                g_strerror(errno));
    return FALSE;
  }
  madvise(memory, bytes, MADV_HUGEPAGE);
  gpu->device = device;
  gpu->memory = memory;
  pthread_mutex_init(&gpu->lock, NULL);
  pthread_cond_init(&gpu->copied, NULL);
  for (unsigned i = 0; i < LANES_MAX; i++) {
    gpu->lane[i].gpu = gpu;
    pthread_cond_init(&gpu->lane[i].filled, NULL);
  }
  lane_start(&gpu->lane[0], "copy", index);
  return TRUE;
}

static unsigned processors(void)
{
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    return (unsigned)CPU_COUNT(&set);
  return (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
}

static struct device *host_open(const struct device_config *config, GError **error)
{
  if (config->gpus == 0 || config->gpu_bytes == 0) {
    input_error(error, NULL, 0, "host device: expected at least one GPU with memory");
    return NULL;
  }
  struct device *device = g_new0(struct device, 1);
  unsigned count = processors();
  device->config = *config;
  device->description = g_strdup_printf("host: %u processor%s", count, count == 1 ? "" : "s");
  device->memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
  device->gpu = g_new0(struct host_gpu, config->gpus);
  for (uint32_t i = 0; i < config->gpus; i++)
    if (!gpu_open(device, i, error)) {
      host_close(device);
      return NULL;
    }
  return device;
}

const struct device_ops device_host = {
    .name = "host",
    .missing = host_missing,
    .open = host_open,
    .close = host_close,
    .describe = host_describe,
    .memory = host_memory,
    .pci = host_pci,
    .gpu_memory = host_gpu_memory,
    .fill = host_fill,
    .move = host_move,
    .copy = host_copy,
    .compute = host_compute,
};
