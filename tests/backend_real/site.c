/* A site to be calibrated; see site.h. */
#include "site.h"

#include <criterion/criterion.h>
#include <string.h>

#include "../harness/temporary.h"

static const char profile_text[] =
    "# model: tiny\n# batch: 2\n# warm_latency_ms: 1\n# note: stays\n# swap_extra_ms: 3\n"
    "layer,kind,param_bytes,compute_us\n"
    "a,conv,262144,300\nb,conv,0,100\nc,conv,524288,400\nd,fc,1048576,200\n";

static const char hardware_text[] =
    "[hardware]\ngpu = tiny_gpu   # a comment\ngpu_memory_gb = 1\nhost_memory_gb = 2\n"
    "gpus_per_server = 1\nnic_gbit_s = 7\ncontrol_us = 3\n";

static const char experiment_text[] =
    "[experiment]\nname = tiny\nsystems = distmind;pipeswitch\n[cluster]\nhardware = hardware/base.ini\n"
    "memory_hardware = hardware/base.ini\ngpu_servers = 1\nmemory_servers = 1\ngpu_model_gb = 0.004\n"
    "host_cache_gb = 0.006\nheartbeat_ms = 500\n[models]\ntiny = 8\n[workload]\nkind = poisson\nrate_rps = "
    "60\n"
    "duration_s = 1\n";

void site_write(const char *folder, const char *name, const char *text)
{
  g_autofree char *path = g_build_filename(folder, name, NULL), *parent = g_path_get_dirname(path);
  cr_assert_eq(g_mkdir_with_parents(parent, 0700), 0);
  cr_assert(g_file_set_contents(path, text, -1, NULL));
}

void site_free(Site *site)
{
  tree_remove(site);
  g_free(site);
}

Site *site_new(void)
{
  char *folder = g_dir_make_tmp("distmind-calibrate-XXXXXX", NULL);
  cr_assert_not_null(folder);
  site_write(folder, "profiles/tiny_gpu/tiny.csv", profile_text);
  site_write(folder, "hardware/base.ini", hardware_text);
  site_write(folder, "tiny.ini", experiment_text);
  return folder;
}

Spawned *site_run(const Site *site, const char *program, const char *words)
{
  g_auto(GStrv) parts = g_strsplit(words, "@", -1);
  g_autofree char *line = g_strjoinv(site, parts);
  return spawn(program, line);
}

void site_run_good(const Site *site, const char *program, const char *words)
{
  g_autoptr(Spawned) spawned = site_run(site, program, words);
  cr_assert_eq(spawned->status, 0, "%s %s: %s", program, words, spawned->err);
}

void site_refused(const Site *site, const char *program, const char *words, const char *says)
{
  g_autoptr(Spawned) spawned = site_run(site, program, words);
  expect_refusal(spawned, says);
}

double number_after(const char *text, const char *key)
{
  const char *at = strstr(text, key);
  cr_assert_not_null(at, "%s is not in: %s", key, text);
  return g_ascii_strtod(at + strlen(key), NULL);
}
