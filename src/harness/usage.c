/* Meters to figures; see usage.h. */
#include "harness/usage.h"

void usage_figures(const struct usage *from, const struct usage *to, const struct usage *now,
                   struct figures *f)
{
  double all = to->gpu_there_ns > from->gpu_there_ns ? to->gpu_there_ns - from->gpu_there_ns : 1;
  f->gpu_utilization = (to->gpu_any_ns - from->gpu_any_ns) / all;
  f->gpu_inference = (to->gpu_inference_ns - from->gpu_inference_ns) / all;
  f->gpu_training = (to->gpu_training_ns - from->gpu_training_ns) / all;
  f->gpu_held = (to->gpu_held_ns - from->gpu_held_ns) / all;
  f->loads_host = now->loads[SOURCE_HOST] - from->loads[SOURCE_HOST];
  f->loads_ssd = now->loads[SOURCE_SSD] - from->loads[SOURCE_SSD];
  f->loads_remote = now->loads[SOURCE_REMOTE] - from->loads[SOURCE_REMOTE];
  f->loads_process_start = now->process_starts - from->process_starts;
  f->net_bytes = now->net_bytes - from->net_bytes;
  f->pcie_bytes = now->pcie_bytes - from->pcie_bytes;
  f->evictions = now->evictions - from->evictions;
  f->host_memory_bytes = now->host_bytes;
  f->memory_pool_bytes = now->pool_bytes;
  f->training_steps = now->training_steps - from->training_steps;
  f->training_jobs = now->jobs_done;
  f->events = now->events;
}

void usage_interval(const struct usage *last, const struct usage *now, int64_t time_ns, double span_ns,
                    struct usage_row *row)
{
  *row = (struct usage_row){.time_ns = time_ns,
                            .gpus_inference = (now->gpu_inference_ns - last->gpu_inference_ns) / span_ns,
                            .gpus_training = (now->gpu_training_ns - last->gpu_training_ns) / span_ns,
                            .gpus_held = (now->gpu_held_ns - last->gpu_held_ns) / span_ns,
                            .net_bytes_s = (double)(now->net_bytes - last->net_bytes) * 1e9 / span_ns,
                            .pcie_bytes_s = (double)(now->pcie_bytes - last->pcie_bytes) * 1e9 / span_ns,
                            .queue = now->queue,
                            .training_steps = now->training_steps - last->training_steps};
}

void usage_add(struct usage *to, const struct usage *from)
{
  to->gpu_inference_ns += from->gpu_inference_ns;
  to->gpu_training_ns += from->gpu_training_ns;
  to->gpu_any_ns += from->gpu_any_ns;
  to->gpu_held_ns += from->gpu_held_ns;
  to->gpu_there_ns += from->gpu_there_ns;
  to->net_bytes += from->net_bytes;
  to->pcie_bytes += from->pcie_bytes;
  for (uint32_t i = 0; i < LOAD_SOURCES; i++)
    to->loads[i] += from->loads[i];
  to->process_starts += from->process_starts;
  to->evictions += from->evictions;
  to->training_steps += from->training_steps;
  to->host_bytes += from->host_bytes;
  to->pool_bytes += from->pool_bytes;
}
