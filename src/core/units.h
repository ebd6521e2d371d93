/* Units of the whole project: time is int64_t nanoseconds, size uint64_t bytes, rate double bytes per second.
 *
 * A rate of 0 means "infinitely fast": the key was set to 0 on purpose, and nothing is charged for it.
 * Only + - x / on doubles, so that the same build gives the same bits everywhere (see -ffp-contract=off). */
#ifndef DM_UNITS_H
#define DM_UNITS_H

#include <stdint.h>

#define NS_PER_US    1000LL
#define NS_PER_MS    1000000LL
#define NS_PER_S     1000000000LL
#define BYTES_PER_MB 1000000ULL
#define BYTES_PER_GB 1000000000ULL /* a gigabyte is 10^9 bytes throughout */
#define TIME_NEVER   INT64_MAX

/* Nearest whole nanosecond of a non-negative duration; saturates below TIME_NEVER. */
static inline int64_t ns_round(double ns)
{
  return ns >= 9.2e18 ? TIME_NEVER - 1 : (int64_t)(ns + 0.5);
}

/* Time to move bytes at bytes_per_s, in (fractional) nanoseconds; 0 at rate 0 (infinitely fast). */
static inline double transfer_ns(uint64_t bytes, double bytes_per_s)
{
  return bytes_per_s > 0 ? (double)bytes * 1e9 / bytes_per_s : 0;
}

static inline double gbit_to_bytes_per_s(double gbit_s)
{
  return gbit_s * 1e9 / 8;
}

static inline int64_t min_i64(int64_t a, int64_t b)
{
  return a < b ? a : b;
}

static inline int64_t max_i64(int64_t a, int64_t b)
{
  return a > b ? a : b;
}

#endif
