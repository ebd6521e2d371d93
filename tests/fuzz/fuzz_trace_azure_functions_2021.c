/* Fuzz target: reader of the trace format azure-functions-2021. */
#include "trace_input.h"

FUZZ_TRACE_FORMAT("azure-functions-2021")
