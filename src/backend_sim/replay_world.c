/* Inputs out of a recording, outputs against it; see replay_world.h. */
#include "backend_sim/replay_world.h"

#include "backend_sim/replay_pending.h"
#include "core/error.h"

struct replay_world {
  struct world world; /* first */
  struct world_ops ops;
  const struct config *config;
  struct message_limits limits;
  const struct actor_ops *actor_ops;
  void *actor;
  gboolean started;
  int64_t now;
  struct replay_pending *pending;

  const struct recorded_step *step;
  uint32_t next;      /* output to compare with */
  char *difference;   /* the first; nothing is compared after it */
  const char *breach; /* of the seam's contract, by the recording */
  uint64_t spare_id;  /* for what is begun after a difference */
  struct octets form;
  uint64_t inputs, outputs;
};

/* --- outputs
 * --------------------------------------------------------------------------------------------------------*/

static struct replay_world *of(struct world *world)
{
  return (struct replay_world *)world;
}

/* The next recorded output, its id taken off; FALSE: there is none. */
static gboolean expected_output(struct replay_world *r, struct recorded *expected, uint64_t *id)
{
  if (r->next >= r->step->outputs)
    return FALSE;
  *expected = r->step->output[r->next++];
  struct octets_view v = octets_view_of(expected->data, expected->size);
  *id = seam_has_id((enum seam_kind)expected->kind) ? view_number(&v) : 0;
  *expected = (struct recorded){expected->kind, v.at, (size_t)(v.end - v.at)};
  return TRUE;
}

static void differs(struct replay_world *r, enum seam_kind kind, const struct recorded *expected)
{
  g_autofree char *found = seam_text(kind, r->form.data, r->form.size);
  if (!expected) {
    r->difference = g_strdup_printf("expected nothing more, found %s", found);
    return;
  }
  g_autofree char *was = seam_text((enum seam_kind)expected->kind, expected->data, expected->size);
  if ((enum seam_kind)expected->kind != kind) {
    r->difference = g_strdup_printf("expected %s, found %s", was, found);
    return;
  }
  g_autofree char *field = seam_difference(kind, expected->data, expected->size, r->form.data, r->form.size);
  r->difference = g_strdup_printf("%s, in %s", field ? field : "expected other bytes", was);
}

/* Compares what the actor did with what it did then. TRUE: the same, *id is what it got. */
static gboolean compare(struct replay_world *r, enum seam_kind kind, const void *what, uint64_t *id)
{
  struct recorded expected;
  *id = ++r->spare_id;
  if (r->difference || r->breach)
    return FALSE;
  r->form.size = 0;
  seam_write(&r->form, kind, what);
  gboolean more = expected_output(r, &expected, id);
  if (!more || (enum seam_kind)expected.kind != kind || expected.size != r->form.size ||
      memcmp(expected.data, r->form.data, expected.size) != 0) {
    *id = ++r->spare_id;
    differs(r, kind, more ? &expected : NULL);
    return FALSE;
  }
  r->outputs++;
  return TRUE;
}

static uint64_t begin(struct replay_world *r, enum seam_kind kind, const void *what, uint64_t tag,
                      struct pending_most most)
{
  uint64_t id;
  if (!compare(r, kind, what, &id))
    return id;
  if (id == 0)
    r->breach = "an operation has the id 0";
  pending_operation(r->pending, tag, &most);
  return id;
}

static int64_t seam_now(struct world *world)
{
  return of(world)->now;
}

static timer_id seam_timer(struct world *world, int64_t delay_ns, uint64_t tag)
{
  struct replay_world *r = of(world);
  uint64_t id;
  int64_t at;
  if (__builtin_add_overflow(r->now, max_i64(0, delay_ns), &at))
    at = INT64_MAX;
  if (compare(r, SEAM_TIMER, &(struct seam_timer){delay_ns, tag}, &id) &&
      !pending_timer(r->pending, id, tag, at))
    r->breach = "two timers have one id";
  return id;
}

static void seam_timer_cancel(struct world *world, timer_id timer)
{
  struct replay_world *r = of(world);
  uint64_t none;
  if (compare(r, SEAM_TIMER_CANCEL, &(struct seam_tag){timer}, &none))
    pending_timer_cancel(r->pending, timer);
}

static void seam_send(struct world *world, actor_id to, const struct message *message)
{
  uint64_t none;
  compare(of(world), SEAM_SEND, &(struct seam_mail){to, message}, &none);
}

static op_id seam_fetch(struct world *world, const struct fetch_spec *spec)
{
  return begin(of(world), SEAM_FETCH, spec, spec->tag,
               (struct pending_most){.bytes = spec->plan->total_bytes,
                                     .groups = spec->device ? spec->plan->groups : 0});
}

static op_id seam_copy(struct world *world, const struct copy_spec *spec)
{
  return begin(of(world), SEAM_COPY, spec, spec->tag, (struct pending_most){.bytes = UINT64_MAX});
}

static op_id seam_compute(struct world *world, const struct compute_spec *spec)
{
  return begin(of(world), SEAM_COMPUTE, spec, spec->tag,
               (struct pending_most){.bytes = UINT64_MAX, .steps = spec->steps});
}

static void seam_cancel(struct world *world, op_id op)
{
  uint64_t none;
  compare(of(world), SEAM_CANCEL, &(struct seam_tag){op}, &none);
}

static void seam_fill(struct world *world, uint32_t model, uint64_t offset, uint64_t bytes, uint32_t gpu,
                      const struct ranges *place)
{
  uint64_t none;
  compare(of(world), SEAM_FILL, &(struct seam_place){model, offset, bytes, gpu, place}, &none);
}

static void seam_serve(struct world *world, uint32_t model, uint64_t offset, uint64_t bytes,
                       const struct ranges *place)
{
  uint64_t none;
  compare(of(world), SEAM_SERVE, &(struct seam_place){model, offset, bytes, NO_INDEX, place}, &none);
}

static void seam_record(struct world *world, const struct record *record)
{
  uint64_t none;
  compare(of(world), SEAM_RECORD, record, &none);
}

static const struct world_ops seam_ops = {WORLD_FUNCTIONS(seam)};

/* --- inputs
 * ---------------------------------------------------------------------------------------------------------*/

/* Somebody who may write to this actor, or be lost to it. */
static gboolean is_peer(const struct replay_world *r, actor_id peer)
{
  switch (ACTOR_KIND(peer)) {
  case ACTOR_CLIENT:
    return ACTOR_INDEX(peer) == 0;
  case ACTOR_CONTROLLER:
    return ACTOR_INDEX(peer) == 0;
  case ACTOR_GPU_SERVER:
    return ACTOR_INDEX(peer) < r->config->servers;
  case ACTOR_MEMORY_SERVER:
    return ACTOR_INDEX(peer) < r->config->memory_servers;
  }
  return FALSE;
}

/* Why the input is none that can come; NULL: it is one. */
static const char *input_breach(struct replay_world *r, const struct seam_input *input)
{
  if (!r->started != (input->kind == SEAM_START))
    return r->started ? "an actor starts twice" : "an actor is told something before it has started";
  switch (input->kind) {
  case SEAM_MESSAGE:
  case SEAM_PEER_LOST:
    return is_peer(r, input->peer) ? NULL : "a peer that the experiment has no place for";
  case SEAM_TIMER_DUE:
    return pending_timer_due(r->pending, input->completion.tag, r->now) ? NULL : "no such timer is due";
  case SEAM_COMPLETION:
    return pending_operation_ended(r->pending, input->completion.tag,
                                   &(struct pending_most){.bytes = input->completion.bytes,
                                                          .steps = input->completion.steps,
                                                          .groups = input->completion.groups})
               ? NULL
               : "no operation that is under way can end so";
  default:
    return NULL;
  }
}

static void hand_over(struct replay_world *r, const struct seam_input *input)
{
  switch (input->kind) {
  case SEAM_START:
    r->actor_ops->start(r->actor);
    break;
  case SEAM_MESSAGE:
    r->actor_ops->message(r->actor, input->peer, &input->message);
    break;
  case SEAM_TIMER_DUE:
    r->actor_ops->timer(r->actor, input->completion.tag);
    break;
  case SEAM_COMPLETION:
    r->actor_ops->completion(r->actor, &input->completion);
    break;
  default:
    r->actor_ops->peer_lost(r->actor, input->peer);
    break;
  }
}

/* What was done then and is not now. */
static void check_rest(struct replay_world *r)
{
  struct recorded expected;
  uint64_t id;
  if (r->difference || r->breach || !expected_output(r, &expected, &id))
    return;
  g_autofree char *was = seam_text((enum seam_kind)expected.kind, expected.data, expected.size);
  r->difference = g_strdup_printf("expected %s, found nothing more", was);
}

gboolean replay_world_step(struct replay_world *r, const struct recorded_step *step, GError **error)
{
  struct seam_input input;
  g_autofree char *text = NULL;
  r->step = step;
  r->next = 0;
  r->now = step->now;
  if (!seam_read_input((enum seam_kind)step->input.kind, step->input.data, step->input.size, &r->limits,
                       &input))
    r->breach = "an input that cannot be read";
  else
    r->breach = input_breach(r, &input);
  if (!r->breach) {
    r->started = TRUE;
    r->inputs++;
    hand_over(r, &input);
    check_rest(r);
  }
  if (!r->breach && !r->difference)
    return TRUE;
  text = seam_text((enum seam_kind)step->input.kind, step->input.data, step->input.size);
  if (r->breach)
    return input_error(error, NULL, 0, "expected what can come, found %s, on input %" G_GUINT64_FORMAT ", %s",
                       r->breach, r->inputs + 1, text);
  g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "on input %" G_GUINT64_FORMAT ", %s: %s", r->inputs, text,
              r->difference);
  return FALSE;
}

uint64_t replay_world_inputs(const struct replay_world *r)
{
  return r->inputs;
}

uint64_t replay_world_outputs(const struct replay_world *r)
{
  return r->outputs;
}

/* --- birth and death
 * ------------------------------------------------------------------------------------------------*/

struct replay_world *replay_world_new(const struct config *config, const struct recording_head *head)
{
  struct replay_world *r = g_new0(struct replay_world, 1);
  r->ops = seam_ops;
  r->ops.capabilities = head->capabilities;
  r->world = (struct world){.ops = &r->ops, .records = head->records};
  r->config = config;
  r->pending = replay_pending_new();
  r->spare_id = UINT64_MAX / 2;
  message_limits_init(&r->limits, catalog_models(config->catalog), head->gpus, config->memory_servers);
  return r;
}

void replay_world_free(struct replay_world *r)
{
  if (!r)
    return;
  replay_pending_free(r->pending);
  g_free(r->form.data);
  g_free(r->difference);
  g_free(r);
}

struct world *replay_world_seam(struct replay_world *r)
{
  return &r->world;
}

void replay_world_set_actor(struct replay_world *r, const struct actor_ops *ops, void *actor)
{
  r->actor_ops = ops;
  r->actor = actor;
}
