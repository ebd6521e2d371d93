/* Fuzz target: reader of the trace format helios. */
#include "trace_input.h"

FUZZ_TRACE_FORMAT("helios")
