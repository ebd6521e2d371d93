/* Following a change of the plan: what the next plan wants here and is not here comes from the servers that
 * hold it under the present one, part by part, in order of the models. What nobody holds any more is read
 * from its source again, as at the start.
 *
 * Room for all of it is taken at once, so a change that does not fit is refused before anything moves. What
 * the present plan has here stays until DROP: others read it. A change is given up when a newer one comes, a
 * server is lost or a fetch fails; what is under way then ends first. */
#include "core/memory_server_internal.h"

/* Read from its source in one go; in between, the server is alive for others. */
#define FILL_BYTES (16ULL << 20)

static void tell_placed(struct memory_server *s, uint32_t version, enum placed_result result)
{
  struct message m = {.type = MESSAGE_PLACED, .placed = {.version = version, .result = result}};
  world_send(s->world, ACTOR(ACTOR_CONTROLLER, 0), &m);
}

static void unserve(void *context, uint32_t model, struct piece piece)
{
  memory_server_serve(context, model, piece, NULL);
}

/* Lets go what neither of the plans (NULL: none) wants, and what is on its way. */
static void keep_only(struct memory_server *s, const struct pool_plan *a, const struct pool_plan *b)
{
  for (uint32_t m = 0; m < catalog_models(s->config->catalog); m++) {
    g_array_set_size(s->wanted, 0);
    memory_server_pieces(s, a, m, s->wanted);
    memory_server_pieces(s, b, m, s->wanted);
    pieces_merge(s->wanted);
    shard_store_drop_coming(s->store, m);
    shard_store_trim(s->store, m, (const struct piece *)(const void *)s->wanted->data, s->wanted->len,
                     unserve, s);
  }
}

/* --- what a change lacks
 * --------------------------------------------------------------------------------------------*/

/* Another memory server that answers and has the slot under the present plan, NO_INDEX if none does. */
static uint32_t holder(const struct memory_server *s, uint32_t slot)
{
  for (uint32_t copy = 0; copy < s->config->replicas && copy < s->plan_from->slots; copy++) {
    uint32_t server = pool_plan_server(s->plan_from, slot, copy);
    if (server != s->index && s->from >> server & 1)
      return server;
  }
  return NO_INDEX;
}

/* Where the bytes of a part are: extents in order, `slot` being the server; NULL: some of it is nowhere. */
static GArray *sources(const struct memory_server *s, uint32_t model, struct piece piece)
{
  GArray *found = g_array_new(FALSE, FALSE, sizeof(struct extent));
  const struct placement *old = memory_server_placement(s, s->plan_from, model);
  for (uint32_t i = 0; i < old->extents; i++) {
    const struct extent *have = &old->extent[i];
    uint64_t begin = MAX(have->offset, piece.offset);
    uint64_t end = MIN(have->offset + have->length, piece.offset + piece.length);
    if (begin >= end)
      continue;
    struct extent part = {.offset = begin, .length = end - begin, .slot = holder(s, have->slot)};
    if (part.slot == NO_INDEX) {
      g_array_unref(found);
      return NULL;
    }
    g_array_append_val(found, part);
  }
  return found;
}

/* The parts of the model that the change lacks. */
static void parts_missing(struct memory_server *s, uint32_t model, GArray *missing)
{
  g_array_set_size(s->wanted, 0);
  g_array_set_size(missing, 0);
  memory_server_pieces(s, s->incoming, model, s->wanted);
  shard_store_missing(s->store, model, (const struct piece *)(const void *)s->wanted->data, s->wanted->len,
                      missing);
}

/* Takes room for all that the change lacks. FALSE: it does not fit. */
static gboolean room_take(struct memory_server *s)
{
  g_autoptr(GArray) missing = g_array_new(FALSE, FALSE, sizeof(struct piece));
  for (uint32_t m = 0; m < catalog_models(s->config->catalog); m++) {
    parts_missing(s, m, missing);
    for (guint i = 0; i < missing->len; i++) {
      struct piece piece = g_array_index(missing, struct piece, i);
      uint64_t held = shard_store_held(s->store), most = s->config->memory_hardware.host_memory_bytes;
      if (held > most || piece.length > most - held || !shard_store_add(s->store, m, piece))
        return FALSE;
    }
  }
  s->peak = MAX(s->peak, shard_store_held(s->store));
  return TRUE;
}

/* --- moving it
 * --------------------------------------------------------------------------------------------------------*/

/* From its source. One at a time. */
static void fill_begin(struct memory_server *s, uint32_t model, const struct shard *shard)
{
  s->filling = (struct filling){.on = TRUE, .model = model, .offset = shard->piece.offset};
  s->moving++;
  s->world->ops->timer(s->world, 0, MEMORY_TIMER_FILL);
}

static void move_begin(struct memory_server *s, uint32_t model, const struct shard *shard, GArray *from)
{
  uint32_t i = 0;
  while (s->move[i].op != 0)
    i++;
  struct move *move = &s->move[i];
  move->plan = fetch_plan_cut((const struct extent *)(const void *)from->data, from->len, MEMORY_SERVERS_MAX,
                              &shard->piece.length, 1);
  move->model = model;
  move->offset = shard->piece.offset;
  struct fetch_spec spec = {.model = model,
                            .source = SOURCE_REMOTE,
                            .plan = move->plan,
                            .server = move->plan->slot,
                            .host = &shard->place,
                            .ring_bytes = shard->piece.length,
                            .gpu = NO_INDEX,
                            .request = UINT64_MAX,
                            .tag = i};
  s->moving++;
  move->op = s->world->ops->fetch(s->world, &spec);
}

/* FALSE: has to wait for another one. */
static gboolean part_begin(struct memory_server *s, uint32_t model, const struct shard *shard)
{
  g_autoptr(GArray) from = sources(s, model, shard->piece);
  if (!from && s->filling.on)
    return FALSE;
  if (from)
    move_begin(s, model, shard, from);
  else
    fill_begin(s, model, shard);
  return TRUE;
}

static gboolean under_way(const struct memory_server *s, uint32_t model, uint64_t offset)
{
  for (uint32_t i = 0; i < MOVES_MAX; i++)
    if (s->move[i].op != 0 && s->move[i].model == model && s->move[i].offset == offset)
      return TRUE;
  return s->filling.on && s->filling.model == model && s->filling.offset == offset;
}

/* Begins what may be under way; when nothing is left, the change has been followed. */
static void moves_advance(struct memory_server *s)
{
  while (s->moving < MOVES_MAX && s->next_model < catalog_models(s->config->catalog)) {
    uint32_t count, i = 0;
    struct shard *shard = shard_store_shards(s->store, s->next_model, &count);
    while (i < count && (shard[i].here || under_way(s, s->next_model, shard[i].piece.offset)))
      i++;
    if (i == count)
      s->next_model++;
    else if (!part_begin(s, s->next_model, &shard[i]))
      break;
  }
  if (s->moving > 0)
    return;
  s->placed = TRUE;
  tell_placed(s, s->incoming->version, PLACED_DONE);
}

static void refuse(struct memory_server *s, enum placed_result why)
{
  uint32_t version = s->incoming->version;
  keep_only(s, s->plan, NULL);
  pool_plan_free(s->incoming);
  s->incoming = NULL;
  tell_placed(s, version, why);
}

static void follow(struct memory_server *s, const struct message_place *m)
{
  pool_plan_free(s->incoming);
  pool_plan_free(s->plan_from);
  s->incoming = pool_plan_new(s->config->plans, s->config->sharding, m->version, m->members);
  s->plan_from = pool_plan_new(s->config->plans, s->config->sharding, 0, m->present);
  s->from = m->from;
  s->placed = s->failed = FALSE;
  s->next_model = 0;
  keep_only(s, s->plan, s->incoming);
  if (room_take(s))
    moves_advance(s);
  else
    refuse(s, PLACED_NO_ROOM);
}

static void give_up(struct memory_server *s)
{
  s->failed = TRUE;
  for (uint32_t i = 0; i < MOVES_MAX; i++)
    if (s->move[i].op != 0)
      s->world->ops->cancel(s->world, s->move[i].op);
}

static gboolean members_exist(const struct memory_server *s, uint64_t members)
{
  uint32_t most = s->config->memory_servers;
  return members != 0 && (most >= 64 || members >> most == 0);
}

void memory_move_place(struct memory_server *s, const struct message_place *m)
{
  if (!members_exist(s, m->members) || !members_exist(s, m->present)) {
    tell_placed(s, m->version, PLACED_NO_ROOM);
  } else if (s->moving > 0) {
    s->again = *m;
    give_up(s);
  } else {
    follow(s, m);
  }
}

/* What was given up has ended, or more of it is to. */
static void given_up(struct memory_server *s)
{
  if (s->moving > 0)
    return;
  struct message_place again = s->again;
  s->again.members = 0;
  if (again.members != 0)
    follow(s, &again);
  else
    refuse(s, PLACED_GIVEN_UP);
}

static void part_came(struct memory_server *s, uint32_t model, uint64_t offset)
{
  struct shard *shard = shard_store_find(s->store, model, offset);
  shard->here = TRUE;
  memory_server_serve(s, model, shard->piece, &shard->place);
  moves_advance(s);
}

void memory_move_ended(struct memory_server *s, uint32_t index, enum op_status status)
{
  struct move *move = &s->move[index];
  fetch_plan_free(move->plan);
  move->plan = NULL;
  move->op = 0;
  s->moving--;
  if (status == OP_DONE && !s->failed) {
    part_came(s, move->model, move->offset);
    return;
  }
  if (!s->failed)
    give_up(s);
  given_up(s);
}

/* The next piece of the shard, within one range of its place. */
static void fill_step(struct memory_server *s, const struct shard *shard)
{
  struct filling *f = &s->filling;
  uint64_t length = MIN(shard->piece.length - f->at, FILL_BYTES), here;
  uint64_t to = ranges_piece(&shard->place, f->at, length, &here);
  struct range range = {.offset = to, .length = here};
  const struct ranges place = {.range = &range, .count = 1, .room = 1};
  s->world->ops->fill(s->world, f->model, f->offset + f->at, here, NO_INDEX, &place);
  f->at += here;
}

void memory_move_fill(struct memory_server *s)
{
  struct filling *f = &s->filling;
  const struct shard *shard = s->failed ? NULL : shard_store_find(s->store, f->model, f->offset);
  if (shard)
    fill_step(s, shard);
  if (shard && f->at < shard->piece.length) {
    s->world->ops->timer(s->world, 0, MEMORY_TIMER_FILL);
    return;
  }
  f->on = FALSE;
  s->moving--;
  if (shard)
    part_came(s, f->model, f->offset);
  else
    given_up(s);
}

void memory_move_drop(struct memory_server *s, uint32_t version)
{
  if (!s->incoming || !s->placed || s->incoming->version != version)
    return;
  pool_plan_free(s->plan);
  s->plan = s->incoming;
  s->incoming = NULL;
  keep_only(s, s->plan, NULL);
}

void memory_move_peer_lost(struct memory_server *s)
{
  if (s->moving > 0)
    give_up(s);
}
