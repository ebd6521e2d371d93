/* Safetensors files for tests; see safetensors_file.h. */
#include "safetensors_file.h"

#include "../harness/temporary.h"

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

void scratch_remove(char *folder)
{
  temporary_folder_remove(folder);
}

unsigned scratch_files(const char *folder)
{
  g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
  unsigned count = 0;
  while (dir && g_dir_read_name(dir))
    count++;
  return count;
}
