/* Memory that may not be locked, and so not registered: the run is refused in one clear line. */
#include "rxe_lab.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#ifndef CAP_IPC_LOCK
#define CAP_IPC_LOCK 14 /* linux/capability.h */
#endif

/* Of this process and those that it starts. Without the capability the limit holds for root too. */
static void limit_locked_memory(rlim_t bytes)
{
  struct rlimit limit = {bytes, bytes};
  cr_assert_eq(prctl(PR_CAPBSET_DROP, CAP_IPC_LOCK, 0, 0, 0), 0, "cannot drop CAP_IPC_LOCK");
  cr_assert_eq(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
}

static guint error_lines(const char *log)
{
  g_auto(GStrv) lines = g_strsplit(log, "\n", -1);
  guint count = 0;
  for (char **line = lines; *line; line++)
    count += strstr(*line, "distmind-real: ") == *line;
  return count;
}

Test(verbs_limits, memory_that_may_not_be_locked)
{
  g_autoptr(ClusterLab) lab = lab_new();
  lab_experiment(lab, "");
  limit_locked_memory(64 * 1024);
  struct process *client = rxe_run(lab, "experiment.ini", "verbs", "limit.db", "");
  g_autofree char *log = process_log(client);
  outcome_failed(client, "ulimit -l", "locked memory");
  cr_assert_eq(error_lines(log), 1, "expected one line of error: %s", log);
}
