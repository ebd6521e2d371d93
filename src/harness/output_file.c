/* Checks of files to be written; see output_file.h. */
#include "harness/output_file.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "harness/command.h"
#include "harness/shown.h"

#define NAME_BYTES_MAX 180 /* leaves room for endings in 255 */

char *output_file_default(const char *name, const char *ending)
{
  g_autofree char *leaf = shown_cut(name, NAME_BYTES_MAX);
  g_strdelimit(leaf, "/", '_');
  if (*leaf == '.')
    *leaf = '_';
  return g_strconcat(OUTPUT_FOLDER "/", leaf, ending, NULL);
}

gboolean output_name_check(const char *path, const char *longest_ending, GError **error)
{
  g_autofree char *folder = g_path_get_dirname(path), *leaf = g_path_get_basename(path);
  long found = pathconf(folder, _PC_NAME_MAX);
  size_t most = found > 0 ? (size_t)found : NAME_MAX, ending = strlen(longest_ending);
  return strlen(leaf) + ending <= most ||
         input_error(error, path, 0,
                     "expected a name of at most %zu bytes, found %zu: the file system takes %zu, and "
                     "\"%s\" must have room",
                     most - ending, strlen(leaf), most, longest_ending);
}

gboolean output_file_check(const char *path, gboolean force, GError **error)
{
  GStatBuf info;
  if (!*path)
    return input_error(error, NULL, 0, "expected the name of a file to write, found \"\"");
  if (g_stat(path, &info) == 0) {
    if (!S_ISREG(info.st_mode))
      return input_error(error, path, 0, "expected the name of a file to write, found a %s",
                         S_ISDIR(info.st_mode) ? "folder" : "device or pipe");
    if (!force)
      return input_error(error, path, 0, "exists already; give another name, or --force to replace it");
  } else if (errno != ENOENT) {
    return input_error(error, path, 0, "cannot write: %s", g_strerror(errno));
  }
  g_autofree char *folder = g_path_get_dirname(path);
  return output_name_check(path, ".partial-journal", error) && command_can_write_in(folder, path, error);
}

gboolean output_files_differ(const char *a, const char *b, GError **error)
{
  if (!a || !b)
    return TRUE;
  g_autofree char *first = g_canonicalize_filename(a, NULL), *second = g_canonicalize_filename(b, NULL);
  return !g_str_equal(first, second) ||
         input_error(error, b, 0, "expected another name for each file to write, found it twice");
}
