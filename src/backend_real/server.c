/* The life of a server's process; see server.h. */
#include "backend_real/server.h"

#include <glib-unix.h>
#include <string.h>
#include "backend_real/interrupt.h"
#include "backend_real/log.h"
#include "core/error.h"
#include "harness/command.h"

#define RECORDS_SENT 512
/* For our own steps to see a signal, before the process ends in the midst of a call. */
#define SIGNAL_GRACE_MS 700
/* For a controller that was lost to be there again. */
#define RELINK_NS (5 * NS_PER_S)

static void frame_send(struct server *s, enum frame_kind kind, GBytes *bytes)
{
  gsize size;
  const void *data = g_bytes_get_data(bytes, &size);
  link_send(s->link, kind, data, size);
  g_bytes_unref(bytes);
}

/* --- what the world sends
 * -------------------------------------------------------------------------------------------*/

static void send_message(void *context, actor_id to, const struct message *message)
{
  struct server *s = context;
  if (ACTOR_KIND(to) != ACTOR_CONTROLLER)
    g_error("a server's actor may write to the controller only"); /* a bug of the core */
  if (message->type == MESSAGE_PLACED && message->placed.result == PLACED_NO_ROOM)
    g_warning("run %u: this server's shards of plan %u do not fit in its memory (host_memory_gb of "
              "memory_hardware): the present plan stays",
              s->spec.run, message->placed.version);
  if (s->going)
    link_message(s->link, s->spec.run, message);
  else
    g_array_append_val(s->held, *message);
}

static void records_flush(void *context)
{
  struct server *s = context;
  uint8_t frame[4 + RECORDS_SENT * sizeof(struct record)];
  while (s->records && s->records->len > 0) {
    guint count = MIN(s->records->len, RECORDS_SENT);
    memcpy(frame, &s->spec.run, 4);
    memcpy(frame + 4, s->records->data, count * sizeof(struct record));
    link_send(s->link, FRAME_RECORDS, frame, 4 + count * sizeof(struct record));
    g_array_remove_range(s->records, 0, count);
  }
}

static void send_record(void *context, const struct record *record)
{
  struct server *s = context;
  g_array_append_val(s->records, *record);
}

/* --- a run
 * ----------------------------------------------------------------------------------------------------------*/

static void run_close(struct server *s)
{
  server_metrics_keep(s);
  if (s->rw)
    real_world_close(s->rw);
  if (s->actor)
    s->kind->actor_free(s->actor);
  recorder_free(s->recorder);
  real_world_free(s->rw);
  if (s->shelf)
    s->transport->shelf_free(s->shelf);
  ssd_store_free(s->ssd);
  loop_forget(s->loop, s);
  host_memory_unmap(&s->memory);
  images_free(s->images);
  setup_free(s->setup);
  experiment_free(s->experiment);
  run_spec_clear(&s->spec);
  g_array_set_size(s->held, 0);
  g_array_set_size(s->records, 0);
  g_array_set_size(s->peers, 0);
  s->rw = NULL;
  s->actor = NULL;
  s->recorder = NULL;
  s->shelf = NULL;
  s->ssd = NULL;
  s->images = NULL;
  s->setup = NULL;
  s->experiment = NULL;
  s->going = FALSE;
  s->left = 0;
  s->broken = s->given_up = 0;
  log_run(0);
}

static gboolean has_place(const struct server *s, GError **error)
{
  const struct config *config = &s->setup->config;
  uint32_t places = s->options->kind == ACTOR_GPU_SERVER ? config->servers : config->memory_servers;
  return s->options->index < places || input_error(error, NULL, 0, "%s %u: the experiment has places 0 to %u",
                                                   s->kind->name, s->options->index, places - 1);
}

static void record_begin(struct server *s)
{
  s->seam = real_world_seam(s->rw);
  if (!s->recording)
    return;
  s->recorder = recorder_new(s->recording, s->seam);
  recorder_begin(s->recorder, s->setup, s->spec.run, ACTOR(s->options->kind, s->options->index));
  s->seam = recorder_seam(s->recorder);
}

static gboolean run_open(struct server *s, GError **error)
{
  if (!run_spec_load(&s->spec, &s->experiment, &s->setup, error) || !has_place(s, error))
    return FALSE;
  s->transport = transport_by_name(s->spec.transport, error);
  if (!s->transport)
    return FALSE;
  s->transport_options = (struct transport_options){.pace_bytes_s = gbit_to_bytes_per_s(s->spec.pace_gbit_s),
                                                    .rdma_device = s->options->rdma_device,
                                                    .gid_given = s->options->gid_index >= 0,
                                                    .gid_index = (uint32_t)MAX(s->options->gid_index, 0)};
  s->images = images_new(s->setup->catalog, *s->spec.image_folder ? s->spec.image_folder : NULL, error);
  if (!s->images || !host_memory_map(&s->memory, s->kind->memory_bytes(&s->setup->config, s->options->index),
                                     s->kind->touch, error))
    return FALSE;
  struct real_world_config world = {.loop = s->loop,
                                    .config = &s->setup->config,
                                    .self = ACTOR(s->options->kind, s->options->index),
                                    .send = send_message,
                                    .record = s->spec.records ? send_record : NULL,
                                    .peer_broken = server_peer_broken,
                                    .post = server_post_to_shelf,
                                    .context = s};
  s->rw = real_world_new(&world);
  real_world_set_memory(s->rw, &s->memory, s->images);
  record_begin(s);
  return s->kind->open(s, error);
}

/* The actor is there: who hears for it? */
static void actor_begin(struct server *s)
{
  s->ear_ops = s->recorder ? &recorder_actor : s->kind->actor;
  s->ear = s->recorder ? s->recorder : s->actor;
  if (s->recorder)
    recorder_set_actor(s->recorder, s->kind->actor, s->actor);
  real_world_set_actor(s->rw, s->ear_ops, s->ear);
  s->ear_ops->start(s->ear);
}

static void limits_set(struct server *s)
{
  struct message_limits limits;
  const struct config *config = &s->setup->config;
  uint32_t gpus = s->options->kind == ACTOR_GPU_SERVER ? config->server[s->options->index].gpus : 1;
  message_limits_init(&limits, catalog_models(config->catalog), gpus, config->memory_servers);
  link_set_limits(s->link, s->spec.run, &limits);
}

static void send_ready(struct server *s)
{
  g_autofree char *text = s->kind->describe(s);
  struct run_ready ready = {.run = s->spec.run,
                            .digest = setup_digest(s->setup),
                            .address = s->shelf ? (char *)s->transport->shelf_address(s->shelf) : NULL,
                            .text = text};
  frame_send(s, FRAME_READY, run_ready_pack(&ready));
}

/* May take minutes, and the loop waits: signals are looked at on the way, and where a driver's call is too
 * long for that, the guard ends the process. */
static gboolean run_prepare(struct server *s, GError **error)
{
  struct interrupt_guard *guard = interrupt_guard(SIGNAL_GRACE_MS);
  gboolean good =
      run_open(s, error) && (s->options->kind != ACTOR_GPU_SERVER || images_prepare(s->images, error));
  if (good) {
    limits_set(s);
    actor_begin(s);
    good = interrupt_check(error);
  }
  if (good && real_world_error(s->rw)) {
    g_propagate_error(error, g_error_copy(real_world_error(s->rw)));
    good = FALSE;
  }
  interrupt_release(guard);
  return good;
}

static void prepare(struct server *s, const uint8_t *data, size_t size)
{
  g_autoptr(GError) error = NULL;
  struct run_spec spec;
  run_close(s);
  if (!run_spec_unpack(data, size, &spec))
    return;
  s->spec = spec;
  log_run(spec.run);
  g_message("run %u: %s under %s", spec.run, spec.experiment, spec.system);
  if (run_prepare(s, &error)) {
    send_ready(s);
    return;
  }
  g_autofree char *text = g_strdup_printf("%s %u: %s", s->kind->name, s->options->index, error->message);
  g_log(G_LOG_DOMAIN,
        g_error_matches(error, DM_ERROR, DM_ERROR_INTERRUPTED) ? G_LOG_LEVEL_MESSAGE : G_LOG_LEVEL_WARNING,
        "run %u: %s", spec.run, text);
  frame_send(s, FRAME_FAILED, run_failed_pack(spec.run, text));
  run_close(s);
}

/* The first GO lets the held mail out; each tells who can be read now. */
static void go(struct server *s, const uint8_t *data, size_t size)
{
  uint32_t run;
  g_autoptr(GArray) peers = run_peers_unpack(data, size, &run);
  if (!peers || !s->actor || run != s->spec.run)
    return;
  server_peers_set(s, g_steal_pointer(&peers));
  if (!s->going)
    s->went = loop_now(s->loop);
  s->going = TRUE;
  for (guint i = 0; i < s->held->len; i++)
    link_message(s->link, run, &g_array_index(s->held, struct message, i));
  g_array_set_size(s->held, 0);
}

static void grant(struct server *s, const uint8_t *data, size_t size)
{
  uint32_t run;
  actor_id reader;
  struct ticket_secret secret;
  if (!run_grant_unpack(data, size, &run, &reader, &secret) || !s->shelf || run != s->spec.run)
    return;
  s->transport->shelf_admit(s->shelf, reader, &secret);
  frame_send(s, FRAME_GRANTED, run_numbers_pack(run, reader));
}

static void grant_end(struct server *s, const uint8_t *data, size_t size)
{
  uint32_t run;
  actor_id reader;
  if (!run_numbers_unpack(data, size, &run, &reader) || !s->shelf || run != s->spec.run)
    return;
  g_message("run %u: %s %u may read no longer", run, peer_name(reader), ACTOR_INDEX(reader));
  s->transport->shelf_expel(s->shelf, reader);
}

static GBytes *meter(const struct server *s, uint32_t number)
{
  struct run_meter m = {.run = s->spec.run, .number = number};
  const GError *failure = real_world_error(s->rw);
  s->kind->usage(s, &m.usage);
  if (failure)
    g_strlcpy(m.failure, failure->message, sizeof m.failure);
  return run_meter_pack(&m);
}

static void metered(struct server *s, enum frame_kind kind, const uint8_t *data, size_t size)
{
  uint32_t run, number;
  if (!run_numbers_unpack(data, size, &run, &number) || !s->actor || run != s->spec.run)
    return;
  records_flush(s);
  frame_send(s, kind == FRAME_END ? FRAME_ENDED : FRAME_METERED, meter(s, number));
  if (kind == FRAME_END)
    run_close(s);
}

/* --- the link
 * -------------------------------------------------------------------------------------------------------*/

static void on_welcome(void *context)
{
  struct server *s = context;
  g_message("%s %u: linked to the controller", s->kind->name, s->options->index);
}

static void on_frame(void *context, enum frame_kind kind, const uint8_t *data, size_t size)
{
  struct server *s = context;
  if (kind == FRAME_PREPARE && !loop_quits(s->loop)) /* the signal has been read: nothing would end it */
    prepare(s, data, size);
  else if (kind == FRAME_GO)
    go(s, data, size);
  else if (kind == FRAME_GRANT)
    grant(s, data, size);
  else if (kind == FRAME_REVOKE)
    grant_end(s, data, size);
  else if (kind == FRAME_LETTER)
    server_letter(s, data, size);
  else if (kind == FRAME_METER || kind == FRAME_END)
    metered(s, kind, data, size);
}

static void on_message(void *context, uint32_t run, const struct message *m)
{
  struct server *s = context;
  if (!s->actor || run != s->spec.run)
    return;
  server_peers_follow(s, m);
  if (m->type == MESSAGE_DROP)
    g_message("run %u: the pool follows plan %u", run, m->drop.version);
  else if (m->type == MESSAGE_LEAVE)
    s->left = loop_now(s->loop);
  s->ear_ops->message(s->ear, ACTOR(ACTOR_CONTROLLER, 0), m);
}

static void link_open(struct server *s, int64_t timeout_ns, GError **error);

/* A process that was stopped for longer than the hub waits, or whose connection was cut, takes part again as
 * one that began anew. */
static void on_lost(void *context, const char *why)
{
  struct server *s = context;
  enum link_loss loss = link_loss(s->link);
  run_close(s);
  if (loss == LINK_BROKE) {
    g_message("%s %u: %s; linking anew", s->kind->name, s->options->index, why);
    link_free(s->link);
    link_open(s, RELINK_NS, &s->error);
  } else if (loss == LINK_REFUSED) {
    g_set_error(&s->error, DM_ERROR, DM_ERROR_FAILED, "%s %u: %s", s->kind->name, s->options->index, why);
  }
  if (loss == LINK_ENDED)
    g_message("%s %u: %s", s->kind->name, s->options->index, why);
  if (loss != LINK_BROKE || !s->link)
    loop_quit(s->loop);
}

static const struct link_ops link_ops = {
    .welcome = on_welcome, .frame = on_frame, .message = on_message, .lost = on_lost};

/* The hub gives a place to the one with the highest epoch: an old connection that it has not missed yet must
 * not keep the new one out, nor a process that was killed a moment ago the one that follows it. */
static void link_open(struct server *s, int64_t timeout_ns, GError **error)
{
  struct link_config config = s->options->link;
  struct hello hello = {.role = s->options->kind, .index = s->options->index};
  s->epoch = MAX(s->epoch + 1, (uint64_t)g_get_real_time());
  hello.epoch = s->epoch;
  g_strlcpy(hello.version, program_version(), sizeof hello.version);
  g_autofree char *can = transports_usable();
  g_strlcpy(hello.can, can, sizeof hello.can);
  config.connect_timeout_ns = timeout_ns;
  s->link = link_new(s->loop, &config, &hello, &link_ops, s, error);
}

static void on_signal(void *context)
{
  loop_quit(context);
}

static gboolean record_open(struct server *s, GError **error)
{
  if (s->options->record)
    s->recording = recording_create(s->options->record, ACTOR(s->options->kind, s->options->index), error);
  return !s->options->record || s->recording;
}

gboolean server_run(const struct server_options *options, GError **error)
{
  struct server s = {.options = options,
                     .kind = options->kind == ACTOR_GPU_SERVER ? &server_kind_gpu : &server_kind_memory,
                     .held = g_array_new(FALSE, FALSE, sizeof(struct message)),
                     .records = g_array_new(FALSE, FALSE, sizeof(struct record)),
                     .peers = g_array_new(FALSE, TRUE, sizeof(struct run_peer)),
                     .loop = loop_new()};
  loop_before_wait(s.loop, records_flush, &s);
  loop_on_signals(s.loop, on_signal, s.loop);
  if (record_open(&s, error))
    link_open(&s, options->link.connect_timeout_ns, error);
  gboolean good = s.link != NULL;
  if (good) {
    g_message("%s %u: looking for the controller at %s", s.kind->name, options->index,
              options->link.endpoint);
    if (options->metrics >= 0)
      s.metrics = metrics_http_new(s.loop, options->metrics, server_metrics, &s);
    loop_run(s.loop);
    run_close(&s);
  }
  metrics_http_free(s.metrics);
  link_free(s.link);
  loop_free(s.loop);
  if (!recording_close(s.recording, s.error || !good ? NULL : &s.error))
    good = FALSE;
  g_array_unref(s.held);
  g_array_unref(s.records);
  g_array_unref(s.peers);
  if (s.error)
    g_propagate_error(error, s.error);
  return good && !s.error;
}
