/* What the parts of a calibration share, and the files that it writes; see calibrate.h. */
#include "backend_real/calibrate.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "harness/command.h"
#include "harness/hardware_file.h"
#include "harness/machine.h"
#include "harness/profile_file.h"
#include "harness/shown.h"
#include "harness/text_file.h"

#define FILE_BYTES_MAX (16 << 20)

static const char *const key_names[CALIBRATED_KEYS] = {
    [KEY_NIC] = "nic_gbit_s",
    [KEY_MEMORY_NIC] = "memory_nic_gbit_s",
    [KEY_PCIE] = "pcie_gbyte_s",
    [KEY_CONTROL] = "control_us",
    [KEY_NET_STREAM] = "net_stream_us",
    [KEY_NET_GROUP] = "net_group_us",
    [KEY_PCIE_TRANSFER] = "pcie_transfer_us",
    [KEY_GROUP_SYNC] = "group_sync_us",
    [KEY_LAUNCH] = "launch_us",
    [KEY_SSD] = "ssd_gb",
    [KEY_SSD_RATE] = "ssd_gbyte_s",
};

const char *calibrated_key_name(enum calibrated_key key)
{
  return key_names[key];
}

void calibration_set(struct calibration *c, enum calibrated_key key, double value, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  g_free(c->key[key].note);
  c->key[key] = (struct calibrated){.value = value, .note = g_strdup_vprintf(format, arguments)};
  va_end(arguments);
}

void calibration_clear(struct calibration *c)
{
  for (int key = 0; key < CALIBRATED_KEYS; key++)
    g_free(c->key[key].note);
  for (guint i = 0; i < c->profiles->len; i++)
    profile_free(g_array_index(c->profiles, struct calibrated_profile, i).profile);
  g_array_unref(c->profiles);
  g_free(c->machine);
  g_free(c->busy);
}

uint64_t calibration_bytes(const struct calibration *c, uint64_t least)
{
  uint64_t most = least;
  for (guint i = 0; i < c->profiles->len; i++)
    most = MAX(most, g_array_index(c->profiles, struct calibrated_profile, i).profile->param_bytes);
  return (most + (1 << 20) - 1) >> 20 << 20;
}

gboolean calibration_goes_on(const struct calibration *c, double done, GError **error)
{
  progress_share(c->progress, done);
  if (!*c->interrupted)
    return TRUE;
  g_set_error(error, DM_ERROR, DM_ERROR_INTERRUPTED, "interrupted: nothing was written");
  return FALSE;
}

/* --- the hardware file
 * ------------------------------------------------------------------------------------------*/

/* Four digits: more is noise. */
static void append_value(GString *text, double value)
{
  char number[G_ASCII_DTOSTR_BUF_SIZE];
  g_string_append(text, g_ascii_formatd(number, sizeof number, "%.4g", value));
}

static const struct calibrated *measured(const struct calibration *c, const char *key)
{
  for (int k = 0; k < CALIBRATED_KEYS; k++)
    if (strcmp(key, key_names[k]) == 0)
      return c->key[k].note ? &c->key[k] : NULL;
  return NULL;
}

static void append_measured(GString *text, const char *key, const struct calibrated *value)
{
  g_string_append_printf(text, "# %s\n%s = ", value->note, key);
  append_value(text, value->value);
  g_string_append_c(text, '\n');
}

static void append_profiles(GString *text, const struct calibration *c)
{
  gboolean headed = FALSE;
  for (guint i = 0; i < c->profiles->len; i++) {
    const struct calibrated_profile *p = &g_array_index(c->profiles, struct calibrated_profile, i);
    if (p->warm_ns <= 0)
      continue;
    if (!headed)
      g_string_append(text, "# Inferences of resident models as they really ran, lower quartiles:\n");
    headed = TRUE;
    g_autofree char *name = shown_text(p->profile->name);
    g_string_append_printf(
        text, "#   %s: %.3f ms for %.3f (median %.3f, upper quartile %.3f); checking alone %.3f\n", name,
        p->warm_ns / 1e6, p->profile->timing[0].warm_ns / 1e6, p->median_ns / 1e6, p->high_ns / 1e6,
        p->verify_ns / 1e6);
  }
}

/* Others' work: processes ready to run, a minute's mean. */
char *calibration_busy_text(void)
{
  double ready[1];
  uint32_t cores = machine_cores();
  if (getloadavg(ready, 1) != 1)
    return g_strdup("how busy the machine was is not known");
  return g_strdup_printf("%.1f processes ready to run on %u processor%s before it began%s", ready[0], cores,
                         cores == 1 ? "" : "s",
                         ready[0] > 0.5 * cores ? ": busy, so take these values with care" : "");
}

static void append_head(GString *text, const struct calibration *c, const char *base)
{
  g_autofree char *leaf = g_path_get_basename(base), *name = shown_text(leaf),
                  *host = shown_text(g_get_host_name());
  g_string_append_printf(text,
                         "# Measured by `distmind-real calibrate` (%s) on %s: device %s%s%s%s, transport %s",
                         program_version(), host, c->device->name, c->machine ? " (" : "",
                         c->machine ? c->machine : "", c->machine ? ")" : "", c->transport->name);
  if (c->pace_gbit_s > 0)
    g_string_append_printf(text, ", paced to %g Gbit/s", c->pace_gbit_s);
  g_string_append_printf(
      text, ".\n# Processes of one machine, over loopback. Keys without \"measured\" are those of %s.\n",
      name);
  append_profiles(text, c);
  g_string_append_printf(text, "# %s.\n", c->busy);
}

char *calibration_hardware_text(const struct calibration *c, const char *base, GError **error)
{
  g_autoptr(Keyfile) keyfile = keyfile_load(base, error);
  const struct keyfile_section *section = keyfile ? keyfile_section(keyfile, "hardware") : NULL;
  if (!section)
    return NULL;
  g_autoptr(GString) text = g_string_new(NULL);
  append_head(text, c, base);
  g_string_append(text, "[hardware]\n");
  for (guint i = 0; i < section->entries->len; i++) {
    const struct keyfile_entry *entry = &g_array_index(section->entries, struct keyfile_entry, i);
    if (!measured(c, entry->key))
      g_string_append_printf(text, "%s = %s\n", entry->key, entry->value);
  }
  g_string_append_c(text, '\n');
  for (int key = 0; key < CALIBRATED_KEYS; key++)
    if (c->key[key].note)
      append_measured(text, key_names[key], &c->key[key]);
  return g_strdup(text->str);
}

/* --- profile files
 * ----------------------------------------------------------------------------------------------*/

static gboolean is_header(const char *line, const char *key)
{
  if (*line != '#')
    return FALSE;
  for (line++; *line == ' ' || *line == '\t'; line++)
    ;
  return g_str_has_prefix(line, key);
}

/* What a framework's moves take beyond bytes and tensors (swap_extra_ms) goes: these moves have none. */
static gboolean is_replaced(const char *line)
{
  return is_header(line, "warm_latency_ms") || is_header(line, "calibrated") || is_header(line, "swap");
}

/* One row: its bytes stay; its time is what the layer takes, or what checking its bytes takes where that is
 * more. */
static void append_row(GString *text, const struct calibration *c, const struct calibrated_profile *p,
                       uint32_t layer, const char *line)
{
  const struct profile *profile = p->profile;
  double byte_ns = p->verify_ns / (double)MAX(1, profile->param_bytes);
  double ns = MAX(profile->timing[0].layer_ns[layer], (double)profile->layer_bytes[layer] * byte_ns);
  char number[G_ASCII_DTOSTR_BUF_SIZE];
  const char *comma = strrchr(line, ',');
  g_string_append_len(text, line, comma - line + 1);
  g_string_append_printf(text, "%s\n",
                         g_ascii_formatd(number, sizeof number, "%.4f", ns / c->compute_scale / 1e3));
}

static void append_warm(GString *text, const struct calibration *c, const struct calibrated_profile *p)
{
  char number[G_ASCII_DTOSTR_BUF_SIZE];
  g_autofree char *host = shown_text(g_get_host_name());
  g_string_append_printf(text,
                         "# warm_latency_ms: %s\n# calibrated: distmind-real calibrate on %s (%s): an "
                         "inference as it ran, with what the "
                         "device adds\n",
                         g_ascii_formatd(number, sizeof number, "%.4f", p->warm_ns / c->compute_scale / 1e6),
                         host, c->machine);
}

char *calibration_profile_text(const struct calibration *c, const struct calibrated_profile *p,
                               const char *base, GError **error)
{
  gsize length;
  unsigned number = 0;
  uint32_t layer = 0;
  gboolean rows = FALSE;
  g_autofree char *whole = text_file_read(base, FILE_BYTES_MAX, &length, error);
  g_autoptr(GString) text = g_string_new(NULL);
  for (const char *rest = whole; rest;) {
    g_autofree char *line = NULL;
    if (!text_next_line(base, &rest, 4096, &number, &line, error))
      return NULL;
    if (!line)
      break;
    if (is_replaced(line) || !*g_strstrip(line))
      continue;
    if (*line == '#' || !rows) {
      gboolean columns = *line != '#';
      if (columns)
        append_warm(text, c, p);
      rows |= columns;
      g_string_append_printf(text, "%s\n", line);
    } else if (layer < p->profile->layers) {
      append_row(text, c, p, layer++, line);
    }
  }
  return whole ? g_strdup(text->str) : NULL;
}
