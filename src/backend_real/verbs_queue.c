/* The kinds of queues, and what they share; see verbs_queue.h. */
#include "backend_real/verbs_queue.h"

#include "core/units.h"

/* From when a read is posted until its completion has been taken in and another was posted in its place: a
 * fabric's round trip is a few us, waking a thread that sleeps some tens. */
#define ROUND_TRIP_S 100e-6
#define WINDOW_MIN   (2 * (uint64_t)READ_BYTES_MAX) /* one that moves and one that waits */
#define WINDOW_MAX   (16 * (uint64_t)READ_BYTES_MAX)
#define RATE_UNKNOWN 100 /* Gbit/s */

const struct verbs_queue_ops *verbs_queue_ops(enum nic_kind kind)
{
  return kind == NIC_RC ? &verbs_rc : &verbs_srd;
}

uint64_t verbs_window_bytes(uint32_t a_gbit_s, uint32_t b_gbit_s)
{
  uint32_t a = a_gbit_s ? a_gbit_s : RATE_UNKNOWN, b = b_gbit_s ? b_gbit_s : RATE_UNKNOWN;
  double product = gbit_to_bytes_per_s(MIN(a, b)) * ROUND_TRIP_S;
  return (uint64_t)CLAMP(product, WINDOW_MIN, WINDOW_MAX);
}
