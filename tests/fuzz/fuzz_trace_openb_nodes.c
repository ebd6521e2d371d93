/* Fuzz target: reader of the trace format openb-nodes. */
#include "trace_input.h"

FUZZ_TRACE_FORMAT("openb-nodes")
