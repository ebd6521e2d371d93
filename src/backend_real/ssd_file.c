/* Reading a model's file; see ssd_file.h. */
#include "backend_real/ssd_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "backend_real/image_format.h"
#include "core/error.h"

struct ssd_file {
  char *path;
  int fd;
  gboolean direct;
  uint64_t data_offset, data_bytes;
};

gboolean ssd_folder_in_memory(const char *folder)
{
  struct statfs status;
  return statfs(folder, &status) == 0 && (status.f_type == TMPFS_MAGIC || status.f_type == RAMFS_MAGIC);
}

/* --- opening
 * --------------------------------------------------------------------------------------------------------*/

static gboolean same_image(const char *path, const struct image *found, const struct image *image,
                           GError **error)
{
  if (image_layers(found) != image_layers(image))
    return input_error(error, path, 0, "expected %u layers, found %u", image_layers(image),
                       image_layers(found));
  for (uint32_t l = 0; l < image_layers(image); l++) {
    const struct image_layer *has = image_layer(found, l), *wants = image_layer(image, l);
    if (has->bytes != wants->bytes || has->checksum != wants->checksum)
      return input_error(error, path, 0,
                         "layer %u: expected %" G_GUINT64_FORMAT " bytes of checksum %016" G_GINT64_MODIFIER
                         "x, found %" G_GUINT64_FORMAT " of %016" G_GINT64_MODIFIER "x",
                         l, wants->bytes, wants->checksum, has->bytes, has->checksum);
  }
  return TRUE;
}

static gboolean check_image(const char *path, const struct image *image, GError **error)
{
  struct image *found = image_open(path, error);
  gboolean good = found && same_image(path, found, image, error);
  image_free(found);
  return good;
}

/* Some file systems take O_DIRECT and then want other alignments, or refuse each read. */
static gboolean probe_direct(int fd)
{
  g_autofree uint8_t *raw = g_malloc(2 * SSD_BLOCK);
  uint8_t *block = (uint8_t *)(((uintptr_t)raw + SSD_BLOCK - 1) & ~(uintptr_t)(SSD_BLOCK - 1));
  return pread(fd, block, SSD_BLOCK, 0) == SSD_BLOCK;
}

static gboolean open_file(struct ssd_file *file, GError **error)
{
  struct image_header header;
  file->fd = open(file->path, O_RDONLY | O_CLOEXEC);
  if (file->fd < 0 || pread(file->fd, &header, sizeof header, 0) != sizeof header)
    return input_error(error, file->path, 0, "cannot be read: %s", g_strerror(errno));
  file->data_offset = header.data_offset;
  file->data_bytes = header.data_bytes;
  int direct = open(file->path, O_RDONLY | O_CLOEXEC | O_DIRECT);
  file->direct = direct >= 0 && probe_direct(direct);
  if (file->direct) {
    close(file->fd);
    file->fd = direct;
  } else if (direct >= 0) {
    close(direct);
  }
  return TRUE;
}

struct ssd_file *ssd_file_open(const char *path, const struct image *image, GError **error)
{
  if (!check_image(path, image, error))
    return NULL;
  struct ssd_file *file = g_new0(struct ssd_file, 1);
  file->path = g_strdup(path);
  file->fd = -1;
  if (open_file(file, error))
    return file;
  ssd_file_free(file);
  return NULL;
}

void ssd_file_free(struct ssd_file *file)
{
  if (!file)
    return;
  if (file->fd >= 0)
    close(file->fd);
  g_free(file->path);
  g_free(file);
}

gboolean ssd_file_direct(const struct ssd_file *file)
{
  return file->direct;
}

/* --- reading
 * --------------------------------------------------------------------------------------------------------*/

/* A request's parts in whole blocks: head, middle, tail; `wanted` bytes begin `skip` into the first block. */
struct request {
  uint64_t from; /* of the file */
  uint64_t skip, wanted;
  struct iovec part[3];
  int parts;
  gboolean bounced; /* all of it */
};

static void add_part(struct request *r, void *to, uint64_t bytes)
{
  if (bytes > 0)
    r->part[r->parts++] = (struct iovec){.iov_base = to, .iov_len = bytes};
}

static struct request request_plan(uint64_t at, uint64_t bytes, uint8_t *to, uint8_t *bounce)
{
  uint64_t end = at + bytes, first = at / SSD_BLOCK * SSD_BLOCK;
  uint64_t whole_from = (at + SSD_BLOCK - 1) / SSD_BLOCK * SSD_BLOCK, whole_to = end / SSD_BLOCK * SSD_BLOCK;
  struct request r = {.from = first, .skip = at - first, .wanted = bytes};
  r.bounced = ((uintptr_t)to - at) % SSD_BLOCK != 0 || whole_from >= whole_to;
  if (r.bounced) {
    add_part(&r, bounce, (end - first + SSD_BLOCK - 1) / SSD_BLOCK * SSD_BLOCK);
    return r;
  }
  add_part(&r, bounce, whole_from - first);
  add_part(&r, to + (whole_from - at), whole_to - whole_from);
  add_part(&r, bounce + SSD_BLOCK, end > whole_to ? SSD_BLOCK : 0);
  return r;
}

/* Takes what bounced to its place; returns how many of the wanted bytes are there, of `got` from the disk. */
static uint64_t request_take(const struct request *r, uint64_t got, uint8_t *to, const uint8_t *bounce)
{
  uint64_t came = got > r->skip ? MIN(got - r->skip, r->wanted) : 0;
  if (r->bounced) {
    memcpy(to, bounce + r->skip, came);
    return came;
  }
  uint64_t head = r->skip > 0 ? MIN(came, SSD_BLOCK - r->skip) : 0;
  memcpy(to, bounce + r->skip, head);
  uint64_t tail = (r->from + r->skip + r->wanted) % SSD_BLOCK, before = r->wanted - tail;
  if (tail > 0 && came > before)
    memcpy(to + before, bounce + SSD_BLOCK, came - before);
  return came;
}

static ssize_t read_direct(const struct ssd_file *file, uint64_t at, uint64_t bytes, uint8_t *to,
                           uint8_t *bounce)
{
  struct request r = request_plan(at, bytes, to, bounce);
  ssize_t got = preadv(file->fd, r.part, r.parts, (off_t)r.from);
  return got < 0 ? got : (ssize_t)request_take(&r, (uint64_t)got, to, bounce);
}

static ssize_t read_buffered(const struct ssd_file *file, uint64_t at, uint64_t bytes, uint8_t *to)
{
  ssize_t got = pread(file->fd, to, bytes, (off_t)at);
  if (got > 0)
    posix_fadvise(file->fd, (off_t)at, got, POSIX_FADV_DONTNEED);
  return got;
}

gboolean ssd_file_read(const struct ssd_file *file, uint64_t offset, uint32_t bytes, uint8_t *to,
                       uint8_t *bounce, GError **error)
{
  uint64_t at = file->data_offset + offset;
  g_return_val_if_fail(
      bytes <= SSD_READ_MAX && offset <= file->data_bytes && bytes <= file->data_bytes - offset, FALSE);
  for (uint64_t done = 0; done < bytes;) {
    ssize_t got = file->direct ? read_direct(file, at + done, bytes - done, to + done, bounce)
                               : read_buffered(file, at + done, bytes - done, to + done);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0) {
      g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "%s: byte %" G_GUINT64_FORMAT " cannot be read: %s",
                  file->path, at + done, got < 0 ? g_strerror(errno) : "the file became shorter");
      return FALSE;
    }
    done += (uint64_t)got;
  }
  return TRUE;
}
