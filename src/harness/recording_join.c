/* The files that the processes of a run have written, made into one; see recording.h. */
#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <unistd.h>

#include "core/error.h"
#include "harness/recording_block.h"

/* Of a process: NAME.client, NAME.gpu-server-3, NAME.gpu-server-3.2. */
static gboolean is_process_file(const char *file, const char *name)
{
  static const char *const roles[] = {".client", ".controller", ".gpu-server-", ".memory-server-"};
  if (!g_str_has_prefix(file, name))
    return FALSE;
  const char *rest = file + strlen(name);
  for (gsize i = 0; i < G_N_ELEMENTS(roles); i++)
    if (g_str_has_prefix(rest, roles[i]))
      return strspn(rest + strlen(roles[i]), "0123456789.") == strlen(rest + strlen(roles[i]));
  return FALSE;
}

static gint by_name(gconstpointer a, gconstpointer b)
{
  return strcmp(*(char *const *)a, *(char *const *)b);
}

GPtrArray *recording_files(const char *path)
{
  GPtrArray *files = g_ptr_array_new_with_free_func(g_free);
  g_autofree char *folder = g_path_get_dirname(path), *name = g_path_get_basename(path);
  g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
  const char *file;
  while (dir && (file = g_dir_read_name(dir)) != NULL)
    if (is_process_file(file, name))
      g_ptr_array_add(files, g_build_filename(folder, file, NULL));
  g_ptr_array_sort(files, by_name);
  return files;
}

static gboolean write_failed(GError **error, const char *path)
{
  g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "%s: cannot write: %s", path, g_strerror(errno));
  return FALSE;
}

static gboolean write_all(int fd, const char *path, const uint8_t *data, size_t size, GError **error)
{
  while (size > 0) {
    ssize_t put = write(fd, data, size);
    if (put < 0 && errno != EINTR)
      return write_failed(error, path);
    if (put > 0) {
      data += put;
      size -= (size_t)put;
    }
  }
  return TRUE;
}

static gboolean append(int fd, const char *path, const char *file, GError **error)
{
  struct block_reader *reader = g_new0(struct block_reader, 1);
  int more = block_reader_open(reader, file, error) ? 1 : -1;
  while (more > 0) {
    more = block_reader_next(reader, error);
    if (more > 0 && !write_all(fd, path, reader->block, BLOCK_HEADER + reader->payload, error))
      more = -1;
  }
  block_reader_close(reader);
  g_free(reader);
  return more == 0;
}

static gboolean join_into(int fd, const char *path, const GPtrArray *files, GError **error)
{
  uint8_t header[FILE_HEADER], last[BLOCK_HEADER];
  file_header_write(header, RECORDING_JOINED);
  block_seal(last, 0, RECORDING_LAST);
  gboolean good = write_all(fd, path, header, sizeof header, error);
  for (guint i = 0; good && i < files->len; i++)
    good = append(fd, path, g_ptr_array_index(files, i), error);
  return good && write_all(fd, path, last, sizeof last, error);
}

gboolean recording_join(const char *path, const GPtrArray *files, GError **error)
{
  g_autofree char *partial = g_strconcat(path, ".partial", NULL);
  int fd = open(partial, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0)
    return write_failed(error, partial);
  gboolean good = join_into(fd, partial, files, error);
  if (close(fd) != 0 && good)
    good = write_failed(error, partial);
  if (good && g_rename(partial, path) != 0)
    good = write_failed(error, path);
  if (!good)
    g_unlink(partial);
  for (guint i = 0; good && i < files->len; i++)
    g_unlink(g_ptr_array_index(files, i));
  return good;
}
