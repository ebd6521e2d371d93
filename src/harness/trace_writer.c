/* Writing the native CSV; see trace_writer.h. */
#include "harness/trace_writer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "harness/output_file.h"

struct trace_writer {
  char *path, *partial;
  FILE *file;
  struct trace_columns columns;
};

static void write_header(const struct trace_writer *writer)
{
  const struct trace_columns *columns = &writer->columns;
  fprintf(writer->file, "arrival_s%s%s%s%s%s\n", columns->model ? ",model" : "",
          columns->input_tokens ? ",input_tokens" : "", columns->output_tokens ? ",output_tokens" : "",
          columns->service ? ",service_s" : "", columns->job ? ",num_gpu,duration_s" : "");
}

struct trace_writer *trace_writer_new(const char *path, gboolean force, const struct trace_columns *columns,
                                      GError **error)
{
  if (!output_file_check(path, force, error))
    return NULL;
  g_autofree char *partial = g_strconcat(path, ".partial", NULL);
  FILE *file = fopen(partial, "we");
  if (!file) {
    input_error(error, partial, 0, "cannot write: %s", g_strerror(errno));
    return NULL;
  }
  struct trace_writer *writer = g_new0(struct trace_writer, 1);
  writer->path = g_strdup(path);
  writer->partial = g_steal_pointer(&partial);
  writer->file = file;
  writer->columns = *columns;
  write_header(writer);
  return writer;
}

/* Nanoseconds as seconds, exactly, without zeros at the end. */
static void write_seconds(FILE *file, int64_t ns)
{
  char fraction[10];
  int64_t rest = ns % NS_PER_S;
  fprintf(file, "%lld", ns / NS_PER_S);
  if (rest == 0)
    return;
  g_snprintf(fraction, sizeof fraction, "%09d", (int)rest);
  int length = 9;
  while (fraction[length - 1] == '0')
    length--;
  fprintf(file, ".%.*s", length, fraction);
}

static void write_text(FILE *file, const char *text)
{
  if (!strpbrk(text, ",\"\r\n")) {
    fputs(text, file);
    return;
  }
  putc('"', file);
  for (; *text; text++) {
    if (*text == '"')
      putc('"', file);
    putc(*text, file);
  }
  putc('"', file);
}

static void write_optional(FILE *file, gboolean column, int64_t value)
{
  if (!column)
    return;
  putc(',', file);
  if (value >= 0)
    fprintf(file, "%" G_GINT64_FORMAT, value);
}

void trace_writer_add(struct trace_writer *writer, const struct trace_row *row)
{
  const struct trace_columns *columns = &writer->columns;
  FILE *file = writer->file;
  write_seconds(file, row->arrival_ns);
  if (columns->model) {
    putc(',', file);
    write_text(file, row->model ? row->model : "");
  }
  write_optional(file, columns->input_tokens, row->input_tokens);
  write_optional(file, columns->output_tokens, row->output_tokens);
  if (columns->service) {
    putc(',', file);
    if (row->service_ns >= 0)
      write_seconds(file, row->service_ns);
  }
  if (columns->job) {
    char gpus[G_ASCII_DTOSTR_BUF_SIZE];
    fprintf(file, ",%s,", g_ascii_formatd(gpus, sizeof gpus, "%.10g", row->gpus));
    write_seconds(file, row->duration_ns);
  }
  putc('\n', file);
}

static void writer_free(struct trace_writer *writer)
{
  g_free(writer->path);
  g_free(writer->partial);
  g_free(writer);
}

gboolean trace_writer_finish(struct trace_writer *writer, GError **error)
{
  gboolean failed = ferror(writer->file) != 0;
  failed |= fclose(writer->file) != 0;
  if (failed || rename(writer->partial, writer->path) != 0) {
    g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "%s: cannot write: %s", writer->path, g_strerror(errno));
    unlink(writer->partial);
    failed = TRUE;
  }
  writer_free(writer);
  return !failed;
}

void trace_writer_abandon(struct trace_writer *writer)
{
  if (!writer)
    return;
  fclose(writer->file);
  unlink(writer->partial);
  writer_free(writer);
}
