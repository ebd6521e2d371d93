/* A recording, fed to the core again; see rerun.h. */
#include "backend_sim/rerun.h"

#include <string.h>

#include "backend_sim/replay_world.h"
#include "core/controller.h"
#include "core/error.h"
#include "core/gpu_server.h"
#include "core/memory_server.h"
#include "harness/experiment_parts.h"
#include "harness/workload.h"

/* What the configuration of the part at hand was made from. The parts of a run have it in common. */
struct source {
  char *text, *system, *overrides;
  uint32_t capabilities;
  gboolean heartbeats;
  struct experiment *experiment;
  struct setup *setup;
};

struct rerun {
  struct recording_reader *reader;
  struct source source;
  struct rerun_totals *totals;
  void (*told)(const char *line);
};

/* --- the configuration
 * ----------------------------------------------------------------------------------------------*/

static void source_clear(struct source *s)
{
  setup_free(s->setup);
  experiment_free(s->experiment);
  g_free(s->text);
  g_free(s->system);
  g_free(s->overrides);
  *s = (struct source){0};
}

static gboolean source_is(const struct source *s, const struct recording_head *head)
{
  return s->setup && s->capabilities == head->capabilities && s->heartbeats == head->heartbeats &&
         strcmp(s->text, head->text) == 0 && strcmp(s->system, head->system) == 0 &&
         strcmp(s->overrides, head->overrides) == 0;
}

/* The experiment is in the recording; profiles, hardware and traces are looked for where it looked for them.
 */
static gboolean source_load(struct source *s, const struct recording_head *head, GError **error)
{
  source_clear(s);
  *s = (struct source){.text = g_strdup(head->text),
                       .system = g_strdup(head->system),
                       .overrides = g_strdup(head->overrides),
                       .capabilities = head->capabilities,
                       .heartbeats = head->heartbeats};
  g_auto(GStrv) sets = g_strsplit(head->overrides, "\n", -1);
  g_autoptr(Keyfile) keyfile = keyfile_parse(head->path, head->text, strlen(head->text), error);
  if (!*head->system)
    return input_error(error, head->path, 0, "expected the name of a system, found none");
  s->experiment = keyfile ? experiment_parse(keyfile, head->system, sets, error) : NULL;
  if (s->experiment)
    s->setup = setup_new(s->experiment, head->capabilities, head->heartbeats, error);
  return s->setup != NULL;
}

static gboolean source_for(struct rerun *r, const struct recording_head *head, GError **error)
{
  if (!source_is(&r->source, head) && !source_load(&r->source, head, error))
    return FALSE;
  if (setup_digest(r->source.setup) == head->digest)
    return TRUE;
  g_set_error(error, DM_ERROR, DM_ERROR_FAILED,
              "the profiles or hardware files of %s are not those of the run (recorded by version %s)",
              head->path, head->version);
  return FALSE;
}

/* --- actors
 * ---------------------------------------------------------------------------------------------------------*/

static void ignore_request(void *context, const struct request_row *row)
{
  (void)context; /* what the load generator books is no decision */
  (void)row;
}

struct actor {
  const struct actor_ops *ops;
  void *self;
  void (*free)(void *self);
};

static gboolean actor_new(const struct setup *setup, actor_id id, struct world *world, struct actor *actor,
                          GError **error)
{
  const struct config *config = &setup->config;
  uint32_t index = ACTOR_INDEX(id), places = 1;
  enum actor_kind kind = ACTOR_KIND(id);
  if (kind == ACTOR_GPU_SERVER)
    places = config->servers;
  else if (kind == ACTOR_MEMORY_SERVER)
    places = config->memory_servers;
  if (kind > ACTOR_MEMORY_SERVER || index >= places)
    return input_error(error, NULL, 0, "expected an actor that the experiment has a place for, found %u", id);
  switch (kind) {
  case ACTOR_CLIENT:
    *actor = (struct actor){&workload_actor, workload_new(setup, world, ignore_request, NULL, error),
                            (void (*)(void *))workload_free};
    break;
  case ACTOR_CONTROLLER:
    *actor =
        (struct actor){&controller_actor, controller_new(config, world), (void (*)(void *))controller_free};
    break;
  case ACTOR_GPU_SERVER:
    *actor = (struct actor){&gpu_server_actor, gpu_server_new(config, index, world),
                            (void (*)(void *))gpu_server_free};
    break;
  case ACTOR_MEMORY_SERVER:
    *actor = (struct actor){&memory_server_actor, memory_server_new(config, index, world),
                            (void (*)(void *))memory_server_free};
    break;
  }
  return actor->self != NULL;
}

/* --- parts
 * ----------------------------------------------------------------------------------------------------------*/

/* Adds where in the recording it was; reader errors say so themselves. */
static gboolean prefix(struct rerun *r, GError **error, int64_t at_ns)
{
  if (at_ns < 0)
    g_prefix_error(error, "%s", recording_where(r->reader));
  else
    g_prefix_error(error, "%sat %.6f s: ", recording_where(r->reader), (double)at_ns / NS_PER_S);
  return FALSE;
}

static gboolean steps(struct rerun *r, struct replay_world *world, int64_t *span, GError **error)
{
  struct recorded_step step;
  int64_t first = -1;
  int more;
  *span = 0;
  while ((more = recording_next_step(r->reader, &step, error)) > 0) {
    if (first < 0)
      first = step.now;
    *span = step.now - first;
    if (!replay_world_step(world, &step, error))
      return prefix(r, error, *span);
  }
  return more == 0;
}

static void tell(struct rerun *r, const struct recording_head *head, const struct replay_world *world,
                 int64_t span)
{
  g_autofree char *name = seam_actor_name(head->actor);
  g_autofree char *line = g_strdup_printf(
      "run %u, %s, %s: %" G_GUINT64_FORMAT " inputs, %" G_GUINT64_FORMAT " outputs in %.3f s%s", head->run,
      head->system, name, replay_world_inputs(world), replay_world_outputs(world), (double)span / NS_PER_S,
      recording_was_cut(r->reader) ? "; cut off there" : "");
  r->totals->actors++;
  r->totals->cut += recording_was_cut(r->reader);
  r->totals->inputs += replay_world_inputs(world);
  r->totals->outputs += replay_world_outputs(world);
  if (r->told)
    r->told(line);
}

static gboolean part(struct rerun *r, const struct recording_head *head, GError **error)
{
  struct actor actor = {0};
  int64_t span;
  if (!source_for(r, head, error))
    return prefix(r, error, -1);
  struct replay_world *world = replay_world_new(&r->source.setup->config, head);
  gboolean good = actor_new(r->source.setup, head->actor, replay_world_seam(world), &actor, error) ||
                  prefix(r, error, -1);
  if (good) {
    replay_world_set_actor(world, actor.ops, actor.self);
    good = steps(r, world, &span, error);
  }
  if (good)
    tell(r, head, world, span);
  if (actor.self)
    actor.free(actor.self);
  replay_world_free(world);
  return good;
}

gboolean rerun_file(const char *path, struct rerun_totals *totals, void (*told)(const char *line),
                    GError **error)
{
  struct rerun r = {.totals = totals, .told = told, .reader = recording_open(path, error)};
  const struct recording_head *head;
  int more = r.reader ? 1 : -1;
  while (more > 0) {
    more = recording_next_part(r.reader, &head, error);
    if (more > 0 && !part(&r, head, error))
      more = -1;
  }
  source_clear(&r.source);
  recording_reader_free(r.reader);
  return more == 0;
}
