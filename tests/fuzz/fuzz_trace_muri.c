/* Fuzz target: reader of the trace format muri. */
#include "trace_input.h"

FUZZ_TRACE_FORMAT("muri")
