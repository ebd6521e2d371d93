/* Fuzz target: detection of the trace layout, then its reader. */
#include "trace_input.h"

FUZZ_TRACE_FORMAT("auto")
