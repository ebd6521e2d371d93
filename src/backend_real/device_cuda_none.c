/* What a program that was built without nvcc knows of CUDA: that it has none. */
#include "backend_real/device_kinds.h"
#include "backend_real/gpu_facts.h"

static const char *missing(void)
{
  return "built without nvcc";
}

/* The other slots are never called: device.h opens only what can be used. */
const struct device_ops device_cuda = {.name = "cuda", .missing = missing};

GPtrArray *cuda_facts(void)
{
  return g_ptr_array_new_with_free_func(gpu_facts_free);
}

char *cuda_driver_version(void)
{
  return NULL;
}
