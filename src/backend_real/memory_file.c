/* Files in memory; see memory_file.h. */
#include "backend_real/memory_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"

gboolean memory_file_make(struct memory_file *file, const char *name, const char *text, GError **error)
{
  size_t size = strlen(text);
  file->fd = memfd_create(name, MFD_CLOEXEC);
  file->path = NULL;
  if (file->fd < 0 || fchmod(file->fd, 0600) != 0 || write(file->fd, text, size) != (ssize_t)size) {
    g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "a file in memory: %s", g_strerror(errno));
    memory_file_close(file);
    return FALSE;
  }
  file->path = g_strdup_printf("/proc/self/fd/%d", file->fd);
  return TRUE;
}

void memory_file_keep(const struct memory_file *file)
{
  if (file->fd >= 0)
    fcntl(file->fd, F_SETFD, 0);
}

void memory_file_close(struct memory_file *file)
{
  if (file->fd >= 0)
    close(file->fd);
  g_clear_pointer(&file->path, g_free);
  file->fd = -1;
}
