/* A GPU server's SSD tier; see ssd_store.h. */
#include "backend_real/ssd_store.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "backend_real/ssd_file.h"
#include "core/error.h"

struct ssd_store {
  char *folder, *text;
  int lock; /* on the folder */
  uint32_t models;
  struct ssd_file **file; /* [models] NULL: not here */
};

static gboolean folder_open(struct ssd_store *store, const char *folder, uint32_t server, GError **error)
{
  g_autofree char *leaf = g_strdup_printf("gpu-server-%u", server);
  if (!g_file_test(folder, G_FILE_TEST_IS_DIR))
    return input_error(error, folder, 0, "expected a folder on the SSD that the models are to be read from");
  store->folder = g_build_filename(folder, leaf, NULL);
  if (mkdir(store->folder, 0777) != 0 && errno != EEXIST)
    return input_error(error, store->folder, 0, "%s", g_strerror(errno));
  store->lock = open(store->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (store->lock < 0)
    return input_error(error, store->folder, 0, "%s", g_strerror(errno));
  if (flock(store->lock, LOCK_EX | LOCK_NB) != 0)
    return input_error(error, store->folder, 0, "%s",
                       errno == EWOULDBLOCK ? "another process is using it; expected a folder of its own"
                                            : g_strerror(errno));
  return TRUE;
}

static char *path_of(const struct ssd_store *store, const struct config *config, uint32_t model)
{
  g_autofree char *name = catalog_model_name(config->catalog, model);
  g_autofree char *leaf = g_strconcat(name, ".dmi", NULL);
  return g_build_filename(store->folder, leaf, NULL);
}

/* What will be free once the files that are replaced are gone. */
static gboolean check_room(const struct ssd_store *store, uint64_t needed, uint64_t replaced, GError **error)
{
  struct statvfs status;
  if (fstatvfs(store->lock, &status) != 0)
    return input_error(error, store->folder, 0, "%s", g_strerror(errno));
  uint64_t left = (uint64_t)status.f_bavail * status.f_frsize + replaced;
  if (needed <= left)
    return TRUE;
  g_set_error(error, DM_ERROR, DM_ERROR_FAILED,
              "%s: models of %.3f GB are to be written, and %.3f GB are free; files of other runs that lie "
              "there may be removed",
              store->folder, (double)needed / 1e9, (double)left / 1e9);
  return FALSE;
}

/* Opens what is there and tells what is missing: models, and bytes. */
static gboolean look(struct ssd_store *store, const struct config *config, uint32_t server,
                     const struct images *images, GArray *missing, GError **error)
{
  uint64_t needed = 0, replaced = 0;
  for (uint32_t m = 0; m < store->models; m++) {
    if (!config_ssd_has(config, server, m))
      continue;
    g_autofree char *path = path_of(store, config, m);
    g_autoptr(GError) other = NULL;
    struct stat status;
    gboolean there = stat(path, &status) == 0;
    store->file[m] = there ? ssd_file_open(path, images_get(images, m), &other) : NULL;
    if (store->file[m])
      continue;
    if (there) {
      g_message("%s; it is written anew", other->message);
      replaced += (uint64_t)status.st_blocks * 512;
    }
    needed += ssd_file_bytes(images_get(images, m));
    g_array_append_val(missing, m);
  }
  return check_room(store, needed, replaced, error);
}

static gboolean write_missing(struct ssd_store *store, const struct config *config,
                              const struct images *images, const GArray *missing, GError **error)
{
  for (guint i = 0; i < missing->len; i++) { /* room for all of them */
    g_autofree char *path = path_of(store, config, g_array_index(missing, uint32_t, i));
    unlink(path);
  }
  for (guint i = 0; i < missing->len; i++) {
    uint32_t m = g_array_index(missing, uint32_t, i);
    g_autofree char *path = path_of(store, config, m);
    if (!ssd_file_write(path, images_get(images, m), error))
      return FALSE;
    store->file[m] = ssd_file_open(path, images_get(images, m), error);
    if (!store->file[m])
      return FALSE;
  }
  return TRUE;
}

static char *describe(const struct ssd_store *store, const struct images *images, guint written)
{
  uint64_t bytes = 0;
  guint count = 0, direct = 0;
  for (uint32_t m = 0; m < store->models; m++) {
    if (!store->file[m])
      continue;
    count++;
    direct += ssd_file_direct(store->file[m]) ? 1 : 0;
    bytes += image_bytes(images_get(images, m));
  }
  return g_strdup_printf("SSD %s: %u models of %.3f GB, %u of them written now, read %s%s", store->folder,
                         count, (double)bytes / 1e9, written,
                         direct == count ? "by O_DIRECT"
                                         : "through the page cache (this file system has no O_DIRECT)",
                         ssd_folder_in_memory(store->folder) ? "; it is no SSD, but memory (tmpfs)" : "");
}

struct ssd_store *ssd_store_open(const char *folder, const struct config *config, uint32_t server,
                                 const struct images *images, GError **error)
{
  struct ssd_store *store = g_new0(struct ssd_store, 1);
  g_autoptr(GArray) missing = g_array_new(FALSE, FALSE, sizeof(uint32_t));
  store->lock = -1;
  store->models = catalog_models(config->catalog);
  store->file = g_new0(struct ssd_file *, store->models);
  if (!folder_open(store, folder, server, error) || !look(store, config, server, images, missing, error) ||
      !write_missing(store, config, images, missing, error)) {
    ssd_store_free(store);
    return NULL;
  }
  store->text = describe(store, images, missing->len);
  return store;
}

void ssd_store_free(struct ssd_store *store)
{
  if (!store)
    return;
  for (uint32_t m = 0; m < store->models; m++)
    ssd_file_free(store->file[m]);
  if (store->lock >= 0)
    close(store->lock);
  g_free(store->file);
  g_free(store->folder);
  g_free(store->text);
  g_free(store);
}

const struct ssd_file *ssd_store_file(const struct ssd_store *store, uint32_t model)
{
  return store->file[model];
}

const char *ssd_store_text(const struct ssd_store *store)
{
  return store->text;
}
