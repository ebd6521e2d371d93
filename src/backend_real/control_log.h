/* Log lines of the control plane: GLib's structured log, domain "control". On any thread. */
#ifndef DM_CONTROL_LOG_H
#define DM_CONTROL_LOG_H

#include <glib.h>
#include <pthread.h>

/* Refusals that a stranger can cause as often as it likes: at most so many lines a second, the rest counted.
 * One for each hub. */
struct refusals {
  pthread_mutex_t lock; /* one that ThreadSanitizer sees */
  gint64 second;
  guint logged, silent;
  guint64 refused; /* connections in all */
};
#define REFUSALS_A_SECOND 20

void refusals_init(struct refusals *refusals);
void refusals_clear(struct refusals *refusals);
/* "refused ADDRESS: WHY". address, key: NULL = not known. */
void refusals_log(struct refusals *refusals, const char *address, const char *key, const char *why);
/* The same line for a connection that was counted before. */
void refusals_line(struct refusals *refusals, const char *address, const char *key, const char *why);
guint64 refusals_count(struct refusals *refusals);
/* "GPU server 3: TEXT": what happened to a peer (actor_id) that was let in. */
void control_log_peer(guint32 peer, const char *text);

#endif
