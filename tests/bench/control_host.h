/* The process that bench_real_control measures: the core's controller behind the real hub. */
#ifndef DM_BENCH_CONTROL_HOST_H
#define DM_BENCH_CONTROL_HOST_H

#include "backend_real/control.h"
#include "harness/setup.h"

enum { CONTROL_GPUS = 16, CONTROL_RUN = 1 }; /* GPUs of a server; the number of the run */

void control_limits(const struct setup *setup, struct message_limits *limits);
/* Until the client goes. Tells on `out` where it listens. */
void control_host_run(const struct setup *setup, const struct key_pair *keys, const char *authorized,
                      int out);

#endif
