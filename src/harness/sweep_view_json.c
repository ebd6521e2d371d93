/* The JSON object of a sweep; see sweep_view.h. */
#include "harness/json_writer.h"
#include "harness/report.h"
#include "harness/sweep_view.h"

static void write_axes(struct json_writer *json, const GPtrArray *axes)
{
  json_array_at(json, "vary");
  for (guint i = 0; i < axes->len; i++) {
    const struct axis *axis = axes->pdata[i];
    json_object_open(json);
    json_string_at(json, "key", axis->key);
    json_array_at(json, "values");
    for (char **value = axis->values; *value; value++)
      json_value(json, *value);
    json_array_close(json);
    json_object_close(json);
  }
  json_array_close(json);
}

static void write_settings(struct json_writer *json, const GPtrArray *axes, char *const *values)
{
  json_object_at(json, "settings");
  for (guint i = 0; i < axes->len; i++)
    json_value_at(json, ((const struct axis *)axes->pdata[i])->key, values[i]);
  json_object_close(json);
}

static void write_runs(struct json_writer *json, const struct sweep_view *view)
{
  json_array_at(json, "runs");
  for (guint i = 0; i < view->runs->len; i++) {
    const struct stored_run *run = view->runs->pdata[i];
    json_object_open(json);
    write_settings(json, view->axes, view->value + (gsize)i * view->axes->len);
    json_string_at(json, "system", run->system);
    json_integer_at(json, "seed", run->seed);
    report_json_figures(json, &run->figures);
    json_object_close(json);
  }
  json_array_close(json);
}

static void write_failures(struct json_writer *json, const GPtrArray *axes, const GPtrArray *failures)
{
  json_array_at(json, "failed");
  for (guint i = 0; i < failures->len; i++) {
    const struct sweep_failure *failure = failures->pdata[i];
    json_object_open(json);
    write_settings(json, axes, failure->values);
    json_string_at(json, "system", failure->system);
    json_string_at(json, "error", failure->error);
    json_object_close(json);
  }
  json_array_close(json);
}

char *sweep_view_json(const struct sweep_view *view, const GPtrArray *failures)
{
  const struct stored_run *first = view->runs->len ? view->runs->pdata[0] : NULL;
  g_autoptr(JsonWriter) json = json_writer_new();
  json_object_open(json);
  json_integer_at(json, "schema", 1);
  json_string_at(json, "experiment", first ? first->experiment : NULL);
  json_string_at(json, "backend", first ? first->backend : NULL);
  json_integer_at(json, "tasks", view->tasks);
  write_axes(json, view->axes);
  write_runs(json, view);
  if (failures)
    write_failures(json, view->axes, failures);
  json_object_close(json);
  return json_writer_text(json);
}
