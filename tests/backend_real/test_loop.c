/* The loop: order of timers and notes, what a callback may do to what is pending, and precision. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "backend_real/loop.h"
#include "backend_real/timer_heap.h"
#include "core/units.h"

/* --- timers
 * -------------------------------------------------------------------------------------------------------*/

struct pending {
  int64_t at;
  uint64_t id, order;
};

static int by_time_and_order(const void *a, const void *b)
{
  const struct pending *x = a, *y = b;
  if (x->at != y->at)
    return x->at < y->at ? -1 : 1;
  return x->order < y->order ? -1 : 1;
}

static void no_call(void *context, uint64_t tag)
{
  (void)context, (void)tag;
}

/* Against a sorted array: many equal times, a third cancelled, ids unique. */
Test(loop, heap_equals_sorted_array)
{
  enum { MANY = 3000 };
  GRand *rand = g_rand_new_with_seed(1);
  for (int round = 0; round < 20; round++) {
    struct timer_heap *heap = timer_heap_new();
    struct pending *pending = g_new(struct pending, MANY);
    uint32_t count = 0;
    uint64_t last_id = 0;
    for (uint64_t i = 0; i < MANY; i++) {
      struct timer timer = {.at = g_rand_int_range(rand, 0, 200), .due = no_call, .tag = i};
      uint64_t id = timer_heap_add(heap, &timer);
      cr_assert_gt(id >> 22, last_id >> 22);
      last_id = id;
      pending[count++] = (struct pending){timer.at, id, i};
      if (g_rand_int_range(rand, 0, 3) == 0) {
        uint32_t victim = (uint32_t)g_rand_int_range(rand, 0, (gint32)count);
        cr_assert(timer_heap_remove(heap, pending[victim].id));
        cr_assert_not(timer_heap_remove(heap, pending[victim].id));
        pending[victim] = pending[--count];
      }
    }
    qsort(pending, count, sizeof *pending, by_time_and_order);
    struct timer timer;
    for (uint32_t i = 0; i < count; i++) {
      cr_assert_eq(timer_heap_first(heap), pending[i].at);
      cr_assert_not(timer_heap_take(heap, pending[i].at - 1, UINT64_MAX, &timer));
      cr_assert(timer_heap_take(heap, pending[i].at, UINT64_MAX, &timer));
      cr_assert_eq(timer.id, pending[i].id);
      cr_assert_eq(timer.tag, pending[i].order);
    }
    cr_assert_eq(timer_heap_first(heap), INT64_MAX);
    g_free(pending);
    timer_heap_free(heap);
  }
  g_rand_free(rand);
}

struct story {
  struct loop *loop;
  GString *text;
  uint64_t timer[8];
  int64_t now;
};

static void tell(void *context, uint64_t tag)
{
  struct story *s = context;
  g_string_append_printf(s->text, "%c", (char)tag);
  if (tag == 'z')
    loop_quit(s->loop);
}

static void cancel_next(void *context, uint64_t tag)
{
  struct story *s = context;
  tell(s, tag);
  loop_timer_cancel(s->loop, s->timer[0]);
  loop_timer_cancel(s->loop, s->timer[0]);
  loop_timer_cancel(s->loop, 0);
  /* Set for the past, yet not before those that are due already, and not in this round. */
  loop_timer(s->loop, 0, tell, s, 'p');
}

Test(loop, timers_in_order)
{
  struct story s = {.loop = loop_new(), .text = g_string_new(NULL)};
  int64_t at = loop_now(s.loop) + 2 * NS_PER_MS;
  loop_timer(s.loop, at + 3 * NS_PER_MS, tell, &s, 'z');
  loop_timer(s.loop, at, tell, &s, 'a');
  loop_timer(s.loop, at, cancel_next, &s, 'b');
  s.timer[0] = loop_timer(s.loop, at, tell, &s, 'x');
  loop_timer(s.loop, at, tell, &s, 'c');
  loop_timer(s.loop, at - 1, tell, &s, '0');
  loop_run(s.loop);
  cr_assert(g_str_equal(s.text->str, "0abpcz") || g_str_equal(s.text->str, "0abcpz"), "%s", s.text->str);
  g_string_free(s.text, TRUE);
  loop_free(s.loop);
}

static void frozen(void *context, uint64_t tag)
{
  struct story *s = context;
  int64_t now = loop_now(s->loop);
  if (tag == 0)
    s->now = now;
  cr_assert_eq(now, s->now);
  g_usleep(2000);
  cr_assert_eq(loop_now(s->loop), now);
  if (tag == 2)
    loop_quit(s->loop);
}

Test(loop, now_is_frozen_in_a_round)
{
  struct story s = {.loop = loop_new()};
  for (uint64_t i = 0; i < 3; i++)
    loop_timer(s.loop, 1, frozen, &s, i);
  int64_t before = loop_now(s.loop);
  g_usleep(1000);
  cr_assert_gt(loop_now(s.loop), before); /* not while it does not run */
  loop_run(s.loop);
  loop_free(s.loop);
}

struct lateness {
  struct loop *loop;
  int64_t at;
  int rounds;
  int64_t late[200];
};

static void measure(void *context, uint64_t tag)
{
  struct lateness *l = context;
  (void)tag;
  if (l->at > 0) {
    cr_assert_geq(loop_now(l->loop), l->at);
    l->late[l->rounds++] = loop_now(l->loop) - l->at;
  }
  if (l->rounds == 200) {
    loop_quit(l->loop);
    return;
  }
  l->at = loop_now(l->loop) + 333 * NS_PER_US;
  loop_timer(l->loop, l->at, measure, l, 0);
}

static int by_size(const void *a, const void *b)
{
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/* Never early; late by far less than the millisecond that GLib's own timeouts know. */
Test(loop, timers_are_exact_to_microseconds)
{
  struct lateness l = {.loop = loop_new()};
  measure(&l, 0);
  loop_run(l.loop);
  qsort(l.late, 200, sizeof *l.late, by_size);
  cr_assert_lt(l.late[100], 300 * NS_PER_US, "%" G_GINT64_FORMAT, l.late[100]);
  loop_free(l.loop);
}

/* --- watches
 * ------------------------------------------------------------------------------------------------------*/

struct watched {
  struct loop *loop;
  int fd;
  struct watch *watch, *other;
  int calls;
  int flushes, flushed_calls;
};

static void readable(void *context)
{
  struct watched *w = context;
  uint64_t count;
  w->calls++;
  if (w->calls < 3)
    return; /* level triggered: it comes again */
  cr_assert_eq(read(w->fd, &count, sizeof count), (ssize_t)sizeof count);
  loop_unwatch(w->watch);
  loop_unwatch(w->other); /* readable too, in this very round */
}

static void never(void *context)
{
  (void)context;
  cr_assert_fail("an unwatched descriptor was told");
}

static void flushed(void *context)
{
  struct watched *w = context;
  w->flushes++;
  if (w->calls == 3) {
    loop_before_wait_remove(w->loop, flushed, w);
    loop_quit(w->loop);
  }
}

static void other_readable(void *context)
{
  struct watched *w = context;
  if (w->calls >= 3)
    never(context);
}

Test(loop, watches)
{
  struct watched w = {.loop = loop_new(), .fd = eventfd(1, EFD_NONBLOCK)};
  int other = eventfd(1, EFD_NONBLOCK);
  w.watch = loop_watch(w.loop, w.fd, readable, &w);
  w.other = loop_watch(w.loop, other, other_readable, &w);
  loop_before_wait(w.loop, flushed, &w);
  loop_run(w.loop);
  cr_assert_eq(w.calls, 3);
  cr_assert_eq(w.flushes, 4); /* before each wait, and at the end */
  loop_free(w.loop);
  close(w.fd);
  close(other);
}

/* --- notes
 * --------------------------------------------------------------------------------------------------------*/

enum { THREADS = 4, NOTES = 20000 };

struct counted_note {
  struct note note;
  struct poster *poster;
  uint64_t serial;
};

struct poster {
  struct loop *loop;
  GThread *thread;
  struct counted_note *note; /* [NOTES] */
  uint64_t next;
  int *left;
};

static void read_counted(struct note *note)
{
  struct counted_note *counted = (struct counted_note *)note;
  struct poster *poster = counted->poster;
  cr_assert_eq(counted->serial, poster->next);
  poster->next++;
  if (--*poster->left == 0)
    loop_quit(poster->loop);
}

static gpointer post_all(gpointer data)
{
  struct poster *poster = data;
  for (uint64_t i = 0; i < NOTES; i++) {
    poster->note[i] = (struct counted_note){{.read = read_counted}, poster, i};
    note_post(poster->loop, &poster->note[i].note);
    if (i % 1000 == 0)
      g_usleep(100); /* lets the loop run dry now and then */
  }
  return NULL;
}

/* Every note comes, and those of one thread in the order in which it posted them. */
Test(loop, notes_from_threads)
{
  struct loop *loop = loop_new();
  struct poster poster[THREADS];
  int left = THREADS * NOTES;
  for (int i = 0; i < THREADS; i++) {
    poster[i] = (struct poster){.loop = loop, .note = g_new(struct counted_note, NOTES), .left = &left};
    poster[i].thread = g_thread_new("poster", post_all, &poster[i]);
  }
  loop_run(loop);
  for (int i = 0; i < THREADS; i++) {
    g_thread_join(poster[i].thread);
    g_free(poster[i].note);
  }
  cr_assert_eq(left, 0);
  loop_free(loop);
}

struct echo {
  struct note note;
  struct loop *loop;
  int times;
};

static void post_again(struct note *note)
{
  struct echo *echo = (struct echo *)note;
  if (++echo->times == 1000)
    loop_quit(echo->loop);
  else
    note_post(echo->loop, note);
}

/* A note may be posted again from inside its own reading. */
Test(loop, note_posted_again)
{
  struct echo echo = {.note.read = post_again, .loop = loop_new()};
  note_post(echo.loop, &echo.note);
  loop_run(echo.loop);
  cr_assert_eq(echo.times, 1000);
  loop_free(echo.loop);
}
