/* `calibrate`: a hardware file of this machine, measured. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backend_real/calibrate.h"
#include "backend_real/commands.h"
#include "backend_real/log.h"
#include "core/error.h"
#include "harness/hardware_file.h"
#include "harness/output_file.h"
#include "harness/profile_file.h"
#include "harness/resolve.h"

struct arguments {
  char *out, *device, *transport, *pace_text, *base, *profiles, *ssd_folder, *only;
  double pace;
  gboolean force, quiet;
};

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number)
{
  (void)signal_number;
  interrupted = 1;
}

static void arguments_clear(struct arguments *a)
{
  g_free(a->out);
  g_free(a->device);
  g_free(a->transport);
  g_free(a->pace_text);
  g_free(a->base);
  g_free(a->profiles);
  g_free(a->ssd_folder);
  g_free(a->only);
}

/* --- the base
 * ----------------------------------------------------------------------------------------------------*/

struct base {
  char *path;   /* of the hardware file */
  char *folder; /* of its GPU's profiles */
  struct hardware hardware;
};

static gboolean base_find(struct base *base, const struct arguments *a, const struct calibration *c,
                          GError **error)
{
  const char *name = a->base ? a->base : strcmp(c->device->name, "host") == 0 ? "loopback" : "h200";
  base->path = hardware_find(name, NULL, error);
  if (!base->path || !hardware_read(base->path, &base->hardware, error))
    return FALSE;
  base->folder = resolve_shipped("profiles", base->hardware.gpu, base->path);
  return base->folder ||
         input_error(error, base->path, 0, "cannot find the profiles of its gpu \"%s\"", base->hardware.gpu);
}

static int compare_names(gconstpointer a, gconstpointer b)
{
  return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names of the folder's profiles, sorted, with NULL at the end. */
static GPtrArray *profile_names(const char *folder, GError **error)
{
  g_autoptr(GDir) dir = g_dir_open(folder, 0, error);
  if (!dir)
    return NULL;
  GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
  for (const char *leaf; (leaf = g_dir_read_name(dir)) != NULL;)
    if (g_str_has_suffix(leaf, ".csv"))
      g_ptr_array_add(names, g_strndup(leaf, strlen(leaf) - strlen(".csv")));
  g_ptr_array_sort(names, compare_names);
  return names;
}

static gboolean read_profiles(struct calibration *c, const struct base *base, GError **error)
{
  g_autoptr(GPtrArray) names = profile_names(base->folder, error);
  for (guint i = 0; names && i < names->len; i++) {
    struct calibrated_profile of = {.profile = profile_load(base->folder, names->pdata[i], error)};
    if (!of.profile)
      return FALSE;
    profile_scale(of.profile, 0, of.profile->timing[0].warm_ns * base->hardware.compute_scale);
    g_array_append_val(c->profiles, of);
  }
  if (names && names->len == 0)
    return input_error(error, base->folder, 0, "holds no profile");
  return names != NULL;
}

/* --- what is written
 * ---------------------------------------------------------------------------------------------*/

static char *profile_path(const char *folder, const struct calibrated_profile *p)
{
  g_autofree char *leaf = g_strconcat(p->profile->name, ".csv", NULL);
  return g_build_filename(folder, leaf, NULL);
}

/* It is there, or may be made in the nearest folder above it that is. */
static gboolean can_be_folder(const char *path, GError **error)
{
  g_autofree char *at = g_strdup(path);
  while (!g_file_test(at, G_FILE_TEST_EXISTS)) {
    char *above = g_path_get_dirname(at);
    g_free(at);
    at = above;
  }
  if (!g_file_test(at, G_FILE_TEST_IS_DIR))
    return input_error(error, path, 0, "cannot be made: %s", g_strerror(ENOTDIR));
  return command_can_write_in(at, path, error);
}

/* Before anything is measured. */
static gboolean outputs_check(const struct arguments *a, const struct calibration *c, const struct base *base,
                              GError **error)
{
  g_autofree char *from = g_canonicalize_filename(base->folder, NULL);
  g_autofree char *to = a->profiles ? g_canonicalize_filename(a->profiles, NULL) : NULL;
  if (to && strcmp(from, to) == 0)
    return input_error(error, a->profiles, 0,
                       "holds the profiles that are measured; expected another folder");
  if (!output_file_check(a->out, a->force, error) || (a->profiles && !can_be_folder(a->profiles, error)))
    return FALSE;
  gboolean there = a->profiles && g_file_test(a->profiles, G_FILE_TEST_IS_DIR);
  for (guint i = 0; there && i < c->profiles->len; i++) {
    g_autofree char *path =
        profile_path(a->profiles, &g_array_index(c->profiles, struct calibrated_profile, i));
    if (!output_file_check(path, a->force, error))
      return FALSE;
  }
  return TRUE;
}

/* The hardware file comes last: where it is, all is. */
static gboolean outputs_write(const struct arguments *a, const struct calibration *c, const struct base *base,
                              GError **error)
{
  if (a->profiles && g_mkdir_with_parents(a->profiles, 0777) != 0)
    return input_error(error, a->profiles, 0, "cannot be made: %s", g_strerror(errno));
  for (guint i = 0; a->profiles && i < c->profiles->len; i++) {
    const struct calibrated_profile *p = &g_array_index(c->profiles, struct calibrated_profile, i);
    g_autofree char *from = profile_path(base->folder, p), *to = profile_path(a->profiles, p);
    g_autofree char *text = calibration_profile_text(c, p, from, error);
    if (!text || !g_file_set_contents(to, text, -1, error))
      return FALSE;
  }
  g_autofree char *text = calibration_hardware_text(c, base->path, error);
  return text && g_file_set_contents(a->out, text, -1, error);
}

/* --- the command
 * ------------------------------------------------------------------------------------------------*/

/* In their order (calibrate.h). */
static const struct part {
  const char *name;
  gboolean (*measure)(struct calibration *c, GError **error);
} parts[] = {{"control", calibrate_control},
             {"network", calibrate_network},
             {"ssd", calibrate_ssd},
             {"device", calibrate_device}};

/* All parts without --only. */
static gboolean part_chosen(const struct arguments *a, const char *name)
{
  g_auto(GStrv) only = g_strsplit(a->only ? a->only : name, ",", -1);
  return g_strv_contains((const char *const *)only, name);
}

static gboolean measure(struct calibration *c, const struct arguments *a, GError **error)
{
  signal(SIGINT, on_interrupt);
  c->progress = progress_new(0, "calibrate", a->quiet);
  gboolean good = TRUE;
  for (guint i = 0; good && i < G_N_ELEMENTS(parts); i++)
    if (part_chosen(a, parts[i].name))
      good = parts[i].measure(c, error);
  progress_free(c->progress);
  return good;
}

static void print_values(const struct calibration *c)
{
  for (int key = 0; key < CALIBRATED_KEYS; key++)
    if (c->key[key].note)
      printf("%-18s %10.4g   %s\n", calibrated_key_name((enum calibrated_key)key), c->key[key].value,
             c->key[key].note);
  printf("%s\n", c->busy);
}

static gboolean calibrate(const struct arguments *a, struct calibration *c, struct base *base, GError **error)
{
  c->device = device_by_name(a->device ? a->device : "auto", error);
  /* Not all transports can be paced. */
  const char *transport = a->transport ? a->transport : a->pace > 0 ? "tcp" : "auto";
  c->transport = c->device ? transport_by_name(transport, error) : NULL;
  if (!c->transport || !base_find(base, a, c, error) || !read_profiles(c, base, error) ||
      !outputs_check(a, c, base, error))
    return FALSE;
  c->compute_scale = base->hardware.compute_scale;
  c->pace_gbit_s = a->pace;
  c->ssd_folder = a->ssd_folder;
  c->busy = calibration_busy_text();
  if (!measure(c, a, error) || !outputs_write(a, c, base, error))
    return FALSE;
  if (!a->quiet)
    print_values(c);
  printf("hardware: %s\n", a->out);
  return TRUE;
}

/* The first that is no part; NULL: none. */
static const char *unknown_part(char **names)
{
  for (; *names; names++) {
    guint i = 0;
    while (i < G_N_ELEMENTS(parts) && strcmp(parts[i].name, *names) != 0)
      i++;
    if (i == G_N_ELEMENTS(parts))
      return *names;
  }
  return NULL;
}

static gboolean check_only(const struct arguments *a, GError **error)
{
  if (!a->only)
    return TRUE;
  g_auto(GStrv) names = g_strsplit(a->only, ",", -1);
  const char *unknown = *names ? unknown_part(names) : "";
  if (unknown)
    return input_error(error, NULL, 0, "--only: expected parts of control,network,ssd,device, found \"%s\"",
                       unknown);
  if (a->profiles && !part_chosen(a, "device"))
    return input_error(error, NULL, 0, "--profiles: --only %s measures none", a->only);
  if ((a->ssd_folder != NULL) != part_chosen(a, "ssd"))
    return input_error(error, NULL, 0,
                       a->ssd_folder ? "--ssd-folder: --only %s does not measure it"
                                     : "--only %s: expected --ssd-folder, too",
                       a->only);
  return TRUE;
}

static gboolean check_arguments(struct arguments *a, GError **error)
{
  if (!a->out)
    return input_error(error, NULL, 0, "calibrate: expected -o HARDWARE.ini; `%s calibrate --help` shows how",
                       g_get_prgname());
  if (!pace_option(a->pace_text, &a->pace, error))
    return FALSE;
  if (a->ssd_folder && !g_file_test(a->ssd_folder, G_FILE_TEST_IS_DIR))
    return input_error(error, NULL, 0, "--ssd-folder: expected a folder on an SSD, found \"%s\"",
                       a->ssd_folder);
  return check_only(a, error) && log_setup("warning", NULL, error);
}

static gboolean run_calibrate(int argc, char **argv, GError **error)
{
  struct arguments a = {NULL};
  const GOptionEntry entries[] = {{"output", 'o', 0, G_OPTION_ARG_FILENAME, &a.out, NULL, NULL},
                                  {"device", 0, 0, G_OPTION_ARG_FILENAME, &a.device, NULL, NULL},
                                  {"transport", 0, 0, G_OPTION_ARG_FILENAME, &a.transport, NULL, NULL},
                                  {"pace", 0, 0, G_OPTION_ARG_FILENAME, &a.pace_text, NULL, NULL},
                                  {"base", 0, 0, G_OPTION_ARG_FILENAME, &a.base, NULL, NULL},
                                  {"profiles", 0, 0, G_OPTION_ARG_FILENAME, &a.profiles, NULL, NULL},
                                  {"ssd-folder", 0, 0, G_OPTION_ARG_FILENAME, &a.ssd_folder, NULL, NULL},
                                  {"only", 0, 0, G_OPTION_ARG_FILENAME, &a.only, NULL, NULL},
                                  {"force", 0, 0, G_OPTION_ARG_NONE, &a.force, NULL, NULL},
                                  {"quiet", 0, 0, G_OPTION_ARG_NONE, &a.quiet, NULL, NULL},
                                  {NULL}};
  g_auto(GStrv) rest = command_options(argc, argv, entries, error);
  struct calibration c = {.profiles = g_array_new(FALSE, TRUE, sizeof(struct calibrated_profile)),
                          .interrupted = &interrupted};
  struct base base = {NULL};
  gboolean good = rest && command_arguments(argv, rest, 0, 0, "no argument", error) &&
                  check_arguments(&a, error) && calibrate(&a, &c, &base, error);
  g_free(base.path);
  g_free(base.folder);
  calibration_clear(&c);
  arguments_clear(&a);
  return good;
}

const struct command command_calibrate = {
    .name = "calibrate",
    .summary = "measure this machine: a hardware file for experiments and for the simulator",
    .run = run_calibrate,
    .help =
        "calibrate -o HARDWARE.ini [--device auto|cuda|host] [--transport auto|verbs|tcp] [--pace GBIT_S]\n"
        "           [--base HARDWARE] [--profiles FOLDER] [--ssd-folder FOLDER] [--only PART,...] [--force]\n"
        "           [--quiet]\n"
        "\n"
        "Measures, through the code that runs use and between processes as runs have them, the rates and\n"
        "overheads of a hardware file: network (over loopback, beside copies to the GPU as a load has "
        "them),\n"
        "PCIe, control messages, groups; and each profile of the GPU as it really runs. The file's comments "
        "say how, and how far values spread.\n"
        "\n"
        "  -o HARDWARE.ini    the file, whole or not at all; an existing one needs --force\n"
        "  --device D         cuda, host, or auto (default): cuda if there is one\n"
        "  --transport T      verbs, tcp; auto (default): the best there is, tcp with --pace\n"
        "  --pace GBIT_S      as runs will have it: limits each server's traffic\n"
        "  --base HARDWARE    name or path: gives the keys that are not measured, and names the profiles;\n"
        "                     default h200 for cuda, loopback for host\n"
        "  --profiles FOLDER  also writes the profiles with their measured times, for the simulator: a real "
        "run\n"
        "                     takes the original ones, to which its device adds\n"
        "  --ssd-folder F     also measures the SSD that F lies on (a file of 268 MB is written there, read "
        "around\n"
        "                     the page cache, and removed): ssd_gbyte_s, and ssd_gb from what is free\n"
        "  --only PART,...    of control, network, ssd and device; with --base an earlier file, renews a "
        "part of "
        "it\n"
        "  --force            replaces files\n"
        "  --quiet            no progress bar, no list of values\n"
        "\n"
        "Examples:\n"
        "  distmind-real calibrate -o here.ini --profiles here\n"
        "  distmind-real run experiments/real-quickstart.ini --local --set cluster.hardware=here.ini \\\n"
        "                --set cluster.memory_hardware=here.ini --out real.db\n"
        "  distmind-sim validate real.db --profiles here\n",
};
