/* Looking for files in the places that the design names; see resolve.h. */
#include "harness/resolve.h"

#include "harness/experiment.h"

/* Build-time folders, where the Makefile gives them; NULL-terminated. */
static const char *const built_in_places[] = {
#ifdef DM_SOURCE_DIR
    DM_SOURCE_DIR,
#endif
#ifdef DM_DATA_DIR
    DM_DATA_DIR,
#endif
    NULL};

static char *existing(char *path)
{
  if (g_file_test(path, G_FILE_TEST_EXISTS))
    return path;
  g_free(path);
  return NULL;
}

char *resolve_path(const char *name, const char *near_file)
{
  char *found = NULL;
  if (g_path_is_absolute(name))
    return existing(g_strdup(name));
  if (near_file) {
    g_autofree char *folder = g_path_get_dirname(near_file);
    found = existing(g_str_equal(folder, ".") ? g_strdup(name) : g_build_filename(folder, name, NULL));
  }
  if (!found)
    found = existing(g_strdup(name));
  for (const char *const *place = built_in_places; !found && *place; place++)
    found = existing(g_build_filename(*place, name, NULL));
  return found;
}

char *resolve_shipped(const char *kind, const char *leaf, const char *near_file)
{
  static const char *const above[] = {"", "..", "experiments"};
  char *found = NULL;
  for (gsize i = 0; !found && i < G_N_ELEMENTS(above); i++) {
    g_autofree char *name = g_build_filename(above[i], kind, leaf, NULL);
    found = resolve_path(name, near_file);
  }
  return found;
}
