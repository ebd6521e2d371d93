/* Bounded reading of text files; see text_file.h. */
#include "harness/text_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"

static const gsize read_step = 65536;

/* Reads by steps rather than by the size that stat reports, so that pipes work and devices without end are
 * cut off. */
static gboolean read_bounded(FILE *file, const char *path, gsize limit, GByteArray *bytes, GError **error)
{
  gsize got;
  do {
    guint before = bytes->len;
    g_byte_array_set_size(bytes, before + (guint)read_step);
    got = fread(bytes->data + before, 1, read_step, file);
    g_byte_array_set_size(bytes, before + (guint)got);
    if (bytes->len > limit)
      return input_error(error, path, 0, "expected at most %" G_GSIZE_FORMAT " bytes, found a larger file",
                         limit);
  } while (got == read_step);
  if (ferror(file))
    return input_error(error, path, 0, "cannot read: %s", g_strerror(errno));
  return TRUE;
}

/* Of a named pipe that nobody writes to, no waiting: it is empty. */
static FILE *open_promptly(const char *path)
{
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0)
    return NULL;
  fcntl(fd, F_SETFL, 0); /* one that somebody writes to is waited for */
  return fdopen(fd, "rb");
}

char *text_file_read(const char *path, gsize limit, gsize *length, GError **error)
{
  FILE *file = open_promptly(path);
  if (!file) {
    input_error(error, path, 0, "cannot open: %s", g_strerror(errno));
    return NULL;
  }
  g_autoptr(GByteArray) bytes = g_byte_array_new();
  gboolean ok = read_bounded(file, path, limit, bytes, error);
  fclose(file);
  if (!ok || !text_check(path, (const char *)bytes->data, bytes->len, error))
    return NULL;
  *length = bytes->len;
  g_byte_array_append(bytes, (const guint8 *)"", 1);
  return (char *)g_byte_array_free(g_steal_pointer(&bytes), FALSE);
}

static unsigned line_of(const char *text, gsize offset)
{
  unsigned line = 1;
  for (gsize i = 0; i < offset; i++)
    line += text[i] == '\n';
  return line;
}

gboolean text_check(const char *path, const char *text, gsize length, GError **error)
{
  const char *bad;
  if (length == 0 || g_utf8_validate_len(text, length, &bad))
    return TRUE;
  gsize offset = (gsize)(bad - text);
  return input_error(error, path, line_of(text, offset), "expected UTF-8 text, found byte 0x%02x",
                     (unsigned char)text[offset]);
}

gboolean text_next_line(const char *path, const char **rest, gsize line_limit, unsigned *line, char **out,
                        GError **error)
{
  *out = NULL;
  if (**rest == '\0')
    return TRUE;
  *line += 1;
  gsize length = strcspn(*rest, "\n");
  if (length > line_limit)
    return input_error(error, path, *line,
                       "expected at most %" G_GSIZE_FORMAT " bytes in a line, found %" G_GSIZE_FORMAT,
                       line_limit, length);
  *out = g_strndup(*rest, length);
  if (length && (*out)[length - 1] == '\r')
    (*out)[length - 1] = '\0';
  *rest += length + ((*rest)[length] == '\n');
  return TRUE;
}
