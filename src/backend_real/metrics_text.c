/* The text of metrics; see metrics_text.h. */
#include "backend_real/metrics_text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "backend_real/control.h"
#include "harness/command.h"
#include "harness/json_writer.h"

void metric_family(GString *text, const char *name, enum metric_type type, const char *help)
{
  static const char *const types[] = {
      [METRIC_COUNTER] = "counter", [METRIC_GAUGE] = "gauge", [METRIC_HISTOGRAM] = "histogram"};
  g_string_append_printf(text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, types[type]);
}

static void append_escaped(GString *text, const char *value)
{
  for (; *value; value++)
    if (*value == '\n')
      g_string_append(text, "\\n");
    else if (*value == '\\' || *value == '"')
      g_string_append_printf(text, "\\%c", *value);
    else
      g_string_append_c(text, *value);
}

static void append_value(GString *text, double value)
{
  char buffer[G_ASCII_DTOSTR_BUF_SIZE];
  if (isnan(value))
    g_string_append(text, " NaN\n");
  else if (isinf(value))
    g_string_append(text, value > 0 ? " +Inf\n" : " -Inf\n");
  else
    g_string_append_printf(text, " %s\n", real_format(value, buffer));
}

void metric_sample(GString *text, const char *name, double value, ...)
{
  va_list arguments;
  const char *label;
  gboolean any = FALSE;
  g_string_append(text, name);
  va_start(arguments, value);
  while ((label = va_arg(arguments, const char *)) != NULL) {
    g_string_append_printf(text, "%c%s=\"", any ? ',' : '{', label);
    append_escaped(text, va_arg(arguments, const char *));
    g_string_append_c(text, '"');
    any = TRUE;
  }
  va_end(arguments);
  if (any)
    g_string_append_c(text, '}');
  append_value(text, value);
}

void metric_single(GString *text, const char *name, enum metric_type type, const char *help, double value)
{
  metric_family(text, name, type, help);
  metric_sample(text, name, value, NULL);
}

void metric_histogram(GString *text, const char *name, const char *help, const double *bound_s,
                      uint32_t bounds, const uint64_t *count, double sum_s)
{
  g_autofree char *bucket = g_strconcat(name, "_bucket", NULL), *sum = g_strconcat(name, "_sum", NULL);
  g_autofree char *total = g_strconcat(name, "_count", NULL);
  char buffer[G_ASCII_DTOSTR_BUF_SIZE];
  uint64_t below = 0;
  metric_family(text, name, METRIC_HISTOGRAM, help);
  for (uint32_t i = 0; i <= bounds; i++) {
    below += count[i];
    metric_sample(text, bucket, (double)below, "le", i < bounds ? real_format(bound_s[i], buffer) : "+Inf",
                  NULL);
  }
  metric_sample(text, sum, sum_s, NULL);
  metric_sample(text, total, (double)below, NULL);
}

/* --- of every process
 * ----------------------------------------------------------------------------------------------------------*/

static double resident_bytes(void)
{
  g_autofree char *line = NULL;
  unsigned long pages, resident = 0;
  if (!g_file_get_contents("/proc/self/statm", &line, NULL, NULL) ||
      sscanf(line, "%lu %lu", &pages, &resident) != 2)
    return NAN;
  return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

static double cpu_seconds(void)
{
  struct timespec t;
  return clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) == 0 ? (double)t.tv_sec + (double)t.tv_nsec / 1e9 : NAN;
}

void metrics_process(GString *text, actor_id self, uint32_t run)
{
  char index[16];
  g_snprintf(index, sizeof index, "%u", ACTOR_INDEX(self));
  metric_family(text, "distmind_build_info", METRIC_GAUGE,
                "The process's role, place and version; always 1.");
  metric_sample(text, "distmind_build_info", 1, "role", peer_name(self), "index", index, "version",
                program_version(), NULL);
  metric_single(text, "distmind_run", METRIC_GAUGE, "Number of the run that is on, 0 if none is.", run);
  metric_single(text, "process_cpu_seconds_total", METRIC_COUNTER, "CPU time of all threads.", cpu_seconds());
  metric_single(text, "process_resident_memory_bytes", METRIC_GAUGE, "Resident memory.", resident_bytes());
}
