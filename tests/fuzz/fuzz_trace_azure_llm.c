/* Fuzz target: reader of the trace format azure-llm. */
#include "trace_input.h"

FUZZ_TRACE_FORMAT("azure-llm")
