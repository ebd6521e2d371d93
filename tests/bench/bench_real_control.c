/* Requests a second that a controller's process can dispatch: the real controller behind the real hub, over
 * encrypted connections, its I/O thread on the same one core. Executors that answer each DISPATCH with DONE
 * at once, and the client, are links of another process on the other core.
 *
 * First a closed loop finds what it can do. Then a steady load of GOAL_RPS measures the way of a request from
 * the client's call to the executor's: both hops, both ends' encryption, every queue between, and the
 * controller. The time in the controller's process is a part of that. With
 * other programs on the two processors it waits for them by their time slices, milliseconds each: how much
 * they ran stands beside it. */
#include <glib/gstdio.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend_real/control.h"
#include "core/controller.h"
#include "core/units.h"
#include "harness/histogram.h"
#include "harness/setup.h"

enum { EXECUTORS = 4, GPUS = 16, OUTSTANDING = 512, STAMPS = 1 << 20, RUN = 1 };

#define GOAL_RPS    50000.0
#define GOAL_P99_NS NS_PER_MS
#define QUIET       0.1 /* of a processor: others may use so much */
#define BURST_NS    (200 * NS_PER_US)
#define PHASE_NS    (5 * NS_PER_S)

static const char experiment_text[] =
    "[experiment]\nname = bench\nsystems = ideal\n[cluster]\nhardware = h200\ngpu_servers = 4\n"
    "gpus_per_server = 16\nmemory_servers = 1\n[models]\nresnet152 = 128\n[workload]\nkind = poisson\n"
    "rate_rps = 1\nduration_s = 1\n";

static void check(gboolean good, const GError *error)
{
  if (!good)
    g_error("bench: %s", error ? error->message : "failed");
}

/* The n-th processor that this process may use; -1: there are not so many. */
static int processor(int n)
{
  static cpu_set_t may; /* as it was before anybody was pinned */
  if (CPU_COUNT(&may) == 0 && sched_getaffinity(0, sizeof may, &may) != 0)
    return -1;
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
    if (CPU_ISSET(cpu, &may) && n-- == 0)
      return cpu;
  return -1;
}

/* Seconds that programs ran on the n-th processor, whosever, and that the machine below took away. */
static double busy_seconds(int n)
{
  g_autofree char *text = NULL, *name = g_strdup_printf("cpu%d ", processor(n));
  if (!g_file_get_contents("/proc/stat", &text, NULL, NULL))
    return 0;
  const char *line = strstr(text, name);
  /* user, nice, system, idle, waiting, interrupts (two kinds), taken away; in ticks */
  unsigned long long t[8] = {0};
  if (line)
    sscanf(line + strlen(name), "%llu %llu %llu %llu %llu %llu %llu %llu", &t[0], &t[1], &t[2], &t[3], &t[4],
           &t[5], &t[6], &t[7]);
  return (double)(t[0] + t[1] + t[2] + t[7]) / (double)sysconf(_SC_CLK_TCK);
}

/* The calling thread, and all that it starts, on the n-th processor that this process may use; FALSE: there
 * are not so many. */
static gboolean pin(int n)
{
  cpu_set_t one;
  CPU_ZERO(&one);
  if (processor(n) < 0)
    return FALSE;
  CPU_SET(processor(n), &one);
  return sched_setaffinity(0, sizeof one, &one) == 0;
}

static struct setup *make_setup(const char *folder)
{
  g_autoptr(GError) error = NULL;
  g_autofree char *file = g_build_filename(folder, "bench.ini", NULL);
  check(g_file_set_contents(file, experiment_text, -1, &error), error);
  struct experiment *experiment = experiment_load(file, "ideal", NULL, &error);
  check(experiment != NULL, error);
  g_unlink(file);
  const uint32_t can = WORLD_SSD | WORLD_PAGEABLE | WORLD_SPACE_SHARING | WORLD_UNBOUNDED_MEMORY;
  struct setup *setup = setup_new(experiment, can, FALSE, &error);
  check(setup != NULL, error);
  return setup;
}

static void set_limits(const struct setup *setup, struct message_limits *limits)
{
  message_limits_init(limits, catalog_models(setup->catalog), GPUS, setup->config.memory_servers);
}

/* --- the controller's process
 * ----------------------------------------------------------------------------------------*/

struct host {
  struct world world;
  struct loop *loop;
  struct hub *hub;
  struct controller *controller;
};

static int64_t host_now(struct world *world)
{
  return loop_now(((struct host *)world)->loop);
}

static void host_due(void *context, uint64_t tag)
{
  controller_actor.timer(((struct host *)context)->controller, tag);
}

static timer_id host_timer(struct world *world, int64_t delay_ns, uint64_t tag)
{
  struct host *host = (struct host *)world;
  return loop_timer(host->loop, loop_now(host->loop) + delay_ns, host_due, host, tag);
}

static void host_timer_cancel(struct world *world, timer_id timer)
{
  loop_timer_cancel(((struct host *)world)->loop, timer);
}

static void host_send(struct world *world, actor_id to, const struct message *message)
{
  hub_message(((struct host *)world)->hub, to, RUN, message);
}

/* A controller uses no more of a world than this. */
static const struct world_ops host_ops = {
    .now = host_now, .timer = host_timer, .timer_cancel = host_timer_cancel, .send = host_send};

static const char *host_joined(void *context, actor_id peer, const struct hello *hello)
{
  (void)context, (void)peer, (void)hello;
  return NULL;
}

static void host_frame(void *context, actor_id peer, enum frame_kind kind, const uint8_t *data, size_t size)
{
  (void)context, (void)peer, (void)kind, (void)data, (void)size;
}

static void host_message(void *context, actor_id peer, uint32_t run, const struct message *message)
{
  (void)run;
  controller_actor.message(((struct host *)context)->controller, peer, message);
}

static void host_lost(void *context, actor_id peer, const char *why)
{
  (void)why;
  if (ACTOR_KIND(peer) == ACTOR_CLIENT)
    loop_quit(((struct host *)context)->loop);
}

static const struct hub_ops host_hub_ops = {
    .joined = host_joined, .frame = host_frame, .message = host_message, .lost = host_lost};

/* Tells on `out` where it listens. */
static void run_controller(const struct setup *setup, const struct key_pair *keys, const char *authorized,
                           int out)
{
  g_autoptr(GError) error = NULL;
  struct message_limits limits;
  struct host host = {.world.ops = &host_ops, .loop = loop_new()};
  const struct hub_config config = {.endpoint = "tcp://127.0.0.1:*", .keys = keys, .authorized = authorized};
  host.hub = hub_new(host.loop, &config, &host_hub_ops, &host, &error);
  check(host.hub != NULL, error);
  set_limits(setup, &limits);
  hub_set_limits(host.hub, RUN, &limits);
  host.controller = controller_new(&setup->config, &host.world);
  controller_actor.start(host.controller);
  const char *endpoint = hub_endpoint(host.hub);
  check(write(out, endpoint, strlen(endpoint) + 1) > 0, NULL);
  loop_run(host.loop);
  controller_free(host.controller);
  hub_free(host.hub);
  loop_free(host.loop);
}

/* --- the load's process
 * ----------------------------------------------------------------------------------------------*/

struct load {
  struct loop *loop;
  const struct setup *setup;
  struct link *client, *executor[EXECUTORS];
  int welcomes;
  uint64_t sent, answered;
  uint64_t failed;
  int64_t *stamp;                /* [STAMPS] when the request was sent */
  struct histogram *way, *round; /* client to executor; and back */
  gboolean closed, measuring;
  int64_t until, next;
  pid_t controller;
  /* Of the last phase: processor time of the controller's process, and of others on the two processors. */
  double seconds, controller_s, own_s, others_s;
};

struct executor {
  struct load *load;
  int index;
};

static int64_t clock_ns(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

/* User and system time of a process, all its threads. */
static double processor_seconds(pid_t process)
{
  clockid_t clock;
  struct timespec t;
  if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &t) != 0)
    return 0;
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void send_request(struct load *load)
{
  const uint32_t models = catalog_models(load->setup->catalog);
  struct message m = {.type = MESSAGE_REQUEST,
                      .request = {.id = load->sent,
                                  .model = (uint32_t)(load->sent * 2654435761U % models),
                                  .slot = NO_INDEX}};
  load->stamp[load->sent++ % STAMPS] = clock_ns();
  link_message(load->client, RUN, &m);
}

static void welcome(void *context)
{
  struct load *load = context;
  if (++load->welcomes == EXECUTORS + 1)
    loop_quit(load->loop);
}

static void executor_welcome(void *context)
{
  const struct executor *e = context;
  struct message m = {.type = MESSAGE_JOIN, .join = {.epoch = 1}};
  link_message(e->load->executor[e->index], RUN, &m);
  welcome(e->load);
}

static void no_frame(void *context, enum frame_kind kind, const uint8_t *data, size_t size)
{
  (void)context, (void)kind, (void)data, (void)size;
}

static void executor_message(void *context, uint32_t run, const struct message *message)
{
  const struct executor *e = context;
  const struct message_dispatch *d = &message->dispatch;
  (void)run;
  if (message->type != MESSAGE_DISPATCH)
    return;
  if (e->load->measuring)
    histogram_add(e->load->way, clock_ns() - e->load->stamp[d->id % STAMPS]);
  struct message m = {
      .type = MESSAGE_DONE,
      .done = {.id = d->id, .tag = d->tag, .attempt = d->attempt, .outcome = OUTCOME_COMPLETED}};
  link_message(e->load->executor[e->index], RUN, &m);
}

static void client_message(void *context, uint32_t run, const struct message *message)
{
  struct load *load = context;
  (void)run;
  if (message->type != MESSAGE_ANSWER)
    return;
  load->answered++;
  load->failed += message->answer.outcome != OUTCOME_COMPLETED;
  if (load->measuring)
    histogram_add(load->round, clock_ns() - load->stamp[message->answer.id % STAMPS]);
  if (load->closed)
    send_request(load);
}

static void lost(void *context, const char *why)
{
  (void)context;
  g_error("bench: a link was lost: %s", why);
}

static const struct link_ops client_ops = {
    .welcome = welcome, .frame = no_frame, .message = client_message, .lost = lost};
static const struct link_ops executor_ops = {
    .welcome = executor_welcome, .frame = no_frame, .message = executor_message, .lost = lost};

static struct link *connect_link(struct load *load, const struct link_config *config, enum actor_kind role,
                                 uint32_t index, const struct link_ops *ops, void *context)
{
  g_autoptr(GError) error = NULL;
  struct message_limits limits;
  const struct hello hello = {.role = role, .index = index, .epoch = 1};
  struct link *link = link_new(load->loop, config, &hello, ops, context, &error);
  check(link != NULL, error);
  set_limits(load->setup, &limits);
  link_set_limits(link, RUN, &limits);
  return link;
}

static void stop(void *context, uint64_t tag)
{
  struct load *load = context;
  (void)tag;
  load->closed = load->measuring = FALSE;
  load->until = 0;
  loop_quit(load->loop);
}

/* Requests come in small bursts: a client that woke for each would keep its own I/O threads, which share its
 * processor here, from theirs. */
static void send_due(void *context, uint64_t tag)
{
  struct load *load = context;
  const int64_t now = loop_now(load->loop), gap = (int64_t)(NS_PER_S / GOAL_RPS);
  (void)tag;
  if (load->until == 0)
    return;
  for (; load->next <= now; load->next += gap)
    send_request(load);
  loop_timer(load->loop, now + BURST_NS, send_due, load, 0);
}

/* Requests a second. */
static double phase(struct load *load, gboolean closed)
{
  double controller = processor_seconds(load->controller), own = processor_seconds(getpid());
  double busy = busy_seconds(0) + busy_seconds(1);
  uint64_t before = load->answered;
  int64_t began = loop_now(load->loop);
  load->closed = closed;
  load->measuring = !closed;
  load->until = began + PHASE_NS;
  load->next = began;
  for (int i = 0; closed && i < OUTSTANDING; i++)
    send_request(load);
  if (!closed)
    send_due(load, 0);
  loop_timer(load->loop, load->until, stop, load, 0);
  loop_run(load->loop);
  load->seconds = (double)(loop_now(load->loop) - began) / (double)NS_PER_S;
  load->controller_s = processor_seconds(load->controller) - controller;
  load->own_s = processor_seconds(getpid()) - own;
  load->others_s = busy_seconds(0) + busy_seconds(1) - busy - load->controller_s - load->own_s;
  return (double)(load->answered - before) / load->seconds;
}

/* What is in flight after a phase ends; all of it must. */
static void settle(struct load *load)
{
  loop_timer(load->loop, loop_now(load->loop) + 500 * NS_PER_MS, stop, load, 0);
  loop_run(load->loop);
  if (load->answered != load->sent || load->failed > 0)
    g_error("bench: %" G_GUINT64_FORMAT " requests, %" G_GUINT64_FORMAT " answered, %" G_GUINT64_FORMAT
            " of them failed",
            load->sent, load->answered, load->failed);
}

static void print_figure(const char *name, double value)
{
  printf("%-58s %10.3f\n", name, value);
}

static void print_goal(const char *name, double value, double goal)
{
  printf("%-58s %10.3f %10.3f %6.2f\n", name, value, goal, value / goal);
}

static gboolean report(struct load *load, gboolean two_processors)
{
  double most = phase(load, TRUE);
  print_goal("dispatched, closed loop, thousand requests/s", most / 1e3, GOAL_RPS / 1e3);
  print_figure("  processor time of the controller's process, us/request",
               load->controller_s * 1e6 / (most * load->seconds));
  settle(load);
  double steady = phase(load, FALSE);
  double p99 = (double)histogram_quantile(load->way, 0.99);
  print_goal("answered, steady load, thousand requests/s", steady / 1e3, GOAL_RPS / 1e3);
  print_figure("  processors used by the controller's process", load->controller_s / load->seconds);
  print_figure("  processors used by the load's process", load->own_s / load->seconds);
  print_figure("  client to executor through the controller, p50, ms",
               (double)histogram_quantile(load->way, 0.5) / 1e6);
  print_goal("  client to executor through the controller, p99, ms", p99 / 1e6, (double)GOAL_P99_NS / 1e6);
  print_figure("  and back to the client, p99, ms", (double)histogram_quantile(load->round, 0.99) / 1e6);
  print_figure("  processors used by other programs, of the two", MAX(0, load->others_s) / load->seconds);
  settle(load);
  if (!two_processors || load->others_s > QUIET * load->seconds)
    printf("the processors are not ours alone: the p99 is reported, not judged\n");
  else if (p99 > (double)GOAL_P99_NS)
    return FALSE;
  return !two_processors || (most >= GOAL_RPS && steady >= 0.99 * GOAL_RPS);
}

static gboolean run_load(const struct setup *setup, const struct key_pair *hub_keys,
                         const struct key_pair *keys, const char *endpoint, pid_t controller, gboolean judged)
{
  struct executor executor[EXECUTORS];
  struct load load = {.loop = loop_new(),
                      .setup = setup,
                      .stamp = g_new0(int64_t, STAMPS),
                      .way = histogram_new(),
                      .round = histogram_new(),
                      .controller = controller};
  const struct link_config config = {.endpoint = endpoint,
                                     .keys = keys,
                                     .server_key = hub_keys->public_key,
                                     .connect_timeout_ns = 10 * NS_PER_S};
  for (int i = 0; i < EXECUTORS; i++) {
    executor[i] = (struct executor){&load, i};
    load.executor[i] =
        connect_link(&load, &config, ACTOR_GPU_SERVER, (uint32_t)i, &executor_ops, &executor[i]);
  }
  load.client = connect_link(&load, &config, ACTOR_CLIENT, 0, &client_ops, &load);
  /* This thread only (Linux): the links' own threads, on its processor, are not to wait for its time slices.
   */
  setpriority(PRIO_PROCESS, 0, 10);
  loop_run(load.loop);
  gboolean good = report(&load, judged);
  link_free(load.client);
  for (int i = 0; i < EXECUTORS; i++)
    link_free(load.executor[i]);
  loop_free(load.loop);
  histogram_free(load.way);
  histogram_free(load.round);
  g_free(load.stamp);
  return good;
}

/* --- both
 * ---------------------------------------------------------------------------------------------------------*/

int main(void)
{
  g_autoptr(GError) error = NULL;
  g_autofree char *folder = g_dir_make_tmp("distmind-bench-XXXXXX", &error);
  check(folder != NULL, error);
  g_autofree char *name = g_build_filename(folder, "all", NULL), *public = g_strconcat(name, ".pub", NULL);
  g_autofree char *secret = g_strconcat(name, ".secret", NULL);
  struct key_pair hub_keys, keys;
  check(key_pair_generate(&hub_keys, &error) && key_pair_generate(&keys, &error) &&
            key_pair_write(&keys, name, &error),
        error);
  g_autoptr(Setup) setup = make_setup(folder);
  int ends[2];
  char endpoint[256] = "";
  check(pipe(ends) == 0, NULL);
  fflush(stdout);
  processor(0);
  pid_t controller = fork();
  check(controller >= 0, NULL);
  if (controller == 0) {
    pin(0);
    run_controller(setup, &hub_keys, folder, ends[1]);
    _exit(0);
  }
  close(ends[1]);
  gboolean judged = pin(1);
  check(read(ends[0], endpoint, sizeof endpoint - 1) > 0, NULL);
  printf("%-58s %10s %10s %6s\n", "control plane, CURVE, 4 executors of 16 GPUs", "", "goal", "ratio");
  gboolean good = run_load(setup, &hub_keys, &keys, endpoint, controller, judged);
  waitpid(controller, NULL, 0);
  g_unlink(public);
  g_unlink(secret);
  g_rmdir(folder);
  return good ? 0 : 1;
}
