/* Fuzz target: reader of the trace format philly. */
#include "trace_input.h"

FUZZ_TRACE_FORMAT("philly")
