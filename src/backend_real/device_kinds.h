/* The kinds of device, and what they share. */
#ifndef DM_DEVICE_KINDS_H
#define DM_DEVICE_KINDS_H

#include "backend_real/device.h"

extern const struct device_ops device_cuda, device_host;

/* All that a copy or a compute names lies within the memories and lanes of the configuration. A kind ends as
 * failed what does not. */
gboolean device_copy_fits(const struct device_config *config, const struct device_copy *copy);
gboolean device_compute_fits(const struct device_config *config, const struct device_compute *compute);
/* The same for fill: DM_ERROR_FAILED. */
gboolean device_fill_fits(const struct device_config *config, uint32_t gpu, uint64_t offset, uint64_t bytes,
                          GError **error);

/* Sum of a compute's pieces. */
uint64_t device_compute_bytes(const struct device_compute *compute);
/* CLOCK_MONOTONIC, ns. */
int64_t device_now(void);
/* A timer of this thread fires when it is due, not up to 50 us later as Linux likes to. */
void device_exact_timers(void);

#endif
