/* Packing: a safetensors file becomes an image, tensor after tensor through one buffer, its layers' checksums
 * on the way. What is written stands under a name of its own until it is whole. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend_real/checksum.h"
#include "backend_real/image_plan.h"
#include "core/error.h"

#define STEP_BYTES (1u << 20)

struct pack {
  const char *source, *out;
  int from, to;
  char *partial; /* what is written; NULL once it has its name */
  uint64_t data_from, data_bytes;
  void (*progress)(void *context, double done);
  void *context;
};

static gboolean read_all(const struct pack *pack, uint64_t offset, uint64_t bytes, void *to, GError **error)
{
  for (uint64_t done = 0; done < bytes;) {
    ssize_t got = pread(pack->from, (uint8_t *)to + done, bytes - done, (off_t)(offset + done));
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return input_error(error, pack->source, 0, "cannot read: %s",
                         got < 0 ? g_strerror(errno) : "the file became shorter");
    done += (uint64_t)got;
  }
  return TRUE;
}

static gboolean failed(const struct pack *pack, GError **error)
{
  g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "%s: cannot write: %s", pack->out, g_strerror(errno));
  return FALSE;
}

static gboolean write_all(const struct pack *pack, uint64_t offset, const void *from, uint64_t bytes,
                          GError **error)
{
  for (uint64_t done = 0; done < bytes;) {
    ssize_t put = pwrite(pack->to, (const uint8_t *)from + done, bytes - done, (off_t)(offset + done));
    if (put < 0 && errno == EINTR)
      continue;
    if (put < 0)
      return failed(pack, error);
    done += (uint64_t)put;
  }
  return TRUE;
}

/* The header's text; *length receives its length. */
static char *read_header(struct pack *pack, uint64_t *length, GError **error)
{
  struct stat status;
  uint8_t prefix[8];
  pack->from = open(pack->source, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* of a pipe, no waiting for a writer */
  if (pack->from < 0 || fstat(pack->from, &status) != 0) {
    input_error(error, pack->source, 0, "cannot open: %s", g_strerror(errno));
    return NULL;
  }
  uint64_t size = S_ISREG(status.st_mode) ? (uint64_t)status.st_size : 0;
  if (size < sizeof prefix) {
    input_error(error, pack->source, 0, "expected a safetensors file, found %s",
                S_ISREG(status.st_mode) ? "less than 8 bytes" : "no file");
    return NULL;
  }
  if (!read_all(pack, 0, sizeof prefix, prefix, error))
    return NULL;
  memcpy(length, prefix, sizeof prefix);
  *length = GUINT64_FROM_LE(*length);
  if (*length > SAFETENSORS_HEADER_MAX || *length > size - sizeof prefix) {
    input_error(error, pack->source, 0,
                "expected a safetensors file: a header of at most %" G_GUINT64_FORMAT
                " bytes, found %" G_GUINT64_FORMAT,
                MIN(SAFETENSORS_HEADER_MAX, size - sizeof prefix), *length);
    return NULL;
  }
  pack->data_from = sizeof prefix + *length;
  pack->data_bytes = size - pack->data_from;
  g_autofree char *json = g_malloc(*length + 1);
  return read_all(pack, sizeof prefix, *length, json, error) ? g_steal_pointer(&json) : NULL;
}

/* By whatever name: links are followed. */
static gboolean is_source(const struct pack *pack, const char *path)
{
  struct stat from, to;
  return fstat(pack->from, &from) == 0 && stat(path, &to) == 0 && from.st_dev == to.st_dev &&
         from.st_ino == to.st_ino;
}

static gboolean open_out(struct pack *pack, GError **error)
{
  if (is_source(pack, pack->out))
    return input_error(error, pack->out, 0, "is the file that is to be packed; give the image another name");
  g_autofree char *name = g_strconcat(pack->out, ".partial-XXXXXX", NULL);
  pack->to = g_mkstemp_full(name, O_RDWR | O_CLOEXEC, 0666);
  if (pack->to < 0)
    return failed(pack, error);
  pack->partial = g_steal_pointer(&name);
  return TRUE;
}

static gboolean copy_data(struct pack *pack, struct image_plan *plan, GError **error)
{
  g_autofree uint8_t *step = g_malloc(STEP_BYTES);
  uint64_t done = 0;
  for (uint32_t i = 0; i < plan->moves->len; i++) {
    const struct image_move *move = &g_array_index(plan->moves, struct image_move, i);
    struct image_layer *layer = &g_array_index(plan->layers, struct image_layer, move->layer);
    for (uint64_t at = 0; at < move->bytes; at += STEP_BYTES) {
      uint64_t n = MIN(STEP_BYTES, move->bytes - at);
      if (!read_all(pack, pack->data_from + move->from + at, n, step, error) ||
          !write_all(pack, plan->header.data_offset + move->to + at, step, n, error))
        return FALSE;
      layer->checksum += checksum(step, move->to + at, n);
      done += n;
      if (pack->progress)
        pack->progress(pack->context, (double)done / (double)pack->data_bytes);
    }
  }
  return TRUE;
}

static gboolean write_tables(struct pack *pack, const struct image_plan *plan, GError **error)
{
  const struct image_header *header = &plan->header;
  struct image_tables tables = image_tables_of(header);
  return write_all(pack, 0, header, sizeof *header, error) &&
         write_all(pack, tables.layers, plan->layers->data, tables.tensors - tables.layers, error) &&
         write_all(pack, tables.tensors, plan->records->data, tables.shapes - tables.tensors, error) &&
         write_all(pack, tables.shapes, plan->shapes->data, tables.strings - tables.shapes, error) &&
         write_all(pack, tables.strings, plan->strings->data, plan->strings->len, error);
}

static gboolean write_image(struct pack *pack, struct image_plan *plan, GError **error)
{
  if (!open_out(pack, error))
    return FALSE;
  /* An image without parameters still ends where they would begin. */
  if (ftruncate(pack->to, (off_t)(plan->header.data_offset + plan->header.data_bytes)) != 0)
    return failed(pack, error);
  if (!copy_data(pack, plan, error) || !write_tables(pack, plan, error))
    return FALSE;
  if (fsync(pack->to) != 0 || rename(pack->partial, pack->out) != 0)
    return failed(pack, error);
  g_clear_pointer(&pack->partial, g_free);
  return TRUE;
}

static gboolean run(struct pack *pack, GError **error)
{
  uint64_t length;
  g_autofree char *json = read_header(pack, &length, error);
  if (!json)
    return FALSE;
  g_autoptr(Safetensors) source = safetensors_parse(pack->source, json, length, pack->data_bytes, error);
  if (!source)
    return FALSE;
  g_autoptr(ImagePlan) plan = image_plan_new(pack->source, source, error);
  return plan && write_image(pack, plan, error);
}

gboolean image_pack(const char *safetensors, const char *out, void (*progress)(void *context, double done),
                    void *context, GError **error)
{
  struct pack pack = {
      .source = safetensors, .out = out, .from = -1, .to = -1, .progress = progress, .context = context};
  gboolean good = run(&pack, error);
  if (pack.from >= 0)
    close(pack.from);
  if (pack.to >= 0)
    close(pack.to);
  if (pack.partial)
    unlink(pack.partial);
  g_free(pack.partial);
  return good;
}
