/* Fuzz target: reader of the trace format mooncake. */
#include "trace_input.h"

FUZZ_TRACE_FORMAT("mooncake")
