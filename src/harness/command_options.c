/* Options and arguments of commands; see command.h. */
#include <errno.h>
#include <glib/gstdio.h>
#include <unistd.h>

#include "core/error.h"
#include "harness/command.h"
#include "harness/setting.h"

char **command_options(int argc, char **argv, const GOptionEntry *entries, GError **error)
{
  g_autofree char **copy = g_new0(char *, (gsize)argc + 1);
  for (int i = 0; i < argc; i++)
    copy[i] = argv[i];
  g_autoptr(GOptionContext) context = g_option_context_new(NULL);
  g_option_context_set_help_enabled(context, FALSE); /* GLib's help exits; command_main prints ours */
  g_option_context_add_main_entries(context, entries, NULL);
  g_autoptr(GError) failure = NULL;
  int left = argc;
  char **rest = copy;
  if (!g_option_context_parse(context, &left, &rest, &failure)) {
    input_error(error, NULL, 0, "%s: %s; `%s %s --help` shows all options", argv[0], failure->message,
                g_get_prgname(), argv[0]);
    return NULL;
  }
  GPtrArray *arguments = g_ptr_array_new();
  gboolean literal = FALSE; /* GLib leaves a "--" in where what follows it looks like an option */
  for (int i = 1; i < left; i++) {
    if (!literal && g_str_equal(rest[i], "--"))
      literal = TRUE;
    else
      g_ptr_array_add(arguments, g_strdup(rest[i]));
  }
  g_ptr_array_add(arguments, NULL);
  return (char **)g_ptr_array_free(arguments, FALSE);
}

gboolean command_integer(const char *name, const char *text, gint least, gint most, gint *value,
                         GError **error)
{
  guint64 number;
  if (!text)
    return TRUE;
  if (integer_parse(text, (guint64)least, (guint64)most, &number, error)) {
    *value = (gint)number;
    return TRUE;
  }
  g_prefix_error(error, "--%s: ", name);
  return FALSE;
}

gboolean command_arguments(char **argv, char **arguments, guint least, guint most, const char *expected,
                           GError **error)
{
  guint count = g_strv_length(arguments);
  if (count >= least && count <= most)
    return TRUE;
  if (count > most)
    return input_error(error, NULL, 0,
                       "%s: unexpected argument \"%s\"; expected %s; `%s %s --help` shows how", argv[0],
                       arguments[most], expected, g_get_prgname(), argv[0]);
  return input_error(error, NULL, 0, "%s: expected %s; `%s %s --help` shows how", argv[0], expected,
                     g_get_prgname(), argv[0]);
}

gboolean command_can_write_in(const char *folder, const char *path, GError **error)
{
  return g_access(folder, W_OK | X_OK) == 0 ||
         input_error(error, path, 0, "cannot write: %s", g_strerror(errno));
}
