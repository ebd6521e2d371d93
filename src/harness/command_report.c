/* `report`: the comparison table of a stored run, its JSON, or its decisions counted by reason. */
#include "core/error.h"
#include "harness/command.h"
#include "harness/report.h"
#include "harness/store_schema.h"
#include "harness/sweep_view.h"
#include "harness/table.h"
#include <unistd.h>

/* Stored runs as the report takes them; what a run lacks becomes a notice. Texts are owned by runs and
 * notices. */
static struct report_run *report_runs(const GPtrArray *runs, GPtrArray *notices)
{
  struct report_run *report = g_new0(struct report_run, runs->len);
  for (guint i = 0; i < runs->len; i++) {
    const struct stored_run *run = runs->pdata[i];
    const char *incomplete = !run->finished
                                 ? "the run was killed: no figures were stored; its rows can be queried"
                             : run->interrupted ? "the run was interrupted: the figures cover what was done"
                                                : NULL;
    char *lines = incomplete ? g_strconcat(run->notices, *run->notices ? "\n" : "", incomplete, NULL)
                             : g_strdup(run->notices);
    g_ptr_array_add(notices, lines);
    report[i] = (struct report_run){
        .info = {.experiment = run->experiment,
                 .system = run->system,
                 .backend = run->backend,
                 .text = run->text,
                 .overrides = run->overrides,
                 .seed = run->seed,
                 .constants = run->constants,
                 .notices = lines,
                 .warmup_ns = run->warmup_ns},
        .figures = run->figures,
    };
  }
  return report;
}

static gboolean print_sweep(struct store_reader *reader, gboolean json, GError **error)
{
  g_autoptr(SweepView) view = sweep_view_read(reader, error);
  if (!view)
    return FALSE;
  g_autofree char *text = json ? sweep_view_json(view, NULL) : NULL;
  if (json)
    fputs(text, stdout);
  else
    sweep_view_table(view, stdout);
  return TRUE;
}

static gboolean print_report(struct store_reader *reader, gboolean json, GError **error)
{
  g_autoptr(GArray) facts = store_facts(reader, error);
  if (!facts || facts->len > 0)
    return facts && print_sweep(reader, json, error);
  g_autoptr(GPtrArray) runs = store_runs(reader, error);
  if (!runs)
    return FALSE;
  if (runs->len == 0)
    return input_error(error, store_path(reader), 0, "holds no run");
  g_autoptr(GPtrArray) notices = g_ptr_array_new_with_free_func(g_free);
  g_autofree struct report_run *report = report_runs(runs, notices);
  if (json) {
    g_autofree char *text = report_json(report, runs->len);
    fputs(text, stdout);
  } else {
    report_table(stdout, report, runs->len, isatty(STDOUT_FILENO));
  }
  return TRUE;
}

/* Fills a table with the rows of a statement, all columns as text. Rows, or -1 + error. */
static int fill_table(struct store_reader *reader, sqlite3_stmt *statement, struct table *table,
                      GError **error)
{
  int rows = 0, row;
  while ((row = store_step(reader, statement, error)) == 1) {
    for (int column = 0; column < sqlite3_column_count(statement); column++) {
      const char *text = (const char *)sqlite3_column_text(statement, column);
      table_cell(table, g_utf8_make_valid(text ? text : "", -1), FALSE);
    }
    rows++;
  }
  return row < 0 ? -1 : rows;
}

static gboolean print_decisions(struct store_reader *reader, GError **error)
{
  g_autoptr(sqlite3_stmt) statement = store_prepare(
      reader,
      "SELECT system, kind, reason, count(*) FROM decision WHERE kind NOT IN ('net', 'pcie', 'compute') "
      "GROUP BY run, kind, reason ORDER BY run, kind, count(*) DESC, reason",
      error);
  if (!statement)
    return FALSE;
  g_autoptr(Table) table = table_new(4, 3);
  static const char *const titles[] = {"system", "decision", "reason", "count"};
  for (size_t i = 0; i < G_N_ELEMENTS(titles); i++)
    table_cell(table, g_strdup(titles[i]), FALSE);
  int rows = fill_table(reader, statement, table, error);
  if (rows < 0)
    return FALSE;
  if (rows == 0)
    return input_error(error, store_path(reader), 0,
                       "holds no decisions: run again with --set output.decisions=all");
  table_print(table, stdout, FALSE);
  return TRUE;
}

static gboolean run_report(int argc, char **argv, GError **error)
{
  gboolean json = FALSE, decisions = FALSE;
  const GOptionEntry entries[] = {{"json", 0, 0, G_OPTION_ARG_NONE, &json, NULL, NULL},
                                  {"decisions", 0, 0, G_OPTION_ARG_NONE, &decisions, NULL, NULL},
                                  {NULL}};
  g_auto(GStrv) arguments = command_options(argc, argv, entries, error);
  if (!arguments || !command_arguments(argv, arguments, 1, 1, "one FILE.db", error))
    return FALSE;
  if (json && decisions)
    return input_error(error, NULL, 0, "report: --json and --decisions exclude each other");
  g_autoptr(StoreReader) reader = store_open(arguments[0], error);
  if (!reader)
    return FALSE;
  return decisions ? print_decisions(reader, error) : print_report(reader, json, error);
}

const struct command command_report = {
    .name = "report",
    .summary = "the comparison table of a stored run",
    .run = run_report,
    .help =
        "report FILE.db [--json | --decisions]\n\n"
        "Prints the comparison of the systems in a result database that `run --out FILE.db` wrote: one row "
        "a\n"
        "system, the best of each column marked, then the constants of the baselines, and notes. Of a "
        "database\n"
        "that `sweep` or `plan` wrote: one row a point and system.\n\n"
        "  --json       one JSON object with every figure, the same that `run --json` prints\n"
        "  --decisions  how often each decision was taken for which reason (needs output.decisions = all)\n\n"
        "examples:\n"
        "  distmind-sim report first.db\n"
        "  distmind-sim report first.db --json | jq '.runs[] | {system, p99: .latency_ms.p99}'\n"
        "  sqlite3 first.db \"SELECT system, avg(latency_ms) FROM request GROUP BY system\"\n\n"
        "results/README.md describes the tables.\n",
};
