/* The client; see client.h. */
#include "backend_real/client.h"

#include <string.h>
#include "backend_real/real_world.h"
#include "core/error.h"
#include "harness/metrics.h"
#include "harness/progress.h"
#include "harness/usage.h"
#include "harness/workload.h"

#define USAGE_POINTS 1000
#define TICK_NS      (50 * NS_PER_MS) /* Ctrl-C, progress, what is over */
#define END_NS       (10 * NS_PER_S)  /* for the controller to sum up */

enum run_state { STATE_BEGINNING, STATE_ON, STATE_ENDING, STATE_OVER };
enum meter_purpose { METER_WARMUP = 1, METER_END, METER_SAMPLE };

struct client_run {
  const struct client_options *options;
  const struct setup *setup;
  const struct experiment *experiment;
  const struct run_outputs *outputs;
  struct workload *workload;
  struct metrics *metrics;
  struct progress *progress;
  struct real_world *rw;
  enum run_state state;
  uint32_t number; /* of the run, once it is ready */
  char *ready;     /* what the servers are */
  GError *error;
  int64_t start, warmup, end; /* start: clock; the others from there */
  int64_t sample, next_sample, deadline;
  uint32_t next_event;
  uint32_t wanted; /* bits of enum meter_purpose, not yet asked */
  gboolean asking;
  gboolean asked_warmup, asked_end, told_end, whole;
  uint64_t jobs_left, jobs_seen;
  struct usage at_warmup, at_end, at_sample, now;
  int64_t sampled_at;
  uint64_t completed, rejected, failed;
  GArray *asked_at; /* of int64_t: time of each METER, by its number >> 2 */
};

struct client {
  struct loop *loop;
  struct link *link;
  gboolean welcome;
  char *lost;
  struct client_run *run;
};

static void frame_send(struct client *c, enum frame_kind kind, GBytes *bytes)
{
  gsize size;
  const void *data = g_bytes_get_data(bytes, &size);
  link_send(c->link, kind, data, size);
  g_bytes_unref(bytes);
}

static int64_t run_now(const struct client *c)
{
  return loop_now(c->loop) - c->run->start;
}

static void run_fail(struct client *c, GError *error)
{
  struct client_run *run = c->run;
  if (run->error)
    g_error_free(error);
  else
    run->error = error;
  run->state = STATE_OVER;
  loop_quit(c->loop);
}

/* --- the load
 * -------------------------------------------------------------------------------------------------------*/

static void send_message(void *context, actor_id to, const struct message *message)
{
  struct client *c = context;
  (void)to; /* the controller is the only one that it knows */
  link_message(c->link, c->run->number, message);
}

static void on_request(void *context, const struct request_row *row)
{
  struct client_run *run = context;
  uint64_t every = run->experiment->requests_sample;
  metrics_request(run->metrics, row);
  if (run->outputs->store && every > 0 && row->id % every == 0)
    store_request(run->outputs->store, row);
}

/* --- meters
 * ---------------------------------------------------------------------------------------------------------*/

/* One question at a time: the controller sums up the answers to one. */
static void ask_next(struct client *c)
{
  struct client_run *run = c->run;
  if (run->asking || run->wanted == 0)
    return;
  uint32_t purpose = (uint32_t)__builtin_ctz(run->wanted);
  uint32_t number = run->asked_at->len << 2 | purpose;
  int64_t now = run_now(c);
  run->wanted &= ~(1U << purpose);
  run->asking = TRUE;
  g_array_append_val(run->asked_at, now);
  frame_send(c, FRAME_METER, run_numbers_pack(run->number, number));
}

static void ask(struct client *c, enum meter_purpose purpose)
{
  c->run->wanted |= 1U << purpose;
  ask_next(c);
}

static void take_sample(struct client *c, int64_t time)
{
  struct client_run *run = c->run;
  double span = (double)(time - run->sampled_at);
  uint64_t completed, rejected, failed;
  struct usage_row row;
  if (span <= 0 || !run->outputs->store || !run->experiment->usage)
    return;
  metrics_counts(run->metrics, &completed, &rejected, &failed);
  usage_interval(&run->at_sample, &run->now, time, span, &row);
  row.completed = completed - run->completed;
  row.rejected = rejected - run->rejected;
  row.failed = failed - run->failed;
  store_usage(run->outputs->store, &row);
  run->at_sample = run->now;
  run->sampled_at = time;
  run->completed = completed;
  run->rejected = rejected;
  run->failed = failed;
}

static void meter_came(struct client *c, const struct run_meter *meter, gboolean last)
{
  struct client_run *run = c->run;
  uint32_t index = meter->number >> 2;
  enum meter_purpose purpose = (enum meter_purpose)(meter->number & 3);
  run->now = meter->usage;
  run->now.events = run->asked_at->len;
  run->jobs_left = meter->jobs_left;
  run->jobs_seen = meter->jobs_seen;
  if (*meter->failure)
    run_fail(c, g_error_new(DM_ERROR, DM_ERROR_FAILED, "%s", meter->failure));
  if (last) {
    take_sample(c, run_now(c));
    return;
  }
  if (!run->asking || index + 1 != run->asked_at->len)
    return;
  if (purpose == METER_WARMUP)
    run->at_warmup = run->now;
  else if (purpose == METER_END)
    run->at_end = run->now, run->told_end = TRUE;
  else if (purpose == METER_SAMPLE)
    take_sample(c, g_array_index(run->asked_at, int64_t, index));
  run->asking = FALSE;
  ask_next(c);
}

/* --- events
 * ---------------------------------------------------------------------------------------------------------*/

static void remove_server(struct client *c, const struct experiment_event *event)
{
  struct message m = {
      .type = MESSAGE_REMOVE,
      .remove = {.kind = event->member == MEMBER_GPU_SERVER ? ACTOR_GPU_SERVER : ACTOR_MEMORY_SERVER,
                 .index = event->number}};
  link_message(c->link, c->run->number, &m);
}

static void apply_event(struct client *c, const struct experiment_event *event)
{
  struct client_run *run = c->run;
  GError *error = NULL;
  if (event->kind == EVENT_REMOVE)
    remove_server(c, event);
  else if (!run->options->event(run->options->context, event, &error))
    run_fail(c, error);
}

static gboolean events_can_be(const struct client_run *run, GError **error)
{
  for (uint32_t i = 0; i < run->experiment->events; i++) {
    const struct experiment_event *event = &run->experiment->event[i];
    if (event->kind == EVENT_SET || (event->kind != EVENT_REMOVE && !run->options->event))
      return input_error(error, run->experiment->path, 0,
                         "event %s: expected one that can be had here (%s), found another", event->name,
                         run->options->event ? "add, remove, fail" : "remove; add and fail need --local");
  }
  return TRUE;
}

/* --- the course of a run
 * --------------------------------------------------------------------------------------------*/

static gboolean is_over(const struct client *c)
{
  const struct client_run *run = c->run;
  return workload_error(run->workload) ||
         (run->told_end && workload_finished(run->workload) && run->jobs_left == 0 &&
          run->jobs_seen >= workload_jobs(run->workload));
}

static void run_end(struct client *c)
{
  struct client_run *run = c->run;
  run->state = STATE_ENDING;
  run->deadline = loop_now(c->loop) + END_NS;
  frame_send(c, FRAME_END, run_numbers_pack(run->number, 0));
}

/* The end of the window was not known beforehand: the last arrival. */
static void learn_end(struct client *c)
{
  struct client_run *run = c->run;
  if (run->end != TIME_NEVER || workload_span_ns(run->workload) < 0)
    return;
  run->end = MAX(run->warmup, workload_span_ns(run->workload));
  metrics_end(run->metrics, run->end);
}

static void run_on(struct client *c)
{
  struct client_run *run = c->run;
  int64_t now = run_now(c);
  learn_end(c);
  if (!run->asked_warmup && now >= run->warmup) {
    run->asked_warmup = TRUE;
    ask(c, METER_WARMUP);
  }
  if (!run->asked_end && now >= run->end) {
    run->asked_end = TRUE;
    ask(c, METER_END);
  }
  while (run->next_event < run->experiment->events && run->experiment->event[run->next_event].at_ns <= now)
    apply_event(c, &run->experiment->event[run->next_event++]);
  if (now >= run->next_sample) {
    ask(c, METER_SAMPLE);
    run->next_sample = now + MAX(run->sample, now / USAGE_POINTS);
  }
  progress_update(run->progress, now, workload_ended(run->workload));
  if (is_over(c)) {
    run->whole = TRUE;
    run_end(c);
  }
}

/* When something is due next, at most a tick from now. */
static int64_t next_look(const struct client *c)
{
  const struct client_run *run = c->run;
  int64_t now = loop_now(c->loop), at = now + TICK_NS;
  if (run->state != STATE_ON)
    return at;
  if (!run->asked_warmup)
    at = MIN(at, run->start + run->warmup);
  if (!run->asked_end && run->end != TIME_NEVER)
    at = MIN(at, run->start + run->end);
  at = MIN(at, run->start + run->next_sample);
  return MAX(at, now);
}

static void look(void *context, uint64_t tag)
{
  struct client *c = context;
  struct client_run *run = c->run;
  (void)tag;
  if (*run->outputs->interrupted && run->state == STATE_ON)
    run_end(c);
  else if (*run->outputs->interrupted && run->state == STATE_BEGINNING)
    run_fail(c, g_error_new(DM_ERROR, DM_ERROR_INTERRUPTED, "interrupted before the run began"));
  else if (run->state == STATE_ON)
    run_on(c);
  else if (run->state == STATE_ENDING && loop_now(c->loop) >= run->deadline)
    run_fail(c, g_error_new(DM_ERROR, DM_ERROR_FAILED, "the controller did not end the run"));
  if (run->state != STATE_OVER)
    loop_timer(c->loop, next_look(c), look, c, 0);
}

static void run_start(struct client *c, struct run_ready *ready)
{
  struct client_run *run = c->run;
  struct message_limits limits;
  const struct config *config = &run->setup->config;
  run->number = ready->run;
  run->ready = g_steal_pointer(&ready->text);
  message_limits_init(&limits, catalog_models(config->catalog), SERVER_GPUS_MAX, config->memory_servers);
  link_set_limits(c->link, run->number, &limits);
  run->start = loop_now(c->loop);
  run->state = STATE_ON;
  workload_actor.start(run->workload);
  run_on(c);
}

/* --- the link
 * -------------------------------------------------------------------------------------------------------*/

static gboolean record_good(const struct client_run *run, const struct record *record)
{
  const struct config *config = &run->setup->config;
  return (unsigned)record->kind < RECORD_KIND_COUNT && (unsigned)record->reason < REASON_COUNT &&
         (record->model == NO_INDEX || record->model < catalog_models(config->catalog)) &&
         (record->gpu == NO_INDEX || record->gpu < config->gpus) &&
         (record->server == NO_INDEX || record->server < config->servers);
}

/* Times come by the machine's monotonic clock: right to the nanosecond on one machine, not comparable between
 * two. */
static void records_came(struct client *c, const uint8_t *data, size_t size)
{
  struct client_run *run = c->run;
  struct record record;
  for (size_t at = 4; at + sizeof record <= size; at += sizeof record) {
    memcpy(&record, data + at, sizeof record);
    record.time_ns -= run->start;
    if (record.kind == RECORD_GROUP_PCIE || record.kind == RECORD_GROUP_COMPUTE)
      record.b -= run->start;
    if (!record_good(run, &record))
      continue;
    if (run->outputs->store && run->experiment->decisions)
      store_decision(run->outputs->store, &record);
    if (run->outputs->timeline)
      timeline_record(run->outputs->timeline, &record);
  }
}

static void ready_came(struct client *c, const uint8_t *data, size_t size)
{
  struct run_ready ready;
  if (!run_ready_unpack(data, size, &ready))
    return;
  if (ready.digest == run_digest(c->run->setup))
    run_start(c, &ready);
  else
    run_fail(c, g_error_new(DM_ERROR, DM_ERROR_FAILED,
                            "the controller's experiment, profiles or hardware files are not the client's"));
  run_ready_clear(&ready);
}

static void on_frame(void *context, enum frame_kind kind, const uint8_t *data, size_t size)
{
  struct client *c = context;
  struct run_meter meter;
  if (!c->run)
    return;
  if (kind == FRAME_READY && c->run->state == STATE_BEGINNING) {
    ready_came(c, data, size);
  } else if (kind == FRAME_FAILED) {
    run_fail(c, g_error_new(DM_ERROR, DM_ERROR_FAILED, "%.*s", (int)size, (const char *)data));
  } else if (kind == FRAME_RECORDS && c->run->state != STATE_BEGINNING) {
    records_came(c, data, size);
  } else if ((kind == FRAME_METERED || kind == FRAME_ENDED) && c->run->state != STATE_BEGINNING &&
             run_meter_unpack(data, size, &meter) && meter.run == c->run->number) {
    meter_came(c, &meter, kind == FRAME_ENDED);
    if (kind == FRAME_ENDED) {
      c->run->state = STATE_OVER;
      loop_quit(c->loop);
    }
  }
}

static void on_message(void *context, uint32_t run, const struct message *message)
{
  struct client *c = context;
  if (!c->run || run != c->run->number || c->run->state == STATE_OVER)
    return;
  workload_actor.message(c->run->workload, ACTOR(ACTOR_CONTROLLER, 0), message);
  if (c->run->state == STATE_ON && is_over(c))
    run_on(c);
}

static void on_welcome(void *context)
{
  struct client *c = context;
  c->welcome = TRUE;
  loop_quit(c->loop);
}

static void on_lost(void *context, const char *why)
{
  struct client *c = context;
  c->lost = g_strdup(why);
  if (c->run)
    run_fail(c, g_error_new(DM_ERROR, DM_ERROR_FAILED, "the controller is lost: %s", why));
  loop_quit(c->loop);
}

static const struct link_ops link_ops = {
    .welcome = on_welcome, .frame = on_frame, .message = on_message, .lost = on_lost};

/* Nobody has to wait for a controller that is not there. */
static void look_for_interrupt(void *context, uint64_t tag)
{
  struct client *c = context;
  (void)tag;
  if (backend_interrupted())
    loop_quit(c->loop);
  else
    loop_timer(c->loop, loop_now(c->loop) + TICK_NS, look_for_interrupt, c, 0);
}

static void await_welcome(struct client *c, const char *controller, GError **error)
{
  look_for_interrupt(c, 0);
  loop_run(c->loop);
  loop_forget(c->loop, c);
  if (c->lost || !c->welcome)
    g_set_error(error, DM_ERROR, c->lost ? DM_ERROR_FAILED : DM_ERROR_INTERRUPTED, "%s: %s", controller,
                c->lost ? c->lost : "interrupted before it gave a welcome");
}

struct client *client_new(const struct cluster_file *file, GError **error)
{
  struct client *c = g_new0(struct client, 1);
  struct link_keys keys;
  struct link_config config;
  struct hello hello = {
      .role = ACTOR_CLIENT, .index = NO_INDEX, .epoch = (uint32_t)(g_get_real_time() / G_USEC_PER_SEC)};
  g_strlcpy(hello.version, program_version(), sizeof hello.version);
  c->loop = loop_new();
  if (cluster_file_link(file, &keys, &config, error))
    c->link = link_new(c->loop, &config, &hello, &link_ops, c, error);
  if (!c->link) {
    client_free(c);
    return NULL;
  }
  await_welcome(c, file->controller, error);
  if (c->welcome && !c->lost)
    return c;
  client_free(c);
  return NULL;
}

void client_free(struct client *c)
{
  if (!c)
    return;
  link_free(c->link);
  loop_free(c->loop);
  g_free(c->lost);
  g_free(c);
}

/* --- one run
 * --------------------------------------------------------------------------------------------------------*/

static gboolean run_begin(struct client *c, const struct run_info *info, GError **error)
{
  struct client_run *run = c->run;
  int64_t span = workload_span_ns(run->workload);
  struct run_spec spec = {.experiment = run->experiment->path,
                          .system = run->experiment->system,
                          .sets = run->options->sets,
                          .device = (char *)run->options->device,
                          .transport = (char *)run->options->transport,
                          .pace_gbit_s = run->options->pace_gbit_s,
                          .image_folder = (char *)run->options->image_folder,
                          .share_gpus = run->options->share_gpus,
                          .records =
                              run->outputs->timeline || (run->outputs->store && run->experiment->decisions)};
  if (!events_can_be(run, error))
    return FALSE;
  run->warmup = run->experiment->warmup_ns;
  run->end = span < 0 ? TIME_NEVER : MAX(span, run->warmup);
  run->metrics = metrics_new(run->warmup, run->end);
  run->sample = span > 0 ? MAX(span / USAGE_POINTS, 10 * NS_PER_MS) : NS_PER_S;
  run->next_sample = run->sample;
  run->asked_at = g_array_new(FALSE, FALSE, sizeof(int64_t));
  run->progress = progress_new(run->end == TIME_NEVER ? 0 : run->end, info->system, run->outputs->quiet);
  if (run->outputs->timeline)
    timeline_begin_run(run->outputs->timeline, info->system, run->setup->catalog, run->setup->config.gpus);
  frame_send(c, FRAME_BEGIN, run_spec_pack(&spec));
  loop_timer(c->loop, loop_now(c->loop) + TICK_NS, look, c, 0);
  return TRUE;
}

static char *all_notices(const struct client_run *run)
{
  g_autoptr(GPtrArray) lines = workload_notices(run->workload);
  if (*run->setup->notices)
    g_ptr_array_insert(lines, 0, g_strdup(run->setup->notices));
  if (run->options->pace_gbit_s > 0)
    g_ptr_array_add(lines, g_strdup_printf("paced: each server's traffic is limited to %g Gbit/s each way",
                                           run->options->pace_gbit_s));
  if (run->ready)
    g_ptr_array_add(lines, g_strdup(run->ready));
  g_ptr_array_add(lines, NULL);
  return g_strjoinv("\n", (char **)lines->pdata);
}

static gboolean run_finish(struct client *c, struct figures *figures, char **notices, GError **error)
{
  struct client_run *run = c->run;
  const GError *bad = workload_error(run->workload);
  if (run->error || bad) {
    g_propagate_error(error, run->error ? g_steal_pointer(&run->error) : g_error_copy(bad));
    return FALSE;
  }
  if (!run->whole) {
    workload_interrupt(run->workload);
    if (run->end > run_now(c)) {
      run->end = run_now(c);
      run->at_end = run->now;
      metrics_end(run->metrics, run->end);
    }
  }
  metrics_figures(run->metrics, figures);
  usage_figures(&run->at_warmup, &run->at_end, &run->now, figures);
  *notices = all_notices(run);
  return TRUE;
}

static void run_clear(struct client *c)
{
  struct client_run *run = c->run;
  loop_forget(c->loop, c);
  if (run->rw)
    real_world_close(run->rw);
  workload_free(run->workload);
  real_world_free(run->rw);
  metrics_free(run->metrics);
  progress_free(run->progress);
  if (run->asked_at)
    g_array_unref(run->asked_at);
  g_clear_error(&run->error);
  g_free(run->ready);
  c->run = NULL;
}

gboolean client_run(struct client *c, const struct client_options *options, const struct setup *setup,
                    const struct run_info *info, const struct run_outputs *outputs, struct figures *figures,
                    char **notices, GError **error)
{
  struct client_run run = {
      .options = options, .setup = setup, .experiment = setup->experiment, .outputs = outputs};
  struct real_world_config world = {.loop = c->loop,
                                    .config = &setup->config,
                                    .self = ACTOR(ACTOR_CLIENT, 0),
                                    .send = send_message,
                                    .context = c};
  int64_t began = loop_now(c->loop);
  c->run = &run;
  run.rw = real_world_new(&world);
  run.workload = workload_new(setup, real_world_seam(run.rw), on_request, &run, error);
  gboolean good = run.workload != NULL;
  if (good) {
    real_world_set_actor(run.rw, &workload_actor, run.workload);
    good = run_begin(c, info, error);
  }
  if (good) {
    loop_run(c->loop);
    progress_free(g_steal_pointer(&run.progress));
    good = run_finish(c, figures, notices, error);
    figures->wall_s = (double)(loop_now(c->loop) - began) / 1e9;
  }
  run_clear(c);
  return good;
}
