/* Fuzz input of the trace readers: written to a file, opened as one format, read twice (trace_rewind) and
 * compared.
 *
 * A byte 0x1e ends the trace; what follows goes to a second file beside it (durations of
 * azure-functions-2019, the header of pai-2020). The files live in a folder under $TMPDIR that goes with the
 * input, since the driver ends its child by a signal. */
#ifndef TRACE_INPUT_H
#define TRACE_INPUT_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <glib.h>
#include <glib/gstdio.h>

#include "harness/trace.h"

#define SECOND_FILE_MARK 0x1e
#define ROWS_MAX         2000u

static char *fuzz_folder;

static void remove_folder(void)
{
  static const char *const names[] = {"invocations.csv", "durations.csv", "table.csv", "table.header"};
  for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
    g_autofree char *path = g_build_filename(fuzz_folder, names[i], NULL);
    g_unlink(path);
  }
  g_rmdir(fuzz_folder);
  g_free(fuzz_folder);
  fuzz_folder = NULL;
}

static char *fuzz_file(const char *name, const uint8_t *data, size_t size)
{
  if (!fuzz_folder) {
    fuzz_folder = g_dir_make_tmp("distmind-fuzz-XXXXXX", NULL);
    g_assert(fuzz_folder);
  }
  char *path = g_build_filename(fuzz_folder, name, NULL);
  FILE *file = fopen(path, "wbe");
  g_assert(file);
  size_t written = fwrite(data, 1, size, file);
  int closed = fclose(file);
  g_assert(written == size && closed == 0);
  return path;
}

/* Sum of the rows up to the end, an error or ROWS_MAX; checks what trace.h promises of each. */
static uint64_t read_rows(struct trace_reader *reader)
{
  struct trace_row row;
  int64_t last = 0;
  uint64_t sum = 0;
  for (unsigned i = 0; i < ROWS_MAX; i++) {
    g_autoptr(GError) error = NULL;
    int got = trace_next(reader, &row, &error);
    g_assert((got < 0) == (error != NULL));
    if (got <= 0)
      return sum * 31 + (uint64_t)(got + 2);
    g_assert(row.arrival_ns >= last && row.input_tokens >= -1 && row.output_tokens >= -1 &&
             row.service_ns >= -1);
    g_assert(row.gpus >= -1 && row.gpus <= 1e9 && row.duration_ns >= -1);
    last = row.arrival_ns;
    sum = sum * 31 + (uint64_t)row.arrival_ns + (row.model ? g_str_hash(row.model) : 0) +
          (uint64_t)row.service_ns;
  }
  return sum;
}

static void fuzz_trace_files(const struct trace_options *options, const char *name, const char *second_name,
                             const uint8_t *data, size_t size)
{
  const uint8_t *mark = second_name && size ? memchr(data, SECOND_FILE_MARK, size) : NULL;
  size_t first_size = mark ? (size_t)(mark - data) : size;
  g_autoptr(GError) error = NULL;
  g_autofree char *path = fuzz_file(name, data, first_size);
  if (second_name)
    g_free(fuzz_file(second_name, mark ? mark + 1 : data, mark ? size - first_size - 1 : 0));
  struct trace_reader *reader = trace_open(path, options, &error);
  g_assert((reader == NULL) == (error != NULL));
  if (!reader)
    return;
  uint64_t sum = read_rows(reader);
  g_autoptr(GPtrArray) notices = trace_notices(reader);
  g_assert(notices);
  if (trace_rewind(reader, &error))
    g_assert(read_rows(reader) == sum);
  trace_close(reader);
}

static int fuzz_trace(const struct trace_options *options, const char *name, const char *second_name,
                      const uint8_t *data, size_t size)
{
  fuzz_trace_files(options, name, second_name, data, size);
  remove_folder();
  return 0;
}

/* The whole of a target for one format. */
#define FUZZ_TRACE_FORMAT(format_name)                                                                       \
  int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);                                              \
  int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)                                               \
  {                                                                                                          \
    static const struct trace_options options = {.format = format_name, .seed = 1};                          \
    return fuzz_trace(&options, "table.csv", NULL, data, size);                                              \
  }

#endif
