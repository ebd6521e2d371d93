/* Noting and passing on; see recorder.h. */
#include "harness/recorder.h"

#include "harness/command.h"

struct recorder {
  struct world world; /* first: what the actor sees */
  struct world_ops ops;
  struct world *inner;
  const struct actor_ops *actor_ops;
  void *actor;
  struct recording *recording;
  struct octets form; /* of the entry at hand */
  int64_t last;       /* time of the input before */
  gboolean begun;
  uint64_t inputs, outputs;
};

/* --- what the actor does
 * --------------------------------------------------------------------------------------------*/

static struct recorder *of(struct world *world)
{
  return (struct recorder *)world;
}

static void note(struct recorder *r, enum seam_kind kind, const void *what)
{
  r->form.size = 0;
  seam_write(&r->form, kind, what);
  recording_entry(r->recording, (uint8_t)kind, r->form.data, r->form.size);
  r->outputs++;
}

/* The same with the id that the world gave. */
static uint64_t note_id(struct recorder *r, enum seam_kind kind, const void *what, uint64_t id)
{
  r->form.size = 0;
  octets_number(&r->form, id);
  seam_write(&r->form, kind, what);
  recording_entry(r->recording, (uint8_t)kind, r->form.data, r->form.size);
  r->outputs++;
  return id;
}

static int64_t seam_now(struct world *world)
{
  return world_now(of(world)->inner);
}

static timer_id seam_timer(struct world *world, int64_t delay_ns, uint64_t tag)
{
  struct recorder *r = of(world);
  timer_id id = r->inner->ops->timer(r->inner, delay_ns, tag);
  return note_id(r, SEAM_TIMER, &(struct seam_timer){delay_ns, tag}, id);
}

static void seam_timer_cancel(struct world *world, timer_id timer)
{
  struct recorder *r = of(world);
  note(r, SEAM_TIMER_CANCEL, &(struct seam_tag){timer});
  r->inner->ops->timer_cancel(r->inner, timer);
}

static void seam_send(struct world *world, actor_id to, const struct message *message)
{
  struct recorder *r = of(world);
  note(r, SEAM_SEND, &(struct seam_mail){to, message});
  r->inner->ops->send(r->inner, to, message);
}

static op_id seam_fetch(struct world *world, const struct fetch_spec *spec)
{
  struct recorder *r = of(world);
  return note_id(r, SEAM_FETCH, spec, r->inner->ops->fetch(r->inner, spec));
}

static op_id seam_copy(struct world *world, const struct copy_spec *spec)
{
  struct recorder *r = of(world);
  return note_id(r, SEAM_COPY, spec, r->inner->ops->copy(r->inner, spec));
}

static op_id seam_compute(struct world *world, const struct compute_spec *spec)
{
  struct recorder *r = of(world);
  return note_id(r, SEAM_COMPUTE, spec, r->inner->ops->compute(r->inner, spec));
}

static void seam_cancel(struct world *world, op_id op)
{
  struct recorder *r = of(world);
  note(r, SEAM_CANCEL, &(struct seam_tag){op});
  r->inner->ops->cancel(r->inner, op);
}

static void seam_fill(struct world *world, uint32_t model, uint64_t offset, uint64_t bytes, uint32_t gpu,
                      const struct ranges *place)
{
  struct recorder *r = of(world);
  note(r, SEAM_FILL, &(struct seam_place){model, offset, bytes, gpu, place});
  r->inner->ops->fill(r->inner, model, offset, bytes, gpu, place);
}

static void seam_serve(struct world *world, uint32_t model, uint64_t offset, uint64_t bytes,
                       const struct ranges *place)
{
  struct recorder *r = of(world);
  note(r, SEAM_SERVE, &(struct seam_place){model, offset, bytes, NO_INDEX, place});
  r->inner->ops->serve(r->inner, model, offset, bytes, place);
}

static void seam_record(struct world *world, const struct record *record)
{
  struct recorder *r = of(world);
  note(r, SEAM_RECORD, record);
  r->inner->ops->record(r->inner, record);
}

static const struct world_ops seam_ops = {WORLD_FUNCTIONS(seam)};

/* --- what comes in
 * --------------------------------------------------------------------------------------------------*/

static void note_input(struct recorder *r, enum seam_kind kind, const void *what)
{
  int64_t now = world_now(r->inner);
  recording_tick(r->recording, now);
  r->form.size = 0;
  octets_number(&r->form, (uint64_t)(now - r->last));
  seam_write(&r->form, kind, what);
  recording_entry(r->recording, (uint8_t)kind, r->form.data, r->form.size);
  r->last = now;
  r->inputs++;
}

static void actor_start(void *actor)
{
  struct recorder *r = actor;
  note_input(r, SEAM_START, &(struct seam_nothing){0});
  r->actor_ops->start(r->actor);
}

static void actor_message(void *actor, actor_id from, const struct message *message)
{
  struct recorder *r = actor;
  note_input(r, SEAM_MESSAGE, &(struct seam_mail){from, message});
  r->actor_ops->message(r->actor, from, message);
}

static void actor_timer(void *actor, uint64_t tag)
{
  struct recorder *r = actor;
  note_input(r, SEAM_TIMER_DUE, &(struct seam_tag){tag});
  r->actor_ops->timer(r->actor, tag);
}

static void actor_completion(void *actor, const struct completion *completion)
{
  struct recorder *r = actor;
  note_input(r, SEAM_COMPLETION, completion);
  r->actor_ops->completion(r->actor, completion);
}

static void actor_peer_lost(void *actor, actor_id peer)
{
  struct recorder *r = actor;
  note_input(r, SEAM_PEER_LOST, &(struct seam_peer){peer});
  r->actor_ops->peer_lost(r->actor, peer);
}

const struct actor_ops recorder_actor = {
    .start = actor_start,
    .message = actor_message,
    .timer = actor_timer,
    .completion = actor_completion,
    .peer_lost = actor_peer_lost,
};

/* --- birth and death
 * ------------------------------------------------------------------------------------------------*/

static uint32_t most_gpus(const struct config *config)
{
  uint32_t gpus = 1;
  for (uint32_t s = 0; s < config->servers; s++)
    gpus = MAX(gpus, config->server[s].gpus);
  return gpus;
}

void recorder_begin(struct recorder *r, const struct setup *setup, uint32_t run, actor_id self)
{
  const struct experiment *e = setup->experiment;
  g_autofree char *path = g_canonicalize_filename(e->path, NULL);
  struct recording_head head = {.version = (char *)program_version(),
                                .run = run,
                                .actor = self,
                                .path = path,
                                .text = e->text,
                                .system = e->system,
                                .overrides = e->overrides,
                                .digest = setup_digest(setup),
                                .capabilities = r->ops.capabilities,
                                .heartbeats = setup->config.heartbeat_ns > 0,
                                .records = r->world.records,
                                .gpus = most_gpus(&setup->config)};
  recording_begin(r->recording, &head);
  r->begun = TRUE;
}

struct recorder *recorder_new(struct recording *recording, struct world *world)
{
  struct recorder *r = g_new0(struct recorder, 1);
  r->ops = seam_ops;
  r->ops.capabilities = world->ops->capabilities;
  r->world = (struct world){.ops = &r->ops, .records = world->records};
  r->inner = world;
  r->recording = recording;
  return r;
}

static void end(struct recorder *r)
{
  r->form.size = 0;
  octets_number(&r->form, r->inputs);
  octets_number(&r->form, r->outputs);
  recording_entry(r->recording, RECORDING_END, r->form.data, r->form.size);
  recording_flush(r->recording);
}

void recorder_free(struct recorder *r)
{
  if (!r)
    return;
  if (r->begun)
    end(r);
  g_free(r->form.data);
  g_free(r);
}

struct world *recorder_seam(struct recorder *r)
{
  return &r->world;
}

void recorder_set_actor(struct recorder *r, const struct actor_ops *ops, void *actor)
{
  r->actor_ops = ops;
  r->actor = actor;
}
