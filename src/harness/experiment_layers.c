/* Collecting an experiment's values from file, [system X] and --set; see experiment_layers.h. */
#include "harness/experiment_layers.h"

#include <string.h>

#include "core/error.h"
#include "harness/experiment_schema.h"
#include "harness/hardware_file.h"
#include "harness/nearest.h"
#include "harness/shown.h"

#define VALUE_BYTES_MAX (KEYFILE_LINE_MAX / 2) /* of --set */

/* Where a name stands, for messages. */
struct place {
  const char *file;
  unsigned line;
};

static void given_free(gpointer data)
{
  struct given *given = data;
  g_free(given->key);
  g_free(given->value);
  g_free(given->file);
  g_free(given);
}

void layers_free(struct layers *layers)
{
  if (!layers)
    return;
  g_ptr_array_unref(layers->given);
  g_free(layers);
}

const struct given *layers_find(const struct layers *layers, const char *section, const char *key)
{
  for (guint i = 0; i < layers->given->len; i++) {
    const struct given *given = layers->given->pdata[i];
    if (g_str_equal(given->key, key) && g_str_equal(given->section, section))
      return given;
  }
  return NULL;
}

static gboolean error_at(const struct layers *layers, const struct given *given, GError **error,
                         const char *format, va_list args)
{
  g_autofree char *message = g_strdup_vprintf(format, args);
  return input_error(error, given ? given->file : layers->path, given ? given->line : 0, "%s", message);
}

gboolean given_error(const struct layers *layers, const struct given *given, GError **error,
                     const char *format, ...)
{
  va_list args;
  va_start(args, format);
  error_at(layers, given, error, format, args);
  va_end(args);
  return FALSE;
}

gboolean layers_error(const struct layers *layers, const char *section, const char *key, GError **error,
                      const char *format, ...)
{
  va_list args;
  va_start(args, format);
  error_at(layers, layers_find(layers, section, key), error, format, args);
  va_end(args);
  return FALSE;
}

static const char *section_known(const char *name)
{
  for (const char *const *section = experiment_sections; *section; section++)
    if (g_str_equal(*section, name))
      return *section;
  return NULL;
}

/* Sections whose keys the user names: [models] has profiles beside its rows, [events] any name. */
static gboolean is_open(const char *section)
{
  return g_str_equal(section, "models") || g_str_equal(section, "events");
}

static gboolean is_known(const char *section, const char *key)
{
  return (is_open(section) && keyfile_is_key(key)) || setting_find(experiment_settings, section, key) ||
         (g_str_equal(section, "cluster") && setting_find(hardware_settings, NULL, key));
}

/* All keys that may stand in section; NULL: in any. */
static GPtrArray *known_keys(const char *section)
{
  GPtrArray *keys = g_ptr_array_new();
  for (const struct setting *row = experiment_settings; row->key; row++)
    if (!section || g_str_equal(row->section, section))
      g_ptr_array_add(keys, (gpointer)row->key);
  if (!section || g_str_equal(section, "cluster"))
    for (const struct setting *row = hardware_settings; row->key; row++)
      g_ptr_array_add(keys, (gpointer)row->key);
  g_ptr_array_add(keys, NULL);
  return keys;
}

static gboolean unknown_key(struct place place, const char *section, const char *key, GError **error)
{
  const struct setting *elsewhere = setting_find(experiment_settings, NULL, key);
  g_autoptr(GPtrArray) keys = known_keys(section);
  if (is_open(section))
    return input_error(error, place.file, place.line,
                       "expected a key of letters, digits, \"_\", \"-\", \".\" in [%s], found \"%s\"",
                       section, key);
  if (elsewhere)
    return input_error(error, place.file, place.line, "unknown key \"%s\" in [%s]; \"%s\" is a key of [%s]",
                       key, section, key, elsewhere->section);
  return input_error(error, place.file, place.line, "unknown key \"%s\" in [%s]; nearest is \"%s\"", key,
                     section, nearest_word(key, (const char *const *)keys->pdata));
}

static gboolean unknown_section(struct place place, const char *name, GError **error)
{
  return input_error(error, place.file, place.line, "unknown section [%s]; nearest is [%s]", name,
                     nearest_word(name, experiment_sections));
}

/* The section that a key without one means; NULL + error if none or several have it. */
static const char *section_of_bare(struct place place, const char *key, GError **error)
{
  const struct setting *found = NULL;
  for (const struct setting *row = experiment_settings; row->key; row++) {
    if (!g_str_equal(row->key, key))
      continue;
    if (found) {
      input_error(error, place.file, place.line,
                  "key \"%s\" is in [%s] and in [%s]: expected \"%s.%s\" or \"%s.%s\"", key, found->section,
                  row->section, found->section, key, row->section, key);
      return NULL;
    }
    found = row;
  }
  if (found)
    return found->section;
  if (setting_find(hardware_settings, NULL, key))
    return "cluster";
  g_autoptr(GPtrArray) keys = known_keys(NULL);
  input_error(error, place.file, place.line, "unknown key \"%s\"; nearest is \"%s\"", key,
              nearest_word(key, (const char *const *)keys->pdata));
  return NULL;
}

/* Splits "section.key" or completes a bare key. *key points into name. */
static const char *name_split(struct place place, const char *name, const char **key, GError **error)
{
  const char *dot = strchr(name, '.');
  *key = dot ? dot + 1 : name;
  if (!dot)
    return section_of_bare(place, name, error);
  g_autofree char *prefix = g_strndup(name, (gsize)(dot - name));
  const char *section = section_known(prefix);
  if (!section)
    unknown_section(place, prefix, error);
  else if (!**key)
    input_error(error, place.file, place.line, "expected a key after \"%s\"", name);
  else if (is_known(section, *key))
    return section;
  else
    unknown_key(place, section, *key, error);
  return NULL;
}

char *layers_key(const char *file, const char *name, GError **error)
{
  const char *key;
  const char *section = name_split((struct place){file, 0}, name, &key, error);
  return section ? g_strconcat(section, ".", key, NULL) : NULL;
}

static void layers_put(struct layers *layers, struct place place, const char *section, const char *key,
                       const char *value, gboolean typed)
{
  struct given *given = (struct given *)layers_find(layers, section, key);
  if (!given) {
    given = g_new0(struct given, 1);
    given->section = section;
    given->key = g_strdup(key);
    g_ptr_array_add(layers->given, given);
  }
  g_free(given->value);
  g_free(given->file);
  given->value = g_strdup(value);
  given->file = g_strdup(place.file);
  given->line = place.line;
  given->typed = typed;
}

static gboolean general_add(struct layers *layers, const struct keyfile_section *section, GError **error)
{
  const char *name = section_known(section->name);
  if (!name)
    return unknown_section((struct place){layers->path, section->line}, section->name, error);
  for (guint i = 0; i < section->entries->len; i++) {
    const struct keyfile_entry *entry = &g_array_index(section->entries, struct keyfile_entry, i);
    struct place place = {layers->path, entry->line};
    if (!is_known(name, entry->key))
      return unknown_key(place, name, entry->key, error);
    layers_put(layers, place, name, entry->key, entry->value, FALSE);
  }
  return TRUE;
}

/* Name, seed and list of systems are one experiment's, not one system's: all systems must see the same load.
 */
static gboolean is_shared(const char *section, const char *key)
{
  return g_str_equal(section, "experiment") &&
         (g_str_equal(key, "name") || g_str_equal(key, "seed") || g_str_equal(key, "systems"));
}

/* [system X]: checked whichever system is asked for, added only for X. */
static gboolean system_add(struct layers *layers, const struct keyfile_section *section, const char *system,
                           GError **error)
{
  const char *name = section->name + strlen("system ");
  if (!g_strv_contains(experiment_systems, name))
    return input_error(error, layers->path, section->line, "unknown system \"%s\"; nearest is \"%s\"", name,
                       nearest_word(name, experiment_systems));
  for (guint i = 0; i < section->entries->len; i++) {
    const struct keyfile_entry *entry = &g_array_index(section->entries, struct keyfile_entry, i);
    struct place place = {layers->path, entry->line};
    const char *key;
    const char *of = name_split(place, entry->key, &key, error);
    if (!of)
      return FALSE;
    if (is_shared(of, key))
      return input_error(error, layers->path, entry->line,
                         "%s.%s is the same for all systems: expected it in [%s]", of, key, of);
    if (g_str_equal(name, system))
      layers_put(layers, place, of, key, entry->value, FALSE);
  }
  return TRUE;
}

gboolean layers_is_plain(const char *text)
{
  for (const char *c = text; *c; c++)
    if (g_ascii_iscntrl(*c) || *c == '#')
      return FALSE;
  return g_utf8_validate(text, -1, NULL);
}

gboolean layers_option_check(const char *option, const char *value, GError **error)
{
  if (!value)
    return TRUE;
  if (strlen(value) > VALUE_BYTES_MAX)
    return input_error(error, option, 0, "expected at most %d bytes, found %" G_GSIZE_FORMAT, VALUE_BYTES_MAX,
                       strlen(value));
  if (layers_is_plain(value))
    return TRUE;
  g_autofree char *shown = shown_text(value);
  return input_error(error, option, 0,
                     "expected UTF-8 text without \"#\" or control characters, found \"%s\"", shown);
}

static gboolean set_add(struct layers *layers, const char *text, GError **error)
{
  if (!layers_is_plain(text))
    return input_error(error, "--set", 0,
                       "expected SECTION.KEY=VALUE of UTF-8 text without \"#\" or control characters");
  g_autofree char *file = g_strdup_printf("--set %s", text);
  struct place place = {file, 0};
  const char *equals = strchr(text, '=');
  if (!equals)
    return input_error(error, file, 0, "expected SECTION.KEY=VALUE, found no \"=\"");
  g_autofree char *name = g_strstrip(g_strndup(text, (gsize)(equals - text)));
  g_autofree char *value = g_strstrip(g_strdup(equals + 1));
  const char *key;
  const char *section = name_split(place, name, &key, error);
  if (!section)
    return FALSE;
  if (!*value)
    return input_error(error, file, 0, "expected a value after \"=\", found nothing");
  if (strlen(value) > VALUE_BYTES_MAX)
    return input_error(error, "--set", 0,
                       "%s.%s: expected a value of at most %d bytes, found %" G_GSIZE_FORMAT, section, key,
                       VALUE_BYTES_MAX, strlen(value));
  layers_put(layers, place, section, key, value, TRUE);
  return TRUE;
}

/* An experiment without a name has its file's. */
static void name_default(struct layers *layers)
{
  g_autofree char *name = g_path_get_basename(layers->path);
  if (g_str_has_suffix(name, ".ini"))
    name[strlen(name) - strlen(".ini")] = '\0';
  for (char *c = name; *c; c++)
    if (!g_ascii_isalnum(*c) && !strchr("._-", *c))
      *c = '_';
  layers_put(layers, (struct place){layers->path, 0}, "experiment", "name", *name ? name : "experiment",
             FALSE);
}

struct layers *layers_new(const struct keyfile *keyfile, const char *system, char **sets, GError **error)
{
  g_autoptr(Layers) layers = g_new0(struct layers, 1);
  layers->path = keyfile->path;
  layers->given = g_ptr_array_new_with_free_func(given_free);
  for (int systems = 0; systems <= 1; systems++)
    for (guint i = 0; i < keyfile->sections->len; i++) {
      const struct keyfile_section *section = keyfile->sections->pdata[i];
      if (g_str_has_prefix(section->name, "system ") != systems)
        continue;
      if (!(systems ? system_add(layers, section, system, error) : general_add(layers, section, error)))
        return NULL;
    }
  for (char **set = sets; set && *set; set++)
    if (!set_add(layers, *set, error))
      return NULL;
  if (!layers_find(layers, "experiment", "name"))
    name_default(layers);
  return g_steal_pointer(&layers);
}
