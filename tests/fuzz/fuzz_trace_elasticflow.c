/* Fuzz target: reader of the trace format elasticflow. */
#include "trace_input.h"

FUZZ_TRACE_FORMAT("elasticflow")
