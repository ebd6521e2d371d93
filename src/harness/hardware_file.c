/* The table of hardware keys and the reader of hardware files; see hardware_file.h. */
#include "harness/hardware_file.h"

#include <string.h>

#include "core/error.h"
#include "harness/experiment.h"
#include "harness/nearest.h"
#include "harness/resolve.h"
#include "harness/shown.h"

static gboolean speedup_apply(const struct setting *setting, void *base, const char *text, GError **error);

#define AT(field) offsetof(struct hardware, field)
#define GB        ((double)BYTES_PER_GB)
#define GBIT_S    (1e9 / 8)
#define US        ((double)NS_PER_US)
#define RATE_MAX  1e6
#define COST_MAX  1e9
#define COST(name, about)                                                                                    \
  {                                                                                                          \
    NULL, #name "_us", SETTING_REAL, AT(name##_ns), US, 0, COST_MAX, .unit = "us", .fallback = "0",          \
                                                                     .help = about                           \
  }

/* Defaults of the baselines' constants are what one H200 measured, so that a file that leaves them out makes
 * no baseline slower or faster than some real machine; overheads default to none. */
const struct setting hardware_settings[] = {
    {NULL, "gpu", SETTING_LABEL, AT(gpu), .unit = "", .fallback = "none",
     .help = "kind of GPU: the folder of experiments/profiles with its layer tables"},
    {NULL, "gpu_memory_gb", SETTING_BYTES, AT(gpu_memory_bytes), GB, 0, 1e6, .unit = "GB", .fallback = "16",
     .help = "memory of one GPU"},
    {NULL, "host_memory_gb", SETTING_BYTES, AT(host_memory_bytes), GB, 0, 1e6, .unit = "GB",
     .fallback = "256", .help = "memory of one server"},
    {NULL, "gpus_per_server", SETTING_UINT32, AT(gpus_per_server), 1, 0, 64, .unit = "", .fallback = "1",
     .help = "0 = a machine without GPUs, for memory servers only"},
    {NULL, "nic_gbit_s", SETTING_REAL, AT(nic_bytes_s), GBIT_S, 0, RATE_MAX, .unit = "Gbit/s",
     .fallback = "100", .help = "achieved goodput into a GPU server; 0 = infinitely fast, as for every rate"},
    {NULL, "memory_nic_gbit_s", SETTING_REAL, AT(memory_nic_bytes_s), GBIT_S, 0, RATE_MAX,
     .flags = HARDWARE_NETWORK, .unit = "Gbit/s", .fallback = "100",
     .help = "achieved goodput out of a memory server"},
    {NULL, "spine_oversubscription", SETTING_REAL, AT(spine_oversubscription), 1, 1, 1000,
     .flags = HARDWARE_NETWORK, .unit = "", .fallback = "1",
     .help = "edge bandwidth by spine bandwidth; 1 = a non-blocking network"},
    {NULL, "pcie_gbyte_s", SETTING_REAL, AT(pcie_bytes_s), GB, 0, RATE_MAX, .unit = "GB/s", .fallback = "12",
     .help = "host to GPU from pinned memory, achieved"},
    {NULL, "gpus_per_pcie_switch", SETTING_UINT32, AT(gpus_per_pcie_switch), 1, 1, 64, .unit = "",
     .fallback = "1", .help = "GPUs that share one PCIe link to the host; 1 = a link of its own for each"},
    {NULL, "pageable_gbyte_s", SETTING_REAL, AT(pageable_bytes_s), GB, 0, RATE_MAX, .unit = "GB/s",
     .fallback = "6.6", .help = "host to GPU from pageable memory"},
    {NULL, "pageable_to_host_gbyte_s", SETTING_REAL, AT(pageable_to_host_bytes_s), GB, 0, RATE_MAX,
     .unit = "GB/s", .fallback = "12.3", .help = "GPU to host into pageable memory"},
    {NULL, "ssd_gb", SETTING_BYTES, AT(ssd_bytes), GB, 0, 1e6, .unit = "GB", .fallback = "0",
     .help = "local SSD of one GPU server; 0 = none"},
    {NULL, "ssd_gbyte_s", SETTING_REAL, AT(ssd_bytes_s), GB, 0, RATE_MAX, .unit = "GB/s", .fallback = "3",
     .help = "sequential read rate of that SSD"},
    {NULL, "compute_scale", SETTING_REAL, AT(compute_scale), 1, 1e-6, 1e6, .unit = "", .fallback = "1",
     .help = "multiplies every compute time of the profiles"},

    {NULL, "mps_speedup", SETTING_CUSTOM, 0, .max = 1000, .custom = speedup_apply, .unit = "",
     .fallback = "1",
     .help =
         "total speed of 1;2;4;8... processes on one GPU by that of one; linear between, constant beyond"},
    {NULL, "mps_max_processes", SETTING_UINT32, AT(mps_max_processes), 1, 0, 1024, .unit = "",
     .fallback = "48", .help = "processes on one GPU; 0 = no limit"},
    {NULL, "mps_process_gb", SETTING_BYTES, AT(mps_process_bytes), GB, 0, 1e6, .unit = "GB",
     .fallback = "1.03", .help = "GPU memory of a process beside its model's parameters"},
    {NULL, "mps_process_start_s", SETTING_REAL, AT(mps_process_start_ns), (double)NS_PER_S, 0, 1e6,
     .unit = "s", .fallback = "0.27",
     .help = "fork, CUDA context, libraries; unpickling, copy and first inference come on top"},
    {NULL, "mps_queue_max", SETTING_UINT32, AT(mps_queue_max), 1, 0, 1000000, .unit = "", .fallback = "12",
     .help = "a process with this many requests gets no more; 0 = no limit"},
    {NULL, "mps_train_share", SETTING_REAL, AT(mps_train_share), 1, 0, 1, .unit = "", .fallback = "0.45",
     .help = "share of the GPU that a trainer takes beside inference"},
    {NULL, "ray_proxy_us", SETTING_REAL, AT(ray_proxy_ns), US, 0, COST_MAX, .unit = "us", .fallback = "1500",
     .help = "HTTP proxy hop of one request"},
    {NULL, "ray_tensor_us", SETTING_REAL, AT(ray_tensor_ns), US, 0, COST_MAX, .unit = "us",
     .fallback = "17.4",
     .help = "per tensor moved by a stop-and-go copy, either way; profiles add swap_extra_ms"},

    {NULL, "control_us", SETTING_REAL, AT(control_ns), US, 0, COST_MAX, .flags = HARDWARE_NETWORK,
     .unit = "us", .fallback = "0",
     .help = "one control message to or from such a server (the first kind: also client to controller); a "
             "request costs four"},
    {NULL, "net_stream_us", SETTING_REAL, AT(net_stream_ns), US, 0, COST_MAX, .flags = HARDWARE_NETWORK,
     .unit = "us", .fallback = "0", .help = "to the first byte of a load's stream"},
    {NULL, "net_group_us", SETTING_REAL, AT(net_group_ns), US, 0, COST_MAX, .flags = HARDWARE_NETWORK,
     .unit = "us", .fallback = "0", .help = "per group read over the network"},
    COST(pcie_transfer, "per transfer over PCIe, one a group"),
    COST(group_sync, "per loaded group: the compute stream waits for its copy"),
    COST(launch, "per layer, on top of the profile, whose measured latency includes launches"),
    {.key = NULL}};

/* The file gives powers of two (1;2;4;8...), as such measurements are made; the struct holds every number. */
static gboolean speedup_apply(const struct setting *setting, void *base, const char *text, GError **error)
{
  struct hardware *hardware = base;
  g_auto(GStrv) items = g_strsplit(text, ";", 9);
  double value[7], speedup[HARDWARE_SPEEDUPS_MAX] = {0};
  guint count = g_strv_length(items);
  if (count > G_N_ELEMENTS(value))
    return input_error(error, NULL, 0,
                       "expected at most %d numbers, for 1;2;4;8;16;32;64 processes, found \"%s\"",
                       (int)G_N_ELEMENTS(value), text);
  for (guint i = 0; i < count; i++)
    if (!number_parse(g_strstrip(items[i]), 1e-3, setting->max, &value[i], error))
      return FALSE;
  speedup[0] = value[0];
  for (guint i = 1; i < count; i++) {
    guint low = 1u << (i - 1);
    for (guint n = low + 1; n <= 2 * low; n++)
      speedup[n - 1] = value[i - 1] + (value[i] - value[i - 1]) * (n - low) / low;
  }
  memcpy(hardware->mps_speedup, speedup, sizeof speedup);
  hardware->mps_speedups = 1u << (count - 1);
  return TRUE;
}

char *hardware_find(const char *name, const char *near_file, GError **error)
{
  gboolean bare = !strchr(name, '/') && !g_str_has_suffix(name, ".ini");
  g_autofree char *leaf = g_strconcat(name, ".ini", NULL);
  char *path = bare ? resolve_shipped("hardware", leaf, near_file) : resolve_path(name, near_file);
  if (!path)
    input_error(error, NULL, 0,
                "cannot find hardware \"%s\" (no %s%s beside the experiment, here or in the program's data)",
                name, bare ? "experiments/hardware/" : "", bare ? leaf : name);
  return path;
}

static gboolean entry_apply(const char *path, const struct keyfile_entry *entry, struct hardware *hardware,
                            GError **error)
{
  const struct setting *setting = setting_find(hardware_settings, NULL, entry->key);
  if (!setting) {
    const char *known[G_N_ELEMENTS(hardware_settings)];
    for (gsize i = 0; i < G_N_ELEMENTS(hardware_settings); i++)
      known[i] = hardware_settings[i].key;
    return input_error(error, path, entry->line, "unknown key \"%s\"; nearest is \"%s\"", entry->key,
                       nearest_word(entry->key, known));
  }
  g_autoptr(GError) inner = NULL;
  if (!setting_apply(setting, hardware, entry->value, &inner))
    return input_error(error, path, entry->line, "%s: %s", entry->key, inner->message);
  return TRUE;
}

static const struct keyfile_section *only_section(const struct keyfile *keyfile, GError **error)
{
  for (guint i = 0; i < keyfile->sections->len; i++) {
    const struct keyfile_section *section = keyfile->sections->pdata[i];
    if (!g_str_equal(section->name, "hardware")) {
      input_error(error, keyfile->path, section->line, "unknown section [%s]; nearest is [hardware]",
                  section->name);
      return NULL;
    }
  }
  if (!keyfile->sections->len) {
    input_error(error, keyfile->path, 1, "expected section [hardware], found none");
    return NULL;
  }
  return keyfile->sections->pdata[0];
}

static gboolean hardware_of(const struct keyfile *keyfile, struct hardware *hardware, GError **error)
{
  const struct keyfile_section *section = only_section(keyfile, error);
  if (!section)
    return FALSE;
  memset(hardware, 0, sizeof *hardware);
  g_autofree char *leaf = g_path_get_basename(keyfile->path);
  if (g_str_has_suffix(leaf, ".ini"))
    leaf[strlen(leaf) - strlen(".ini")] = '\0';
  g_autofree char *name = shown_cut(leaf, sizeof hardware->name - 1);
  g_strlcpy(hardware->name, name, sizeof hardware->name);
  for (const struct setting *row = hardware_settings; row->key; row++)
    if (!setting_apply(row, hardware, row->fallback, error))
      return FALSE;
  for (guint i = 0; i < section->entries->len; i++)
    if (!entry_apply(keyfile->path, &g_array_index(section->entries, struct keyfile_entry, i), hardware,
                     error))
      return FALSE;
  return TRUE;
}

gboolean hardware_read(const char *path, struct hardware *hardware, GError **error)
{
  g_autoptr(Keyfile) keyfile = keyfile_load(path, error);
  return keyfile && hardware_of(keyfile, hardware, error);
}

gboolean hardware_parse(const char *path, const char *text, gsize length, struct hardware *hardware,
                        GError **error)
{
  g_autoptr(Keyfile) keyfile = keyfile_parse(path, text, length, error);
  return keyfile && hardware_of(keyfile, hardware, error);
}

gboolean hardware_load(const char *name, const char *near_file, struct hardware *hardware, GError **error)
{
  g_autofree char *path = hardware_find(name, near_file, error);
  return path && hardware_read(path, hardware, error);
}

gboolean hardware_print(GString *out, const char *path, const char *const *overridden, GError **error)
{
  g_autoptr(Keyfile) keyfile = keyfile_load(path, error);
  const struct keyfile_section *section = keyfile ? only_section(keyfile, error) : NULL;
  g_autofree char *shown = shown_text(path); /* in a comment, which a line end would end */
  if (!section)
    return FALSE;
  for (const struct setting *row = hardware_settings; row->key; row++) {
    const struct keyfile_entry *entry = keyfile_entry(section, row->key);
    g_string_append_printf(out, "#   %s = %s   # ", row->key, entry ? entry->value : row->fallback);
    if (g_strv_contains(overridden, row->key))
      g_string_append(out, "overridden above; ");
    if (entry)
      g_string_append_printf(out, "%s:%u", shown, entry->line);
    else
      g_string_append(out, "default");
    g_string_append_printf(out, "%s%s; %s\n", *row->unit ? ", " : "", row->unit, row->help);
  }
  return TRUE;
}
