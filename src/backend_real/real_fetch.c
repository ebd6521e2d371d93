/* Fetches: a stream from each memory server over the transport, or one from this server's SSD, cut into short
 * reads, in group order, held back by window and ring (world.h); into host memory, or straight into a GPU's.
 *
 * What lands in a GPU's memory is computed on as soon as this process has seen the last read of a group end:
 * reads are one-sided, so the GPU cannot tell by itself that they have, unless a kernel polled its memory for
 * it. So each group costs the way from the transport's thread over the loop to a launch, and no more. */
#include "backend_real/real_world_internal.h"

#include <string.h>

/* Reads of one stream from a memory server under way: enough that the transport never runs dry, few enough
 * that a fetch which begins later gets its share soon. */
#define STREAM_READS 16

/* --- reads
 * ----------------------------------------------------------------------------------------------------------*/

static void read_done(struct note *note);

static struct read *read_take(struct real_world *rw)
{
  struct read *read;
  if (rw->free_read == NO_INDEX) {
    read = g_new0(struct read, 1);
    read->self = rw->reads->len;
    read->rw = rw;
    read->note.read = read_done;
    g_ptr_array_add(rw->reads, read);
    return read;
  }
  read = g_ptr_array_index(rw->reads, rw->free_read);
  rw->free_read = read->next_free;
  return read;
}

void real_fetch_ended(void *context, uint64_t tag, gboolean good)
{
  struct real_world *rw = context;
  struct read *read = (struct read *)(uintptr_t)tag;
  read->good = good;
  note_post(rw->is.loop, &read->note);
}

/* --- how far
 * --------------------------------------------------------------------------------------------------------*/

static uint64_t group_end(const struct fetch_plan *plan, uint32_t group)
{
  return plan->group_offset[group] + plan->group_bytes[group];
}

gboolean real_fetch_has(const struct fetch_op *fetch, uint32_t group)
{
  return group < fetch->spec.first_group || fetch->missing[group] == 0;
}

/* Arrived bytes that wait for copies. */
static uint64_t waiting_bytes(const struct fetch_op *fetch)
{
  const struct fetch_plan *plan = fetch->spec.plan;
  uint64_t copied = 0;
  for (uint32_t g = fetch->spec.first_group; g < fetch->copied; g++)
    copied += plan->group_bytes[g];
  return fetch->came - MIN(copied, fetch->came);
}

/* May the stream begin the group that it stands at? */
static gboolean may_begin(const struct fetch_op *fetch, const struct fetch_stream *stream)
{
  const struct fetch_plan *plan = fetch->spec.plan;
  uint32_t group = stream->group;
  if (fetch->spec.sequential && group > fetch->arrived)
    return FALSE;
  if (fetch->direct)
    return TRUE;
  if (group > fetch->copied &&
      group_end(plan, group) > plan->group_offset[fetch->copied] + fetch->spec.ring_bytes)
    return FALSE;
  return group <= fetch->copied || fetch->spec.window_bytes == 0 ||
         waiting_bytes(fetch) <= fetch->spec.window_bytes;
}

/* --- asking
 * ---------------------------------------------------------------------------------------------------------*/

static gboolean is_remote(const struct fetch_op *fetch)
{
  return fetch->spec.source == SOURCE_REMOTE;
}

static void read_begin(struct real_world *rw, const struct fetch_op *fetch, struct read *read)
{
  uint64_t tag = (uint64_t)(uintptr_t)read;
  if (!is_remote(fetch)) {
    ssd_reader_read(rw->ssd, ssd_store_file(rw->ssd_store, fetch->spec.model), read->offset, read->to,
                    read->bytes, tag);
    return;
  }
  /* GPUs share the link; of one GPU's loads the first is needed first. */
  rw->transport->reader_read(rw->reader,
                             &(struct transport_read){.server = fetch->server[read->stream],
                                                      .model = fetch->spec.model,
                                                      .offset = read->offset,
                                                      .gpu = fetch->direct ? fetch->spec.gpu : NO_INDEX,
                                                      .to = read->to,
                                                      .bytes = read->bytes,
                                                      .party = fetch->spec.gpu,
                                                      .tag = tag});
}

/* Bytes of a read `at` bytes after the beginning of a piece. An SSD's end where blocks end. */
static uint64_t read_size(const struct fetch_op *fetch, const struct piece *piece, uint64_t at)
{
  return MIN(piece->length - at, is_remote(fetch) ? transport_read_bytes(piece->length)
                                                  : SSD_READ_MAX - (piece->offset + at) % SSD_READ_MAX);
}

/* The next read of the stream's present piece: within one range of memory, and one turn of the ring. */
static void ask(struct real_world *rw, struct fetch_op *fetch, uint32_t index)
{
  const struct fetch_plan *plan = fetch->spec.plan;
  struct fetch_stream *stream = &fetch->stream[index];
  const struct piece *piece = &plan->piece[stream->piece];
  uint64_t offset = piece->offset + stream->at, here;
  uint64_t bytes = read_size(fetch, piece, stream->at);
  uint64_t place = (offset - fetch->base) % fetch->ring;
  uint64_t to = ranges_piece(&fetch->place, place, MIN(bytes, fetch->ring - place), &here);
  struct read *read = read_take(rw);
  read->fetch = fetch->op.index;
  read->group = stream->group;
  read->stream = index;
  read->opening = is_remote(fetch) ? rw->opening[fetch->server[index]] : 0;
  read->bytes = (uint32_t)here;
  read->offset = offset;
  read->to = to;
  read->again = FALSE;
  stream->at += here;
  stream->under_way++;
  fetch->under_way++;
  read_begin(rw, fetch, read);
}

/* Steps over pieces and groups that are asked for whole. FALSE: the stream has no more. */
static gboolean advance(const struct fetch_plan *plan, struct fetch_stream *stream, uint32_t index)
{
  while (stream->group < plan->groups) {
    uint32_t end = plan->first_piece[stream->group * plan->streams + index + 1];
    if (stream->piece < end && stream->at < plan->piece[stream->piece].length)
      return TRUE;
    stream->at = 0;
    if (stream->piece < end)
      stream->piece++;
    if (stream->piece >= end && ++stream->group < plan->groups)
      stream->piece = plan->first_piece[stream->group * plan->streams + index];
  }
  return FALSE;
}

/* The stream whose next read the load needs first: of the earliest group, the one with the least under way;
 * of those that may ask. NO_INDEX: none may. */
static uint32_t next_stream(const struct fetch_op *fetch)
{
  const struct fetch_plan *plan = fetch->spec.plan;
  uint32_t most = is_remote(fetch) ? STREAM_READS : SSD_READS, best = NO_INDEX;
  for (uint32_t s = 0; s < plan->streams; s++) {
    struct fetch_stream *stream = &fetch->stream[s];
    if (stream->under_way >= most || !advance(plan, stream, s) ||
        (stream->at == 0 && !may_begin(fetch, stream)))
      continue;
    const struct fetch_stream *first = best == NO_INDEX ? NULL : &fetch->stream[best];
    if (!first || stream->group < first->group ||
        (stream->group == first->group && stream->under_way < first->under_way))
      best = s;
  }
  return best;
}

/* What comes over one link comes in the order in which it was asked for, so streams take turns. */
static void pump(struct real_world *rw, struct fetch_op *fetch)
{
  uint32_t stream;
  while (!fetch->failed && !fetch->op.cancelled && !rw->closed && (stream = next_stream(fetch)) != NO_INDEX)
    ask(rw, fetch, stream);
}

/* --- ends
 * -----------------------------------------------------------------------------------------------------------*/

/* Ended once nothing is under way and no more will be asked for. */
static void check_over(struct real_world *rw, struct fetch_op *fetch)
{
  uint32_t groups = fetch->spec.plan->groups;
  if (fetch->under_way > 0)
    return;
  gboolean whole = fetch->arrived == groups;
  if (!whole && !fetch->failed && !fetch->op.cancelled && !rw->closed)
    return;
  real_gpu_fetch_over(rw, fetch);
  op_end(rw, &fetch->op,
         (struct completion){.status = whole                 ? OP_DONE
                                       : fetch->op.cancelled ? OP_CANCELLED
                                                             : OP_FAILED,
                             .bytes = fetch->came,
                             .groups = fetch->direct ? fetch->arrived : 0});
}

static void group_came(struct real_world *rw, struct fetch_op *fetch, uint32_t group)
{
  if (world_records(&rw->world) && fetch->spec.gpu != NO_INDEX)
    real_record(rw, (struct record){.kind = RECORD_GROUP_NET,
                                    .request = fetch->spec.request,
                                    .model = fetch->spec.model,
                                    .gpu = fetch->spec.gpu,
                                    .group = group,
                                    .source = (uint32_t)fetch->spec.source,
                                    .a = (int64_t)fetch->spec.plan->group_bytes[group]});
  while (fetch->arrived < fetch->spec.plan->groups && fetch->missing[fetch->arrived] == 0)
    fetch->arrived++;
  for (uint32_t g = 0; g < rw->gpus; g++)
    real_gpu_pump(rw, g);
}

/* The actor must know before it looks for another copy, or it would ask the same server again at once. What
 * was asked before the server was dropped says nothing of one that is there again. */
static void peer_broken(struct real_world *rw, uint32_t server, uint32_t opening)
{
  if (!(rw->peers >> server & 1) || rw->opening[server] != opening || rw->closed)
    return;
  real_world_drop_peer(rw, server);
  rw->actor_ops->peer_lost(rw->actor, ACTOR(ACTOR_MEMORY_SERVER, server));
  if (rw->is.peer_broken)
    rw->is.peer_broken(rw->is.context, server);
}

/* A connection may break though its server lives: each read has a second try. */
static gboolean may_repeat(const struct real_world *rw, const struct fetch_op *fetch, const struct read *read)
{
  uint32_t server = fetch->server[read->stream];
  return is_remote(fetch) && !read->again && !rw->closed && !fetch->failed && !fetch->op.cancelled &&
         rw->opening[server] == read->opening && rw->peers >> server & 1;
}

static void read_done(struct note *note)
{
  struct read *read = (struct read *)note;
  struct real_world *rw = read->rw;
  struct fetch_op *fetch = g_ptr_array_index(rw->fetches.all, read->fetch);
  uint32_t group = read->group;
  if (!read->good && may_repeat(rw, fetch, read)) {
    read->again = TRUE;
    read_begin(rw, fetch, read);
    return;
  }
  fetch->under_way--;
  fetch->stream[read->stream].under_way--;
  read->next_free = rw->free_read;
  rw->free_read = read->self;
  if (read->good) {
    fetch->came += read->bytes;
    rw->usage.pcie_bytes += fetch->direct ? read->bytes : 0;
    fetch->missing[group] -= read->bytes;
    if (fetch->missing[group] == 0)
      group_came(rw, fetch, group);
  } else {
    fetch->failed = TRUE;
    if (is_remote(fetch))
      peer_broken(rw, fetch->server[read->stream], read->opening);
  }
  pump(rw, fetch);
  check_over(rw, fetch);
}

void real_fetch_copied(struct real_world *rw, struct fetch_op *fetch, uint32_t group)
{
  if (group < fetch->copied)
    return; /* another GPU was faster */
  fetch->copied = group + 1;
  pump(rw, fetch);
}

/* The first reads are asked for by the loop, not inside the call. */
static void fetch_begun(struct note *note)
{
  struct fetch_op *fetch = (struct fetch_op *)((char *)note - offsetof(struct fetch_op, begun));
  fetch->under_way--;
  pump(fetch->rw, fetch);
  check_over(fetch->rw, fetch);
}

/* --- begin and cancel
 * -----------------------------------------------------------------------------------------------*/

static void make_room(struct fetch_op *fetch, const struct fetch_plan *plan)
{
  if (plan->streams > fetch->streams_room) {
    fetch->streams_room = plan->streams;
    fetch->stream = g_renew(struct fetch_stream, fetch->stream, plan->streams);
  }
  if (plan->groups > fetch->groups_room) {
    fetch->groups_room = plan->groups;
    fetch->missing = g_renew(uint64_t, fetch->missing, plan->groups);
  }
}

op_id real_fetch(struct real_world *rw, const struct fetch_spec *spec)
{
  const struct fetch_plan *plan = spec->plan;
  struct fetch_op *fetch = (struct fetch_op *)op_take(&rw->fetches, OP_FETCH, sizeof(struct fetch_op));
  fetch->op.tag = spec->tag;
  fetch->spec = *spec;
  fetch->direct = spec->device != NULL;
  ranges_copy(&fetch->place, fetch->direct ? spec->device : spec->host);
  if (is_remote(fetch))
    memcpy(fetch->server, spec->server, plan->streams * sizeof *spec->server);
  make_room(fetch, plan);
  fetch->arrived = fetch->copied = spec->first_group;
  fetch->came = 0;
  fetch->failed = FALSE;
  fetch->base = fetch->direct ? 0 : plan->group_offset[0];
  fetch->ring = fetch->direct ? UINT64_MAX : spec->ring_bytes;
  for (uint32_t s = 0; s < plan->streams; s++) {
    fetch->stream[s] = (struct fetch_stream){.group = spec->first_group};
    fetch->stream[s].piece = plan->first_piece[spec->first_group * plan->streams + s];
    fetch->failed |= is_remote(fetch) ? !(rw->peers >> fetch->server[s] & 1) : !rw->ssd;
  }
  for (uint32_t g = 0; g < plan->groups; g++)
    fetch->missing[g] = g < spec->first_group ? 0 : plan->group_bytes[g];
  while (fetch->arrived < plan->groups && fetch->missing[fetch->arrived] == 0)
    fetch->arrived++; /* groups without parameters */
  op_id id = op_id_of(&fetch->op);
  fetch->begun.read = fetch_begun;
  fetch->rw = rw;
  fetch->under_way = 1; /* its own beginning: it never ends inside the call */
  note_post(rw->is.loop, &fetch->begun);
  return id;
}

void real_fetch_cancel(struct real_world *rw, struct fetch_op *fetch)
{
  fetch->op.cancelled = TRUE; /* what is under way ends by itself or with its peer */
  if (fetch->under_way == 0) {
    fetch->under_way = 1;
    note_post(rw->is.loop, &fetch->begun);
  }
}
