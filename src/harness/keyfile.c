/* The reader of key files; see keyfile.h. */
#include "harness/keyfile.h"

#include <string.h>

#include "core/error.h"
#include "harness/input_file.h"
#include "harness/text_file.h"

struct reader {
  struct keyfile *keyfile;
  struct keyfile_section *section; /* the one being filled */
  guint entries;
  unsigned line;
};

static void entry_clear(gpointer data)
{
  struct keyfile_entry *entry = data;
  g_free(entry->key);
  g_free(entry->value);
}

static void section_free(gpointer data)
{
  struct keyfile_section *section = data;
  g_free(section->name);
  g_array_unref(section->entries);
  g_free(section);
}

void keyfile_free(struct keyfile *keyfile)
{
  if (!keyfile)
    return;
  g_free(keyfile->path);
  g_free(keyfile->text);
  g_ptr_array_unref(keyfile->sections);
  g_free(keyfile);
}

const struct keyfile_section *keyfile_section(const struct keyfile *keyfile, const char *name)
{
  for (guint i = 0; i < keyfile->sections->len; i++) {
    const struct keyfile_section *section = keyfile->sections->pdata[i];
    if (g_str_equal(section->name, name))
      return section;
  }
  return NULL;
}

const struct keyfile_entry *keyfile_entry(const struct keyfile_section *section, const char *key)
{
  for (guint i = 0; i < section->entries->len; i++) {
    const struct keyfile_entry *entry = &g_array_index(section->entries, struct keyfile_entry, i);
    if (g_str_equal(entry->key, key))
      return entry;
  }
  return NULL;
}

static gboolean is_name(const char *text, const char *extra)
{
  for (const char *c = text; *c; c++)
    if (!g_ascii_isalnum(*c) && !strchr(extra, *c))
      return FALSE;
  return *text != '\0';
}

gboolean keyfile_is_key(const char *text)
{
  return is_name(text, "_-.");
}

/* One blank between words, so that `[system  mps]` is the same section as `[system mps]`. */
static char *squeeze(const char *text)
{
  g_autoptr(GString) out = g_string_new(NULL);
  for (const char *c = text; *c; c++) {
    gboolean blank = *c == ' ' || *c == '\t';
    if (!blank)
      g_string_append_c(out, *c);
    else if (out->len && out->str[out->len - 1] != ' ')
      g_string_append_c(out, ' ');
  }
  if (out->len && out->str[out->len - 1] == ' ')
    g_string_truncate(out, out->len - 1);
  return g_string_free(g_steal_pointer(&out), FALSE);
}

static gboolean section_begin(struct reader *reader, const char *text, GError **error)
{
  struct keyfile *keyfile = reader->keyfile;
  const char *end = strchr(text, ']');
  if (!end)
    return input_error(error, keyfile->path, reader->line, "expected [section], found \"%s\"", text);
  if (end[1])
    return input_error(error, keyfile->path, reader->line, "expected nothing after \"]\", found \"%s\"",
                       end + 1);
  g_autofree char *inside = g_strndup(text + 1, (gsize)(end - text - 1));
  g_autofree char *name = squeeze(inside);
  if (!is_name(name, "_-. "))
    return input_error(error, keyfile->path, reader->line,
                       "expected a section's name of letters, digits, \"_\", \"-\", found \"%s\"", inside);
  const struct keyfile_section *earlier = keyfile_section(keyfile, name);
  if (earlier)
    return input_error(error, keyfile->path, reader->line, "section [%s] was given before, in line %u", name,
                       earlier->line);
  if (keyfile->sections->len == KEYFILE_SECTIONS_MAX)
    return input_error(error, keyfile->path, reader->line, "expected at most %d sections",
                       KEYFILE_SECTIONS_MAX);
  reader->section = g_new0(struct keyfile_section, 1);
  reader->section->name = g_steal_pointer(&name);
  reader->section->line = reader->line;
  reader->section->entries = g_array_new(FALSE, TRUE, sizeof(struct keyfile_entry));
  g_array_set_clear_func(reader->section->entries, entry_clear);
  g_ptr_array_add(keyfile->sections, reader->section);
  return TRUE;
}

static gboolean entry_add(struct reader *reader, const char *text, GError **error)
{
  const char *path = reader->keyfile->path;
  const char *equals = strchr(text, '=');
  if (!equals)
    return input_error(error, path, reader->line, "expected key = value, found \"%s\"", text);
  g_autofree char *key = g_strstrip(g_strndup(text, (gsize)(equals - text)));
  g_autofree char *value = g_strstrip(g_strdup(equals + 1));
  if (!keyfile_is_key(key))
    return input_error(error, path, reader->line,
                       "expected a key of letters, digits, \"_\", \"-\", \".\" before \"=\", found \"%s\"",
                       key);
  if (!*value)
    return input_error(error, path, reader->line, "expected a value after \"%s =\", found nothing", key);
  if (!reader->section)
    return input_error(error, path, reader->line, "expected a [section] before the first key, found \"%s\"",
                       key);
  const struct keyfile_entry *earlier = keyfile_entry(reader->section, key);
  if (earlier)
    return input_error(error, path, reader->line, "key \"%s\" of [%s] was given before, in line %u", key,
                       reader->section->name, earlier->line);
  if (++reader->entries > KEYFILE_ENTRIES_MAX)
    return input_error(error, path, reader->line, "expected at most %d keys", KEYFILE_ENTRIES_MAX);
  struct keyfile_entry entry = {
      .key = g_steal_pointer(&key), .value = g_steal_pointer(&value), .line = reader->line};
  g_array_append_val(reader->section->entries, entry);
  return TRUE;
}

static gboolean line_read(struct reader *reader, char *text, GError **error)
{
  char *comment = strchr(text, '#');
  if (comment)
    *comment = '\0';
  g_strstrip(text);
  for (const char *c = text; *c; c++)
    if (g_ascii_iscntrl(*c) && *c != '\t')
      return input_error(error, reader->keyfile->path, reader->line,
                         "expected text, found control character 0x%02x", (unsigned)*c);
  if (!*text)
    return TRUE;
  return *text == '[' ? section_begin(reader, text, error) : entry_add(reader, text, error);
}

static gboolean lines_read(struct reader *reader, GError **error)
{
  const char *rest = reader->keyfile->text + byte_order_mark(reader->keyfile->text, reader->keyfile->length);
  for (;;) {
    g_autofree char *text = NULL;
    if (!text_next_line(reader->keyfile->path, &rest, KEYFILE_LINE_MAX, &reader->line, &text, error))
      return FALSE;
    if (!text)
      return TRUE;
    if (!line_read(reader, text, error))
      return FALSE;
  }
}

/* Takes text, which text_check has passed. */
static struct keyfile *keyfile_of(const char *path, char *text, gsize length, GError **error)
{
  g_autoptr(Keyfile) keyfile = g_new0(struct keyfile, 1);
  keyfile->path = g_strdup(path);
  keyfile->text = text;
  keyfile->length = length;
  keyfile->sections = g_ptr_array_new_with_free_func(section_free);
  struct reader reader = {.keyfile = keyfile};
  return lines_read(&reader, error) ? g_steal_pointer(&keyfile) : NULL;
}

struct keyfile *keyfile_parse(const char *path, const char *text, gsize length, GError **error)
{
  if (length > KEYFILE_BYTES_MAX) {
    input_error(error, path, 0, "expected at most %d bytes, found %" G_GSIZE_FORMAT, KEYFILE_BYTES_MAX,
                length);
    return NULL;
  }
  if (!text_check(path, text, length, error))
    return NULL;
  return keyfile_of(path, g_strndup(text, length), length, error);
}

struct keyfile *keyfile_load(const char *path, GError **error)
{
  gsize length;
  char *text = text_file_read(path, KEYFILE_BYTES_MAX, &length, error);
  return text ? keyfile_of(path, text, length, error) : NULL;
}
