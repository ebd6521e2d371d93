/* Which layout a trace file has: its header line or first bytes decide. */
#include "harness/trace_format.h"

#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "harness/input_file.h"

#define PROBE_BYTES 65536u

const struct trace_format *const trace_registry[] = {
    &trace_native,
    &trace_azure_llm,
    &trace_azure_functions_2021,
    &trace_azure_functions_2019,
    &trace_burstgpt,
    &trace_qwen_bailian, /* before mooncake, whose keys it has too */
    &trace_mooncake,
    &trace_elasticflow,
    &trace_openb_pods,
    &trace_openb_nodes,
    &trace_muri,
    &trace_philly,
    &trace_helios,
    &trace_pai_2020,
    &trace_any_csv,
    NULL,
};

char *found_text(const char *text)
{
  g_autofree char *shortened = g_strndup(text, 40);
  g_autofree char *escaped = g_strescape(shortened, NULL);
  return g_strdup_printf("'%s%s'", escaped, strlen(text) > 40 ? "..." : "");
}

static char *read_probe(const char *path, GError **error)
{
  int fd = input_file_open(path, error);
  if (fd < 0)
    return NULL;
  char *text = g_malloc0(PROBE_BYTES + 1);
  gssize length = input_file_read(fd, path, text, PROBE_BYTES, error);
  close(fd);
  if (length > 0)
    return text;
  if (length == 0)
    input_error(error, path, 0, "expected a trace, found an empty file");
  g_free(text);
  return NULL;
}

/* Fields of the first line, good enough to recognise a header: no quoted commas. */
static char **header_fields(const char *text)
{
  g_autofree char *line = g_strndup(text, strcspn(text, "\r\n"));
  char **fields = g_strsplit(line, ",", -1);
  for (char **field = fields; *field; field++) {
    size_t length = strlen(g_strstrip(*field));
    if (length >= 2 && (*field)[0] == '"' && (*field)[length - 1] == '"') {
      memmove(*field, *field + 1, length - 2);
      (*field)[length - 2] = 0;
    }
  }
  return fields;
}

static const struct trace_format *by_name(const char *path, const char *name, GError **error)
{
  for (unsigned i = 0; trace_registry[i]; i++)
    if (strcmp(trace_registry[i]->name, name) == 0)
      return trace_registry[i];
  g_autofree char *names = g_strjoinv(", ", (char **)trace_formats());
  input_error(error, path, 0, "expected a trace format of %s, found '%s'", names, name);
  return NULL;
}

static const struct trace_format *by_content(const char *path, const char *text, GError **error)
{
  struct trace_probe probe = {.path = path, .text = text};
  g_auto(GStrv) columns = *text != '{' && *text != '[' ? header_fields(text) : NULL;
  probe.columns = columns;
  for (unsigned i = 0; trace_registry[i]; i++)
    if (trace_registry[i]->detect && trace_registry[i]->detect(trace_registry[i], &probe))
      return trace_registry[i];
  g_autofree char *line = g_strndup(text, strcspn(text, "\r\n"));
  g_autofree char *found = found_text(line);
  input_error(
      error, path, 1,
      "expected a known trace layout (name it by --format, or the columns by --time-column), found %s",
      found);
  return NULL;
}

const struct trace_format *trace_detect(const char *path, const struct trace_options *options, GError **error)
{
  const char *name = options ? options->format : NULL;
  g_autofree char *probe = read_probe(path, error);
  if (!probe)
    return NULL;
  if (name && strcmp(name, "auto") != 0)
    return by_name(path, name, error);
  if (options && options->time_column)
    return &trace_any_csv;
  const char *text = probe + byte_order_mark(probe, strlen(probe));
  return by_content(path, text + strspn(text, " \t\r\n"), error);
}
