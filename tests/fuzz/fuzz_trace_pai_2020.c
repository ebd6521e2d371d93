/* Fuzz target: reader of the trace format pai-2020; the header file follows after a byte 0x1e. */
#include "trace_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static const struct trace_options options = {.format = "pai-2020"};
  return fuzz_trace(&options, "table.csv", "table.header", data, size);
}
