/* Files of result databases; see store_files.h. */
#include "harness/store_files.h"

#include <errno.h>
#include <glib/gstdio.h>

#include "core/error.h"

void store_remove_journals(const char *path)
{
  static const char *const suffixes[] = {"-wal", "-shm", "-journal"};
  for (size_t i = 0; i < G_N_ELEMENTS(suffixes); i++) {
    g_autofree char *name = g_strconcat(path, suffixes[i], NULL);
    g_unlink(name);
  }
}

void store_remove(const char *path)
{
  g_unlink(path);
  store_remove_journals(path);
}

gboolean store_rename(const char *partial, const char *path, GError **error)
{
  store_remove_journals(path);
  if (g_rename(partial, path) == 0)
    return TRUE;
  g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "%s: cannot rename to %s: %s", partial, path,
              g_strerror(errno));
  return FALSE;
}
