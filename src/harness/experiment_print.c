/* --print-config: the resolved experiment as a file that can be read again, each value with its source and
 * meaning.
 *
 * Names and paths that only the experiment's own folder explains are written as absolute paths, so that the
 * printed file means the same wherever it is put. Keys of hardware files stand as comments: the file that
 * they come from is named. */
#include "harness/experiment_parts.h"

#include <string.h>

#include "harness/hardware_file.h"
#include "harness/resolve.h"
#include "harness/shown.h"

static gboolean same_file(const char *a, const char *b)
{
  g_autofree char *full_a = g_canonicalize_filename(a, NULL);
  g_autofree char *full_b = g_canonicalize_filename(b, NULL);
  return g_str_equal(full_a, full_b);
}

/* What a name was looked up by: its file, or the command line, where the working directory comes first. */
struct anchor {
  const char *near_file;
  gboolean typed;
  const char *separators; /* of the list that the name is one of */
};

/* The absolute form of path; where that cannot stand in the value, as a folder above has a "#" in its name,
 * text as it was given: read beside the experiment, it means the same. */
static char *canonical(const char *path, const char *text, struct anchor anchor)
{
  g_autofree char *whole = g_canonicalize_filename(path, NULL);
  gboolean fits = layers_is_plain(whole) && !strpbrk(whole, anchor.separators);
  return fits ? g_steal_pointer(&whole) : g_strdup(text);
}

/* text, or the absolute form of path where text alone would not lead there from the working directory. */
static char *anchored(const char *text, struct anchor anchor, const char *path, const char *path_from_here)
{
  if (!path || (path_from_here && (anchor.typed || same_file(path, path_from_here))))
    return g_strdup(text);
  return canonical(path, text, anchor);
}

/* A path is written as the file that it led to: beside the printed file the same words may name another one.
 */
static char *anchored_path(const char *text, struct anchor anchor)
{
  g_autofree char *near = resolve_path(text, anchor.near_file);
  g_autofree char *from_here = resolve_path(text, NULL);
  const char *path = anchor.typed && from_here ? from_here : near;
  return path ? canonical(path, text, anchor) : g_strdup(text);
}

static char *anchored_hardware(const char *text, struct anchor anchor)
{
  if (strchr(text, '/'))
    return anchored_path(text, anchor);
  g_autofree char *path = hardware_find(text, anchor.near_file, NULL);
  g_autofree char *from_here = hardware_find(text, NULL, NULL);
  return anchored(text, anchor, path, from_here);
}

static char *anchored_pools(const char *text, struct anchor anchor)
{
  g_auto(GStrv) items = g_strsplit(text, ";", -1);
  for (guint i = 0; items[i]; i++) {
    g_autofree char *name = NULL;
    uint32_t count;
    if (!pool_split(items[i], &count, &name) || !name)
      continue;
    g_autofree char *hardware = anchored_hardware(name, anchor);
    g_free(items[i]);
    items[i] = g_strdup_printf("%u*%s", count, hardware);
  }
  return g_strjoinv(";", items);
}

static char *anchored_event(const char *text, struct anchor anchor)
{
  const char *of = g_strrstr(text, " of ");
  if (!of)
    return g_strdup(text);
  g_autofree char *name = g_strstrip(g_strdup(of + strlen(" of ")));
  g_autofree char *hardware = anchored_hardware(name, anchor);
  return g_strdup_printf("%.*s of %s", (int)(of - text), text, hardware);
}

static char *shown_value(const struct given *given, const char *path)
{
  static const struct {
    const char *section, *key; /* key NULL: any */
    char *(*show)(const char *text, struct anchor anchor);
    const char *separators;
  } anchors[] = {
      {"cluster", "hardware", anchored_hardware, ""},  {"cluster", "memory_hardware", anchored_hardware, ""},
      {"cluster", "gpu_servers", anchored_pools, ";"}, {"models", "profile_dir", anchored_path, ""},
      {"workload", "trace", anchored_path, ""},        {"training", "trace", anchored_path, ""},
      {"events", NULL, anchored_event, " \t"}};
  gboolean is_word = g_str_equal(given->value, "same") || g_str_equal(given->value, "none");
  for (gsize i = 0; !is_word && i < G_N_ELEMENTS(anchors); i++)
    if (g_str_equal(anchors[i].section, given->section) &&
        (!anchors[i].key || g_str_equal(anchors[i].key, given->key)))
      return anchors[i].show(given->value, (struct anchor){path, given->typed, anchors[i].separators});
  return g_strdup(given->value);
}

/* In a comment, which a line end in the file's name would end. */
static void print_place(GString *out, const struct given *given)
{
  g_autofree char *file = shown_text(given->file);
  g_string_append_printf(out, "%s:%u", file, given->line);
}

static void print_given(GString *out, const struct given *given, const char *path)
{
  g_autofree char *value = shown_value(given, path);
  g_string_append_printf(out, "%s = %s   # ", given->key, value);
  if (given->typed)
    g_string_append(out, "--set");
  else if (given->line)
    print_place(out, given);
  else
    g_string_append(out, "the file's name");
}

static void print_row(GString *out, const struct setting *row, const struct layers *layers)
{
  const struct given *given = layers_find(layers, row->section, row->key);
  if (given)
    print_given(out, given, layers->path);
  else
    g_string_append_printf(out, "%s = %s   # default", row->key, row->fallback);
  g_string_append_printf(out, "%s%s; %s\n", *row->unit ? ", " : "", row->unit, row->help);
}

/* What the schema has no row for: profiles, events, keys of hardware files. */
static void print_others(GString *out, const char *section, const struct layers *layers)
{
  for (guint i = 0; i < layers->given->len; i++) {
    const struct given *given = layers->given->pdata[i];
    if (!g_str_equal(given->section, section) || setting_find(experiment_settings, section, given->key))
      continue;
    print_given(out, given, layers->path);
    g_string_append_c(out, '\n');
  }
}

/* Keys of hardware files that [cluster] sets, of those whose row has all of flags. */
static GPtrArray *overridden_keys(const struct layers *layers, unsigned flags)
{
  GPtrArray *keys = g_ptr_array_new();
  for (const struct setting *row = hardware_settings; row->key; row++)
    if ((row->flags & flags) == flags && !setting_find(experiment_settings, "cluster", row->key) &&
        layers_find(layers, "cluster", row->key))
      g_ptr_array_add(keys, (gpointer)row->key);
  g_ptr_array_add(keys, NULL);
  return keys;
}

static gboolean print_hardware(GString *out, const struct draft *draft, const struct layers *layers,
                               GError **error)
{
  const struct experiment *experiment = &draft->experiment;
  g_autoptr(GPtrArray) all = overridden_keys(layers, 0);
  g_autoptr(GPtrArray) network = overridden_keys(layers, HARDWARE_NETWORK);
  for (uint32_t i = 0; i < experiment->hardware_count; i++) {
    g_string_append_printf(out, "# hardware \"%s\" of GPU servers:\n", experiment->hardware[i].name);
    if (!hardware_print(out, draft->hardware_path[i], (const char *const *)all->pdata, error))
      return FALSE;
  }
  g_string_append_printf(out, "# hardware \"%s\" of memory servers:\n", experiment->memory_hardware.name);
  return hardware_print(out, draft->memory_hardware_path, (const char *const *)network->pdata, error);
}

static char *config_text(const struct draft *draft, const struct layers *layers, GError **error)
{
  g_autoptr(GString) out = g_string_new(NULL);
  const char *system = draft->experiment.system;
  g_autofree char *path = shown_text(layers->path);
  g_string_append_printf(out, "# %s%s%s: every value, where it comes from and what it means\n", path,
                         *system ? ", system " : "", system);
  for (const char *const *section = experiment_sections; *section; section++) {
    g_string_append_printf(out, "\n[%s]\n", *section);
    for (const struct setting *row = experiment_settings; row->key; row++)
      if (g_str_equal(row->section, *section))
        print_row(out, row, layers);
    print_others(out, *section, layers);
    if (g_str_equal(*section, "cluster") && !print_hardware(out, draft, layers, error))
      return NULL;
  }
  return g_string_free(g_steal_pointer(&out), FALSE);
}

char *experiment_print_config(const char *path, const char *system, char **sets, GError **error)
{
  g_autoptr(Keyfile) keyfile = experiment_keyfile(path, error);
  g_autoptr(Layers) layers = keyfile ? layers_new(keyfile, system, sets, error) : NULL;
  g_autoptr(Draft) draft = layers ? draft_build(keyfile, layers, system, sets, error) : NULL;
  return draft ? config_text(draft, layers, error) : NULL;
}
