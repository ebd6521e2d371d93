/* The controller's process; see coordinator.h. */
#include "backend_real/coordinator_internal.h"

#include <stdarg.h>
#include <string.h>
#include "backend_real/log.h"

#define GATHER_NS    (30 * NS_PER_S)  /* for the servers of a run to link */
#define PREPARE_NS   (600 * NS_PER_S) /* one that is dead, not slow, is lost long before */
#define RECORDS_SENT 512

void coordinator_frame(struct coordinator *c, actor_id to, enum frame_kind kind, GBytes *bytes)
{
  gsize size;
  const void *data = g_bytes_get_data(bytes, &size);
  hub_send(c->hub, to, kind, data, size);
  g_bytes_unref(bytes);
}

/* --- the end of a run
 * -----------------------------------------------------------------------------------------------*/

void coordinator_over(struct coordinator *c)
{
  g_message("run %u: over", c->spec.run);
  loop_timer_cancel(c->loop, c->deadline);
  if (c->rw)
    real_world_close(c->rw);
  coordinator_metrics_keep(c);
  controller_free(c->controller);
  recorder_free(c->recorder);
  real_world_free(c->rw);
  setup_free(c->setup);
  experiment_free(c->experiment);
  run_spec_clear(&c->spec);
  members_end(c);
  g_array_set_size(c->records, 0);
  c->controller = NULL;
  c->recorder = NULL;
  c->rw = NULL;
  c->setup = NULL;
  c->experiment = NULL;
  c->deadline = 0;
  c->meter = 0;
  c->failure[0] = '\0';
  c->stage = RUN_NONE;
  log_run(0);
}

void coordinator_abandon(struct coordinator *c)
{
  for (guint i = 0; i < c->members->len; i++) {
    const struct member *member = &g_array_index(c->members, struct member, i);
    if (member->stage > STAGE_LINKED)
      coordinator_frame(c, member->id, FRAME_END, run_numbers_pack(c->spec.run, 0));
  }
  coordinator_over(c);
}

void coordinator_fail(struct coordinator *c, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  g_autofree char *text = g_strdup_vprintf(format, arguments);
  va_end(arguments);
  g_warning("run %u: %s", c->spec.run, text);
  hub_send(c->hub, c->client, FRAME_FAILED, text, MIN(strlen(text), 4000));
  coordinator_abandon(c);
}

/* Servers of the experiment's beginning that have not come as far as the stage wants; g_free. */
static char *missing_names(struct coordinator *c)
{
  GString *missing = g_string_new(NULL);
  enum member_stage wanted = c->stage == RUN_GATHERING   ? STAGE_LINKED
                             : c->stage == RUN_PREPARING ? STAGE_READY
                                                         : STAGE_GOING;
  const struct config *config = &c->setup->config;
  for (uint32_t i = 0; i < config->servers_at_start + config->memory_servers_at_start; i++) {
    gboolean gpu = i < config->servers_at_start;
    uint32_t index = gpu ? i : i - config->servers_at_start;
    const struct member *member = member_find(c, ACTOR(gpu ? ACTOR_GPU_SERVER : ACTOR_MEMORY_SERVER, index));
    if (!member || member->stage < wanted || (c->stage == RUN_STARTING && !member->up))
      g_string_append_printf(missing, "%s%s %u", missing->len ? ", " : "",
                             gpu ? "gpu-server" : "memory-server", index);
  }
  return g_string_free(missing, FALSE);
}

static void waited_too_long(void *context, uint64_t tag)
{
  struct coordinator *c = context;
  (void)tag;
  g_autofree char *names = missing_names(c);
  c->deadline = 0;
  coordinator_fail(c, "waited too long for %s", names);
}

static void wait_until(struct coordinator *c, int64_t delay_ns)
{
  loop_timer_cancel(c->loop, c->deadline);
  c->deadline = loop_timer(c->loop, loop_now(c->loop) + delay_ns, waited_too_long, c, 0);
}

/* --- the core's controller
 * ------------------------------------------------------------------------------------------*/

static void send_message(void *context, actor_id to, const struct message *message)
{
  struct coordinator *c = context;
  hub_message(c->hub, ACTOR_KIND(to) == ACTOR_CLIENT ? c->client : to, c->spec.run, message);
}

static void send_record(void *context, const struct record *record)
{
  struct coordinator *c = context;
  g_array_append_val(c->records, *record);
}

static void records_flush(void *context)
{
  struct coordinator *c = context;
  uint8_t frame[4 + RECORDS_SENT * sizeof(struct record)];
  while (c->records->len > 0) {
    guint count = MIN(c->records->len, RECORDS_SENT);
    memcpy(frame, &c->spec.run, 4);
    memcpy(frame + 4, c->records->data, count * sizeof(struct record));
    hub_send(c->hub, c->client, FRAME_RECORDS, frame, 4 + count * sizeof(struct record));
    g_array_remove_range(c->records, 0, count);
  }
}

void coordinator_start(struct coordinator *c)
{
  const struct config *config = &c->setup->config;
  struct real_world_config world = {.loop = c->loop,
                                    .config = config,
                                    .self = ACTOR(ACTOR_CONTROLLER, 0),
                                    .send = send_message,
                                    .record = c->spec.records ? send_record : NULL,
                                    .context = c};
  struct message_limits limits;
  uint32_t gpus = 1;
  for (uint32_t s = 0; s < config->servers; s++)
    gpus = MAX(gpus, config->server[s].gpus);
  message_limits_init(&limits, catalog_models(config->catalog), gpus, config->memory_servers);
  hub_set_limits(c->hub, c->spec.run, &limits);
  c->rw = real_world_new(&world);
  struct world *seam = real_world_seam(c->rw);
  if (c->recording) {
    c->recorder = recorder_new(c->recording, seam);
    recorder_begin(c->recorder, c->setup, c->spec.run, world.self);
    seam = recorder_seam(c->recorder);
  }
  c->controller = controller_new(config, seam);
  c->ear_ops = c->recorder ? &recorder_actor : &controller_actor;
  c->ear = c->recorder ? (void *)c->recorder : c->controller;
  if (c->recorder)
    recorder_set_actor(c->recorder, &controller_actor, c->controller);
  real_world_set_actor(c->rw, c->ear_ops, c->ear);
  c->ear_ops->start(c->ear);
}

/* --- the stages of a run
 * --------------------------------------------------------------------------------------------*/

static gint by_place(gconstpointer a, gconstpointer b)
{
  actor_id left = (*(const struct member *const *)a)->id, right = (*(const struct member *const *)b)->id;
  return (left > right) - (left < right);
}

/* What the servers are, a line each, in the order of their places: they link in any order. */
static GString *members_text(const struct coordinator *c)
{
  g_autoptr(GPtrArray) going = g_ptr_array_new();
  GString *text = g_string_new(NULL);
  for (guint i = 0; i < c->members->len; i++) {
    struct member *member = &g_array_index(c->members, struct member, i);
    if (member->stage == STAGE_GOING)
      g_ptr_array_add(going, member);
  }
  g_ptr_array_sort(going, by_place);
  for (guint i = 0; i < going->len; i++)
    g_string_append_printf(text, "%s%s", i ? "\n" : "", ((const struct member *)going->pdata[i])->text);
  return text;
}

static void tell_client_ready(struct coordinator *c)
{
  g_autoptr(GString) text = members_text(c);
  struct run_ready ready = {.run = c->spec.run, .digest = setup_digest(c->setup), .text = text->str};
  loop_timer_cancel(c->loop, c->deadline);
  c->deadline = 0;
  c->stage = RUN_ON;
  g_message("run %u: begun", c->spec.run);
  coordinator_frame(c, c->client, FRAME_READY, run_ready_pack(&ready));
}

static gboolean all_up(const struct coordinator *c)
{
  for (guint i = 0; i < c->members->len; i++) {
    const struct member *member = &g_array_index(c->members, struct member, i);
    if (member_has_place(c, member->id) && member_founds(c, member->id) && !member->up)
      return FALSE;
  }
  return TRUE;
}

void coordinator_member_up(struct coordinator *c, struct member *member)
{
  member->up = TRUE;
  if (c->stage == RUN_STARTING && all_up(c))
    tell_client_ready(c);
}

void coordinator_members_changed(struct coordinator *c)
{
  if (c->stage == RUN_GATHERING && members_all(c, STAGE_LINKED)) {
    if (!transport_resolve(c))
      return;
    c->stage = RUN_PREPARING;
    wait_until(c, PREPARE_NS);
    for (guint i = 0; i < c->members->len; i++) {
      struct member *member = &g_array_index(c->members, struct member, i);
      if (member->stage == STAGE_LINKED && member_has_place(c, member->id))
        member_prepare(c, member);
    }
  } else if (c->stage == RUN_PREPARING && members_all(c, STAGE_READY)) {
    c->stage = RUN_STARTING;
  }
  if (c->stage >= RUN_PREPARING && c->stage <= RUN_ON)
    members_connect(c);
}

void coordinator_begin(struct coordinator *c, actor_id client, const uint8_t *data, size_t size)
{
  g_autoptr(GError) error = NULL;
  struct run_spec spec;
  if (c->stage != RUN_NONE) {
    static const char busy[] = "another client's run is on";
    hub_send(c->hub, client, FRAME_FAILED, busy, sizeof busy - 1);
    return;
  }
  if (!run_spec_unpack(data, size, &spec)) {
    hub_expel(c->hub, client, "BEGIN is malformed");
    return;
  }
  c->client = client;
  c->spec = spec;
  c->spec.run = ++c->runs;
  if (!run_spec_load(&c->spec, &c->experiment, &c->setup, &error)) {
    coordinator_fail(c, "%s", error->message);
    return;
  }
  log_run(c->spec.run);
  g_message("run %u: %s under %s", c->spec.run, spec.experiment, spec.system);
  c->stage = RUN_GATHERING;
  wait_until(c, GATHER_NS);
  coordinator_members_changed(c);
  if (c->stage == RUN_GATHERING) {
    g_autofree char *names = missing_names(c);
    g_message("run %u: waits for %s", c->spec.run, names);
  }
}

/* --- the process
 * ----------------------------------------------------------------------------------------------------*/

static void on_signal(void *context)
{
  loop_quit(context);
}

gboolean coordinator_run(const struct hub_config *config, int metrics, const char *record,
                         void (*listening)(void *context, const char *endpoint), void *context,
                         GError **error)
{
  struct coordinator c = {.loop = loop_new(),
                          .members = g_array_new(FALSE, TRUE, sizeof(struct member)),
                          .grants = g_array_new(FALSE, TRUE, sizeof(struct grant)),
                          .records = g_array_new(FALSE, FALSE, sizeof(struct record))};
  loop_before_wait(c.loop, records_flush, &c);
  loop_on_signals(c.loop, on_signal, c.loop);
  if (record)
    c.recording = recording_create(record, ACTOR(ACTOR_CONTROLLER, 0), error);
  if (!record || c.recording)
    c.hub = hub_new(c.loop, config, &coordinator_hub_ops, &c, error);
  gboolean good = c.hub != NULL;
  if (good) {
    if (metrics >= 0)
      c.metrics = metrics_http_new(c.loop, metrics, coordinator_metrics, &c);
    g_message("controller: listening on %s", hub_endpoint(c.hub));
    if (!config->keys)
      g_message("controller: without keys: for processes of this machine, whoever runs them");
    if (listening)
      listening(context, hub_endpoint(c.hub));
    loop_run(c.loop);
    if (c.stage != RUN_NONE)
      coordinator_fail(&c, "the controller was told to end");
  }
  metrics_http_free(c.metrics);
  hub_free(c.hub);
  loop_free(c.loop);
  if (!recording_close(c.recording, good ? error : NULL))
    good = FALSE;
  g_array_unref(c.members);
  g_array_unref(c.grants);
  g_array_unref(c.records);
  return good;
}
