/* Before and after a recorded run on one machine; see local_record.h. */
#include "backend_real/local_record.h"

#include <errno.h>
#include <glib/gstdio.h>
#include "core/error.h"
#include "harness/output_file.h"
#include "harness/recording.h"

static gboolean clear(const char *file, gboolean force, GError **error)
{
  if (!output_file_check(file, force, error))
    return FALSE;
  if (g_unlink(file) == 0)
    return TRUE;
  g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "%s: %s", file, g_strerror(errno));
  return FALSE;
}

gboolean local_record_clear(const char *path, gboolean force, GError **error)
{
  g_autoptr(GPtrArray) files = recording_files(path);
  gboolean good = TRUE;
  for (guint i = 0; good && i < files->len; i++)
    good = clear(g_ptr_array_index(files, i), force, error);
  return good;
}

gboolean local_record_join(const char *path, GError **error)
{
  g_autoptr(GPtrArray) files = recording_files(path);
  return recording_join(path, files, error);
}
