/* The comparison of real runs with the simulator's; see validate_report.h. */
#include "backend_sim/validate_report.h"

#include <math.h>
#include <string.h>

#include "harness/figures.h"
#include "harness/json_writer.h"
#include "harness/table.h"

/* What an error is a part of. */
enum base {
  BASE_SELF,     /* the real figure */
  BASE_REQUESTS, /* the real run's requests: a count of them, or of what they caused, which may be small */
  BASE_ONE       /* 1: the figure is a share itself */
};

struct compared {
  const char *group, *name;
  enum base base;
  double bound; /* per cent that the median error may reach; 0 = none */
};

/* In the order of figure_fields; the bounds are those that the testbed is held to. */
static const struct compared compared[] = {
    {NULL, "completed", BASE_REQUESTS, 0},   {NULL, "throughput_rps", BASE_SELF, 3},
    {"latency_ms", "mean", BASE_SELF, 0},    {"latency_ms", "p50", BASE_SELF, 5},
    {"latency_ms", "p90", BASE_SELF, 0},     {"latency_ms", "p99", BASE_SELF, 10},
    {"latency_ms", "max", BASE_SELF, 0},     {NULL, "slo_attainment", BASE_ONE, 0},
    {NULL, "gpu_utilization", BASE_ONE, 0},  {NULL, "gpu_held", BASE_ONE, 0},
    {"found", "resident", BASE_REQUESTS, 0}, {"found", "joined", BASE_REQUESTS, 0},
    {"found", "host", BASE_REQUESTS, 0},     {"found", "remote", BASE_REQUESTS, 0},
    {"loads", "host", BASE_REQUESTS, 0},     {"loads", "remote", BASE_REQUESTS, 0},
    {NULL, "net_bytes", BASE_SELF, 0},       {NULL, "pcie_bytes", BASE_SELF, 0},
    {NULL, "evictions", BASE_REQUESTS, 0},
};

/* One figure of a system: medians over its runs. */
struct row {
  const struct compared *compared;
  double real, simulated, error; /* error in per cent; NaN: the real figure is 0 and the other is not */
};

static const struct figure_field *field_of(const struct compared *c)
{
  for (const struct figure_field *field = figure_fields; field->name; field++)
    if (g_strcmp0(field->group, c->group) == 0 && g_str_equal(field->name, c->name))
      return field;
  g_assert_not_reached();
}

static double figure_value(const struct figures *figures, const struct compared *c)
{
  return figure_number(figures, field_of(c));
}

static double error_percent(const struct validation *v, const struct compared *c)
{
  double real = figure_value(&v->real, c), off = figure_value(&v->simulated, c) - real;
  double base = c->base == BASE_SELF ? real : c->base == BASE_ONE ? 1 : (double)v->real.requests;
  return off == 0 ? 0 : base > 0 ? 100 * off / base : NAN;
}

static int compare_doubles(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *values, guint count)
{
  for (guint i = 0; i < count; i++)
    if (isnan(values[i]))
      return NAN;
  qsort(values, count, sizeof *values, compare_doubles);
  return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

static struct row row_of(const GPtrArray *runs, const struct compared *c)
{
  g_autofree double *real = g_new(double, runs->len), *simulated = g_new(double, runs->len);
  g_autofree double *error = g_new(double, runs->len);
  for (guint i = 0; i < runs->len; i++) {
    const struct validation *v = runs->pdata[i];
    real[i] = figure_value(&v->real, c);
    simulated[i] = figure_value(&v->simulated, c);
    error[i] = error_percent(v, c);
  }
  return (struct row){.compared = c,
                      .real = median(real, runs->len),
                      .simulated = median(simulated, runs->len),
                      .error = median(error, runs->len)};
}

static gboolean row_within(const struct row *row)
{
  return row->compared->bound == 0 || fabs(row->error) <= row->compared->bound;
}

/* --- systems
 * --------------------------------------------------------------------------------------------------------*/

/* Arrays of validations, one a system. */
static GPtrArray *by_system(const GPtrArray *validations)
{
  GPtrArray *systems = g_ptr_array_new_with_free_func((GDestroyNotify)g_ptr_array_unref);
  for (guint i = 0; i < validations->len; i++) {
    struct validation *v = validations->pdata[i];
    GPtrArray *runs = NULL;
    for (guint s = 0; s < systems->len && !runs; s++) {
      GPtrArray *other = systems->pdata[s];
      if (g_str_equal(((const struct validation *)other->pdata[0])->system, v->system))
        runs = other;
    }
    if (!runs) {
      runs = g_ptr_array_new();
      g_ptr_array_add(systems, runs);
    }
    g_ptr_array_add(runs, v);
  }
  return systems;
}

static gboolean enough_cores(const struct validation *v)
{
  return v->cores > v->processes;
}

static struct verdict verdict_of(const GPtrArray *runs, const struct row *rows)
{
  const struct validation *first = runs->pdata[0];
  struct verdict verdict = {.system = first->system,
                            .runs = runs->len,
                            .replayed = first->replayed,
                            .judged = TRUE,
                            .cores = first->cores,
                            .processes = first->processes,
                            .within = TRUE};
  for (guint i = 0; i < runs->len; i++)
    verdict.judged &= enough_cores(runs->pdata[i]);
  for (gsize i = 0; i < G_N_ELEMENTS(compared); i++)
    verdict.within &= row_within(&rows[i]);
  return verdict;
}

static void rows_fill(const GPtrArray *runs, struct row rows[G_N_ELEMENTS(compared)])
{
  for (gsize i = 0; i < G_N_ELEMENTS(compared); i++)
    rows[i] = row_of(runs, &compared[i]);
}

/* --- for people
 * -----------------------------------------------------------------------------------------------------*/

static char *percent_text(double percent)
{
  return isnan(percent) ? g_strdup("-") : g_strdup_printf("%+.2f", percent);
}

static void add_row(struct table *table, const char *system, const struct row *row)
{
  gboolean off = !row_within(row);
  table_cell(table, g_strdup(system), FALSE);
  table_cell(table, figure_column(field_of(row->compared)), FALSE);
  table_cell(table, g_strdup_printf("%.6g", row->real), FALSE);
  table_cell(table, g_strdup_printf("%.6g", row->simulated), FALSE);
  table_cell(table, percent_text(row->error), off);
  table_cell(table, row->compared->bound > 0 ? g_strdup_printf("%g", row->compared->bound) : g_strdup(""),
             FALSE);
}

static void print_verdict(FILE *out, const struct verdict *v)
{
  fprintf(out, "%s: %s", v->system, v->runs > 1 ? "medians: " : "");
  fputs(v->within ? "within the bounds" : "outside the bounds (marked *)", out);
  if (!v->judged)
    fprintf(out, "; reported, not judged: %u cores for %u processes, %u needed", v->cores, v->processes,
            v->processes + 1);
  fputs(v->replayed
            ? "; the run's own arrivals were replayed\n"
            : "; closed loop or service times of a trace: the experiment itself was simulated, same seed\n",
        out);
}

void validate_report(FILE *out, const GPtrArray *validations, gboolean colour)
{
  g_autoptr(GPtrArray) systems = by_system(validations);
  g_autoptr(Table) table = table_new(6, 2);
  g_autofree struct verdict *verdicts = g_new0(struct verdict, systems->len);
  static const char *const titles[] = {"system", "figure", "real", "simulated", "error %", "bound %"};
  for (gsize i = 0; i < G_N_ELEMENTS(titles); i++)
    table_cell(table, g_strdup(titles[i]), FALSE);
  for (guint s = 0; s < systems->len; s++) {
    struct row rows[G_N_ELEMENTS(compared)];
    rows_fill(systems->pdata[s], rows);
    verdicts[s] = verdict_of(systems->pdata[s], rows);
    for (gsize i = 0; i < G_N_ELEMENTS(compared); i++)
      if (rows[i].real != 0 || rows[i].simulated != 0)
        add_row(table, verdicts[s].system, &rows[i]);
  }
  table_print(table, out, colour);
  fputs("\nerror: simulated less real, of the real figure; of counts, of the run's requests; of shares, in "
        "points\n",
        out);
  for (guint s = 0; s < systems->len; s++)
    print_verdict(out, &verdicts[s]);
}

/* --- for programs
 * ---------------------------------------------------------------------------------------------------*/

static void write_row(struct json_writer *json, const struct row *row)
{
  g_autofree char *name = figure_column(field_of(row->compared));
  json_object_at(json, name);
  json_real_at(json, "real", row->real);
  json_real_at(json, "simulated", row->simulated);
  json_real_at(json, "error_percent", row->error);
  if (row->compared->bound > 0)
    json_real_at(json, "bound_percent", row->compared->bound);
  json_object_close(json);
}

static void write_system(struct json_writer *json, const GPtrArray *runs)
{
  struct row rows[G_N_ELEMENTS(compared)];
  rows_fill(runs, rows);
  struct verdict v = verdict_of(runs, rows);
  json_object_open(json);
  json_string_at(json, "system", v.system);
  json_integer_at(json, "databases", v.runs);
  json_string_at(json, "load", v.replayed ? "replayed" : "simulated");
  json_integer_at(json, "cores", v.cores);
  json_integer_at(json, "processes", v.processes);
  json_string_at(json, "verdict", !v.judged ? "not judged" : v.within ? "within" : "outside");
  json_object_at(json, "figures");
  for (gsize i = 0; i < G_N_ELEMENTS(compared); i++)
    write_row(json, &rows[i]);
  json_object_close(json);
  json_object_close(json);
}

char *validate_json(const char *experiment, const GPtrArray *validations)
{
  g_autoptr(JsonWriter) json = json_writer_new();
  g_autoptr(GPtrArray) systems = by_system(validations);
  json_object_open(json);
  json_integer_at(json, "schema", 1);
  json_string_at(json, "experiment", experiment);
  json_array_at(json, "systems");
  for (guint s = 0; s < systems->len; s++)
    write_system(json, systems->pdata[s]);
  json_array_close(json);
  json_object_close(json);
  return json_writer_text(json);
}
