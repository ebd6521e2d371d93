/* Before and after a recorded run on one machine; see local_record.h. */
#include "backend_real/local_record.h"

#include <errno.h>
#include <glib/gstdio.h>
#include "core/error.h"
#include "harness/recording.h"

static gboolean clear(const char *file, gboolean force, GError **error)
{
  if (!g_file_test(file, G_FILE_TEST_EXISTS))
    return TRUE;
  if (!force)
    return input_error(error, file, 0,
                       "is there already; choose another --record FILE, or --force to replace it");
  if (g_unlink(file) == 0)
    return TRUE;
  g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "%s: %s", file, g_strerror(errno));
  return FALSE;
}

gboolean local_record_clear(const char *path, gboolean whole, gboolean force, GError **error)
{
  if (!whole)
    return TRUE; /* a cluster's roles may write beside each other, and none replaces a file */
  g_autoptr(GPtrArray) files = recording_files(path);
  gboolean good = clear(path, force, error);
  for (guint i = 0; good && i < files->len; i++)
    good = clear(g_ptr_array_index(files, i), force, error);
  return good;
}

gboolean local_record_join(const char *path, GError **error)
{
  g_autoptr(GPtrArray) files = recording_files(path);
  return recording_join(path, files, error);
}
