/* Temporary files of the harness tests: each in a folder of its own, since tests run side by side. */
#ifndef TEMPORARY_H
#define TEMPORARY_H

#include <criterion/criterion.h>
#include <glib.h>
#include <glib/gstdio.h>

/* A new file with these bytes. Remove it with temporary_remove. */
static inline char *temporary_file(const char *name, const void *data, gsize size)
{
  g_autoptr(GError) error = NULL;
  g_autofree char *folder = g_dir_make_tmp("distmind-test-XXXXXX", &error);
  cr_assert(folder, "%s", error ? error->message : "");
  char *path = g_build_filename(folder, name, NULL);
  cr_assert(g_file_set_contents(path, data, (gssize)size, &error), "%s", error ? error->message : "");
  return path;
}

/* Removes the file, its .partial and its folder, and frees path. */
static inline void temporary_remove(char *path)
{
  g_autofree char *partial = g_strconcat(path, ".partial", NULL), *folder = g_path_get_dirname(path);
  g_unlink(partial);
  g_unlink(path);
  g_rmdir(folder);
  g_free(path);
}

static inline char *temporary_folder(void)
{
  char *folder = g_dir_make_tmp("distmind-test-XXXXXX", NULL);
  cr_assert(folder, "no temporary folder");
  return folder;
}

/* With the files in it; frees its path. */
static inline void temporary_folder_remove(char *folder)
{
  g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
  for (const char *name = dir ? g_dir_read_name(dir) : NULL; name; name = g_dir_read_name(dir)) {
    g_autofree char *path = g_build_filename(folder, name, NULL);
    g_unlink(path);
  }
  g_rmdir(folder);
  g_free(folder);
}

#endif
