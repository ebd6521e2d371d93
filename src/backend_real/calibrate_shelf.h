/* A memory server's process while the network is calibrated: a shelf that serves all its memory to one
 * reader, the process that measures. Letters between the two (transport.h) go over a socket pair. */
#ifndef DM_CALIBRATE_SHELF_H
#define DM_CALIBRATE_SHELF_H

#include "backend_real/transport.h"

#define CALIBRATE_READER ACTOR(ACTOR_GPU_SERVER, 0)

struct shelf_part {
  const struct transport_ops *transport;
  struct transport_options options;
  struct ticket_secret secret;
  uint64_t bytes; /* of memory */
  uint32_t index; /* in the pool */
  int letters;    /* socket to the reader's process */
};

/* Serves until the process is killed; for offspring_start, with a struct shelf_part. Writes the shelf's
 * address and a newline to `out`; ends without where memory or shelf cannot be had. */
void calibrate_shelf_main(void *part, int out);

#endif
