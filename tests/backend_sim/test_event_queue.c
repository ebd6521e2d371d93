/* Order, ties and handles of the event queue, against a list that is searched from end to end. */
#include <criterion/criterion.h>

#include "backend_sim/event_queue.h"
#include "core/units.h"

Test(event_queue, equal_times_in_order_of_insertion)
{
  struct event_queue *queue = event_queue_new();
  for (uint64_t i = 0; i < 100; i++)
    event_queue_add(queue, 7, 3, i);
  int64_t time;
  uint32_t kind;
  uint64_t payload;
  for (uint64_t i = 0; i < 100; i++) {
    cr_assert(event_queue_pop(queue, &time, &kind, &payload));
    cr_assert(time == 7 && kind == 3 && payload == i);
  }
  cr_assert_not(event_queue_pop(queue, &time, &kind, &payload));
  cr_assert_eq(event_queue_next(queue), TIME_NEVER);
  event_queue_free(queue);
}

Test(event_queue, a_moved_event_goes_behind_its_equals)
{
  struct event_queue *queue = event_queue_new();
  event_id first = event_queue_add(queue, 5, 0, 1);
  event_queue_add(queue, 5, 0, 2);
  event_queue_move(queue, first, 5);
  uint64_t own = event_queue_sequence(queue);
  event_queue_add(queue, 5, 0, 3);
  int64_t time;
  uint32_t kind;
  uint64_t payload, order[3];
  for (int i = 0; i < 3; i++) {
    /* a number drawn by another source stands between those before and after it */
    cr_expect_eq(event_queue_next_sequence(queue) < own, i < 2);
    event_queue_pop(queue, &time, &kind, &payload);
    order[i] = payload;
  }
  cr_expect(order[0] == 2 && order[1] == 1 && order[2] == 3);
  event_queue_free(queue);
}

struct pending {
  int64_t time;
  uint64_t sequence;
  event_id id;
  uint64_t payload;
};

static guint list_first(GArray *list)
{
  guint first = 0;
  for (guint i = 1; i < list->len; i++) {
    const struct pending *a = &g_array_index(list, struct pending, i);
    const struct pending *b = &g_array_index(list, struct pending, first);
    if (a->time < b->time || (a->time == b->time && a->sequence < b->sequence))
      first = i;
  }
  return first;
}

static void pop_both(struct event_queue *queue, GArray *list)
{
  int64_t time;
  uint32_t kind;
  uint64_t payload;
  guint first = list_first(list);
  const struct pending *expected = &g_array_index(list, struct pending, first);
  cr_assert_eq(event_queue_next(queue), expected->time);
  cr_assert(event_queue_pop(queue, &time, &kind, &payload));
  cr_assert(time == expected->time && payload == expected->payload && kind == (uint32_t)payload * 3);
  g_array_remove_index_fast(list, first);
}

static void change_both(struct event_queue *queue, GArray *list, GRand *random, uint64_t step)
{
  /* few distinct times, so that ties are common; some at the far end */
  int64_t time = g_rand_int_range(random, 0, 50) ? g_rand_int_range(random, 0, 300) : TIME_NEVER - 1;
  guint any = list->len ? (guint)g_rand_int_range(random, 0, (gint32)list->len) : 0;
  switch (list->len ? g_rand_int_range(random, 0, 8) : 0) {
  case 0:
  case 1:
  case 2: {
    struct pending pending = {time, step, event_queue_add(queue, time, (uint32_t)step * 3, step), step};
    g_array_append_val(list, pending);
    break;
  }
  case 3:
  case 4:
  case 5: {
    struct pending *pending = &g_array_index(list, struct pending, any);
    event_queue_move(queue, pending->id, time);
    pending->time = time;
    pending->sequence = step;
    break;
  }
  case 6:
    event_queue_remove(queue, g_array_index(list, struct pending, any).id);
    g_array_remove_index_fast(list, any);
    break;
  default:
    pop_both(queue, list);
  }
}

Test(event_queue, equals_a_searched_list)
{
  g_autoptr(GRand) random = g_rand_new_with_seed(11);
  g_autoptr(GArray) list = g_array_new(FALSE, FALSE, sizeof(struct pending));
  struct event_queue *queue = event_queue_new();
  for (uint64_t step = 0; step < 60000; step++) {
    change_both(queue, list, random, step);
    cr_assert_eq(event_queue_next(queue) == TIME_NEVER, list->len == 0);
    if (step % 10000 == 9999)
      while (list->len > 3)
        pop_both(queue, list);
    /* many numbers go elsewhere: those of the queue must not run out (36 bits each are kept) */
    if (step % 20000 == 7000)
      event_queue_reserve(queue, ((uint64_t)1 << 35) - 10000);
  }
  while (list->len)
    pop_both(queue, list);
  event_queue_free(queue);
}

Test(event_queue, order_outlives_any_count_of_insertions)
{
  struct event_queue *queue = event_queue_new();
  event_queue_add(queue, 9, 0, 1);
  event_queue_add(queue, 8, 0, 2);
  event_queue_reserve(queue, (uint64_t)1 << 50);
  event_queue_add(queue, 9, 0, 3);
  uint64_t drawn = event_queue_sequence(queue);
  event_queue_add(queue, 9, 0, 4);
  static const uint64_t order[] = {2, 1, 3, 4};
  for (int i = 0; i < 4; i++) {
    int64_t time;
    uint32_t kind;
    uint64_t payload;
    cr_expect_eq(event_queue_next_sequence(queue) < drawn, i < 3);
    cr_assert(event_queue_pop(queue, &time, &kind, &payload));
    cr_expect_eq(payload, order[i]);
  }
  event_queue_free(queue);
}
