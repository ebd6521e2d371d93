/* The checksum of model parameters: the sum, modulo 2^64, over the image's 8-byte little-endian words w_i (i
 * = offset / 8, the last word padded with zeros) of w_i x r(i), where r(i) is the odd number mix(i) | 1 (mix:
 * the finalizer of splitmix64).
 *
 * Linear, so that the sums of parts add up however the bytes are cut (a word cut in two counts as two words
 * with zeros for what is missing), and so are computed in any order. A changed byte always changes it, as
 * r(i) is odd; words that changed places do too. Guards against wrong transfers, not against an enemy. */
#ifndef DM_CHECKSUM_H
#define DM_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* The GPU's kernels compute with the same function. */
#ifdef __CUDACC__
#define CHECKSUM_INLINE static inline __host__ __device__
#else
#define CHECKSUM_INLINE static inline
#endif

/* Finalizer of splitmix64 (Steele, Lea, Flood 2014). */
CHECKSUM_INLINE uint64_t checksum_mix(uint64_t x)
{
  x += 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

/* Of data, which are the image's bytes [offset, offset + bytes). */
uint64_t checksum(const uint8_t *data, uint64_t offset, uint64_t bytes);

#endif
