/* Temporary files of tests: each in a folder of its own, since tests run side by side. */
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

/* With all that is in it; links are removed, not followed. */
static inline void tree_remove(const char *path)
{
  g_autoptr(GDir) dir = g_file_test(path, G_FILE_TEST_IS_SYMLINK) ? NULL : g_dir_open(path, 0, NULL);
  for (const char *name = dir ? g_dir_read_name(dir) : NULL; name; name = g_dir_read_name(dir)) {
    g_autofree char *below = g_build_filename(path, name, NULL);
    tree_remove(below);
  }
  g_remove(path);
}

static inline char *temporary_folder(void)
{
  char *folder = g_dir_make_tmp("distmind-test-XXXXXX", NULL);
  cr_assert(folder, "no temporary folder");
  return folder;
}

/* With all that is in it; frees its path. */
static inline void temporary_folder_remove(char *folder)
{
  tree_remove(folder);
  g_free(folder);
}

#endif
