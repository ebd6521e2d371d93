/* Calibration of control messages: a client, a controller and a GPU server, each a process, under CURVE; see
 * calibrate.h. Requests come one by one, each after a pause, as a light load has them: each finds processes
 * that sleep.
 */
#include <errno.h>
#include <glib/gstdio.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backend_real/calibrate.h"
#include "backend_real/control.h"
#include "backend_real/fit.h"
#include "backend_real/memory_file.h"
#include "backend_real/offspring.h"
#include "core/error.h"

enum { ROUNDS = 300, WARM_ROUNDS = 20, RUN = 1 };

#define PAUSE_NS (2 * NS_PER_MS)
#define LIMIT_NS (30 * NS_PER_S)

static void set_limits(struct message_limits *limits)
{
  message_limits_init(limits, 1, 1, 1);
}

/* --- the controller's process
 * ----------------------------------------------------------------------------------------*/

struct post {
  struct loop *loop;
  struct hub *hub;
};

static const char *post_joined(void *context, actor_id peer, const struct hello *hello)
{
  (void)context, (void)peer, (void)hello;
  return NULL;
}

static void post_frame(void *context, actor_id peer, enum frame_kind kind, const uint8_t *data, size_t size)
{
  (void)context, (void)peer, (void)kind, (void)data, (void)size;
}

static void post_message(void *context, actor_id peer, uint32_t run, const struct message *m)
{
  struct post *post = context;
  struct message dispatch = {.type = MESSAGE_DISPATCH, .dispatch = {.id = m->request.id}};
  struct message answer = {.type = MESSAGE_ANSWER, .answer = {.id = m->done.id}};
  if (ACTOR_KIND(peer) == ACTOR_CLIENT)
    hub_message(post->hub, ACTOR(ACTOR_GPU_SERVER, 0), run, &dispatch);
  else
    hub_message(post->hub, ACTOR(ACTOR_CLIENT, 0), run, &answer);
}

static void post_lost(void *context, actor_id peer, const char *why)
{
  (void)why;
  if (ACTOR_KIND(peer) == ACTOR_CLIENT)
    loop_quit(((struct post *)context)->loop);
}

static const struct hub_ops post_ops = {
    .joined = post_joined, .frame = post_frame, .message = post_message, .lost = post_lost};

struct keys {
  struct key_pair controller, peer;
  struct memory_file authorized; /* the public key that may connect */
  char endpoint[256];
};

static void controller_main(void *context, int out)
{
  const struct keys *keys = context;
  struct message_limits limits;
  struct post post = {.loop = loop_new()};
  const struct hub_config config = {
      .endpoint = "tcp://127.0.0.1:*", .keys = &keys->controller, .authorized = keys->authorized.path};
  post.hub = hub_new(post.loop, &config, &post_ops, &post, NULL);
  if (!post.hub)
    return;
  set_limits(&limits);
  hub_set_limits(post.hub, RUN, &limits);
  if (dprintf(out, "%s\n", hub_endpoint(post.hub)) > 0)
    loop_run(post.loop);
  hub_free(post.hub);
  loop_free(post.loop);
}

/* --- links
 * --------------------------------------------------------------------------------------------------------*/

struct end {
  struct loop *loop;
  struct link *link;
  gboolean welcome, failed;
  uint64_t sent; /* requests */
  int64_t sent_ns;
  GArray *rounds; /* of double: ns from request to answer */
};

static struct link *end_link(struct end *end, const struct keys *keys, enum actor_kind role,
                             const struct link_ops *ops, GError **error)
{
  struct message_limits limits;
  const struct link_config config = {.endpoint = keys->endpoint,
                                     .keys = &keys->peer,
                                     .server_key = keys->controller.public_key,
                                     .connect_timeout_ns = 10 * NS_PER_S};
  const struct hello hello = {.role = role, .epoch = 1};
  struct link *link = link_new(end->loop, &config, &hello, ops, end, error);
  set_limits(&limits);
  if (link)
    link_set_limits(link, RUN, &limits);
  return link;
}

static void end_frame(void *context, enum frame_kind kind, const uint8_t *data, size_t size)
{
  (void)context, (void)kind, (void)data, (void)size;
}

static void end_lost(void *context, const char *why)
{
  struct end *end = context;
  (void)why;
  end->failed = TRUE;
  loop_quit(end->loop);
}

/* --- the GPU server's process
 * ----------------------------------------------------------------------------------------*/

static void server_welcome(void *context)
{
  ((struct end *)context)->welcome = TRUE;
  loop_quit(((struct end *)context)->loop);
}

static void server_message(void *context, uint32_t run, const struct message *m)
{
  struct message done = {.type = MESSAGE_DONE, .done = {.id = m->dispatch.id}};
  link_message(((struct end *)context)->link, run, &done);
}

static const struct link_ops server_ops = {
    .welcome = server_welcome, .frame = end_frame, .message = server_message, .lost = end_lost};

static void server_main(void *context, int out)
{
  struct end end = {.loop = loop_new()};
  end.link = end_link(&end, context, ACTOR_GPU_SERVER, &server_ops, NULL);
  if (!end.link)
    return;
  loop_run(end.loop);
  if (end.welcome && dprintf(out, "linked\n") > 0)
    loop_run(end.loop);
  link_free(end.link);
  loop_free(end.loop);
}

/* --- the client: this process
 * ----------------------------------------------------------------------------------------*/

static void send_request(void *context, uint64_t tag)
{
  struct end *end = context;
  struct message request = {.type = MESSAGE_REQUEST, .request = {.id = end->sent++}};
  (void)tag;
  end->sent_ns = loop_clock();
  link_message(end->link, RUN, &request);
}

static void client_welcome(void *context)
{
  send_request(context, 0);
}

static void client_message(void *context, uint32_t run, const struct message *m)
{
  struct end *end = context;
  double took = (double)(loop_clock() - end->sent_ns);
  (void)run;
  if (m->type != MESSAGE_ANSWER || m->answer.id + 1 != end->sent)
    return;
  if (end->sent > WARM_ROUNDS)
    g_array_append_val(end->rounds, took);
  if (end->rounds->len < ROUNDS)
    loop_timer(end->loop, loop_clock() + PAUSE_NS, send_request, end, 0);
  else
    loop_quit(end->loop);
}

static const struct link_ops client_ops = {
    .welcome = client_welcome, .frame = end_frame, .message = client_message, .lost = end_lost};

static void too_late(void *context, uint64_t tag)
{
  struct end *end = context;
  (void)tag;
  end->failed = TRUE;
  loop_quit(end->loop);
}

static gboolean run_client(struct calibration *c, const struct keys *keys, GError **error)
{
  g_autoptr(GArray) rounds = g_array_new(FALSE, FALSE, sizeof(double));
  struct end end = {.loop = loop_new(), .rounds = rounds};
  end.link = end_link(&end, keys, ACTOR_CLIENT, &client_ops, error);
  if (end.link) {
    loop_timer(end.loop, loop_clock() + LIMIT_NS, too_late, &end, 0);
    loop_run(end.loop);
  }
  gboolean good = end.link && !end.failed;
  if (end.link && end.failed)
    g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "calibrate: control messages got no answer");
  link_free(end.link);
  loop_free(end.loop);
  if (!good)
    return FALSE;
  struct spread_of round = fit_spread((double *)(void *)rounds->data, rounds->len);
  calibration_set(c, KEY_CONTROL, round.median / 4e3,
                  "measured: a quarter of a request's four messages under CURVE, %u of them %d ms apart; "
                  "quartiles %.1f to "
                  "%.1f",
                  rounds->len, (int)(PAUSE_NS / NS_PER_MS), round.low / 4e3, round.high / 4e3);
  return TRUE;
}

/* --- all
 * ----------------------------------------------------------------------------------------------------------*/

static gboolean keys_make(struct keys *keys, GError **error)
{
  if (!key_pair_generate(&keys->controller, error) || !key_pair_generate(&keys->peer, error))
    return FALSE;
  g_autofree char *text = key_pair_public_text(&keys->peer);
  return memory_file_make(&keys->authorized, "peer.pub", text, error);
}

static void keys_clear(struct keys *keys)
{
  memory_file_close(&keys->authorized);
  explicit_bzero(keys, sizeof *keys);
}

gboolean calibrate_control(struct calibration *c, GError **error)
{
  struct keys keys = {.authorized.fd = -1};
  struct offspring controller = {0}, server = {0};
  char linked[16];
  gboolean good =
      calibration_goes_on(c, 0, error) && keys_make(&keys, error) &&
      offspring_start(&controller, controller_main, &keys, keys.endpoint, sizeof keys.endpoint, error) &&
      offspring_start(&server, server_main, &keys, linked, sizeof linked, error) &&
      run_client(c, &keys, error);
  offspring_end(&server);
  offspring_end(&controller);
  keys_clear(&keys);
  return good;
}
