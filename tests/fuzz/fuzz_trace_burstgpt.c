/* Fuzz target: reader of the trace format burstgpt. */
#include "trace_input.h"

FUZZ_TRACE_FORMAT("burstgpt")
