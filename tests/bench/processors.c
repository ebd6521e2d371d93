/* Processors of this machine; see processors.h. */
#include "processors.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

int processor(int n)
{
  static cpu_set_t may; /* as it was before anybody was pinned */
  if (CPU_COUNT(&may) == 0 && sched_getaffinity(0, sizeof may, &may) != 0)
    return -1;
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
    if (CPU_ISSET(cpu, &may) && n-- == 0)
      return cpu;
  return -1;
}

double processor_busy_seconds(int n)
{
  g_autofree char *text = NULL, *name = g_strdup_printf("cpu%d ", processor(n));
  if (!g_file_get_contents("/proc/stat", &text, NULL, NULL))
    return 0;
  const char *line = strstr(text, name);
  /* user, nice, system, idle, waiting, interrupts (two kinds), taken away; in ticks */
  unsigned long long t[8] = {0};
  if (line)
    sscanf(line + strlen(name), "%llu %llu %llu %llu %llu %llu %llu %llu", &t[0], &t[1], &t[2], &t[3], &t[4],
           &t[5], &t[6], &t[7]);
  return (double)(t[0] + t[1] + t[2] + t[7]) / (double)sysconf(_SC_CLK_TCK);
}

gboolean processor_take(int n)
{
  cpu_set_t one;
  CPU_ZERO(&one);
  if (processor(n) < 0)
    return FALSE;
  CPU_SET(processor(n), &one);
  return sched_setaffinity(0, sizeof one, &one) == 0;
}

double processor_seconds(pid_t process)
{
  clockid_t clock;
  struct timespec t;
  if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &t) != 0)
    return 0;
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
