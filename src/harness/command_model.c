/* `model show`: how a profile is cut into groups on a hardware, when each group passes each stage, and the
 * latency that follows: what the pipeline does, without running anything. */
#include <math.h>
#include <string.h>

#include "core/cost.h"
#include "core/error.h"
#include "harness/command_model.h"
#include "harness/json_writer.h"
#include "harness/profile_file.h"
#include "harness/resolve.h"
#include "harness/table.h"

typedef struct profile Profile; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Profile, profile_free)
typedef struct grouping Grouping;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Grouping, grouping_free)

struct model_arguments {
  char *grouping, *hardware, *memory_hardware, *source, *path;
  char *memory_servers_text; /* as it was given, or NULL */
  gint memory_servers;
  gboolean json;
};

/* One source's prediction. */
struct prediction {
  const char *source;
  gboolean direct; /* lands in GPU memory: no PCIe stage */
  struct load_path path;
  struct grouping *grouping;
  double (*stages)[3];
  double latency_ns, bound_ns;
};

/* No schedule is shorter than the longest stage alone. */
static double stage_bound(const struct grouping *grouping, const struct load_path *path)
{
  double net = path->remote ? path->net_stream_ns : 0, pcie = 0, compute = 0;
  for (uint32_t j = 0; j < grouping->groups; j++) {
    uint32_t layers = grouping->first_layer[j + 1] - grouping->first_layer[j];
    net += path->remote ? path->net_group_ns + transfer_ns(grouping->bytes[j], path->net_bytes_s) : 0;
    pcie += path->pcie_transfer_ns + transfer_ns(grouping->bytes[j], path->pcie_bytes_s);
    compute += path->group_sync_ns + grouping->compute_ns[j] + path->launch_ns * layers;
  }
  return MAX(net, MAX(pcie, compute));
}

static void predict(struct prediction *p, const struct profile *profile, const struct grouping_policy *policy,
                    const struct load_path *path, const char *source, gboolean direct)
{
  p->source = source;
  p->direct = direct;
  p->path = *path;
  p->grouping = grouping_new(profile, 0, policy, path);
  p->stages = g_malloc_n(p->grouping->groups, sizeof *p->stages);
  p->latency_ns = grouping_latency_ns(p->grouping, path, p->stages);
  p->bound_ns = stage_bound(p->grouping, path);
}

static void prediction_clear(struct prediction *p)
{
  if (p->grouping)
    grouping_free(p->grouping);
  g_free(p->stages);
}

/* --- output --- */

/* Stages of a load: network, PCIe, compute. */
static gboolean has_stage(const struct prediction *p, int stage)
{
  return stage != 1 || !p->direct;
}

static void print_groups(const struct prediction *p)
{
  static const char *const heads[] = {"group", "layers", "bytes", "net ms", "pcie ms", "compute ms"};
  g_autoptr(Table) table = table_new(G_N_ELEMENTS(heads), 0);
  for (size_t i = 0; i < G_N_ELEMENTS(heads); i++)
    table_cell(table, g_strdup(heads[i]), FALSE);
  const struct grouping *g = p->grouping;
  for (uint32_t j = 0; j < g->groups; j++) {
    table_cell(table, g_strdup_printf("%u", j), FALSE);
    table_cell(table, g_strdup_printf("%u", g->first_layer[j + 1] - g->first_layer[j]), FALSE);
    table_cell(table, g_strdup_printf("%" G_GUINT64_FORMAT, g->bytes[j]), FALSE);
    for (int stage = 0; stage < 3; stage++)
      table_cell(table,
                 has_stage(p, stage) ? g_strdup_printf("%.3f", p->stages[j][stage] / 1e6) : g_strdup("-"),
                 FALSE);
  }
  table_print(table, stdout, FALSE);
}

static void print_prediction(const struct prediction *p, double resident)
{
  printf("from %s: %u group%s, predicted latency %.3f ms, lower bound (longest stage) %.3f ms, resident %.3f "
         "ms\n\n",
         p->direct                        ? "the memory pool into GPU memory"
         : strcmp(p->source, "host") == 0 ? "the host cache"
                                          : "the memory pool",
         p->grouping->groups, p->grouping->groups == 1 ? "" : "s", p->latency_ns / 1e6, p->bound_ns / 1e6,
         resident / 1e6);
  print_groups(p);
  printf("\n");
}

static void write_groups(struct json_writer *json, const struct prediction *p)
{
  const struct grouping *g = p->grouping;
  json_array_open(json);
  for (uint32_t j = 0; j < g->groups; j++) {
    json_object_open(json);
    json_integer_at(json, "layers", g->first_layer[j + 1] - g->first_layer[j]);
    json_integer_at(json, "bytes", g->bytes[j]);
    static const char *const keys[] = {"net_ms", "pcie_ms", "compute_ms"};
    for (int stage = 0; stage < 3; stage++)
      json_real_at(json, keys[stage], has_stage(p, stage) ? p->stages[j][stage] / 1e6 : NAN);
    json_object_close(json);
  }
  json_array_close(json);
}

static void print_json(const struct prediction *p, uint32_t count, const struct profile *profile,
                       const char *hardware, const struct grouping_policy *policy, double resident)
{
  g_autofree char *grouping = grouping_policy_format(policy);
  g_autoptr(JsonWriter) json = json_writer_new();
  json_object_open(json);
  json_string_at(json, "model", profile->name);
  json_string_at(json, "hardware", hardware);
  json_string_at(json, "grouping", grouping);
  json_string_at(json, "timing", profile->timing[0].estimated ? "estimated" : "measured");
  json_integer_at(json, "param_bytes", profile->param_bytes);
  json_real_at(json, "resident_ms", resident / 1e6);
  json_array_at(json, "sources");
  for (uint32_t i = 0; i < count; i++) {
    json_object_open(json);
    json_string_at(json, "source", p[i].source);
    json_string_at(json, "path", p[i].direct ? "gpudirect" : "host");
    json_real_at(json, "latency_ms", p[i].latency_ns / 1e6);
    json_real_at(json, "bound_ms", p[i].bound_ns / 1e6);
    json_key(json, "groups");
    write_groups(json, &p[i]);
    json_object_close(json);
  }
  json_array_close(json);
  json_object_close(json);
  g_autofree char *text = json_writer_text(json);
  printf("%s\n", g_strchomp(text));
}

/* --- the command --- */

/* Path of a profile: a file as it is named if that ends in .csv, else the one that ships for the hardware's
 * GPU. */
static char *find_profile(const char *name, const struct hardware *hardware, GError **error)
{
  if (g_str_has_suffix(name, ".csv"))
    return g_strdup(name);
  g_autofree char *leaf = g_strdup_printf("%s/%s.csv", hardware->gpu, name);
  char *path = resolve_shipped("profiles", leaf, NULL);
  if (!path)
    input_error(error, NULL, 0, "no profile \"%s\" for GPU \"%s\" (experiments/profiles/%s)", name,
                hardware->gpu, leaf);
  return path;
}

static struct profile *read_profile(const char *name, const struct hardware *hardware, GError **error)
{
  g_autofree char *path = find_profile(name, hardware, error);
  if (!path)
    return NULL;
  g_autofree char *folder = g_path_get_dirname(path);
  g_autofree char *model = g_path_get_basename(path);
  model[strlen(model) - strlen(".csv")] = 0;
  g_autoptr(Profile) profile = profile_load(folder, model, error);
  if (!profile)
    return NULL;
  profile_scale(profile, 0, profile->timing[0].warm_ns * hardware->compute_scale);
  return g_steal_pointer(&profile);
}

static gboolean check_arguments(struct model_arguments *a, GError **error)
{
  a->memory_servers = 4;
  if (!command_integer("memory-servers", a->memory_servers_text, 1, 64, &a->memory_servers, error))
    return FALSE;
  if (a->source && strcmp(a->source, "remote") != 0 && strcmp(a->source, "host") != 0)
    return input_error(error, NULL, 0, "--source: expected remote or host, found '%s'", a->source);
  if (a->path && strcmp(a->path, "host") != 0 && strcmp(a->path, "gpudirect") != 0)
    return input_error(error, NULL, 0, "--path: expected host or gpudirect, found '%s'", a->path);
  if (g_strcmp0(a->path, "gpudirect") == 0 && g_strcmp0(a->source, "host") == 0)
    return input_error(error, NULL, 0,
                       "--path gpudirect: is of loads from the memory pool, not of --source host");
  return TRUE;
}

static gboolean show(struct model_arguments *a, const char *name, GError **error)
{
  struct hardware gpu, memory;
  struct grouping_policy policy;
  const char *hardware = a->hardware ? a->hardware : "p3dn";
  if (!check_arguments(a, error) ||
      !grouping_policy_parse(a->grouping ? a->grouping : "optimal", &policy, error) ||
      !hardware_load(hardware, NULL, &gpu, error) ||
      !hardware_load(a->memory_hardware ? a->memory_hardware : hardware, NULL, &memory, error))
    return FALSE;
  g_autoptr(Profile) profile = read_profile(name, &gpu, error);
  if (!profile)
    return FALSE;
  struct prediction p[2] = {0};
  uint32_t count = 0;
  for (int source = SOURCE_HOST; source <= SOURCE_REMOTE; source++) {
    const char *text = source == SOURCE_HOST ? "host" : "remote";
    gboolean direct = source == SOURCE_REMOTE && a->path && strcmp(a->path, "gpudirect") == 0;
    struct load_path path = cost_load_path(&gpu, &memory, (uint32_t)a->memory_servers, SHARDING_HYBRID, FALSE,
                                           direct, (enum load_source)source);
    if (!a->source || strcmp(a->source, text) == 0)
      predict(&p[count++], profile, &policy, &path, text, direct);
  }
  double resident = grouping_resident_ns(p[0].grouping, gpu.launch_ns);
  if (a->json) {
    print_json(p, count, profile, gpu.name, &policy, resident);
  } else {
    printf("%s on %s (%s), %" G_GUINT64_FORMAT " bytes, %u layers%s\n", profile->name, gpu.name, gpu.gpu,
           profile->param_bytes, profile->layers, profile->timing[0].estimated ? ", timing estimated" : "");
    for (uint32_t i = 0; i < count; i++)
      print_prediction(&p[i], resident);
  }
  for (uint32_t i = 0; i < count; i++)
    prediction_clear(&p[i]);
  return TRUE;
}

gboolean model_show(int argc, char **argv, GError **error)
{
  struct model_arguments a = {NULL};
  const GOptionEntry entries[] = {
      {"grouping", 0, 0, G_OPTION_ARG_FILENAME, &a.grouping, NULL, NULL},
      {"hardware", 0, 0, G_OPTION_ARG_FILENAME, &a.hardware, NULL, NULL},
      {"memory-hardware", 0, 0, G_OPTION_ARG_FILENAME, &a.memory_hardware, NULL, NULL},
      {"memory-servers", 0, 0, G_OPTION_ARG_FILENAME, &a.memory_servers_text, NULL, NULL},
      {"source", 0, 0, G_OPTION_ARG_FILENAME, &a.source, NULL, NULL},
      {"path", 0, 0, G_OPTION_ARG_FILENAME, &a.path, NULL, NULL},
      {"json", 0, 0, G_OPTION_ARG_NONE, &a.json, NULL, NULL},
      {NULL, 0, 0, 0, NULL, NULL, NULL},
  };
  g_auto(GStrv) words = command_options(argc, argv, entries, error);
  gboolean good = words && command_arguments(argv, words, 1, 1, "`show` and a PROFILE", error) &&
                  show(&a, words[0], error);
  g_free(a.memory_servers_text);
  g_free(a.grouping);
  g_free(a.hardware);
  g_free(a.memory_hardware);
  g_free(a.source);
  g_free(a.path);
  return good;
}

static const struct model_part *find_part(const struct model_part *parts, const char *name)
{
  while (parts->name && strcmp(parts->name, name) != 0)
    parts++;
  return parts->name ? parts : NULL;
}

/* Names of the parts, as one says it: "show" or "pack". */
static char *part_names(const struct model_part *parts)
{
  GString *names = g_string_new(NULL);
  for (const struct model_part *part = parts; part->name; part++)
    g_string_append_printf(names, "%s\"%s\"", part == parts ? "" : " or ", part->name);
  return g_string_free(names, FALSE);
}

gboolean model_run(const struct model_part *parts, int argc, char **argv, GError **error)
{
  const char *word = NULL;
  for (int i = 1; i < argc; i++) {
    const struct model_part *part = find_part(parts, argv[i]);
    if (part) {
      memmove(argv + i, argv + i + 1, (size_t)(argc - i) * sizeof *argv);
      return part->run(argc - 1, argv, error);
    }
    if (!word && argv[i][0] != '-')
      word = argv[i];
  }
  g_autofree char *names = part_names(parts);
  return word ? input_error(error, NULL, 0, "model: expected %s, found \"%s\"", names, word)
              : input_error(error, NULL, 0, "model: expected %s; `%s model --help` shows how", names,
                            g_get_prgname());
}

static gboolean run_model(int argc, char **argv, GError **error)
{
  static const struct model_part parts[] = {{"show", model_show}, {NULL, NULL}};
  return model_run(parts, argc, argv, error);
}

const struct command command_model = {
    .name = "model",
    .summary = "show how a model is cut into groups, and the latency predicted",
    .run = run_model,
    .help = MODEL_SHOW_USAGE "\n" MODEL_SHOW_HELP,
};
