/* The client: its link, and the life of a run; see client.h. */
#include "backend_real/client_internal.h"
#include "backend_real/images.h"
#include "backend_real/log.h"

#include "core/error.h"

void client_frame(struct client *c, enum frame_kind kind, GBytes *bytes)
{
  gsize size;
  const void *data = g_bytes_get_data(bytes, &size);
  link_send(c->link, kind, data, size);
  g_bytes_unref(bytes);
}

int64_t run_now(const struct client *c)
{
  return loop_now(c->loop) - c->run->start;
}

void run_fail(struct client *c, GError *error)
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
  c->counts.sent += message->type == MESSAGE_REQUEST;
  link_message(c->link, c->run->number, message);
}

static void on_request(void *context, const struct request_row *row)
{
  struct client *c = context;
  struct client_run *run = c->run;
  uint64_t every = run->experiment->requests_sample;
  client_count(&c->counts, row);
  metrics_request(run->metrics, row);
  if (run->outputs->store && every > 0 && row->id % every == 0)
    store_request(run->outputs->store, row);
}

/* --- the link
 * -------------------------------------------------------------------------------------------------------*/

/* It would wait for ever. */
static void broke_protocol(struct client *c, const char *what)
{
  run_fail(c, g_error_new(DM_ERROR, DM_ERROR_FAILED, "the controller broke the protocol: %s", what));
}

static void ready_came(struct client *c, const uint8_t *data, size_t size)
{
  struct run_ready ready;
  if (!run_ready_unpack(data, size, &ready)) {
    broke_protocol(c, "READY is malformed");
    return;
  }
  if (ready.digest == setup_digest(c->run->setup))
    run_start(c, &ready);
  else
    run_fail(c, g_error_new(DM_ERROR, DM_ERROR_FAILED,
                            "the controller's experiment, profiles or hardware files are not the client's"));
  run_ready_clear(&ready);
}

static void metered(struct client *c, gboolean last, const uint8_t *data, size_t size)
{
  struct run_meter meter;
  if (!run_meter_unpack(data, size, &meter)) {
    broke_protocol(c, last ? "ENDED is malformed" : "METERED is malformed");
    return;
  }
  if (meter.run != c->run->number)
    return;
  run_meter_came(c, &meter, last);
  if (last) {
    c->run->state = STATE_OVER;
    loop_quit(c->loop);
  }
}

static void on_frame(void *context, enum frame_kind kind, const uint8_t *data, size_t size)
{
  struct client *c = context;
  if (!c->run)
    return;
  if (kind == FRAME_READY && c->run->state == STATE_BEGINNING) {
    ready_came(c, data, size);
  } else if (kind == FRAME_FAILED) {
    run_fail(c, g_error_new(DM_ERROR, DM_ERROR_FAILED, "%.*s", (int)size, (const char *)data));
  } else if (kind == FRAME_RECORDS && c->run->state != STATE_BEGINNING) {
    run_records_came(c, data, size);
  } else if ((kind == FRAME_METERED || kind == FRAME_ENDED) && c->run->state != STATE_BEGINNING) {
    metered(c, kind == FRAME_ENDED, data, size);
  }
}

static void on_message(void *context, uint32_t run, const struct message *message)
{
  struct client *c = context;
  if (!c->run || run != c->run->number || c->run->state == STATE_OVER)
    return;
  c->run->ear_ops->message(c->run->ear, ACTOR(ACTOR_CONTROLLER, 0), message);
  if (c->run->state == STATE_ON && run_is_over(c))
    run_on(c);
}

static void on_welcome(void *context)
{
  struct client *c = context;
  g_message("client: linked to the controller");
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
  loop_timer(c->loop, loop_now(c->loop), look_for_interrupt, c,
             0); /* a loop that does not run yet cannot be ended */
  loop_run(c->loop);
  loop_forget(c->loop, c);
  if (c->lost || !c->welcome)
    g_set_error(error, DM_ERROR, c->lost ? DM_ERROR_FAILED : DM_ERROR_INTERRUPTED, "%s: %s", controller,
                c->lost ? c->lost : "interrupted before it gave a welcome");
}

struct client *client_new(const struct cluster_file *file, int metrics, GError **error)
{
  struct client *c = g_new0(struct client, 1);
  struct link_keys keys;
  struct link_config config;
  struct hello hello = {.role = ACTOR_CLIENT, .index = NO_INDEX, .epoch = (uint64_t)g_get_real_time()};
  g_strlcpy(hello.version, program_version(), sizeof hello.version);
  c->loop = loop_new();
  if (metrics >= 0)
    c->metrics = metrics_http_new(c->loop, metrics, client_metrics, c);
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

gboolean client_began(const struct client *c)
{
  return c && c->began;
}

void client_free(struct client *c)
{
  if (!c)
    return;
  metrics_http_free(c->metrics);
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
  if (!run_events_can_be(run, error))
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
  client_frame(c, FRAME_BEGIN, run_spec_pack(&spec));
  loop_timer(c->loop, loop_now(c->loop) + TICK_NS, run_look, c, 0);
  return TRUE;
}

/* What became of the requests that the table counts as failed; NULL: none did. */
static char *failures_notice(const struct client_run *run)
{
  static const char *const why[OUTCOME_COUNT] = {
      [OUTCOME_LOST] = "lost with servers that they needed",
      [OUTCOME_TIMED_OUT] = "not done within the deadline (workload.timeout_s)",
      [OUTCOME_INTERRUPTED] = "not done when the run was interrupted"};
  const uint64_t *outcomes = metrics_outcomes(run->metrics);
  g_autoptr(GString) text = g_string_new(NULL);
  for (uint32_t i = 0; i < OUTCOME_COUNT; i++)
    if (why[i] && outcomes[i] > 0)
      g_string_append_printf(text, "%s%" G_GUINT64_FORMAT " %s",
                             text->len ? ", " : "failed requests: ", outcomes[i], why[i]);
  return text->len ? g_strdup(text->str) : NULL;
}

/* NULL: no folder was given. */
static char *images_notice(const struct client_run *run)
{
  const char *folder = run->options->image_folder;
  const struct catalog *catalog = run->setup->catalog;
  if (!*folder)
    return NULL;
  uint32_t packed = images_packed(catalog, folder), models = catalog_models(catalog);
  return g_strdup_printf("images: %u of %u models packed in %s%s", packed, models, folder,
                         packed < models ? "; the bytes of others are generated" : "");
}

static void add_notice(GPtrArray *lines, char *notice)
{
  if (notice)
    g_ptr_array_add(lines, notice);
}

static char *all_notices(const struct client_run *run)
{
  g_autoptr(GPtrArray) lines = workload_notices(run->workload);
  if (*run->setup->notices)
    g_ptr_array_insert(lines, 0, g_strdup(run->setup->notices));
  if (run->options->pace_gbit_s > 0)
    g_ptr_array_add(lines, g_strdup_printf("paced: each server's traffic is limited to %g Gbit/s each way",
                                           run->options->pace_gbit_s));
  add_notice(lines, failures_notice(run));
  add_notice(lines, images_notice(run));
  add_notice(lines, g_strdup(run->ready));
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
  recorder_free(run->recorder);
  real_world_free(run->rw);
  metrics_free(run->metrics);
  progress_free(run->progress);
  if (run->asked_at)
    g_array_unref(run->asked_at);
  g_clear_error(&run->error);
  g_free(run->ready);
  c->counts.ended = c->counts.sent; /* of a run that failed, some never will */
  g_clear_pointer(&c->run, g_free);
  log_run(0);
}

/* The load generator, and who hears for it. */
static gboolean load_begin(struct client *c, GError **error)
{
  struct client_run *run = c->run;
  struct world *seam = real_world_seam(run->rw);
  if (run->options->recording) {
    run->recorder = recorder_new(run->options->recording, seam);
    seam = recorder_seam(run->recorder);
  }
  run->workload = workload_new(run->setup, seam, on_request, c, error);
  if (!run->workload)
    return FALSE;
  run->ear_ops = run->recorder ? &recorder_actor : &workload_actor;
  run->ear = run->recorder ? (void *)run->recorder : run->workload;
  if (run->recorder)
    recorder_set_actor(run->recorder, &workload_actor, run->workload);
  real_world_set_actor(run->rw, run->ear_ops, run->ear);
  return TRUE;
}

gboolean client_run(struct client *c, const struct client_options *options, const struct setup *setup,
                    const struct run_info *info, const struct run_outputs *outputs, struct figures *figures,
                    char **notices, GError **error)
{
  struct client_run *run = g_new0(struct client_run, 1);
  struct real_world_config world = {.loop = c->loop,
                                    .config = &setup->config,
                                    .self = ACTOR(ACTOR_CLIENT, 0),
                                    .send = send_message,
                                    .context = c};
  int64_t began = loop_now(c->loop);
  *run = (struct client_run){
      .options = options, .setup = setup, .experiment = setup->experiment, .outputs = outputs};
  c->run = run;
  run->rw = real_world_new(&world);
  gboolean good = load_begin(c, error) && run_begin(c, info, error);
  if (good) {
    loop_run(c->loop);
    progress_free(g_steal_pointer(&run->progress));
    good = run_finish(c, figures, notices, error);
    figures->wall_s = (double)(loop_now(c->loop) - began) / 1e9;
  }
  run_clear(c);
  return good;
}
