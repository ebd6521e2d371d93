/* Registry of serving systems. */
#include <string.h>
#include "core/system_parts.h"

static const struct system *const registry[] = {
    &system_ideal, &system_ideal_shared, &system_distmind,      &system_pipeswitch,
    &system_mps,   &system_ray,          &system_serverlessllm, NULL,
};

const struct system *system_by_name(const char *name)
{
  for (size_t i = 0; registry[i]; i++)
    if (strcmp(registry[i]->name, name) == 0)
      return registry[i];
  return NULL;
}

const struct system *const *systems(void)
{
  return registry;
}
