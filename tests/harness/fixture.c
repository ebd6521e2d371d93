/* Made-up results for tests; see fixture.h. */
#include "fixture.h"
#include "core/grouping.h"
#include <criterion/criterion.h>
#include <glib/gstdio.h>
#include <stdlib.h>

static const char *const systems[FIXTURE_SYSTEMS] = {"ideal", "distmind", "mps"};

struct catalog *fixture_catalog(void)
{
  struct catalog *catalog = catalog_new(1);
  static const char *const names[] = {"resnet152", "bert"};
  static const uint32_t variants[] = {4, 2};
  for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
    struct profile *profile = profile_new(names[i], 2);
    profile->layer_bytes[0] = profile->layer_bytes[1] = 1000000 * (i + 1);
    profile_sum(profile);
    catalog_add(catalog, profile, variants[i]);
  }
  return catalog;
}

struct figures fixture_figures(unsigned system)
{
  double slower = 1 + system;
  return (struct figures){
      .requests = FIXTURE_REQUESTS,
      .completed = FIXTURE_REQUESTS - 10,
      .rejected = 7,
      .failed = 3,
      .duration_s = 10.125,
      .window_s = 10,
      .throughput_rps = 99 / slower,
      .latency_ms = {12.5 * slower, 10.1 * slower, 20 * slower, 25 * slower, 40 * slower, 60 * slower,
                     0.1 + 80 * slower},
      .slo_attainment = 0.99 / slower,
      .gpu_utilization = 0.75,
      .gpu_inference = 0.5,
      .gpu_training = 0.25,
      .gpu_held = 0.875,
      .found = {500, 90, 100, 0, 300, 0},
      .loads_host = 100,
      .loads_remote = 280 + system,
      .net_bytes = 123456789012,
      .pcie_bytes = 223456789012,
      .evictions = 370,
      .host_memory_bytes = 4096000000,
      .memory_pool_bytes = 64000000000,
      .training_steps = 42,
      .training_jobs = 2,
      .events = 1234567 + system,
      .wall_s = 1.5,
  };
}

struct run_info fixture_info(unsigned system)
{
  static const char *const constants[] = {"", "control_us=50", "mps_process_start_s=1.27, mps_speedup=1;1;1"};
  static const char *const notices[] = {"resnet152 uses an estimated profile",
                                        "resnet152 uses an estimated profile",
                                        "resnet152 uses an estimated profile\n3 rows skipped: no time"};
  return (struct run_info){
      .experiment = "shifting_demand",
      .system = systems[system],
      .backend = "sim",
      .text = "[experiment]\nname = shifting_demand\n",
      .overrides = "output.decisions=all\ncluster.gpu_servers=2\nworkload.zipf=0.9\ncluster.host_cache_gb=4",
      .seed = UINT64_MAX - system,
      .constants = constants[system],
      .notices = notices[system],
      .warmup_ns = 0};
}

void fixture_runs(struct report_run runs[FIXTURE_SYSTEMS])
{
  for (unsigned i = 0; i < FIXTURE_SYSTEMS; i++)
    runs[i] = (struct report_run){.info = fixture_info(i), .figures = fixture_figures(i)};
}

char *fixture_folder(void)
{
  g_autoptr(GError) error = NULL;
  char *folder = g_dir_make_tmp("distmind-XXXXXX", &error);
  cr_assert_not_null(folder, "%s", error ? error->message : "");
  return folder;
}

void fixture_remove(char *folder)
{
  GDir *dir = g_dir_open(folder, 0, NULL);
  for (const char *name; dir && (name = g_dir_read_name(dir));) {
    g_autofree char *path = g_build_filename(folder, name, NULL);
    g_unlink(path);
  }
  if (dir)
    g_dir_close(dir);
  g_rmdir(folder);
  g_free(folder);
}

struct request_row fixture_request(unsigned system, uint64_t id)
{
  int64_t arrival_ns = (int64_t)id * 10 * NS_PER_MS, spread_ns = (int64_t)(id * 7919 % 1000) * NS_PER_MS / 50;
  struct request_row row = {
      .id = id,
      .model = (uint32_t)(id % 6),
      .gpu = (uint32_t)(id % 2),
      .arrival_ns = arrival_ns,
      .dispatch_ns = arrival_ns + NS_PER_MS / 10,
      .start_ns = arrival_ns + 2 * NS_PER_MS,
      .end_ns = arrival_ns + (12 + 5 * system) * NS_PER_MS + spread_ns * (system + 1),
      .outcome = OUTCOME_COMPLETED,
      .found = id % 2 ? FOUND_REMOTE : FOUND_RESIDENT,
      .slo_met = id % 10 != 0,
  };
  if (id % 100 == 2) {
    row.outcome = OUTCOME_REJECTED;
    row.gpu = NO_INDEX;
    row.dispatch_ns = row.start_ns = -1;
    row.slo_met = FALSE;
  }
  if (id == FIXTURE_LOADER || id == FIXTURE_JOINER) {
    row.model = 3;
    row.gpu = 1;
    row.start_ns = row.arrival_ns + 8 * NS_PER_MS;
    row.end_ns = row.arrival_ns + (id == FIXTURE_LOADER ? 60 : 55) * NS_PER_MS;
    row.found = id == FIXTURE_LOADER ? FOUND_REMOTE : FOUND_JOINED;
  }
  if (id == FIXTURE_SHARER) {
    row.model = 3;
    row.gpu = 0;
  }
  if (id == FIXTURE_LOADER - 1) /* on GPU 1 until after the loader was sent there */
    row.end_ns = (int64_t)FIXTURE_LOADER * 10 * NS_PER_MS + 5 * NS_PER_MS;
  return row;
}

static void store_loader(struct store *store)
{
  const int64_t t = (int64_t)FIXTURE_LOADER * 10 * NS_PER_MS, ms = NS_PER_MS;
  struct record record = {.request = FIXTURE_LOADER, .model = 3, .server = 0, .gpu = 1, .group = NO_INDEX};
  record.source = NO_INDEX;
  record.kind = RECORD_DISPATCH;
  record.reason = REASON_REMOTE;
  record.time_ns = t + ms / 10;
  record.a = 58 * ms;
  record.b = 8 * ms;
  record.c = 41 * ms;
  record.d = TIME_NEVER;
  store_decision(store, &record);
  struct record evict = record;
  evict.kind = RECORD_EVICT;
  evict.reason = REASON_SPACE;
  evict.time_ns = t + ms / 5;
  evict.model = 5;
  evict.a = 437937152;
  evict.b = 1500 * ms;
  evict.c = 17;
  store_decision(store, &evict);
  record.kind = RECORD_LOAD;
  record.reason = REASON_MISS;
  record.source = SOURCE_REMOTE;
  record.time_ns = t + ms / 5;
  record.a = 241378168;
  record.b = 16;
  record.c = record.d = 0;
  store_decision(store, &record);
  record.reason = REASON_NONE;
  for (uint32_t group = 0; group < 16; group++) {
    static const enum record_kind kinds[] = {RECORD_GROUP_NET, RECORD_GROUP_PCIE, RECORD_GROUP_COMPUTE};
    for (unsigned stage = 0; stage < 3; stage++) {
      record.kind = kinds[stage];
      record.group = group;
      record.b = t + ms + (group + stage) * 2 * ms;
      record.time_ns = record.b + 2 * ms;
      record.a = stage < 2 ? 15086136 : 0;
      store_decision(store, &record);
    }
  }
  record.kind = RECORD_LOADED;
  record.time_ns = t + 42 * ms;
  record.group = NO_INDEX;
  record.a = 241378168;
  record.b = 41 * ms;
  store_decision(store, &record);
}

static void store_joiner(struct store *store)
{
  const int64_t t = (int64_t)FIXTURE_JOINER * 10 * NS_PER_MS;
  struct record record = {.time_ns = t + NS_PER_MS / 10,
                          .kind = RECORD_DISPATCH,
                          .reason = REASON_JOIN,
                          .request = FIXTURE_JOINER,
                          .model = 3,
                          .server = 0,
                          .gpu = 1,
                          .group = NO_INDEX,
                          .source = NO_INDEX,
                          .a = 50 * NS_PER_MS,
                          .d = 70 * NS_PER_MS};
  store_decision(store, &record);
  record.kind = RECORD_GROUP_COMPUTE;
  record.reason = REASON_NONE;
  record.b = t + 45 * NS_PER_MS;
  record.time_ns = t + 54 * NS_PER_MS;
  store_decision(store, &record);
  /* Training knows no request. */
  store_decision(store, &(struct record){.time_ns = t,
                                         .kind = RECORD_PREEMPT,
                                         .reason = REASON_INFERENCE,
                                         .request = UINT64_MAX,
                                         .model = NO_INDEX,
                                         .server = 0,
                                         .gpu = 0,
                                         .group = NO_INDEX,
                                         .source = NO_INDEX});
}

/* Sent to GPU 0 of the same server while the last groups for the loader still came: 503 arrives 30 ms after
 * 500. */
static void store_sharer(struct store *store)
{
  const int64_t t = (int64_t)FIXTURE_SHARER * 10 * NS_PER_MS;
  struct record record = {.time_ns = t + NS_PER_MS / 10,
                          .kind = RECORD_DISPATCH,
                          .reason = REASON_REMOTE,
                          .request = FIXTURE_SHARER,
                          .model = 3,
                          .server = 0,
                          .gpu = 0,
                          .group = NO_INDEX,
                          .source = SOURCE_REMOTE};
  store_decision(store, &record);
  record.kind = RECORD_LOAD;
  record.reason = REASON_MISS;
  store_decision(store, &record);
  record.kind = RECORD_GROUP_PCIE;
  record.reason = REASON_NONE;
  record.group = 15;
  record.a = 15086136;
  record.b = t + 4 * NS_PER_MS;
  record.time_ns = t + 5 * NS_PER_MS;
  store_decision(store, &record);
}

static void store_rows_of(struct store *store, unsigned system, struct fixture_options options)
{
  for (uint64_t id = 0; id < FIXTURE_REQUESTS && !options.no_requests; id++) {
    struct request_row row = fixture_request(system, id);
    if (options.sample == 0 || id % options.sample == 0)
      store_request(store, &row);
  }
  for (unsigned i = 1; i <= 100 && !options.no_usage; i++)
    store_usage(store, &(struct usage_row){.time_ns = i * NS_PER_S / 10,
                                           .gpus_inference = 1 + 0.5 * (i % 10) / (1 + system),
                                           .gpus_training = system == 1 ? 0.25 : 0,
                                           .gpus_held = 2,
                                           .net_bytes_s = 1e9,
                                           .pcie_bytes_s = 2e9,
                                           .queue = i % 7 * (system + 1),
                                           .training_steps = 1,
                                           .completed = 10 + i % 5});
  if (system == 1 && !options.no_decisions) {
    store_loader(store);
    store_joiner(store);
    store_sharer(store);
  }
}

char *fixture_database(const char *folder, struct fixture_options options)
{
  g_autoptr(GError) error = NULL;
  char *path = g_build_filename(folder, "run.db", NULL);
  struct store *store = store_create(path, FALSE, &error);
  cr_assert_not_null(store, "%s", error ? error->message : "");
  struct catalog *catalog = fixture_catalog();
  for (unsigned i = 0; i < FIXTURE_SYSTEMS; i++) {
    struct run_info info = fixture_info(i);
    struct figures figures = fixture_figures(i);
    cr_assert(store_begin_run(store, &info, catalog, &error), "%s", error ? error->message : "");
    store_rows_of(store, i, options);
    cr_assert(store_end_run(store, &figures, FALSE, &error), "%s", error ? error->message : "");
  }
  cr_assert(store_finish(store, &error), "%s", error ? error->message : "");
  catalog_free(catalog);
  return path;
}

char *fixture_printed(void (*print)(FILE *out, void *data), void *data)
{
  char *text = NULL;
  size_t length = 0;
  FILE *out = open_memstream(&text, &length);
  print(out, data);
  fclose(out);
  char *copy = g_strdup(text);
  free(text);
  return copy;
}

char *fixture_read(const char *path)
{
  g_autoptr(GError) error = NULL;
  char *text = NULL;
  cr_assert(g_file_get_contents(path, &text, NULL, &error), "%s", error ? error->message : "");
  return text;
}
