/* Files that are streamed; see input_file.h. */
#include "harness/input_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"

int input_file_open(const char *path, GError **error)
{
  struct stat status;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* O_NONBLOCK: opening a FIFO returns at once */
  if (fd < 0) {
    input_error(error, path, 0, "cannot open: %s", g_strerror(errno));
    return -1;
  }
  if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode)) {
    input_error(error, path, 0, "expected a regular file");
    close(fd);
    return -1;
  }
  return fd;
}

gssize input_file_read(int fd, const char *path, void *buffer, gsize size, GError **error)
{
  gssize got;
  do
    got = read(fd, buffer, size);
  while (got < 0 && errno == EINTR);
  if (got < 0)
    input_error(error, path, 0, "cannot read: %s", g_strerror(errno));
  return got;
}

gboolean input_file_rewind(int fd, const char *path, GError **error)
{
  return lseek(fd, 0, SEEK_SET) == 0 || input_error(error, path, 0, "cannot seek: %s", g_strerror(errno));
}

gsize byte_order_mark(const void *text, gsize length)
{
  return length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}
