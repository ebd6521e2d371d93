/* Native trace reader against its yardstick, getline over the same file in the same run: rows a second of
 * opening (which reads the file once for its order) and of streaming. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <glib/gstdio.h>

#include "harness/generator.h"

#define ROUNDS 3

static double seconds_now(void)
{
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static uint64_t write_trace(const char *path)
{
  static const char spec[] = "[trace]\nkind = poisson\nduration_s = 1000\nrate_rps = 2000\n"
                             "[models]\nresnet152 = 128\n[popularity]\nzipf = 0.9\n";
  struct generator *generator = generator_new(generator_spec_parse("bench", spec, sizeof spec - 1, NULL));
  struct trace_columns columns = generator_columns(generator);
  struct trace_writer *writer = trace_writer_new(path, TRUE, &columns, NULL);
  struct trace_row row;
  uint64_t rows = 0;
  g_assert(writer);
  for (; generator_next(generator, &row); rows++)
    trace_writer_add(writer, &row);
  g_assert(trace_writer_finish(writer, NULL));
  generator_free(generator);
  return rows;
}

static double time_getline(const char *path)
{
  double start = seconds_now();
  char *line = NULL;
  size_t capacity = 0;
  FILE *file = fopen(path, "re");
  g_assert(file);
  while (getline(&line, &capacity, file) > 0)
    continue;
  fclose(file);
  free(line);
  return seconds_now() - start;
}

static void time_reader(const char *path, uint64_t rows, double *open_s, double *stream_s)
{
  double start = seconds_now();
  struct trace_reader *reader = trace_open(path, NULL, NULL);
  struct trace_row row;
  uint64_t met = 0;
  g_assert(reader);
  *open_s = seconds_now() - start;
  start = seconds_now();
  while (trace_next(reader, &row, NULL) > 0)
    met++;
  *stream_s = seconds_now() - start;
  g_assert(met == rows);
  trace_close(reader);
}

int main(void)
{
  g_autofree char *folder = g_dir_make_tmp("distmind-bench-XXXXXX", NULL);
  g_assert(folder);
  g_autofree char *path = g_build_filename(folder, "trace.csv", NULL);
  uint64_t rows = write_trace(path);
  double lines_s = G_MAXDOUBLE, open_s = G_MAXDOUBLE, stream_s = G_MAXDOUBLE;
  for (int round = 0; round < ROUNDS; round++) {
    double open_round_s, stream_round_s;
    time_reader(path, rows, &open_round_s, &stream_round_s);
    lines_s = MIN(lines_s, time_getline(path));
    open_s = MIN(open_s, open_round_s);
    stream_s = MIN(stream_s, stream_round_s);
  }
  double million = (double)rows / 1e6;
  printf("native trace, million rows a second (best of %d): open %.2f, stream %.2f; yardstick getline alone "
         "%.2f\n",
         ROUNDS, million / open_s, million / stream_s, million / lines_s);
  g_unlink(path);
  g_rmdir(folder);
  return 0;
}
