/* Files and blocks of recordings; see recording_block.h. */
#include "harness/recording_block.h"

#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "harness/input_file.h"

static const char magic[8] = {'D', 'M', 'R', 'E', 'C', 'O', 'R', 'D'};

void file_header_write(uint8_t header[FILE_HEADER], enum recording_kind kind)
{
  memcpy(header, magic, sizeof magic);
  put_u32(header + 8, RECORDING_VERSION);
  put_u32(header + 12, (uint32_t)kind);
}

/* Bytes read, fewer at the end of the file; -1 + error. */
static gssize read_all(struct block_reader *r, void *buffer, size_t size, GError **error)
{
  size_t have = 0;
  while (have < size) {
    gssize got = input_file_read(r->fd, r->path, (char *)buffer + have, size - have, error);
    if (got < 0)
      return -1;
    if (got == 0)
      break;
    have += (size_t)got;
  }
  return (gssize)have;
}

static gboolean header_check(struct block_reader *r, const uint8_t header[FILE_HEADER], gssize size,
                             GError **error)
{
  if (size < FILE_HEADER || memcmp(header, magic, sizeof magic) != 0)
    return input_error(error, r->path, 0,
                       "expected a recording (distmind-real run --record), found another file");
  if (get_u32(header + 8) != RECORDING_VERSION)
    return input_error(error, r->path, 0, "expected a recording of version %d, found version %u",
                       RECORDING_VERSION, get_u32(header + 8));
  uint32_t kind = get_u32(header + 12);
  if (kind != RECORDING_PROCESS && kind != RECORDING_JOINED)
    return input_error(error, r->path, 0, "expected a recording of kind %d or %d, found kind %u",
                       RECORDING_PROCESS, RECORDING_JOINED, kind);
  r->kind = (enum recording_kind)kind;
  return TRUE;
}

gboolean block_reader_open(struct block_reader *r, const char *path, GError **error)
{
  uint8_t header[FILE_HEADER];
  r->fd = input_file_open(path, error);
  r->path = g_strdup(path);
  r->offset = FILE_HEADER;
  r->last = FALSE;
  if (r->fd < 0)
    return FALSE;
  gssize size = read_all(r, header, sizeof header, error);
  return size >= 0 && header_check(r, header, size, error);
}

void block_reader_close(struct block_reader *r)
{
  if (r->fd >= 0)
    close(r->fd);
  g_free(r->path);
}

/* The file ends inside or before a block. */
static int cut(const struct block_reader *r, size_t wanted, size_t found, GError **error)
{
  if (r->kind == RECORDING_PROCESS || r->last)
    return 0;
  input_error(error, r->path, 0,
              "truncated: expected %zu bytes at byte %" G_GUINT64_FORMAT
              ", found %zu and the end of the file",
              wanted, r->offset, found);
  return -1;
}

static int malformed(const struct block_reader *r, GError **error, const char *expected, uint32_t found)
{
  input_error(error, r->path, 0, "block at byte %" G_GUINT64_FORMAT ": expected %s, found %u", r->offset,
              expected, found);
  return -1;
}

int block_reader_next(struct block_reader *r, GError **error)
{
  gssize size = read_all(r, r->block, BLOCK_HEADER, error);
  if (size < 0)
    return -1;
  if (r->last && size > 0)
    return malformed(r, error, "the end of the file", (uint32_t)r->block[0]);
  if (size < BLOCK_HEADER)
    return cut(r, BLOCK_HEADER, (size_t)size, error);
  r->payload = get_u32(r->block);
  r->flags = get_u32(r->block + 4);
  if (r->payload > RECORDING_BLOCK)
    return malformed(r, error, "a payload of at most 65536 bytes", r->payload);
  size = read_all(r, r->block + BLOCK_HEADER, r->payload, error);
  if (size < 0)
    return -1;
  if ((uint32_t)size < r->payload)
    return cut(r, r->payload, (size_t)size, error);
  uint64_t sum = get_u64(r->block + 8);
  if (sum != block_checksum(r->block, r->payload)) {
    input_error(error, r->path, 0,
                "bytes %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT
                " are not as they were written: expected checksum "
                "%016" G_GINT64_MODIFIER "x, found %016" G_GINT64_MODIFIER "x",
                r->offset, r->offset + BLOCK_HEADER + r->payload - 1, sum,
                block_checksum(r->block, r->payload));
    return -1;
  }
  if (r->flags & ~(uint32_t)(RECORDING_BEGINS | RECORDING_LAST) ||
      (r->flags & RECORDING_LAST && (r->payload > 0 || r->flags != RECORDING_LAST)))
    return malformed(r, error, "known flags", r->flags);
  r->offset += BLOCK_HEADER + r->payload;
  r->last = (r->flags & RECORDING_LAST) != 0;
  return r->last ? block_reader_next(r, error) : 1;
}
