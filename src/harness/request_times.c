/* When a request was sent on and began; see request_times.h. */
#include "harness/request_times.h"

/* Part of a request's control latency that lies between client and controller, by the hardware files. */
static double client_share(const struct config *config, uint32_t gpu)
{
  if (config->hardware_count == 1 || gpu >= config->gpus)
    return 0.5;
  uint32_t server = 0, last = config->servers - 1;
  while (server < last) { /* the last one that begins at or before the GPU */
    uint32_t middle = (server + last + 1) / 2;
    if (config->server[middle].first_gpu <= gpu)
      server = middle;
    else
      last = middle - 1;
  }
  double own = config->hardware[0].control_ns, all = own + config_server_hardware(config, server)->control_ns;
  return all > 0 ? own / all : 0.5;
}

/* Control latency is what the answer took beyond the durations that it tells: two hops between client and
 * controller, two between controller and GPU server. */
void request_times(const struct config *config, const struct message_answer *m, struct request_row *row)
{
  row->dispatch_ns = row->start_ns = -1;
  if (m->queued_ns < 0)
    return;
  int64_t known = m->queued_ns + max_i64(0, m->waited_ns) + max_i64(0, m->executed_ns);
  /* A real client's clock may have been read just before the answer came in. */
  double two_hops = (double)max_i64(0, row->end_ns - row->arrival_ns - known) / 2;
  double share = client_share(config, m->gpu);
  row->dispatch_ns = row->arrival_ns + (int64_t)(two_hops * share) + m->queued_ns;
  if (m->waited_ns >= 0 && m->executed_ns >= 0)
    row->start_ns = row->dispatch_ns + (int64_t)(two_hops * (1 - share)) + m->waited_ns;
}
