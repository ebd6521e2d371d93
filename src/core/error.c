/* GError domain of the project; see error.h. */
#include "core/error.h"

G_DEFINE_QUARK(distmind - error, dm_error)

gboolean input_error(GError **error, const char *file, unsigned line, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  g_autofree char *message = g_strdup_vprintf(format, args);
  va_end(args);
  if (line)
    g_set_error(error, DM_ERROR, DM_ERROR_INPUT, "%s:%u: %s", file, line, message);
  else if (file)
    g_set_error(error, DM_ERROR, DM_ERROR_INPUT, "%s: %s", file, message);
  else
    g_set_error_literal(error, DM_ERROR, DM_ERROR_INPUT, message);
  return FALSE;
}
