/* A hub and links for tests; see control_lab.h. */
#include "control_lab.h"

#include <glib/gstdio.h>
#include <pthread.h>
#include <string.h>

#include "backend_real/control_frame.h"
#include "core/units.h"
#include "../harness/temporary.h"

#define PATIENCE_NS (20 * NS_PER_S)

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER; /* the admission thread logs too */
static GString *logged;

static GLogWriterOutput write_log(GLogLevelFlags level, const GLogField *fields, gsize count, gpointer data)
{
  (void)level, (void)data;
  const char *domain = "", *message = "";
  for (gsize i = 0; i < count; i++) {
    if (strcmp(fields[i].key, "GLIB_DOMAIN") == 0)
      domain = fields[i].value;
    if (strcmp(fields[i].key, "MESSAGE") == 0)
      message = fields[i].value;
  }
  pthread_mutex_lock(&log_lock);
  if (logged && strcmp(domain, "control") == 0)
    g_string_append_printf(logged, "%s; ", message);
  pthread_mutex_unlock(&log_lock);
  return G_LOG_WRITER_HANDLED;
}

/* --- what the owners note
 * -------------------------------------------------------------------------------------------*/

#define PEER_ARGS(peer) (unsigned)ACTOR_KIND(peer), (unsigned)ACTOR_INDEX(peer)

static const char *hub_joined(void *context, actor_id peer, const struct hello *hello)
{
  struct lab *lab = context;
  g_string_append_printf(lab->log, "joined %u/%u %" G_GUINT64_FORMAT " %s; ", PEER_ARGS(peer), hello->epoch,
                         hello->address);
  return lab->refuse;
}

static void hub_frame(void *context, actor_id peer, enum frame_kind kind, const uint8_t *data, size_t size)
{
  struct lab *lab = context;
  (void)data;
  g_string_append_printf(lab->log, "frame %u/%u %s %zu; ", PEER_ARGS(peer), frame_kind_name(kind), size);
}

static void hub_got(void *context, actor_id peer, uint32_t run, const struct message *message)
{
  struct lab *lab = context;
  cr_assert_eq(run, LAB_RUN);
  if (message->type == MESSAGE_REQUEST) {
    cr_assert_eq(message->request.id, lab->next);
    lab->next++;
    lab->messages++;
    return;
  }
  g_string_append_printf(lab->log, "message %u/%u %s; ", PEER_ARGS(peer), message_name(message->type));
}

static void hub_lost(void *context, actor_id peer, const char *why)
{
  struct lab *lab = context;
  g_string_append_printf(lab->log, "lost %u/%u %s; ", PEER_ARGS(peer), why);
}

static const struct hub_ops hub_ops = {
    .joined = hub_joined, .frame = hub_frame, .message = hub_got, .lost = hub_lost};

static void link_welcome(void *context)
{
  struct lab_link *link = context;
  g_string_append(link->log, "welcome; ");
}

static void link_frame(void *context, enum frame_kind kind, const uint8_t *data, size_t size)
{
  struct lab_link *link = context;
  (void)data;
  g_string_append_printf(link->log, "frame %s %zu; ", frame_kind_name(kind), size);
}

static void link_got(void *context, uint32_t run, const struct message *message)
{
  struct lab_link *link = context;
  cr_assert_eq(run, LAB_RUN);
  if (message->type == MESSAGE_DISPATCH) {
    cr_assert_eq(message->dispatch.id, link->next);
    link->next++;
    link->messages++;
    return;
  }
  g_string_append_printf(link->log, "message %s; ", message_name(message->type));
}

static void link_lost(void *context, const char *why)
{
  struct lab_link *link = context;
  g_string_append_printf(link->log, "lost %s; ", why);
}

static const struct link_ops link_ops = {
    .welcome = link_welcome, .frame = link_frame, .message = link_got, .lost = link_lost};

/* --- life
 * ---------------------------------------------------------------------------------------------------------*/

static void set_limits(struct message_limits *limits)
{
  message_limits_init(limits, LAB_MODELS, LAB_GPUS, LAB_MEMORY_SERVERS);
}

static void start_hub(struct lab *lab)
{
  g_autoptr(GError) error = NULL;
  struct message_limits limits;
  const struct hub_config config = {.endpoint = "tcp://127.0.0.1:*",
                                    .keys = lab->encrypted ? &lab->hub_keys : NULL,
                                    .authorized = lab->encrypted ? lab->authorized : NULL};
  lab->hub = hub_new(lab->loop, &config, &hub_ops, lab, &error);
  cr_assert(lab->hub, "%s", error ? error->message : "");
  set_limits(&limits);
  hub_set_limits(lab->hub, LAB_RUN, &limits);
}

struct lab *lab_new(gboolean encrypted)
{
  struct lab *lab = g_new0(struct lab, 1);
  g_autoptr(GError) error = NULL;
  lab->logged = g_string_new(NULL);
  logged = lab->logged;
  static gsize writer_is_set; /* GLib allows it once a process */
  if (g_once_init_enter(&writer_is_set)) {
    g_log_set_writer_func(write_log, NULL, NULL);
    g_once_init_leave(&writer_is_set, 1);
  }
  lab->loop = loop_new();
  lab->log = g_string_new(NULL);
  lab->encrypted = encrypted;
  lab->patience_ns = 10 * NS_PER_S;
  lab->folder = g_dir_make_tmp("distmind-test-XXXXXX", &error);
  cr_assert(lab->folder, "%s", error ? error->message : "");
  lab->authorized = g_build_filename(lab->folder, "authorized", NULL);
  cr_assert_eq(g_mkdir(lab->authorized, 0700), 0);
  cr_assert(key_pair_generate(&lab->hub_keys, &error));
  for (int i = 0; i < LAB_LINKS; i++)
    lab->link[i] = (struct lab_link){.lab = lab, .log = g_string_new(NULL)};
  start_hub(lab);
  return lab;
}

void lab_free(struct lab *lab)
{
  for (int i = 0; i < LAB_LINKS; i++) {
    link_free(lab->link[i].link);
    g_string_free(lab->link[i].log, TRUE);
  }
  hub_free(lab->hub);
  loop_free(lab->loop);
  tree_remove(lab->authorized);
  tree_remove(lab->folder);
  g_free(lab->authorized);
  g_free(lab->folder);
  g_string_free(lab->log, TRUE);
  pthread_mutex_lock(&log_lock);
  logged = NULL;
  pthread_mutex_unlock(&log_lock);
  g_string_free(lab->logged, TRUE);
  g_free(lab);
}

struct key_pair lab_keys(struct lab *lab, const char *name)
{
  struct key_pair pair;
  g_autoptr(GError) error = NULL;
  cr_assert(key_pair_generate(&pair, &error));
  if (name) {
    g_autofree char *path = g_build_filename(lab->authorized, name, NULL);
    cr_assert(key_pair_write(&pair, path, &error), "%s", error ? error->message : "");
  }
  return pair;
}

void lab_link(struct lab *lab, int number, enum actor_kind role, uint32_t index, uint64_t epoch,
              const struct key_pair *keys)
{
  lab_link_to(lab, number, hub_endpoint(lab->hub), role, index, epoch, keys);
}

void lab_link_to(struct lab *lab, int number, const char *endpoint, enum actor_kind role, uint32_t index,
                 uint64_t epoch, const struct key_pair *keys)
{
  g_autoptr(GError) error = NULL;
  struct message_limits limits;
  const struct hello hello = {
      .role = role, .index = index, .epoch = epoch, .address = "127.0.0.1:4000", .version = "test"};
  const struct link_config config = {.endpoint = endpoint,
                                     .keys = keys,
                                     .server_key = lab->hub_keys.public_key,
                                     .connect_timeout_ns = lab->patience_ns};
  struct lab_link *link = &lab->link[number];
  link->link = link_new(lab->loop, &config, &hello, &link_ops, link, &error);
  cr_assert(link->link, "%s", error ? error->message : "");
  set_limits(&limits);
  link_set_limits(link->link, LAB_RUN, &limits);
}

/* --- waiting
 * ------------------------------------------------------------------------------------------------------*/

static void too_late(void *context, uint64_t tag)
{
  struct lab *lab = context;
  if (tag == 0)
    cr_assert_fail("waited in vain; hub: \"%s\", links: \"%s\" \"%s\", logged: \"%s\"", lab->log->str,
                   lab->link[0].log->str, lab->link[1].log->str, lab->logged->str);
  loop_quit(lab->loop);
}

static void look(void *context)
{
  struct lab *lab = context;
  pthread_mutex_lock(&log_lock);
  gboolean there = lab->until(lab);
  pthread_mutex_unlock(&log_lock);
  if (there)
    loop_quit(lab->loop);
}

uint32_t lab_joined(const struct lab *lab, enum actor_kind kind)
{
  struct hub_counts counts;
  hub_counts(lab->hub, &counts);
  return counts.joined[kind];
}

void lab_await_that(struct lab *lab, gboolean (*until)(struct lab *lab))
{
  uint64_t timer = loop_timer(lab->loop, loop_now(lab->loop) + PATIENCE_NS, too_late, lab, 0);
  lab->until = until;
  loop_before_wait(lab->loop, look, lab);
  loop_run(lab->loop);
  loop_before_wait_remove(lab->loop, look, lab);
  loop_timer_cancel(lab->loop, timer);
}

static const GString *awaited_log;
static const char *awaited_text;

static gboolean text_is_there(struct lab *lab)
{
  (void)lab;
  return strstr(awaited_log->str, awaited_text) != NULL;
}

/* Lines that other threads log wake no loop: a tick looks for them. */
static void tick(void *context, uint64_t tag)
{
  struct lab *lab = context;
  pthread_mutex_lock(&log_lock);
  gboolean there = text_is_there(lab);
  pthread_mutex_unlock(&log_lock);
  if (!there)
    loop_timer(lab->loop, loop_now(lab->loop) + 5 * NS_PER_MS, tick, lab, tag);
}

void lab_await(struct lab *lab, const GString *log, const char *text)
{
  awaited_log = log;
  awaited_text = text;
  if (log == lab->logged)
    tick(lab, 0);
  lab_await_that(lab, text_is_there);
}

gboolean lab_has_logged(const struct lab *lab, const char *text)
{
  pthread_mutex_lock(&log_lock);
  gboolean there = strstr(lab->logged->str, text) != NULL;
  pthread_mutex_unlock(&log_lock);
  return there;
}

void lab_clear_logged(struct lab *lab)
{
  pthread_mutex_lock(&log_lock);
  g_string_truncate(lab->logged, 0);
  pthread_mutex_unlock(&log_lock);
}

void lab_run_ns(struct lab *lab, int64_t ns)
{
  loop_timer(lab->loop, loop_now(lab->loop) + ns, too_late, lab, 1);
  loop_run(lab->loop);
}

/* --- a good peer beside the bad ones
 * ----------------------------------------------------------------------------------*/

struct key_pair lab_good_peer(struct lab *lab)
{
  struct key_pair keys = lab_keys(lab, "good");
  lab_link(lab, 0, ACTOR_GPU_SERVER, 0, 1, lab->encrypted ? &keys : NULL);
  lab_await(lab, lab->link[0].log, "welcome; ");
  return keys;
}

void lab_still_good(struct lab *lab)
{
  struct message ping = {.type = MESSAGE_MEMBER, .member = {.alive = 1}}, pong = {.type = MESSAGE_HEARTBEAT};
  g_string_truncate(lab->link[0].log, 0);
  g_string_truncate(lab->log, 0);
  hub_message(lab->hub, ACTOR(ACTOR_GPU_SERVER, 0), LAB_RUN, &ping);
  link_message(lab->link[0].link, LAB_RUN, &pong);
  lab_await(lab, lab->link[0].log, "message member; ");
  lab_await(lab, lab->log, "message 2/0 heartbeat; ");
  lab_check_not(lab->link[0].log, "lost");
  lab_check_not(lab->log, "lost 2/0");
}

/* --- strangers
 * ----------------------------------------------------------------------------------------------------*/

void *lab_stranger(struct lab *lab, void *zmq_context, const struct key_pair *keys, const char *server_key)
{
  void *socket = zmq_socket(zmq_context, ZMQ_DEALER);
  const int none = 0;
  zmq_setsockopt(socket, ZMQ_LINGER, &none, sizeof none);
  if (keys) {
    zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, server_key, KEY_TEXT);
    zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, keys->public_key, KEY_TEXT);
    zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, keys->secret_key, KEY_TEXT);
  }
  cr_assert_eq(zmq_connect(socket, hub_endpoint(lab->hub)), 0);
  return socket;
}

void lab_say(void *socket, const void *data, size_t size)
{
  cr_assert_eq(zmq_send(socket, data, size, 0), (int)size, "%s", zmq_strerror(zmq_errno()));
}

void lab_say_hello(void *socket, uint32_t index)
{
  const struct hello hello = {.role = ACTOR_GPU_SERVER, .index = index, .epoch = 1};
  uint8_t frame[FRAME_HEADER + HELLO_BYTES_MAX];
  frame_header_write(frame, FRAME_HELLO, 0);
  lab_say(socket, frame, FRAME_HEADER + hello_encode(&hello, frame + FRAME_HEADER));
}
