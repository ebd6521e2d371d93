/* Fuzz target: reader of the trace format azure-functions-2019; durations follow after a byte 0x1e. */
#include "trace_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static const struct trace_options options = {.format = "azure-functions-2019", .seed = 1};
  return fuzz_trace(&options, "invocations.csv", "durations.csv", data, size);
}
