/* A world by hand; see hand_world.h. */
#include "hand_world.h"

#include <criterion/criterion.h>

struct timer {
  timer_id id;
  int64_t at;
  uint64_t tag;
};

struct hand_world {
  struct world world; /* first */
  int64_t now;
  uint64_t ids;
  GArray *timers; /* of struct timer */
  GArray *ops;    /* of struct completion, under way */
  GRand *random;
  struct recording *recording;
  struct recorder *recorder;
};

static struct hand_world *of(struct world *world)
{
  return (struct hand_world *)world;
}

static int64_t now(struct world *world)
{
  return of(world)->now;
}

static timer_id set_timer(struct world *world, int64_t delay_ns, uint64_t tag)
{
  struct hand_world *w = of(world);
  struct timer timer = {++w->ids, w->now + delay_ns, tag};
  g_array_append_val(w->timers, timer);
  return timer.id;
}

static void timer_cancel(struct world *world, timer_id id)
{
  struct hand_world *w = of(world);
  for (guint i = 0; i < w->timers->len; i++)
    if (g_array_index(w->timers, struct timer, i).id == id) {
      g_array_remove_index(w->timers, i);
      return;
    }
}

static void send(struct world *world, actor_id to, const struct message *message)
{
  cr_assert(to == ACTOR(ACTOR_CONTROLLER, 0) && message->type < MESSAGE_TYPES && world);
}

static op_id begin(struct hand_world *w, struct completion completion)
{
  g_array_append_val(w->ops, completion);
  return ++w->ids;
}

static op_id fetch(struct world *world, const struct fetch_spec *spec)
{
  struct completion completion = {.tag = spec->tag, .bytes = spec->plan->total_bytes};
  if (spec->device)
    completion.groups = spec->plan->groups;
  return begin(of(world), completion);
}

static op_id copy(struct world *world, const struct copy_spec *spec)
{
  return begin(of(world), (struct completion){.tag = spec->tag});
}

static op_id compute(struct world *world, const struct compute_spec *spec)
{
  return begin(of(world), (struct completion){.tag = spec->tag, .steps = spec->steps});
}

static void cancel(struct world *world, op_id op)
{
  cr_assert_leq(op, of(world)->ids);
}

static void fill(struct world *world, uint32_t model, uint64_t offset, uint64_t bytes, uint32_t gpu,
                 const struct ranges *place)
{
  (void)model, (void)offset, (void)gpu;
  cr_assert(world && ranges_bytes(place) >= bytes);
}

static void serve(struct world *world, uint32_t model, uint64_t offset, uint64_t bytes,
                  const struct ranges *place)
{
  (void)world, (void)model, (void)offset, (void)bytes, (void)place;
}

static void record(struct world *world, const struct record *what)
{
  cr_assert(world && what->kind < RECORD_KIND_COUNT);
}

static const struct world_ops hand_ops = {.now = now,
                                          .timer = set_timer,
                                          .timer_cancel = timer_cancel,
                                          .send = send,
                                          .fetch = fetch,
                                          .copy = copy,
                                          .compute = compute,
                                          .cancel = cancel,
                                          .fill = fill,
                                          .serve = serve,
                                          .record = record,
                                          .capabilities = WORLD_GPUDIRECT};

struct hand_world *hand_world_new(const char *name, const struct setup *setup, actor_id self, guint32 seed)
{
  g_autoptr(GError) error = NULL;
  struct hand_world *w = g_new0(struct hand_world, 1);
  w->world = (struct world){.ops = &hand_ops, .records = TRUE};
  w->now = 123456789;
  w->timers = g_array_new(FALSE, FALSE, sizeof(struct timer));
  w->ops = g_array_new(FALSE, FALSE, sizeof(struct completion));
  w->random = g_rand_new_with_seed(seed);
  w->recording = recording_create(name, self, &error);
  cr_assert(w->recording, "%s", error ? error->message : "");
  w->recorder = recorder_new(w->recording, &w->world);
  recorder_begin(w->recorder, setup, 1, self);
  return w;
}

char *hand_world_close(struct hand_world *w)
{
  char *path = g_strdup(recording_path(w->recording));
  recorder_free(w->recorder);
  cr_assert(recording_close(w->recording, NULL));
  g_array_unref(w->timers);
  g_array_unref(w->ops);
  g_rand_free(w->random);
  g_free(w);
  return path;
}

struct world *hand_world_seam(struct hand_world *w)
{
  return recorder_seam(w->recorder);
}

GRand *hand_world_random(struct hand_world *w)
{
  return w->random;
}

void hand_world_start(struct hand_world *w, const struct actor_ops *ops, void *actor)
{
  recorder_set_actor(w->recorder, ops, actor);
  recorder_actor.start(w->recorder);
}

void hand_world_say(struct hand_world *w, actor_id from, const struct message *message)
{
  recorder_actor.message(w->recorder, from, message);
}

void hand_world_lose(struct hand_world *w, actor_id peer)
{
  recorder_actor.peer_lost(w->recorder, peer);
}

/* The earliest that is due. */
static gboolean fire(struct hand_world *w)
{
  guint first = 0;
  for (guint i = 1; i < w->timers->len; i++)
    if (g_array_index(w->timers, struct timer, i).at < g_array_index(w->timers, struct timer, first).at)
      first = i;
  if (w->timers->len == 0 || g_array_index(w->timers, struct timer, first).at > w->now)
    return FALSE;
  uint64_t tag = g_array_index(w->timers, struct timer, first).tag;
  g_array_remove_index(w->timers, first);
  recorder_actor.timer(w->recorder, tag);
  return TRUE;
}

void hand_world_turn(struct hand_world *w)
{
  w->now += g_rand_int_range(w->random, 0, 2000000);
  if (fire(w) || w->ops->len == 0)
    return;
  guint index = (guint)g_rand_int_range(w->random, 0, (gint32)MIN(3, w->ops->len));
  struct completion completion = g_array_index(w->ops, struct completion, index);
  g_array_remove_index(w->ops, index);
  if (g_rand_int_range(w->random, 0, 20) == 0) {
    completion.status = OP_FAILED;
    completion.groups /= 2;
  }
  recorder_actor.completion(w->recorder, &completion);
}
