/* Streams over max-min fair links; see stream.h.
 *
 * The solver says which link holds a stream back; the streams of one such link form a group (stream_group.h)
 * with one event, at the first milestone of any of them. A stream that only its own cap holds back, or
 * nothing, is alone in a group of its own. A change costs as much as the groups that it reaches, and a
 * milestone costs one event.
 *
 * A stream's bytes are the group's virtual bytes less an offset fixed when it joined, so they are worked out
 * when asked for. */
#include "backend_sim/stream.h"

#include <math.h>

#include "backend_sim/stream_groups.h"
#include "core/units.h"

#define FIRST_SIZE  16
#define STREAM_NONE UINT32_MAX

/* A group never empty counts on for the whole run; past this (2^42, where a double still tells a thousandth
 * of a byte) it starts anew at 0. */
#define REBASE_BYTES 4398046511104.0

struct stream {
  const uint64_t *ends;
  uint64_t user;
  double base; /* in a group: virtual bytes at its own byte 0; in none: the bytes it has moved */
  double cap;
  uint32_t milestones;
  uint32_t next; /* milestone; of a free stream: the next free one */
  flow_id flow;  /* LINK_NONE while paused */
  group_id group;
  link_id links[FLOW_LINKS_MAX];
  uint32_t link_count;
};

struct stream_net {
  struct event_queue *queue;
  uint32_t event_kind;
  stream_milestone on_milestone;
  void *context;
  struct fair_share *fair;

  struct stream *streams;
  uint32_t *place; /* of each stream in its group's heap */
  uint32_t stream_count;
  uint32_t stream_size;
  stream_id free;
  stream_id *of_flow; /* stream of each flow of the solver */
  uint32_t of_flow_size;

  struct stream_groups groups;

  gboolean changed;  /* something waits for settle */
  double changed_ns; /* latest exact time of the changes that wait */
  double settled_ns; /* time never goes back */
};

struct stream_net *stream_net_new(struct event_queue *queue, uint32_t event_kind,
                                  stream_milestone on_milestone, void *context)
{
  struct stream_net *net = g_new0(struct stream_net, 1);
  *net = (struct stream_net){.queue = queue,
                             .event_kind = event_kind,
                             .on_milestone = on_milestone,
                             .context = context,
                             .fair = fair_share_new(),
                             .free = STREAM_NONE};
  return net;
}

void stream_net_free(struct stream_net *net)
{
  if (!net)
    return;
  fair_share_free(net->fair);
  stream_groups_clear(&net->groups);
  g_free(net->streams);
  g_free(net->place);
  g_free(net->of_flow);
  g_free(net);
}

/* --- groups --- */

static inline struct stream_group *group_at(struct stream_net *net, group_id id)
{
  return stream_groups_at(&net->groups, id);
}

/* Takes whole REBASE_BYTES off the group's count: exact, as the low bits stay. */
static void group_rebase(struct stream_net *net, struct stream_group *group)
{
  double less = floor(group->bytes / REBASE_BYTES) * REBASE_BYTES;
  group->bytes -= less;
  for (uint32_t i = 0; i < group->count; i++) {
    struct stream *stream = &net->streams[group->heap[i].stream];
    stream->base -= less;
    group->heap[i].target = stream->base + (double)stream->ends[stream->next];
  }
}

/* Puts the group's event where its first milestone is. */
static void group_schedule(struct stream_net *net, group_id id, int64_t now_ns)
{
  struct stream_group *group = group_at(net, id);
  if (!group->count) {
    if (group->event != EVENT_NONE)
      event_queue_remove(net->queue, group->event);
    group->event = EVENT_NONE;
    return;
  }
  int64_t time_ns = max_i64(ns_round(stream_group_first_ns(group)), now_ns);
  if (group->event == EVENT_NONE)
    group->event = event_queue_add(net->queue, time_ns, net->event_kind, id);
  else if (group->event_ns != time_ns)
    event_queue_move(net->queue, group->event, time_ns);
  group->event_ns = time_ns;
}

/* --- streams --- */

static void net_change(struct stream_net *net, double at_ns)
{
  net->changed_ns = net->changed ? MAX(net->changed_ns, at_ns) : at_ns;
  net->changed = TRUE;
}

static inline double stream_total(const struct stream *stream)
{
  return (double)stream->ends[stream->milestones - 1];
}

static double stream_moved(struct stream_net *net, const struct stream *stream, double at_ns)
{
  if (stream->group == GROUP_NONE)
    return stream->base;
  return MIN(stream_group_bytes(group_at(net, stream->group), at_ns) - stream->base, stream_total(stream));
}

static void stream_leave(struct stream_net *net, stream_id id, double moved)
{
  struct stream *stream = &net->streams[id];
  stream->base = moved;
  if (stream->group == GROUP_NONE)
    return;
  struct stream_group *group = group_at(net, stream->group);
  stream_group_remove(group, net->place, id);
  if (!group->count)
    group_schedule(net, stream->group, 0);
  stream_groups_give(&net->groups, stream->group);
  stream->group = GROUP_NONE;
}

/* Joins the group of what holds the stream back from at_ns on. */
static void stream_join(struct stream_net *net, stream_id id, double at_ns)
{
  struct stream *stream = &net->streams[id];
  link_id bottleneck = fair_share_bottleneck(net->fair, stream->flow);
  stream->group = bottleneck != LINK_NONE ? bottleneck : stream_groups_take(&net->groups);
  struct stream_group *group = group_at(net, stream->group);
  stream_group_advance(group, at_ns);
  group->rate = fair_share_rate(net->fair, stream->flow);
  stream->base = group->bytes - stream->base;
  stream_group_add(group, net->place, id, stream->base + (double)stream->ends[stream->next]);
  stream_groups_list(&net->groups, stream->group);
}

static void flow_start(struct stream_net *net, stream_id id)
{
  struct stream *stream = &net->streams[id];
  stream->flow = fair_share_add_flow(net->fair, stream->links, stream->link_count, stream->cap);
  if (stream->flow >= net->of_flow_size) {
    net->of_flow_size = MAX(stream->flow + 1, net->of_flow_size * 2);
    net->of_flow = g_renew(stream_id, net->of_flow, net->of_flow_size);
  }
  net->of_flow[stream->flow] = id;
}

static void flow_stop(struct stream_net *net, struct stream *stream)
{
  if (stream->flow != LINK_NONE)
    fair_share_remove_flow(net->fair, stream->flow);
  stream->flow = LINK_NONE;
}

static stream_id stream_take(struct stream_net *net)
{
  stream_id id = net->free;
  if (id != STREAM_NONE) {
    net->free = net->streams[id].next;
    return id;
  }
  if (net->stream_count == net->stream_size) {
    net->stream_size = net->stream_size ? net->stream_size * 2 : FIRST_SIZE;
    net->streams = g_renew(struct stream, net->streams, net->stream_size);
    net->place = g_renew(uint32_t, net->place, net->stream_size);
  }
  return net->stream_count++;
}

/* Takes the stream off the network for good. */
static void stream_end(struct stream_net *net, stream_id id, double at_ns)
{
  struct stream *stream = &net->streams[id];
  stream_leave(net, id, 0);
  flow_stop(net, stream);
  stream->next = net->free;
  net->free = id;
  net_change(net, at_ns);
}

stream_id stream_start(struct stream_net *net, double start_ns, const link_id *links, uint32_t count,
                       double cap, const uint64_t *milestone_end, uint32_t milestones, uint64_t user)
{
  g_assert(milestones && count <= FLOW_LINKS_MAX);
  stream_id id = stream_take(net);
  struct stream *stream = &net->streams[id];
  *stream = (struct stream){.ends = milestone_end,
                            .user = user,
                            .cap = cap,
                            .milestones = milestones,
                            .group = GROUP_NONE,
                            .link_count = count};
  for (uint32_t i = 0; i < count; i++)
    stream->links[i] = links[i];
  flow_start(net, id);
  net_change(net, start_ns);
  return id;
}

void stream_pause(struct stream_net *net, stream_id id, double at_ns)
{
  struct stream *stream = &net->streams[id];
  if (stream->flow == LINK_NONE)
    return;
  stream_leave(net, id, stream_moved(net, stream, at_ns));
  flow_stop(net, stream);
  net_change(net, at_ns);
}

void stream_resume(struct stream_net *net, stream_id id, double at_ns)
{
  if (net->streams[id].flow != LINK_NONE)
    return;
  flow_start(net, id);
  net_change(net, at_ns);
}

uint64_t stream_cancel(struct stream_net *net, stream_id id, int64_t now_ns)
{
  const struct stream *stream = &net->streams[id];
  uint64_t reported = stream->next ? stream->ends[stream->next - 1] : 0;
  /* A milestone may be reported up to half a nanosecond early. */
  double moved = floor(MAX(stream_moved(net, stream, (double)now_ns), (double)reported));
  stream_end(net, id, (double)now_ns);
  return (uint64_t)moved;
}

/* --- the network --- */

link_id stream_net_add_link(struct stream_net *net, double bytes_s)
{
  stream_groups_add_link(&net->groups);
  return fair_share_add_link(net->fair, bytes_s);
}

void stream_net_set_capacity(struct stream_net *net, link_id link, double bytes_s, int64_t now_ns)
{
  fair_share_set_capacity(net->fair, link, bytes_s);
  net_change(net, (double)now_ns);
}

/* The first stream of the group passes its next milestone. */
static void milestone_pass(struct stream_net *net, struct stream_group *group, double exact_ns)
{
  stream_id id = group->heap[0].stream;
  struct stream *stream = &net->streams[id];
  uint64_t user = stream->user;
  uint32_t milestone = stream->next++;
  gboolean last = stream->next == stream->milestones;
  if (group->rate == INFINITY)
    group->bytes = group->heap[0].target;
  if (last)
    stream_end(net, id, exact_ns);
  else
    stream_group_delay_first(group, net->place, stream->base + (double)stream->ends[stream->next]);
  net->on_milestone(net->context, id, user, milestone, exact_ns, last);
}

void stream_net_event(struct stream_net *net, int64_t now_ns, uint64_t payload)
{
  group_id id = (group_id)payload;
  group_at(net, id)->event = EVENT_NONE;
  /* The callback may do anything to the group: look at it anew each time. */
  for (;;) {
    struct stream_group *group = group_at(net, id);
    double exact_ns = group->count ? stream_group_first_ns(group) : INFINITY;
    if (ns_round(exact_ns) > now_ns)
      break;
    milestone_pass(net, group, exact_ns);
  }
  group_schedule(net, id, now_ns);
}

/* Takes the moved streams from their old groups to their new ones; groups of changed levels go on at their
 * new rate. */
static void groups_update(struct stream_net *net, const struct fair_changes *changes, double at_ns)
{
  for (uint32_t i = 0; i < changes->level_count; i++) {
    stream_group_advance(&net->groups.of_link[changes->levels[i]], at_ns);
    stream_groups_list(&net->groups, changes->levels[i]);
  }
  for (uint32_t i = 0; i < changes->moved_count; i++) {
    stream_id id = net->of_flow[changes->moved[i]];
    if (net->streams[id].group != GROUP_NONE)
      stream_groups_list(&net->groups, net->streams[id].group);
    stream_leave(net, id, stream_moved(net, &net->streams[id], at_ns));
  }
  for (uint32_t i = 0; i < changes->level_count; i++)
    net->groups.of_link[changes->levels[i]].rate = fair_share_level(net->fair, changes->levels[i]);
  for (uint32_t i = 0; i < changes->moved_count; i++)
    stream_join(net, net->of_flow[changes->moved[i]], at_ns);
}

gboolean stream_net_settle(struct stream_net *net, int64_t now_ns)
{
  if (!net->changed)
    return FALSE;
  net->changed = FALSE;
  double at_ns = net->settled_ns = MAX(net->settled_ns, net->changed_ns);
  struct fair_changes changes;
  fair_share_update(net->fair, &changes);
  groups_update(net, &changes, at_ns);
  for (uint32_t i = 0; i < net->groups.listed_count; i++) {
    struct stream_group *group = group_at(net, net->groups.listed[i]);
    group->listed = FALSE;
    if (group->bytes > REBASE_BYTES)
      group_rebase(net, group);
    group_schedule(net, net->groups.listed[i], now_ns);
  }
  net->groups.listed_count = 0;
  return TRUE;
}
