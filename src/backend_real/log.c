/* Log; see log.h. */
#include "backend_real/log.h"

#include <stdio.h>
#include <unistd.h>
#include "core/error.h"

/* Read by the writer, which threads call; set once, before they begin. */
static GLogLevelFlags least = G_LOG_LEVEL_WARNING;

static const char *field(const GLogField *fields, gsize count, const char *key)
{
  for (gsize i = 0; i < count; i++)
    if (g_str_equal(fields[i].key, key))
      return fields[i].value;
  return NULL;
}

static GLogWriterOutput write_line(GLogLevelFlags level, const GLogField *fields, gsize count, gpointer data)
{
  (void)data;
  if ((level & G_LOG_LEVEL_MASK) > least)
    return G_LOG_WRITER_HANDLED;
  if (g_log_writer_is_journald(STDERR_FILENO))
    return g_log_writer_journald(level, fields, count, NULL);
  const char *domain = field(fields, count, "GLIB_DOMAIN"), *text = field(fields, count, "MESSAGE");
  g_autoptr(GDateTime) now = g_date_time_new_now_local();
  g_autofree char *time = g_date_time_format(now, "%H:%M:%S.%f");
  const char *name = level & G_LOG_LEVEL_ERROR                              ? "error"
                     : level & (G_LOG_LEVEL_CRITICAL | G_LOG_LEVEL_WARNING) ? "warning"
                     : level & (G_LOG_LEVEL_MESSAGE | G_LOG_LEVEL_INFO)     ? "info"
                                                                            : "debug";
  fprintf(stderr, "%.12s %s %s[%d]%s%s: %s\n", time, name, g_get_prgname(), (int)getpid(), domain ? " " : "",
          domain ? domain : "", text ? text : "");
  return G_LOG_WRITER_HANDLED;
}

gboolean log_level_set(const char *level, GError **error)
{
  static const struct {
    const char *name;
    GLogLevelFlags least;
  } levels[] = {{"error", G_LOG_LEVEL_CRITICAL},
                {"warning", G_LOG_LEVEL_WARNING},
                {"info", G_LOG_LEVEL_INFO},
                {"debug", G_LOG_LEVEL_DEBUG}};
  for (size_t i = 0; i < G_N_ELEMENTS(levels); i++)
    if (g_str_equal(level, levels[i].name)) {
      least = levels[i].least;
      g_log_set_writer_func(write_line, NULL, NULL);
      return TRUE;
    }
  return input_error(error, NULL, 0, "--log: expected error, warning, info or debug, found \"%s\"", level);
}
