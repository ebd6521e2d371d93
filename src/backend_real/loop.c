/* The event loop; see loop.h.
 *
 * One source of its own on a GLib main context holds the timers (one timerfd) and the notes (one eventfd);
 * each watch is a source more. All have one priority, so GLib asks the loop's own, which was attached first,
 * before all others: there the clock is read. */
#include "backend_real/loop.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "backend_real/interrupt.h"
#include "backend_real/timer_heap.h"
#include "core/units.h"

struct flush {
  void (*call)(void *context);
  void *context;
};

struct loop {
  GMainContext *context;
  GSource *source; /* struct own_source */
  struct timer_heap *timers;
  int timer_fd, note_fd, signal_fd; /* signal_fd: -1 = none */
  struct watch *signals;
  void (*signal_came)(void *context);
  void *signal_context;
  gpointer timer_tag, note_tag; /* of the two in the source */
  int64_t armed;                /* when timer_fd will be readable; INT64_MAX = never */
  int64_t now;
  gboolean running, quit;
  GArray *flushes;              /* of struct flush */
  _Atomic(struct note *) notes; /* the last that was posted first */
};

struct own_source {
  GSource source;
  struct loop *loop;
};

struct watch {
  GSource source;
  gpointer tag; /* of its descriptor */
  gboolean (*ready)(void *context);
  void (*call)(void *context);
  void *context;
};

int64_t loop_clock(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

/* --- timers and notes
 * ---------------------------------------------------------------------------------------------------*/

/* Only ever sets the timer to earlier than it is: one that was cancelled costs an empty round at most. */
static void arm(struct loop *loop)
{
  int64_t first = timer_heap_first(loop->timers);
  if (first >= loop->armed)
    return;
  int64_t at = MAX(first, 1); /* zero would disarm it */
  struct itimerspec spec = {.it_value = {.tv_sec = at / NS_PER_S, .tv_nsec = at % NS_PER_S}};
  if (timerfd_settime(loop->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL) != 0)
    g_error("timerfd_settime: %m");
  loop->armed = first;
}

/* Timers that a callback sets wait for the next round, so none can keep the loop from its other work. */
static void run_timers(struct loop *loop)
{
  uint64_t limit = timer_heap_limit(loop->timers), expired;
  struct timer timer;
  if (read(loop->timer_fd, &expired, sizeof expired) > 0)
    loop->armed = INT64_MAX;
  while (timer_heap_take(loop->timers, loop->now, limit, &timer))
    timer.due(timer.context, timer.tag);
}

void loop_read_notes(struct loop *loop)
{
  struct note *last = atomic_exchange_explicit(&loop->notes, NULL, memory_order_acquire);
  struct note *first = NULL;
  while (last) {
    struct note *before = last->next;
    last->next = first;
    first = last;
    last = before;
  }
  while (first) {
    struct note *note = first;
    first = note->next;
    note->read(note);
  }
}

static void run_notes(struct loop *loop)
{
  uint64_t count;
  /* Before the list is taken: a note that is posted in between makes the descriptor readable again. */
  if (read(loop->note_fd, &count, sizeof count) > 0)
    loop_read_notes(loop);
}

void note_post(struct loop *loop, struct note *note)
{
  struct note *head = atomic_load_explicit(&loop->notes, memory_order_relaxed);
  do
    note->next = head;
  while (!atomic_compare_exchange_weak_explicit(&loop->notes, &head, note, memory_order_release,
                                                memory_order_relaxed));
  /* Who finds the list empty wakes the loop; it has not taken the others yet. */
  const uint64_t one = 1;
  if (!head && write(loop->note_fd, &one, sizeof one) < 0)
    g_error("eventfd: %m");
}

uint64_t loop_timer(struct loop *loop, int64_t at_ns, void (*due)(void *context, uint64_t tag), void *context,
                    uint64_t tag)
{
  return timer_heap_add(loop->timers,
                        &(struct timer){.at = at_ns, .due = due, .context = context, .tag = tag});
}

void loop_timer_cancel(struct loop *loop, uint64_t timer)
{
  timer_heap_remove(loop->timers, timer);
}

void loop_forget(struct loop *loop, void *context)
{
  timer_heap_remove_all(loop->timers, context);
}

/* --- the loop's own source
 * ------------------------------------------------------------------------------------------------*/

static gboolean own_prepare(GSource *source, int *timeout)
{
  *timeout = -1;
  arm(((struct own_source *)source)->loop);
  return FALSE;
}

static gboolean own_check(GSource *source)
{
  struct loop *loop = ((struct own_source *)source)->loop;
  loop->now = loop_clock();
  return timer_heap_first(loop->timers) <= loop->now ||
         g_source_query_unix_fd(source, loop->timer_tag) != 0 ||
         g_source_query_unix_fd(source, loop->note_tag) != 0;
}

static gboolean own_dispatch(GSource *source, GSourceFunc callback, gpointer data)
{
  (void)callback, (void)data;
  struct loop *loop = ((struct own_source *)source)->loop;
  if (timer_heap_first(loop->timers) <= loop->now || g_source_query_unix_fd(source, loop->timer_tag) != 0)
    run_timers(loop);
  if (g_source_query_unix_fd(source, loop->note_tag) != 0)
    run_notes(loop);
  return G_SOURCE_CONTINUE;
}

static GSourceFuncs own_funcs = {.prepare = own_prepare, .check = own_check, .dispatch = own_dispatch};

struct loop *loop_new(void)
{
  struct loop *loop = g_new0(struct loop, 1);
  loop->context = g_main_context_new();
  loop->timers = timer_heap_new();
  loop->flushes = g_array_new(FALSE, FALSE, sizeof(struct flush));
  loop->armed = INT64_MAX;
  loop->signal_fd = -1;
  loop->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  loop->note_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (loop->timer_fd < 0 || loop->note_fd < 0)
    g_error("no descriptor for the event loop: %m");
  loop->source = g_source_new(&own_funcs, sizeof(struct own_source));
  ((struct own_source *)loop->source)->loop = loop;
  loop->timer_tag = g_source_add_unix_fd(loop->source, loop->timer_fd, G_IO_IN);
  loop->note_tag = g_source_add_unix_fd(loop->source, loop->note_fd, G_IO_IN);
  g_source_attach(loop->source, loop->context);
  return loop;
}

void loop_free(struct loop *loop)
{
  if (!loop)
    return;
  loop_unwatch(loop->signals);
  if (loop->signal_fd >= 0)
    close(loop->signal_fd);
  g_source_destroy(loop->source);
  g_source_unref(loop->source);
  g_main_context_unref(loop->context);
  close(loop->timer_fd);
  close(loop->note_fd);
  timer_heap_free(loop->timers);
  g_array_unref(loop->flushes);
  g_free(loop);
}

/* A flush may add another, which is called too, or remove any: those are only marked until the end. */
static void flush_all(struct loop *loop)
{
  for (guint i = 0; i < loop->flushes->len; i++) {
    struct flush flush = g_array_index(loop->flushes, struct flush, i);
    if (flush.call)
      flush.call(flush.context);
  }
  for (guint i = loop->flushes->len; i-- > 0;)
    if (!g_array_index(loop->flushes, struct flush, i).call)
      g_array_remove_index(loop->flushes, i);
}

void loop_run(struct loop *loop)
{
  g_main_context_push_thread_default(loop->context);
  loop->quit = FALSE;
  loop->now = loop_clock();
  loop->running = TRUE;
  flush_all(loop);
  while (!loop->quit) {
    g_main_context_iteration(loop->context, TRUE);
    flush_all(loop);
  }
  loop->running = FALSE;
  g_main_context_pop_thread_default(loop->context);
}

void loop_quit(struct loop *loop)
{
  loop->quit = TRUE;
}

gboolean loop_quits(const struct loop *loop)
{
  return loop->quit;
}

int64_t loop_now(const struct loop *loop)
{
  return loop->running ? loop->now : loop_clock();
}

void loop_before_wait(struct loop *loop, void (*flush)(void *context), void *context)
{
  struct flush entry = {flush, context};
  g_array_append_val(loop->flushes, entry);
}

void loop_before_wait_remove(struct loop *loop, void (*flush)(void *context), void *context)
{
  for (guint i = 0; i < loop->flushes->len; i++) {
    struct flush *entry = &g_array_index(loop->flushes, struct flush, i);
    if (entry->call == flush && entry->context == context) {
      entry->call = NULL;
      return;
    }
  }
}

/* --- watches
 * ------------------------------------------------------------------------------------------------------*/

static gboolean watch_prepare(GSource *source, int *timeout)
{
  struct watch *watch = (struct watch *)source;
  *timeout = -1;
  return watch->ready && watch->ready(watch->context);
}

static gboolean watch_check(GSource *source)
{
  return g_source_query_unix_fd(source, ((struct watch *)source)->tag) != 0;
}

static gboolean watch_dispatch(GSource *source, GSourceFunc callback, gpointer data)
{
  (void)callback, (void)data;
  struct watch *watch = (struct watch *)source;
  watch->call(watch->context);
  return G_SOURCE_CONTINUE;
}

static GSourceFuncs watch_funcs = {
    .prepare = watch_prepare, .check = watch_check, .dispatch = watch_dispatch};

static struct watch *watch_new(struct loop *loop, int fd, GIOCondition condition,
                               gboolean (*ready)(void *context), void (*call)(void *context), void *context)
{
  struct watch *watch = (struct watch *)g_source_new(&watch_funcs, sizeof(struct watch));
  watch->ready = ready;
  watch->call = call;
  watch->context = context;
  watch->tag = g_source_add_unix_fd(&watch->source, fd, condition | G_IO_HUP | G_IO_ERR);
  g_source_attach(&watch->source, loop->context);
  return watch;
}

struct watch *loop_watch_edge(struct loop *loop, int fd, gboolean (*ready)(void *context),
                              void (*readable)(void *context), void *context)
{
  return watch_new(loop, fd, G_IO_IN, ready, readable, context);
}

struct watch *loop_watch(struct loop *loop, int fd, void (*readable)(void *context), void *context)
{
  return watch_new(loop, fd, G_IO_IN, NULL, readable, context);
}

struct watch *loop_watch_writable(struct loop *loop, int fd, void (*writable)(void *context), void *context)
{
  return watch_new(loop, fd, G_IO_OUT, NULL, writable, context);
}

/* What is pending for it in this round is not called any more: GLib passes over destroyed sources. */
void loop_unwatch(struct watch *watch)
{
  if (!watch)
    return;
  g_source_destroy(&watch->source);
  g_source_unref(&watch->source);
}

/* --- signals
 * ----------------------------------------------------------------------------------------------------*/

static void signal_readable(void *context)
{
  struct loop *loop = context;
  struct signalfd_siginfo info;
  while (read(loop->signal_fd, &info, sizeof info) > 0)
    loop->signal_came(loop->signal_context);
}

void loop_on_signals(struct loop *loop, void (*came)(void *context), void *context)
{
  sigset_t set;
  interrupt_signals(&set);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  loop->signal_came = came;
  loop->signal_context = context;
  loop->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  if (loop->signal_fd < 0)
    g_error("no descriptor for signals: %m");
  loop->signals = loop_watch(loop, loop->signal_fd, signal_readable, loop);
}
