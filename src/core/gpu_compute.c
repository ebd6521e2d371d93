/* Computations of a request: group by group while its model loads, or all at once where it is resident. */
#include "core/gpu_server_internal.h"

/* Completes the spec and asks for it. */
static void compute(struct gpu_server *s, struct task *task, struct compute_spec *spec)
{
  const struct tier *memory = s->gpu[task->gpu].memory;
  spec->gpu = task->gpu;
  spec->stream = task->stream;
  spec->model = task->model;
  spec->device = memory ? tier_place(memory, task->model) : NULL;
  spec->request = task->id;
  spec->tag = TAG(TAG_COMPUTE, task->self, spec->group);
  task->computes++;
  s->world->ops->compute(s->world, spec);
}

/* service_ns of a traced request stretches every group alike. */
static double stretch(const struct gpu_server *s, const struct task *task, const struct grouping *grouping)
{
  if (task->service_ns <= 0)
    return 1;
  double sum = 0;
  for (uint32_t j = 0; j < grouping->groups; j++)
    sum += grouping->compute_ns[j];
  double launches = s->hardware->launch_ns * grouping->first_layer[grouping->groups];
  double service = (double)task->service_ns - launches;
  return sum > 0 && service > 0 ? service / sum : 0;
}

void gpu_compute_groups(struct gpu_server *s, struct task *task, const struct grouping *grouping,
                        const struct load *load)
{
  task->grouping = grouping;
  task->last = load == NULL;
  double scale = stretch(s, task, grouping);
  uint64_t offset = 0;
  for (uint32_t j = 0; j < grouping->groups; offset += grouping->bytes[j++]) {
    if (j < task->groups_done)
      continue;
    struct compute_spec spec = {.group = j,
                                .offset = offset,
                                .bytes = grouping->bytes[j],
                                .compute_ns = grouping->compute_ns[j] * scale,
                                .layers = grouping->first_layer[j + 1] - grouping->first_layer[j],
                                .loaded = TRUE};
    load_order(s, load, &spec);
    compute(s, task, &spec);
  }
}

void gpu_compute_resident(struct gpu_server *s, struct task *task)
{
  task->last = TRUE;
  const struct profile *profile = catalog_profile(s->config->catalog, task->model);
  const struct model *model = catalog_model(s->config->catalog, task->model);
  double launches = s->hardware->launch_ns * profile->layers;
  double all =
      task->service_ns > 0 ? (double)task->service_ns : resident_ns(s->config->plans, model->profile, s->hw);
  struct compute_spec spec = {.group = NO_INDEX,
                              .bytes = profile->param_bytes,
                              .compute_ns = all > launches ? all - launches : 0,
                              .layers = profile->layers};
  compute(s, task, &spec);
}
