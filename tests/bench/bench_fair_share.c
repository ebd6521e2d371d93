/* The solver alone against a plain progressive fill of everything, in the same run: hosts with an up and a
 * down link, two flows a host between random pairs; a change takes one flow away and adds another. Then a
 * cluster: loads of 4 flows from 4 memory servers to one of 16 GPU servers, of which one ends and one starts.
 */
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "backend_sim/fair_share.h"

#define FLOWS_MAX 1024
#define LINKS_MAX 512

struct bench {
  uint32_t links, flows, batch; /* flows changed at a time */
  link_id route[FLOWS_MAX][2];
  flow_id ids[FLOWS_MAX];
  double rate[FLOWS_MAX]; /* of the plain fill */
  struct fair_share *fair;
  GRand *random;
};

static double seconds_now(void)
{
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Draws flow f anew; sources are links 0 to sources - 1, destinations the rest. In a cluster flow f is shard
 * f mod 4. */
static void flow_draw(struct bench *bench, uint32_t f, uint32_t sources)
{
  uint32_t sinks = bench->links - sources;
  bench->route[f][0] =
      bench->batch > 1 ? f % sources : (link_id)g_rand_int_range(bench->random, 0, (gint32)sources);
  if (bench->batch == 1 || f % bench->batch == 0)
    bench->route[f][1] = sources + (link_id)g_rand_int_range(bench->random, 0, (gint32)sinks);
  else
    bench->route[f][1] = bench->route[f - 1][1];
  bench->ids[f] = fair_share_add_flow(bench->fair, bench->route[f], 2, 0);
}

/* Fills all links, least share first. */
static void plain_fill(struct bench *bench, double capacity)
{
  double left[LINKS_MAX];
  uint32_t open[LINKS_MAX] = {0};
  for (uint32_t l = 0; l < bench->links; l++)
    left[l] = capacity;
  for (uint32_t f = 0; f < bench->flows; f++) {
    bench->rate[f] = 0;
    open[bench->route[f][0]]++;
    open[bench->route[f][1]]++;
  }
  for (uint32_t rest = bench->flows; rest;) {
    uint32_t least = 0;
    double share = INFINITY;
    for (uint32_t l = 0; l < bench->links; l++) {
      if (open[l] && left[l] < share * open[l]) {
        share = left[l] / open[l];
        least = l;
      }
    }
    for (uint32_t f = 0; f < bench->flows; f++) {
      if (bench->rate[f] > 0 || (bench->route[f][0] != least && bench->route[f][1] != least))
        continue;
      bench->rate[f] = share;
      for (int k = 0; k < 2; k++) {
        left[bench->route[f][k]] -= share;
        open[bench->route[f][k]]--;
      }
      rest--;
    }
  }
}

static double bench_disagreement(struct bench *bench, double capacity)
{
  double worst = 0;
  plain_fill(bench, capacity);
  for (uint32_t f = 0; f < bench->flows; f++)
    worst = fmax(worst, fabs(fair_share_rate(bench->fair, bench->ids[f]) / bench->rate[f] - 1));
  return worst;
}

/* TRUE if the rates agree. */
static gboolean bench_case(const char *name, uint32_t sources, uint32_t sinks, uint32_t flows, uint32_t batch)
{
  const double capacity = 12.5e9;
  struct bench bench = {.links = sources + sinks, .flows = flows, .batch = batch, .fair = fair_share_new()};
  bench.random = g_rand_new_with_seed(3);
  struct fair_changes changes;
  for (uint32_t l = 0; l < bench.links; l++)
    fair_share_add_link(bench.fair, capacity);
  for (uint32_t f = 0; f < flows; f++)
    flow_draw(&bench, f, sources);
  fair_share_update(bench.fair, &changes);
  const uint32_t solves = 300000;
  double moved = 0, levels = 0, start = seconds_now();
  for (uint32_t i = 0; i < solves; i++) {
    uint32_t first = (uint32_t)g_rand_int_range(bench.random, 0, (gint32)(flows / batch)) * batch;
    for (uint32_t f = first; f < first + batch; f++) {
      fair_share_remove_flow(bench.fair, bench.ids[f]);
      flow_draw(&bench, f, sources);
    }
    fair_share_update(bench.fair, &changes);
    moved += changes.moved_count;
    levels += changes.level_count;
  }
  double ours = (seconds_now() - start) / solves;
  const uint32_t fills = 2000000 / (flows * bench.links) + 3;
  start = seconds_now();
  for (uint32_t i = 0; i < fills; i++)
    plain_fill(&bench, capacity);
  double plain = (seconds_now() - start) / fills;
  double worst = bench_disagreement(&bench, capacity);
  printf("%-22s %6u %10.2f %10.2f %7.1f %9.1f %8.1f %11.1e\n", name, flows, ours * 1e6, plain * 1e6,
         plain / ours, levels / solves, moved / solves, worst);
  fair_share_free(bench.fair);
  g_rand_free(bench.random);
  return worst < 1e-9;
}

int main(void)
{
  printf("fair share: one solve after a change, us; the yardstick fills everything\n");
  printf("%-22s %6s %10s %10s %7s %9s %8s %11s\n", "", "flows", "ours, us", "fill, us", "ratio", "links",
         "moved", "difference");
  gboolean good = bench_case("16 hosts", 16, 16, 32, 1);
  good = bench_case("64 hosts", 64, 64, 128, 1) && good;
  good = bench_case("256 hosts", 256, 256, 512, 1) && good;
  good = bench_case("cluster, 16 loads", 4, 16, 64, 4) && good;
  good = bench_case("cluster, 128 loads", 4, 16, 512, 4) && good;
  return good ? 0 : 1;
}
