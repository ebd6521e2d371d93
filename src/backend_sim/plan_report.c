/* What a plan says: its table, JSON object and figure; see plan.h. */
#include "backend_sim/plan.h"

#include <math.h>

#include "harness/json_writer.h"
#include "harness/plot_plan.h"
#include "harness/setting.h"
#include "harness/shown.h"
#include "harness/sweep_view.h"
#include "harness/table.h"

static const struct plan_task *task_at(const struct plan *plan, uint64_t search, uint32_t index)
{
  return &plan->task[plan_task_of(plan, search, index)];
}

static const struct axis *axis_at(const struct plan *plan, guint axis)
{
  return plan->sweep->axes->pdata[axis];
}

static const char *other_value(const struct plan *plan, uint64_t search, guint axis)
{
  return axis_at(plan, axis)->values[axes_index(plan->sweep->axes, search / plan->sweep->system_count, axis)];
}

static guint tried(const struct plan *plan, uint64_t search)
{
  guint count = 0;
  for (uint32_t i = 0; i < plan->values; i++)
    count += task_at(plan, search, i)->asked;
  return count;
}

/* The figure was computed: the point could be set up, and ran. */
static gboolean has_value(const struct plan *plan, uint64_t search, uint32_t index)
{
  return task_at(plan, search, index)->asked &&
         plan->sweep->task[plan_task_of(plan, search, index)].state != TASK_FAILED;
}

/* The last value before the answer, or the last of all: index, or -1. */
static int64_t index_before(const struct plan *plan, uint64_t search)
{
  const struct bisection *b = &plan->result[search];
  return (b->found ? (int64_t)b->answer : (int64_t)plan->values) - 1;
}

/* "SYSTEM, KEY VALUE, …" of the keys that are not planned. Free with g_free. */
static char *search_name(const struct plan *plan, uint64_t search)
{
  GString *name = g_string_new(plan_system(plan, search));
  for (guint i = 1; i < plan->sweep->axes->len; i++)
    g_string_append_printf(name, ", %s %s", axis_title(plan->sweep->axes, i), other_value(plan, search, i));
  return g_string_free(name, FALSE);
}

/* --- the table
 * ------------------------------------------------------------------------------------------------------*/

static char *answer_text(const struct plan *plan, uint64_t search)
{
  const struct bisection *b = &plan->result[search];
  if (b->found)
    return g_strdup(plan_value(plan, b->answer));
  return g_strdup_printf("none %s to %s", plan->most ? "down" : "up", plan_value(plan, plan->values - 1));
}

static char *figure_text(const struct plan *plan, uint64_t search, int64_t index)
{
  char text[G_ASCII_DTOSTR_BUF_SIZE];
  if (index < 0 || !has_value(plan, search, (uint32_t)index))
    return g_strdup("-");
  double value = task_at(plan, search, (uint32_t)index)->value;
  return g_strdup(g_ascii_formatd(text, sizeof text, "%.6g", value));
}

/* Values past the answer that do not hold, of those tried. */
static void note_not_monotone(const struct plan *plan, uint64_t search, GString *note)
{
  const char *separator = "";
  if (plan->result[search].monotone)
    return;
  g_string_append(note, "not monotone: does not hold at ");
  for (uint32_t i = plan->result[search].answer + 1; i < plan->values; i++) {
    const struct plan_task *task = task_at(plan, search, i);
    if (!task->asked || task->verdict != VERDICT_NO)
      continue;
    g_string_append_printf(note, "%s%s", separator, plan_value(plan, i));
    separator = ", ";
  }
}

static char *note_text(const struct plan *plan, uint64_t search)
{
  GString *note = g_string_new(NULL);
  guint failed = 0;
  for (uint32_t i = 0; i < plan->values; i++)
    failed += task_at(plan, search, i)->asked && !has_value(plan, search, i);
  note_not_monotone(plan, search, note);
  if (failed)
    g_string_append_printf(note, "%s%u of the points tried could not be run", note->len ? "; " : "", failed);
  if (plan->result[search].found && plan->result[search].answer == 0)
    g_string_append_printf(note, "%sthe %s value given holds", note->len ? "; " : "",
                           plan->most ? "greatest" : "least");
  return g_string_free(note, FALSE);
}

static void table_head(const struct plan *plan, struct table *table)
{
  for (guint i = 1; i < plan->sweep->axes->len; i++)
    table_cell(table, g_strdup(axis_title(plan->sweep->axes, i)), FALSE);
  table_cell(table, g_strdup("system"), FALSE);
  table_cell(table, g_strdup(axis_title(plan->sweep->axes, 0)), FALSE);
  table_cell(table, g_strdup(plan->hold.name), FALSE);
  table_cell(table, g_strdup(plan->most ? "one above" : "one below"), FALSE);
  table_cell(table, g_strdup("tried"), FALSE);
}

/* Why points could not be run: of each system, the first of them. */
static void print_notes(const struct plan *plan, FILE *out)
{
  const char *before = "\n";
  for (uint64_t search = 0; search < plan->searches; search++) {
    g_autofree char *name = search_name(plan, search), *note = note_text(plan, search);
    if (!*note)
      continue;
    fprintf(out, "%snote (%s): %s\n", before, name, note);
    before = "";
  }
  g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
  for (uint64_t task = 0; task < plan->sweep->count; task++) {
    const char *system = sweep_task_system(plan->sweep, task);
    if (!plan->task[task].asked || !plan->task[task].infeasible || !g_hash_table_add(seen, g_strdup(system)))
      continue;
    g_autofree char *name = sweep_task_name(plan->sweep, task);
    g_autofree char *failure = g_strdup_printf("%s: %s", name, plan->sweep->task[task].error);
    g_autofree char *shown = shown_text(failure);
    fprintf(out, "note: could not be run at %s\n", shown);
  }
}

void plan_table(const struct plan *plan, FILE *out)
{
  char bound[G_ASCII_DTOSTR_BUF_SIZE];
  guint left = plan->sweep->axes->len;
  fprintf(out, "%s %s of %s to %s for which %s %s %s\n\n", plan->most ? "greatest" : "least",
          axis_at(plan, 0)->key, axis_at(plan, 0)->values[0], axis_at(plan, 0)->values[plan->values - 1],
          plan->hold.name, plan->hold.at_least ? ">=" : "<=", real_format(plan->hold.bound, bound));
  g_autoptr(Table) table = table_new(left + 4, left);
  table_head(plan, table);
  for (uint64_t search = 0; search < plan->searches; search++) {
    const struct bisection *b = &plan->result[search];
    for (guint i = 1; i < plan->sweep->axes->len; i++)
      table_cell(table, g_strdup(other_value(plan, search, i)), FALSE);
    table_cell(table, g_strdup(plan_system(plan, search)), FALSE);
    table_cell(table, answer_text(plan, search), FALSE);
    table_cell(table, figure_text(plan, search, b->found ? (int64_t)b->answer : -1), FALSE);
    table_cell(table, figure_text(plan, search, index_before(plan, search)), FALSE);
    table_cell(table, g_strdup_printf("%u", tried(plan, search)), FALSE);
  }
  table_print(table, out, FALSE);
  print_notes(plan, out);
}

/* --- the JSON object
 * ------------------------------------------------------------------------------------------------*/

static void figure_at(const struct plan *plan, struct json_writer *json, const char *key, uint64_t search,
                      int64_t index)
{
  gboolean known = index >= 0 && has_value(plan, search, (uint32_t)index);
  json_real_at(json, key, known ? task_at(plan, search, (uint32_t)index)->value : NAN);
}

static void write_tried(const struct plan *plan, struct json_writer *json, uint64_t search)
{
  json_array_at(json, "tried");
  for (uint32_t n = 0; n < plan->values; n++) {
    uint32_t index = plan->most ? plan->values - 1 - n : n;
    const struct plan_task *task = task_at(plan, search, index);
    if (!task->asked)
      continue;
    json_object_open(json);
    json_value_at(json, "value", plan_value(plan, index));
    figure_at(plan, json, "figure", search, index);
    json_boolean_at(json, "holds", task->verdict == VERDICT_YES);
    if (!has_value(plan, search, index))
      json_string_at(json, "error", plan->sweep->task[plan_task_of(plan, search, index)].error);
    json_object_close(json);
  }
  json_array_close(json);
}

static void write_answer(const struct plan *plan, struct json_writer *json, uint64_t search)
{
  const struct bisection *b = &plan->result[search];
  json_object_open(json);
  json_object_at(json, "settings");
  for (guint i = 1; i < plan->sweep->axes->len; i++)
    json_value_at(json, axis_at(plan, i)->key, other_value(plan, search, i));
  json_object_close(json);
  json_string_at(json, "system", plan_system(plan, search));
  if (b->found)
    json_value_at(json, "answer", plan_value(plan, b->answer));
  else
    json_string_at(json, "answer", NULL);
  figure_at(plan, json, "figure", search, b->found ? (int64_t)b->answer : -1);
  figure_at(plan, json, plan->most ? "above" : "below", search, index_before(plan, search));
  json_boolean_at(json, "monotone", b->monotone);
  write_tried(plan, json, search);
  json_object_close(json);
}

char *plan_json(const struct plan *plan, const char *experiment)
{
  g_autoptr(JsonWriter) json = json_writer_new();
  json_object_open(json);
  json_integer_at(json, "schema", 1);
  json_string_at(json, "experiment", experiment);
  json_string_at(json, "key", axis_at(plan, 0)->key);
  json_string_at(json, "wanted", plan->most ? "greatest" : "least");
  json_object_at(json, "hold");
  json_string_at(json, "figure", plan->hold.name);
  json_string_at(json, "relation", plan->hold.at_least ? ">=" : "<=");
  json_real_at(json, "bound", plan->hold.bound);
  json_object_close(json);
  json_array_at(json, "answers");
  for (uint64_t search = 0; search < plan->searches; search++)
    write_answer(plan, json, search);
  json_array_close(json);
  json_object_close(json);
  return json_writer_text(json);
}

/* --- the figure
 * -----------------------------------------------------------------------------------------------------*/

static gboolean is_numeric(const struct axis *axis)
{
  for (char **value = axis->values; *value; value++)
    if (!number_parse(*value, -G_MAXDOUBLE, G_MAXDOUBLE, &(double){0}, NULL))
      return FALSE;
  return TRUE;
}

static struct plan_line make_line(const struct plan *plan, uint64_t search, gboolean numeric)
{
  const struct bisection *b = &plan->result[search];
  struct plan_line line = {.system = plan_system(plan, search), .answer = -1};
  struct plan_point *point = g_new0(struct plan_point, plan->values);
  g_autofree char *name = search_name(plan, search);
  for (uint32_t n = 0; n < plan->values; n++) {
    uint32_t index = plan->most ? plan->values - 1 - n : n; /* in order of the key either way */
    if (!has_value(plan, search, index))
      continue;
    double x = n;
    if (numeric)
      number_parse(plan_value(plan, index), -G_MAXDOUBLE, G_MAXDOUBLE, &x, NULL);
    if (b->found && b->answer == index)
      line.answer = (gint)line.points;
    point[line.points++] = (struct plan_point){x, task_at(plan, search, index)->value};
  }
  g_autofree char *answer = answer_text(plan, search);
  line.title = g_strdup_printf("%s: %s", name, answer);
  line.point = point;
  return line;
}

gboolean plan_plot(const struct plan *plan, const char *experiment, gboolean estimated, const char *path,
                   GError **error)
{
  const struct axis *axis = axis_at(plan, 0);
  gboolean numeric = is_numeric(axis);
  struct plan_line *lines = g_new0(struct plan_line, plan->searches);
  for (uint64_t search = 0; search < plan->searches; search++)
    lines[search] = make_line(plan, search, numeric);
  struct plan_figure figure = {.title = experiment,
                               .x_label = axis->key,
                               .y_label = plan->hold.name,
                               .bound = plan->hold.bound,
                               .line = lines,
                               .lines = (guint)plan->searches,
                               .values = numeric ? NULL : axis->values,
                               .estimated = estimated};
  gboolean drawn = plot_plan(&figure, path, error);
  for (uint64_t search = 0; search < plan->searches; search++) {
    g_free((char *)lines[search].title);
    g_free((struct plan_point *)lines[search].point);
  }
  g_free(lines);
  return drawn;
}
