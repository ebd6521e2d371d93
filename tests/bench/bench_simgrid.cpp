/* Streams and fair sharing against SimGrid, in the same run: hosts with an up and a down link on a
 * non-blocking switch, 10,000 flows of 100 MB between random distinct pairs, twice as many in flight as
 * hosts; when one ends the next starts. Prints flows a second of CPU time of both, and how far their
 * completion times lie apart; fails when that is too far.
 *
 * SimGrid as it is best at this: CM02, no latency, no TCP window, full re-solving. Each size runs in a child
 * process, for SimGrid allows one engine a process. */
#include <glib.h>
#include <simgrid/s4u.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

extern "C" {
#include "backend_sim/stream.h"
}

namespace sg4 = simgrid::s4u;

static const uint32_t FLOWS = 10000;
static const uint64_t FLOW_BYTES = 100000000;
static const double BYTES_S = 1.25e9;
static const double RELATIVE_MAX = 1e-6, ABSOLUTE_MAX_NS = 2;

struct pair_of_hosts {
  uint32_t from, to;
};

struct workload {
  uint32_t hosts;
  std::vector<pair_of_hosts> pairs;
  uint32_t started = 0;
  std::vector<int64_t> start_ns; /* fixed; empty: closed */
  std::vector<double> end_ns;
};

static double seconds_now()
{
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static workload workload_make(uint32_t hosts)
{
  workload work;
  work.hosts = hosts;
  work.end_ns.resize(FLOWS);
  GRand *random = g_rand_new_with_seed(hosts);
  for (uint32_t f = 0; f < FLOWS; f++) {
    uint32_t from = (uint32_t)g_rand_int_range(random, 0, (gint32)hosts);
    uint32_t to = (uint32_t)g_rand_int_range(random, 0, (gint32)hosts - 1);
    work.pairs.push_back({from, to + (to >= from)});
  }
  g_rand_free(random);
  return work;
}

/* --- ours --- */

enum { EVENT_STREAM, EVENT_START };

struct ours {
  workload *work;
  event_queue *queue;
  stream_net *net;
  std::vector<link_id> up, down;
};

static void ours_start(ours *run, uint32_t f, double at_ns)
{
  link_id links[] = {run->up[run->work->pairs[f].from], run->down[run->work->pairs[f].to]};
  stream_start(run->net, at_ns, links, 2, 0, &FLOW_BYTES, 1, f);
}

static void ours_ended(void *context, stream_id, uint64_t user, uint32_t, double exact_ns, gboolean)
{
  auto *run = static_cast<ours *>(context);
  run->work->end_ns[user] = exact_ns;
  if (run->work->started < FLOWS)
    ours_start(run, run->work->started++, exact_ns);
}

static void ours_loop(ours *run)
{
  int64_t now = 0;
  uint32_t kind;
  uint64_t payload;
  stream_net_settle(run->net, now);
  while (event_queue_next(run->queue) != INT64_MAX) {
    do {
      event_queue_pop(run->queue, &now, &kind, &payload);
      if (kind == EVENT_STREAM)
        stream_net_event(run->net, now, payload);
      else
        ours_start(run, (uint32_t)payload, (double)now);
    } while (event_queue_next(run->queue) == now);
    while (stream_net_settle(run->net, now))
      ;
  }
}

static double ours_seconds(workload &work)
{
  ours run{&work, event_queue_new(), nullptr, {}, {}};
  run.net = stream_net_new(run.queue, EVENT_STREAM, ours_ended, &run);
  for (uint32_t h = 0; h < work.hosts; h++) {
    run.up.push_back(stream_net_add_link(run.net, BYTES_S));
    run.down.push_back(stream_net_add_link(run.net, BYTES_S));
  }
  double start = seconds_now();
  work.started = work.start_ns.empty() ? 2 * work.hosts : FLOWS;
  for (uint32_t f = 0; f < work.started; f++) {
    if (work.start_ns.empty())
      ours_start(&run, f, 0);
    else
      event_queue_add(run.queue, work.start_ns[f], EVENT_START, f);
  }
  ours_loop(&run);
  double seconds = seconds_now() - start;
  stream_net_free(run.net);
  event_queue_free(run.queue);
  return seconds;
}

/* --- SimGrid --- */

static void simgrid_flow(workload *work, const std::vector<sg4::Host *> *hosts, uint32_t f)
{
  sg4::Comm::sendto((*hosts)[work->pairs[f].from], (*hosts)[work->pairs[f].to], FLOW_BYTES);
  work->end_ns[f] = sg4::Engine::get_clock() * 1e9;
}

static void simgrid_slot(workload *work, const std::vector<sg4::Host *> *hosts)
{
  while (work->started < FLOWS)
    simgrid_flow(work, hosts, work->started++);
}

/* Flows that start at fixed times, each in an actor of its own. */
static void simgrid_starter(workload *work, const std::vector<sg4::Host *> *hosts)
{
  for (uint32_t f = 0; f < FLOWS; f++) {
    sg4::this_actor::sleep_until((double)work->start_ns[f] / 1e9);
    sg4::Actor::create("flow", (*hosts)[0], simgrid_flow, work, hosts, f);
  }
}

static std::vector<sg4::Host *> simgrid_platform(uint32_t count)
{
  std::vector<sg4::Host *> hosts;
  std::vector<const sg4::Link *> up, down;
  auto *zone = sg4::create_full_zone("cluster");
  for (uint32_t h = 0; h < count; h++) {
    std::string name = std::to_string(h);
    hosts.push_back(zone->create_host("host" + name, 1e9)->seal());
    up.push_back(zone->create_link("up" + name, BYTES_S)->set_latency(0.0)->seal());
    down.push_back(zone->create_link("down" + name, BYTES_S)->set_latency(0.0)->seal());
  }
  for (uint32_t a = 0; a < count; a++)
    for (uint32_t b = 0; b < count; b++)
      if (a != b)
        zone->add_route(hosts[a]->get_netpoint(), hosts[b]->get_netpoint(), nullptr, nullptr,
                        {sg4::LinkInRoute(up[a]), sg4::LinkInRoute(down[b])}, false);
  zone->seal();
  return hosts;
}

static double simgrid_seconds(workload &work)
{
  const char *options[] = {"bench",
                           "--cfg=network/model:CM02",
                           "--cfg=network/TCP-gamma:0",
                           "--cfg=network/crosstraffic:0",
                           "--cfg=network/optim:Full",
                           "--cfg=surf/precision:1e-9",
                           "--cfg=maxmin/precision:1e-9",
                           "--cfg=network/bandwidth-factor:1",
                           "--cfg=network/latency-factor:1",
                           "--log=root.thres:error"};
  int count = (int)G_N_ELEMENTS(options);
  sg4::Engine engine(&count, const_cast<char **>(options));
  auto hosts = simgrid_platform(work.hosts);
  if (!work.start_ns.empty())
    sg4::Actor::create("starter", hosts[0], simgrid_starter, &work, &hosts);
  for (uint32_t i = 0; i < 2 * work.hosts && work.start_ns.empty(); i++)
    sg4::Actor::create("slot", hosts[0], simgrid_slot, &work, &hosts);
  double start = seconds_now();
  engine.run();
  return seconds_now() - start;
}

/* Start times of a closed run: flow f starts when the (f - slots)-th completion comes. */
static void workload_fix(workload &work)
{
  std::vector<double> ends = work.end_ns;
  std::sort(ends.begin(), ends.end());
  for (uint32_t f = 0; f < FLOWS; f++)
    work.start_ns.push_back(f < 2 * work.hosts ? 0 : std::llround(ends[f - 2 * work.hosts]));
}

static bool bench_times(uint32_t hosts)
{
  workload work = workload_make(hosts);
  double best = INFINITY;
  for (int round = 0; round < 3; round++)
    best = std::fmin(best, ours_seconds(work));
  work.started = 0;
  double theirs = simgrid_seconds(work);
  std::printf("%6u %14.0f %14.0f %8.1f ", hosts, FLOWS / best, FLOWS / theirs, theirs / best);
  std::fflush(stdout);
  return true;
}

/* TRUE if the completion times agree. */
static bool bench_agreement(uint32_t hosts)
{
  workload work = workload_make(hosts);
  ours_seconds(work);
  workload_fix(work);
  workload theirs = work;
  ours_seconds(work);
  simgrid_seconds(theirs);
  double relative = 0, absolute = 0;
  bool good = true;
  for (uint32_t f = 0; f < FLOWS; f++) {
    double difference = std::fabs(work.end_ns[f] - theirs.end_ns[f]);
    relative = std::fmax(relative, difference / theirs.end_ns[f]);
    absolute = std::fmax(absolute, difference);
    good = good && (difference <= ABSOLUTE_MAX_NS || difference <= RELATIVE_MAX * theirs.end_ns[f]);
  }
  std::printf("%14.3g %12.3g %s\n", relative, absolute, good ? "" : "DIFFER");
  std::fflush(stdout);
  return good;
}

static bool in_child(bool (*part)(uint32_t), uint32_t hosts)
{
  std::fflush(stdout);
  pid_t child = fork();
  if (child == 0)
    _exit(part(hosts) ? 0 : 1);
  int code = 1;
  return child > 0 && waitpid(child, &code, 0) == child && code == 0;
}

int main()
{
  std::printf("fair share and streams against SimGrid: flows/s; largest difference of completion times\n");
  std::printf("%6s %14s %14s %8s %14s %12s\n", "hosts", "ours", "SimGrid", "ratio", "relative", "ns");
  bool good = true;
  for (uint32_t hosts : {16u, 64u, 256u})
    good = in_child(bench_times, hosts) && in_child(bench_agreement, hosts) && good;
  std::printf("goal: ratio at least 3 at 16 and 64 hosts, 5 at 256; times equal to 1e-6 or 2 ns\n");
  return good ? 0 : 1;
}
