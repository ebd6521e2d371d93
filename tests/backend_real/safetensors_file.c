/* Safetensors files for tests; see safetensors_file.h. */
#include "safetensors_file.h"

#include <criterion/criterion.h>
#include <glib/gstdio.h>
#include <string.h>

char *safetensors_write(const char *folder, const char *name, const char *json, const uint8_t *data,
                        size_t bytes)
{
  g_autoptr(GByteArray) text = g_byte_array_new();
  uint64_t length = GUINT64_TO_LE(strlen(json));
  g_byte_array_append(text, (const guint8 *)&length, sizeof length);
  g_byte_array_append(text, (const guint8 *)json, (guint)strlen(json));
  if (bytes)
    g_byte_array_append(text, data, (guint)bytes);
  char *path = g_build_filename(folder, name, NULL);
  cr_assert(g_file_set_contents(path, (const char *)text->data, text->len, NULL));
  return path;
}

char *scratch_new(void)
{
  char *folder = g_dir_make_tmp("distmind-image-XXXXXX", NULL);
  cr_assert(folder);
  return folder;
}

/* Calls per file in it, if call is not NULL; counts them. */
static unsigned each_file(const char *folder, int (*call)(const char *path))
{
  unsigned count = 0;
  GDir *dir = g_dir_open(folder, 0, NULL);
  for (const char *name; dir && (name = g_dir_read_name(dir)) != NULL; count++) {
    g_autofree char *path = g_build_filename(folder, name, NULL);
    if (call)
      call(path);
  }
  if (dir)
    g_dir_close(dir);
  return count;
}

void scratch_remove(char *folder)
{
  each_file(folder, g_unlink);
  g_rmdir(folder);
  g_free(folder);
}

unsigned scratch_files(const char *folder)
{
  return each_file(folder, NULL);
}
