/* Streams at a cluster's pace: 16 GPU-server ingress links, 4 memory-server egress links; a load is 4 streams
 * (one from each memory server) of 16 milestones each. A closed system keeps as many loads going as asked
 * for; loads done a second of CPU time. Goal: 75,000 a second at 16 loads at once, so that 20,000 leave room
 * for all else. */
#include <stdio.h>
#include <time.h>

#include "backend_sim/stream.h"

#define SERVERS    16
#define MEMORY     4
#define GROUPS     16
#define MODELS     8
#define LOAD_LIMIT 512
#define BYTES_S    12.5e9

struct load {
  uint32_t open; /* streams not ended */
};

struct bench {
  struct event_queue *queue;
  struct stream_net *net;
  link_id ingress[SERVERS];
  link_id egress[MEMORY];
  uint64_t ends[MODELS][GROUPS];
  struct load loads[LOAD_LIMIT];
  GRand *random;
  uint64_t started, done, target, milestones;
};

static double seconds_now(void)
{
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void load_start(struct bench *bench, uint32_t slot, double at_ns)
{
  link_id ingress = bench->ingress[g_rand_int_range(bench->random, 0, SERVERS)];
  const uint64_t *ends = bench->ends[g_rand_int_range(bench->random, 0, MODELS)];
  bench->started++;
  bench->loads[slot].open = MEMORY;
  for (int m = 0; m < MEMORY; m++) {
    link_id links[] = {bench->egress[m], ingress};
    stream_start(bench->net, at_ns, links, 2, 0, ends, GROUPS, slot);
  }
}

static void on_milestone(void *context, stream_id stream, uint64_t user, uint32_t milestone, double exact_ns,
                         gboolean last)
{
  (void)stream, (void)milestone;
  struct bench *bench = context;
  bench->milestones++;
  if (!last || --bench->loads[user].open)
    return;
  bench->done++;
  if (bench->started < bench->target)
    load_start(bench, (uint32_t)user, exact_ns);
}

static void bench_run(struct bench *bench)
{
  int64_t now, next;
  uint32_t kind;
  uint64_t payload;
  while ((next = event_queue_next(bench->queue)) != INT64_MAX) {
    do {
      event_queue_pop(bench->queue, &now, &kind, &payload);
      stream_net_event(bench->net, now, payload);
    } while (event_queue_next(bench->queue) == now);
    while (stream_net_settle(bench->net, now))
      ;
  }
}

static void bench_case(uint32_t at_once, uint64_t loads)
{
  struct bench bench = {.queue = event_queue_new(), .random = g_rand_new_with_seed(7), .target = loads};
  bench.net = stream_net_new(bench.queue, 0, on_milestone, &bench);
  for (int i = 0; i < SERVERS; i++)
    bench.ingress[i] = stream_net_add_link(bench.net, BYTES_S);
  for (int i = 0; i < MEMORY; i++)
    bench.egress[i] = stream_net_add_link(bench.net, BYTES_S);
  for (int model = 0; model < MODELS; model++) {
    uint64_t end = 0;
    for (int g = 0; g < GROUPS; g++)
      bench.ends[model][g] = end += (uint64_t)g_rand_int_range(bench.random, 1000000, 8000000);
  }
  double start = seconds_now();
  for (uint32_t i = 0; i < at_once; i++)
    load_start(&bench, i, 0);
  stream_net_settle(bench.net, 0);
  bench_run(&bench);
  double seconds = seconds_now() - start;
  printf("%9u %14.0f %16.0f %18.0f\n", at_once, (double)bench.done / seconds,
         (double)bench.done * MEMORY / seconds, (double)bench.milestones / seconds);
  stream_net_free(bench.net);
  event_queue_free(bench.queue);
  g_rand_free(bench.random);
}

int main(void)
{
  printf("streams: loads of %d streams of %d milestones, %d links\n", MEMORY, GROUPS, SERVERS + MEMORY);
  printf("%9s %14s %16s %18s\n", "at once", "loads/s", "streams/s", "milestones/s");
  bench_case(4, 100000);
  bench_case(16, 100000);
  bench_case(64, 100000);
  bench_case(256, 50000);
  return 0;
}
