/* Credit for datagrams; see srd_credit.h. */
#include "backend_real/srd_credit.h"

#define BATCHES 4 /* credits that a share goes back in */

void credit_grant_init(struct credit_grant *grant, uint32_t share)
{
  *grant = (struct credit_grant){.share = share, .batch = MAX(share / BATCHES, 1), .granted = share};
}

/* Datagrams that may be under way, at most. */
static uint32_t may_be_out(const struct credit_grant *grant)
{
  return grant->granted - grant->arrived;
}

gboolean credit_grant_arrived(struct credit_grant *grant, uint32_t taken)
{
  int32_t news = (int32_t)(taken - grant->taken);
  if (may_be_out(grant) == 0 || (news > 0 && (uint32_t)news > grant->credits - grant->taken))
    return FALSE;
  grant->arrived++;
  if (news > 0)
    grant->taken = taken;
  return TRUE;
}

gboolean credit_grant_due(const struct credit_grant *grant)
{
  return grant->share - may_be_out(grant) >= grant->batch &&
         grant->credits - grant->taken < CREDITS_UNDER_WAY;
}

uint32_t credit_grant_send(struct credit_grant *grant)
{
  grant->granted = grant->arrived + grant->share;
  grant->credits++;
  return grant->granted;
}

void credit_line_init(struct credit_line *line, uint32_t share)
{
  *line = (struct credit_line){.share = share, .limit = share};
}

uint32_t credit_line_left(const struct credit_line *line)
{
  return line->limit - line->used;
}

gboolean credit_line_take(struct credit_line *line, uint32_t limit)
{
  int32_t more = (int32_t)(limit - line->limit);
  if (more > 0 && limit - line->used > line->share)
    return FALSE;
  line->taken++;
  if (more > 0)
    line->limit = limit;
  return TRUE;
}

void credit_line_use(struct credit_line *line)
{
  line->used++;
}
