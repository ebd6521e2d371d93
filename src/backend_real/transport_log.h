/* What an end of a transport tells about its peers (GLib, domain "transport"): some lines a second, so
 * that a peer that misbehaves in a loop cannot fill a disk. What was kept back is counted. */
#ifndef DM_TRANSPORT_LOG_H
#define DM_TRANSPORT_LOG_H

#include <glib.h>

#define TRANSPORT_LOG_LINES 20 /* a second */

/* Zeroed before the first use; any thread. */
struct transport_log {
  GMutex lock;
  gint64 second;
  guint lines, hidden;
};

void transport_log(struct transport_log *log, const char *format, ...) G_GNUC_PRINTF(2, 3);

#endif
