/* The JSON object of a sweep; see sweep_view.h. */
#include "harness/json_writer.h"
#include "harness/report.h"
#include "harness/sweep_view.h"

static void write_axes(struct json_writer *json, const GPtrArray *axes)
{
  json_key(json, "vary");
  json_array_open(json);
  for (guint i = 0; i < axes->len; i++) {
    const struct axis *axis = axes->pdata[i];
    json_object_open(json);
    json_key(json, "key");
    json_string(json, axis->key);
    json_key(json, "values");
    json_array_open(json);
    for (char **value = axis->values; *value; value++)
      json_value(json, *value);
    json_array_close(json);
    json_object_close(json);
  }
  json_array_close(json);
}

static void write_settings(struct json_writer *json, const GPtrArray *axes, char *const *values)
{
  json_key(json, "settings");
  json_object_open(json);
  for (guint i = 0; i < axes->len; i++) {
    json_key(json, ((const struct axis *)axes->pdata[i])->key);
    json_value(json, values[i]);
  }
  json_object_close(json);
}

static void write_runs(struct json_writer *json, const struct sweep_view *view)
{
  json_key(json, "runs");
  json_array_open(json);
  for (guint i = 0; i < view->runs->len; i++) {
    const struct stored_run *run = view->runs->pdata[i];
    json_object_open(json);
    write_settings(json, view->axes, view->value + (gsize)i * view->axes->len);
    json_key(json, "system");
    json_string(json, run->system);
    json_key(json, "seed");
    json_integer(json, run->seed);
    report_json_figures(json, &run->figures);
    json_object_close(json);
  }
  json_array_close(json);
}

static void write_failures(struct json_writer *json, const GPtrArray *axes, const GPtrArray *failures)
{
  json_key(json, "failed");
  json_array_open(json);
  for (guint i = 0; i < failures->len; i++) {
    const struct sweep_failure *failure = failures->pdata[i];
    json_object_open(json);
    write_settings(json, axes, failure->values);
    json_key(json, "system");
    json_string(json, failure->system);
    json_key(json, "error");
    json_string(json, failure->error);
    json_object_close(json);
  }
  json_array_close(json);
}

char *sweep_view_json(const struct sweep_view *view, const GPtrArray *failures)
{
  const struct stored_run *first = view->runs->len ? view->runs->pdata[0] : NULL;
  g_autoptr(JsonWriter) json = json_writer_new();
  json_object_open(json);
  json_key(json, "schema");
  json_integer(json, 1);
  json_key(json, "experiment");
  json_string(json, first ? first->experiment : NULL);
  json_key(json, "backend");
  json_string(json, first ? first->backend : NULL);
  json_key(json, "tasks");
  json_integer(json, view->tasks);
  write_axes(json, view->axes);
  write_runs(json, view);
  if (failures)
    write_failures(json, view->axes, failures);
  json_object_close(json);
  return json_writer_text(json);
}
