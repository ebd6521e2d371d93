/* What a transport tells about its peers; see transport_log.h. */
#define G_LOG_DOMAIN "transport"

#include "backend_real/transport_log.h"

/* *hidden receives how many lines were kept back before this one. */
static gboolean may_tell(struct transport_log *log, guint *hidden)
{
  gint64 second = g_get_monotonic_time() / G_USEC_PER_SEC;
  g_mutex_lock(&log->lock);
  if (second != log->second) {
    log->second = second;
    log->lines = 0;
  }
  gboolean may = log->lines++ < TRANSPORT_LOG_LINES;
  *hidden = may ? log->hidden : 0;
  log->hidden = may ? 0 : log->hidden + 1;
  g_mutex_unlock(&log->lock);
  return may;
}

void transport_log(struct transport_log *log, const char *format, ...)
{
  guint hidden;
  if (!may_tell(log, &hidden))
    return;
  if (hidden)
    g_message("%u more lines like these were kept back", hidden);
  va_list args;
  va_start(args, format);
  g_logv(G_LOG_DOMAIN, G_LOG_LEVEL_MESSAGE, format, args);
  va_end(args);
}
