/* Reads that wait, fair between parties; see transport_tcp_queue.h. */
#include "backend_real/transport_tcp_queue.h"

struct read_flow {
  uint32_t key;
  uint64_t had;                /* bytes; of one without reads, what it had when they ended */
  struct read *read;           /* a ring */
  uint32_t first, count, room; /* room: a power of two */
};

static struct read *read_at(const struct read_flow *flow, uint32_t i)
{
  return &flow->read[(flow->first + i) & (flow->room - 1)];
}

static void flow_grow(struct read_flow *flow)
{
  uint32_t room = MAX(flow->room * 2, 64);
  struct read *grown = g_new(struct read, room);
  for (uint32_t i = 0; i < flow->count; i++)
    grown[i] = *read_at(flow, i);
  g_free(flow->read);
  flow->read = grown;
  flow->first = 0;
  flow->room = room;
}

/* The key's own, else one without reads, else a new one. */
static struct read_flow *flow_for(struct read_queue *queue, uint32_t key)
{
  struct read_flow *idle = NULL;
  for (uint32_t f = 0; f < queue->flows; f++) {
    struct read_flow *flow = &queue->flow[f];
    if (flow->key == key)
      return flow;
    if (flow->count == 0)
      idle = flow;
  }
  if (!idle) {
    queue->flow = g_renew(struct read_flow, queue->flow, queue->flows + 1);
    idle = &queue->flow[queue->flows++];
    *idle = (struct read_flow){.key = key};
  }
  idle->key = key;
  idle->had = queue->had;
  return idle;
}

static struct read_flow *next_flow(const struct read_queue *queue)
{
  struct read_flow *best = NULL;
  for (uint32_t f = 0; f < queue->flows; f++) {
    struct read_flow *flow = &queue->flow[f];
    if (flow->count > 0 && (!best || flow->had < best->had))
      best = flow;
  }
  return best;
}

void read_queue_push(struct read_queue *queue, uint32_t key, const struct read *read)
{
  struct read_flow *flow = flow_for(queue, key);
  if (flow->count == 0)
    flow->had = MAX(flow->had, queue->had);
  if (flow->count == flow->room)
    flow_grow(flow);
  *read_at(flow, flow->count++) = *read;
}

const struct read *read_queue_first(const struct read_queue *queue)
{
  const struct read_flow *flow = next_flow(queue);
  return flow ? read_at(flow, 0) : NULL;
}

void read_queue_pop(struct read_queue *queue)
{
  struct read_flow *flow = next_flow(queue);
  queue->had = flow->had;
  flow->had += read_at(flow, 0)->bytes;
  flow->first = (flow->first + 1) & (flow->room - 1);
  flow->count--;
}

void read_queue_move(struct read_queue *queue, uint32_t server, struct read_queue *to)
{
  for (uint32_t f = 0; f < queue->flows; f++) {
    struct read_flow *flow = &queue->flow[f];
    uint32_t kept = 0;
    for (uint32_t i = 0; i < flow->count; i++) {
      const struct read *read = read_at(flow, i);
      if (read->server == server)
        read_queue_push(to, 0, read);
      else
        *read_at(flow, kept++) = *read;
    }
    flow->count = kept;
  }
}

void read_queue_clear(struct read_queue *queue)
{
  for (uint32_t f = 0; f < queue->flows; f++)
    g_free(queue->flow[f].read);
  g_free(queue->flow);
  *queue = (struct read_queue){0};
}
