/* A device opened to be measured: one GPU, an arena of the same size, and a loop on whose thread ends are
 * known, as a GPU server knows them. */
#ifndef DM_CALIBRATE_GEAR_H
#define DM_CALIBRATE_GEAR_H

#include "backend_real/calibrate.h"
#include "backend_real/host_memory.h"
#include "backend_real/loop.h"

struct gear {
  struct calibration *calibration;
  struct device *device;
  struct host_memory memory;
  uint64_t bytes; /* of the arena, and of the GPU's memory */
  struct loop *loop;

  /* The operation that is waited for: one at a time. */
  struct note note;
  enum device_status status;
  int64_t told_ns;
  gboolean told;
};

/* Always followed by gear_close. */
gboolean gear_open(struct gear *gear, struct calibration *calibration, uint64_t bytes, GError **error);
void gear_close(struct gear *gear);

/* A tag for the operation that will be waited for next. */
uint64_t gear_begin(struct gear *gear);
/* Until it has ended; *told_ns: when the loop's thread knew. DM_ERROR_FAILED: it failed, its bytes were
 * wrong, or 30 s have passed. */
gboolean gear_await(struct gear *gear, int64_t *told_ns, GError **error);
/* The arena's piece to the same place on the GPU; its token. tag 0: nobody is told. */
uint64_t gear_copy(struct gear *gear, uint64_t offset, uint64_t bytes, uint64_t tag);

#endif
