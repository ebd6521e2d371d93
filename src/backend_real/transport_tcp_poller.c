/* A thread that serves many sockets; see transport_tcp_poller.h. */
#include "backend_real/transport_tcp_poller.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "core/error.h"

#define EVENTS 64

struct list {
  struct pollee *first, *last;
};

struct poller {
  poller_turn *turn;
  void *context;
  char *name;
  GThread *thread;
  int epoll, bell, timer; /* bell: eventfd of poller_wake and poller_stop */
  struct list ready, later;
  gint64 armed_ns; /* when the timer goes off; 0 = not set */

  GMutex lock; /* of what follows */
  struct pollee *woken, *last_woken;
  gboolean asleep; /* the thread waits in epoll_wait, or is about to */
  gboolean stopping;
};

gint64 poller_clock(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (gint64)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void list_append(struct list *list, struct pollee *pollee)
{
  pollee->next = NULL;
  pollee->before = list->last;
  if (list->last)
    list->last->next = pollee;
  else
    list->first = pollee;
  list->last = pollee;
}

static void list_remove(struct list *list, struct pollee *pollee)
{
  if (pollee->before)
    pollee->before->next = pollee->next;
  else
    list->first = pollee->next;
  if (pollee->next)
    pollee->next->before = pollee->before;
  else
    list->last = pollee->before;
}

static void set_state(struct poller *poller, struct pollee *pollee, unsigned state)
{
  if (pollee->state == state)
    return;
  if (pollee->state != POLLEE_IDLE)
    list_remove(pollee->state == POLLEE_READY ? &poller->ready : &poller->later, pollee);
  pollee->state = state;
  if (state != POLLEE_IDLE)
    list_append(state == POLLEE_READY ? &poller->ready : &poller->later, pollee);
}

/* Watches one of the poller's own descriptors; data says which. */
static gboolean watch_own(struct poller *poller, int *fd)
{
  struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.ptr = fd};
  return *fd >= 0 && epoll_ctl(poller->epoll, EPOLL_CTL_ADD, *fd, &event) == 0;
}

struct poller *poller_new(const char *name, poller_turn *turn, void *context, GError **error)
{
  struct poller *poller = g_new0(struct poller, 1);
  poller->turn = turn;
  poller->context = context;
  poller->name = g_strdup(name);
  g_mutex_init(&poller->lock);
  poller->epoll = epoll_create1(EPOLL_CLOEXEC);
  poller->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  poller->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  if (poller->epoll >= 0 && watch_own(poller, &poller->bell) && watch_own(poller, &poller->timer))
    return poller;
  g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "cannot watch sockets: %s", g_strerror(errno));
  poller_free(poller);
  return NULL;
}

void poller_free(struct poller *poller)
{
  if (!poller)
    return;
  int own[] = {poller->epoll, poller->bell, poller->timer};
  for (unsigned i = 0; i < G_N_ELEMENTS(own); i++)
    if (own[i] >= 0)
      close(own[i]);
  g_mutex_clear(&poller->lock);
  g_free(poller->name);
  g_free(poller);
}

gboolean poller_add(struct poller *poller, struct pollee *pollee, int fd)
{
  /* Known to the thread as soon as it is watched. */
  pollee->fd = fd;
  struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = pollee};
  return epoll_ctl(poller->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

static void forget_wake(struct poller *poller, struct pollee *pollee)
{
  g_mutex_lock(&poller->lock);
  struct pollee *before = NULL;
  for (struct pollee *p = poller->woken; p; before = p, p = p->next_woken) {
    if (p != pollee)
      continue;
    *(before ? &before->next_woken : &poller->woken) = p->next_woken;
    if (poller->last_woken == p)
      poller->last_woken = before;
    break;
  }
  pollee->woken = FALSE;
  g_mutex_unlock(&poller->lock);
}

void poller_remove(struct poller *poller, struct pollee *pollee)
{
  set_state(poller, pollee, POLLEE_IDLE);
  forget_wake(poller, pollee);
  if (pollee->fd >= 0) {
    /* Closing alone ends no events while another process has the socket too. */
    epoll_ctl(poller->epoll, EPOLL_CTL_DEL, pollee->fd, NULL);
    close(pollee->fd);
  }
  pollee->fd = -1;
}

static void ring(struct poller *poller)
{
  uint64_t one = 1;
  ssize_t written = write(poller->bell, &one, sizeof one);
  (void)written; /* it fails only where the bell is ringing already */
}

void poller_wake(struct poller *poller, struct pollee *pollee)
{
  g_mutex_lock(&poller->lock);
  gboolean asleep = FALSE;
  if (!pollee->woken) {
    pollee->woken = TRUE;
    pollee->next_woken = NULL;
    *(poller->woken ? &poller->last_woken->next_woken : &poller->woken) = pollee;
    poller->last_woken = pollee;
    asleep = poller->asleep;
    poller->asleep = FALSE;
  }
  g_mutex_unlock(&poller->lock);
  if (asleep)
    ring(poller);
}

/* Those that were woken become ready. *sleep, unless NULL: there is nothing to do, and poller_wake knows that
 * it has to ring. FALSE: it is time to stop. */
static gboolean take_woken(struct poller *poller, gboolean *sleep)
{
  g_mutex_lock(&poller->lock);
  for (struct pollee *p = poller->woken; p; p = p->next_woken) {
    p->woken = FALSE;
    set_state(poller, p, POLLEE_READY);
  }
  poller->woken = poller->last_woken = NULL;
  poller->asleep = sleep && !poller->ready.first && !poller->stopping;
  if (sleep)
    *sleep = poller->asleep;
  gboolean stopping = poller->stopping;
  g_mutex_unlock(&poller->lock);
  return !stopping;
}

/* Those whose time has come become ready; the timer is set for the next. */
static void look_at_clock(struct poller *poller)
{
  if (!poller->later.first)
    return;
  gint64 now = poller_clock(), next = G_MAXINT64;
  for (struct pollee *p = poller->later.first, *after; p; p = after) {
    after = p->next;
    if (p->later_ns <= now)
      set_state(poller, p, POLLEE_READY);
    else
      next = MIN(next, p->later_ns);
  }
  if (next == G_MAXINT64 || (poller->armed_ns > now && poller->armed_ns <= next))
    return;
  poller->armed_ns = next;
  struct itimerspec when = {.it_value = {next / 1000000000, next % 1000000000}};
  timerfd_settime(poller->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

static void wait_for_news(struct poller *poller, gboolean sleep)
{
  struct epoll_event events[EVENTS];
  int n = epoll_wait(poller->epoll, events, EVENTS, sleep ? -1 : 0);
  for (int i = 0; i < n; i++) {
    if (events[i].data.ptr == &poller->timer)
      continue;
    if (events[i].data.ptr == &poller->bell) {
      uint64_t rung;
      ssize_t bytes = read(poller->bell, &rung, sizeof rung);
      (void)bytes; /* only its edge counts */
      continue;
    }
    struct pollee *pollee = events[i].data.ptr;
    if (events[i].events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
      pollee->hung_up = TRUE;
    set_state(poller, pollee, POLLEE_READY);
  }
}

/* One turn for each that is ready now. A turn may remove others. */
static void give_turns(struct poller *poller)
{
  unsigned turns = 0;
  for (struct pollee *p = poller->ready.first; p; p = p->next)
    turns++;
  for (; turns > 0 && poller->ready.first; turns--) {
    struct pollee *pollee = poller->ready.first;
    set_state(poller, pollee, POLLEE_IDLE);
    gint64 again_ns = 0;
    switch (poller->turn(poller->context, pollee, &again_ns)) {
    case TURN_AGAIN:
      set_state(poller, pollee, POLLEE_READY);
      break;
    case TURN_LATER:
      pollee->later_ns = again_ns;
      set_state(poller, pollee, POLLEE_LATER);
      break;
    case TURN_BLOCKED:
    case TURN_OVER:
      break;
    }
  }
}

static void *poller_run(void *data)
{
  struct poller *poller = data;
  for (;;) {
    look_at_clock(poller);
    gboolean sleep;
    if (!take_woken(poller, &sleep))
      break;
    wait_for_news(poller, sleep);
    take_woken(poller, NULL);
    give_turns(poller);
  }
  return NULL;
}

void poller_start(struct poller *poller)
{
  poller->thread = g_thread_new(poller->name, poller_run, poller);
}

void poller_stop(struct poller *poller)
{
  if (!poller->thread)
    return;
  g_mutex_lock(&poller->lock);
  poller->stopping = TRUE;
  g_mutex_unlock(&poller->lock);
  ring(poller);
  g_thread_join(poller->thread);
  poller->thread = NULL;
}
