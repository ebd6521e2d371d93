/* Mail: messages under way, each for the control latency of its hop. Hops of one latency are delivered in the
 * order sent, so each latency has a ring of its own instead of a place in the heap; the rings and the event
 * queue share one order of insertion. */
#include "backend_sim/sim_internal.h"

#define ROOM_AT_START 1024 /* a power of two, as every room */

static uint32_t lane_of(struct sim *sim, double control_ns)
{
  int64_t hop = ns_round(control_ns);
  for (uint32_t i = 0; i < sim->mail_lanes; i++)
    if (sim->mail_lane[i].hop == hop)
      return i;
  sim->mail_lane[sim->mail_lanes] =
      (struct mail_lane){.hop = hop, .room = ROOM_AT_START, .mail = g_new(struct mail, ROOM_AT_START)};
  return sim->mail_lanes++;
}

void sim_mail_init(struct sim *sim)
{
  const struct config *config = sim->config;
  sim->client.mail_lane = sim->controller.mail_lane = lane_of(sim, config->hardware[0].control_ns);
  for (uint32_t s = 0; s < config->servers; s++)
    sim->server[s].mail_lane = lane_of(sim, config_server_hardware(config, s)->control_ns);
  for (uint32_t i = 0; i < config->memory_servers; i++)
    sim->memory[i].mail_lane = lane_of(sim, config->memory_hardware.control_ns);
}

void sim_mail_clear(struct sim *sim)
{
  for (uint32_t i = 0; i < sim->mail_lanes; i++)
    g_free(sim->mail_lane[i].mail);
}

static void lane_grow(struct mail_lane *lane)
{
  struct mail *mail = g_new(struct mail, (size_t)lane->room * 2);
  for (uint32_t i = 0; i < lane->count; i++)
    mail[i] = lane->mail[(lane->first + i) & (lane->room - 1)];
  g_free(lane->mail);
  lane->mail = mail;
  lane->first = 0;
  lane->room *= 2;
}

/* Between the client and the controller their own; else that of the server at either end. */
static struct mail_lane *hop_lane(struct sim *sim, const struct port *from, actor_id to)
{
  gboolean server = ACTOR_KIND(from->id) == ACTOR_GPU_SERVER || ACTOR_KIND(from->id) == ACTOR_MEMORY_SERVER;
  return &sim->mail_lane[server ? from->mail_lane : sim_port(sim, to)->mail_lane];
}

void sim_mail_send(struct port *from, actor_id to, const struct message *message)
{
  struct sim *sim = from->sim;
  struct mail_lane *lane = hop_lane(sim, from, to);
  if (lane->count == lane->room)
    lane_grow(lane);
  lane->mail[(lane->first + lane->count++) & (lane->room - 1)] =
      (struct mail){.time = sim->now + lane->hop,
                    .sequence = event_queue_sequence(sim->queue),
                    .from = from->id,
                    .to = to,
                    .message = *message};
}

static gboolean is_earlier(const struct mail *a, const struct mail *b)
{
  return a->time < b->time || (a->time == b->time && a->sequence < b->sequence);
}

const struct mail *sim_mail_first(struct sim *sim)
{
  const struct mail *first = NULL;
  for (uint32_t i = 0; i < sim->mail_lanes; i++) {
    const struct mail_lane *lane = &sim->mail_lane[i];
    const struct mail *mail = &lane->mail[lane->first];
    if (lane->count == 0 || (first && !is_earlier(mail, first)))
      continue;
    first = mail;
    sim->mail_next = i;
  }
  return first;
}

struct mail sim_mail_take(struct sim *sim)
{
  struct mail_lane *lane = &sim->mail_lane[sim->mail_next];
  struct mail mail = lane->mail[lane->first];
  lane->first = (lane->first + 1) & (lane->room - 1);
  lane->count--;
  return mail;
}
