/* The cluster file; see cluster_file.h. */
#include "backend_real/cluster_file.h"

#include <string.h>
#include "backend_real/control_socket.h"
#include "core/error.h"
#include "core/units.h"
#include "harness/keyfile.h"
#include "harness/nearest.h"
#include "harness/setting.h"

#define CONNECT_NS (30 * NS_PER_S) /* a controller that starts after its servers is waited for so long */

#define TEXT(name)                                                                                           \
  {                                                                                                          \
    .section = "cluster", .key = #name, .kind = SETTING_TEXT, .offset = offsetof(struct cluster_file, name)  \
  }
static const struct setting settings[] = {
    TEXT(controller), TEXT(controller_key), TEXT(controller_secret), TEXT(authorized), TEXT(key), {0}};

void cluster_file_free(struct cluster_file *file)
{
  if (!file)
    return;
  g_free(file->path);
  g_free(file->controller);
  g_free(file->controller_key);
  g_free(file->controller_secret);
  g_free(file->authorized);
  g_free(file->key);
  g_free(file);
}

static gboolean unknown_key(const char *path, const struct keyfile_entry *entry, GError **error)
{
  const char *names[G_N_ELEMENTS(settings)] = {0};
  for (size_t i = 0; settings[i].key; i++)
    names[i] = settings[i].key;
  return input_error(error, path, entry->line, "unknown key \"%s\"; nearest is \"%s\"", entry->key,
                     nearest_word(entry->key, names));
}

static gboolean read_entries(struct cluster_file *file, const struct keyfile *keyfile, GError **error)
{
  for (guint s = 0; s < keyfile->sections->len; s++) {
    const struct keyfile_section *section = keyfile->sections->pdata[s];
    if (strcmp(section->name, "cluster") != 0)
      return input_error(error, file->path, section->line, "expected section [cluster], found [%s]",
                         section->name);
    for (guint i = 0; i < section->entries->len; i++) {
      const struct keyfile_entry *entry = &g_array_index(section->entries, struct keyfile_entry, i);
      const struct setting *row = setting_find(settings, NULL, entry->key);
      if (!row)
        return unknown_key(file->path, entry, error);
      if (!setting_apply(row, file, entry->value, error))
        return FALSE;
    }
  }
  return file->controller || input_error(error, file->path, 1, "expected controller = HOST:PORT, found none");
}

static void resolve(const struct cluster_file *file, char **path)
{
  if (!*path || g_path_is_absolute(*path))
    return;
  g_autofree char *folder = g_path_get_dirname(file->path), *name = *path;
  *path = g_build_filename(folder, name, NULL);
}

struct cluster_file *cluster_file_load(const char *path, GError **error)
{
  g_autoptr(Keyfile) keyfile = keyfile_load(path, error);
  if (!keyfile)
    return NULL;
  g_autoptr(ClusterFile) file = g_new0(struct cluster_file, 1);
  file->path = g_strdup(path);
  if (!read_entries(file, keyfile, error))
    return NULL;
  if (!strstr(file->controller, "://")) {
    g_autofree char *plain = file->controller;
    file->controller = g_strconcat("tcp://", plain, NULL);
  }
  if (!endpoint_check(file->controller, error)) {
    g_prefix_error(error, "%s: controller: ", path);
    return NULL;
  }
  resolve(file, &file->controller_key);
  resolve(file, &file->controller_secret);
  resolve(file, &file->authorized);
  resolve(file, &file->key);
  return g_steal_pointer(&file);
}

gboolean cluster_file_link(const struct cluster_file *file, struct link_keys *keys, struct link_config *link,
                           GError **error)
{
  *link = (struct link_config){.endpoint = file->controller, .connect_timeout_ns = CONNECT_NS};
  if (!file->key && !file->controller_key)
    return TRUE;
  if (!file->key || !file->controller_key)
    return input_error(error, file->path, 0, "expected key and controller_key, or neither");
  if (!key_pair_read(file->key, &keys->own, error) ||
      !public_key_read(file->controller_key, keys->server, error))
    return FALSE;
  link->keys = &keys->own;
  link->server_key = keys->server;
  return TRUE;
}

gboolean cluster_file_hub(const struct cluster_file *file, struct key_pair *keys, struct hub_config *hub,
                          GError **error)
{
  *hub = (struct hub_config){.endpoint = file->controller, .authorized = file->authorized};
  if (!file->controller_secret && !file->authorized)
    return TRUE;
  if (!file->controller_secret || !file->authorized)
    return input_error(error, file->path, 0, "expected controller_secret and authorized, or neither");
  if (!key_pair_read(file->controller_secret, keys, error))
    return FALSE;
  hub->keys = keys;
  return TRUE;
}
