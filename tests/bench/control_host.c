/* The controller of the control benchmark; see control_host.h. */
#include "control_host.h"

#include <string.h>
#include <unistd.h>

#include "core/controller.h"

void control_limits(const struct setup *setup, struct message_limits *limits)
{
  message_limits_init(limits, catalog_models(setup->catalog), CONTROL_GPUS, setup->config.memory_servers);
}

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
  hub_message(((struct host *)world)->hub, to, CONTROL_RUN, message);
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

void control_host_run(const struct setup *setup, const struct key_pair *keys, const char *authorized, int out)
{
  g_autoptr(GError) error = NULL;
  struct message_limits limits;
  struct host host = {.world.ops = &host_ops, .loop = loop_new()};
  const struct hub_config config = {.endpoint = "tcp://127.0.0.1:*", .keys = keys, .authorized = authorized};
  host.hub = hub_new(host.loop, &config, &host_hub_ops, &host, &error);
  if (!host.hub)
    g_error("bench: %s", error->message);
  control_limits(setup, &limits);
  hub_set_limits(host.hub, CONTROL_RUN, &limits);
  host.controller = controller_new(&setup->config, &host.world);
  controller_actor.start(host.controller);
  const char *endpoint = hub_endpoint(host.hub);
  if (write(out, endpoint, strlen(endpoint) + 1) <= 0)
    g_error("bench: nobody reads the endpoint");
  loop_run(host.loop);
  controller_free(host.controller);
  hub_free(host.hub);
  loop_free(host.loop);
}
