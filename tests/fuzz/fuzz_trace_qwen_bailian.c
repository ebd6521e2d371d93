/* Fuzz target: reader of the trace format qwen-bailian. */
#include "trace_input.h"

FUZZ_TRACE_FORMAT("qwen-bailian")
