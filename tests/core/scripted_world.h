/* A world whose script is the test's: it notes what an actor sends, begins and sets, and does nothing by
 * itself. */
#ifndef DM_SCRIPTED_WORLD_H
#define DM_SCRIPTED_WORLD_H

#include "core/config.h"
#include "core/world.h"

struct scripted_mail {
  actor_id to;
  struct message message;
};

struct scripted_timer {
  int64_t at;
  uint64_t tag;
  gboolean live;
};

struct scripted_op {
  uint64_t tag, steps;
  gboolean fetch;
};

struct scripted_world {
  struct world world; /* first */
  int64_t now;
  GArray *mail;   /* of struct scripted_mail, in order; the test clears it */
  GArray *timers; /* of struct scripted_timer: id i + 1 is entry i */
  GQueue *ops;    /* of struct scripted_op, begun and not completed, in order */
  uint32_t live_timers, most_timers;
  const struct actor_ops *actor_ops;
  void *actor;

  /* A cluster: two servers of two GPUs, three memory servers, four models; set more before the actor is made.
   */
  struct config config;
  struct server_config server[2];
  struct catalog *catalog;
  struct load_plans *plans;
  uint32_t popular[4];
};

struct scripted_world *scripted_world_new(const char *system);
void scripted_world_free(struct scripted_world *w);
void scripted_world_start(struct scripted_world *w, const struct actor_ops *ops, void *actor);
/* Moves the clock, firing on the way every timer at its time. */
void scripted_world_until(struct scripted_world *w, int64_t now);
void scripted_world_say(struct scripted_world *w, actor_id from, const struct message *message);
/* Completes the operation that was begun first; FALSE: there is none. */
gboolean scripted_world_complete(struct scripted_world *w);
/* The last message of a type sent since the mail was cleared; NULL if none. */
const struct scripted_mail *scripted_world_sent(const struct scripted_world *w, enum message_type type);
uint32_t scripted_world_count(const struct scripted_world *w, enum message_type type);

typedef struct scripted_world ScriptedWorld;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ScriptedWorld, scripted_world_free)

#endif
