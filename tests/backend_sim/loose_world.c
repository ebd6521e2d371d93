/* See loose_world.h. */
#include "loose_world.h"

#include "live.h"

#define SELF ACTOR(ACTOR_GPU_SERVER, 0)

struct loose_op {
  op_id op, after, after_fetch;
  uint64_t tag;
  enum kind kind;
  uint32_t gpu, lane, group;
  gboolean to_host, fails, cancelled, direct;
  const struct fetch_plan *plan; /* of a fetch */
  uint32_t first, here;          /* groups before `here` have come */
  gboolean *copied;              /* [groups] */
  uint64_t ring, steps;
};

struct loose_timer {
  timer_id id;
  uint64_t tag;
};

struct loose_world {
  struct world world;
  const struct sim_watch *watch;
  GRand *rand;
  uint32_t fails;
  void (*done)(void *context, const struct message_done *done);
  void *context;
  struct gpu_server *server;
  int64_t now;
  op_id ops;
  GPtrArray *live; /* of struct loose_op, in order of their begin */
  GHashTable *bad; /* ids of what failed */
  GArray *timers;
};

static struct loose_world *of(struct world *world)
{
  return (struct loose_world *)world;
}

static gboolean chance(struct loose_world *w, uint32_t in)
{
  return in > 0 && g_rand_int_range(w->rand, 0, (int)in) == 0;
}

static void op_free(gpointer data)
{
  struct loose_op *o = data;
  g_free(o->copied);
  g_free(o);
}

static struct loose_op *op_at(const struct loose_world *w, guint i)
{
  return g_ptr_array_index(w->live, i);
}

static struct loose_op *op_find(const struct loose_world *w, op_id op)
{
  for (guint i = 0; op != 0 && i < w->live->len; i++)
    if (op_at(w, i)->op == op)
      return op_at(w, i);
  return NULL;
}

static struct loose_op *op_new(struct loose_world *w, enum kind kind, uint64_t tag)
{
  struct loose_op *o = g_new0(struct loose_op, 1);
  o->op = ++w->ops;
  o->kind = kind;
  o->tag = tag;
  o->fails = chance(w, w->fails);
  g_ptr_array_add(w->live, o);
  return o;
}

/* --- what is asked
 * --------------------------------------------------------------------------------------------------*/

static int64_t on_now(struct world *world)
{
  return of(world)->now;
}

static timer_id on_timer(struct world *world, int64_t delay_ns, uint64_t tag)
{
  struct loose_world *w = of(world);
  struct loose_timer timer = {.id = ++w->ops, .tag = tag};
  g_assert(delay_ns >= 0);
  g_array_append_val(w->timers, timer);
  return timer.id;
}

static void on_timer_cancel(struct world *world, timer_id id)
{
  struct loose_world *w = of(world);
  for (guint i = 0; i < w->timers->len; i++)
    if (g_array_index(w->timers, struct loose_timer, i).id == id)
      g_array_remove_index(w->timers, i);
}

static void on_send(struct world *world, actor_id to, const struct message *m)
{
  struct loose_world *w = of(world);
  (void)to;
  if (m->type == MESSAGE_DONE)
    w->done(w->context, &m->done);
}

static op_id on_fetch(struct world *world, const struct fetch_spec *spec)
{
  struct loose_world *w = of(world);
  struct loose_op *o = op_new(w, FETCH, spec->tag);
  o->plan = spec->plan;
  o->first = o->here = spec->first_group;
  o->copied = g_new0(gboolean, spec->plan->groups + 1);
  o->ring = spec->device ? UINT64_MAX : spec->ring_bytes;
  o->direct = spec->device != NULL;
  w->watch->fetch(w->watch->context, SELF, o->op, spec);
  return o->op;
}

static op_id on_copy(struct world *world, const struct copy_spec *spec)
{
  struct loose_world *w = of(world);
  struct loose_op *o = op_new(w, COPY, spec->tag);
  o->gpu = spec->gpu;
  o->lane = spec->lane;
  o->to_host = spec->to_host;
  o->group = spec->group;
  o->after = spec->after;
  o->after_fetch = spec->after_fetch;
  w->watch->copy(w->watch->context, SELF, o->op, spec);
  return o->op;
}

static op_id on_compute(struct world *world, const struct compute_spec *spec)
{
  struct loose_world *w = of(world);
  struct loose_op *o = op_new(w, COMPUTE, spec->tag);
  o->gpu = spec->gpu;
  o->lane = spec->stream;
  o->group = spec->group;
  o->after = spec->after;
  o->after_fetch = spec->after_fetch;
  o->steps = spec->steps;
  w->watch->compute(w->watch->context, SELF, o->op, spec);
  return o->op;
}

static void on_cancel(struct world *world, op_id op)
{
  struct loose_op *o = op_find(of(world), op);
  if (o)
    o->cancelled = TRUE;
}

static void on_fill(struct world *world, uint32_t model, uint64_t offset, uint64_t bytes, uint32_t gpu,
                    const struct ranges *place)
{
  const struct sim_watch *watch = of(world)->watch;
  watch->fill(watch->context, SELF, model, offset, bytes, gpu, place);
}

static const struct world_ops loose_ops = {.now = on_now,
                                           .timer = on_timer,
                                           .timer_cancel = on_timer_cancel,
                                           .send = on_send,
                                           .fetch = on_fetch,
                                           .copy = on_copy,
                                           .compute = on_compute,
                                           .cancel = on_cancel,
                                           .fill = on_fill,
                                           .capabilities = WORLD_PAGEABLE | WORLD_SSD | WORLD_GPUDIRECT};

/* --- what happens
 * ---------------------------------------------------------------------------------------------------*/

static void op_end(struct loose_world *w, struct loose_op *o, enum op_status status)
{
  struct completion c = {
      .tag = o->tag, .status = status, .groups = o->direct ? o->here : 0, .steps = o->steps};
  op_id op = o->op;
  if (status != OP_DONE)
    g_hash_table_add(w->bad, g_memdup2(&op, sizeof op));
  struct loose_op *fetch = op_find(w, o->after_fetch);
  if (o->kind == COPY && status == OP_DONE && fetch)
    fetch->copied[o->group] = TRUE;
  g_ptr_array_remove(w->live, o);
  w->watch->ended(w->watch->context, SELF, op, &c);
  gpu_server_actor.completion(w->server, &c);
}

static gboolean is_bad(const struct loose_world *w, op_id op)
{
  return op != 0 && g_hash_table_contains(w->bad, &op);
}

/* The ring has room for the next group. */
static gboolean fits_ring(const struct loose_op *o)
{
  uint32_t first = o->first;
  while (first < o->here && o->copied[first])
    first++;
  uint64_t end = o->plan->group_offset[o->here] + o->plan->group_bytes[o->here];
  return end - o->plan->group_offset[first] <= o->ring;
}

/* What names a fetch which ends badly: those whose group came go on without it. */
static void let_others_go(struct loose_world *w, const struct loose_op *fetch)
{
  for (guint i = 0; i < w->live->len; i++) {
    struct loose_op *o = op_at(w, i);
    if (o->after_fetch == fetch->op && o->group < fetch->here)
      o->after_fetch = 0;
  }
}

static gboolean fetch_step(struct loose_world *w, struct loose_op *o)
{
  gboolean over = o->here == o->plan->groups;
  if ((o->cancelled || o->fails) && chance(w, 3)) {
    let_others_go(w, o);
    op_end(w, o, o->cancelled ? OP_CANCELLED : OP_FAILED);
    return TRUE;
  }
  if (over && !o->fails)
    op_end(w, o, OP_DONE);
  else if (!over && fits_ring(o))
    o->here++;
  else
    return o->cancelled || o->fails;
  return TRUE;
}

/* An earlier operation of its lane or stream is under way. */
static gboolean is_behind(const struct loose_world *w, const struct loose_op *o)
{
  for (guint i = 0; op_at(w, i) != o; i++) {
    const struct loose_op *b = op_at(w, i);
    if (b->kind == o->kind && b->gpu == o->gpu && b->lane == o->lane && b->to_host == o->to_host)
      return TRUE;
  }
  return FALSE;
}

/* A copy fails: the rest of its lane does too. */
static void fail_lane(struct loose_world *w, const struct loose_op *o)
{
  for (guint i = 0; i < w->live->len; i++) {
    struct loose_op *b = op_at(w, i);
    if (b->kind == COPY && b->gpu == o->gpu && b->lane == o->lane && b->to_host == o->to_host)
      b->fails = TRUE;
  }
}

static gboolean work_step(struct loose_world *w, struct loose_op *o)
{
  const struct loose_op *fetch = op_find(w, o->after_fetch);
  gboolean doomed = o->fails || is_bad(w, o->after) || is_bad(w, o->after_fetch);
  if (!doomed && (is_behind(w, o) || op_find(w, o->after) || (fetch && o->group >= fetch->here)))
    return FALSE;
  if (doomed && o->kind == COPY)
    fail_lane(w, o);
  op_end(w, o, o->steps > 0 && (o->cancelled || doomed) ? OP_CANCELLED : doomed ? OP_FAILED : OP_DONE);
  return TRUE;
}

static gboolean fire_timer(struct loose_world *w)
{
  if (w->timers->len == 0)
    return FALSE;
  guint i = (guint)g_rand_int_range(w->rand, 0, (int)w->timers->len);
  struct loose_timer timer = g_array_index(w->timers, struct loose_timer, i);
  g_array_remove_index(w->timers, i);
  gpu_server_actor.timer(w->server, timer.tag);
  return TRUE;
}

gboolean loose_world_step(struct loose_world *w)
{
  w->now += 1000;
  if (chance(w, 5) && fire_timer(w))
    return TRUE;
  guint count = w->live->len, from = count ? (guint)g_rand_int_range(w->rand, 0, (int)count) : 0;
  for (guint i = 0; i < count; i++) {
    struct loose_op *o = op_at(w, (from + i) % count);
    if (o->kind == FETCH ? fetch_step(w, o) : work_step(w, o))
      return TRUE;
  }
  return fire_timer(w);
}

void loose_world_calm(struct loose_world *w)
{
  w->fails = 0;
}

struct loose_world *loose_world_new(const struct config *config, struct place_check *check, GRand *rand,
                                    uint32_t fails,
                                    void (*done)(void *context, const struct message_done *done),
                                    void *context)
{
  struct loose_world *w = g_new0(struct loose_world, 1);
  w->world.ops = &loose_ops;
  w->watch = place_check_watch(check);
  w->rand = rand;
  w->fails = fails;
  w->done = done;
  w->context = context;
  w->live = g_ptr_array_new_with_free_func(op_free);
  w->bad = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
  w->timers = g_array_new(FALSE, FALSE, sizeof(struct loose_timer));
  w->server = gpu_server_new(config, 0, &w->world);
  return w;
}

void loose_world_free(struct loose_world *w)
{
  gpu_server_free(w->server);
  g_ptr_array_unref(w->live);
  g_hash_table_unref(w->bad);
  g_array_unref(w->timers);
  g_free(w);
}

struct gpu_server *loose_world_server(struct loose_world *w)
{
  return w->server;
}

void loose_world_tell(struct loose_world *w, const struct message *m)
{
  gpu_server_actor.message(w->server, ACTOR(ACTOR_CONTROLLER, 0), m);
}
