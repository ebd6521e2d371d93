/* Log lines; see control_log.h. */
#include "backend_real/control_log.h"

#include "core/world.h"

void refusals_init(struct refusals *refusals)
{
  *refusals = (struct refusals){0};
  pthread_mutex_init(&refusals->lock, NULL);
}

void refusals_clear(struct refusals *refusals)
{
  pthread_mutex_destroy(&refusals->lock);
}

/* Whether this line may be written; *silent: how many before it were not. */
static gboolean take_turn(struct refusals *refusals, guint *silent)
{
  gint64 second = g_get_monotonic_time() / G_USEC_PER_SEC;
  pthread_mutex_lock(&refusals->lock);
  if (second != refusals->second) {
    refusals->second = second;
    refusals->logged = 0;
  }
  gboolean turn = refusals->logged < REFUSALS_A_SECOND;
  *silent = refusals->silent;
  refusals->logged += turn;
  refusals->silent = turn ? 0 : refusals->silent + 1;
  pthread_mutex_unlock(&refusals->lock);
  return turn;
}

guint64 refusals_count(struct refusals *refusals)
{
  pthread_mutex_lock(&refusals->lock);
  guint64 refused = refusals->refused;
  pthread_mutex_unlock(&refusals->lock);
  return refused;
}

void refusals_log(struct refusals *refusals, const char *address, const char *key, const char *why)
{
  pthread_mutex_lock(&refusals->lock);
  refusals->refused++;
  pthread_mutex_unlock(&refusals->lock);
  refusals_line(refusals, address, key, why);
}

void refusals_line(struct refusals *refusals, const char *address, const char *key, const char *why)
{
  guint silent;
  if (!take_turn(refusals, &silent))
    return;
  if (silent > 0)
    g_log_structured("control", G_LOG_LEVEL_MESSAGE, "EVENT", "refused", "MESSAGE",
                     "refused %u more connections than are logged", silent);
  g_log_structured("control", G_LOG_LEVEL_MESSAGE, "EVENT", "refused", "PEER_ADDRESS", address ? address : "",
                   "PEER_KEY", key ? key : "", "REASON", why, "MESSAGE", "refused a connection%s%s: %s",
                   address ? " from " : "", address ? address : "", why);
}

/* "GPU server". */
static const char *actor_kind_text(guint32 peer)
{
  static const char *const names[] = {[ACTOR_CLIENT] = "client",
                                      [ACTOR_CONTROLLER] = "controller",
                                      [ACTOR_GPU_SERVER] = "GPU server",
                                      [ACTOR_MEMORY_SERVER] = "memory server"};
  return ACTOR_KIND(peer) < G_N_ELEMENTS(names) ? names[ACTOR_KIND(peer)] : "peer";
}

void control_log_peer(guint32 peer, const char *text)
{
  char name[32];
  g_snprintf(name, sizeof name, "%s %u", actor_kind_text(peer), ACTOR_INDEX(peer));
  g_log_structured("control", G_LOG_LEVEL_MESSAGE, "EVENT", "peer", "PEER", name, "REASON", text, "MESSAGE",
                   "%s: %s", name, text);
}
