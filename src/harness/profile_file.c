/* Profile files and the catalog of an experiment's models; see profile_file.h. */
#include "harness/profile_file.h"

#include <string.h>

#include "core/error.h"
#include "harness/input_file.h"
#include "harness/setting.h"
#include "harness/text_file.h"

enum {
  PROFILE_BYTES_MAX = 16 * 1024 * 1024,
  PROFILE_LINE_MAX = 4096,
  LAYERS_MAX = 100000,
  LAYER_FIELDS = 4,
};

static const char columns[] = "layer,kind,param_bytes,compute_us";
static const double model_bytes_max = 1e15;
static const double model_us_max = 1e12; /* a million seconds, as for warm_latency_ms */

typedef struct profile Profile; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Profile, profile_free)

/* `# key: value` lines that mean something; all others are notes for people. */
struct header {
  double warm_ns; /* -1 = not given: the sum of the rows */
  double unpickle_ns, first_inference_ns, swap_extra_ns, input_token_ns, output_token_ns;
  uint32_t tensors, batch; /* tensors 0 = not given */
  int estimated;
};

#define AT(field) offsetof(struct header, field)
#define MS        ((double)NS_PER_MS)
#define US        ((double)NS_PER_US)
static const char *const truths[] = {"false", "true", NULL};
static const struct setting header_settings[] = {
    {.key = "warm_latency_ms", .kind = SETTING_REAL, .offset = AT(warm_ns), .scale = MS, .max = 1e9},
    {.key = "unpickle_ms", .kind = SETTING_REAL, .offset = AT(unpickle_ns), .scale = MS, .max = 1e9},
    {.key = "first_inference_ms",
     .kind = SETTING_REAL,
     .offset = AT(first_inference_ns),
     .scale = MS,
     .max = 1e9},
    {.key = "swap_extra_ms", .kind = SETTING_REAL, .offset = AT(swap_extra_ns), .scale = MS, .max = 1e9},
    {.key = "input_us_per_token",
     .kind = SETTING_REAL,
     .offset = AT(input_token_ns),
     .scale = US,
     .max = 1e9},
    {.key = "output_us_per_token",
     .kind = SETTING_REAL,
     .offset = AT(output_token_ns),
     .scale = US,
     .max = 1e9},
    {.key = "tensors", .kind = SETTING_UINT32, .offset = AT(tensors), .max = 1e9},
    {.key = "batch", .kind = SETTING_UINT32, .offset = AT(batch), .min = 1, .max = 1e6},
    {.key = "estimated", .kind = SETTING_CHOICE, .offset = AT(estimated), .choices = truths},
    {.key = NULL}};

struct layer {
  char *name;
  uint64_t bytes;
  double ns;
};

struct table {
  const char *path;
  struct header header;
  gboolean seen[G_N_ELEMENTS(header_settings)];
  gboolean columns_read;
  GArray *layers;   /* of struct layer */
  double bytes, us; /* sums over the layers */
  unsigned line;
};

static void layer_clear(gpointer data)
{
  g_free(((struct layer *)data)->name);
}

static gboolean header_read(struct table *table, char *text, GError **error)
{
  char *colon = strchr(text, ':');
  if (!colon)
    return TRUE;
  *colon = '\0';
  const char *key = g_strstrip(text);
  const struct setting *setting = setting_find(header_settings, NULL, key);
  g_autoptr(GError) inner = NULL;
  if (!setting)
    return TRUE;
  gboolean *seen = &table->seen[setting - header_settings];
  if (*seen)
    return input_error(error, table->path, table->line, "key \"%s\" was given before", key);
  *seen = TRUE;
  if (!setting_apply(setting, &table->header, g_strstrip(colon + 1), &inner))
    return input_error(error, table->path, table->line, "%s: %s", key, inner->message);
  return TRUE;
}

static gboolean row_read(struct table *table, const char *text, GError **error)
{
  g_auto(GStrv) fields = g_strsplit(text, ",", LAYER_FIELDS + 1);
  g_autoptr(GError) inner = NULL;
  guint64 bytes;
  double us;
  if (g_strv_length(fields) != LAYER_FIELDS)
    return input_error(error, table->path, table->line, "expected %d fields (%s), found \"%s\"", LAYER_FIELDS,
                       columns, text);
  for (guint i = 0; i < LAYER_FIELDS; i++)
    if (!*g_strstrip(fields[i]))
      return input_error(error, table->path, table->line, "expected %s, found an empty field %u", columns,
                         i + 1);
  if (!integer_parse(fields[2], 0, (guint64)model_bytes_max, &bytes, &inner))
    return input_error(error, table->path, table->line, "param_bytes: %s", inner->message);
  if (!number_parse(fields[3], 0, 1e12, &us, &inner))
    return input_error(error, table->path, table->line, "compute_us: %s", inner->message);
  if (table->layers->len == LAYERS_MAX)
    return input_error(error, table->path, table->line, "expected at most %d layers", LAYERS_MAX);
  table->bytes += (double)bytes;
  table->us += us;
  if (table->bytes > model_bytes_max)
    return input_error(error, table->path, table->line, "expected at most %g bytes of parameters in all",
                       model_bytes_max);
  if (table->us > model_us_max)
    return input_error(error, table->path, table->line, "expected at most %g us of compute time in all",
                       model_us_max);
  struct layer layer = {.name = g_strdup(fields[0]), .bytes = bytes, .ns = us * US};
  g_array_append_val(table->layers, layer);
  return TRUE;
}

static gboolean line_read(struct table *table, char *text, GError **error)
{
  g_strstrip(text);
  if (*text == '#')
    return header_read(table, text + 1, error);
  if (!*text)
    return TRUE;
  if (table->columns_read)
    return row_read(table, text, error);
  table->columns_read = g_str_equal(text, columns);
  return table->columns_read || input_error(error, table->path, table->line,
                                            "expected the line \"%s\", found \"%s\"", columns, text);
}

static gboolean table_check(const struct table *table, GError **error)
{
  if (!table->columns_read)
    return input_error(error, table->path, table->line, "expected the line \"%s\", found the end of the file",
                       columns);
  if (!table->layers->len)
    return input_error(error, table->path, table->line, "expected a layer, found none");
  if (!(table->bytes > 0))
    return input_error(error, table->path, table->line, "expected a layer with parameters, found none");
  return TRUE;
}

static gboolean table_read(struct table *table, const char *text, GError **error)
{
  text += byte_order_mark(text, strlen(text));
  for (;;) {
    g_autofree char *line = NULL;
    if (!text_next_line(table->path, &text, PROFILE_LINE_MAX, &table->line, &line, error))
      return FALSE;
    if (!line)
      return table_check(table, error);
    if (!line_read(table, line, error))
      return FALSE;
  }
}

static void table_init(struct table *table, const char *path)
{
  *table = (struct table){.path = path, .header = {.warm_ns = -1, .batch = 1}};
  table->layers = g_array_new(FALSE, TRUE, sizeof(struct layer));
  g_array_set_clear_func(table->layers, layer_clear);
}

/* Layer times and what belongs to them, into one GPU kind of the profile. */
static void timing_fill(struct profile *profile, uint32_t hw, const struct table *table)
{
  struct profile_timing *timing = &profile->timing[hw];
  double sum = 0;
  for (uint32_t i = 0; i < profile->layers; i++) {
    timing->layer_ns[i] = g_array_index(table->layers, struct layer, i).ns;
    sum += timing->layer_ns[i];
  }
  profile_scale(profile, hw, table->header.warm_ns >= 0 ? table->header.warm_ns : sum);
  timing->unpickle_ns = table->header.unpickle_ns;
  timing->first_inference_ns = table->header.first_inference_ns;
  timing->swap_extra_ns = table->header.swap_extra_ns;
  timing->estimated = table->header.estimated;
}

static struct profile *profile_of(const char *name, const struct table *table)
{
  struct profile *profile = profile_new(name, table->layers->len);
  uint32_t with_parameters = 0;
  profile->layer_names = g_new0(char *, profile->layers);
  for (uint32_t i = 0; i < profile->layers; i++) {
    const struct layer *layer = &g_array_index(table->layers, struct layer, i);
    profile->layer_bytes[i] = layer->bytes;
    profile->layer_names[i] = g_strdup(layer->name);
    with_parameters += layer->bytes > 0;
  }
  profile_sum(profile);
  profile->tensors = table->header.tensors ? table->header.tensors : with_parameters;
  profile->batch = table->header.batch;
  profile->input_token_ns = table->header.input_token_ns;
  profile->output_token_ns = table->header.output_token_ns;
  timing_fill(profile, 0, table);
  return profile;
}

struct profile *profile_parse(const char *path, const char *name, const char *text, gsize length,
                              GError **error)
{
  struct table table;
  struct profile *profile = NULL;
  g_autofree char *copy = NULL;
  if (!text_check(path, text, length, error))
    return NULL;
  copy = g_strndup(text, length);
  table_init(&table, path);
  if (table_read(&table, copy, error))
    profile = profile_of(name, &table);
  g_array_unref(table.layers);
  return profile;
}

struct profile *profile_load(const char *dir, const char *name, GError **error)
{
  gsize length;
  g_autofree char *leaf = g_strconcat(name, ".csv", NULL);
  g_autofree char *path = g_build_filename(dir, leaf, NULL);
  g_autofree char *text = text_file_read(path, PROFILE_BYTES_MAX, &length, error);
  return text ? profile_parse(path, name, text, length, error) : NULL;
}

gboolean profile_load_timing(struct profile *profile, const char *dir, uint32_t hw, GError **error)
{
  g_autoptr(Profile) other = profile_load(dir, profile->name, error);
  if (!other)
    return FALSE;
  g_autofree char *path = g_strdup_printf("%s/%s.csv", dir, profile->name);
  if (other->layers != profile->layers)
    return input_error(error, path, 0,
                       "expected the %u layers of the same model on the first hardware, found %u",
                       profile->layers, other->layers);
  for (uint32_t i = 0; i < profile->layers; i++)
    if (other->layer_bytes[i] != profile->layer_bytes[i])
      return input_error(error, path, 0,
                         "layer \"%s\": expected %" G_GUINT64_FORMAT
                         " bytes as on the first hardware, found %" G_GUINT64_FORMAT,
                         other->layer_names[i], profile->layer_bytes[i], other->layer_bytes[i]);
  struct profile_timing swapped = profile->timing[hw];
  profile->timing[hw] = other->timing[0];
  other->timing[0] = swapped;
  return TRUE;
}
