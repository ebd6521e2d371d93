/* Fuzz target: any CSV by the names of its columns. */
#include "trace_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static const struct trace_options options = {.time_column = "start",
                                               .model_column = "endpoint",
                                               .input_column = "in",
                                               .output_column = "out",
                                               .service_column = "took",
                                               .time_unit_ns = NS_PER_MS};
  return fuzz_trace(&options, "table.csv", NULL, data, size);
}
