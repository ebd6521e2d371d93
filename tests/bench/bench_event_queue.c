/* Event queue against its yardstick, a bare binary heap of (time, sequence, id) without handles, in the same
 * run: hold operations (take the first event, add one an exponential time later) at 1k, 64k and 1M pending
 * events. */
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "backend_sim/event_queue.h"

#define HOLDS  2000000u
#define ROUNDS 3
#define DRAWS  65536u

struct bare_entry {
  int64_t time;
  uint64_t sequence;
  uint32_t id;
};

struct bare_heap {
  struct bare_entry *entries;
  size_t count;
};

static inline gboolean bare_before(const struct bare_entry *a, const struct bare_entry *b)
{
  return a->time < b->time || (a->time == b->time && a->sequence < b->sequence);
}

static void bare_push(struct bare_heap *heap, struct bare_entry entry)
{
  size_t i = heap->count++;
  for (; i && bare_before(&entry, &heap->entries[(i - 1) / 2]); i = (i - 1) / 2)
    heap->entries[i] = heap->entries[(i - 1) / 2];
  heap->entries[i] = entry;
}

static struct bare_entry bare_pop(struct bare_heap *heap)
{
  struct bare_entry first = heap->entries[0], last = heap->entries[--heap->count];
  size_t i = 0;
  for (size_t child; (child = 2 * i + 1) < heap->count; i = child) {
    if (child + 1 < heap->count && bare_before(&heap->entries[child + 1], &heap->entries[child]))
      child++;
    if (!bare_before(&heap->entries[child], &last))
      break;
    heap->entries[i] = heap->entries[child];
  }
  heap->entries[i] = last;
  return first;
}

static double seconds_now(void)
{
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Millions of holds a second; *check: the last time, equal for both heaps. */
static double bare_run(size_t pending, const int64_t *draws, int64_t *check)
{
  struct bare_heap heap = {.entries = g_new(struct bare_entry, pending + 1)};
  uint64_t sequence = 0;
  for (size_t i = 0; i < pending; i++)
    bare_push(&heap, (struct bare_entry){draws[i % DRAWS], sequence++, (uint32_t)i});
  double start = seconds_now();
  for (uint32_t i = 0; i < HOLDS; i++) {
    struct bare_entry entry = bare_pop(&heap);
    *check = entry.time;
    bare_push(&heap, (struct bare_entry){entry.time + draws[i % DRAWS], sequence++, entry.id});
  }
  double seconds = seconds_now() - start;
  g_free(heap.entries);
  return HOLDS / seconds * 1e-6;
}

static double queue_run(size_t pending, const int64_t *draws, int64_t *check)
{
  struct event_queue *queue = event_queue_new();
  for (size_t i = 0; i < pending; i++)
    event_queue_add(queue, draws[i % DRAWS], 0, i);
  double start = seconds_now();
  for (uint32_t i = 0; i < HOLDS; i++) {
    int64_t time;
    uint32_t kind;
    uint64_t payload;
    event_queue_pop(queue, &time, &kind, &payload);
    *check = time;
    event_queue_add(queue, time + draws[i % DRAWS], kind, payload);
  }
  double seconds = seconds_now() - start;
  event_queue_free(queue);
  return HOLDS / seconds * 1e-6;
}

int main(void)
{
  static const size_t pendings[] = {1000, 64000, 1000000};
  g_autofree int64_t *draws = g_new(int64_t, DRAWS);
  g_autoptr(GRand) random = g_rand_new_with_seed(1);
  for (uint32_t i = 0; i < DRAWS; i++)
    draws[i] = (int64_t)(-log(1 - g_rand_double(random)) * 1e6);
  printf("event queue: holds (take the first, add one) a second, best of %d\n", ROUNDS);
  printf("%9s %14s %14s %8s\n", "pending", "bare heap, M/s", "queue, M/s", "ratio");
  gboolean equal = TRUE;
  for (size_t p = 0; p < G_N_ELEMENTS(pendings); p++) {
    double bare = 0, queue = 0;
    int64_t bare_check = 0, queue_check = -1;
    for (int round = 0; round < ROUNDS; round++) {
      bare = fmax(bare, bare_run(pendings[p], draws, &bare_check));
      queue = fmax(queue, queue_run(pendings[p], draws, &queue_check));
      equal = equal && bare_check == queue_check;
    }
    printf("%9zu %14.2f %14.2f %8.2f\n", pendings[p], bare, queue, queue / bare);
  }
  printf("goal: ratio at least 0.5; same order of events: %s\n", equal ? "yes" : "NO");
  return equal ? 0 : 1;
}
