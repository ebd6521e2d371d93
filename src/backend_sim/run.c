/* One system's run in the simulator; see run.h. */
#include "backend_sim/run.h"

#include <time.h>

#include "backend_sim/sim.h"
#include "core/error.h"
#include "harness/metrics.h"
#include "harness/progress.h"
#include "harness/workload.h"

/* Points of the usage series, where the length of the run is known; else one a second. */
#define USAGE_POINTS 1000

/* Half of what 64 bits hold: no sum of a time up to now and one of an input passes their end. */
#define RUN_MAX_NS (4000000000 * NS_PER_S)

struct run {
  const struct setup *setup;
  const struct experiment *experiment;
  const struct run_outputs *outputs;
  struct sim *sim;
  struct workload *workload;
  struct metrics *metrics;
  int64_t warmup, end; /* end: of the window, TIME_NEVER while it is not known */
  int64_t sample, next_sample;
  uint32_t next_event, servers, memory_servers; /* servers: that there are by now */
  struct usage at_warmup, at_end, at_sample;
  int64_t sampled_at;
  uint64_t completed, rejected, failed; /* at the last sample */
};

/* --- listeners
 * ------------------------------------------------------------------------------------------------------*/

static void on_record(void *context, const struct record *record)
{
  struct run *run = context;
  if (run->outputs->store && run->experiment->decisions)
    store_decision(run->outputs->store, record);
  if (run->outputs->timeline)
    timeline_record(run->outputs->timeline, record);
}

static void on_request(void *context, const struct request_row *row)
{
  struct run *run = context;
  uint64_t every = run->experiment->requests_sample;
  metrics_request(run->metrics, row);
  if (run->outputs->store && every > 0 && row->id % every == 0)
    store_request(run->outputs->store, row);
}

static void on_finished(void *context)
{
  sim_stop(((struct run *)context)->sim);
}

/* --- the client: the workload, watched for the last arrival, which is the end of the window where nobody
 * knew it beforehand
 * --------------------------------------------------------------------------------------*/

static void learn_end(struct run *run)
{
  int64_t span = workload_span_ns(run->workload);
  if (run->end != TIME_NEVER || span < 0)
    return;
  run->end = MAX(run->warmup, span);
  metrics_end(run->metrics, run->end);
  if (sim_now(run->sim) >= run->end)
    sim_usage(run->sim, &run->at_end);
  sim_stop(run->sim); /* it has to stop at the end from now on */
}

static void client_start(void *actor)
{
  struct run *run = actor;
  workload_actor.start(run->workload);
  learn_end(run);
}

static void client_message(void *actor, actor_id from, const struct message *message)
{
  workload_actor.message(((struct run *)actor)->workload, from, message);
}

static void client_timer(void *actor, uint64_t tag)
{
  struct run *run = actor;
  workload_actor.timer(run->workload, tag);
  learn_end(run);
}

static void client_completion(void *actor, const struct completion *completion)
{
  workload_actor.completion(((struct run *)actor)->workload, completion);
}

static void client_peer_lost(void *actor, actor_id peer)
{
  workload_actor.peer_lost(((struct run *)actor)->workload, peer);
}

static const struct actor_ops client = {.start = client_start,
                                        .message = client_message,
                                        .timer = client_timer,
                                        .completion = client_completion,
                                        .peer_lost = client_peer_lost};

/* --- meters
 * ---------------------------------------------------------------------------------------------------------*/

static void take_sample(struct run *run)
{
  struct usage now, *last = &run->at_sample;
  int64_t time = sim_now(run->sim);
  double span = (double)(time - run->sampled_at);
  if (span <= 0)
    return;
  uint64_t completed, rejected, failed;
  sim_usage(run->sim, &now);
  metrics_counts(run->metrics, &completed, &rejected, &failed);
  struct usage_row row;
  usage_interval(last, &now, time, span, &row);
  row.completed = completed - run->completed;
  row.rejected = rejected - run->rejected;
  row.failed = failed - run->failed;
  store_usage(run->outputs->store, &row);
  *last = now;
  run->sampled_at = time;
  run->completed = completed;
  run->rejected = rejected;
  run->failed = failed;
}

/* --- events of the experiment
 * ---------------------------------------------------------------------------------------*/

static void add_servers(struct run *run, const struct experiment_event *event)
{
  for (uint32_t i = 0; i < event->number; i++)
    if (event->member == MEMBER_MEMORY_SERVER)
      sim_add_memory_server(run->sim, run->memory_servers++);
    else
      sim_add_gpu_server(run->sim, run->servers++);
}

static void lose_server(struct run *run, const struct experiment_event *event)
{
  gboolean memory = event->member == MEMBER_MEMORY_SERVER;
  if (event->number >= (memory ? run->memory_servers : run->servers))
    return; /* checked when the experiment was read; one that was not added yet cannot be lost */
  if (event->kind == EVENT_REMOVE)
    sim_remove(run->sim, memory ? ACTOR_MEMORY_SERVER : ACTOR_GPU_SERVER, event->number);
  else if (memory)
    sim_fail_memory_server(run->sim, event->number);
  else
    sim_fail_gpu_server(run->sim, event->number);
}

static void apply_event(struct run *run, const struct experiment_event *event)
{
  if (event->kind == EVENT_ADD)
    add_servers(run, event);
  else if (event->kind != EVENT_SET)
    lose_server(run, event);
  else if (g_str_has_suffix(event->key, ".memory_nic_gbit_s"))
    sim_set_memory_nic(run->sim, gbit_to_bytes_per_s(event->value));
  else if (g_str_has_suffix(event->key, ".nic_gbit_s"))
    sim_set_nic(run->sim, gbit_to_bytes_per_s(event->value));
  else if (g_str_has_suffix(event->key, ".pcie_gbyte_s"))
    sim_set_pcie(run->sim, event->value * 1e9);
  else
    sim_set_host_cache(run->sim, (uint64_t)(event->value * 1e9 + 0.5));
}

/* --- the run
 * --------------------------------------------------------------------------------------------------------*/

static int64_t next_stop(const struct run *run)
{
  int64_t now = sim_now(run->sim), stop = run->next_sample;
  if (run->next_event < run->experiment->events)
    stop = MIN(stop, run->experiment->event[run->next_event].at_ns);
  if (run->warmup > now)
    stop = MIN(stop, run->warmup);
  if (run->end > now)
    stop = MIN(stop, run->end);
  return stop;
}

static void at_stop(struct run *run)
{
  int64_t now = sim_now(run->sim);
  if (now == run->warmup)
    sim_usage(run->sim, &run->at_warmup);
  if (now == run->end)
    sim_usage(run->sim, &run->at_end);
  while (run->next_event < run->experiment->events && run->experiment->event[run->next_event].at_ns <= now)
    apply_event(run, &run->experiment->event[run->next_event++]);
  if (now >= run->next_sample) {
    if (run->outputs->store && run->experiment->usage)
      take_sample(run);
    /* After the window (training jobs may go on for months) points grow apart with the time that has passed.
     */
    run->next_sample = now + MAX(run->sample, now / USAGE_POINTS);
  }
}

/* Jobs are done, or no GPU is left for them and none will come. */
static gboolean jobs_are_over(const struct run *run)
{
  const struct controller *controller = sim_controller(run->sim);
  if (controller_jobs_seen(controller) < workload_jobs(run->workload))
    return FALSE;
  gboolean hope = sim_gpu_servers(run->sim) > 0;
  for (uint32_t i = run->next_event; i < run->experiment->events && !hope; i++)
    hope =
        run->experiment->event[i].kind == EVENT_ADD && run->experiment->event[i].member == MEMBER_GPU_SERVER;
  return controller_jobs_left(controller) == 0 || !hope;
}

/* Nothing more will come of the run. */
static gboolean is_over(const struct run *run)
{
  return workload_error(run->workload) || (workload_finished(run->workload) && jobs_are_over(run) &&
                                           (run->end == TIME_NEVER || sim_now(run->sim) >= run->end));
}

/* FALSE: interrupted, or *error is set. */
static gboolean simulate(struct run *run, struct progress *progress, GError **error)
{
  while (!is_over(run)) {
    if (*run->outputs->interrupted)
      return FALSE;
    if (sim_now(run->sim) > RUN_MAX_NS) {
      g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "system %s: there is more work than can be done in %g s",
                  run->experiment->system, (double)RUN_MAX_NS / NS_PER_S);
      return FALSE;
    }
    sim_run(run->sim, next_stop(run));
    at_stop(run);
    progress_update(progress, sim_now(run->sim), workload_ended(run->workload));
  }
  return TRUE;
}

static double wall_seconds(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static char *all_notices(const struct run *run)
{
  g_autoptr(GPtrArray) lines = workload_notices(run->workload);
  if (*run->setup->notices)
    g_ptr_array_insert(lines, 0, g_strdup(run->setup->notices));
  uint64_t left = controller_jobs_left(sim_controller(run->sim));
  if (left > 0)
    g_ptr_array_add(lines, g_strdup_printf("%" G_GUINT64_FORMAT " training jobs were not finished%s", left,
                                           sim_gpu_servers(run->sim) > 0 ? "" : ": no GPU server was left"));
  g_ptr_array_add(lines, NULL);
  return g_strjoinv("\n", (char **)lines->pdata);
}

static void run_init(struct run *run)
{
  const struct config *config = &run->setup->config;
  int64_t span = workload_span_ns(run->workload);
  run->warmup = run->experiment->warmup_ns;
  run->end = span < 0 ? TIME_NEVER : MAX(span, run->warmup);
  run->metrics = metrics_new(run->warmup, run->end);
  run->sample = span > 0 ? MAX(span / USAGE_POINTS, 10 * NS_PER_MS) : NS_PER_S;
  run->next_sample = run->sample;
  run->servers = config->servers_at_start;
  run->memory_servers = config->memory_servers_at_start;
  workload_on_finished(run->workload, on_finished, run);
}

static gboolean finish(struct run *run, gboolean whole, struct figures *figures, char **notices,
                       GError **error)
{
  struct usage now;
  if (workload_error(run->workload)) {
    g_propagate_error(error, g_error_copy(workload_error(run->workload)));
    return FALSE;
  }
  if (!whole) {
    workload_interrupt(run->workload);
    if (run->end > sim_now(run->sim)) {
      run->end = sim_now(run->sim);
      sim_usage(run->sim, &run->at_end);
      metrics_end(run->metrics, run->end);
    }
  }
  if (run->outputs->store && run->experiment->usage)
    take_sample(run);
  metrics_figures(run->metrics, figures);
  sim_usage(run->sim, &now);
  usage_figures(&run->at_warmup, &run->at_end, &now, figures);
  *notices = all_notices(run);
  return TRUE;
}

gboolean run_system(const struct setup *setup, const struct run_info *info, const struct run_outputs *outputs,
                    struct figures *figures, char **notices, GError **error)
{
  struct run run = {.setup = setup, .experiment = setup->experiment, .outputs = outputs};
  gboolean records = outputs->timeline || (outputs->store && setup->experiment->decisions);
  struct sim_options options = {.record = records ? on_record : NULL,
                                .record_context = &run,
                                .clock_offset_ns = outputs->clock_offset_ns};
  double began = wall_seconds();
  run.sim = sim_new(&setup->config, &options);
  run.workload = workload_new(setup, sim_client_world(run.sim), on_request, &run, error);
  gboolean good = run.workload != NULL;
  if (good) {
    run_init(&run);
    sim_set_client(run.sim, &client, &run);
    if (outputs->timeline)
      timeline_begin_run(outputs->timeline, info->system, setup->catalog, setup->config.gpus);
    struct progress *progress =
        progress_new(run.end == TIME_NEVER ? 0 : run.end, info->system, outputs->quiet);
    if (run.warmup == 0)
      sim_usage(run.sim, &run.at_warmup);
    sim_start(run.sim);
    g_autoptr(GError) failure = NULL;
    gboolean whole = simulate(&run, progress, &failure);
    progress_free(progress);
    good = !failure && finish(&run, whole, figures, notices, error);
    if (failure)
      g_propagate_error(error, g_steal_pointer(&failure));
    figures->wall_s = wall_seconds() - began;
  }
  metrics_free(run.metrics);
  workload_free(run.workload);
  sim_free(run.sim);
  return good;
}
