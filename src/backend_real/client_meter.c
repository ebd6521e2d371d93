/* What a run has used, asked of the controller at the warm-up's end, at the window's end and in between; and
 * the records that come unasked. */
#include "backend_real/client_internal.h"

#include <string.h>
#include "core/error.h"

/* One question at a time: the controller sums up the answers to one. */
static void ask_next(struct client *c)
{
  struct client_run *run = c->run;
  if (run->asking || run->wanted == 0)
    return;
  uint32_t purpose = (uint32_t)__builtin_ctz(run->wanted);
  uint32_t number = run->asked_at->len << 2 | purpose;
  int64_t now = run_now(c);
  run->wanted &= ~(1U << purpose);
  run->asking = TRUE;
  g_array_append_val(run->asked_at, now);
  client_frame(c, FRAME_METER, run_numbers_pack(run->number, number));
}

void run_meter_ask(struct client *c, enum meter_purpose purpose)
{
  c->run->wanted |= 1U << purpose;
  ask_next(c);
}

static void take_sample(struct client *c, int64_t time)
{
  struct client_run *run = c->run;
  double span = (double)(time - run->sampled_at);
  uint64_t completed, rejected, failed;
  struct usage_row row;
  if (span <= 0 || !run->outputs->store || !run->experiment->usage)
    return;
  metrics_counts(run->metrics, &completed, &rejected, &failed);
  usage_interval(&run->at_sample, &run->now, time, span, &row);
  row.completed = completed - run->completed;
  row.rejected = rejected - run->rejected;
  row.failed = failed - run->failed;
  store_usage(run->outputs->store, &row);
  run->at_sample = run->now;
  run->sampled_at = time;
  run->completed = completed;
  run->rejected = rejected;
  run->failed = failed;
}

void run_meter_came(struct client *c, const struct run_meter *meter, gboolean last)
{
  struct client_run *run = c->run;
  uint32_t index = meter->number >> 2;
  enum meter_purpose purpose = (enum meter_purpose)(meter->number & 3);
  run->now = meter->usage;
  run->now.events = run->asked_at->len;
  run->jobs_left = meter->jobs_left;
  run->jobs_seen = meter->jobs_seen;
  if (*meter->failure)
    run_fail(c, g_error_new(DM_ERROR, DM_ERROR_FAILED, "%s", meter->failure));
  if (last) {
    take_sample(c, run_now(c));
    return;
  }
  if (!run->asking || index + 1 != run->asked_at->len)
    return;
  if (purpose == METER_WARMUP)
    run->at_warmup = run->now;
  else if (purpose == METER_END)
    run->at_end = run->now, run->told_end = TRUE;
  else if (purpose == METER_SAMPLE)
    take_sample(c, g_array_index(run->asked_at, int64_t, index));
  run->asking = FALSE;
  ask_next(c);
}

static gboolean record_good(const struct client_run *run, const struct record *record)
{
  const struct config *config = &run->setup->config;
  return (unsigned)record->kind < RECORD_KIND_COUNT && (unsigned)record->reason < REASON_COUNT &&
         (record->model == NO_INDEX || record->model < catalog_models(config->catalog)) &&
         (record->gpu == NO_INDEX || record->gpu < config->gpus) &&
         (record->server == NO_INDEX || record->server < config->servers);
}

/* Times come by the machine's monotonic clock: right to the nanosecond on one machine, not comparable between
 * two. */
void run_records_came(struct client *c, const uint8_t *data, size_t size)
{
  struct client_run *run = c->run;
  struct record record;
  for (size_t at = 4; at + sizeof record <= size; at += sizeof record) {
    memcpy(&record, data + at, sizeof record);
    record.time_ns -= run->start;
    if (record.kind == RECORD_GROUP_PCIE || record.kind == RECORD_GROUP_COMPUTE)
      record.b -= run->start;
    if (!record_good(run, &record))
      continue;
    if (run->outputs->store && run->experiment->decisions)
      store_decision(run->outputs->store, &record);
    if (run->outputs->timeline)
      timeline_record(run->outputs->timeline, &record);
  }
}
