/* The watcher's thread; see cuda_watch.h. */
#include "backend_real/cuda_watch.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "backend_real/device_kinds.h"
#include "core/units.h"

#define LOOK_NS        (10 * NS_PER_US) /* between looks at copies, and at computes that have not begun */
#define STOP_LOOK_NS   (50 * NS_PER_US) /* between looks at a flag that asks to stop */
#define EARLY_NS       (60 * NS_PER_US) /* a sleep may be that much too long */
#define OVERDUE_NS     NS_PER_MS        /* a compute later than that is looked at now and then */
#define SHORT_SLEEP_NS (100 * NS_PER_US)
#define HEALTH_NS      (10 * NS_PER_MS) /* between looks whether a GPU still works */

struct cuda_watch {
  struct cuda_gpu *gpu;
  struct device_config config;
  pthread_t thread;
  pthread_mutex_t lock; /* over closing and refused */
  pthread_cond_t called;
  gboolean closing;
  GArray *refused;          /* of uint64_t: tags */
  _Atomic uint64_t calls;   /* something was issued or refused */
  _Atomic gboolean waiting; /* for a call */
  int64_t health_ns;        /* when to look next */
};

static void tell(struct cuda_watch *watch, uint64_t tag, enum device_status status, int64_t start_ns,
                 int64_t end_ns)
{
  if (tag)
    watch->config.ended(watch->config.context, tag, status, start_ns, end_ns);
}

/* The lane's first operation is over. */
static void end_first(struct cuda_watch *watch, struct cuda_lane *lane, enum device_status status,
                      int64_t start_ns, int64_t end_ns)
{
  uint64_t tag = lane->operation[cuda_place(lane->ended)].tag;
  lane->last_end_ns = end_ns;
  lane->started_ns = 0;
  atomic_fetch_add(&lane->ended, 1);
  tell(watch, tag, status, start_ns, end_ns);
}

/* The look_ functions tell all ends of a lane that they see and return when to look again: not later than
 * that, now = at once. */

static int64_t look_copies(struct cuda_watch *watch, struct cuda_gpu *gpu, struct cuda_lane *lane,
                           int64_t now)
{
  while (lane->ended < atomic_load(&lane->issued)) {
    cudaError_t status = cudaEventQuery(lane->event[cuda_place(lane->ended)]);
    if (status == cudaErrorNotReady)
      return now + LOOK_NS;
    if (!cuda_gpu_check(gpu, status, "a copy"))
      return now;
    now = device_now();
    const struct cuda_operation *first = &lane->operation[cuda_place(lane->ended)];
    end_first(watch, lane, DEVICE_DONE, MIN(now, MAX(first->issued_ns, lane->last_end_ns)), now);
  }
  return TIME_NEVER;
}

/* When to look at the lane's first compute, which is not over. */
static int64_t look_again(struct cuda_lane *lane, struct cuda_report *report, int64_t now)
{
  const struct cuda_operation *first = &lane->operation[cuda_place(lane->ended)];
  if (!lane->started_ns && __atomic_load_n(&report->started, __ATOMIC_ACQUIRE) == lane->ended + 1)
    lane->started_ns = now;
  if (!lane->started_ns)
    return now + LOOK_NS;
  if (first->stop && __atomic_load_n(first->stop, __ATOMIC_ACQUIRE))
    __atomic_store_n(&report->stop, 1, __ATOMIC_RELEASE);
  int64_t look = lane->started_ns + first->compute_ns - EARLY_NS;
  if (look <= now)
    look = lane->started_ns + first->compute_ns + OVERDUE_NS < now ? now + LOOK_NS : now;
  return first->stop ? MIN(look, now + STOP_LOOK_NS) : look;
}

static int64_t look_computes(struct cuda_watch *watch, struct cuda_lane *lane, int64_t now)
{
  while (lane->ended < atomic_load(&lane->issued)) {
    struct cuda_report *report = &lane->report[cuda_place(lane->ended)];
    if (__atomic_load_n(&report->ended, __ATOMIC_ACQUIRE) != lane->ended + 1)
      return look_again(lane, report, now);
    now = device_now();
    end_first(watch, lane, (enum device_status)report->status, now - (int64_t)report->duration_ns, now);
  }
  return TIME_NEVER;
}

/* Nothing of a broken GPU is running any more: every stream is idle, or answers with the error. */
static gboolean is_quiet(const struct cuda_gpu *gpu)
{
  for (unsigned i = 0; i < CUDA_LANES; i++)
    if (cudaStreamQuery(gpu->lane[i].stream) == cudaErrorNotReady)
      return FALSE;
  return TRUE;
}

/* What lasts until it is stopped is. */
static void stop_all(struct cuda_gpu *gpu)
{
  for (unsigned i = CUDA_COMPUTE; i < CUDA_LANES; i++) {
    struct cuda_lane *lane = &gpu->lane[i];
    for (uint64_t n = lane->ended; n < atomic_load(&lane->issued); n++)
      __atomic_store_n(&lane->report[cuda_place(n)].stop, 1, __ATOMIC_RELEASE);
  }
}

static int64_t give_up(struct cuda_watch *watch, struct cuda_gpu *gpu, int64_t now)
{
  stop_all(gpu);
  if (!is_quiet(gpu))
    return now + LOOK_NS;
  for (unsigned i = 0; i < CUDA_LANES; i++) {
    struct cuda_lane *lane = &gpu->lane[i];
    while (lane->ended < atomic_load(&lane->issued)) {
      int64_t start_ns = MIN(now, lane->operation[cuda_place(lane->ended)].issued_ns);
      end_first(watch, lane, DEVICE_FAILED, start_ns, now);
    }
  }
  return TIME_NEVER;
}

static int64_t look_gpu(struct cuda_watch *watch, struct cuda_gpu *gpu, int64_t now, gboolean health)
{
  if (atomic_load(&gpu->broken))
    return give_up(watch, gpu, now);
  int64_t next = TIME_NEVER;
  for (unsigned i = 0; i < CUDA_LANES; i++) {
    struct cuda_lane *lane = &gpu->lane[i];
    if (lane->ended == atomic_load(&lane->issued))
      continue;
    cudaError_t status = health ? cudaStreamQuery(lane->stream) : cudaSuccess;
    if (status != cudaErrorNotReady && !cuda_gpu_check(gpu, status, "its work"))
      return now;
    int64_t look = i < CUDA_COMPUTE ? look_copies(watch, gpu, lane, now) : look_computes(watch, lane, now);
    next = MIN(next, look);
  }
  return next;
}

static int64_t look_all(struct cuda_watch *watch)
{
  int64_t now = device_now(), next = TIME_NEVER;
  gboolean health = now >= watch->health_ns;
  if (health)
    watch->health_ns = now + HEALTH_NS;
  for (uint32_t i = 0; i < watch->config.gpus; i++)
    next = MIN(next, look_gpu(watch, &watch->gpu[i], now, health));
  return next == TIME_NEVER ? next : MIN(next, watch->health_ns);
}

/* FALSE: closing, and all that was refused has been told. */
static gboolean tell_refused(struct cuda_watch *watch)
{
  for (;;) {
    uint64_t tag = 0;
    pthread_mutex_lock(&watch->lock);
    gboolean some = watch->refused->len > 0, closing = watch->closing;
    if (some) {
      tag = g_array_index(watch->refused, uint64_t, 0);
      g_array_remove_index(watch->refused, 0);
    }
    pthread_mutex_unlock(&watch->lock);
    if (!some)
      return !closing;
    int64_t now = device_now();
    tell(watch, tag, DEVICE_FAILED, now, now);
  }
}

/* Until a call or that time. No call is lost: it is counted before `waiting` is read, here the other way
 * round. */
static void wait_for_call(struct cuda_watch *watch, uint64_t calls, int64_t until_ns)
{
  struct timespec until = {.tv_sec = until_ns / NS_PER_S, .tv_nsec = until_ns % NS_PER_S};
  pthread_mutex_lock(&watch->lock);
  atomic_store(&watch->waiting, TRUE);
  int late = 0;
  while (atomic_load(&watch->calls) == calls && !watch->closing && late != ETIMEDOUT)
    late = until_ns == TIME_NEVER ? pthread_cond_wait(&watch->called, &watch->lock)
                                  : pthread_cond_timedwait(&watch->called, &watch->lock, &until);
  atomic_store(&watch->waiting, FALSE);
  pthread_mutex_unlock(&watch->lock);
}

static void sleep_until(int64_t until_ns)
{
  struct timespec until = {.tv_sec = until_ns / NS_PER_S, .tv_nsec = until_ns % NS_PER_S};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

/* Leaves the core's other thread more of it while this one looks without pause. */
static void pause_briefly(void)
{
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

static void *watch_main(void *context)
{
  struct cuda_watch *watch = context;
  device_exact_timers();
  for (;;) {
    uint64_t calls = atomic_load(&watch->calls);
    gboolean open = tell_refused(watch);
    int64_t next = look_all(watch);
    if (next == TIME_NEVER && !open && atomic_load(&watch->calls) == calls)
      return NULL;
    int64_t now = device_now();
    if (next <= now)
      pause_briefly();
    else if (next - now < SHORT_SLEEP_NS)
      sleep_until(next);
    else
      wait_for_call(watch, calls, next);
  }
}

struct cuda_watch *cuda_watch_new(struct cuda_gpu *gpu, const struct device_config *config)
{
  struct cuda_watch *watch = g_new0(struct cuda_watch, 1);
  watch->gpu = gpu;
  watch->config = *config;
  watch->refused = g_array_new(FALSE, FALSE, sizeof(uint64_t));
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_mutex_init(&watch->lock, NULL);
  pthread_cond_init(&watch->called, &monotonic);
  pthread_condattr_destroy(&monotonic);
  int failed = pthread_create(&watch->thread, NULL, watch_main, watch);
  if (failed)
    g_error("cannot start a thread: %s", g_strerror(failed));
  pthread_setname_np(watch->thread, "gpu watch");
  return watch;
}

void cuda_watch_free(struct cuda_watch *watch)
{
  pthread_mutex_lock(&watch->lock);
  watch->closing = TRUE;
  pthread_cond_signal(&watch->called);
  pthread_mutex_unlock(&watch->lock);
  pthread_join(watch->thread, NULL);
  pthread_cond_destroy(&watch->called);
  pthread_mutex_destroy(&watch->lock);
  g_array_free(watch->refused, TRUE);
  g_free(watch);
}

void cuda_watch_call(struct cuda_watch *watch)
{
  atomic_fetch_add(&watch->calls, 1);
  if (!atomic_load(&watch->waiting))
    return;
  pthread_mutex_lock(&watch->lock);
  pthread_cond_signal(&watch->called);
  pthread_mutex_unlock(&watch->lock);
}

void cuda_watch_refuse(struct cuda_watch *watch, uint64_t tag)
{
  pthread_mutex_lock(&watch->lock);
  g_array_append_val(watch->refused, tag);
  pthread_mutex_unlock(&watch->lock);
  cuda_watch_call(watch);
}
