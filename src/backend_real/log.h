/* What a process says of itself: GLib's structured log, to standard error (or the journal, under systemd),
 * from a level on. */
#ifndef DM_LOG_H
#define DM_LOG_H

#include <glib.h>

/* "error", "warning", "info" or "debug"; messages (g_message) count as info. DM_ERROR_INPUT: another. */
gboolean log_level_set(const char *level, GError **error);

#endif
