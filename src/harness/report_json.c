/* The JSON object of --json; see report.h and the design's section 6. */
#include "harness/figures.h"
#include "harness/json_writer.h"
#include "harness/report.h"

void report_json_figures(struct json_writer *json, const struct figures *figures)
{
  const char *group = NULL;
  for (const struct figure_field *field = figure_fields; field->name; field++) {
    if (g_strcmp0(group, field->group) != 0) {
      if (group)
        json_object_close(json);
      group = field->group;
      if (group)
        json_object_at(json, group);
    }
    json_key(json, field->name);
    if (field->integer)
      json_integer(json, figure_integer(figures, field));
    else
      json_real(json, figure_real(figures, field));
  }
}

char *report_json(const struct report_run *runs, size_t count)
{
  g_autoptr(JsonWriter) json = json_writer_new();
  json_object_open(json);
  json_integer_at(json, "schema", 1);
  json_string_at(json, "experiment", count ? runs[0].info.experiment : NULL);
  json_string_at(json, "backend", count ? runs[0].info.backend : NULL);
  json_integer_at(json, "seed", count ? runs[0].info.seed : 0);
  json_array_at(json, "runs");
  for (size_t i = 0; i < count; i++) {
    json_object_open(json);
    json_string_at(json, "system", runs[i].info.system);
    report_json_figures(json, &runs[i].figures);
    json_object_close(json);
  }
  json_array_close(json);
  json_object_close(json);
  return json_writer_text(json); /* yajl ends an indented document with a newline */
}
