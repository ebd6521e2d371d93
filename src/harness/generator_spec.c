/* Reading the spec of a synthetic trace; see generator_spec.h. One table says which key belongs where. */
#include "harness/generator_spec.h"

#include <math.h>
#include <string.h>

#include "core/error.h"
#include "core/units.h"
#include "harness/decimal.h"
#include "harness/keyfile.h"
#include "harness/nearest.h"

#define KIND(kind)  (1u << (kind))
#define RATED       (KIND(ARRIVAL_POISSON) | KIND(ARRIVAL_GAMMA) | KIND(ARRIVAL_DIURNAL))
#define ANY_KIND    (RATED | KIND(ARRIVAL_COUNTS))
#define SECONDS_MAX 1e9
#define COUNT_MAX   1000000000LL
#define COUNTS_MAX  1000000u

struct reading {
  const struct keyfile *file;
  struct generator_spec *spec;
};

/* Reads one key's value into the spec. */
typedef gboolean read_value(const struct reading *reading, const struct keyfile_entry *entry, GError **error);

static const char *const kind_names[] = {[ARRIVAL_POISSON] = "poisson",
                                         [ARRIVAL_GAMMA] = "gamma",
                                         [ARRIVAL_DIURNAL] = "diurnal",
                                         [ARRIVAL_COUNTS] = "counts",
                                         NULL};

static gboolean wrong(const struct reading *reading, const struct keyfile_entry *entry, const char *expected,
                      GError **error)
{
  return input_error(error, reading->file->path, entry->line, "%s: expected %s, found '%s'", entry->key,
                     expected, entry->value);
}

static gboolean read_number(const struct reading *reading, const struct keyfile_entry *entry, double min,
                            double max, double *number, GError **error)
{
  char *end;
  *number = g_ascii_strtod(entry->value, &end);
  if (end != entry->value && *end == 0 && isfinite(*number) && *number >= min && *number <= max)
    return TRUE;
  g_autofree char *expected = g_strdup_printf("a number from %g to %g", min, max);
  return wrong(reading, entry, expected, error);
}

static gboolean read_duration(const struct reading *reading, const struct keyfile_entry *entry, int64_t *ns,
                              GError **error)
{
  if (decimal_scaled(entry->value, strlen(entry->value), NS_PER_S, ns) && *ns > 0 &&
      *ns <= (int64_t)SECONDS_MAX * NS_PER_S)
    return TRUE;
  return wrong(reading, entry, "seconds above 0, at most 10^9", error);
}

static gboolean read_seed(const struct reading *reading, const struct keyfile_entry *entry, GError **error)
{
  guint64 seed;
  if (!g_ascii_string_to_unsigned(entry->value, 10, 0, G_MAXUINT64, &seed, NULL))
    return wrong(reading, entry, "a whole number", error);
  reading->spec->seed = seed;
  return TRUE;
}

static gboolean read_kind(const struct reading *reading, const struct keyfile_entry *entry, GError **error)
{
  for (unsigned i = 0; kind_names[i]; i++)
    if (strcmp(kind_names[i], entry->value) == 0) {
      reading->spec->kind = (enum arrival_kind)i;
      return TRUE;
    }
  return wrong(reading, entry, "poisson, gamma, diurnal or counts", error);
}

static gboolean read_trace_duration(const struct reading *reading, const struct keyfile_entry *entry,
                                    GError **error)
{
  return read_duration(reading, entry, &reading->spec->duration_ns, error);
}

static gboolean read_interval(const struct reading *reading, const struct keyfile_entry *entry,
                              GError **error)
{
  return read_duration(reading, entry, &reading->spec->interval_ns, error);
}

static gboolean read_rate(const struct reading *reading, const struct keyfile_entry *entry, GError **error)
{
  return read_number(reading, entry, 1e-9, 1e8, &reading->spec->rate_rps, error);
}

static gboolean read_cv(const struct reading *reading, const struct keyfile_entry *entry, GError **error)
{
  return read_number(reading, entry, 0.01, 100, &reading->spec->cv, error);
}

static gboolean read_amplitude(const struct reading *reading, const struct keyfile_entry *entry,
                               GError **error)
{
  return read_number(reading, entry, 0, 1, &reading->spec->amplitude, error);
}

static gboolean read_period(const struct reading *reading, const struct keyfile_entry *entry, GError **error)
{
  return read_number(reading, entry, 1e-3, SECONDS_MAX, &reading->spec->period_s, error);
}

static gboolean read_peak(const struct reading *reading, const struct keyfile_entry *entry, GError **error)
{
  return read_number(reading, entry, 0, SECONDS_MAX, &reading->spec->peak_s, error);
}

static gboolean read_counts(const struct reading *reading, const struct keyfile_entry *entry, GError **error)
{
  g_auto(GStrv) parts = g_strsplit(entry->value, ";", (gint)COUNTS_MAX + 1);
  for (char **part = parts; *part; part++) {
    int64_t count;
    const char *text = g_strstrip(*part);
    if (strpbrk(text, ".eE+-") || !decimal_scaled(text, strlen(text), 1, &count) || count > COUNT_MAX)
      return wrong(reading, entry, "whole numbers up to 1000000000, separated by ;", error);
    uint64_t value = (uint64_t)count;
    g_array_append_val(reading->spec->counts, value);
  }
  return TRUE;
}

static gboolean read_zipf(const struct reading *reading, const struct keyfile_entry *entry, GError **error)
{
  return read_number(reading, entry, 0, 10, &reading->spec->zipf, error);
}

static gboolean read_ranks(const struct reading *reading, const struct keyfile_entry *entry, GError **error)
{
  reading->spec->shuffled = strcmp(entry->value, "shuffled") == 0;
  return reading->spec->shuffled || strcmp(entry->value, "listed") == 0 ||
         wrong(reading, entry, "listed or shuffled", error);
}

static gboolean read_input(const struct reading *reading, const struct keyfile_entry *entry, GError **error)
{
  return distribution_parse(entry->value, reading->file->path, entry->line, &reading->spec->input, error);
}

static gboolean read_output(const struct reading *reading, const struct keyfile_entry *entry, GError **error)
{
  return distribution_parse(entry->value, reading->file->path, entry->line, &reading->spec->output, error);
}

static gboolean read_service(const struct reading *reading, const struct keyfile_entry *entry, GError **error)
{
  return distribution_parse(entry->value, reading->file->path, entry->line, &reading->spec->service_ms,
                            error);
}

static const struct spec_key {
  const char *section, *key;
  unsigned kinds; /* that use it */
  gboolean required;
  read_value *read;
} spec_keys[] = {
    {"trace", "kind", ANY_KIND, TRUE, read_kind}, /* first: the others depend on it */
    {"trace", "seed", ANY_KIND, FALSE, read_seed},
    {"trace", "duration_s", RATED, TRUE, read_trace_duration},
    {"trace", "rate_rps", RATED, TRUE, read_rate},
    {"trace", "cv", KIND(ARRIVAL_GAMMA), TRUE, read_cv},
    {"trace", "amplitude", KIND(ARRIVAL_DIURNAL), TRUE, read_amplitude},
    {"trace", "period_s", KIND(ARRIVAL_DIURNAL), TRUE, read_period},
    {"trace", "peak_s", KIND(ARRIVAL_DIURNAL), FALSE, read_peak},
    {"trace", "counts", KIND(ARRIVAL_COUNTS), TRUE, read_counts},
    {"trace", "interval_s", KIND(ARRIVAL_COUNTS), FALSE, read_interval},
    {"popularity", "zipf", ANY_KIND, FALSE, read_zipf},
    {"popularity", "ranks", ANY_KIND, FALSE, read_ranks},
    {"tokens", "input", ANY_KIND, FALSE, read_input},
    {"tokens", "output", ANY_KIND, FALSE, read_output},
    {"service", "time_ms", ANY_KIND, FALSE, read_service},
};

static const char *const sections[] = {"trace", "models", "popularity", "weights", "tokens", "service", NULL};

static gboolean has_free_keys(const char *section)
{
  return strcmp(section, "models") == 0 || strcmp(section, "weights") == 0;
}

static gboolean known_key(const struct reading *reading, const char *section,
                          const struct keyfile_entry *entry, GError **error)
{
  const char *names[G_N_ELEMENTS(spec_keys) + 1];
  unsigned known = 0;
  for (size_t i = 0; i < G_N_ELEMENTS(spec_keys); i++) {
    if (strcmp(spec_keys[i].section, section) != 0)
      continue;
    if (strcmp(spec_keys[i].key, entry->key) == 0)
      return TRUE;
    names[known++] = spec_keys[i].key;
  }
  names[known] = NULL;
  return input_error(error, reading->file->path, entry->line, "unknown key '%s' in [%s], nearest is '%s'",
                     entry->key, section, nearest_word(entry->key, names));
}

static gboolean check_names(const struct reading *reading, GError **error)
{
  for (guint i = 0; i < reading->file->sections->len; i++) {
    const struct keyfile_section *section = reading->file->sections->pdata[i];
    if (!g_strv_contains(sections, section->name))
      return input_error(error, reading->file->path, section->line, "unknown section [%s], nearest is [%s]",
                         section->name, nearest_word(section->name, sections));
    for (guint k = 0; !has_free_keys(section->name) && k < section->entries->len; k++)
      if (!known_key(reading, section->name, &g_array_index(section->entries, struct keyfile_entry, k),
                     error))
        return FALSE;
  }
  return TRUE;
}

static gboolean read_keys(const struct reading *reading, GError **error)
{
  for (size_t i = 0; i < G_N_ELEMENTS(spec_keys); i++) {
    const struct spec_key *key = &spec_keys[i];
    const struct keyfile_section *section = keyfile_section(reading->file, key->section);
    const struct keyfile_entry *entry = section ? keyfile_entry(section, key->key) : NULL;
    gboolean used = (key->kinds & KIND(reading->spec->kind)) != 0;
    if (!entry && key->required && used)
      return input_error(error, reading->file->path, section ? section->line : 0,
                         "expected a key '%s' in [%s]", key->key, key->section);
    if (entry && !used && i > 0)
      return input_error(error, reading->file->path, entry->line, "key '%s' is of no use to kind = %s",
                         key->key, kind_names[reading->spec->kind]);
    if (entry && !key->read(reading, entry, error))
      return FALSE;
  }
  return TRUE;
}

static gboolean read_models(const struct reading *reading, GError **error)
{
  struct generator_spec *spec = reading->spec;
  const struct keyfile_section *section = keyfile_section(reading->file, "models");
  for (guint i = 0; section && i < section->entries->len; i++) {
    const struct keyfile_entry *entry = &g_array_index(section->entries, struct keyfile_entry, i);
    guint64 variants;
    if (!g_ascii_string_to_unsigned(entry->value, 10, 1, GENERATOR_VARIANTS_MAX, &variants, NULL) ||
        variants + spec->variants > GENERATOR_VARIANTS_MAX)
      return wrong(reading, entry, "a number of variants, 1 to 1000000 in all", error);
    struct generator_profile profile = {.name = g_strdup(entry->key), .variants = (uint32_t)variants};
    spec->variants += profile.variants;
    g_array_append_val(spec->profiles, profile);
  }
  return TRUE;
}

static gboolean read_weights(const struct reading *reading, GError **error)
{
  struct generator_spec *spec = reading->spec;
  const struct keyfile_section *section = keyfile_section(reading->file, "weights");
  if (!section)
    return TRUE;
  spec->weighted = TRUE;
  if (keyfile_section(reading->file, "popularity"))
    return input_error(error, reading->file->path, section->line,
                       "expected [popularity] or [weights], found both");
  for (guint i = 0; i < spec->profiles->len; i++) {
    struct generator_profile *profile = &g_array_index(spec->profiles, struct generator_profile, i);
    const struct keyfile_entry *entry = keyfile_entry(section, profile->name);
    if (!entry)
      return input_error(error, reading->file->path, section->line, "expected a weight of '%s'",
                         profile->name);
    if (!read_number(reading, entry, 1e-9, 1e9, &profile->weight, error))
      return FALSE;
  }
  for (guint i = 0; i < section->entries->len; i++) {
    const struct keyfile_entry *entry = &g_array_index(section->entries, struct keyfile_entry, i);
    const struct keyfile_section *models = keyfile_section(reading->file, "models");
    if (!models || !keyfile_entry(models, entry->key))
      return input_error(error, reading->file->path, entry->line, "'%s' is not in [models]", entry->key);
  }
  return TRUE;
}

static gboolean check_size(const struct reading *reading, GError **error)
{
  const struct generator_spec *spec = reading->spec;
  double rows = spec->rate_rps * ((double)spec->duration_ns / NS_PER_S), end_s = 0;
  if (spec->kind == ARRIVAL_COUNTS) {
    rows = 0;
    end_s = (double)spec->counts->len * ((double)spec->interval_ns / NS_PER_S);
    for (guint i = 0; i < spec->counts->len; i++)
      rows += (double)g_array_index(spec->counts, uint64_t, i);
  }
  if (rows > GENERATOR_ROWS_MAX || end_s > SECONDS_MAX)
    return input_error(error, reading->file->path, 0,
                       "expected at most 10^10 rows in 10^9 s, found %.3g in %.3g", rows, end_s);
  if (!spec->variants && keyfile_section(reading->file, "popularity"))
    return input_error(error, reading->file->path, keyfile_section(reading->file, "popularity")->line,
                       "[popularity] needs [models]");
  return TRUE;
}

static void clear_profile(gpointer profile)
{
  g_free(((struct generator_profile *)profile)->name);
}

static struct generator_spec *read_spec(const struct keyfile *file, GError **error)
{
  g_autoptr(GeneratorSpec) spec = g_new0(struct generator_spec, 1);
  struct reading reading = {file, spec};
  spec->counts = g_array_new(FALSE, FALSE, sizeof(uint64_t));
  spec->profiles = g_array_new(FALSE, FALSE, sizeof(struct generator_profile));
  spec->interval_ns = 60 * NS_PER_S;
  spec->seed = 1;
  g_array_set_clear_func(spec->profiles, clear_profile);
  if (!keyfile_section(file, "trace")) {
    input_error(error, file->path, 0, "expected a section [trace]");
    return NULL;
  }
  if (!check_names(&reading, error) || !read_keys(&reading, error) || !read_models(&reading, error) ||
      !read_weights(&reading, error) || !check_size(&reading, error))
    return NULL;
  return g_steal_pointer(&spec);
}

struct generator_spec *generator_spec_load(const char *path, GError **error)
{
  g_autoptr(Keyfile) file = keyfile_load(path, error);
  return file ? read_spec(file, error) : NULL;
}

struct generator_spec *generator_spec_parse(const char *path, const char *text, gsize length, GError **error)
{
  g_autoptr(Keyfile) file = keyfile_parse(path, text, length, error);
  return file ? read_spec(file, error) : NULL;
}

void generator_spec_free(struct generator_spec *spec)
{
  if (!spec)
    return;
  g_array_unref(spec->counts);
  g_array_unref(spec->profiles);
  g_free(spec);
}
