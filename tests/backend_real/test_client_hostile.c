/* `distmind-real client` against a controller that is no good: it ends, and says why. */
#include <criterion/criterion.h>
#include <string.h>

#include "backend_real/control.h"
#include "backend_real/run_spec.h"
#include "core/units.h"
#include "site.h"

#define LIMIT_NS (30 * NS_PER_S)
#define LOOK_NS  (5 * NS_PER_MS)

/* A controller whose one client is a process that the test started. */
struct impostor {
  struct loop *loop;
  struct hub *hub;
  enum frame_kind bad;   /* the first frame of this kind holds `text` */
  const char *text;      /* NULL: every frame is good */
  uint64_t digest_error; /* what is added to the digest of READY */
  Spawning *client;
  int64_t until;
};

/* READY as a good controller sends it, but for the digest. */
static void send_ready(struct impostor *impostor, actor_id client, const uint8_t *data, size_t size)
{
  struct run_spec spec;
  struct experiment *experiment = NULL;
  struct setup *setup = NULL;
  g_autoptr(GError) error = NULL;
  cr_assert(run_spec_unpack(data, size, &spec));
  cr_assert(run_spec_load(&spec, &experiment, &setup, &error), "%s", error ? error->message : "");
  struct run_ready ready = {.run = 1,
                            .digest = setup_digest(setup) + impostor->digest_error,
                            .address = (char *)"",
                            .text = (char *)"nobody"};
  g_autoptr(GBytes) bytes = run_ready_pack(&ready);
  hub_send(impostor->hub, client, FRAME_READY, g_bytes_get_data(bytes, NULL), g_bytes_get_size(bytes));
  setup_free(setup);
  experiment_free(experiment);
  run_spec_clear(&spec);
}

static const char *on_joined(void *context, actor_id peer, const struct hello *hello)
{
  (void)context;
  (void)peer;
  (void)hello;
  return NULL;
}

static void on_frame(void *context, actor_id peer, enum frame_kind kind, const uint8_t *data, size_t size)
{
  struct impostor *impostor = context;
  gboolean at_once = impostor->text && (impostor->bad == FRAME_READY || impostor->bad == FRAME_FAILED);
  if (kind == FRAME_BEGIN && !at_once)
    send_ready(impostor, peer, data, size);
  else if (kind == FRAME_BEGIN || (kind == FRAME_METER && impostor->text))
    hub_send(impostor->hub, peer, impostor->bad, impostor->text, strlen(impostor->text));
}

/* Requests of the run, which nobody answers. */
static void on_message(void *context, actor_id peer, uint32_t run, const struct message *message)
{
  (void)context;
  (void)peer;
  (void)run;
  (void)message;
}

static void on_lost(void *context, actor_id peer, const char *why)
{
  (void)context;
  (void)peer;
  (void)why;
}

static const struct hub_ops ops = {
    .joined = on_joined, .frame = on_frame, .message = on_message, .lost = on_lost};

static void look(void *context, uint64_t tag)
{
  struct impostor *impostor = context;
  (void)tag;
  if (spawning_ended(impostor->client) || loop_now(impostor->loop) > impostor->until)
    loop_quit(impostor->loop);
  else
    loop_timer(impostor->loop, loop_now(impostor->loop) + LOOK_NS, look, impostor, 0);
}

static void expect_end(struct impostor impostor, const char *says)
{
  g_autoptr(Site) site = site_new();
  g_autoptr(GError) error = NULL;
  impostor.loop = loop_new();
  impostor.hub =
      hub_new(impostor.loop, &(struct hub_config){.endpoint = "tcp://127.0.0.1:0"}, &ops, &impostor, &error);
  cr_assert(impostor.hub, "%s", error ? error->message : "");
  g_autofree char *cluster = g_strdup_printf("[cluster]\ncontroller = %s\n", hub_endpoint(impostor.hub));
  site_write(site, "cluster.ini", cluster);
  g_autofree char *words =
      g_strdup_printf("client %s/tiny.ini --cluster %s/cluster.ini --system distmind --device "
                      "host --quiet --out %s/x.db",
                      site, site, site);
  impostor.client = spawning_start("distmind-real", words);
  impostor.until = loop_now(impostor.loop) + LIMIT_NS;
  loop_timer(impostor.loop, loop_now(impostor.loop), look, &impostor, 0);
  loop_run(impostor.loop);
  cr_assert(spawning_ended(impostor.client), "the client does not end: %s", says);
  g_autoptr(Spawned) client = spawning_finish(impostor.client);
  cr_assert_eq(client->status, 1, "status %d: %s", client->status, client->err);
  cr_assert(strstr(client->err, says), "expected \"%s\" in: %s", says, client->err);
  hub_free(impostor.hub);
  loop_free(impostor.loop);
}

Test(client_hostile, malformed_frames_end_the_run)
{
  expect_end((struct impostor){.bad = FRAME_READY, .text = "no variant"},
             "the controller broke the protocol: READY is malformed");
  expect_end((struct impostor){.bad = FRAME_METERED, .text = "no variant"},
             "the controller broke the protocol: METERED is malformed");
  expect_end((struct impostor){.bad = FRAME_ENDED, .text = "no variant"},
             "the controller broke the protocol: ENDED is malformed");
}

Test(client_hostile, the_reason_of_a_refused_run_is_shown)
{
  expect_end((struct impostor){.bad = FRAME_FAILED, .text = "another client's run is on"},
             "another client's run is on");
  expect_end((struct impostor){.digest_error = 1},
             "the controller's experiment, profiles or hardware files are not the client's");
}
