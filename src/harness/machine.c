/* The machine that this process runs on; see machine.h. */
#include "harness/machine.h"

#include <glib.h>
#include <stdio.h>
#include <stdlib.h>

/* "QUOTA PERIOD" in microseconds, or "max PERIOD". */
static double quota_of(const char *path)
{
  g_autofree char *text = NULL;
  unsigned long long quota, period;
  if (!g_file_get_contents(path, &text, NULL, NULL) || sscanf(text, "%llu %llu", &quota, &period) != 2 ||
      period == 0)
    return 0;
  return (double)quota / (double)period;
}

uint32_t machine_cores(void)
{
  uint32_t cores = MAX(1, g_get_num_processors());
  double quota = quota_of("/sys/fs/cgroup/cpu.max");
  return quota >= 1 && quota < cores ? (uint32_t)quota : quota > 0 && quota < 1 ? 1 : cores;
}
