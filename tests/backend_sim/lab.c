/* Whole runs for tests; see lab.h. */
#include "lab.h"

#include <criterion/criterion.h>
#include <glib/gstdio.h>
#include <sqlite3.h>
#include <string.h>

#include "backend_sim/run.h"
#include "backend_sim/sim.h"
#include "harness/report.h"

static const char hardware_text[] = "[hardware]\n"
                                    "gpu = lab\n"
                                    "gpu_memory_gb = 16\n"
                                    "host_memory_gb = 256\n"
                                    "nic_gbit_s = 80\n"
                                    "memory_nic_gbit_s = 80\n"
                                    "pcie_gbyte_s = 12\n"
                                    "ssd_gb = 1000\n"
                                    "ssd_gbyte_s = 3\n"
                                    "mps_process_gb = 0.1\n"
                                    "mps_process_start_s = 0.05\n";

static const char experiment_text[] = "[experiment]\n"
                                      "name = lab\n"
                                      "seed = 1\n"
                                      "[cluster]\n"
                                      "hardware = hw.ini\n"
                                      "memory_servers = 2\n"
                                      "[models]\n"
                                      "profile_dir = .\n"
                                      "[workload]\n"
                                      "kind = poisson\n"
                                      "rate_rps = 10\n"
                                      "duration_s = 10\n";

static char *profile_text(int layers, int64_t warm_ns)
{
  GString *text = g_string_new("# model: lab\n");
  g_string_append_printf(
      text, "# warm_latency_ms: %" G_GINT64_FORMAT "\n# tensors: %d\nlayer,kind,param_bytes,compute_us\n",
      warm_ns / 1000000, 2 * layers);
  for (int i = 0; i < layers; i++)
    g_string_append_printf(text, "l%d,Linear,10000000,%" G_GINT64_FORMAT "\n", i, warm_ns / 1000 / layers);
  return g_string_free(text, FALSE);
}

void lab_write(const struct lab *lab, const char *name, const char *text)
{
  g_autofree char *path = g_build_filename(lab->folder, name, NULL);
  cr_assert(g_file_set_contents(path, text, -1, NULL), "%s cannot be written", path);
}

struct lab *lab_new(void)
{
  struct lab *lab = g_new0(struct lab, 1);
  g_autofree char *a = profile_text(8, LAB_A_NS), *b = profile_text(4, LAB_B_NS);
  lab->folder = g_dir_make_tmp("lab-XXXXXX", NULL);
  cr_assert_not_null(lab->folder);
  lab_write(lab, "hw.ini", hardware_text);
  lab_write(lab, "x.ini", experiment_text);
  lab_write(lab, "a.csv", a);
  lab_write(lab, "b.csv", b);
  return lab;
}

void lab_free(struct lab *lab)
{
  g_autoptr(GDir) dir = g_dir_open(lab->folder, 0, NULL);
  const char *name;
  while (dir && (name = g_dir_read_name(dir))) {
    g_autofree char *path = g_build_filename(lab->folder, name, NULL);
    g_unlink(path);
  }
  g_rmdir(lab->folder);
  g_free(lab->folder);
  g_free(lab);
}

static void read_rows(struct lab_result *result, const char *path)
{
  sqlite3 *db = NULL;
  sqlite3_stmt *row = NULL;
  result->rows = g_array_new(FALSE, TRUE, sizeof(struct request_row));
  result->queues = g_array_new(FALSE, TRUE, sizeof(struct usage_row));
  cr_assert_eq(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
  const char *requests =
      "SELECT r.id, d.model, r.gpu, r.arrival_ns, r.dispatch_ns, r.start_ns, r.end_ns, d.outcome, d.found "
      "FROM request r JOIN request_data d ON d.key = r.key ORDER BY r.id";
  cr_assert_eq(sqlite3_prepare_v2(db, requests, -1, &row, NULL), SQLITE_OK, "%s", sqlite3_errmsg(db));
  while (sqlite3_step(row) == SQLITE_ROW) {
    struct request_row r = {.id = (uint64_t)sqlite3_column_int64(row, 0),
                            .model = (uint32_t)sqlite3_column_int64(row, 1),
                            .gpu = (uint32_t)sqlite3_column_int64(row, 2),
                            .arrival_ns = sqlite3_column_int64(row, 3),
                            .dispatch_ns = sqlite3_column_int64(row, 4),
                            .start_ns = sqlite3_column_int64(row, 5),
                            .end_ns = sqlite3_column_int64(row, 6),
                            .outcome = (enum outcome)sqlite3_column_int(row, 7),
                            .found = (enum found)sqlite3_column_int(row, 8)};
    g_array_append_val(result->rows, r);
  }
  sqlite3_finalize(row);
  cr_assert_eq(sqlite3_prepare_v2(db, "SELECT time_ns, queue FROM usage ORDER BY time_ns", -1, &row, NULL),
               SQLITE_OK);
  while (sqlite3_step(row) == SQLITE_ROW) {
    struct usage_row u = {.time_ns = sqlite3_column_int64(row, 0),
                          .queue = (uint64_t)sqlite3_column_int64(row, 1)};
    g_array_append_val(result->queues, u);
  }
  sqlite3_finalize(row);
  sqlite3_close(db);
}

static char *json_of(const struct report_run *run)
{
  g_autofree char *json = report_json(run, 1);
  g_autoptr(GRegex) wall = g_regex_new("\"wall_s\": *[-+.eE0-9]+", 0, 0, NULL);
  char *same = g_regex_replace_literal(wall, json, -1, 0, "\"wall_s\":", 0, NULL);
  cr_assert_str_neq(same, json, "no wall_s in: %s", json);
  return same;
}

static struct setup *set_up(const struct lab *lab, const char *system, GPtrArray *sets,
                            struct experiment **experiment, GError **error)
{
  g_autofree char *path = g_build_filename(lab->folder, "x.ini", NULL);
  gboolean fails = FALSE;
  *experiment = experiment_load(path, system, (char **)sets->pdata, error);
  for (uint32_t i = 0; *experiment && i < (*experiment)->events; i++)
    fails |= (*experiment)->event[i].kind == EVENT_FAIL;
  return *experiment ? setup_new(*experiment, SIM_CAPABILITIES, fails, error) : NULL;
}

static GPtrArray *sets_of(const char *system, va_list list)
{
  GPtrArray *sets = g_ptr_array_new_with_free_func(g_free);
  const char *set;
  g_ptr_array_add(sets, g_strdup_printf("experiment.systems=%s", system));
  while ((set = va_arg(list, const char *)))
    g_ptr_array_add(sets, g_strdup(set));
  g_ptr_array_add(sets, NULL);
  return sets;
}

static void run_stored(struct lab *lab, const struct setup *setup, struct report_run *run,
                       struct lab_result *result)
{
  static volatile sig_atomic_t interrupted;
  g_autoptr(GError) error = NULL;
  g_autofree char *path = g_build_filename(lab->folder, "x.db", NULL);
  struct run_outputs outputs = {
      .quiet = TRUE, .interrupted = &interrupted, .clock_offset_ns = lab->clock_offset_ns};
  if (lab->rows) {
    outputs.store = store_create(path, TRUE, &error);
    cr_assert(outputs.store && store_begin_run(outputs.store, &run->info, setup->catalog, &error), "%s",
              error ? error->message : "");
  }
  cr_assert(run_system(setup, &run->info, &outputs, &run->figures, &result->notices, &error), "%s",
            error ? error->message : "");
  if (lab->rows) {
    cr_assert(store_end_run(outputs.store, &run->figures, FALSE, &error) &&
                  store_finish(outputs.store, &error),
              "%s", error ? error->message : "");
    read_rows(result, path);
  }
}

struct lab_result *lab_run(struct lab *lab, const char *system, ...)
{
  va_list list;
  va_start(list, system);
  g_autoptr(GPtrArray) sets = sets_of(system, list);
  va_end(list);
  return lab_run_sets(lab, system, sets);
}

struct lab_result *lab_run_sets(struct lab *lab, const char *system, GPtrArray *sets)
{
  struct experiment *experiment = NULL;
  g_autoptr(GError) error = NULL;
  struct setup *setup = set_up(lab, system, sets, &experiment, &error);
  cr_assert_not_null(setup, "%s: %s", system, error ? error->message : "");
  struct lab_result *result = g_new0(struct lab_result, 1);
  struct report_run run = {.info = {.experiment = "lab",
                                    .system = system,
                                    .backend = "sim",
                                    .text = "",
                                    .overrides = "",
                                    .seed = experiment->seed,
                                    .constants = "",
                                    .notices = ""}};
  run_stored(lab, setup, &run, result);
  result->figures = run.figures;
  result->json = json_of(&run);
  setup_free(setup);
  experiment_free(experiment);
  return result;
}

char *lab_refusal(struct lab *lab, const char *system, ...)
{
  va_list list;
  struct experiment *experiment = NULL;
  g_autoptr(GError) error = NULL;
  va_start(list, system);
  g_autoptr(GPtrArray) sets = sets_of(system, list);
  va_end(list);
  cr_assert_null(set_up(lab, system, sets, &experiment, &error), "%s is not refused", system);
  experiment_free(experiment);
  return g_strdup(error->message);
}

void lab_result_free(struct lab_result *result)
{
  if (result->rows)
    g_array_unref(result->rows);
  if (result->queues)
    g_array_unref(result->queues);
  g_free(result->json);
  g_free(result->notices);
  g_free(result);
}

void lab_check_conserved(const struct lab_result *result, const char *what)
{
  const struct figures *f = &result->figures;
  uint64_t found = 0;
  for (int i = 0; i < FOUND_COUNT; i++)
    found += f->found[i];
  cr_expect_gt(f->requests, 0, "%s: no request", what);
  cr_expect_eq(f->requests, f->completed + f->rejected + f->failed, "%s: %s", what, result->json);
  cr_expect_eq(found, f->completed, "%s: %s", what, result->json);
  for (guint i = 0; result->rows && i < result->rows->len; i++) {
    const struct request_row *row = &g_array_index(result->rows, struct request_row, i);
    cr_assert_eq(row->id, i, "%s: request %u is missing", what, i);
    cr_assert_leq(row->arrival_ns, row->end_ns, "%s: request %u", what, i);
  }
}

void lab_check_parts(const struct lab_result *result, const char *what)
{
  const struct figures *f = &result->figures;
  cr_expect(f->gpu_held <= 1.0001 && f->gpu_utilization <= 1.0001, "%s: held %g, utilization %g", what,
            f->gpu_held, f->gpu_utilization);
}
