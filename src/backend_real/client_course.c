/* The course of a run: what is due when, and when it is over. */
#include "backend_real/client_internal.h"

#include "backend_real/log.h"
#include "core/error.h"

#define END_NS (10 * NS_PER_S) /* for the controller to sum up */

gboolean run_is_over(const struct client *c)
{
  const struct client_run *run = c->run;
  return workload_error(run->workload) ||
         (run->told_end && workload_finished(run->workload) && run->jobs_left == 0 &&
          run->jobs_seen >= workload_jobs(run->workload));
}

static void run_end(struct client *c)
{
  struct client_run *run = c->run;
  g_message("run %u: the load ends, after %" G_GUINT64_FORMAT " requests", run->number,
            workload_ended(run->workload));
  run->state = STATE_ENDING;
  run->deadline = loop_now(c->loop) + END_NS;
  client_frame(c, FRAME_END, run_numbers_pack(run->number, 0));
}

/* The end of the window was not known beforehand: the last arrival. */
static void learn_end(struct client *c)
{
  struct client_run *run = c->run;
  if (run->end != TIME_NEVER || workload_span_ns(run->workload) < 0)
    return;
  run->end = MAX(run->warmup, workload_span_ns(run->workload));
  metrics_end(run->metrics, run->end);
}

void run_on(struct client *c)
{
  struct client_run *run = c->run;
  int64_t now = run_now(c);
  learn_end(c);
  if (!run->asked_warmup && now >= run->warmup) {
    run->asked_warmup = TRUE;
    run_meter_ask(c, METER_WARMUP);
  }
  if (!run->asked_end && now >= run->end) {
    run->asked_end = TRUE;
    run_meter_ask(c, METER_END);
  }
  while (run->next_event < run->experiment->events && run->experiment->event[run->next_event].at_ns <= now)
    run_event(c, &run->experiment->event[run->next_event++]);
  if (now >= run->next_sample) {
    run_meter_ask(c, METER_SAMPLE);
    run->next_sample = now + MAX(run->sample, now / USAGE_POINTS);
  }
  progress_update(run->progress, now, workload_ended(run->workload));
  if (run_is_over(c)) {
    run->whole = TRUE;
    run_end(c);
  }
}

/* When something is due next, at most a tick from now. */
static int64_t next_look(const struct client *c)
{
  const struct client_run *run = c->run;
  int64_t now = loop_now(c->loop), at = now + TICK_NS;
  if (run->state != STATE_ON)
    return at;
  if (!run->asked_warmup)
    at = MIN(at, run->start + run->warmup);
  if (!run->asked_end && run->end != TIME_NEVER)
    at = MIN(at, run->start + run->end);
  at = MIN(at, run->start + run->next_sample);
  return MAX(at, now);
}

void run_look(void *context, uint64_t tag)
{
  struct client *c = context;
  struct client_run *run = c->run;
  (void)tag;
  if (*run->outputs->interrupted && run->state == STATE_ON)
    run_end(c);
  else if (*run->outputs->interrupted && run->state == STATE_BEGINNING)
    run_fail(c, g_error_new(DM_ERROR, DM_ERROR_INTERRUPTED, "interrupted before the run began"));
  else if (run->state == STATE_ON)
    run_on(c);
  else if (run->state == STATE_ENDING && loop_now(c->loop) >= run->deadline)
    run_fail(c, g_error_new(DM_ERROR, DM_ERROR_FAILED, "the controller did not end the run"));
  if (run->state != STATE_OVER)
    loop_timer(c->loop, next_look(c), run_look, c, 0);
}

void run_start(struct client *c, struct run_ready *ready)
{
  struct client_run *run = c->run;
  struct message_limits limits;
  const struct config *config = &run->setup->config;
  run->number = ready->run;
  run->ready = g_steal_pointer(&ready->text);
  message_limits_init(&limits, catalog_models(config->catalog), SERVER_GPUS_MAX, config->memory_servers);
  link_set_limits(c->link, run->number, &limits);
  run->start = loop_now(c->loop);
  run->state = STATE_ON;
  c->began = TRUE;
  if (run->recorder)
    recorder_begin(run->recorder, run->setup, run->number, ACTOR(ACTOR_CLIENT, 0));
  log_run(run->number);
  g_message("run %u: the load of system %s begins", run->number, run->experiment->system);
  run->ear_ops->start(run->ear);
  run_on(c);
}
