/* Fuzz target: reader of the trace format openb-pods. */
#include "trace_input.h"

FUZZ_TRACE_FORMAT("openb-pods")
