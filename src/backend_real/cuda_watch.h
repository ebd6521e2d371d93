/* The watcher: the thread that sees a device's operations end and tells so.
 *
 * It looks rather than being called: the driver's own callbacks come tens of microseconds late and hold their
 * stream up meanwhile. Reports of computes lie in host memory, so looking costs nothing; as a compute reports
 * its start too, its end is known in advance, and the watcher sleeps until shortly before, then looks without
 * pause. Copies are looked at every few microseconds by their events. With nothing under way it sleeps until
 * it is called. */
#ifndef DM_CUDA_WATCH_H
#define DM_CUDA_WATCH_H

#include "backend_real/cuda_gpu.h"

struct cuda_watch;

/* Watches over the GPUs of a device, [config->gpus]; copies config. */
struct cuda_watch *cuda_watch_new(struct cuda_gpu *gpu, const struct device_config *config);
/* Waits until nothing is under way. */
void cuda_watch_free(struct cuda_watch *watch);
/* After something was issued. */
void cuda_watch_call(struct cuda_watch *watch);
/* Ends as failed, on the watcher's thread, what could not be issued. */
void cuda_watch_refuse(struct cuda_watch *watch, uint64_t tag);

#endif
