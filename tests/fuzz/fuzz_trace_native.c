/* Fuzz target: reader of the trace format native. */
#include "trace_input.h"

FUZZ_TRACE_FORMAT("native")
