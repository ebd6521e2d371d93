/* Speed of whole replays: requests a second for resident models, the same with every request stored, and
 * remote loads a second. The yardsticks are the project's goals for one core (1 M, 250 k and 20 k a second).
 */
#include <glib/gstdio.h>
#include <stdio.h>
#include <time.h>

#include "backend_sim/run.h"
#include "core/world.h"

#define ROUNDS 3

struct replay {
  const char *name, *system, *text;
  double goal;     /* a second */
  gboolean stored; /* every request goes into a database */
  gboolean loads;  /* counts loads, not requests */
};

#define RESIDENT                                                                                             \
  "[experiment]\nname = bench\nsystems = ideal;distmind\n[cluster]\nhardware = h200\ngpu_servers = 8\n"      \
  "gpus_per_server = 8\nmemory_servers = 4\nhost_cache_gb = 4\n[models]\nresnet152 = 128\n[workload]\n"      \
  "kind = poisson\nrate_rps = 4700\nzipf = 0.9\nduration_s = 200\n[pipeline]\ngrouping = "                   \
  "count:16\n[output]\n"                                                                                     \
  "usage = none\nrequests = "

static const struct replay replays[] = {
    {"resident models, ideal, requests", "ideal", RESIDENT "none\n", 1e6, FALSE, FALSE},
    {"resident models, distmind, requests", "distmind", RESIDENT "none\n", 1e6, FALSE, FALSE},
    {"resident models, distmind, requests stored", "distmind", RESIDENT "all\n", 250e3, TRUE, FALSE},
    {"remote loads, 16 groups, 4 x 16 servers, loads", "distmind",
     "[experiment]\nname = bench\nsystems = distmind\ninitial = cold\n[cluster]\nhardware = "
     "h200\ngpu_servers = 16\n"
     "gpus_per_server = 1\nmemory_servers = 4\nhost_cache_gb = 0\ngpu_models_max = 1\n[models]\nresnet152 = "
     "512\n"
     "[workload]\nkind = closed\noutstanding = 32\nselect = loop\nduration_s = 200\n[pipeline]\ngrouping = "
     "count:16\n"
     "[output]\nrequests = none\nusage = none\n",
     20e3, FALSE, TRUE},
};

static double seconds(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void check(gboolean good, GError *error)
{
  if (!good)
    g_error("bench: %s", error ? error->message : "failed");
}

/* One replay; returns what it counts a second of wall time, set-up left out. */
static double replay_once(const struct replay *r, const char *folder)
{
  static volatile sig_atomic_t never;
  GError *error = NULL;
  g_autofree char *file = g_strdup_printf("%s/bench.ini", folder);
  g_autofree char *db = g_strdup_printf("%s/bench.db", folder);
  check(g_file_set_contents(file, r->text, -1, &error), error);
  g_autoptr(Experiment) experiment = experiment_load(file, r->system, NULL, &error);
  check(experiment != NULL, error);
  uint32_t can = WORLD_SSD | WORLD_PAGEABLE | WORLD_SPACE_SHARING | WORLD_UNBOUNDED_MEMORY;
  g_autoptr(Setup) setup = setup_new(experiment, can, FALSE, &error);
  check(setup != NULL, error);
  struct run_info info = {.experiment = "bench",
                          .system = r->system,
                          .backend = "sim",
                          .text = "",
                          .overrides = "",
                          .constants = "",
                          .notices = ""};
  struct run_outputs outputs = {.quiet = TRUE, .interrupted = &never};
  double began = seconds();
  if (r->stored) {
    outputs.store = store_create(db, TRUE, &error);
    check(outputs.store != NULL, error);
    check(store_begin_run(outputs.store, &info, setup->catalog, &error), error);
  }
  struct figures figures;
  char *notices = NULL;
  check(run_system(setup, &info, &outputs, &figures, &notices, &error), error);
  if (outputs.store) {
    check(store_end_run(outputs.store, &figures, FALSE, &error), error);
    check(store_finish(outputs.store, &error), error);
  }
  double elapsed = seconds() - began;
  g_free(notices);
  g_unlink(file);
  g_unlink(db);
  return (double)(r->loads ? figures.loads_remote : figures.requests) / elapsed;
}

int main(void)
{
  g_autofree char *folder = g_dir_make_tmp("distmind-bench-XXXXXX", NULL);
  printf("%-50s %12s %12s %8s\n", "replay", "per second", "goal", "ratio");
  for (size_t i = 0; i < G_N_ELEMENTS(replays); i++) {
    double best = 0;
    for (int round = 0; round < ROUNDS; round++)
      best = MAX(best, replay_once(&replays[i], folder));
    printf("%-50s %12.0f %12.0f %8.2f\n", replays[i].name, best, replays[i].goal, best / replays[i].goal);
  }
  g_rmdir(folder);
  return 0;
}
