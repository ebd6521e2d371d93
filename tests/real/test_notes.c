/* The notes under a real run's table that say why requests failed: as many as the table counts, with the
 * reason. */
#include "cluster.h"
#include "outcome_check.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>

#define RUN "run experiment.ini --local --device host --quiet --out x.db"

/* Requests that the run's table counts as failed; its notices name as many, with this reason and no other. */
static gint64 expect_reason(ClusterLab *lab, const char *reason)
{
  g_autofree char *sql = g_strdup_printf("SELECT count(*) FROM run WHERE '\n' || notices || '\n' LIKE "
                                         "'%%\nfailed requests: ' || failed || ' %s\n%%'",
                                         reason);
  gint64 failed = outcome_ask(lab, "x.db", "SELECT failed FROM run");
  cr_assert_gt(failed, 0, "%s: none failed", reason);
  cr_assert_eq(outcome_ask(lab, "x.db", sql), 1, "not so: %d %s", (int)failed, reason);
  return failed;
}

static void expect_shown(struct process *run, const char *text)
{
  g_autofree char *shown = process_words(run);
  cr_assert(strstr(shown, text), "no \"%s\" in: %s", text, shown);
}

/* Those of the warm-up are in no figure, and not in the note either. */
Test(notes, say_how_many_requests_were_lost_with_servers)
{
  g_autoptr(ClusterLab) lab = lab_new();
  lab_experiment(lab, "experiment.warmup_s=0.7;events.a=at 0.2 fail memory_server 0;"
                      "events.b=at 0.2 fail memory_server 1");
  struct process *run = lab_start(lab, RUN);
  cr_assert(process_await(run, 60) && run->status == 0, "the run does not end well");
  gint64 failed = expect_reason(lab, "lost with servers that they needed");
  cr_assert_gt(outcome_ask(lab, "x.db", "SELECT count(*) FROM request WHERE outcome = 'lost'"), failed);
  g_autofree char *note =
      g_strdup_printf("note: failed requests: %d lost with servers that they needed", (int)failed);
  expect_shown(run, note);
}

/* No inference is as short as the deadline. */
Test(notes, say_how_many_requests_missed_the_deadline)
{
  g_autoptr(ClusterLab) lab = lab_new();
  lab_experiment(lab, "workload.timeout_s=0.0005;workload.duration_s=0.3");
  struct process *run = lab_start(lab, RUN);
  cr_assert(process_await(run, 60) && run->status == 0, "the run does not end well");
  expect_reason(lab, "not done within the deadline (workload.timeout_s)");
  expect_shown(run, " not done within the deadline (workload.timeout_s)");
}

/* Four are always under way. */
Test(notes, say_how_many_requests_ctrl_c_cut_short)
{
  g_autoptr(ClusterLab) lab = lab_new();
  lab_experiment(lab, "workload.kind=closed;workload.outstanding=4;workload.duration_s=60");
  struct process *run = lab_start(lab, RUN " --log info");
  cr_assert(process_says(run, "run 1: begun", 1, 60), "the run does not begin");
  g_usleep(300000); /* the moment is the test's own choice */
  kill(run->pid, SIGINT);
  cr_assert(process_await(run, 20) && run->status == 130, "the run does not end");
  expect_reason(lab, "not done when the run was interrupted");
}

Test(notes, say_nothing_where_nothing_failed)
{
  g_autoptr(ClusterLab) lab = lab_new();
  lab_experiment(lab, "workload.duration_s=0.3");
  struct process *run = lab_start(lab, RUN);
  cr_assert(process_await(run, 60) && run->status == 0, "the run does not end well");
  g_autofree char *shown = process_words(run);
  cr_assert_eq(outcome_ask(lab, "x.db", "SELECT failed FROM run"), 0);
  cr_assert(strstr(shown, "note: ") && !strstr(shown, "failed requests") && !strstr(shown, "images: "), "%s",
            shown);
}
