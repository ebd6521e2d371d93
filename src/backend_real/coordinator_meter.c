/* What the run has used: asked of every server, summed, and sent to the client. One that does not answer in
 * time counts with what it told last. */
#include "backend_real/coordinator_internal.h"

#define ANSWER_NS  (500 * NS_PER_MS)
#define END_NUMBER UINT32_MAX /* of no METER */

static gboolean asked(const struct member *member)
{
  return member->stage == STAGE_GOING;
}

static void send_sum(struct coordinator *c)
{
  struct run_meter sum = {.run = c->spec.run, .number = c->meter};
  for (guint i = 0; i < c->members->len; i++) {
    usage_add(&sum.usage, &g_array_index(c->members, struct member, i).usage);
    usage_add(&sum.usage, &g_array_index(c->members, struct member, i).before);
  }
  if (c->controller) {
    sum.usage.queue = controller_queue(c->controller);
    sum.usage.jobs_done = controller_jobs_done(c->controller);
    sum.jobs_left = controller_jobs_left(c->controller);
    sum.jobs_seen = controller_jobs_seen(c->controller);
  }
  g_strlcpy(sum.failure, c->failure, sizeof sum.failure);
  coordinator_frame(c, c->client, c->stage == RUN_ENDING ? FRAME_ENDED : FRAME_METERED, run_meter_pack(&sum));
  loop_timer_cancel(c->loop, c->deadline);
  c->deadline = 0;
  c->meter = 0;
  if (c->stage == RUN_ENDING)
    coordinator_over(c);
}

static void too_late(void *context, uint64_t tag)
{
  struct coordinator *c = context;
  (void)tag;
  c->deadline = 0;
  if (c->meter != 0)
    send_sum(c);
}

void meter_check(struct coordinator *c)
{
  if (c->meter == 0)
    return;
  for (guint i = 0; i < c->members->len; i++) {
    const struct member *member = &g_array_index(c->members, struct member, i);
    if (asked(member) && member->metered != c->meter)
      return;
  }
  send_sum(c);
}

void meter_ask(struct coordinator *c, uint32_t number)
{
  enum frame_kind kind = c->stage == RUN_ENDING ? FRAME_END : FRAME_METER;
  if (c->meter != 0 && kind == FRAME_METER)
    send_sum(c); /* the one before, as far as it is known; an end takes the place of any */
  c->meter = kind == FRAME_END ? END_NUMBER : CLAMP(number, 1, END_NUMBER - 1);
  for (guint i = 0; i < c->members->len; i++) {
    struct member *member = &g_array_index(c->members, struct member, i);
    member->metered = 0;
    if (member->stage != STAGE_GONE && member->stage != STAGE_LINKED)
      coordinator_frame(c, member->id, kind, run_numbers_pack(c->spec.run, c->meter));
  }
  loop_timer_cancel(c->loop, c->deadline);
  c->deadline =
      loop_timer(c->loop, loop_now(c->loop) + (kind == FRAME_END ? 10 : 1) * ANSWER_NS, too_late, c, 0);
  meter_check(c);
}

void meter_answer(struct coordinator *c, struct member *member, const uint8_t *data, size_t size)
{
  struct run_meter meter;
  if (!run_meter_unpack(data, size, &meter)) {
    hub_expel(c->hub, member->id, "METERED is malformed");
    return;
  }
  if (meter.run != c->spec.run)
    return;
  member->usage = meter.usage;
  member->metered = meter.number;
  if (*meter.failure && !*c->failure)
    g_strlcpy(c->failure, meter.failure, sizeof c->failure);
  meter_check(c);
}
