/* Writing recordings, and their heads; see recording.h. */
#include "harness/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "core/error.h"
#include "harness/keyfile.h"
#include "harness/recording_block.h"

#define PATH_BYTES_MAX      4096
#define OVERRIDES_BYTES_MAX (1024 * 1024)
#define FILES_MAX           10000 /* of one place: processes that were started in it, one after another */

/* --- heads
 * ----------------------------------------------------------------------------------------------------------*/

void recording_head_clear(struct recording_head *head)
{
  g_free(head->version);
  g_free(head->path);
  g_free(head->text);
  g_free(head->system);
  g_free(head->overrides);
  *head = (struct recording_head){0};
}

void recording_head_write(struct octets *out, const struct recording_head *head)
{
  octets_text(out, head->version);
  octets_number(out, head->run);
  octets_number(out, head->actor);
  octets_text(out, head->path);
  octets_text(out, head->text);
  octets_text(out, head->system);
  octets_text(out, head->overrides);
  octets_number(out, head->digest);
  octets_number(out, head->capabilities);
  octets_number(out, head->heartbeats ? 1 : 0);
  octets_number(out, head->records ? 1 : 0);
  octets_number(out, head->gpus);
}

gboolean recording_head_read(const uint8_t *data, size_t size, struct recording_head *head)
{
  struct octets_view v = octets_view_of(data, size);
  *head = (struct recording_head){0};
  head->version = view_text(&v, PATH_BYTES_MAX);
  head->run = view_small(&v);
  head->actor = view_small(&v);
  head->path = view_text(&v, PATH_BYTES_MAX);
  head->text = view_text(&v, KEYFILE_BYTES_MAX);
  head->system = view_text(&v, PATH_BYTES_MAX);
  head->overrides = view_text(&v, OVERRIDES_BYTES_MAX);
  head->digest = view_number(&v);
  head->capabilities = view_small(&v);
  head->heartbeats = view_small(&v) != 0;
  head->records = view_small(&v) != 0;
  head->gpus = view_small(&v);
  if (v.good && v.at == v.end)
    return TRUE;
  recording_head_clear(head);
  return FALSE;
}

/* --- the file
 * -------------------------------------------------------------------------------------------------------*/

struct recording {
  int fd;
  char *path;
  GError *error;   /* the first; nothing is written after it */
  size_t size;     /* of the payload in hand */
  uint32_t flags;  /* of the block in hand */
  int64_t flushed; /* by the actor's clock */
  uint8_t block[BLOCK_HEADER + RECORDING_BLOCK];
};

static void fail(struct recording *r)
{
  g_set_error(&r->error, DM_ERROR, DM_ERROR_FAILED, "%s: cannot write: %s", r->path, g_strerror(errno));
  g_warning("%s; the recording ends here", r->error->message);
}

static void write_all(struct recording *r, const uint8_t *data, size_t size)
{
  while (size > 0 && !r->error) {
    ssize_t put = write(r->fd, data, size);
    if (put < 0 && errno != EINTR)
      fail(r);
    if (put > 0) {
      data += put;
      size -= (size_t)put;
    }
  }
}

/* The file's name; number 1: the place's first process. */
static char *process_path(const char *path, actor_id process, uint32_t number)
{
  g_autofree char *role = g_strdelimit(seam_actor_name(process), " ", '-');
  return number == 1 ? g_strdup_printf("%s.%s", path, role) : g_strdup_printf("%s.%s.%u", path, role, number);
}

struct recording *recording_create(const char *path, actor_id process, GError **error)
{
  uint8_t header[FILE_HEADER];
  struct recording *r = g_new(struct recording, 1);
  *r = (struct recording){.fd = -1};
  errno = EEXIST;
  for (uint32_t number = 1; r->fd < 0 && errno == EEXIST && number <= FILES_MAX; number++) {
    g_free(r->path);
    r->path = process_path(path, process, number);
    r->fd = open(r->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  }
  if (r->fd < 0) {
    input_error(error, r->path, 0, "cannot create: %s", g_strerror(errno));
    g_free(r->path);
    g_free(r);
    return NULL;
  }
  file_header_write(header, RECORDING_PROCESS);
  write_all(r, header, sizeof header);
  return r;
}

void recording_flush(struct recording *r)
{
  if (r->size == 0 && r->flags == 0)
    return;
  block_seal(r->block, (uint32_t)r->size, r->flags);
  write_all(r, r->block, BLOCK_HEADER + r->size);
  r->size = 0;
  r->flags = 0;
}

void recording_tick(struct recording *r, int64_t now)
{
  if (now - r->flushed < RECORDING_FLUSH_NS)
    return;
  r->flushed = now;
  recording_flush(r);
}

static void put(struct recording *r, const uint8_t *data, size_t size)
{
  while (size > 0) {
    size_t piece = MIN(size, RECORDING_BLOCK - r->size);
    memcpy(r->block + BLOCK_HEADER + r->size, data, piece);
    r->size += piece;
    data += piece;
    size -= piece;
    if (r->size == RECORDING_BLOCK)
      recording_flush(r);
  }
}

void recording_entry(struct recording *r, uint8_t kind, const void *data, size_t size)
{
  uint8_t head[11] = {kind};
  size_t length = 1;
  uint64_t rest = size;
  for (; rest >= 0x80; rest >>= 7)
    head[length++] = (uint8_t)(rest | 0x80);
  head[length++] = (uint8_t)rest;
  if (r->error)
    return;
  put(r, head, length);
  put(r, data, size);
}

void recording_begin(struct recording *r, const struct recording_head *head)
{
  struct octets form = {0};
  recording_flush(r);
  r->flags = RECORDING_BEGINS;
  recording_head_write(&form, head);
  recording_entry(r, RECORDING_HEAD, form.data, form.size);
  recording_flush(r);
  g_free(form.data);
}

gboolean recording_close(struct recording *r, GError **error)
{
  if (!r)
    return TRUE;
  recording_flush(r);
  r->flags = RECORDING_LAST;
  recording_flush(r);
  if (close(r->fd) != 0 && !r->error)
    fail(r);
  gboolean good = r->error == NULL;
  if (!good)
    g_propagate_error(error, r->error);
  g_free(r->path);
  g_free(r);
  return good;
}

const char *recording_path(const struct recording *r)
{
  return r->path;
}
